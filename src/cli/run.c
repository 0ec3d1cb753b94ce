// `isle run`: the front. It keeps the user's own rights, opens what the user named, and stays
// outside; everything with power over jobs happens in the processes that start_front() makes.
#include "base/fd.h"
#include "cli/front.h"
#include "cli/outdir.h"
#include "cli/remote.h"
#include "cli/run_end.h"
#include "cli/run_job.h"
#include "cli/run_options.h"
#include "cli/session.h"
#include "cli/show_plan.h"
#include "cli/signals.h"
#include "model/result.h"
#include "plan/plan.h"
#include "start/bwrap.h"
#include "start/start.h"
#include "workspace/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>

struct run {
    struct run_options options;
    struct front_settings settings;
    struct run_job job;
    struct outdir artifacts;
    enum seat_launcher launcher;
    struct bwrap_found bwrap; // with SEAT_BWRAP
    const struct cli_places *places;
    sigset_t caller_mask;
};

#define complain(...) verb_complain("run", __VA_ARGS__)

// ---- Before anything runs

// Settings and the job, checked. 0 or an exit status.
static int prepare(struct run *r, char **argv)
{
    struct option_error option;
    struct front_error setting;
    struct run_error job;
    if (run_options_parse(argv, &r->options, &option)) {
        return verb_complain_option(&verb_run, &option);
    }
    if (r->options.help || r->options.url || r->options.session) {
        return 0;
    }
    if (front_settings_load(&r->options.given, &r->settings, &setting) ||
        front_check_enabled(&r->settings, &setting)) {
        return complain("%s", setting.text);
    }
    front_tell_preset(&r->settings, "run");
    if (front_choose_launcher(&r->settings, r->options.launcher, &r->launcher, &setting)) {
        return complain("%s", setting.text);
    }
    if (run_job_build(&r->options, &r->settings.host, &r->job, &job)) {
        return complain("%s", job.text);
    }
    return 0;
}

// Many input files are many descriptors; what the shell set as soft limit is often just 1024.
static void raise_descriptor_limit(const struct run *r)
{
    struct rlimit l;
    if (r->options.files.n > 500 && getrlimit(RLIMIT_NOFILE, &l) == 0) {
        l.rlim_cur = l.rlim_max;
        setrlimit(RLIMIT_NOFILE, &l);
    }
}

// ---- The end of a job that has no result of the service's

static struct run_end end_of(const struct run *r)
{
    return (struct run_end){.options = &r->options,
                            .job = &r->job.job,
                            .artifacts = &r->artifacts,
                            .launcher = seat_launcher_names[r->launcher]};
}

static int print_own_result(const struct run *r, enum reason reason, const char *text)
{
    struct run_end end = end_of(r);
    return run_end_own(&end, reason, text);
}

static int print_lost(const struct run *r, int wait_status)
{
    char text[160];
    if (WIFSIGNALED(wait_status)) {
        snprintf(text, sizeof text, "the service was ended by signal %d (SIG%s)",
                 WTERMSIG(wait_status), sigabbrev_np(WTERMSIG(wait_status)));
    } else {
        snprintf(text, sizeof text, "the service ended without a result (status %d)",
                 WEXITSTATUS(wait_status));
    }
    return print_own_result(r, REASON_INTERNAL, text);
}

// ---- The job

static void make_ready(int once, uint32_t uid_base)
{
    folder_make_ready(once, CLI_READY_WORKSPACE, uid_base + PLAN_UID_SERVICE,
                      uid_base + PLAN_UID_WORKSPACE_0);
}

// A small workspace is a tmpfs, which only the launcher can make.
static bool is_on_disk(const struct run *r)
{
    return r->job.job.limits.value[LIMIT_DISK] > r->settings.host.tmpfs_max_mb;
}

static struct start_config start_config_of(const struct run *r)
{
    struct start_config c = front_start_config(&r->settings, r->places);
    if (is_on_disk(r)) {
        c.meanwhile = make_ready;
    }
    if (r->job.job.network == JOB_NETWORK_HOST) {
        c.ahead_network = PLAN_NETWORK_HOST;
    }
    c.bwrap = r->launcher == SEAT_BWRAP ? &r->bwrap : NULL;
    return c;
}

// 0 or an exit status.
static int find_bwrap(struct run *r)
{
    struct front_error why;
    if (r->launcher != SEAT_BWRAP) {
        return 0;
    }
    return front_find_bwrap(&r->settings, &r->bwrap, &why)
               ? print_own_result(r, REASON_ISOLATION_UNAVAILABLE, why.text)
               : 0;
}

static int end_status(struct run *r, struct session *s, enum session_end how, int wait_status)
{
    struct run_end end = end_of(r);
    end.noexec = is_on_disk(r) ? front_noexec_advice(&r->settings) : NULL;
    end.line_open = s->line_open;
    end.out_error = s->out_error;
    end.err_error = s->err_error;
    if (how == SESSION_CANCELLED || (how == SESSION_LOST && s->cancelled && !s->out_error)) {
        return run_end_own(&end, REASON_CANCELLED, "cancelled; the job was killed");
    }
    int status = how == SESSION_FINAL ? run_end_print(&end, &s->final) : -EBADMSG;
    return run_end_status(&end, status < 0 ? print_lost(r, wait_status) : status);
}

static int talk(struct run *r, struct front *front, int signals)
{
    struct start_error why;
    enum session_end end;
    bool live = !r->options.json;
    struct session s = {.service = front->service,
                        .signals = signals,
                        .out = live ? STDOUT_FILENO : -1,
                        .err = live ? STDERR_FILENO : -1,
                        .artifacts = &r->artifacts};
    int wait_status = 0;
    int e = session_run(&s, &r->job, &end);
    if (e || end != SESSION_FINAL) { // nothing more is expected of it
        syscall(SYS_pidfd_send_signal, front->pidfd, SIGKILL, NULL, 0);
    }
    int left = start_finish(front, &wait_status, &why);
    sigprocmask(SIG_SETMASK, &r->caller_mask, NULL);
    outdir_done(&r->artifacts);
    int status = e ? print_own_result(r, REASON_INTERNAL, strerrordesc_np(-e))
                   : end_status(r, &s, end, wait_status);
    session_done(&s);
    if (left) {
        fprintf(stderr, "isle: %s: %s\n", why.step, why.text);
    }
    return status;
}

static int start_and_talk(struct run *r, char **settings)
{
    struct start_config config = start_config_of(r);
    struct start_error why;
    struct front front;
    char *argv[] = {NULL};
    AUTO_CLOSE int signals = signals_hold(&r->caller_mask);
    int e = start_front(&config, argv, settings, &front, &why);
    if (!e) {
        return talk(r, &front, signals);
    }
    struct signalfd_siginfo info;
    if (signals >= 0 && read(signals, &info, sizeof info) == sizeof info) {
        return print_own_result(r, REASON_CANCELLED, "cancelled before the job began");
    }
    struct front_error text;
    front_explain(&why, &text);
    if (r->options.json) {
        print_own_result(r, REASON_ISOLATION_UNAVAILABLE, text.text);
    }
    return complain("%s", text.text);
}

static int run_job(struct run *r)
{
    const char *folder = r->options.output_dir;
    struct front_error why;
    if (front_check_places(r->places, &why)) {
        return complain("%s", why.text);
    }
    int e = outdir_open(&r->artifacts, folder, &r->job.job);
    if (e) {
        return complain("--output-dir: %.300s: %s%s", folder, strerrordesc_np(-e),
                        e == -ENOENT ? "; only its last part is made" : "");
    }
    int status = find_bwrap(r);
    if (status) {
        return status;
    }
    if (r->launcher == SEAT_NONE) {
        fputs("isle: warning: this job is not isolated "
              "(SANDBOX_FILESYSTEM_ISOLATION_ENABLED=false)\n",
              stderr);
    }
    char **settings = conf_environment(&r->settings.conf);
    status = settings ? start_and_talk(r, settings) : complain("not enough memory");
    conf_environment_free(settings);
    return status;
}

static int run_main(int argc, char **argv, const struct cli_places *places)
{
    (void)argc;
    run_open_standard_streams();
    struct run r = {.places = places,
                    .job.job.stdin_fd = -1,
                    .artifacts = {.dir = -1, .folder = -1, .file = -1}};
    int status = prepare(&r, argv);
    if (status == 0 && r.options.help) {
        verb_help(&verb_run, stdout);
    } else if (status == 0 && (r.options.url || r.options.session)) {
        status = remote_execute(places, argv, r.options.url, r.options.key);
    } else if (status == 0 && r.options.show_plan) {
        status = find_bwrap(&r);
        status = status ? status
                        : show_plan_print(&r.job, &r.settings,
                                          r.launcher == SEAT_BWRAP ? &r.bwrap : NULL,
                                          r.options.json, stdout);
    } else if (status == 0) {
        raise_descriptor_limit(&r);
        status = run_job(&r);
    }
    status = status ? status : verb_end_output("run");
    outdir_done(&r.artifacts);
    run_job_done(&r.job);
    front_settings_done(&r.settings);
    run_options_done(&r.options);
    return status;
}

// ---- The verb

static const struct verb_form forms[] = {
    {"[OPTIONS] FILE", "a snippet in Python or JavaScript, or a script"},
    {"[OPTIONS] -l LANG -c CODE", "the code itself"},
    {"[OPTIONS] -l LANG -", "the code from standard input"},
    {"[OPTIONS] -- CMD ARG...", "a command"},
    {NULL, NULL},
};

static const struct verb_status statuses[] = {
    {"its own", "the job ended by itself; 1 if that was 0 and it was no success (no result, an "
                "artifact missing)"},
    {"126, 127", "a command that cannot be executed, that is not there"},
    {"128 + n", "signal n ended it"},
    {"124", "out of time: wall time or CPU time"},
    {"137", "out of memory"},
    {"130", "cancelled: Ctrl-C, Ctrl-\\, SIGTERM, a hang-up, or the reader of the output left"},
    {"125", "everything else: refused, disk limit, output not written, the sandbox failed"},
    {NULL, NULL},
};

static const char *const examples[] = {
    "isle run -l python -c 'return params[\"a\"] + 1' --params '{\"a\": 41}'",
    "isle run job.js --timeout 5 --memory 256",
    "isle run plot.py --file data.csv:input/data.csv --artifact output/plot.png --output-dir .",
    "isle run --stdin - -- sort -n < numbers",
    "isle run --json -l bash -c 'echo out; exit 3'",
    "isle run --url https://isle.example job.py",
    NULL,
};

const struct verb verb_run = {
    .name = "run",
    .summary = "run one job: a snippet, a script or a command",
    .forms = forms,
    .about = "Runs one job in a sandbox of its own: no file, process or network of this machine.",
    .notes = "What a snippet returns is printed as one line of JSON after its output. FILE itself "
             "is\nnot in /workspace; --file puts files there.",
    .options = run_own_options,
    .n_options = RUN_N_OWN_OPTIONS,
    .limits = true,
    .operands = VALUES_FILE,
    .statuses = statuses,
    .examples = examples,
    .run = run_main,
};
