// A shim that was taken over (rogue_shim.c), or is broken. It has the name of its own status to
// lose, and nothing else: every job has an END, and the launcher goes on.
#include "base/fd.h"
#include "checks.h"
#include "plan/steps.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *mode, *what;
    int error;
    uint32_t step;
    int status; // without error
} cases[] = {
    {"s", "a shim without a word: the sandbox has failed", ECHILD, PLAN_STEP_end, 0},
    {"c", "a shim that chatters: its first report counts, nothing else", 0, 0, 3 << 8},
    {"n", "a shim that tells of an error without a number", EIO, 7, 0},
    {"h", "a shim that says half a word: the sandbox has failed", ECHILD, PLAN_STEP_end, 0},
};

// rogue_bwrap.c: all at once, as the silent one takes the launcher's whole patience.
void check_rogue_bwrap(struct client *c)
{
    static const struct {
        const char *what;
        uint32_t step;
        int error;
    } rogues[] = {
        {"a Bubblewrap that guesses and repeats: the job never runs", PLAN_STEP_end, ECHILD},
        {"a Bubblewrap that fails, and goes on", PLAN_BSTEP_FIRST, 5},
        {"a Bubblewrap that makes no sandbox", PLAN_BSTEP_verify, EPROTO},
        {"a Bubblewrap without a word: not for ever", PLAN_BSTEP_bubblewrap, ETIMEDOUT},
    };
    const char *const job[] = {"/bin/true", NULL};
    uint32_t tags[ARRAY_LEN(rogues)];
    struct plan_record r, x;
    char name[24];
    for (uint32_t i = 0; i < ARRAY_LEN(rogues); i++) {
        struct try t = try_of(job);
        snprintf(name, sizeof name, "once/rogue%u", i);
        t.uid = V0 + i;
        t.workspace = name;
        fd_close(client_make_workspace(c, name, t.uid, false));
        tags[i] = client_start(c, 0, &t);
    }
    for (uint32_t i = 0; i < ARRAY_LEN(rogues); i++) {
        int e = client_wait(c, PLAN_END, tags[i], CLIENT_PATIENCE_MS, &r, NULL);
        bool ran = !client_wait(c, PLAN_EXECUTED, tags[i], 0, &x, NULL);
        check(rogues[i].what, !e && !ran && r.error == rogues[i].error && r.step == rogues[i].step,
              say(&r, e));
    }
}

void check_rogue(struct client *c, const char *mode)
{
    const char *const job[] = {"/bin/sh", "-c", "sleep 0.1; exit 5", NULL};
    struct plan_record r;
    for (int i = 0; i < 3; i++) {
        struct try t = try_of(job);
        int e = run_try(c, &t, CLIENT_PATIENCE_MS, &r);
        for (size_t k = 0; k < ARRAY_LEN(cases); k++) {
            if (!strcmp(mode, cases[k].mode)) {
                check(cases[k].what,
                      !e && r.error == cases[k].error &&
                          (r.error ? r.step == cases[k].step : r.status == cases[k].status),
                      say(&r, e));
            }
        }
        if (!strcmp(mode, "d") || !strcmp(mode, "e")) {
            // with a report: what it says of a program that had just begun is its word
            bool believed = mode[0] == 'e' && r.status == 0;
            check("a shim that ends at once: the sandbox has failed", !e && (r.error || believed),
                  say(&r, e));
        }
    }
    // it may have done all that before anybody had a job for it
    struct plan_request q = {.op = PLAN_PREPARE};
    int e = client_ask(c, &q, &r);
    uint32_t tag = r.tag;
    struct plan_request kill_it = {.op = PLAN_KILL, .id = r.id};
    client_request(c, &kill_it, NULL, 0);
    e = e ? e : client_wait(c, PLAN_END, tag, CLIENT_PATIENCE_MS, &r, NULL);
    check("and one that is parked ends", !e, say(&r, e));
}
