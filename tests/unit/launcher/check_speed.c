// Where the time of a launch goes. Not a test: run by hand as `test_launcher LIBEXEC speed`.
#include "base/clock.h"
#include "base/fd.h"
#include "checks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 200 };

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static double middle(uint64_t *values, int n)
{
    qsort(values, (size_t)n, sizeof *values, by_value);
    return (double)values[n / 2] / 1e6;
}

// Median of each stretch between marks, and of the whole as the service sees it.
static void rounds(struct client *c, bool parked)
{
    static const char *const names[PLAN_N_MARKS] = {
        "request", "groups", "cloned", "parked", "start", "exec", "report", "gone", "end"};
    static uint64_t whole[ROUNDS], at[PLAN_N_MARKS][ROUNDS];
    const char *const yes[] = {"/bin/true", NULL};
    struct try t = try_of(yes);
    struct plan_record r;
    for (int i = 0; i < ROUNDS; i++) {
        uint32_t id = 0;
        if (parked && client_prepare(c, &id, &r)) {
            return;
        }
        uint64_t t0 = clock_now_ns();
        if (client_run(c, id, &t, CLIENT_PATIENCE_MS, &r) || r.error) {
            fprintf(stderr, "%s\n", say(&r, 0));
            return;
        }
        whole[i] = clock_now_ns() - t0;
        for (int k = 0; k < PLAN_N_MARKS; k++) {
            at[k][i] = r.marks_ns[k] - t0;
            if (parked && k <= PLAN_T_PARKED) {
                at[k][i] = 0;
            }
        }
    }
    fprintf(stderr, "%s:", parked ? "parked" : "cold");
    for (int k = 0; k < PLAN_N_MARKS; k++) {
        fprintf(stderr, " %s %.2f", names[k], middle(at[k], ROUNDS));
    }
    fprintf(stderr, " whole %.2f (p10 %.2f) ms\n", middle(whole, ROUNDS),
            (double)whole[ROUNDS / 10] / 1e6);
}

void check_speed(struct client *c)
{
    rounds(c, false);
    rounds(c, true);
    char text[4096], path[32];
    snprintf(path, sizeof path, "%d/smaps_rollup", c->seat.launcher_pid);
    fd_read_at(c->proc, path, text, sizeof text);
}
