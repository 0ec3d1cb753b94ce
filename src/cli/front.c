#include "cli/front.h"

#include "base/buf.h"
#include "base/fd.h"
#include "host/host.h"
#include "host/refusal.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

static int refuse(struct front_error *e, const char *what, const char *why)
{
    snprintf(e->text, sizeof e->text, "%s%s", what, why);
    return -EINVAL;
}

// An account's folders are elsewhere than root's.
static void find_places(struct front_settings *f)
{
    const struct {
        enum setting setting;
        const char *place;
    } table[] = {{SETTING_WORKSPACE_ROOT, f->places.data_dir},
                 {SETTING_RUN_DIR, f->places.run_dir},
                 {SETTING_RUNTIME_ROOT, f->places.runtime_root}};
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        if (!conf_given(&f->conf, table[i].setting)) {
            f->conf.text[table[i].setting] = table[i].place;
        }
    }
}

int front_conf_load(const struct front_given *given, struct front_settings *ret,
                    struct front_error *ret_error)
{
    struct conf_error why;
    size_t n = given->set.n;
    AUTO_FREE struct conf_option *options = calloc(n + given->n_options + 1, sizeof *options);
    if (!options) {
        return refuse(ret_error, "not enough memory", "");
    }
    for (size_t i = 0; i < n; i++) {
        if (conf_option_parse(given->set.words[i], &options[i], &why)) {
            return refuse(ret_error, "--set: ", why.text);
        }
    }
    for (size_t i = 0; i < given->n_options; i++) {
        options[n + i] = given->options[i];
    }
    start_places_find(&ret->places);
    int e = conf_load(
        &(struct conf_sources){.environment = environ,
                               .file = given->config ? given->config : ret->places.config_file,
                               .file_must_exist = given->config != NULL,
                               .options = options,
                               .n_options = n + given->n_options},
        &ret->conf, &why);
    if (e) {
        return refuse(ret_error, "", why.text);
    }
    find_places(ret);
    return 0;
}

// Two settings that say opposite things: nobody can mean both.
static int check_switches(const struct conf *c, struct front_error *e)
{
    const char *why = " contradicts SANDBOX_REQUIRE_USER_NAMESPACE=true: unset one of them";
    if (!conf_bool(c, SETTING_REQUIRE_USER_NAMESPACE)) {
        return 0;
    }
    if (!conf_bool(c, SETTING_FILESYSTEM_ISOLATION_ENABLED)) {
        return refuse(e, "SANDBOX_FILESYSTEM_ISOLATION_ENABLED=false", why);
    }
    return conf_bool(c, SETTING_LEGACY_FALLBACK_ENABLED)
               ? refuse(e, "SANDBOX_LEGACY_FALLBACK_ENABLED=true", why)
               : 0;
}

// A name is one of the runtime root, which the service does not see: it is looked for here. Where
// there is no such root, the start says so.
static int choose_python(struct front_settings *f, struct front_error *e)
{
    const char *words = f->conf.text[SETTING_DEFAULT_PYTHON_BINARIES];
    const char *path = f->conf.text[SETTING_RUNTIME_ROOT];
    f->python[0] = '\0';
    AUTO_CLOSE int root = *words ? open(path, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    if (root < 0 || !runtime_find_python(root, words, f->python)) {
        return 0;
    }
    snprintf(
        e->text, sizeof e->text,
        "SANDBOX_DEFAULT_PYTHON_BINARIES: %.200s is refused: none of it is a Python 3.13 "
        "that all may execute, in /usr of the runtime root %.300s; unset it, or add python3.13",
        words, path);
    return -ENOENT;
}

int front_settings_load(const struct front_given *given, struct front_settings *ret,
                        struct front_error *ret_error)
{
    struct calls_error call;
    int e = front_conf_load(given, ret, ret_error);
    if (e) {
        return e;
    }
    if (calls_parse(ret->conf.text[SETTING_SECCOMP_ALLOW], &ret->calls, &call)) {
        e = refuse(ret_error, "SANDBOX_SECCOMP_ALLOW: ", call.text);
    } else {
        e = check_switches(&ret->conf, ret_error);
        e = e ? e : choose_python(ret, ret_error);
    }
    if (e) {
        front_settings_done(ret);
        return e;
    }
    lower_host_read(&ret->conf, &ret->host);
    return 0;
}

int front_check_enabled(const struct front_settings *f, struct front_error *ret_error)
{
    return conf_bool(&f->conf, SETTING_RUNTIME_ENABLED)
               ? 0
               : refuse(ret_error, "SANDBOX_RUNTIME_ENABLED",
                        " is false: every job is refused; unset it");
}

void front_settings_done(struct front_settings *f) { conf_done(&f->conf); }

void front_preset_words(const struct front_settings *f, struct buf *out)
{
    for (int i = 0; i < SETTING_COUNT; i++) {
        const struct setting_spec *s = &setting_specs[i];
        if (f->conf.origin[i] == CONF_PRESET) {
            buf_printf(out, "%s%s=%s", out->len ? ", " : "", s->name, s->platform);
        }
    }
}

void front_tell_preset(const struct front_settings *f, const char *verb)
{
    AUTO_BUF struct buf text = BUF_INIT(4096);
    front_preset_words(f, &text);
    if (text.len) {
        fprintf(stderr, "isle %s: SANDBOX_PRESET=platform: %s\n", verb, buf_text(&text));
    }
}

void front_idle_words(const struct front_settings *f, struct buf *out)
{
    for (int i = 0; i < SETTING_COUNT; i++) {
        if (conf_is_idle(&f->conf, (enum setting)i)) {
            buf_printf(out, "%s%s", out->len ? ", " : "", setting_specs[i].name);
        }
    }
}

const char *front_noexec_advice(const struct front_settings *f)
{
    return host_stays_noexec(f->conf.text[SETTING_WORKSPACE_ROOT])
               ? "mount it with exec, or set SANDBOX_WORKSPACE_ROOT to a folder elsewhere"
               : NULL;
}

int front_choose_launcher(const struct front_settings *f, const char *option,
                          enum seat_launcher *ret, struct front_error *ret_error)
{
    bool isolated = conf_bool(&f->conf, SETTING_FILESYSTEM_ISOLATION_ENABLED);
    const char *none = seat_launcher_names[SEAT_NONE];
    if (!isolated && option && strcmp(option, none) != 0) {
        snprintf(
            ret_error->text, sizeof ret_error->text,
            "--launcher %.100s: there are no sandboxes, as SANDBOX_FILESYSTEM_ISOLATION_ENABLED is "
            "false; unset it",
            option);
        return -EINVAL;
    }
    if (!isolated) {
        *ret = SEAT_NONE;
        return 0;
    }
    if (!option) {
        const char *binary = f->conf.text[SETTING_FILESYSTEM_ISOLATION_BINARY];
        *ret = *binary && strcmp(binary, "native") != 0 ? SEAT_BWRAP : SEAT_NATIVE;
        return 0;
    }
    for (int i = 0; i < SEAT_NONE; i++) {
        if (strcmp(option, seat_launcher_names[i]) == 0) {
            *ret = (enum seat_launcher)i;
            return 0;
        }
    }
    snprintf(ret_error->text, sizeof ret_error->text,
             "--launcher: %.100s is none; there are native and bwrap", option);
    return -EINVAL;
}

int front_find_bwrap(const struct front_settings *f, struct bwrap_found *ret,
                     struct front_error *ret_error)
{
    const char *root = f->conf.text[SETTING_RUNTIME_ROOT];
    int e = bwrap_find(f->conf.text[SETTING_FILESYSTEM_ISOLATION_BINARY], root, ret,
                       ret_error->text, sizeof ret_error->text);
    if (!e) {
        bwrap_ask_version(ret, root);
    }
    return e;
}

// What a caller takes from itself for good is taken from jobs as well: main() has raised the stack
// limit as far as it could. With less than this, interpreters end by SIGSEGV.
static int check_stack(struct front_error *ret_error)
{
    const rlim_t least = 1 << 20;
    struct rlimit l;
    if (getrlimit(RLIMIT_STACK, &l) || l.rlim_cur >= least) {
        return 0;
    }
    snprintf(ret_error->text, sizeof ret_error->text,
             "the stack limit is %llu KiB and cannot be raised (ulimit -Hs); jobs need 1024 KiB: "
             "start isle from a shell that has not lowered it",
             (unsigned long long)l.rlim_cur / 1024);
    return -ENOMEM;
}

int front_check_places(const struct cli_places *places, struct front_error *ret_error)
{
    if (places->found) {
        return check_stack(ret_error);
    }
    if (access("/proc/self/exe", F_OK) != 0) { // programs beside isle are found by it
        snprintf(ret_error->text, sizeof ret_error->text,
                 "/proc is not mounted here, and isle needs it: mount -t proc proc /proc");
    } else {
        snprintf(ret_error->text, sizeof ret_error->text,
                 "isle-launcher is missing (last looked in %.300s); install isle as a whole",
                 places->libexec_dir);
    }
    return -ENOENT;
}

struct start_config front_start_config(const struct front_settings *f,
                                       const struct cli_places *places)
{
    const struct conf *c = &f->conf;
    return (struct start_config){
        .data_dir = c->text[SETTING_WORKSPACE_ROOT],
        .run_dir = c->text[SETTING_RUN_DIR],
        .runtime_root = c->text[SETTING_RUNTIME_ROOT],
        .guest_dir = places->guest_dir,
        .cache_dir = *c->text[SETTING_PACKAGES_ROOT] ? c->text[SETTING_PACKAGES_ROOT] : NULL,
        .libexec_dir = places->libexec_dir,
        .hostname = c->text[SETTING_HOSTNAME],
        .python = f->python,
        .calls = f->calls.number,
        .n_calls = f->calls.n,
        .memory_bytes = (uint64_t)c->number[SETTING_INSTANCE_MEMORY_MB] << 20,
        .pids = (uint64_t)c->number[SETTING_INSTANCE_PIDS],
        .test_refuse_rungs = (uint32_t)c->number[SETTING_TEST_REFUSE_RUNGS],
        .allow_host_network = (uint32_t)c->number[SETTING_NETWORK_ALLOW_HOST],
        .plain = !conf_bool(c, SETTING_FILESYSTEM_ISOLATION_ENABLED) ? START_PLAIN_ALL
                 : conf_bool(c, SETTING_LEGACY_FALLBACK_ENABLED)     ? START_PLAIN_ASKED
                                                                     : START_PLAIN_NEVER,
        .require_user_namespace = (uint32_t)c->number[SETTING_REQUIRE_USER_NAMESPACE],
        .data_dir_must_exist = conf_given(c, SETTING_WORKSPACE_ROOT),
    };
}

void front_explain(const struct start_error *why, struct front_error *ret)
{
    struct refusal refusal;
    char line[400];
    // a job's own namespace is made by ids without a right; only the launcher's start depends on it
    refusal_find(strcmp(why->step, "ready") == 0, &refusal);
    snprintf(ret->text, sizeof ret->text, "%s: %s; %s", why->step, why->text,
             refusal.cause == REFUSAL_NONE ? "isle doctor says more"
                                           : refusal_line(&refusal, line, sizeof line));
}
