// names.h: records that are found by name, such as teams and sessions.
#ifndef ISLE_QUEUE_NAMES_H
#define ISLE_QUEUE_NAMES_H

#include <stddef.h>
#include <stdint.h>

// The first member of each record.
struct name_node {
    struct name_node *next;
    char *name;
    uint32_t hash;
};

// Chains; their number grows with the records. Teams are named by the operator and sessions by the
// service, so nobody chooses names that fall into one chain.
struct names {
    struct name_node **chains;
    size_t n_chains, count;
};

void names_free(struct names *t); // the chains only, not the records

// The record of this name, or a new zeroed one of `size` bytes, which names_drop() frees. NULL
// without memory.
void *names_get(struct names *t, const char *name, size_t size);
void names_drop(struct names *t, struct name_node *n);

#endif
