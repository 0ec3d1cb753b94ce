// end.c: a running sandbox and its end. Verdicts come from the kernel's counters and from the
// shim's report, never from the job.
#include "base/clock.h"
#include "base/fd.h"
#include "base/msg.h"
#include "kernel/sys.h"
#include "launcher/launcher.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum {
    OOM_LOOK_MS = 2,        // between looks at the counter
    OOM_PATIENCE_MS = 1000, // v1 tells before it kills, and also when it then need not
    CPU_LOOK_MIN_MS = 5,
    REMOVE_RETRY_MS = 2,
    SIGNAL_BATCH = 64,
    MAX_MEMBERS = 32768,
};

#define IDTYPE_PIDFD ((idtype_t)3) // P_PIDFD: glibc has it only as a macro of newer headers

struct box *box_find(struct launcher *l, uint32_t id)
{
    for (int i = 0; i < PLAN_MAX_SANDBOXES && id; i++) {
        if (l->box[i].id == id) {
            return &l->box[i];
        }
    }
    return NULL;
}

void box_discard(const struct launcher *l, struct box *b)
{
    cgroup_remove(&l->groups, b->group);
    const int fds[] = {b->sock, b->report, b->oom};
    for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
        fd_close(fds[i]);
    }
    bwrap_done(b);
    b->id = 0;
}

// What has ended before it could be told something (EPIPE) has said why, or its end is the reason;
// to the service EPIPE would be the end of this launcher.
void box_fail(const struct launcher *l, struct box *b, uint32_t step, int error)
{
    if (!b->r.error && error != EPIPE && error != ECONNRESET) {
        b->r.error = error;
        b->r.step = step;
    }
    box_kill(l, b);
}

// ---- signals ----------------------------------------------------------------------------------

static bool has_pid(const pid_t *pids, int n, pid_t pid)
{
    for (int i = 0; i < n; i++) {
        if (pids[i] == pid) {
            return true;
        }
    }
    return false;
}

// One batch. A pid may be another process by the time we open it: what is opened counts only if the
// group still has that pid *afterwards*, since a pid that we hold open is not given out again.
static int signal_batch(const struct launcher *l, const struct box *b, const pid_t *batch, int n,
                        int sig)
{
    static pid_t again[MAX_MEMBERS];
    int fds[SIGNAL_BATCH];
    for (int i = 0; i < n; i++) {
        fds[i] = sys_pidfd_open(batch[i]);
    }
    int m = cgroup_members(&l->groups, b->group, again, MAX_MEMBERS);
    for (int i = 0; i < n; i++) {
        if (fds[i] >= 0 && m > 0 && has_pid(again, m, batch[i])) {
            sys_pidfd_signal(fds[i], sig);
        }
        fd_close(fds[i]);
    }
    return m < 0 ? m : 0;
}

// All but isle's own.
static int signal_group(const struct launcher *l, const struct box *b, int sig)
{
    static pid_t pids[MAX_MEMBERS];
    const pid_t shim = b->gone ? 0 : b->r.shim_pid; // once it is reaped, the number is anybody's
    int n = cgroup_members(&l->groups, b->group, pids, MAX_MEMBERS);
    if (n < 0) {
        return n;
    }
    int count = 0;
    for (int i = 0; i < n; i++) {
        if (pids[i] != shim && !(b->wrapped && pids[i] == b->wrapped->bwrap)) {
            pids[count++] = pids[i];
        }
    }
    int e = 0;
    for (int i = 0; i < count && !e; i += SIGNAL_BATCH) {
        int left = count - i;
        e = signal_batch(l, b, pids + i, left < SIGNAL_BATCH ? left : SIGNAL_BATCH, sig);
    }
    return e;
}

int box_signal(const struct launcher *l, const struct box *b, int sig)
{
    if (!b->executed || b->gone) {
        return -ESRCH; // pid 2 is still ours: a signal would look like a failure of the sandbox
    }
    int e = signal_group(l, b, sig);
    // no groups on this host: the main process
    return e == -ENOENT ? sys_pidfd_signal(b->main_pidfd, sig) : e;
}

// The shim stays until it has reaped all of them: zombies count as processes of the workspace's
// uid.
static void end_plain(const struct launcher *l, struct box *b)
{
    b->ending = true;
    cgroup_no_forks(&l->groups, b->group);
    signal_group(l, b, SIGKILL);
}

static uint64_t plain_tick(const struct launcher *l, struct box *b, uint64_t now)
{
    if (!b->ending) {
        return UINT64_MAX;
    }
    end_plain(l, b);
    return now + REMOVE_RETRY_MS * NS_PER_MS;
}

void box_kill(const struct launcher *l, struct box *b)
{
    if (b->plain) {
        end_plain(l, b);
        return;
    }
    cgroup_kill(&l->groups, b->group);   // where there is v2: atomically
    sys_pidfd_signal(b->pidfd, SIGKILL); // pid 1, and with it its namespace
}

// ---- figures ----------------------------------------------------------------------------------

static uint64_t cpu_used(const struct launcher *l, const struct box *b)
{
    uint64_t total = cgroup_figure(&l->groups, b->group, CGROUP_CPU_NS);
    if (total == PLAN_UNKNOWN) {
        return PLAN_UNKNOWN;
    }
    return total > b->cpu_base_ns ? total - b->cpu_base_ns : 0;
}

void box_figures(const struct launcher *l, const struct box *b, struct plan_record *r)
{
    uint64_t peak = cgroup_figure(&l->groups, b->group, CGROUP_PIDS_PEAK);
    r->cpu_ns = cpu_used(l, b);
    r->memory_peak_bytes = cgroup_figure(&l->groups, b->group, CGROUP_MEMORY_PEAK);
    unsigned own = box_own_pids(b);
    r->pids_peak = peak == PLAN_UNKNOWN || peak < own ? peak : peak - own;
    r->shim_pid = b->r.shim_pid;
    r->main_pid = b->r.main_pid;
    r->rung = b->r.rung;
    memcpy(r->marks_ns, l->marks[b - l->box], sizeof r->marks_ns);
}

void box_begin_execution(const struct launcher *l, struct box *b, uint64_t cpu_ns)
{
    uint64_t now = cgroup_figure(&l->groups, b->group, CGROUP_CPU_NS);
    b->cpu_base_ns = now == PLAN_UNKNOWN ? 0 : now;
    b->cpu_budget_ns = cpu_ns;
    b->cpu_look_ns = cpu_ns ? 1 : 0; // at once; that look finds out when the next is due
}

static bool out_of_memory(const struct launcher *l, const struct box *b)
{
    uint64_t kills = cgroup_figure(&l->groups, b->group, CGROUP_OOM_KILLS);
    return kills != PLAN_UNKNOWN && kills > 0;
}

// ---- what the sandbox says --------------------------------------------------------------------

static void on_end_of_sock(struct launcher *l, struct box *b)
{
    b->sock = fd_close(b->sock);
    // marked just before execve; without it pid 2 died on the way there
    if (!b->started || b->r.error || !l->marks[b - l->box][PLAN_T_EXEC]) {
        return;
    }
    b->executed = true;
    box_begin_execution(l, b, b->cpu_budget_ns);
    struct plan_record r = b->r;
    r.op = PLAN_EXECUTED;
    r.cpu_ns = r.memory_peak_bytes = r.pids_peak = PLAN_UNKNOWN;
    memcpy(r.marks_ns, l->marks[b - l->box], sizeof r.marks_ns);
    request_answer(l, &r, NULL, 0);
}

static void on_parked(struct launcher *l, struct box *b, pid_t pid, bool no_loopback)
{
    b->r.downgrades |= no_loopback ? PLAN_NO_LOOPBACK : 0U;
    int pidfd = sys_pidfd_open(pid);
    if (pidfd == -ESRCH) { // a cold launch does not wait for us: it is over already
        return;
    }
    if (pidfd < 0) {
        box_fail(l, b, PLAN_STEP_park, -pidfd);
        return;
    }
    b->r.main_pid = pid;
    b->main_pidfd = pidfd;
    // Else the last process to leave it would take its mounts apart, a grace period of the kernel,
    // before anybody hears that it ended. Without it (-1) that is what happens.
    char path[32];
    snprintf(path, sizeof path, "%d/ns/mnt", pid);
    b->mounts = openat(l->proc, path, O_RDONLY | O_CLOEXEC);
    if (b->wrapped) { // else it has marked it itself
        l->marks[b - l->box][PLAN_T_PARKED] = clock_now_ns();
    }
    struct plan_record r = b->r;
    r.op = PLAN_PARKED;
    r.cpu_ns = r.memory_peak_bytes = r.pids_peak = PLAN_UNKNOWN;
    memcpy(r.marks_ns, l->marks[b - l->box], sizeof r.marks_ns);
    request_answer(l, &r, NULL, 0);
}

static void on_map(struct launcher *l, struct box *b, pid_t pid)
{
    int e = rung_answer(l, b->sock, pid, b->uid);
    if (e) { // pid 2 would wait for ever
        box_fail(l, b, PLAN_STEP_user_namespace, -e);
    }
}

// pid 2's alone: until its exec it is a copy of the launcher; pid 1 is another program.
static void on_main_note(struct launcher *l, struct box *b, const struct note *n, pid_t from)
{
    if (n->kind == NOTE_PARKED) {
        on_parked(l, b, from, n->error != 0);
    } else if (b->wrapped && n->kind == NOTE_INSIDE) {
        bwrap_inside(l, b, n, from);
    } else if (!b->wrapped && n->kind == NOTE_MAP) {
        on_map(l, b, from);
    }
}

static void on_note(struct launcher *l, struct box *b, const struct note *n)
{
    switch (n->kind) {
    case NOTE_ERROR:
        if (!b->r.error) { // the first one is the cause
            b->r.error = n->error ? n->error : EIO;
            b->r.step = n->step;
        }
        break;
    case NOTE_REPORT:
        if (!b->reported) {
            b->reported = true;
            b->r.status = n->status;
            l->marks[b - l->box][PLAN_T_REPORT] = clock_now_ns();
            if (b->plain) { // with a namespace, the kernel does it
                end_plain(l, b);
            }
        }
        break;
    case NOTE_EXEC:
        if (b->wrapped && !b->wrapped->until_ns) {
            l->marks[b - l->box][PLAN_T_EXEC] = (uint64_t)(uint32_t)n->status << 32 | n->step;
        }
        break;
    default:
        break;
    }
}

// Everything that is there. True at the end of the file.
static bool drain(struct launcher *l, struct box *b, const int *sock)
{
    while (*sock >= 0) {
        struct note n;
        pid_t from = 0;
        ssize_t got = msg_recv(*sock, &n, sizeof n, NULL, 0, &from, MSG_DONTWAIT);
        if (got == -EAGAIN) {
            return false;
        }
        if (got == -ECONNRESET) {
            continue; // told once, before what was sent: it died with something of ours unread
        }
        if (got != sizeof n) {
            return true;
        }
        on_note(l, b, &n);
        if (sock == &b->sock) {
            on_main_note(l, b, &n, from);
        }
    }
    return false;
}

void box_notes(struct launcher *l, struct box *b)
{
    if (drain(l, b, &b->sock)) {
        on_end_of_sock(l, b);
    }
    if (drain(l, b, &b->report)) {
        b->report = fd_close(b->report);
    }
}

// ---- clock ------------------------------------------------------------------------------------

void box_oom_event(struct box *b)
{
    uint64_t count;
    if (read(b->oom, &count, sizeof count) == sizeof count) {
        b->oom_until_ns = clock_now_ns() + OOM_PATIENCE_MS * NS_PER_MS;
    }
}

static uint64_t oom_tick(struct launcher *l, struct box *b, uint64_t now)
{
    if (!b->oom_until_ns) {
        return UINT64_MAX;
    }
    if (out_of_memory(l, b)) {
        b->r.flags |= PLAN_HIT_MEMORY;
        b->oom_until_ns = 0;
        box_kill(l, b); // the kernel kills one process; the job ends with it
        return UINT64_MAX;
    }
    if (now > b->oom_until_ns) {
        b->oom_until_ns = 0;
        return UINT64_MAX;
    }
    return now + OOM_LOOK_MS * NS_PER_MS;
}

static uint64_t cpu_tick(struct launcher *l, struct box *b, uint64_t now)
{
    if (!b->cpu_look_ns) { // nothing is executed yet, or has no budget
        return UINT64_MAX;
    }
    if (now < b->cpu_look_ns) {
        return b->cpu_look_ns;
    }
    uint64_t used = cpu_used(l, b);
    if (used == PLAN_UNKNOWN) {
        b->cpu_look_ns = 0;
        return UINT64_MAX;
    }
    if (used >= b->cpu_budget_ns) {
        b->r.flags |= PLAN_HIT_CPU;
        b->cpu_look_ns = 0;
        box_kill(l, b);
        return UINT64_MAX;
    }
    // it cannot be used up before all its CPUs have worked for what is left
    uint64_t all = (uint64_t)l->n_cpus * 100, percent = b->cpu_percent;
    if (percent > all || (l->downgrades & PLAN_NO_CGROUP_CPU)) {
        percent = all;
    }
    uint64_t wait = (b->cpu_budget_ns - used) / percent * 100;
    uint64_t least = CPU_LOOK_MIN_MS * NS_PER_MS;
    b->cpu_look_ns = now + (wait > least ? wait : least);
    return b->cpu_look_ns;
}

uint64_t box_tick(struct launcher *l, struct box *b, uint64_t now_ns)
{
    if (b->gone) {
        if (now_ns >= b->retry_ns) {
            box_end(l, b);
        }
        return b->id ? b->retry_ns : UINT64_MAX;
    }
    uint64_t oom = oom_tick(l, b, now_ns), cpu = cpu_tick(l, b, now_ns);
    uint64_t own = b->plain ? plain_tick(l, b, now_ns) : bwrap_tick(l, b, now_ns);
    uint64_t next = oom < cpu ? oom : cpu;
    return next < own ? next : own;
}

// ---- end --------------------------------------------------------------------------------------

static void verdict(struct launcher *l, struct box *b)
{
    if (out_of_memory(l, b)) {
        b->r.flags |= PLAN_HIT_MEMORY;
    }
    box_figures(l, b, &b->r);
    // Nobody ended it and no program ran to its end: the sandbox itself failed.
    bool explained = b->r.flags || b->r.error || (b->reported && b->executed);
    if (!explained) {
        bool unmade = b->wrapped && b->wrapped->until_ns;
        b->r.error = ECHILD;
        b->r.step = unmade ? (uint32_t)PLAN_BSTEP_bubblewrap : (uint32_t)PLAN_STEP_end;
    }
}

// As wait(2) has it.
static int wait_status(const siginfo_t *info)
{
    return info->si_code == CLD_EXITED ? (info->si_status & 0xff) << 8 : info->si_status & 0x7f;
}

void box_end(struct launcher *l, struct box *b)
{
    if (!b->gone) {
        siginfo_t info = {0};
        if (waitid(IDTYPE_PIDFD, (id_t)b->pidfd, &info, WEXITED | WNOHANG) || !info.si_pid) {
            return;
        }
        box_notes(l, b); // whatever was said was said before
        b->gone = true;
        l->marks[b - l->box][PLAN_T_GONE] = clock_now_ns();
        verdict(l, b);
        if (b->r.error && plan_step_is_bwrap(b->r.step)) {
            b->r.status = wait_status(&info);
        }
    }
    // A result is given out only when nothing of the job is left.
    if (cgroup_remove(&l->groups, b->group)) {
        box_kill(l, b);
        b->retry_ns = clock_now_ns() + REMOVE_RETRY_MS * NS_PER_MS;
        return;
    }
    l->marks[b - l->box][PLAN_T_END] = clock_now_ns();
    memcpy(b->r.marks_ns, l->marks[b - l->box], sizeof b->r.marks_ns);
    struct plan_record r = b->r;
    r.op = PLAN_END;
    bool said = b->wrapped && b->wrapped->said >= 0 && r.error && plan_step_is_bwrap(r.step);
    request_answer(l, &r, said ? &b->wrapped->said : NULL, said ? 1 : 0);
    // only now what takes time: the last descriptor of the mount namespace takes it apart
    const int fds[] = {b->pidfd, b->main_pidfd, b->sock, b->report, b->oom, b->mounts};
    for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
        fd_close(fds[i]);
    }
    bwrap_done(b);
    b->id = 0;
    ahead_refill(l); // when this job no longer needs the other CPU
}
