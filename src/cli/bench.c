// `isle bench`: the same small programs bare, in Bubblewrap and in isle, interleaved in one run.
// The front times what it starts itself; jobs of a resident service are timed there, and ordered
// over the front's socket.
#include "cli/bench.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/text.h"
#include "cli/front.h"
#include "cli/signals.h"
#include "cli/verb.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum {
    WARM_UP = 2,  // rounds that do not count
    BLOCKS = 4,   // of jobs with many in flight, so that these are interleaved too
    PAUSE_MS = 3, // between samples: what one leaves to the kernel is not the next one's cost
    CANCELLED = 130,
};

struct options {
    const char *rounds, *jobs, *in_flight, *launcher;
    struct option_list only;
    struct front_given given;
    bool detail, json, help;
};

#define AT(field) offsetof(struct options, field)
static const struct option option_rows[] = {
    {"--rounds", NULL, "N", OPTION_TEXT, AT(rounds), "samples of each row, 3 to 10000; default 40",
     NULL},
    {"--jobs", NULL, "N", OPTION_TEXT, AT(jobs),
     "jobs of each row for jobs/s, up to 100000; 0: not measured; default 60", NULL},
    {"--in-flight", NULL, "N", OPTION_TEXT, AT(in_flight),
     "how many of them at once, 1 to 64; default two for each CPU", NULL},
    {"--only", NULL, "NAME", OPTION_LIST, AT(only),
     "only these rows (bare, bwrap, isle, run), only these programs (true, python, node)",
     "bare bwrap isle run true python node"},
    {"--launcher", NULL, "NAME", OPTION_TEXT, AT(launcher),
     "who makes isle's sandboxes: native or bwrap; else as the settings say", "native bwrap"},
    {"--detail", NULL, NULL, OPTION_FLAG, AT(detail),
     "also the launcher alone, a sandbox that waits, and where the time of a launch goes", NULL},
    {"--json", NULL, NULL, OPTION_FLAG, AT(json), "one line of JSON", NULL},
    FRONT_OPTIONS(struct options, given),
    VERB_HELP(struct options, help),
};

struct bench {
    struct options options;
    struct front_settings settings;
    struct bench_report report;
    struct bench_outside outside;
    struct bwrap_found wrapper; // with SEAT_BWRAP: makes isle's sandboxes
    struct front front;
    bool kind[BENCH_N_KINDS], program[BENCH_N_PROGRAMS]; // asked for, and there
    int signals;
    bool cancelled;
    bool shows_progress;
    char bwrap[PATH_MAX], isle[PATH_MAX], workspace[64];
};

#define complain(...) verb_complain("bench", __VA_ARGS__)

// ---- What was asked for

static int number_option(const char *name, const char *text, long min, long max, int *value)
{
    if (!text) {
        return 0;
    }
    char *end;
    errno = 0;
    long n = strtol(text, &end, 10);
    if (*end || end == text || errno || n < min || n > max) {
        return complain("%s: %.60s is not a whole number from %ld to %ld", name, text, min, max);
    }
    *value = (int)n;
    return 0;
}

static bool mark_word(const char *word, const char *const *names, int n, bool *marks)
{
    for (int i = 0; i < n; i++) {
        if (strcmp(word, names[i]) == 0) {
            marks[i] = true;
            return true;
        }
    }
    return false;
}

// Words of --only: kinds and programs; of whichever none is named, all are meant.
static int choose_rows(struct bench *b)
{
    bool *kind = b->kind, *program = b->program;
    bool any_kind = false, any_program = false;
    for (size_t i = 0; i < b->options.only.n; i++) {
        const char *word = b->options.only.words[i];
        bool is_kind = mark_word(word, bench_kind_names, BENCH_LAUNCHER, kind);
        if (!is_kind && !mark_word(word, bench_program_names, BENCH_N_PROGRAMS, program)) {
            return complain("--only: %.60s is none of bare, bwrap, isle, run, true, python, node",
                            word);
        }
        any_kind |= is_kind;
        any_program |= !is_kind;
    }
    for (int k = 0; k < BENCH_N_KINDS; k++) {
        kind[k] |= k < BENCH_LAUNCHER ? !any_kind : b->options.detail;
    }
    for (int p = 0; p < BENCH_N_PROGRAMS; p++) {
        program[p] |= !any_program;
    }
    return 0;
}

static int read_options(struct bench *b)
{
    struct bench_report *r = &b->report;
    unsigned cpus = b->settings.host.cpus_percent / 100;
    r->cpus = cpus ? cpus : 1;
    r->rounds = 40;
    r->jobs = 60;
    r->in_flight = 2 * r->cpus > BENCH_MAX_IN_FLIGHT ? BENCH_MAX_IN_FLIGHT : (int)(2 * r->cpus);
    r->detail = b->options.detail;
    r->pss_kb = PLAN_UNKNOWN;
    int e = number_option("--rounds", b->options.rounds, 3, 10000, &r->rounds);
    e = e ? e : number_option("--jobs", b->options.jobs, 0, 100000, &r->jobs);
    struct front_error why;
    if (!e && (front_choose_launcher(&b->settings, b->options.launcher, &r->launcher, &why) ||
               (r->launcher == SEAT_BWRAP && front_find_bwrap(&b->settings, &b->wrapper, &why)))) {
        return complain("%s", why.text);
    }
    if (!e && r->launcher == SEAT_NONE) {
        return complain(
            "there are no sandboxes to measure: SANDBOX_FILESYSTEM_ISOLATION_ENABLED is "
            "false; unset it");
    }
    if (!e && r->launcher != SEAT_NATIVE && r->detail) {
        return complain("--detail looks into isle's own launcher: give --launcher native with it");
    }
    e = e ? e
          : number_option("--in-flight", b->options.in_flight, 1, BENCH_MAX_IN_FLIGHT,
                          &r->in_flight);
    return e ? e : choose_rows(b);
}

// Is it measured at all?
static bool wanted(const struct bench *b, int kind, int program)
{
    return b->kind[kind] && b->program[program] && (kind < BENCH_LAUNCHER || program == BENCH_TRUE);
}

// ---- One measurement

static bool stopped(struct bench *b)
{
    struct signalfd_siginfo info;
    b->cancelled |= b->signals >= 0 && read(b->signals, &info, sizeof info) == sizeof info;
    return b->cancelled;
}

static int order(struct bench *b, const struct bench_order *o, uint64_t *ret_ns,
                 uint64_t *ret_marks_ns)
{
    struct bench_answer a;
    int fd = b->front.service;
    if (fd_write_all(fd, o, sizeof *o) || fd_read_full(fd, &a, sizeof a) != (ssize_t)sizeof a) {
        return complain("the service of isle is gone; its own message is above, or see dmesg");
    }
    if (a.error || a.failed) {
        return complain("isle, %s: %s", bench_program_names[o->program],
                        a.error ? strerrordesc_np(-a.error) : a.text);
    }
    b->report.downgrades = a.downgrades;
    *ret_ns = a.ns;
    if (ret_marks_ns) {
        memcpy(ret_marks_ns, a.marks_ns, sizeof a.marks_ns);
    }
    return 0;
}

static int outside(struct bench *b, const struct bench_order *o, uint64_t *ret_ns)
{
    int status = 0;
    enum bench_kind kind = (enum bench_kind)o->kind;
    int e = bench_time(&b->outside, kind, (enum bench_program)o->program, o->count, o->in_flight,
                       ret_ns, &status);
    if (e == -EIO) {
        return complain("%s, %s ended with %s %d; try it alone to see why", bench_kind_names[kind],
                        bench_program_names[o->program], WIFSIGNALED(status) ? "signal" : "status",
                        WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    }
    return e ? complain("%s: %s", bench_kind_names[kind], strerrordesc_np(-e)) : 0;
}

static int measure(struct bench *b, const struct bench_order *o, uint64_t *ret_ns,
                   uint64_t *ret_marks_ns)
{
    clock_pause_ns(PAUSE_MS * NS_PER_MS);
    return o->kind == BENCH_BARE || o->kind == BENCH_BWRAP || o->kind == BENCH_RUN
               ? outside(b, o, ret_ns)
               : order(b, o, ret_ns, ret_marks_ns);
}

// ---- All of them

static void progress(const struct bench *b, const char *what, int n, int of)
{
    if (b->shows_progress) {
        fprintf(stderr, "\r\033[K%s %d of %d", what, n, of);
    }
}

static int sample(struct bench *b, int kind, int program, int round)
{
    struct bench_row *row = &b->report.row[kind][program];
    struct bench_order o = {(uint32_t)kind, (uint32_t)program, 1, 1};
    uint64_t ns, marks_ns[PLAN_N_MARKS];
    int e = measure(b, &o, &ns, marks_ns);
    if (e || round < 0) {
        return e;
    }
    row->ms[row->n++] = (double)ns / 1e6;
    if (kind >= BENCH_LAUNCHER) {
        for (int i = 0; i < PLAN_N_MARKS; i++) {
            b->report.marks_us[kind - BENCH_LAUNCHER][i][round] = (double)marks_ns[i] / 1e3;
        }
        b->report.n_marks = round + 1;
    }
    return 0;
}

// Each round measures every row once, and begins with another kind than the one before.
static int run_rounds(struct bench *b)
{
    for (int round = -WARM_UP; round < b->report.rounds; round++) {
        progress(b, "round", round < 0 ? 0 : round + 1, b->report.rounds);
        for (int i = 0; i < BENCH_N_KINDS; i++) {
            int kind = (i + round + WARM_UP) % BENCH_N_KINDS;
            for (int program = 0; program < BENCH_N_PROGRAMS; program++) {
                if (stopped(b)) {
                    return CANCELLED;
                }
                int e = wanted(b, kind, program) ? sample(b, kind, program, round) : 0;
                if (e) {
                    return stopped(b) ? CANCELLED : e;
                }
            }
        }
    }
    return 0;
}

// `count` jobs of one row with many in flight; in parts, between which a Ctrl-C is seen.
static int run_many(struct bench *b, int kind, int program, int count, double *seconds)
{
    int in_flight = b->report.in_flight, most = 4 * in_flight > 64 ? 4 * in_flight : 64;
    for (int left = count, n; left > 0; left -= n) {
        uint64_t ns = 0;
        n = left < most ? left : most;
        struct bench_order o = {(uint32_t)kind, (uint32_t)program, (uint32_t)n,
                                (uint32_t)in_flight};
        int e = stopped(b) ? CANCELLED : measure(b, &o, &ns, NULL);
        if (e) {
            return stopped(b) ? CANCELLED : e;
        }
        *seconds += (double)ns / 1e9;
    }
    return 0;
}

static int run_block(struct bench *b, int block, double seconds[][BENCH_N_PROGRAMS])
{
    int jobs = b->report.jobs, count = jobs * (block + 1) / BLOCKS - jobs * block / BLOCKS;
    for (int i = 0; i < BENCH_LAUNCHER; i++) {
        int kind = (i + block) % BENCH_LAUNCHER;
        for (int program = 0; program < BENCH_N_PROGRAMS; program++) {
            int e = wanted(b, kind, program)
                        ? run_many(b, kind, program, count, &seconds[kind][program])
                        : 0;
            if (e) {
                return e;
            }
        }
    }
    return 0;
}

static int run_blocks(struct bench *b)
{
    double seconds[BENCH_N_KINDS][BENCH_N_PROGRAMS] = {};
    for (int block = 0; block < BLOCKS && b->report.jobs; block++) {
        progress(b, "many at once,", block + 1, BLOCKS);
        int e = run_block(b, block, seconds);
        if (e) {
            return e;
        }
    }
    for (int k = 0; k < BENCH_N_KINDS; k++) {
        for (int p = 0; p < BENCH_N_PROGRAMS; p++) {
            double s = seconds[k][p];
            b->report.row[k][p].jobs_s = s > 0 ? b->report.jobs / s : 0;
        }
    }
    return 0;
}

// ---- Bubblewrap, which need not be there

static bool find_in_path(const char *name, char ret[PATH_MAX])
{
    const char *path = getenv("PATH");
    path = path && *path ? path : "/usr/local/bin:/usr/bin:/bin";
    for (size_t n; *path; path += n + (path[n] == ':')) {
        n = strcspn(path, ":");
        snprintf(ret, PATH_MAX, "%.*s/%s", (int)n, path, name);
        if (n > 0 && fd_is_program(AT_FDCWD, ret)) {
            return true;
        }
    }
    return false;
}

static void read_bwrap_version(struct bench *b)
{
    struct bwrap_found found = {.version_text = "unknown"};
    int n = snprintf(found.path, sizeof found.path, "%s", b->bwrap);
    if (n > 0 && (size_t)n < sizeof found.path) {
        bwrap_ask_version(&found, NULL);
    }
    snprintf(b->report.bwrap, sizeof b->report.bwrap, "bubblewrap %s", found.version_text);
}

// Without it, or where it cannot run, the rest is measured all the same.
static void look_for_bwrap(struct bench *b)
{
    char *missing = b->report.bwrap_missing;
    size_t size = sizeof b->report.bwrap_missing;
    uint64_t ns;
    int status = 0;
    if (!b->kind[BENCH_BWRAP]) {
        return;
    }
    if (!find_in_path("bwrap", b->bwrap)) {
        snprintf(missing, size, "it is not in PATH (Debian: apt install bubblewrap)");
    } else if (bench_time(&b->outside, BENCH_BWRAP, BENCH_TRUE, 1, 1, &ns, &status)) {
        snprintf(missing, size, "it does not run here (wait status %#x), though it is installed",
                 (unsigned)status);
    } else {
        read_bwrap_version(b);
    }
    b->kind[BENCH_BWRAP] = missing[0] == '\0';
    if (missing[0] && b->shows_progress) {
        fprintf(stderr, "without bwrap: %s\n", missing);
    }
}

// ---- Begin and end

static int make_room(struct bench *b)
{
    size_t n = (size_t)b->report.rounds;
    bool ok = true;
    for (int k = 0; k < BENCH_N_KINDS; k++) {
        for (int p = 0; p < BENCH_N_PROGRAMS; p++) {
            b->report.row[k][p].ms = calloc(n, sizeof(double));
            ok &= b->report.row[k][p].ms != NULL;
        }
    }
    for (int i = 0; i < 2 * PLAN_N_MARKS; i++) {
        b->report.marks_us[i % 2][i / 2] = calloc(n, sizeof(double));
        ok &= b->report.marks_us[i % 2][i / 2] != NULL;
    }
    return ok ? 0 : complain("not enough memory for %d rounds", b->report.rounds);
}

static void free_room(struct bench *b)
{
    for (int k = 0; k < BENCH_N_KINDS; k++) {
        for (int p = 0; p < BENCH_N_PROGRAMS; p++) {
            free(b->report.row[k][p].ms);
        }
    }
    for (int i = 0; i < 2 * PLAN_N_MARKS; i++) {
        free(b->report.marks_us[i % 2][i / 2]);
    }
    free(b->options.only.words);
    free(b->options.given.set.words);
    front_settings_done(&b->settings);
}

static int begin_service(struct bench *b, const struct cli_places *places)
{
    struct start_config config = front_start_config(&b->settings, places);
    config.bwrap = b->report.launcher == SEAT_BWRAP ? &b->wrapper : NULL;
    struct start_error why;
    static char word[] = BENCH_SERVICE;
    char *argv[] = {word, NULL};
    char **settings = conf_environment(&b->settings.conf);
    if (!settings) {
        return complain("not enough memory");
    }
    int e = start_front(&config, argv, settings, &b->front, &why);
    conf_environment_free(settings);
    if (e) {
        struct front_error text;
        if (stopped(b)) {
            return CANCELLED;
        }
        front_explain(&why, &text);
        return complain("%s", text.text);
    }
    b->outside.service_pid = b->front.pid;
    b->outside.launcher_pid = b->front.launcher;
    return 0;
}

static uint64_t launcher_pss_kb(pid_t pid)
{
    char path[64], text[4096];
    snprintf(path, sizeof path, "/proc/%d/smaps_rollup", pid);
    const char *line =
        fd_read_at(AT_FDCWD, path, text, sizeof text) > 0 ? strstr(text, "\nPss:") : NULL;
    return line ? strtoull(line + 5, NULL, 10) : PLAN_UNKNOWN;
}

static int measure_all(struct bench *b)
{
    getloadavg(&b->report.load, 1);
    look_for_bwrap(b);
    int e = run_rounds(b);
    e = e ? e : run_blocks(b);
    b->report.pss_kb = launcher_pss_kb(b->front.launcher);
    if (b->shows_progress) {
        fputs("\r\033[K", stderr);
    }
    return e;
}

static int run_bench(struct bench *b, const struct cli_places *places)
{
    struct start_error why;
    sigset_t before;
    int wait_status;
    snprintf(b->workspace, sizeof b->workspace, "/tmp/isle-bench-XXXXXX");
    ssize_t n = readlink("/proc/self/exe", b->isle, sizeof b->isle - 1);
    if (n < 0 || !mkdtemp(b->workspace)) {
        return complain("%s: %m", n < 0 ? "/proc/self/exe" : b->workspace);
    }
    chmod(b->workspace, 0777); // bwrap runs as nobody
    b->outside = (struct bench_outside){.root = b->settings.conf.text[SETTING_RUNTIME_ROOT],
                                        .bwrap = b->bwrap,
                                        .workspace = b->workspace,
                                        .isle = b->isle,
                                        .launcher = b->report.launcher};
    b->signals = signals_hold(&before);
    int e = begin_service(b, places);
    if (!e) {
        e = measure_all(b);
        if (start_finish(&b->front, &wait_status, &why)) {
            e = complain("%s: %s", why.step, why.text);
        }
    }
    rmdir(b->workspace);
    b->signals = fd_close(b->signals);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return e;
}

static int bench_with_options(struct bench *b, const struct option_rest *rest,
                              const struct cli_places *places)
{
    struct front_error why;
    if (rest->n_operands || rest->command) {
        return complain("%.100s: takes no words; see isle bench --help",
                        rest->n_operands ? rest->operands[0] : "--");
    }
    if (front_settings_load(&b->options.given, &b->settings, &why) ||
        front_check_enabled(&b->settings, &why) || front_check_places(places, &why)) {
        return complain("%s", why.text);
    }
    int status = read_options(b);
    status = status ? status : make_room(b);
    status = status ? status : run_bench(b, places);
    if (status == CANCELLED) {
        fputs("isle bench: cancelled\n", stderr);
    } else if (status == 0) {
        bench_tell(&b->report, b->options.json);
        status = verb_end_output("bench");
    }
    return status;
}

static int bench_main(int argc, char **argv, const struct cli_places *places)
{
    (void)argc;
    AUTO_FREE struct bench *b = calloc(1, sizeof *b);
    struct option_rest rest;
    int status = 0;
    if (!b) {
        return complain("not enough memory");
    }
    b->signals = -1;
    b->shows_progress = isatty(STDERR_FILENO);
    if (verb_begin(&verb_bench, argv, &b->options, &rest, &status)) {
        status = bench_with_options(b, &rest, places);
    }
    free_room(b);
    return status;
}

// ---- The row

static const struct verb_form forms[] = {{"[OPTIONS]", NULL}, {NULL, NULL}};

static const struct verb_status statuses[] = {
    {"0", "measured (also without bwrap: that is said)"},
    {"130", "cancelled by Ctrl-C or another signal"},
    {"125", "everything else: refused, isle cannot run here, a job failed"},
    {NULL, NULL},
};

static const char *const examples[] = {
    "isle bench",
    "isle bench --only python --in-flight 16 --jobs 400",
    "isle bench --only isle --only bwrap --only true --rounds 500",
    "isle bench --json --rounds 100 > bench.json",
    NULL,
};

const struct verb verb_bench = {
    .name = "bench",
    .summary = "measure isle beside Bubblewrap and bare interpreters",
    .forms = forms,
    .about = "Times small programs bare, in Bubblewrap and in isle, interleaved in one run.",
    .notes = "Every sample lasts from the request until exit status and result are known.\n"
             "Compare ratios, and only within one run: absolute figures move with the machine.",
    .options = option_rows,
    .n_options = ARRAY_LEN(option_rows),
    .statuses = statuses,
    .examples = examples,
    .run = bench_main,
};
