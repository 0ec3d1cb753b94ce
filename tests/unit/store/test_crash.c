// A process that writes and is killed at a random moment: what it was told is durable is there, and
// nothing is there twice. Rounds go on where the last one was killed.
#include "harness.h"

#include "base/clock.h"
#include "base/fd.h"
#include "store/sqlite.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 50, LONG_ROUNDS = 1000, IN_FLIGHT = 24, MAX_JOBS = 400000 };

static int open_sqlite(struct loop *l, const char *place, int64_t now_ms, struct store **ret)
{
    struct store_error e;
    struct store_sqlite c = {.dir = place, .now_ms = now_ms, .lazy_ms = 1};
    int err = store_sqlite_open(l, &c, ret, &e);
    if (err != 0) {
        fprintf(stderr, "%s\n", e.text);
    }
    return err;
}

// What the parent knows of a job: what the child was told, as it was told.
enum told { TOLD_QUEUED = 1, TOLD_RUNNING = 2, TOLD_ENDED = 4 };
struct message {
    uint32_t job, told;
};

// --- the child: jobs go queued, running, ended; one in four stays queued

struct worker {
    struct store *store;
    int report_fd;
    uint32_t next;
};
struct slot {
    struct worker *w;
    uint32_t job;
    enum told doing;
};

static void go_on(void *ctx, const struct store_outcome *o);

static void hand_in(struct slot *s)
{
    char id[32];
    snprintf(id, sizeof id, "job-%u", s->job);
    struct store_write w = {.lazy = s->job % 5 == 0 && s->doing == TOLD_RUNNING};
    w.job = (struct store_job){.id = text(id), .team = text("t"), .epoch = 1};
    if (s->doing == TOLD_QUEUED) {
        w.kind = STORE_JOB_SUBMIT;
        w.job.request = w.job.caller_key = w.job.request_hash = text(id);
    } else if (s->doing == TOLD_RUNNING) {
        w.kind = STORE_JOB_STATUS;
        w.job.status = STATUS_RUNNING;
    } else {
        w.kind = STORE_JOB_END;
        w.job.status = STATUS_COMPLETED;
        w.job.result = text(id);
        w.job.reason = text("ok");
        w.job.ended_ms = 1;
    }
    if (store_write(s->w->store, &w, go_on, s) != 0) {
        _exit(2);
    }
}

static void go_on(void *ctx, const struct store_outcome *o)
{
    struct slot *s = ctx;
    struct message m = {s->job, s->doing};
    if (o->error != 0 || write(s->w->report_fd, &m, sizeof m) != sizeof m) {
        _exit(3);
    }
    if (s->doing == TOLD_ENDED || s->job % 4 == 0) {
        s->job = s->w->next++;
        s->doing = TOLD_QUEUED;
    } else {
        s->doing = s->doing == TOLD_QUEUED ? TOLD_RUNNING : TOLD_ENDED;
    }
    hand_in(s);
}

static _Noreturn void work(const char *place, int report_fd, uint32_t next)
{
    static struct slot slots[IN_FLIGHT];
    struct worker w = {.report_fd = report_fd, .next = next};
    struct loop *l;
    if (loop_new(&l) != 0 || open_sqlite(l, place, 5, &w.store) != 0) {
        _exit(1);
    }
    for (size_t i = 0; i < IN_FLIGHT; i++) {
        slots[i] = (struct slot){&w, w.next++, TOLD_QUEUED};
        hand_in(&slots[i]);
    }
    loop_run(l);
    _exit(4);
}

// --- the parent

struct seen {
    unsigned char *told; // by job
    uint32_t end;        // no job at or above it was handed in
    uint32_t rows, lost, queued;
    uint64_t told_jobs;
};

static void run_and_kill(const char *place, struct seen *seen, uint64_t after_ns)
{
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        close(ends[0]);
        work(place, ends[1], seen->end);
    }
    close(ends[1]);
    uint64_t kill_at_ns = 0;
    uint32_t highest = seen->end;
    struct message m;
    // The moment counts from the first answer: a busy machine may need long to get there.
    while (read(ends[0], &m, sizeof m) == sizeof m) {
        assert_in_range(m.job, 0, MAX_JOBS - 1);
        seen->told[m.job] |= (unsigned char)m.told;
        highest = m.job > highest ? m.job : highest;
        if (kill_at_ns == 0) {
            kill_at_ns = clock_now_ns() + after_ns;
        }
        if (clock_now_ns() >= kill_at_ns) {
            kill(child, SIGKILL);
            kill_at_ns = UINT64_MAX;
        }
    }
    close(ends[0]);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGKILL);
    seen->end = highest + IN_FLIGHT + 1;
}

static void check_job(struct harness *h, struct seen *seen, uint32_t job)
{
    char id[32];
    snprintf(id, sizeof id, "job-%u", job);
    const struct store_record *r = harness_one(h, STORE_GET_JOB, id, "t");
    unsigned told = seen->told[job];
    if (!r) {
        assert_int_equal(told, 0);
        return;
    }
    seen->rows++;
    seen->told_jobs += told != 0;
    SAME(r->job.request, id);
    switch (r->job.status) {
    case STATUS_QUEUED:
        assert_int_equal(told & (TOLD_RUNNING | TOLD_ENDED), 0);
        seen->queued++;
        break;
    case STATUS_COMPLETED:
        SAME(r->job.result, id);
        break;
    default: // it ran when its worker was killed
        assert_int_equal(r->job.status, STATUS_FAILED);
        SAME(r->job.reason, "worker_lost");
        assert_int_equal(told & TOLD_ENDED, 0);
        assert_null(r->job.result.data);
        seen->lost++;
    }
}

static void check_all(const char *place, struct seen *seen)
{
    struct harness h = {.open = open_sqlite};
    struct store_stats st;
    snprintf(h.place, sizeof h.place, "%s", place);
    assert_int_equal(loop_new(&h.loop), 0);
    assert_int_equal(open_sqlite(h.loop, place, 5, &h.store), 0);
    seen->rows = seen->lost = seen->queued = 0;
    seen->told_jobs = 0;
    for (uint32_t job = 0; job < seen->end; job++) {
        check_job(&h, seen, job);
    }
    store_stats(h.store, &st);
    assert_int_equal(st.queued, seen->queued);
    // As many rows as jobs: none is there twice.
    uint32_t listed = 0;
    for (uint32_t before = UINT32_MAX; listed != before;) {
        static char cursor[32];
        struct store_query q = {
            .kind = STORE_LIST_JOBS, .team = text("t"), .status = -1, .limit = STORE_LIST_MAX};
        before = listed;
        if (listed > 0) {
            q.cursor = text(cursor);
        }
        const struct rows *r = harness_read(&h, &q);
        listed += (uint32_t)r->n;
        if (r->n > 0) {
            struct store_text last = r->at[r->n - 1].job.id;
            snprintf(cursor, sizeof cursor, "%.*s", (int)last.len, last.data);
        }
    }
    assert_int_equal(listed, seen->rows);
    store_close(h.store);
    loop_free(h.loop);
}

static void what_was_acknowledged_survives_a_kill(void **state)
{
    (void)state;
    struct seen seen = {.told = calloc(MAX_JOBS, 1)};
    char place[] = "/tmp/isle-crash-XXXXXX";
    assert_non_null(seen.told);
    assert_non_null(mkdtemp(place));
    int rounds = getenv("ISLE_LONG") ? LONG_ROUNDS : ROUNDS;
    for (int i = 0; i < rounds && seen.end + 20000 < MAX_JOBS; i++) {
        uint32_t random;
        assert_int_equal(getrandom(&random, sizeof random, 0), sizeof random);
        run_and_kill(place, &seen, random % (40 * NS_PER_MS));
        if ((i + 1) % (rounds / 5) == 0) { // each opening recovers; to look at all takes longer
            check_all(place, &seen);
        }
    }
    print_message("%u jobs, %llu acknowledged, %u lost in flight, %u queued\n", seen.rows,
                  (unsigned long long)seen.told_jobs, seen.lost, seen.queued);
    assert_true(seen.told_jobs > 0 && seen.lost > 0 && seen.queued > 0);
    free(seen.told);
    harness_remove(place);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_was_acknowledged_survives_a_kill)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
