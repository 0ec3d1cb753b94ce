// bench-store [ROWS [FOLDER]]: how long submit, get and list take in an empty store and in one with
// many jobs, and the ratio of the medians. FOLDER (default: the working folder) decides the disk.
#include "base/clock.h"
#include "base/fd.h"
#include "base/tree.h"
#include "store/sqlite.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 400, FINISHED_PER_GROUP = 500, BODY_BYTES = 2000, TEAMS = 10 };

struct bench {
    struct loop *loop;
    struct store *store;
    unsigned next, waiting;
    int error;
};

static void on_done(void *ctx, const struct store_outcome *o)
{
    struct bench *b = ctx;
    b->waiting--;
    b->error = o->error ? o->error : b->error;
}

static void on_row(void *ctx, const struct store_record *r)
{
    (void)ctx;
    (void)r;
}

static void on_end(void *ctx, int error)
{
    struct bench *b = ctx;
    b->error = error ? error : b->error;
}

static struct store_text text(const char *s) { return (struct store_text){s, strlen(s)}; }

static void hand_in(struct bench *b, enum store_write_kind kind)
{
    static char body[BODY_BYTES];
    char id[40], team[16];
    memset(body, '{', sizeof body);
    snprintf(id, sizeof id, "01900000-0000-7000-8000-%012u", b->next);
    snprintf(team, sizeof team, "team-%u", b->next % TEAMS);
    struct store_write w = {.kind = kind};
    w.job = (struct store_job){.id = text(id),
                               .team = text(team),
                               .request = {body, sizeof body},
                               .submitted_ms = INT64_C(1700000000000) + b->next};
    if (kind == STORE_JOB_RECORD) {
        w.job.status = STATUS_COMPLETED;
        w.job.reason = text("ok");
        w.job.result = (struct store_text){body, sizeof body};
        w.job.ended_ms = w.job.submitted_ms + 5;
    }
    b->next++;
    b->waiting++;
    int err = store_write(b->store, &w, on_done, b);
    b->waiting -= err != 0;
    b->error = err ? err : b->error;
}

static void settle(struct bench *b)
{
    while (b->waiting > 0 && b->error == 0) {
        loop_step(b->loop, -1);
    }
}

static void submit(struct bench *b)
{
    hand_in(b, STORE_JOB_SUBMIT);
    settle(b);
}

static void get(struct bench *b)
{
    char id[40], team[16];
    unsigned which = b->next * 7919u % b->next;
    which = (which + 31u * (unsigned)(clock_now_ns() & 0xffff)) % b->next;
    snprintf(id, sizeof id, "01900000-0000-7000-8000-%012u", which);
    snprintf(team, sizeof team, "team-%u", which % TEAMS);
    struct store_query q = {.kind = STORE_GET_JOB, .id = text(id), .team = text(team)};
    store_read(b->store, &q, &(struct store_reader){on_row, on_end, b});
}

static void list(struct bench *b)
{
    struct store_query q = {
        .kind = STORE_LIST_JOBS, .team = text("team-3"), .status = -1, .limit = 20};
    store_read(b->store, &q, &(struct store_reader){on_row, on_end, b});
}

static int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static const struct {
    const char *name;
    void (*call)(struct bench *b);
} calls[] = {{"submit", submit}, {"get", get}, {"list", list}};

static void measure(struct bench *b, uint64_t *ret_p50)
{
    static uint64_t took[SAMPLES];
    for (size_t c = 0; c < ARRAY_LEN(calls); c++) {
        for (size_t i = 0; i < SAMPLES; i++) {
            uint64_t from_ns = clock_now_ns();
            calls[c].call(b);
            took[i] = clock_now_ns() - from_ns;
        }
        qsort(took, SAMPLES, sizeof *took, by_size);
        ret_p50[c] = took[SAMPLES / 2];
    }
}

static int run(struct bench *b, unsigned rows)
{
    uint64_t empty[ARRAY_LEN(calls)], full[ARRAY_LEN(calls)];
    measure(b, empty);
    uint64_t from_ns = clock_now_ns();
    while (b->next < rows && b->error == 0) {
        for (int i = 0; i < FINISHED_PER_GROUP; i++) {
            hand_in(b, STORE_JOB_RECORD);
        }
        settle(b);
    }
    printf("%u jobs in %.1f s\n", b->next, (double)(clock_now_ns() - from_ns) / 1e9);
    measure(b, full);
    for (size_t c = 0; c < ARRAY_LEN(calls); c++) {
        printf("%-8s p50 %8.1f us empty %8.1f us full   ratio %.2f\n", calls[c].name,
               (double)empty[c] / 1e3, (double)full[c] / 1e3, (double)full[c] / (double)empty[c]);
    }
    return b->error;
}

int main(int argc, char **argv)
{
    struct bench b = {0};
    struct store_error e;
    AUTO_FREE char *place = NULL;
    unsigned rows = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 100000;
    if (asprintf(&place, "%s/bench-store-XXXXXX", argc > 2 ? argv[2] : ".") < 0) {
        return 1;
    }
    if (!mkdtemp(place) || loop_new(&b.loop) != 0) {
        perror(place);
        return 1;
    }
    int err = store_sqlite_open(b.loop, &(struct store_sqlite){.dir = place}, &b.store, &e);
    if (err != 0) {
        fprintf(stderr, "%s\n", e.text);
    } else {
        err = run(&b, rows);
        store_close(b.store);
    }
    loop_free(b.loop);
    AUTO_CLOSE int dir = open(place, O_PATH | O_DIRECTORY | O_CLOEXEC);
    tree_empty(dir);
    rmdir(place);
    return err == 0 ? 0 : 1;
}
