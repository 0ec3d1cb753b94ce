// landlock.h: a second fence that does not depend on mounts (landlock(7)). Rules hold inodes:
// whatever is mounted after a rule was made is not covered by it. Async-signal-safe.
#ifndef ISLE_KERNEL_LANDLOCK_H
#define ISLE_KERNEL_LANDLOCK_H

#include <stdint.h>

// Sets of rights (LANDLOCK_ACCESS_FS_*), by purpose.
enum {
    LANDLOCK_LIST = 1 << 3,                    // read a folder
    LANDLOCK_READ = 1 << 2 | 1 << 3,           // and files
    LANDLOCK_RUN = 1 << 0 | 1 << 2 | 1 << 3,   // and execute
    LANDLOCK_NODE = 1 << 1 | 1 << 2 | 1 << 15, // a device: read, write, ioctl
    // All but making device nodes. REFER included: else a rename between folders is EXDEV.
    LANDLOCK_ALL = 0xffff & ~(1 << 6) & ~(1 << 11),
};

enum { LANDLOCK_ABI_SCOPES = 6 }; // from here on abstract sockets and signals can be fenced off

// Version of the kernel's interface; 0: none.
int landlock_abi(void);
// A ruleset that handles everything this version knows, and fences abstract sockets and signals
// off where it can. Descriptor or -errno.
int landlock_new(int abi);
// Allows `access` beneath `path`. 0 or -errno.
int landlock_allow(int ruleset, int abi, const char *path, uint64_t access);
// Confines this thread and its children. Needs no_new_privs. 0 or -errno.
int landlock_enter(int ruleset);
// Keeps this thread and its children from the abstract sockets of everybody else, where the kernel
// can (version 6, Linux 6.12). Needs no_new_privs. 0 or -errno.
int landlock_no_abstract_sockets(void);

#endif
