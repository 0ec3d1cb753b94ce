// Every call of the launcher that can fail fails once, wherever it stands. Whatever happens: an END
// comes, nothing is left in the launcher, and the next job runs. In builds with -Dinject=true.
#include "check_inject.h"
#include "base/clock.h"
#include "base/fd.h"
#include "checks.h"
#include "plan/steps.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    MAX_CALLS = 2000,
    MAX_STEPS = 64,
    AHEAD_TRIES = 8
}; // so many have their groups made ahead, in turns

static struct inject_page *page;

// What is injected into which job. An error of 0 is a call that does nothing and says 0.
struct variant {
    const char *title;
    uint32_t who;
    uint64_t steps;
    const char *only;
    uint32_t number;
    int32_t error;
    bool parked, tmp_folder, sets, tmpfs;
    uint32_t undo_call; // from this one on it is the attempt to undo a drop, which shall fail
    unsigned least;     // calls that there are
};

#define STEP(name) (UINT64_C(1) << PLAN_STEP_##name)

static const struct variant variants[] = {
    // first those that need something made ahead: what fails later may end its maker
    {.title = "group made ahead that a cleaner took",
     .who = INJECT_LAUNCH,
     .only = "faccessat",
     .error = ENOENT,
     .steps = STEP(groups),
     .least = 1},
    {.title = "network made ahead that cannot be entered",
     .who = INJECT_LAUNCH,
     .only = "setns",
     .error = ENOMEM,
     .steps = STEP(network),
     .least = 1},
    {.title = "cold launch", .who = INJECT_LAUNCH, .error = ENOMEM, .least = 300},
    {.title = "parked launch",
     .who = INJECT_LAUNCH,
     .error = ENOMEM,
     .parked = true,
     .steps = ~(STEP(shim_capabilities) | STEP(capabilities)), // one call per capability
     .least = 150},
    {.title = "launcher beside a cold launch", .who = INJECT_LOOP, .error = ENOMEM, .least = 20},
    {.title = "launcher beside a parked launch",
     .who = INJECT_LOOP,
     .error = ENOMEM,
     .parked = true,
     .least = 20},
    {.title = "sandbox that is over before it was heard of",
     .who = INJECT_LOOP,
     .only = "syscall",
     .number = SYS_pidfd_open,
     .error = ESRCH,
     .least = 1},
    {.title = "launch with package sets and a session's /tmp",
     .who = INJECT_LAUNCH,
     .error = ENOMEM,
     .steps = STEP(session_tmp) | STEP(package_sets) | STEP(order) | STEP(size_tmp) |
              STEP(mount_sets) | STEP(landlock_workspace),
     .tmp_folder = true,
     .sets = true,
     .least = 10},
    {.title = "launch with a tmpfs workspace",
     .who = INJECT_LAUNCH,
     .error = ENOMEM,
     .steps = STEP(workspace),
     .tmpfs = true,
     .least = 2},
    {.title = "launch with a tmpfs workspace of an old kernel",
     .who = INJECT_LAUNCH,
     .error = EINVAL,
     .steps = STEP(workspace),
     .tmpfs = true,
     .least = 2},
    {.title = "kernel without parts of /proc",
     .who = INJECT_LAUNCH,
     .error = ENOENT,
     .steps = STEP(mask_proc),
     .least = 10},
    {.title = "loopback that a security module refuses",
     .who = INJECT_LAUNCH,
     .error = EACCES,
     .steps = STEP(loopback),
     .least = 1},
    {.title = "keyring that a filter refuses",
     .who = INJECT_LAUNCH,
     .error = EPERM,
     .steps = STEP(keyring),
     .least = 1},
    {.title = "change of identity that does nothing",
     .who = INJECT_LAUNCH,
     .only = "setresuid",
     .error = 0,
     .steps = STEP(shim_identity) | STEP(user_namespace) | STEP(capabilities),
     .least = 3},
    {.title = "attempt to undo it that succeeds",
     .who = INJECT_LAUNCH,
     .only = "setuid",
     .error = 0,
     .steps = STEP(shim_identity) | STEP(capabilities),
     .least = 2},
};

// For a start with other rungs.
static const struct variant rung_variants[] = {
    {.title = "job's identity",
     .who = INJECT_LAUNCH,
     .error = ENOMEM,
     .steps =
         STEP(identity_files) | STEP(user_namespace) | STEP(seal_namespaces) | STEP(capabilities),
     .least = 10},
    {.title = "job's identity with a session's /tmp",
     .who = INJECT_LAUNCH,
     .error = ENOMEM,
     .tmp_folder = true,
     .steps = STEP(identity_files) | STEP(user_namespace),
     .least = 2},
};

// For jobs with the host's network.
static const struct variant network_variants[] = {
    {.title = "host's network",
     .who = INJECT_LAUNCH,
     .error = ENOMEM,
     .steps = STEP(network_files),
     .least = 3},
    {.title = "host's network without its files",
     .who = INJECT_LAUNCH,
     .error = ENOENT,
     .steps = STEP(network_files),
     .least = 3},
};

// For an account with one id, where an identity is given up by giving up rights.
static const struct variant single_variants[] = {
    {.title = "single id",
     .who = INJECT_LAUNCH,
     .error = ENOMEM,
     .undo_call = 5,
     .steps = STEP(shim_identity),
     .least = 5},
    {.title = "giving up of rights that does nothing",
     .who = INJECT_LAUNCH,
     .only = "syscall",
     .number = SYS_capset,
     .error = 0,
     .steps = STEP(shim_identity) | STEP(capabilities),
     .least = 2},
};

#define BSTEP(name) (UINT64_C(1) << (PLAN_BSTEP_##name - PLAN_BSTEP_FIRST))

static const struct variant bwrap_variants[] = {
    {.title = "launch with Bubblewrap", .who = INJECT_LAUNCH, .error = ENOMEM, .least = 100},
    {.title = "launcher beside a launch with Bubblewrap",
     .who = INJECT_LOOP,
     .error = ENOMEM,
     .least = 10},
    {.title = "launch with Bubblewrap, package sets and a session's /tmp",
     .who = INJECT_LAUNCH,
     .error = ENOMEM,
     .steps = BSTEP(session_tmp) | BSTEP(package_sets) | BSTEP(mounts) | BSTEP(landlock_rules),
     .tmp_folder = true,
     .sets = true,
     .least = 10},
    {.title = "keyring that a filter refuses, before Bubblewrap",
     .who = INJECT_LAUNCH,
     .error = EPERM,
     .steps = BSTEP(keyring),
     .least = 1},
    {.title = "change of Bubblewrap's identity that does nothing",
     .who = INJECT_LAUNCH,
     .only = "setresuid",
     .error = 0,
     .steps = BSTEP(identity),
     .least = 1},
    {.title = "attempt to undo that which succeeds",
     .who = INJECT_LAUNCH,
     .only = "setuid",
     .error = 0,
     .steps = BSTEP(identity),
     .least = 1},
};

static const struct variant single_bwrap_variants[] = {
    {.title = "single id with Bubblewrap",
     .who = INJECT_LAUNCH,
     .error = ENOMEM,
     .steps = BSTEP(identity) | BSTEP(workspace),
     .least = 3},
};

#define PSTEP(name) (UINT64_C(1) << (PLAN_PSTEP_##name - PLAN_PSTEP_FIRST))

// The steps that it shares with a sandbox's launch fail there.
static const struct variant plain_variants[] = {
    {.title = "launch without a sandbox",
     .who = INJECT_LAUNCH,
     .error = ENOMEM,
     .steps = PSTEP(born_plain) | PSTEP(pid1_descriptors) | PSTEP(reaper) | PSTEP(full_proc) |
              PSTEP(shim_exec_plain) | PSTEP(no_shared_ipc) | PSTEP(exec),
     .least = 15},
    {.title = "launcher beside a launch without a sandbox",
     .who = INJECT_LOOP,
     .error = ENOMEM,
     .least = 20},
};

void check_inject_open(void) { page = inject_page_map(); }

int inject_arm(struct client *c, const struct inject_plan *plan, struct plan_record *ret,
               struct inject_left *ret_left)
{
    struct plan_request q = {.op = INJECT_OP};
    if (plan) {
        page->next = *plan;
    }
    int e = client_ask(c, &q, ret);
    *ret_left = (struct inject_left){ret->cpu_ns, ret->memory_peak_bytes, ret->pids_peak};
    return e;
}

bool inject_wait(int timeout_ms)
{
    for (int i = 0; i < timeout_ms && !__atomic_load_n(&page->fired, __ATOMIC_SEQ_CST); i++) {
        clock_pause_ns(NS_PER_MS);
    }
    return page->fired != 0;
}

// steps: instead of the variant's.
static int arm(struct client *c, const struct variant *v, uint64_t steps, uint32_t call,
               struct plan_record *ret, struct inject_left *ret_left)
{
    struct inject_plan plan = {
        .who = v->who, .target = call, .error = v->error, .number = v->number, .steps = steps};
    snprintf(plan.only, sizeof plan.only, "%s", v->only ? v->only : "");
    return inject_arm(c, &plan, ret, ret_left);
}

// Failures that a launch may survive: each is a comfort, not a fence.
static bool may_survive(const struct variant *v, uint32_t step, const char *call)
{
    bool drop = step == PLAN_STEP_shim_identity || step == PLAN_STEP_capabilities ||
                step == PLAN_BSTEP_identity;
    return step == PLAN_STEP_groups // made ahead: then in line
           || step == PLAN_STEP_end // figures are unknown, a removal is tried again
           || (v->error == ENOENT && step == PLAN_STEP_mask_proc) // nothing to cover
           || (v->error == ENOENT && step == PLAN_STEP_network_files) ||
           (v->error == EACCES && step == PLAN_STEP_loopback) // PARKED tells
           || (v->error == EPERM && (step == PLAN_STEP_keyring || step == PLAN_BSTEP_keyring)) ||
           (v->error == EINVAL && step == PLAN_STEP_workspace)  // attached first
           || (v->error && drop && !strncmp(call, "setres", 6)) // the attempt to undo it shall fail
           || (v->error && drop && !strcmp(call, "setuid"));
}

static struct try job_of(const struct variant *v, const uint32_t *sets)
{
    static const char *const job[] = {"/bin/sh", "-c", "exit 7", NULL};
    struct try t = try_of(job);
    if (v->sets) {
        memcpy(t.sets, sets, 2 * sizeof *sets);
        t.n_sets = 2;
    }
    if (v->tmp_folder) {
        t.tmp_folder = true;
        t.workspace = "kept/both";
    }
    return t;
}

// One job with the Nth call failing. False when there was no such call.
static bool one_call(struct client *c, const struct variant *v, uint64_t steps, uint32_t call,
                     const struct try *t, const struct inject_left *before)
{
    struct plan_record armed, r = {0}, told, next, parked_r;
    struct inject_left left;
    uint32_t id = 0;
    c->n_early = 0; // ENDs of sandboxes that were not waited for; none has a descriptor
    struct try job = *t, again = *t;
    if (v->tmpfs) { // one for each: it may be attached, and then stays so
        int number = client_add_tmpfs(c, V0, 1 << 20, NULL);
        job.tmpfs_no = again.tmpfs_no = number < 0 ? 0 : number; // that shows
    }
    int e = arm(c, v, steps, call, &armed, &left);
    int g = 0;
    if (!e && v->parked) {
        struct plan_request q = {.op = PLAN_PREPARE};
        g = client_ask(c, &q, &parked_r);
        id = parked_r.id;
    }
    if (!g && !e) {
        e = client_run(c, id, &job, CLIENT_PATIENCE_MS, &r);
    }
    int h = inject_arm(c, NULL, &told, &left);
    int n = client_run(c, 0, &again, CLIENT_PATIENCE_MS, &next);
    if (v->tmpfs) {
        struct plan_request q = {.op = PLAN_TMPFS_DROP, .workspace_no = (uint32_t)job.tmpfs_no};
        e = e ? e : client_ask(c, &q, &armed);
    }
    h = h ? h : inject_arm(c, NULL, &armed, &left);
    if (h || !told.status) {
        if (h || !clean_exit(&r, e, 7)) {
            check("a launch without a failure", false, say(&r, e));
        }
        return false;
    }
    bool refused = g || (!e && r.error); // PREPARE said so, or END
    uint32_t step = g ? parked_r.step : r.step;
    bool known = step < PLAN_STEP_NAMES || plan_step_is_bwrap(step) || plan_step_is_plain(step);
    // the job's own program: told as a shell does
    bool program = !strcmp((const char *)told.marks_ns, "execve") &&
                   (told.step == PLAN_STEP_exec || told.step == PLAN_BSTEP_program ||
                    told.step == PLAN_PSTEP_exec);
    bool right = refused   ? known
                 : program ? clean_exit(&r, e, 126)
                           : clean_exit(&r, e, 7) &&
                                 ((v->undo_call && call >= v->undo_call) ||
                                  may_survive(v, told.step, (const char *)told.marks_ns));
    bool same = left.mounts <= before->mounts && left.fds <= before->fds && left.groups == 0;
    if (!right || !same || !clean_exit(&next, n, 7)) {
        char title[160], detail[512];
        snprintf(title, sizeof title, "%s: call %u (%.16s in step %s)", v->title, call,
                 (const char *)told.marks_ns, plan_step_name(told.step));
        snprintf(
            detail, sizeof detail,
            "prepare %d, end %d error %d step %s status %x; left: mounts %+lld fds %+lld groups "
            "%llu; next %d error %d step %s",
            g, e, r.error, plan_step_name(r.step), (unsigned)r.status,
            (long long)(left.mounts - before->mounts), (long long)(left.fds - before->fds),
            (unsigned long long)left.groups, n, next.error, plan_step_name(next.step));
        check(title, false, detail);
    }
    return true;
}

// Returns the number of its calls.
static uint32_t fail_step(struct client *c, const struct variant *v, uint32_t step,
                          const struct try *t, const struct inject_left *before)
{
    bool depends =
        step == PLAN_STEP_groups || step == PLAN_STEP_network || step == PLAN_STEP_loopback;
    uint32_t call = 1;
    for (int misses = 0; call < MAX_CALLS;) {
        if (one_call(c, v, UINT64_C(1) << step, call, t, before)) {
            call++;
        } else if (!depends || misses++ == AHEAD_TRIES) {
            break;
        }
    }
    return call - 1;
}

static void run_variant(struct client *c, const struct variant *v)
{
    struct plan_record r;
    struct inject_left before;
    uint32_t sets[2] = {0, 0}, failed = 0;
    char title[128];
    bool made = true;
    if (v->sets) {
        int one = client_add_named_set(c, "one"), two = client_add_named_set(c, "two");
        made = one >= 0 && two >= 0;
        sets[0] = (uint32_t)one;
        sets[1] = (uint32_t)two;
    }
    struct try t = job_of(v, sets), warm = t;
    if (!v->tmpfs) {
        client_run(c, 0, &warm, CLIENT_PATIENCE_MS, &r); // whatever is made once is made
    }
    made = made && !inject_arm(c, NULL, &r, &before);
    if (v->who != INJECT_LAUNCH) {
        for (uint32_t call = 1; made && one_call(c, v, 0, call, &t, &before); call++) {
            failed++;
        }
    }
    // By step: which calls there are in one depends on what was made ahead, and must not matter for
    // another.
    for (uint32_t step = 0; made && v->who == INJECT_LAUNCH && step < MAX_STEPS; step++) {
        if (!v->steps || v->steps >> step & 1) {
            failed += fail_step(c, v, step, &t, &before);
        }
    }
    snprintf(title, sizeof title, "%s: %u calls failed one by one", v->title, failed);
    check(title, made && failed >= v->least, "");
    for (int i = 0; v->sets && i < 2; i++) {
        struct plan_request q = {.op = PLAN_SET_DROP, .sets = {sets[i]}};
        client_ask(c, &q, &r);
    }
}

static void run_variants(struct client *c, const struct variant *list, size_t n)
{
    AUTO_CLOSE int both = client_make_workspace(c, "kept/both", V0, true);
    check("this launcher injects failures", page && both >= 0, "");
    for (size_t i = 0; page && i < n; i++) {
        run_variant(c, &list[i]);
    }
    client_remove_workspace(c, "kept/both");
}

void check_inject(struct client *c) { run_variants(c, variants, ARRAY_LEN(variants)); }

void check_inject_plain(struct client *c)
{
    run_variants(c, plain_variants, ARRAY_LEN(plain_variants));
}

void check_inject_rung(struct client *c)
{
    run_variants(c, rung_variants, ARRAY_LEN(rung_variants));
}

void check_inject_bwrap(struct client *c)
{
    run_variants(c, bwrap_variants, ARRAY_LEN(bwrap_variants));
}

static void host_network(struct plan_request *q) { q->network = PLAN_NETWORK_HOST; }

void check_inject_network(struct client *c)
{
    c->change = host_network;
    run_variants(c, network_variants, ARRAY_LEN(network_variants));
    c->change = NULL;
}

void check_inject_single(struct client *c)
{
    run_variants(c, single_variants, ARRAY_LEN(single_variants));
}

void check_inject_single_bwrap(struct client *c)
{
    run_variants(c, single_bwrap_variants, ARRAY_LEN(single_bwrap_variants));
}
