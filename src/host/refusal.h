// refusal.h: what refuses user namespaces on a host, and what to do about it. Pure: from the host's
// files and from what was tried.
#ifndef ISLE_HOST_REFUSAL_H
#define ISLE_HOST_REFUSAL_H

#include "host/host.h"
#include "host/tries.h"

enum refusal_cause {
    REFUSAL_NONE,       // they work
    REFUSAL_NO_PROC,    // /proc is not mounted: nothing can be told
    REFUSAL_KERNEL,     // built without CONFIG_USER_NS
    REFUSAL_MAXIMUM,    // user.max_user_namespaces is 0, or that many are in use
    REFUSAL_CLONE,      // kernel.unprivileged_userns_clone is 0
    REFUSAL_APPARMOR,   // kernel.apparmor_restrict_unprivileged_userns is 1
    REFUSAL_SECCOMP,    // a container's filter
    REFUSAL_CAPABILITY, // a container's root without CAP_SYS_ADMIN
    REFUSAL_CHROOT,     // the kernel gives none to a process in a chroot
    REFUSAL_DEPTH,      // 32 of them are nested already
    REFUSAL_MODULE,     // another security module
    REFUSAL_UNKNOWN,
    REFUSAL_COUNT,
};
extern const char *const refusal_names[REFUSAL_COUNT]; // "none", "no_proc", "kernel"...

struct refusal {
    enum refusal_cause cause;
    char what[200];       // "kernel.unprivileged_userns_clone is 0"
    char fix[200];        // one line; what works until the next boot, where that is a setting
    char persistent[200]; // the same for good; "" where fix is for good already
    char instead[280];    // another way: the AppArmor profile; "" where there is none
    bool of_node;         // the setting belongs to the machine around this container
};

void refusal_judge(const struct host *h, const struct tries_userns *t, struct refusal *ret);

// The same of tries.plain: to processes without any right.
void refusal_judge_plain(const struct host *h, const struct tries *t, struct refusal *ret);

// What refuses them here, to this process or, with or_plain, to processes without any right.
// REFUSAL_NONE: they work. Reads the host and tries. Single-threaded callers (it forks).
void refusal_find(bool or_plain, struct refusal *ret);

// One line for an error: what refuses, the fix, "isle doctor". Returns `text`.
const char *refusal_line(const struct refusal *r, char *text, size_t size);

#endif
