// front.h: what every verb that starts an instance needs: the settings, checked; the start's
// configuration.
#ifndef ISLE_CLI_FRONT_H
#define ISLE_CLI_FRONT_H

#include "base/buf.h"
#include "cli/calls.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "conf/conf.h"
#include "model/lower.h"
#include "runtime/runtime.h"
#include "start/bwrap.h"
#include "start/mode.h"
#include "start/start.h"

#include <stdbool.h>

struct front_settings {
    struct conf conf; // points into `places` where no setting says so: stays where it was loaded
    struct start_places places;
    struct calls calls;
    struct lower_host host;
    char python[RUNTIME_PYTHON_MAX]; // that the settings choose; "": the usual one
};

struct front_error {
    char text[800]; // what is wrong and what to do
};

// What the command line says of settings.
struct front_given {
    const char *config;     // --config FILE; NULL: the place that start_places_find() knows
    struct option_list set; // --set NAME=VALUE, each
    const struct conf_option *options; // of options with a name of their own, which outweigh --set
    size_t n_options;
};

// The rows of both options; FIELD is the front_given of the verb's target TYPE (free its
// set.words).
#define FRONT_OPTIONS(TYPE, FIELD)                                                                 \
    {.name = "--config",                                                                           \
     .argument = "FILE",                                                                           \
     .kind = OPTION_TEXT,                                                                          \
     .offset = offsetof(TYPE, FIELD) + offsetof(struct front_given, config),                       \
     .help = "settings, instead of /etc/isle/isle.conf; an account's: ~/.config/isle/isle.conf",   \
     .values = VALUES_FILE},                                                                       \
    {                                                                                              \
        .name = "--set", .argument = "NAME=VALUE", .kind = OPTION_LIST,                            \
        .offset = offsetof(TYPE, FIELD) + offsetof(struct front_given, set),                       \
        .help = "a setting; outweighs environment and file"                                        \
    }

// Settings and places, in this order of weight: options, `environ`, the file, the preset. 0, or a
// negative errno with *ret_error.
int front_conf_load(const struct front_given *given, struct front_settings *ret,
                    struct front_error *ret_error);
// The same and all that is made of them.
int front_settings_load(const struct front_given *given, struct front_settings *ret,
                        struct front_error *ret_error);
void front_settings_done(struct front_settings *f); // also of zeroed ones
// 0, or -EINVAL with *ret_error: jobs are switched off.
int front_check_enabled(const struct front_settings *f, struct front_error *ret_error);

// What SANDBOX_PRESET changes: "NAME=VALUE, ...", or nothing.
void front_preset_words(const struct front_settings *f, struct buf *out);
// The same on stderr, in one line of the verb's; nothing where it changes nothing.
void front_tell_preset(const struct front_settings *f, const char *verb);
// Names of the settings that are given and that this version does not use: "NAME, ...".
void front_idle_words(const struct front_settings *f, struct buf *out);

// Of a data folder that is noexec for jobs, too: they cannot execute what they make in a workspace
// there. NULL, or what to do about it. The folder exists once a start has succeeded.
const char *front_noexec_advice(const struct front_settings *f);

// Who makes the sandboxes: `option` (--launcher's value), or what the settings say where it is
// NULL. 0, or -EINVAL with *ret_error.
int front_choose_launcher(const struct front_settings *f, const char *option,
                          enum seat_launcher *ret, struct front_error *ret_error);
// The Bubblewrap that the settings name, and its version. 0, or -errno with *ret_error.
int front_find_bwrap(const struct front_settings *f, struct bwrap_found *ret,
                     struct front_error *ret_error);

// 0, or -errno with *ret_error: isle is not installed as a whole, cannot see itself, or was given
// too little to start with.
int front_check_places(const struct cli_places *places, struct front_error *ret_error);

// `meanwhile` and whatever else is a verb's own is the caller's to add. The strings stay those of
// *f and *places.
struct start_config front_start_config(const struct front_settings *f,
                                       const struct cli_places *places);

// A start that failed, in one line for people: step and text; what refuses user namespaces, where
// something does, and its fix; that isle doctor says more. Single-threaded callers (it forks).
void front_explain(const struct start_error *why, struct front_error *ret);

#endif
