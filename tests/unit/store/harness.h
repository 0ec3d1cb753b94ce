// harness.h: a store in a folder of its own, called as if it answered at once.
#ifndef STORE_HARNESS_H
#define STORE_HARNESS_H

#include "io/loop.h"
#include "store/store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

// How one implementation is opened; `place` is an empty folder at first, and is opened again and
// again by the same test. now_ms: the simulated clock.
typedef int (*harness_open)(struct loop *l, const char *place, int64_t now_ms, struct store **ret);

struct harness {
    harness_open open;
    struct loop *loop;
    struct store *store;
    char place[64];
    int64_t now_ms;
};

void harness_start(struct harness *h, harness_open how);
void harness_reopen(struct harness *h); // closes and opens
void harness_end(struct harness *h);    // closes and removes the folder
void harness_remove(const char *folder);

static inline struct store_text text(const char *s)
{
    return s ? (struct store_text){s, strlen(s)} : (struct store_text){0};
}
#define SAME(t, s) assert_true((t).len == strlen(s) && memcmp((t).data, s, (t).len) == 0)

// Hands a write in and waits for its answer.
struct store_outcome harness_write(struct harness *h, const struct store_write *w);
// A job or session by its texts.
struct store_outcome harness_submit(struct harness *h, const char *id, const char *team,
                                    const char *request);
int harness_status(struct harness *h, const char *id, enum job_status status);
int harness_finish(struct harness *h, const char *id, enum job_status status, const char *result);

// The rows of a query; texts are copied. Freed by the next query.
struct rows {
    struct store_record *at;
    size_t n;
    int end;
};
const struct rows *harness_read(struct harness *h, const struct store_query *q);
const struct store_record *harness_one(struct harness *h, enum store_read_kind kind, const char *id,
                                       const char *team);

// The suite; `state` of each test is a struct harness.
extern const struct CMUnitTest contract_jobs[], contract_rest[], contract_tools[];
extern const size_t n_contract_jobs, n_contract_rest, n_contract_tools;

#endif
