// steps.h: the launch of a sandbox as data: every step, in its order, with where it runs and why it
// stands there. The launcher walks this list (launcher/steps.c gives each its function step_ID()),
// plan_record.step indexes it, `isle run --show-plan` prints it, and a test holds its order to the
// rules.
//
// Between the phases a sandbox is parked: phase one knows nothing of the job.
#ifndef ISLE_PLAN_STEPS_H
#define ISLE_PLAN_STEPS_H

enum plan_phase { PLAN_PHASE_ONE = 1, PLAN_PHASE_TWO };

enum plan_where {
    PLAN_IN_LAUNCHER, // inner root, the launcher's own namespaces
    PLAN_IN_PID1,     // becomes the shim
    PLAN_IN_PID2,     // becomes the job's program
    PLAN_IN_BWRAP,    // becomes Bubblewrap
};

// X(id, phase, where, why here)
#define PLAN_STEPS(X)                                                                              \
    X(slot, ONE, LAUNCHER, "a bound on sandboxes comes before any cost of one")                    \
    X(groups, ONE, LAUNCHER, "limits exist before the first process they are for")                 \
    X(channels, ONE, LAUNCHER, "pid 1 and pid 2 report over sockets made before they are born")    \
    X(clone, ONE, LAUNCHER,                                                                        \
      "pid, ipc, uts namespaces and the v2 group come with birth: a process that unshares its "    \
      "pid namespace stays outside it")                                                            \
    X(pid1_descriptors, ONE, PID1,                                                                 \
      "nothing of the launcher stays open in a sandbox: not its sockets, groups, lock")            \
    X(pid1_parent_death, ONE, PID1, "from here on the sandbox cannot outlive its launcher")        \
    X(join_groups, ONE, PID1,                                                                      \
      "while the uid still is the one that opened the files: later it is EACCES")                  \
    X(cgroup_namespace, ONE, PID1, "after joining, so that its root is the job's own group")       \
    X(proc, ONE, PID1,                                                                             \
      "in the new pid namespace, but still in the launcher's mounts: only where a full /proc is "  \
      "to be seen may another be made")                                                            \
    X(root, ONE, PID1, "into the template: from here on there is no path to the launcher's tree")  \
    X(network, ONE, PID1, "one made ahead is entered before pid 2 is born, which shares it")       \
    X(fork, ONE, PID1, "pid 2 leaves while pid 1 may still give it a privileged start")            \
    X(shim_capabilities, ONE, PID1,                                                                \
      "the bounding set goes while there still is a right to cut it")                              \
    X(shim_identity, ONE, PID1, "a uid of its own: neither the launcher nor the job can touch it") \
    X(shim_parent_death, ONE, PID1, "the change of uid has cleared it")                            \
    X(shim_no_new_privs, ONE, PID1, "before the shim's own filter, which needs it")                \
    X(shim_exec, ONE, PID1,                                                                        \
      "a sealed program that was never dumpable replaces the launcher's copy")                     \
    X(session, ONE, PID2, "no terminal, no process group, no report pipe of others")               \
    X(mounts, ONE, PID2, "a copy of the template that is this job's alone")                        \
    X(mount_proc, ONE, PID2, "read-only for the job")                                              \
    X(mask_proc, ONE, PID2, "covered before anybody but us can look; by what /tmp covers next")    \
    X(network_files, ONE, PID2, "from below /tmp too, where jobs may have the host's network")     \
    X(mount_tmp, ONE, PID2, "every mount target exists before anything of a user is mounted")      \
    X(mount_shm, ONE, PID2, "in the sandbox's own memory group, bounded")                          \
    X(loopback, ONE, PID2, "as inner root, which owns the network namespace")                      \
    X(hostname, ONE, PID2, "as inner root, which owns the uts namespace")                          \
    X(oom_score, ONE, PID2, "the kernel kills the job before its shim")                            \
    X(landlock_rules, ONE, PID2, "after the mounts: rules hold inodes, not paths")                 \
    X(park, ONE, PID2, "all that needs no knowledge of the job is done")                           \
    X(check, TWO, LAUNCHER, "nothing the service says is believed")                                \
    X(workspace, TWO, LAUNCHER, "opened by name beneath the launcher's own mount, owner checked")  \
    X(session_tmp, TWO, LAUNCHER, "a session's /tmp lies beside its workspace")                    \
    X(package_sets, TWO, LAUNCHER, "only sets that were checked when they were registered")        \
    X(limits, TWO, LAUNCHER, "before the program: it never runs unlimited")                        \
    X(order, TWO, LAUNCHER, "pid 2 gets mounts and descriptors, never a path")                     \
    X(receive, TWO, PID2, "still inner root: it mounts next")                                      \
    X(size_tmp, TWO, PID2, "the job's own bound, before the job can write")                        \
    X(identity_files, TWO, PID2, "without a user namespace the job's real uid needs its line")     \
    X(mount_sets, TWO, PID2, "read-only mounts, into folders that the template made")              \
    X(mount_workspace, TWO, PID2, "last of the mounts: no target can lie inside a tenant's tree")  \
    X(landlock_workspace, TWO, PID2, "what was mounted in this phase has no rule yet")             \
    X(arguments, TWO, PID2, "copied by the process that will use them, by nobody else")            \
    X(user_namespace, TWO, PID2,                                                                   \
      "last of the namespaces: the others belong to the outer one, so no capability in this one "  \
      "reaches them")                                                                              \
    X(seal_namespaces, TWO, PID2, "the job's namespace can have no child")                         \
    X(keyring, TWO, PID2, "after the identity: keys are counted per uid")                          \
    X(capabilities, TWO, PID2, "a new user namespace has refilled the bounding set")               \
    X(rlimits, TWO, PID2,                                                                          \
      "after the namespace: what was set when it was made would bound all jobs together")          \
    X(descriptors, TWO, PID2, "0 to 3 and nothing else survives")                                  \
    X(pid2_parent_death, TWO, PID2, "the change of uid has cleared it")                            \
    X(chdir, TWO, PID2, "inside the new root, with the job's own rights")                          \
    X(no_new_privs, TWO, PID2, "before Landlock and the filter, which need it")                    \
    X(landlock, TWO, PID2, "after the last mount and the last privileged open")                    \
    X(filter, TWO, PID2, "last: it takes away the calls that all steps above needed")              \
    X(exec, TWO, PID2, "only now does a byte of the tenant decide anything")

// The same with Bubblewrap, which makes the namespaces and mounts; what stands around it is isle's.
// Phase one ends when the first process inside, which is isle's, has proven where it is; until then
// nothing of the tenant's but the workspace's mount was given to anybody.
#define PLAN_BWRAP_STEPS(X)                                                                        \
    X(check, ONE, LAUNCHER, "nothing the service says is believed")                                \
    X(slot, ONE, LAUNCHER, "a bound on sandboxes comes before any cost of one")                    \
    X(groups, ONE, LAUNCHER, "limits exist before the first process they are for")                 \
    X(channels, ONE, LAUNCHER, "what is inside reports over sockets made before it is born")       \
    X(workspace, ONE, LAUNCHER, "opened by name beneath the launcher's own mount, owner checked")  \
    X(session_tmp, ONE, LAUNCHER, "a session's /tmp lies beside its workspace")                    \
    X(package_sets, ONE, LAUNCHER, "only sets that were checked when they were registered")        \
    X(limits, ONE, LAUNCHER, "before Bubblewrap: neither it nor the program runs unlimited")       \
    X(papers, ONE, LAUNCHER,                                                                       \
      "Bubblewrap's arguments and filter in sealed files: its command line shows nothing")         \
    X(clone, ONE, LAUNCHER,                                                                        \
      "a pid namespace around Bubblewrap: whatever it leaves behind ends with it")                 \
    X(parent_death, ONE, BWRAP, "from here on the sandbox cannot outlive its launcher")            \
    X(join_groups, ONE, BWRAP,                                                                     \
      "while the uid still is the one that opened the files: later it is EACCES")                  \
    X(tree, ONE, BWRAP,                                                                            \
      "a tree with Bubblewrap, the model of a root and nothing of the launcher's")                 \
    X(mounts, ONE, BWRAP,                                                                          \
      "workspace, sets, /tmp and /dev/shm with their sizes, which Bubblewrap cannot set in full")  \
    X(oom_score, ONE, BWRAP, "the kernel ends a job before anything of the host")                  \
    X(identity, ONE, BWRAP, "the workspace's uid, without a right: Bubblewrap is never root")      \
    X(parent_death_again, ONE, BWRAP, "the change of uid has cleared it")                          \
    X(keyring, ONE, BWRAP, "after the identity: keys are counted per uid")                         \
    X(no_new_privs, ONE, BWRAP, "a set-uid mode of the program means nothing any more")            \
    X(descriptors, ONE, BWRAP, "its papers, one socket, and nothing of the job's")                 \
    X(exec, ONE, BWRAP, "with an empty environment")                                               \
    X(bubblewrap, ONE, BWRAP, "namespaces, mounts, filter; then it executes isle's first process") \
    X(verify, ONE, PID1,                                                                           \
      "what Bubblewrap was asked for is looked for, not believed: identity, namespaces, mounts, "  \
      "capabilities, filter")                                                                      \
    X(order, TWO, LAUNCHER, "only now the job's descriptors leave the launcher")                   \
    X(receive, TWO, PID1, "the first process tells that it is there, and waits")                   \
    X(fork, TWO, PID1, "the job is pid 2: the first process reaps and reports")                    \
    X(shim_exec, TWO, PID1, "a sealed program that was never dumpable replaces it")                \
    X(session, TWO, PID2, "no report socket of others")                                            \
    X(landlock_rules, TWO, PID2, "after all mounts: rules hold inodes, not paths")                 \
    X(park, TWO, PID2, "the launcher learns its pid")                                              \
    X(arguments, TWO, PID2, "copied by the process that will use them, by nobody else")            \
    X(rlimits, TWO, PID2, "what Bubblewrap has no option for")                                     \
    X(job_descriptors, TWO, PID2, "0 to 3 and nothing else survives")                              \
    X(chdir, TWO, PID2, "inside the new root, with the job's own rights")                          \
    X(landlock, TWO, PID2, "after the last open of our own")                                       \
    X(filter, TWO, PID2, "the policy's second stage: what the steps above needed, too")            \
    X(program, TWO, PID2, "only now does a byte of the tenant decide anything")

// Without namespaces, where an operator asked for that: one uid, its limits and its filters are all
// that stands around a job. The mount namespace is there for the sake of paths: each job has its
// own /workspace and /tmp. Steps of the native table keep their names; those of this table's own
// are named for what they do instead.
#define PLAN_PLAIN_STEPS(X)                                                                        \
    X(allowed, ONE, LAUNCHER, "an operator's decision, fixed at the start: no plan can make it")   \
    X(slot, ONE, LAUNCHER, "a bound on jobs comes before any cost of one")                         \
    X(groups, ONE, LAUNCHER, "limits exist before the first process they are for")                 \
    X(channels, ONE, LAUNCHER, "both processes report over sockets made before they are born")     \
    X(born_plain, ONE, LAUNCHER, "a child in no namespace of its own; into the v2 group by birth") \
    X(pid1_descriptors, ONE, PID1,                                                                 \
      "nothing of the launcher stays open in a job: not its sockets, groups, lock")                \
    X(pid1_parent_death, ONE, PID1, "from here on the shim cannot outlive its launcher")           \
    X(join_groups, ONE, PID1,                                                                      \
      "while the uid still is the one that opened the files: later it is EACCES")                  \
    X(reaper, ONE, PID1,                                                                           \
      "orphans come to the shim, as they would come to pid 1 of a namespace of their own")         \
    X(full_proc, ONE, PID1, "opened while it is to be seen, for the order in which memory ends")   \
    X(root, ONE, PID1, "into the model of a root: from here on no path leads to the launcher's")   \
    X(fork, ONE, PID1, "the job leaves while there still is a right to start it")                  \
    X(shim_capabilities, ONE, PID1,                                                                \
      "the bounding set goes while there still is a right to cut it")                              \
    X(shim_identity, ONE, PID1, "a uid of its own: neither the launcher nor the job can touch it") \
    X(shim_parent_death, ONE, PID1, "the change of uid has cleared it")                            \
    X(shim_no_new_privs, ONE, PID1, "before the shim's own filter, which needs it")                \
    X(shim_exec_plain, ONE, PID1, "it is told whose end to report: there is no pid 2 here")        \
    X(session, ONE, PID2, "no terminal, no process group, no report pipe of others")               \
    X(mounts, ONE, PID2, "a copy of the model, so that /workspace is this job's")                  \
    X(network_files, ONE, PID2, "the network is the host's: its names, from below /tmp")           \
    X(mount_tmp, ONE, PID2, "every mount target exists before anything of a user is mounted")      \
    X(mount_shm, ONE, PID2, "in the job's own memory group, bounded")                              \
    X(oom_score, ONE, PID2, "the kernel ends the job before its shim")                             \
    X(landlock_rules, ONE, PID2, "after the mounts: rules hold inodes, not paths")                 \
    X(park, ONE, PID2, "the launcher learns its pid")                                              \
    X(check, TWO, LAUNCHER, "nothing the service says is believed")                                \
    X(workspace, TWO, LAUNCHER, "opened by name beneath the launcher's own mount, owner checked")  \
    X(session_tmp, TWO, LAUNCHER, "a session's /tmp lies beside its workspace")                    \
    X(package_sets, TWO, LAUNCHER, "only sets that were checked when they were registered")        \
    X(limits, TWO, LAUNCHER, "before the program: it never runs unlimited")                        \
    X(order, TWO, LAUNCHER, "the job's process gets mounts and descriptors, never a path")         \
    X(receive, TWO, PID2, "still inner root: it mounts next")                                      \
    X(size_tmp, TWO, PID2, "the job's own bound, before the job can write")                        \
    X(identity_files, TWO, PID2, "the job's real uid needs its line")                              \
    X(mount_sets, TWO, PID2, "read-only mounts, into folders that the template made")              \
    X(mount_workspace, TWO, PID2, "last of the mounts: no target can lie inside a tenant's tree")  \
    X(landlock_workspace, TWO, PID2, "what was mounted in this phase has no rule yet")             \
    X(arguments, TWO, PID2, "copied by the process that will use them, by nobody else")            \
    X(identity, TWO, PID2, "the workspace's uid, in the namespace of all of them")                 \
    X(keyring, TWO, PID2, "after the identity: keys are counted per uid")                          \
    X(capabilities, TWO, PID2, "tried, not believed: nothing can be had back")                     \
    X(rlimits, TWO, PID2, "for each process, what no group limits")                                \
    X(descriptors, TWO, PID2, "0 to 3 and nothing else survives")                                  \
    X(pid2_parent_death, TWO, PID2, "the change of uid has cleared it")                            \
    X(chdir, TWO, PID2, "with the job's own rights")                                               \
    X(no_new_privs, TWO, PID2, "before Landlock and the filters, which need it")                   \
    X(landlock, TWO, PID2, "after the last mount and the last privileged open")                    \
    X(no_shared_ipc, TWO, PID2,                                                                    \
      "what would outlive the job in the host's ipc namespace; before the filter, which lets "     \
      "nobody add one")                                                                            \
    X(filter, TWO, PID2, "last: it takes away the calls that all steps above needed")              \
    X(exec, TWO, PID2, "only now does a byte of the tenant decide anything")

enum plan_step {
#define PLAN_STEP_ENUM(id, phase, where, why) PLAN_STEP_##id,
    PLAN_STEPS(PLAN_STEP_ENUM)
#undef PLAN_STEP_ENUM
        PLAN_N_STEPS,
    // Not a step: the sandbox failed after its launch.
    PLAN_STEP_end = PLAN_N_STEPS, // its shim died without a report
    PLAN_STEP_NAMES,
    PLAN_BSTEP_FIRST = 256,
    PLAN_PSTEP_FIRST = 512,
};

enum plan_bwrap_step {
    PLAN_BSTEP_before = PLAN_BSTEP_FIRST - 1,
#define PLAN_BSTEP_ENUM(id, phase, where, why) PLAN_BSTEP_##id,
    PLAN_BWRAP_STEPS(PLAN_BSTEP_ENUM)
#undef PLAN_BSTEP_ENUM
        PLAN_BSTEP_END,
    PLAN_N_BWRAP_STEPS = PLAN_BSTEP_END - PLAN_BSTEP_FIRST,
};

enum plan_plain_step {
    PLAN_PSTEP_before = PLAN_PSTEP_FIRST - 1,
#define PLAN_PSTEP_ENUM(id, phase, where, why) PLAN_PSTEP_##id,
    PLAN_PLAIN_STEPS(PLAN_PSTEP_ENUM)
#undef PLAN_PSTEP_ENUM
        PLAN_PSTEP_END,
    PLAN_N_PLAIN_STEPS = PLAN_PSTEP_END - PLAN_PSTEP_FIRST,
};

struct plan_step_info {
    const char *name, *why;
    enum plan_phase phase;
    enum plan_where where;
};

extern const struct plan_step_info plan_steps[PLAN_N_STEPS];
extern const struct plan_step_info plan_bwrap_steps[PLAN_N_BWRAP_STEPS];
extern const struct plan_step_info plan_plain_steps[PLAN_N_PLAIN_STEPS];

// Name of a record's step, "end" included; "?" for a number that is none.
const char *plan_step_name(unsigned step);

// A record's step as far as a verdict needs to tell: the same for all ways of launching.
enum plan_step_kind {
    PLAN_KIND_SETUP,   // the sandbox could not be made
    PLAN_KIND_CHDIR,   // the job's working folder
    PLAN_KIND_PROGRAM, // the job's program
    PLAN_KIND_AFTER,   // the sandbox was lost later
};
enum plan_step_kind plan_step_kind(unsigned step);
static inline int plan_step_is_bwrap(unsigned step)
{
    return step >= PLAN_BSTEP_FIRST && step < PLAN_BSTEP_END;
}
static inline int plan_step_is_plain(unsigned step)
{
    return step >= PLAN_PSTEP_FIRST && step < PLAN_PSTEP_END;
}

#endif
