// inject.h: failure injection, in test builds only (meson -Dinject=true): the Nth call that can
// fail does fail, in launcher, pid 1 or pid 2, wherever it is that count. Elsewhere this is
// nothing.
#ifndef ISLE_LAUNCHER_INJECT_H
#define ISLE_LAUNCHER_INJECT_H

#include "launcher/launcher.h"

#ifdef ISLE_INJECT

// A request of its own. id: the call to fail, 0 for none; the count begins anew. The answer tells
// of the time since the last one: status 1 if a call failed, then `step` and its name in
// marks_ns[0..1]; id: calls counted. And what is there now: cpu_ns mounts, memory_peak_bytes open
// descriptors, pids_peak control groups of sandboxes in all hierarchies.
enum { INJECT_OP = 0x494e4a };

void inject_init(void);
// Calls count only between these two (in a child: from birth on).
void inject_begin(uint32_t step);
void inject_end(void);
bool inject_request(struct launcher *l, const struct plan_request *q);

#else

static inline void inject_init(void) {}
static inline void inject_begin(uint32_t step) { (void)step; }
static inline void inject_end(void) {}
static inline bool inject_request(struct launcher *l, const struct plan_request *q)
{
    (void)l;
    (void)q;
    return false;
}

#endif
#endif
