// caps.h: capabilities and securebits (capabilities(7)). Async-signal-safe. 0 or -errno.
// A mask has bit 1 << CAP_X; all that isle keeps are below 32.
#ifndef ISLE_KERNEL_CAPS_H
#define ISLE_KERNEL_CAPS_H

#include <linux/capability.h>
#include <linux/securebits.h>
#include <stdint.h>

// A uid gives no capability any more: not at exec (NOROOT), not by setresuid (NO_SETUID_FIXUP,
// which also keeps those held over a change to another uid), not as ambient ones. All locked.
enum {
    CAPS_SECUREBITS = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |
                      SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE |
                      SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED | SECBIT_KEEP_CAPS_LOCKED,
};

// Permitted and effective become exactly `mask`; inheritable and ambient empty.
int caps_set(uint32_t mask);

// What the calling process has in effect; 0 if the kernel does not say.
uint64_t caps_effective(void);

// The bounding set down to `mask`. Needs CAP_SETPCAP, so before capabilities or uid go.
int caps_bound(uint32_t mask);

// Sets CAPS_SECUREBITS. Needs CAP_SETPCAP.
int caps_lock(void);

#endif
