// The service gives away what it does not need, and tries whether it can have it back.
#include "base/clock.h"
#include "kernel/caps.h"
#include "kernel/landlock.h"
#include "kernel/seccomp.h"
#include "plan/plan.h"
#include "start/internal.h"

#include <asm/sockios.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

// Enough to stage into, read, and delete any workspace; good for nothing else, and lost at an exec.
static const uint32_t kept_caps =
    UINT32_C(1) << CAP_CHOWN | UINT32_C(1) << CAP_DAC_OVERRIDE | UINT32_C(1) << CAP_FOWNER;

static int bound_and_lock(struct start *s)
{
    int e = caps_bound(kept_caps);
    e = e ? e : caps_lock();
    return e ? start_fail(s, e, "bounding set and securebits") : 0;
}

static int keep_only_files(struct start *s)
{
    int e = caps_set(kept_caps);
    if (e) {
        return start_fail(s, e, "capabilities of the service");
    }
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) {
        return start_fail(s, -errno, "no_new_privs");
    }
    return 0;
}

int inner_drop(struct start *s)
{
    int e = bound_and_lock(s);
    if (e) {
        return e;
    }
    if (setresgid(PLAN_UID_SERVICE, PLAN_UID_SERVICE, PLAN_UID_SERVICE) ||
        setresuid(PLAN_UID_SERVICE, PLAN_UID_SERVICE, PLAN_UID_SERVICE)) {
        return start_fail(s, -errno, "ids of the service");
    }
    return keep_only_files(s);
}

int inner_drop_rights(struct start *s)
{
    int e = bound_and_lock(s);
    return e ? e : keep_only_files(s);
}

// What would give power over launcher, jobs or kernel. Everything else a service may need one day.
static const unsigned denied[] = {
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_chroot,
    SYS_open_tree,
    SYS_move_mount,
    SYS_fsopen,
    SYS_fsconfig,
    SYS_fsmount,
    SYS_fspick,
    SYS_mount_setattr,
    SYS_setns,
    SYS_unshare,
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_pidfd_getfd,
    SYS_kcmp,
    SYS_process_madvise,
    SYS_bpf,
    SYS_perf_event_open,
    SYS_userfaultfd,
    SYS_keyctl,
    SYS_add_key,
    SYS_request_key,
    SYS_io_uring_setup,
    SYS_io_uring_enter,
    SYS_io_uring_register,
    SYS_name_to_handle_at,
    SYS_open_by_handle_at,
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_kexec_load,
    SYS_kexec_file_load,
    SYS_reboot,
    SYS_swapon,
    SYS_swapoff,
    SYS_acct,
    SYS_quotactl,
    SYS_syslog,
    SYS_settimeofday,
    SYS_clock_settime,
    SYS_adjtimex,
    SYS_clock_adjtime,
    SYS_sethostname,
    SYS_setdomainname,
    SYS_vhangup,
    SYS_fanotify_init,
    SYS_personality,
    SYS_execve,
    SYS_execveat,
    // the front has bound what it listens on; a listener that is shut down, or a caller's
    // connection, could be connected to what the host's network has
    SYS_connect,
    SYS_bind,
    SYS_listen,
    // the ipc namespace is the host's: its programs' segments and queues, and its table's places
    SYS_shmget,
    SYS_shmat,
    SYS_shmctl,
    SYS_semget,
    SYS_semop,
    SYS_semtimedop,
    SYS_semctl,
    SYS_msgget,
    SYS_msgsnd,
    SYS_msgrcv,
    SYS_msgctl,
    SYS_mq_open,
    SYS_mq_unlink,
#ifdef SYS_modify_ldt
    SYS_modify_ldt,
    SYS_iopl,
    SYS_ioperm,
#endif
};

// What a later kernel can do is nothing that this list could have named. (The numbers from 424 on
// are the same on all architectures; Debian 12 has no names for the last of them.)
enum { NEWEST_CALL = 466 }; // removexattrat, Linux 6.13; open_tree_attr follows

// What a uid of its own forbids elsewhere: to end the launcher or a job, to slow it, to starve it.
static const unsigned denied_single[] = {
    SYS_kill,
    SYS_tkill,
    SYS_tgkill,
    SYS_rt_sigqueueinfo,
    SYS_rt_tgsigqueueinfo,
    SYS_pidfd_send_signal,
    SYS_setpriority,
    SYS_sched_setaffinity,
    SYS_sched_setscheduler,
    SYS_sched_setparam,
    SYS_sched_setattr,
    SYS_ioprio_set,
    SYS_migrate_pages,
    SYS_move_pages,
    SYS_process_mrelease,
};

// The same by way of a file, whose signals the kernel sends with the rights of who asked for them.
static const struct denied_argument {
    unsigned call, value; // of its second argument
} denied_owners[] = {
    {SYS_fcntl, F_SETOWN},
    {SYS_fcntl, F_SETOWN_EX},
    {SYS_ioctl, FIOSETOWN},
    {SYS_ioctl, SIOCSPGRP},
};

// Sending connects, too, where it is asked to.
static const struct {
    unsigned call, flags; // which argument has them
} fast_open[] = {{SYS_sendto, 3}, {SYS_sendmsg, 2}, {SYS_sendmmsg, 3}};

enum {
    N_FAST_OPEN = sizeof fast_open / sizeof *fast_open,
    N_OWNERS = sizeof denied_owners / sizeof *denied_owners,
    N_SINGLE = sizeof denied_single / sizeof *denied_single,
    N_DENIED = sizeof denied / sizeof *denied,
    NEW_NAMESPACES = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |
                     CLONE_NEWPID | CLONE_NEWNET,
};

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define JUMP(test, value, yes, no) BPF_JUMP(BPF_JMP | (test) | BPF_K, value, yes, no)
#define ANSWER(action) BPF_STMT(BPF_RET | BPF_K, action)
#define REFUSE(error) ANSWER(SECCOMP_RET_ERRNO | (error))

// Adds "these answer EPERM". Returns the new length.
static unsigned short deny(struct sock_filter *f, unsigned short n, const unsigned *calls,
                           unsigned n_calls)
{
    for (unsigned i = 0; i < n_calls; i++) {
        f[n++] = (struct sock_filter)JUMP(BPF_JEQ, calls[i], 0, 1);
        f[n++] = (struct sock_filter)REFUSE(EPERM);
    }
    return n;
}

static unsigned short deny_single(struct sock_filter *f, unsigned short n)
{
    n = deny(f, n, denied_single, N_SINGLE);
    f[n++] = (struct sock_filter)JUMP(BPF_JEQ, SYS_prlimit64, 0, 4); // its own limits only
    f[n++] = (struct sock_filter)LOAD(args[0]);
    f[n++] = (struct sock_filter)JUMP(BPF_JEQ, 0, 1, 0);
    f[n++] = (struct sock_filter)REFUSE(EPERM);
    f[n++] = (struct sock_filter)LOAD(nr);
    for (unsigned i = 0; i < N_OWNERS; i++) {
        f[n++] = (struct sock_filter)JUMP(BPF_JEQ, denied_owners[i].call, 0, 4);
        f[n++] = (struct sock_filter)LOAD(args[1]);
        f[n++] = (struct sock_filter)JUMP(BPF_JEQ, denied_owners[i].value, 0, 1);
        f[n++] = (struct sock_filter)REFUSE(EPERM);
        f[n++] = (struct sock_filter)LOAD(nr);
    }
    return n;
}

static unsigned short deny_fast_open(struct sock_filter *f, unsigned short n)
{
    for (unsigned i = 0; i < N_FAST_OPEN; i++) {
        const unsigned at = (unsigned)offsetof(struct seccomp_data, args) + fast_open[i].flags * 8;
        f[n++] = (struct sock_filter)JUMP(BPF_JEQ, fast_open[i].call, 0, 4);
        f[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at);
        f[n++] = (struct sock_filter)JUMP(BPF_JSET, MSG_FASTOPEN, 0, 1);
        f[n++] = (struct sock_filter)REFUSE(EPERM);
        f[n++] = (struct sock_filter)LOAD(nr);
    }
    return n;
}

int inner_filter(struct start *s)
{
    struct sock_filter f[(N_DENIED + N_SINGLE) * 2 + (N_OWNERS + N_FAST_OPEN) * 5 + 32];
    unsigned short n = 0;
    f[n++] = (struct sock_filter)LOAD(arch);
    f[n++] = (struct sock_filter)JUMP(BPF_JEQ, SECCOMP_ARCH, 1, 0);
    f[n++] = (struct sock_filter)ANSWER(SECCOMP_RET_KILL_PROCESS);
    f[n++] = (struct sock_filter)LOAD(nr);
    // x32's numbers too; and clone3, whose flags lie behind a pointer (libc falls back to clone)
    f[n++] = (struct sock_filter)JUMP(BPF_JGT, NEWEST_CALL, 1, 0);
    f[n++] = (struct sock_filter)JUMP(BPF_JEQ, SYS_clone3, 0, 1);
    f[n++] = (struct sock_filter)REFUSE(ENOSYS);
    n = deny(f, n, denied, N_DENIED);
    n = deny_fast_open(f, n);
    if (s->record.user == START_SINGLE) {
        n = deny_single(f, n);
    }
    f[n++] = (struct sock_filter)JUMP(BPF_JEQ, SYS_clone, 0, 3);
    f[n++] = (struct sock_filter)LOAD(args[0]);
    f[n++] = (struct sock_filter)JUMP(BPF_JSET, NEW_NAMESPACES, 0, 4);
    f[n++] = (struct sock_filter)REFUSE(EPERM);
    // The network namespace is the host's, with what listens on its loopback, metadata services,
    // the hypervisor (vsock); and who could open such a socket could hand it to a job.
    f[n++] = (struct sock_filter)JUMP(BPF_JEQ, SYS_socket, 0, 2);
    f[n++] = (struct sock_filter)LOAD(args[0]);
    f[n++] = (struct sock_filter)JUMP(BPF_JEQ, AF_UNIX, 0, 1);
    f[n++] = (struct sock_filter)ANSWER(SECCOMP_RET_ALLOW);
    f[n++] = (struct sock_filter)REFUSE(EAFNOSUPPORT);
    int e = landlock_no_abstract_sockets();
    e = e ? e : seccomp_install(f, n);
    return e ? start_fail(s, e, "filter of the service") : 0;
}

int inner_undo(struct start *s)
{
    const char *undone = NULL;
    bool mapped = s->record.user != START_SINGLE; // else it is uid 0 and stays it
    if (mapped && (!setresuid(0, 0, 0) || !seteuid(0))) {
        undone = "uid";
    } else if (mapped && !setresgid(0, 0, 0)) {
        undone = "gid";
    } else if (!caps_set(kept_caps | UINT32_C(1) << CAP_SYS_ADMIN)) {
        undone = "capabilities";
    } else if (!unshare(CLONE_NEWUSER)) {
        undone = "user namespace";
    } else if (!mount("tmpfs", "/", "tmpfs", 0, NULL)) {
        undone = "mount";
    }
    s->record.marks_ns[START_T_DROPPED] = clock_now_ns();
    return undone ? start_fail(s, 0, "the drop could be undone: %s", undone) : 0;
}
