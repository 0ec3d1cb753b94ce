#include "host/refusal.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>

#define SYSCTL_FILE "/etc/sysctl.d/60-isle.conf"
#define PROFILE                                                                                    \
    "keep the restriction and let isle alone be free of it: cp deploy/apparmor/isle "              \
    "/etc/apparmor.d/ && apparmor_parser -r /etc/apparmor.d/isle (installed: "                     \
    "share/isle/apparmor/isle)"

const char *const refusal_names[REFUSAL_COUNT] = {
    [REFUSAL_NONE] = "none",
    [REFUSAL_NO_PROC] = "no_proc",
    [REFUSAL_KERNEL] = "kernel",
    [REFUSAL_MAXIMUM] = "max_user_namespaces",
    [REFUSAL_CLONE] = "unprivileged_userns_clone",
    [REFUSAL_APPARMOR] = "apparmor_restrict_unprivileged_userns",
    [REFUSAL_SECCOMP] = "seccomp",
    [REFUSAL_CAPABILITY] = "capability",
    [REFUSAL_CHROOT] = "chroot",
    [REFUSAL_DEPTH] = "depth",
    [REFUSAL_MODULE] = "security_module",
    [REFUSAL_UNKNOWN] = "unknown",
};

// A cause with `setting`: the fix is to set it to `value`, now and in a file.
static const struct advice {
    const char *what, *fix, *setting, *value, *instead;
    bool of_node; // in a container it is the machine's to change
} advice[REFUSAL_COUNT] = {
    [REFUSAL_NONE] = {.what = "user namespaces work", .fix = ""},
    [REFUSAL_NO_PROC] = {.what = "/proc is not mounted", .fix = "mount -t proc proc /proc"},
    [REFUSAL_KERNEL] = {.what = "this kernel has no user namespaces",
                        .fix = "a kernel with CONFIG_USER_NS=y",
                        .of_node = true},
    [REFUSAL_MAXIMUM] = {.what = "user.max_user_namespaces is used up or 0",
                         .setting = "user.max_user_namespaces",
                         .value = "10000",
                         .of_node = true},
    [REFUSAL_CLONE] = {.what = "kernel.unprivileged_userns_clone is 0",
                       .setting = "kernel.unprivileged_userns_clone",
                       .value = "1",
                       .instead = "start isle as root, which needs no such setting",
                       .of_node = true},
    [REFUSAL_APPARMOR] = {.what = "kernel.apparmor_restrict_unprivileged_userns is 1",
                          .setting = "kernel.apparmor_restrict_unprivileged_userns",
                          .value = "0",
                          .instead = PROFILE,
                          .of_node = true},
    [REFUSAL_SECCOMP] =
        {.what = "a seccomp filter of the container refuses them",
         .fix = "allow unshare, clone, clone3, setns, mount and pivot_root in its profile (docker "
                "--security-opt seccomp=FILE; Kubernetes: securityContext.seccompProfile)",
         .instead =
             "--cap-add SYS_ADMIN, with which Docker's own profile allows unshare and mount"},
    [REFUSAL_CAPABILITY] = {.what = "this root lacks CAP_SYS_ADMIN",
                            .fix = "--cap-add SYS_ADMIN (Kubernetes: "
                                   "securityContext.capabilities.add: [SYS_ADMIN])"},
    [REFUSAL_CHROOT] = {.what = "this process is in a chroot, where the kernel gives none",
                        .fix = "start isle outside of the chroot, or enter the tree by pivot_root "
                               "(systemd-nspawn, a container)"},
    [REFUSAL_DEPTH] = {.what = "user namespaces are nested too deeply (32 is the most)",
                       .fix = "start isle in an outer one"},
    [REFUSAL_MODULE] = {.what = "a security module of the kernel refuses them",
                        .fix = "allow user namespaces for isle in its policy; the kernel's audit "
                               "log names the rule",
                        .of_node = true},
    [REFUSAL_UNKNOWN] = {.what = "the kernel refuses them, and no setting says why",
                         .fix = "see the kernel's log (dmesg)"},
};

static bool has_sys_admin(const struct host *h) { return host_can(h, CAP_SYS_ADMIN); }

// The order is that of the kernel's own checks: a filter comes before the call, the settings of the
// host before a module's word.
static enum refusal_cause find_cause(const struct host *h, const struct tries_userns *t)
{
    if (t->at == TRIES_DONE) {
        return REFUSAL_NONE;
    }
    if (!h->has_proc) {
        return REFUSAL_NO_PROC;
    }
    if (!h->has_user_namespaces || (t->at == TRIES_UNSHARE && t->error == EINVAL)) {
        return REFUSAL_KERNEL;
    }
    if (h->userns_max == 0 || t->error == ENOSPC) {
        return REFUSAL_MAXIMUM;
    }
    if (t->error == EUSERS) {
        return REFUSAL_DEPTH;
    }
    if (t->at == TRIES_UNSHARE && h->userns_clone == 0 && !has_sys_admin(h)) {
        return REFUSAL_CLONE;
    }
    // older ones refuse the call, newer ones let it pass and take every capability away in it
    if (h->userns_apparmor == 1 && !has_sys_admin(h)) {
        return REFUSAL_APPARMOR;
    }
    if (h->chrooted && t->at == TRIES_UNSHARE) {
        return REFUSAL_CHROOT;
    }
    if (h->filtered && t->at == TRIES_UNSHARE && t->error != EACCES) {
        return REFUSAL_SECCOMP;
    }
    if (h->uid == 0 && !has_sys_admin(h)) {
        return REFUSAL_CAPABILITY;
    }
    return t->error == EACCES || t->at > TRIES_UNSHARE ? REFUSAL_MODULE : REFUSAL_UNKNOWN;
}

void refusal_judge(const struct host *h, const struct tries_userns *t, struct refusal *ret)
{
    struct refusal r = {.cause = find_cause(h, t)};
    const struct advice *a = &advice[r.cause];
    r.of_node = a->of_node && h->place != HOST_MACHINE;
    snprintf(r.what, sizeof r.what, "%s", a->what);
    if (r.cause == REFUSAL_MAXIMUM && h->userns_max >= 0) {
        snprintf(r.what, sizeof r.what, "user.max_user_namespaces is %lld%s",
                 (long long)h->userns_max, h->userns_max ? ", and that many are in use" : "");
    }
    if (r.cause == REFUSAL_MODULE && h->lsm[0]) {
        snprintf(r.what, sizeof r.what, "%s (%.100s)", a->what, h->lsm);
    }
    if (r.cause == REFUSAL_UNKNOWN || r.cause == REFUSAL_MODULE) {
        size_t n = strlen(r.what);
        snprintf(r.what + n, sizeof r.what - n, ": %s", strerror(t->error));
    }
    const char *where = !r.of_node             ? ""
                        : h->place == HOST_POD ? "on the node, whose setting it is: "
                                               : "on the machine outside, whose setting it is: ";
    if (a->setting) {
        snprintf(r.fix, sizeof r.fix, "%ssysctl -w %s=%s", where, a->setting, a->value);
        snprintf(r.persistent, sizeof r.persistent,
                 "echo '%s = %s' > " SYSCTL_FILE " && sysctl --system", a->setting, a->value);
    } else {
        snprintf(r.fix, sizeof r.fix, "%s%s", where, a->fix);
    }
    snprintf(r.instead, sizeof r.instead, "%s", a->instead ? a->instead : "");
    *ret = r;
}

void refusal_judge_plain(const struct host *h, const struct tries *t, struct refusal *ret)
{
    struct host plain = *h;
    plain.uid = h->uid ? h->uid : 65534; // as tries.h has it
    plain.capabilities = 0;
    refusal_judge(&plain, &t->plain, ret);
}

const char *refusal_line(const struct refusal *r, char *text, size_t size)
{
    snprintf(text, size, "user namespaces are refused: %s (to mend it: %s); isle doctor says more",
             r->what, r->fix);
    return text;
}

void refusal_find(bool or_plain, struct refusal *ret)
{
    struct host h;
    struct tries t;
    AUTO_CLOSE int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    host_read(root, &h);
    tries_make(&t);
    refusal_judge(&h, &t.own, ret);
    if (ret->cause == REFUSAL_NONE && or_plain) {
        refusal_judge_plain(&h, &t, ret);
    }
}
