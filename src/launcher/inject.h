// inject.h: failure injection, in test builds only (meson -Dinject=true): the Nth call that can
// fail does fail, in whichever process it is that count. Elsewhere this is nothing.
#ifndef ISLE_LAUNCHER_INJECT_H
#define ISLE_LAUNCHER_INJECT_H

#include <stdbool.h>
#include <stdint.h>

// Whose calls count, as bits.
enum inject_who {
    INJECT_LAUNCH = 1,  // steps of a launch: launcher, pid 1, pid 2
    INJECT_LOOP = 2,    // the launcher and its children otherwise, from READY on
    INJECT_SERVICE = 4, // the launcher's talk with its service
    INJECT_START = 8,   // the launcher's start
    INJECT_MAKER = 16,
    INJECT_FRONT = 32, // src/start
    INJECT_CHILD = 64,
    INJECT_INNER = 128,
    INJECT_PROBE = 256, // a child of the launcher's start: beside it, so not in one count with it
};

struct launcher;
struct plan_request;

#ifdef ISLE_INJECT

struct inject_plan {
    uint32_t who;
    uint32_t target;  // the Nth call fails; 0: none
    uint32_t lasting; // 1: and all after it
    int32_t error;    // errno; 0: it does nothing, and says 0
    uint64_t steps;   // bits: in these steps of a launch alone (the native table's, or
                      // Bubblewrap's counted from its first); 0: everywhere
    char only[16];    // calls of this name alone; "": all
    uint32_t number;  // with `only` "syscall": of this number alone; 0: all
};

// Shared by the test and all processes of an instance, so that one count goes through all of them.
struct inject_page {
    struct inject_plan now, next;
    uint32_t count, fired; // calls that counted, of them failed
    uint32_t who, step;    // of the first that failed
    char name[16];
    int32_t front;
};

// A request of its own: `next` becomes `now`, the count begins anew. The answer tells of the time
// before: id: calls counted; status: failed; `step`, and the name in marks_ns[0..1]. And what is
// there now: cpu_ns mounts, memory_peak_bytes open descriptors, pids_peak control groups of
// sandboxes in all hierarchies. signal: not 0: the ids of sandboxes begin anew soon.
enum { INJECT_OP = 0x494e4a };

// Without the page's file (inject_page_make()): injects nothing unless asked by request.
void inject_init(enum inject_who who);
// For a process that cannot open the page's file: its descriptor goes to place `at`, that of what
// counts lines (tests/coverage/counters.c) to the next one, where there are such. 0 or -errno.
int inject_pass_on(int at);
// To begin with it.
void inject_init_fd(int fd, enum inject_who who);
// From here on calls are those of `who`, in `step`. Returns what was before, for inject_back().
uint64_t inject_as(enum inject_who who, uint32_t step);
void inject_back(uint64_t before);
bool inject_request(struct launcher *l, const struct plan_request *q);
struct inject_page *inject_page_now(void); // after inject_init()

// Tests: makes the file, or removes it. Processes that start meanwhile map it.
struct inject_page *inject_page_make(void);
void inject_page_remove(void);
struct inject_page *inject_page_map(void); // NULL: none

#else

static inline void inject_init(enum inject_who who) { (void)who; }
static inline uint64_t inject_as(enum inject_who who, uint32_t step)
{
    return (void)who, (void)step, UINT64_C(0);
}
static inline void inject_back(uint64_t before) { (void)before; }
static inline int inject_pass_on(int at) { return (void)at, 0; }
static inline void inject_init_fd(int fd, enum inject_who who) { (void)fd, (void)who; }
static inline bool inject_request(struct launcher *l, const struct plan_request *q)
{
    (void)l;
    (void)q;
    return false;
}

#endif
#endif
