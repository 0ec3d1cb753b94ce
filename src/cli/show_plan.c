#include "cli/show_plan.h"

#include "base/fd.h"
#include "cli/cli.h"
#include "codec/json_out.h"
#include "codec/utf8.h"
#include "plan/bwrap.h"
#include "plan/steps.h"
#include "runtime/runtime.h"
#include "start/steps.h"

#include <fcntl.h>
#include <string.h>

// What a job finds, which launcher/template.c and phase_one.c make (a test compares). "%s" is the
// setting's value.
static const struct mount_row {
    const char *target, *what;
    enum setting source; // SETTING_COUNT: none
    const char *plain;   // without a sandbox; NULL: the same
} mounts[] = {
    {"/", "tmpfs, read-only", SETTING_COUNT, NULL},
    {"/usr", "read-only, from %s; bin, sbin, lib, lib64 lead into it", SETTING_RUNTIME_ROOT, NULL},
    {"/usr/lib/isle", "read-only: the wrappers of snippets", SETTING_COUNT, NULL},
    {"/etc", "made up, read-only; host name %s; certificates and fonts of the runtime root",
     SETTING_HOSTNAME, NULL},
    {"/dev", "null, zero, full, random, urandom; no others", SETTING_COUNT, NULL},
    {"/proc", "of the job's own pid namespace, read-only, parts of it covered", SETTING_COUNT,
     "of isle's pid namespace, others' processes hidden, read-only, parts of it covered"},
    {"/dev/shm", "tmpfs, 64 MB, charged to the job", SETTING_COUNT, NULL},
    {"/tmp", "tmpfs of the job's own", SETTING_COUNT, NULL},
    {"/workspace", "the job's workspace, read-write", SETTING_COUNT, NULL},
};

static const char *const kind_names[] = {
    [JOB_SNIPPET] = "snippet", [JOB_SCRIPT] = "script", [JOB_COMMAND] = "command"};

static const char *const where_names[] = {[PLAN_IN_LAUNCHER] = "launcher",
                                          [PLAN_IN_PID1] = "pid 1",
                                          [PLAN_IN_PID2] = "pid 2",
                                          [PLAN_IN_BWRAP] = "bwrap"};

enum { FOLDERS_OF_A_WORKSPACE = 4 }; // input, output, tmp, logs

struct plan {
    const struct job *job;
    const struct conf *conf;
    const struct bwrap_found *bwrap; // NULL: isle's own launcher
    const struct plan_step_info *steps;
    size_t n_steps;
    struct lowered low;
    struct runtime_start start;
};

static const char *workspace_kind(const struct plan *p)
{
    return p->low.start.workspace_kind == PLAN_WORKSPACE_TMPFS ? "tmpfs" : "folder";
}

static const char *filter_name(const struct plan *p)
{
    return p->low.start.filter == PLAN_FILTER_TMPFS ? "tmpfs (fallocate allowed)"
                                                    : "folder (fallocate refused)";
}

static void mount_text(const struct plan *p, const struct mount_row *m, char *text, size_t size)
{
    const char *mark = strstr(m->what, "%s");
    if (!mark || m->source == SETTING_COUNT) {
        snprintf(text, size, "%s", p->low.start.plain && m->plain ? m->plain : m->what);
        return;
    }
    snprintf(text, size, "%.*s%s%s", (int)(mark - m->what), m->what, p->conf->text[m->source],
             mark + 2);
}

static void limit_text(const struct plan *p, enum limit which, char *text, size_t size)
{
    int64_t value = p->job->limits.value[which];
    if (limit_specs[which].optional && value == 0) {
        snprintf(text, size, "none");
    } else {
        limit_format(which, value, text, size);
    }
}

// ---- Bubblewrap

static int words_of(const struct plan *p, char *ret, size_t size)
{
    return bwrap_words(p->bwrap, p->conf->text[SETTING_HOSTNAME], (uint32_t)p->job->n_package_sets,
                       p->job->network == JOB_NETWORK_HOST, ret, size);
}

// One row as it is written; rows that stand for several by what they cover.
static const char *bwrap_option(const struct bwrap_row *row, char *text, size_t size)
{
    size_t len = 0;
    text[0] = '\0';
    for (size_t i = 0; i < ARRAY_LEN(row->words) && row->words[i] && len < size; i++) {
        len += (size_t)snprintf(text + len, size - len, "%s%s", i ? " " : "", row->words[i]);
    }
    if (text[0] == '%') {
        snprintf(text, size, "--ro-bind ... %s",
                 row->words[0][1] == 'c' ? "/proc/*" : "/packages/*");
    }
    return text;
}

// ---- For people

static void print_words(FILE *out, const char *title, const char *const *words)
{
    fprintf(out, "\n%s\n", title);
    for (size_t i = 0; words[i]; i++) {
        AUTO_BUF struct buf word = BUF_INIT(1 << 20);
        utf8_json_string(&word, words[i], strlen(words[i])); // a tenant's bytes on a terminal
        fprintf(out, "  %.*s\n", word.len >= 2 ? (int)word.len - 2 : 0, buf_text(&word) + 1);
    }
}

static void print_limits(FILE *out, const struct plan *p)
{
    fputs("Limits\n", out);
    for (int i = 0; i < LIMIT_COUNT; i++) {
        char value[32];
        limit_text(p, (enum limit)i, value, sizeof value);
        bool none = strcmp(value, "none") == 0;
        fprintf(out, "  %-16s %10s %-12s set by %-8s %s\n", limit_specs[i].name, value,
                none ? "" : limit_specs[i].unit, limit_source_names[p->job->limits.source[i]],
                limit_specs[i].on_hit);
    }
}

static bool network_is_host(const struct plan *p)
{
    return p->low.start.plain || p->low.start.network == PLAN_NETWORK_HOST;
}

static void print_sizes(FILE *out, const struct plan *p)
{
    const struct plan_limits *l = &p->low.start.limits;
    const char *added = p->conf->text[SETTING_SECCOMP_ALLOW];
    fprintf(out,
            "\nSandbox\n  job              %s%s%s\n  working folder   %s\n"
            "  workspace        %s, %llu bytes, %llu inodes\n"
            "  /tmp             tmpfs, %llu bytes, %u inodes\n"
            "  memory group     %llu bytes%s\n  largest file     %llu bytes\n"
            "  seccomp filter   %s%s%s\n  network          %s\n"
            "  user             %s\n%s",
            kind_names[p->job->kind], p->job->language ? ", " : "",
            p->job->language ? language_names[p->job->language] : "", p->job->cwd,
            workspace_kind(p), (unsigned long long)p->low.workspace_bytes,
            (unsigned long long)p->low.workspace_inodes, (unsigned long long)l->tmp_bytes,
            l->tmp_inodes, (unsigned long long)l->memory_bytes,
            p->low.start.workspace_kind == PLAN_WORKSPACE_TMPFS ? " (workspace included)" : "",
            (unsigned long long)l->file_bytes, filter_name(p),
            *added ? ", and SANDBOX_SECCOMP_ALLOW adds " : "", added,
            network_is_host(p) ? "host: this host's" : "none: loopback only",
            p->low.start.plain ? "its workspace's; no namespace but one of mounts: not isolated"
                               : "1000, in a user namespace of its own",
            conf_bool(p->conf, SETTING_LEGACY_FALLBACK_ENABLED)
                ? "  fallback         without a sandbox, when making it fails\n"
                : "");
}

static void print_mounts(FILE *out, const struct plan *p)
{
    fputs("\nMounts\n", out);
    for (size_t i = 0; i < ARRAY_LEN(mounts); i++) {
        char text[4300];
        mount_text(p, &mounts[i], text, sizeof text);
        fprintf(out, "  %-16s %s\n", mounts[i].target, text);
    }
}

static void print_sets(FILE *out, const struct plan *p)
{
    for (size_t i = 0; i < p->job->n_package_sets; i++) {
        fprintf(out, "  /packages/%zu      read-only: package set %s\n", i,
                p->job->package_sets[i]);
    }
}

// Whose start it would be: steps of others are not shown.
static uint32_t who_starts(void)
{
    struct start_mode mode;
    AUTO_CLOSE int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    start_mode_find(root, &mode);
    return 1U << mode.user;
}

static void print_bwrap(FILE *out, const struct plan *p)
{
    char words[BWRAP_ARGUMENTS_MAX];
    int n = words_of(p, words, sizeof words);
    fprintf(out, "\nBubblewrap\n  %s, version %s\n  ", p->bwrap->path, p->bwrap->version_text);
    for (size_t i = 0; bwrap_command_line[i]; i++) {
        fprintf(out, "%s%s", i ? " " : "", bwrap_command_line[i]);
    }
    fputs("\n  with as descriptor 6:\n ", out);
    for (int i = 0; i < n; i += (int)strlen(words + i) + 1) {
        fprintf(out, " %s", words[i] ? words + i : "''");
    }
    fputs("\n  other than documented by the platform:\n", out);
    for (size_t i = 0; i < bwrap_n_rows; i++) {
        char option[96];
        if (bwrap_rows[i].why) {
            fprintf(out, "    %-38s %s%s%s%s\n",
                    bwrap_option(&bwrap_rows[i], option, sizeof option),
                    bwrap_rows[i].instead[0] ? "for " : "", bwrap_rows[i].instead,
                    bwrap_rows[i].instead[0] ? ": " : "", bwrap_rows[i].why);
        }
    }
}

static void print_steps(FILE *out, const struct plan *p)
{
    const uint32_t who = who_starts();
    fputs("\nStart, once\n", out);
    for (size_t i = 0; i < start_n_steps; i++) {
        if (!(start_steps[i].who & who)) {
            continue;
        }
        fprintf(out, "  %-22s %-9s %s\n", start_steps[i].name,
                start_where_names[start_steps[i].where], start_steps[i].why);
    }
    for (int phase = PLAN_PHASE_ONE; phase <= PLAN_PHASE_TWO; phase++) {
        fprintf(out, "\nLaunch, phase %s\n",
                phase == PLAN_PHASE_ONE ? "one: before the job is known" : "two: with the job");
        for (size_t i = 0; i < p->n_steps; i++) {
            if ((int)p->steps[i].phase == phase) {
                fprintf(out, "  %-22s %-9s %s\n", p->steps[i].name, where_names[p->steps[i].where],
                        p->steps[i].why);
            }
        }
    }
}

static int print_text(FILE *out, const struct plan *p)
{
    print_limits(out, p);
    print_sizes(out, p);
    print_mounts(out, p);
    print_sets(out, p);
    print_words(out, "Command", p->start.argv);
    print_words(out, "Environment", p->start.env);
    if (p->bwrap) {
        print_bwrap(out, p);
    }
    print_steps(out, p);
    return 0;
}

// ---- For programs

static void put_limits(struct buf *b, const struct plan *p)
{
    json_begin(b, "limits", '[');
    for (int i = 0; i < LIMIT_COUNT; i++) {
        char value[32];
        limit_text(p, (enum limit)i, value, sizeof value);
        json_begin(b, NULL, '{');
        json_put_text(b, "name", limit_specs[i].name);
        json_put_json(b, "value", strcmp(value, "none") == 0 ? NULL : value);
        json_put_text(b, "unit", limit_specs[i].unit);
        json_put_text(b, "set_by", limit_source_names[p->job->limits.source[i]]);
        json_put_text(b, "on_hit", limit_specs[i].on_hit);
        json_end(b, '}');
    }
    json_end(b, ']');
}

static void put_sandbox(struct buf *b, const struct plan *p)
{
    const struct plan_limits *l = &p->low.start.limits;
    json_begin(b, "sandbox", '{');
    json_put_text(b, "job", kind_names[p->job->kind]);
    json_put_text(b, "language", language_names[p->job->language]);
    json_put_text(b, "cwd", p->job->cwd);
    json_put_text(b, "workspace", workspace_kind(p));
    json_put_int(b, "workspace_bytes", (int64_t)p->low.workspace_bytes);
    json_put_int(b, "workspace_inodes", (int64_t)p->low.workspace_inodes);
    json_put_int(b, "tmp_bytes", (int64_t)l->tmp_bytes);
    json_put_int(b, "tmp_inodes", (int64_t)l->tmp_inodes);
    json_put_int(b, "memory_bytes", (int64_t)l->memory_bytes);
    json_put_int(b, "file_bytes", (int64_t)l->file_bytes);
    json_put_text(b, "seccomp", p->low.start.filter == PLAN_FILTER_TMPFS ? "tmpfs" : "folder");
    json_put_text(b, "seccomp_allow", p->conf->text[SETTING_SECCOMP_ALLOW]);
    json_put_text(b, "network", network_is_host(p) ? "host" : "none");
    json_put_bool(b, "isolated", !p->low.start.plain);
    json_put_bool(b, "fallback", conf_bool(p->conf, SETTING_LEGACY_FALLBACK_ENABLED));
    json_end(b, '}');
}

static void put_mount(struct buf *b, const char *target, const char *what)
{
    json_begin(b, NULL, '{');
    json_put_text(b, "target", target);
    json_put_text(b, "what", what);
    json_end(b, '}');
}

static void put_mounts(struct buf *b, const struct plan *p)
{
    char text[4300], target[32];
    json_begin(b, "mounts", '[');
    for (size_t i = 0; i < ARRAY_LEN(mounts); i++) {
        mount_text(p, &mounts[i], text, sizeof text);
        put_mount(b, mounts[i].target, text);
    }
    for (size_t i = 0; i < p->job->n_package_sets; i++) {
        snprintf(target, sizeof target, "/packages/%zu", i);
        snprintf(text, sizeof text, "read-only: package set %s", p->job->package_sets[i]);
        put_mount(b, target, text);
    }
    json_end(b, ']');
}

static void put_bwrap(struct buf *b, const struct plan *p)
{
    char words[BWRAP_ARGUMENTS_MAX];
    int n = words_of(p, words, sizeof words);
    json_begin(b, "bubblewrap", '{');
    json_put_text(b, "path", p->bwrap->path);
    json_put_text(b, "version", p->bwrap->version_text);
    json_put_texts(b, "line", bwrap_command_line);
    json_begin(b, "arguments", '[');
    for (int i = 0; i < n; i += (int)strlen(words + i) + 1) {
        json_put_text(b, NULL, words + i);
    }
    json_end(b, ']');
    json_begin(b, "differences", '[');
    for (size_t i = 0; i < bwrap_n_rows; i++) {
        char option[96];
        if (bwrap_rows[i].why) {
            json_begin(b, NULL, '{');
            json_put_text(b, "option", bwrap_option(&bwrap_rows[i], option, sizeof option));
            json_put_text(b, "instead_of", bwrap_rows[i].instead);
            json_put_text(b, "why", bwrap_rows[i].why);
            json_end(b, '}');
        }
    }
    json_end(b, ']');
    json_end(b, '}');
}

static void put_steps(struct buf *b, const struct plan *p)
{
    const uint32_t who = who_starts();
    json_begin(b, "start", '[');
    for (size_t i = 0; i < start_n_steps; i++) {
        if (start_steps[i].who & who) {
            json_begin(b, NULL, '{');
            json_put_text(b, "name", start_steps[i].name);
            json_put_text(b, "where", start_where_names[start_steps[i].where]);
            json_put_text(b, "why", start_steps[i].why);
            json_end(b, '}');
        }
    }
    json_end(b, ']');
    json_begin(b, "launch", '[');
    for (size_t i = 0; i < p->n_steps; i++) {
        json_begin(b, NULL, '{');
        json_put_text(b, "name", p->steps[i].name);
        json_put_int(b, "phase", (int64_t)p->steps[i].phase);
        json_put_text(b, "where", where_names[p->steps[i].where]);
        json_put_text(b, "why", p->steps[i].why);
        json_end(b, '}');
    }
    json_end(b, ']');
}

static int print_json(FILE *out, const struct plan *p)
{
    AUTO_BUF struct buf b = BUF_INIT(4 << 20);
    json_begin(&b, NULL, '{');
    put_limits(&b, p);
    put_sandbox(&b, p);
    put_mounts(&b, p);
    json_put_texts(&b, "command", p->start.argv);
    json_put_texts(&b, "environment", p->start.env);
    if (p->bwrap) {
        put_bwrap(&b, p);
    }
    put_steps(&b, p);
    buf_puts(&b, "}\n");
    return b.error || fwrite(b.data, 1, b.len, out) != b.len ? CLI_REFUSED : 0;
}

int show_plan_print(const struct run_job *j, const struct front_settings *settings,
                    const struct bwrap_found *bwrap, bool json, FILE *out)
{
    struct plan p = {.job = &j->job,
                     .conf = &settings->conf,
                     .bwrap = bwrap,
                     .steps = bwrap ? plan_bwrap_steps : plan_steps,
                     .n_steps = bwrap ? (size_t)PLAN_N_BWRAP_STEPS : (size_t)PLAN_N_STEPS};
    struct lower_staged staged = {j->staged_bytes, j->job.n_files + FOLDERS_OF_A_WORKSPACE};
    lower_job(&j->job, &settings->host, &staged, &p.low);
    if (p.low.start.plain) {
        p.steps = plan_plain_steps;
        p.n_steps = PLAN_N_PLAIN_STEPS;
    }
    if (runtime_begin(&p.start, &j->job, "UTC", settings->python)) {
        return CLI_REFUSED;
    }
    int status = json ? print_json(out, &p) : print_text(out, &p);
    runtime_done(&p.start);
    return status;
}
