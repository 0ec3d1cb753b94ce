#include "kernel/landlock.h"

#include "base/fd.h"
#include "kernel/sys.h"

#include <stddef.h>

// Debian 12's header ends at version 2: the structures as they are today.
struct ruleset_attr {
    uint64_t fs, net, scoped;
};
struct path_beneath {
    uint64_t access;
    int32_t parent;
} __attribute__((packed));

enum { CREATE_VERSION = 1, RULE_PATH_BENEATH = 1, SCOPE_ABSTRACT = 1, SCOPE_ALL = 3 };

int landlock_abi(void)
{
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, CREATE_VERSION);
    return abi < 0 ? 0 : (int)abi;
}

static uint64_t handled(int abi)
{
    if (abi >= 5) {
        return 0xffff; // device ioctls
    }
    if (abi >= 3) {
        return 0x7fff; // truncation
    }
    return abi == 2 ? 0x3fff : 0x1fff; // moves between folders
}

int landlock_new(int abi)
{
    struct ruleset_attr a = {.fs = handled(abi), .scoped = abi >= 6 ? SCOPE_ALL : 0};
    // a longer structure than the kernel knows is accepted only if its tail is zero: pass its own
    size_t size = abi >= 6 ? sizeof a : offsetof(struct ruleset_attr, net);
    return sys_result(syscall(SYS_landlock_create_ruleset, &a, size, 0));
}

int landlock_allow(int ruleset, int abi, const char *path, uint64_t access)
{
    AUTO_CLOSE int fd = open(path, O_PATH | O_CLOEXEC);
    if (fd < 0) {
        return -errno;
    }
    struct path_beneath b = {.access = access & handled(abi), .parent = fd};
    return sys_result(syscall(SYS_landlock_add_rule, ruleset, RULE_PATH_BENEATH, &b, 0));
}

int landlock_enter(int ruleset)
{
    return sys_result(syscall(SYS_landlock_restrict_self, ruleset, 0));
}

int landlock_no_abstract_sockets(void)
{
    if (landlock_abi() < 6) {
        return 0;
    }
    struct ruleset_attr a = {.scoped = SCOPE_ABSTRACT};
    AUTO_CLOSE int ruleset = sys_result(syscall(SYS_landlock_create_ruleset, &a, sizeof a, 0));
    return ruleset < 0 ? ruleset : landlock_enter(ruleset);
}
