// host.h: what a host is and allows, as far as its files tell: pure functions on a folder that
// stands for "/", the host's own or a made-up tree of a test. What must be tried is in tries.h;
// what both mean for user namespaces in refusal.h.
#ifndef ISLE_HOST_HOST_H
#define ISLE_HOST_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HOST_NO_VALUE INT64_MIN // a control file that is not there or holds no number

enum host_place {
    HOST_MACHINE, // a machine or a virtual one: its settings are ours to change
    HOST_CONTAINER,
    HOST_POD, // a container of Kubernetes
};

enum host_cgroups { HOST_CGROUPS_NONE, HOST_CGROUPS_V1, HOST_CGROUPS_V2, HOST_CGROUPS_HYBRID };
extern const char *const host_cgroups_names[]; // "none", "v1", "v2", "hybrid"

struct host {
    // the system
    char kernel[65];       // "6.1.0-28-amd64"
    uint32_t version;      // host_version(6, 1); 0: not known
    char machine[65];      // "x86_64"
    char distribution[96]; // "Debian GNU/Linux 12 (bookworm)"; "" where no file tells
    enum host_place place;
    char container[24]; // "docker", "podman", "lxc"...; "" on a machine
    bool wsl;
    char lsm[160]; // "lockdown,capability,landlock,yama,apparmor"; "" where it cannot be read

    // this process (proc/self/status)
    bool has_proc;               // /proc is mounted: without it, nothing of this part is known
    uint32_t uid;                // effective
    uint64_t capabilities;       // effective
    bool no_new_privs, filtered; // filtered: under a seccomp filter
    bool chrooted;
    bool initial_ids; // all ids are mapped: the initial user namespace, or as good
    uint64_t mapped_ids;
    bool proc_masked, proc_sys_read_only;

    // user namespaces; HOST_NO_VALUE: this kernel has no such setting
    bool has_user_namespaces; // /proc/self/ns/user
    int64_t userns_clone;     // kernel.unprivileged_userns_clone
    int64_t userns_apparmor;  // kernel.apparmor_restrict_unprivileged_userns
    int64_t userns_max;       // user.max_user_namespaces

    // control groups
    enum host_cgroups cgroups;
    bool cgroups_writable; // at least one hierarchy is mounted for writing
    char controllers[192]; // "memory,pids,cpu,cpuacct,io": of all hierarchies, by their v1 names
};

// Fills *ret. Never fails: what cannot be read is absent.
void host_read(int root, struct host *ret);

static inline uint32_t host_version(unsigned major, unsigned minor)
{
    return (uint32_t)major << 16 | minor;
}

// Capability number `cap` (linux/capability.h) is effective.
static inline bool host_can(const struct host *h, unsigned cap)
{
    return h->capabilities >> cap & 1;
}

// Is `word` in a list whose words are separated by commas or blanks?
bool host_lists(const char *list, const char *word);

// One line of proc_pid_mountinfo(5): "36 35 98:0 /root /mount/point rw,noatime master:1 - type
// source rw,options". Paths as written there: blanks and the like are \ooo.
struct host_mount {
    char from[1024], point[1024], options[256], type[32], super[512];
};
// Calls `what` for each mount below root's /proc that this process sees, in the file's order; only
// those whose type begins with `type`.
void host_each_mount(int root, const char *type,
                     void (*what)(void *ctx, const struct host_mount *m), void *ctx);

// The number in the file `path` below root, or HOST_NO_VALUE.
int64_t host_number(int root, const char *path);

// Is the file system at `path` mounted noexec, and stays so for jobs? Host root takes that off the
// mounts that sandboxes get (start/child.c); an account, and root of a container with a user
// namespace of its own, cannot.
bool host_stays_noexec(const char *path);

#endif
