// tries.h: what this process may do, found out by doing it, in children that are gone afterwards.
// Nothing outside them changes.
#ifndef ISLE_HOST_TRIES_H
#define ISLE_HOST_TRIES_H

#include <stdbool.h>

// How far a try of a user namespace came.
enum tries_step {
    TRIES_UNSHARE, // unshare(CLONE_NEWUSER)
    TRIES_MAP,     // its id map, written by itself
    TRIES_MOUNT,   // and its capabilities count: a mount in it
    TRIES_DONE,
};

struct tries_userns {
    enum tries_step at; // the step that was refused; TRIES_DONE: none
    int error;          // positive errno of it; 0
};

struct tries {
    struct tries_userns own;   // as this process is
    struct tries_userns plain; // as a user without a right: what the host lets everybody do. Only
                               // tried as root with CAP_SETUID; else as `own`
    int proc;                  // positive errno of mounting a /proc the way isle does it; 0: works
    int loopback;              // likewise of bringing up the loopback of a new network namespace
    int landlock;              // version; 0: none
    bool seccomp;              // filters can be installed
};

// Single-threaded callers only (it forks). Takes some milliseconds.
void tries_make(struct tries *ret);

#endif
