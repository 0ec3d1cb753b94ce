#include "conf/conf.h"

#include "base/fd.h"
#include "base/text.h"
#include "conf/file.h"
#include "conf/value.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// How origins and the file's name travel to the re-executed image: nobody else sets them.
#define ORIGINS "ISLE_CONF_ORIGINS" // a letter per setting, in the order of the table
#define FILE_NAME "ISLE_CONF_FILE"

const char *const conf_origin_names[CONF_N_ORIGINS] = {
    [CONF_DEFAULT] = "default",         [CONF_PRESET] = "preset", [CONF_FILE] = "file",
    [CONF_ENVIRONMENT] = "environment", [CONF_OPTION] = "option",
};

// ---- Where a value is from

static const char *value_of(char *const *environment, const char *name)
{
    size_t n = strlen(name);
    for (size_t i = 0; environment && environment[i]; i++) {
        if (strncmp(environment[i], name, n) == 0 && environment[i][n] == '=') {
            return environment[i][n + 1] ? environment[i] + n + 1 : NULL;
        }
    }
    return NULL;
}

static const char *option_of(const struct conf_sources *from, enum setting n)
{
    const char *value = NULL;
    for (size_t i = 0; i < from->n_options; i++) { // given twice, the last counts
        const struct conf_option *o = &from->options[i];
        value = o->setting == n && o->value && *o->value ? o->value : value;
    }
    return value;
}

static void take(struct conf *c, enum setting n, enum conf_origin origin, const char *value)
{
    if (value) {
        c->text[n] = value;
        c->origin[n] = origin;
    }
}

// What no source says is the preset's, where there is one, or the table's.
static void take_defaults(struct conf *c)
{
    bool platform = strcmp(c->text[SETTING_PRESET] ? c->text[SETTING_PRESET] : "", "platform") == 0;
    for (int n = 0; n < SETTING_COUNT; n++) {
        const struct setting_spec *s = &setting_specs[n];
        if (!c->text[n] && platform && s->why) {
            take(c, (enum setting)n, CONF_PRESET, s->platform);
        } else if (!c->text[n]) {
            take(c, (enum setting)n, CONF_DEFAULT, s->initial);
        }
    }
}

// Says where the value is that *e is about.
static void add_place(struct conf_error *e, const struct conf *c, enum setting n,
                      const struct conf_file *file)
{
    struct conf_error plain = *e;
    if (c->origin[n] == CONF_FILE) {
        snprintf(e->text, sizeof e->text, "%.150s:%u: %.340s", c->file, file->lines[n], plain.text);
    } else if (c->origin[n] == CONF_PRESET) {
        snprintf(e->text, sizeof e->text, "SANDBOX_PRESET=platform: %.450s", plain.text);
    }
    text_no_controls(e->text);
}

// Every value is held against the table, whatever its place; those of the file become *c's own.
static int check_all(struct conf *c, const struct conf_file *file, struct conf_error *ret_error)
{
    for (int n = 0; n < SETTING_COUNT; n++) {
        int e = conf_value_check((enum setting)n, c->text[n], &c->number[n], ret_error);
        if (e) {
            add_place(ret_error, c, (enum setting)n, file);
            return e;
        }
        if (c->origin[n] == CONF_FILE) {
            c->owned[n] = strdup(c->text[n]);
            c->text[n] = c->owned[n];
        }
        if (c->origin[n] == CONF_FILE && !c->owned[n]) {
            snprintf(ret_error->text, sizeof ret_error->text, "not enough memory");
            return -ENOMEM;
        }
    }
    return 0;
}

// ---- Loading

static int open_file(const struct conf_sources *from, int *ret, struct conf_error *ret_error)
{
    // a pipe must not hold us up; what it is, is looked at by conf_file_read()
    int fd = from->file ? open(from->file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) : -1;
    if (from->file && fd < 0 && (from->file_must_exist || (errno != ENOENT && errno != ENOTDIR))) {
        int e = -errno;
        snprintf(ret_error->text, sizeof ret_error->text, "%.300s: %s", from->file,
                 strerrordesc_np(-e));
        text_no_controls(ret_error->text);
        return e;
    }
    *ret = fd;
    return 0;
}

static int load(const struct conf_sources *from, struct conf_file *file, struct conf *c,
                struct conf_error *ret_error)
{
    AUTO_CLOSE int fd = -1;
    int e = open_file(from, &fd, ret_error);
    if (!e && fd >= 0) {
        e = conf_file_read(fd, from->file, file, ret_error);
    }
    if (e) {
        return e;
    }
    c->file = from->file ? strdup(from->file) : NULL;
    c->file_read = fd >= 0;
    if (from->file && !c->file) {
        snprintf(ret_error->text, sizeof ret_error->text, "not enough memory");
        return -ENOMEM;
    }
    for (int n = 0; n < SETTING_COUNT; n++) {
        take(c, (enum setting)n, CONF_FILE, file->values[n]);
        take(c, (enum setting)n, CONF_ENVIRONMENT,
             value_of(from->environment, setting_specs[n].name));
        take(c, (enum setting)n, CONF_OPTION, option_of(from, (enum setting)n));
    }
    take_defaults(c);
    return check_all(c, file, ret_error);
}

int conf_load(const struct conf_sources *from, struct conf *ret, struct conf_error *ret_error)
{
    struct conf c = {};
    struct conf_file file = {};
    int e = load(from, &file, &c, ret_error);
    conf_file_done(&file);
    if (e) {
        conf_done(&c);
        return e;
    }
    *ret = c;
    return 0;
}

void conf_done(struct conf *c)
{
    for (int n = 0; n < SETTING_COUNT; n++) {
        free(c->owned[n]);
    }
    free(c->file);
    *c = (struct conf){};
}

bool conf_departs(const struct conf *c, enum setting s)
{
    const struct setting_spec *spec = &setting_specs[s];
    if (!spec->platform) {
        return false;
    }
    if (spec->type != SETTING_BOOL && spec->type != SETTING_NUMBER) {
        return strcmp(c->text[s], spec->platform) != 0;
    }
    int64_t platform = 0; // TRUE and 1 are true
    struct conf_error e;
    conf_value_check(s, spec->platform, &platform, &e);
    return c->number[s] != platform;
}

// ---- To the service and back

static int add_variable(char **environment, const char *name, const char *value)
{
    size_t n = 0;
    while (environment[n]) {
        n++;
    }
    if (asprintf(&environment[n], "%s=%s", name, value) < 0) {
        environment[n] = NULL;
        return -ENOMEM;
    }
    return 0;
}

char **conf_environment(const struct conf *c)
{
    char **environment = calloc(SETTING_COUNT + 3, sizeof *environment);
    char origins[SETTING_COUNT + 1] = "";
    int e = environment ? 0 : -ENOMEM;
    for (int n = 0; n < SETTING_COUNT; n++) {
        bool passed = conf_given(c, (enum setting)n) && !setting_specs[n].idle;
        origins[n] = (char)('0' + (passed ? c->origin[n] : CONF_DEFAULT));
        if (passed && !e) {
            e = add_variable(environment, setting_specs[n].name, c->text[n]);
        }
    }
    e = e ? e : add_variable(environment, ORIGINS, origins);
    if (!e && c->file) {
        e = add_variable(environment, FILE_NAME, c->file);
    }
    if (e) {
        conf_environment_free(environment);
        return NULL;
    }
    return environment;
}

void conf_environment_free(char **environment)
{
    for (size_t i = 0; environment && environment[i]; i++) {
        free(environment[i]);
    }
    free(environment);
}

int conf_load_passed(char *const *environment, struct conf *ret, struct conf_error *ret_error)
{
    struct conf c = {};
    const struct conf_sources from = {.environment = environment};
    const char *origins = value_of(environment, ORIGINS), *file = value_of(environment, FILE_NAME);
    int e = conf_load(&from, &c, ret_error);
    if (e) {
        return e;
    }
    for (int n = 0; origins && strlen(origins) == SETTING_COUNT && n < SETTING_COUNT; n++) {
        int origin = origins[n] - '0';
        if (origin >= CONF_DEFAULT && origin < CONF_N_ORIGINS) {
            c.origin[n] = (enum conf_origin)origin;
        }
    }
    c.file = file ? strdup(file) : NULL;
    if (file && !c.file) {
        conf_done(&c);
        snprintf(ret_error->text, sizeof ret_error->text, "not enough memory");
        return -ENOMEM;
    }
    *ret = c;
    return 0;
}

// ---- SIGHUP

// What a start with this file would have, beside the preset, which stays as it is.
static void collect(const struct conf *c, const struct conf_file *file, struct conf *ret)
{
    ret->file = c->file; // lent, for messages
    for (int n = 0; n < SETTING_COUNT; n++) {
        enum setting s = (enum setting)n;
        take(ret, s, CONF_FILE, file->values[n]);
        if (c->origin[n] >= CONF_ENVIRONMENT) {
            take(ret, s, c->origin[n], c->text[n]);
        }
    }
    take_defaults(ret);
}

static void adopt(struct conf *c, struct conf *next, enum setting n)
{
    free(c->owned[n]);
    c->owned[n] = next->owned[n];
    next->owned[n] = NULL;
    c->text[n] = next->text[n];
    c->number[n] = next->number[n];
    c->origin[n] = next->origin[n];
}

int conf_reload(struct conf *c, int fd, struct conf_changes *ret, struct conf_error *ret_error)
{
    struct conf_file file = {};
    struct conf next = {};
    struct conf_changes changes = {};
    int e = conf_file_read(fd, c->file ? c->file : "settings file", &file, ret_error);
    if (!e) {
        collect(c, &file, &next);
        e = check_all(&next, &file, ret_error);
    }
    for (int n = 0; !e && n < SETTING_COUNT; n++) {
        const struct setting_spec *s = &setting_specs[n];
        bool differs = strcmp(c->text[n], next.text[n]) != 0;
        if (differs && !s->idle) {
            changes.rows[changes.n++] = (struct conf_change){(enum setting)n, s->live};
        }
        if (s->live || !differs) { // where it is from may have changed
            adopt(c, &next, (enum setting)n);
        }
    }
    next.file = NULL;
    conf_done(&next);
    conf_file_done(&file);
    if (!e) {
        *ret = changes;
    }
    return e;
}
