#include "doctor/doctor.h"

#include "base/fd.h"
#include "base/text.h"
#include "plan/plan.h"

#include <linux/capability.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *const doctor_state_names[DOCTOR_N_STATES] = {
    [DOCTOR_FINE] = "fine",         [DOCTOR_FACT] = "fact",     [DOCTOR_ADVICE] = "advice",
    [DOCTOR_DEGRADED] = "degraded", [DOCTOR_FAILED] = "failed",
};

void doctor_say(char *to, size_t size, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(to, size, format, args);
    va_end(args);
    text_no_controls(to); // it may quote a file's content
}

struct doctor_row *doctor_add(struct doctor *d, const char *group, const char *name)
{
    // the tables are shorter; the last row is overwritten rather than memory behind it
    struct doctor_row *row = &d->rows[d->n < DOCTOR_MAX_ROWS ? d->n++ : DOCTOR_MAX_ROWS - 1];
    *row = (struct doctor_row){.group = group, .name = name};
    return row;
}

// ---- the system -------------------------------------------------------------------------------

static enum doctor_state see_kernel(struct doctor *d, struct doctor_row *r)
{
    const struct host *h = &d->host;
    DOCTOR_FOUND(r, "Linux %s, %s", h->kernel[0] ? h->kernel : "(not known)",
                 h->distribution[0] ? h->distribution
                                    : "a distribution that does not say its name");
    return h->version >= host_version(5, 14) ? DOCTOR_FINE : DOCTOR_FAILED;
}

static enum doctor_state see_machine(struct doctor *d, struct doctor_row *r)
{
    const char *m = d->host.machine;
    DOCTOR_FOUND(r, "%s", m);
    return strcmp(m, "x86_64") == 0    ? DOCTOR_FINE
           : strcmp(m, "aarch64") == 0 ? DOCTOR_ADVICE
                                       : DOCTOR_FAILED;
}

static enum doctor_state see_place(struct doctor *d, struct doctor_row *r)
{
    const struct host *h = &d->host;
    if (h->place == HOST_MACHINE) {
        DOCTOR_FOUND(r, "%s", h->wsl ? "WSL" : "a machine");
        return DOCTOR_FACT;
    }
    DOCTOR_FOUND(r, "%s (%s): kernel settings are those of the %s around it",
                 h->place == HOST_POD ? "a pod" : "a container", h->container,
                 h->place == HOST_POD ? "node" : "machine");
    return DOCTOR_FACT;
}

// ---- rights -----------------------------------------------------------------------------------

static const struct {
    unsigned number;
    const char *name;
} needed_of_root[] = {
    {CAP_SYS_ADMIN, "SYS_ADMIN"},
    {CAP_SETUID, "SETUID"},
    {CAP_SETGID, "SETGID"},
    {CAP_CHOWN, "CHOWN"},
    {CAP_MKNOD, "MKNOD"},
    {CAP_KILL, "KILL"},
    {CAP_DAC_OVERRIDE, "DAC_OVERRIDE"},
    {CAP_FOWNER, "FOWNER"},
};

static enum doctor_state see_rights(struct doctor *d, struct doctor_row *r)
{
    const struct host *h = &d->host;
    if (h->uid != 0) {
        DOCTOR_FOUND(r, "user %u%s", h->uid, h->no_new_privs ? ", no_new_privs" : "");
        return DOCTOR_FACT;
    }
    char lacking[160] = "";
    for (size_t i = 0; i < ARRAY_LEN(needed_of_root); i++) {
        if (!host_can(h, needed_of_root[i].number)) {
            size_t n = strlen(lacking);
            snprintf(lacking + n, sizeof lacking - n, " %s", needed_of_root[i].name);
        }
    }
    DOCTOR_FOUND(r, "root%s%s%s", h->initial_ids ? "" : " of a user namespace",
                 lacking[0] ? ", without" : "", lacking);
    return lacking[0] ? DOCTOR_DEGRADED : DOCTOR_FINE;
}

static enum doctor_state see_ids(struct doctor *d, struct doctor_row *r)
{
    const struct start_mode *m = &d->mode;
    if (m->user == START_ROOT) {
        DOCTOR_FOUND(r, "%llu ids are mapped here", (unsigned long long)d->host.mapped_ids);
        // the first 65536 are the accounts', the next the first instance's
        return d->host.mapped_ids >= 2ULL * PLAN_UID_COUNT ? DOCTOR_FINE : DOCTOR_FAILED;
    }
    if (m->user == START_RANGE) {
        DOCTOR_FOUND(r, "%u subordinate ids from %u on", m->sub_count, m->sub_uid);
        return DOCTOR_FINE;
    }
    DOCTOR_FOUND(r, "one alone");
    DOCTOR_FIX(r, "%s", m->why);
    return DOCTOR_DEGRADED;
}

static enum doctor_state see_newuidmap(struct doctor *d, struct doctor_row *r)
{
    char user[64], group[64];
    if (d->mode.user == START_ROOT) {
        DOCTOR_FOUND(r, "root needs none");
        return DOCTOR_FINE;
    }
    if (mode_find_program(d->root, "", "newuidmap", user) ||
        mode_find_program(d->root, "", "newgidmap", group)) {
        DOCTOR_FOUND(r, "not there");
        return DOCTOR_DEGRADED;
    }
    bool power = mode_has_power(d->root, user) && mode_has_power(d->root, group);
    DOCTOR_FOUND(r, "/%s and newgidmap%s", user,
                 !power                 ? ", neither set-uid nor with a capability"
                 : d->host.no_new_privs ? ", which no_new_privs makes useless"
                                        : "");
    return d->host.no_new_privs || !power ? DOCTOR_DEGRADED : DOCTOR_FINE;
}

// ---- namespaces -------------------------------------------------------------------------------

// Text of a refusal into a row.
static void put_refusal(const struct refusal *f, struct doctor_row *r)
{
    DOCTOR_FOUND(r, "refused: %s", f->what);
    DOCTOR_FIX(r, "%s%s%s%s%s", f->fix, f->persistent[0] ? "; for good: " : "", f->persistent,
               f->instead[0] ? "; or: " : "", f->instead);
}

static enum doctor_state see_userns(struct doctor *d, struct doctor_row *r)
{
    if (d->own.cause == REFUSAL_NONE) {
        DOCTOR_FOUND(r, "work for this user");
        return DOCTOR_FINE;
    }
    put_refusal(&d->own, r);
    return DOCTOR_FAILED;
}

static enum doctor_state see_plain_userns(struct doctor *d, struct doctor_row *r)
{
    if (d->plain.cause == REFUSAL_NONE) {
        DOCTOR_FOUND(r, "work for users without any right");
        return DOCTOR_FINE;
    }
    put_refusal(&d->plain, r);
    return d->host.uid == 0 ? DOCTOR_ADVICE : DOCTOR_FAILED;
}

static enum doctor_state see_proc(struct doctor *d, struct doctor_row *r)
{
    const struct host *h = &d->host;
    const char *masked = h->proc_masked ? ", files of this one are covered" : "";
    if (!h->has_proc) {
        DOCTOR_FOUND(r, "/proc is not mounted");
        return DOCTOR_FAILED;
    }
    if (d->tries.proc == 0) {
        DOCTOR_FOUND(r, "can be mounted for jobs%s", masked);
        return DOCTOR_FINE;
    }
    DOCTOR_FOUND(r, "cannot be mounted for jobs: %s%s", strerror(d->tries.proc), masked);
    return DOCTOR_FAILED;
}

static enum doctor_state see_loopback(struct doctor *d, struct doctor_row *r)
{
    if (d->trial && d->trial->seat.downgrades & PLAN_NO_LOOPBACK) {
        DOCTOR_FOUND(r, "cannot be brought up in the self-test's jobs");
        return DOCTOR_DEGRADED;
    }
    // root of a container may not do in its own namespace what it may in a job's
    if (d->tries.loopback == 0 || (d->trial && d->trial->started)) {
        DOCTOR_FOUND(r, "comes up in a new network namespace");
        return DOCTOR_FINE;
    }
    DOCTOR_FOUND(r, "cannot be brought up: %s", strerror(d->tries.loopback));
    return DOCTOR_DEGRADED;
}

// ---- control groups ---------------------------------------------------------------------------

static enum doctor_state see_groups(struct doctor *d, struct doctor_row *r)
{
    const struct host *h = &d->host;
    const char *name = host_cgroups_names[h->cgroups];
    if (h->cgroups == HOST_CGROUPS_NONE) {
        DOCTOR_FOUND(r, "none mounted");
        return DOCTOR_DEGRADED;
    }
    const uint32_t limits = PLAN_NO_CGROUP_MEMORY | PLAN_NO_CGROUP_PIDS | PLAN_NO_CGROUP_CPU;
    bool opened = !h->cgroups_writable && d->trial && d->trial->started &&
                  (d->trial->seat.downgrades & limits) != limits; // by the start, for itself
    DOCTOR_FOUND(r, "%s, %s; controllers: %s", name,
                 h->cgroups_writable ? "mounted for writing"
                 : opened            ? "read-only, and writable for isle alone"
                                     : "read-only",
                 h->controllers[0] ? h->controllers : "none");
    return h->cgroups_writable || opened ? DOCTOR_FINE : DOCTOR_DEGRADED;
}

// What a start really got, where there was one; else what the files promise.
static enum doctor_state see_controller(struct doctor *d, struct doctor_row *r, uint32_t bit)
{
    bool tried = d->trial && d->trial->started;
    bool lacks = (tried ? d->trial->seat.downgrades : d->mode.downgrades) & bit;
    DOCTOR_FOUND(r, "%s",
                 !lacks  ? tried ? "isle has it" : "there for isle"
                 : tried ? "not given to isle"
                         : "not there for isle");
    if (lacks && d->mode.groups[0]) {
        DOCTOR_FIX(r, "%s", d->mode.groups);
    }
    return lacks ? DOCTOR_DEGRADED : DOCTOR_FINE;
}

static enum doctor_state see_memory(struct doctor *d, struct doctor_row *r)
{
    return see_controller(d, r, PLAN_NO_CGROUP_MEMORY);
}

static enum doctor_state see_pids(struct doctor *d, struct doctor_row *r)
{
    return see_controller(d, r, PLAN_NO_CGROUP_PIDS);
}

static enum doctor_state see_cpu(struct doctor *d, struct doctor_row *r)
{
    return see_controller(d, r, PLAN_NO_CGROUP_CPU);
}

static enum doctor_state see_cpu_time(struct doctor *d, struct doctor_row *r)
{
    return see_controller(d, r, PLAN_NO_CPU_TIME);
}

static enum doctor_state see_io(struct doctor *d, struct doctor_row *r)
{
    const char *list = d->host.controllers;
    bool there = host_lists(list, "io") || host_lists(list, "blkio");
    DOCTOR_FOUND(r, "%s; isle sets no limit for speed of disks", there ? "there" : "not there");
    return DOCTOR_FACT;
}

// ---- locks ------------------------------------------------------------------------------------

static enum doctor_state see_landlock(struct doctor *d, struct doctor_row *r)
{
    int abi = d->tries.landlock;
    if (abi == 0) {
        DOCTOR_FOUND(r, "not there");
        return DOCTOR_DEGRADED;
    }
    DOCTOR_FOUND(r, "version %d%s", abi,
                 abi >= 6 ? ""
                          : " (abstract sockets and signals are fenced off from version 6 on)");
    return DOCTOR_FINE;
}

static enum doctor_state see_seccomp(struct doctor *d, struct doctor_row *r)
{
    DOCTOR_FOUND(r, "%s%s", d->tries.seccomp ? "filters can be installed" : "not there",
                 d->host.filtered ? "; a filter of a container is on already" : "");
    return d->tries.seccomp ? DOCTOR_FINE : DOCTOR_FAILED;
}

// ---- the table --------------------------------------------------------------------------------

static const struct check {
    const char *group, *name;
    enum doctor_state (*see)(struct doctor *d, struct doctor_row *r);
    const char *cost, *fix;
} checks[] = {
    {"system", "kernel", see_kernel, "no job runs: openat2, mount_setattr and clone3 are needed",
     "Linux 5.14 or newer"},
    {"system", "architecture", see_machine, "built, but not tested there",
     "x86_64 is what is tested"},
    {"system", "place", see_place, NULL, NULL},
    {"rights", "rights", see_rights,
     "isle starts as an account without rights would, or not at all",
     "docker run --cap-add SYS_ADMIN, in Kubernetes securityContext.capabilities.add: [SYS_ADMIN]; "
     "the others are in the default set"},
    {"rights", "user ids", see_ids,
     "single_uid: isle and all its jobs share one uid of the host; mounts alone keep workspaces "
     "apart",
     "map 131072 ids or more into this container (its user-namespace remapping)"},
    {"rights", "newuidmap", see_newuidmap, "single_uid: the subordinate range cannot be used",
     "install newuidmap (package uidmap, on Fedora and RHEL shadow-utils)"},
    {"namespaces", "user namespaces", see_userns, "no job runs: isolation_unavailable", NULL},
    {"namespaces", "for everybody", see_plain_userns,
     "isle as root works, ordinary users cannot use it; no_user_namespace where the launcher "
     "cannot "
     "either",
     NULL},
    {"namespaces", "/proc", see_proc, "no job runs: each has a /proc of its own",
     "an uncovered /proc (docker --security-opt systempaths=unconfined, Kubernetes procMount: "
     "Unmasked), or start isle as root with CAP_SYS_ADMIN"},
    {"namespaces", "loopback", see_loopback,
     "no_loopback: jobs have no network at all, not even 127.0.0.1 of their own",
     "allow isle to configure network interfaces in namespaces of its own (an AppArmor or SELinux "
     "rule refuses it); the profile in deploy/apparmor does"},
    {"control groups", "hierarchies", see_groups,
     "limits of memory, processes and CPU hold by rlimits only, or not at all",
     "mount cgroup v2 for writing (a container: --cgroupns=private and a writable /sys/fs/cgroup); "
     "for an ordinary user: systemd-run --user --scope -p Delegate=yes isle ..."},
    {"control groups", "memory", see_memory, "no_cgroup_memory: memory_mb is not enforced",
     "v2: echo +memory > cgroup.subtree_control of the group above; v1: mount it, or boot with "
     "cgroup_enable=memory"},
    {"control groups", "pids", see_pids, "no_cgroup_pids: pids holds by RLIMIT_NPROC only",
     "v2: echo +pids > cgroup.subtree_control of the group above; v1: mount it"},
    {"control groups", "cpu", see_cpu, "no_cgroup_cpu: cpus is not enforced",
     "v2: echo +cpu > cgroup.subtree_control of the group above; v1: mount it "
     "(CONFIG_CFS_BANDWIDTH)"},
    {"control groups", "CPU time", see_cpu_time,
     "no_cpu_time: cpu_seconds is not enforced, CPU time is not known",
     "any writable cgroup v2 tree counts it; v1: mount cpuacct"},
    {"control groups", "io", see_io, NULL, NULL},
    {"locks", "Landlock", see_landlock, "no_landlock: no second check of file access",
     "a kernel from 5.13 on with CONFIG_SECURITY_LANDLOCK and landlock in lsm="},
    {"locks", "seccomp", see_seccomp, "no job runs: the filter is not optional",
     "a kernel with CONFIG_SECCOMP_FILTER"},
};

enum doctor_state doctor_worst(const struct doctor *d)
{
    enum doctor_state worst = DOCTOR_FINE;
    for (size_t i = 0; i < d->n; i++) {
        worst = d->rows[i].state > worst ? d->rows[i].state : worst;
    }
    return worst;
}

void doctor_examine(struct doctor *d)
{
    d->n = 0;
    host_read(d->root, &d->host);
    if (!d->tried) {
        tries_make(&d->tries);
        start_mode_find(d->root, &d->mode);
    }
    refusal_judge(&d->host, &d->tries.own, &d->own);
    refusal_judge_plain(&d->host, &d->tries, &d->plain);
    for (size_t i = 0; i < ARRAY_LEN(checks); i++) {
        const struct check *c = &checks[i];
        struct doctor_row *r = doctor_add(d, c->group, c->name);
        r->state = c->see(d, r);
        if (r->state == DOCTOR_FAILED && d->trial && d->trial->started) {
            r->state = DOCTOR_ADVICE; // what was seen outweighs what was foreseen
            DOCTOR_COST(r, "none was seen: the self-test's jobs ran");
        }
        if (r->state >= DOCTOR_ADVICE && !r->cost[0] && c->cost) {
            DOCTOR_COST(r, "%s", c->cost);
        }
        if (r->state >= DOCTOR_ADVICE && !r->fix[0] && c->fix) {
            DOCTOR_FIX(r, "%s", c->fix);
        }
    }
    doctor_programs(d);
    doctor_settings(d);
    doctor_trial(d);
}
