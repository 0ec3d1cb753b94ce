#include "codec/json_out.h"
#include "model/result.h"
#include "plan/plan.h"

const struct downgrade downgrades[] = {
    {PLAN_NO_USER_NAMESPACE, "no_user_namespace",
     "jobs stay in the sandbox's outer user namespace, without any capability",
     "allow user namespaces (sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone=1)"},
    {PLAN_NO_LANDLOCK, "no_landlock", "no second check of file access besides the mounts",
     "a kernel from 5.13 on with landlock in its lsm= list"},
    {PLAN_NO_CGROUP_MEMORY, "no_cgroup_memory", "memory_mb is not enforced for the job as a whole",
     "give isle the memory controller (cgroup v2 delegation, or a writable v1 hierarchy)"},
    {PLAN_NO_CGROUP_PIDS, "no_cgroup_pids", "pids is not enforced for the job as a whole",
     "give isle the pids controller"},
    {PLAN_NO_CGROUP_CPU, "no_cgroup_cpu", "cpus is not enforced", "give isle the cpu controller"},
    {PLAN_NO_CPU_TIME, "no_cpu_time",
     "cpu_seconds is not enforced, and the CPU time of a job is not known",
     "give isle the cpuacct (v1) or cpu (v2) controller"},
    {PLAN_SINGLE_UID, "single_uid", "isle and all jobs share one user id of the host",
     "start as root, or give the user a range in /etc/subuid and /etc/subgid"},
    {PLAN_SECCOMP_ALLOW, "seccomp_allow", "jobs may make system calls that the policy refuses",
     "unset SANDBOX_SECCOMP_ALLOW"},
    {PLAN_HOST_NETWORK, "network_host",
     "the job reaches what this host reaches: its loopback, its network, metadata services",
     "--network none; unset SANDBOX_NETWORK_ALLOW_HOST and SANDBOX_NETWORK_DEFAULT"},
    {PLAN_ABSTRACT_SOCKETS, "abstract_sockets",
     "a job with the host's network reaches sockets of the host under abstract names",
     "Linux 6.12 or newer with Landlock (version 6), or --network none"},
    {PLAN_NO_LOOPBACK, "no_loopback",
     "jobs have no network at all, not even a loopback of their own",
     "let isle configure interfaces of its own network namespaces (a security module refuses it; "
     "deploy/apparmor)"},
    {PLAN_NO_ISOLATION, "no_isolation",
     "the job ran without namespaces: a uid of its own, limits and filters are all that stood "
     "around "
     "it (isolation.level is none)",
     "unset SANDBOX_FILESYSTEM_ISOLATION_ENABLED and SANDBOX_LEGACY_FALLBACK_ENABLED"},
    {PLAN_OLD_BWRAP, "old_bubblewrap",
     "the sandbox is made by a Bubblewrap with known holes (before 0.12.0: CVE-2026-87766)",
     "Bubblewrap 0.12.0 or newer (the runtime root's: unset SANDBOX_FILESYSTEM_ISOLATION_BINARY), "
     "or isle's own launcher"},
};
const size_t n_downgrades = sizeof downgrades / sizeof *downgrades;

void downgrades_write(struct buf *out, const char *key, uint32_t bits)
{
    json_begin(out, key, '[');
    for (size_t i = 0; i < n_downgrades; i++) {
        if (bits & downgrades[i].bit) {
            json_put_text(out, NULL, downgrades[i].name);
        }
    }
    json_end(out, ']');
}
