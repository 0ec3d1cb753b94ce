// planted.h: things put on the host for the attacks of the self-test to find, and to be looked at
// afterwards: a readable file, listeners, shared memory. What this user may not make is left out.
#ifndef ISLE_DOCTOR_PLANTED_H
#define ISLE_DOCTOR_PLANTED_H

#include "base/buf.h"

#include <stdint.h>

struct planted {
    char token[33];         // random: in every name, and what the file holds
    char file[64];          // "": none
    int listener, abstract; // sockets, -1: none
    uint16_t port;
    int shm, shm_key; // -1: none
};

// 0 or -errno: without randomness nothing can be told apart.
int planted_put(struct planted *ret);
void planted_remove(struct planted *p);

// The attacks' `params`, as JSON. 0 or -errno.
int planted_write(struct buf *out, const struct planted *p);

// What an attack left or reached, in words; ret_found stays as it is when there is nothing.
void planted_look_network(const struct planted *p, char *ret_found, size_t size);
void planted_look_marker(const struct planted *p, const char *runtime_root, char *ret_found,
                         size_t size);

#endif
