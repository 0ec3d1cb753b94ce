#include "queue/names.h"

#include "base/hash.h"

#include <stdlib.h>
#include <string.h>

void names_free(struct names *t)
{
    free(t->chains);
    *t = (struct names){0};
}

static uint32_t hash_of(const char *name) { return hash_bytes(name, strlen(name)); }

static int grow(struct names *t)
{
    if (t->count < t->n_chains) {
        return 0;
    }
    size_t n = t->n_chains ? 2 * t->n_chains : 64;
    struct name_node **chains = calloc(n, sizeof(struct name_node *));
    if (!chains) {
        return t->n_chains ? 0 : -1; // longer chains will do
    }
    for (size_t i = 0; i < t->n_chains; i++) {
        for (struct name_node *e = t->chains[i], *next; e; e = next) {
            next = e->next;
            e->next = chains[e->hash % n];
            chains[e->hash % n] = e;
        }
    }
    free(t->chains);
    t->chains = chains;
    t->n_chains = n;
    return 0;
}

void *names_get(struct names *t, const char *name, size_t size)
{
    uint32_t hash = hash_of(name);
    if (grow(t) != 0) {
        return NULL;
    }
    struct name_node **chain = &t->chains[hash % t->n_chains];
    for (struct name_node *e = *chain; e; e = e->next) {
        if (e->hash == hash && strcmp(e->name, name) == 0) {
            return e;
        }
    }
    struct name_node *e = calloc(1, size);
    if (!e) {
        return NULL;
    }
    e->name = strdup(name);
    if (!e->name) {
        free(e);
        return NULL;
    }
    e->hash = hash;
    e->next = *chain;
    *chain = e;
    t->count++;
    return e;
}

void names_drop(struct names *t, struct name_node *n)
{
    struct name_node **link = &t->chains[n->hash % t->n_chains];
    while (*link != n) {
        link = &(*link)->next;
    }
    *link = n->next;
    t->count--;
    free(n->name);
    free(n);
}
