// What is SQLite's own: its files, migrations, damage, a full disk, a failing one.
#include "faulty.h"
#include "harness.h"

#include "base/fd.h"
#include "store/sqlite_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct store_error last_error;

static int open_sqlite(struct loop *l, const char *place, int64_t now_ms, struct store **ret)
{
    struct store_sqlite c = {.dir = place, .now_ms = now_ms, .lazy_ms = 20};
    last_error.text[0] = 0;
    return store_sqlite_open(l, &c, ret, &last_error);
}

static void its_files_are_its_own(void **state)
{
    (void)state;
    struct harness h;
    struct store *second;
    struct stat st;
    char path[128];
    harness_start(&h, open_sqlite);
    harness_submit(&h, "j", "t", "{}");
    static const char *const names[] = {"isle.db", "isle.db-wal", "isle.db-shm", "lock"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        snprintf(path, sizeof path, "%s/%s", h.place, names[i]);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 07777, 0600);
    }
    assert_int_equal(open_sqlite(h.loop, h.place, 0, &second), -EBUSY);
    assert_non_null(strstr(last_error.text, "in use"));
    assert_int_equal(open_sqlite(h.loop, "/nowhere", 0, &second), -ENOENT);
    store_close(h.store);
    snprintf(path, sizeof path, "%s/isle.db-wal", h.place);
    assert_int_equal(access(path, F_OK), -1); // all is in the one file
    snprintf(path, sizeof path, "%s/isle.db", h.place);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("/tmp/elsewhere", path), 0);
    assert_true(open_sqlite(h.loop, h.place, 0, &second) < 0); // no link is followed
    h.store = NULL;
    harness_end(&h);
}

// Whoever looks at the file with sqlite3(1) and closes it again would else be the last to close it,
// and take the log away from under the service.
static void others_see_that_it_is_in_use(void **state)
{
    (void)state;
    struct harness h;
    char path[128];
    harness_start(&h, open_sqlite);
    snprintf(path, sizeof path, "%s/isle.db", h.place);
    for (int i = 0; i < 2; i++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
            int fd = open(path, O_RDWR | O_CLOEXEC);
            _exit(fd >= 0 && fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type == F_RDLCK ? 0 : 1);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
        harness_submit(&h, i ? "a" : "b", "t", "{}"); // and after a write, too
    }
    harness_end(&h);
}

static int version_of(sqlite3 *db)
{
    sqlite3_stmt *st;
    assert_int_equal(sqlite3_prepare_v2(db, "PRAGMA user_version", -1, &st, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(st), SQLITE_ROW);
    int version = sqlite3_column_int(st, 0);
    sqlite3_finalize(st);
    return version;
}

static void migrations_are_whole_or_not_there(void **state)
{
    (void)state;
    sqlite3 *db;
    static const char *const steps[] = {
        "CREATE TABLE a (x); INSERT INTO a VALUES (1);",
        "CREATE TABLE b (x); INSERT INTO missing VALUES (1);",
        "CREATE TABLE c (x);",
    };
    static const char *const mended[] = {"not run again", "CREATE TABLE b (x);",
                                         "CREATE TABLE c (x); INSERT INTO c SELECT x FROM a;"};
    assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
    assert_true(sqlite_migrate(db, steps, 3) < 0);
    assert_int_equal(version_of(db), 1); // and nothing of the second is there:
    assert_int_equal(sqlite_migrate(db, mended, 3), 0);
    assert_int_equal(version_of(db), 3);
    assert_int_equal(sqlite_migrate(db, mended, 3), 0);
    assert_int_equal(sqlite_migrate(db, mended, 2), -EPROTONOSUPPORT);
    sqlite3_close(db);
}

static sqlite3 *open_file(const char *place)
{
    char path[128];
    sqlite3 *db;
    snprintf(path, sizeof path, "%s/isle.db", place);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    return db;
}

static char *read_whole(const char *path)
{
    AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    assert_int_equal(fstat(fd, &st), 0);
    char *all = calloc(1, (size_t)st.st_size + 1);
    assert_non_null(all);
    assert_int_equal(read(fd, all, (size_t)st.st_size), st.st_size);
    return all;
}

static struct store_write tool_write_of(enum store_write_kind kind, const char *id,
                                        const char *body)
{
    struct store_write w = {.kind = kind};
    w.tool = (struct store_tool){
        .id = text(id), .team = text("red"), .name = text(id), .body = text(body)};
    return w;
}

static struct store_outcome make_tool(struct harness *h, enum store_write_kind kind, const char *id,
                                      const char *body)
{
    const struct store_write w = tool_write_of(kind, id, body);
    return harness_write(h, &w);
}

static void a_store_of_version_1_goes_on(void **state)
{
    (void)state;
    struct harness h;
    AUTO_FREE char *sql = read_whole(ISLE_VERSION_1);
    harness_start(&h, open_sqlite);
    store_close(h.store);
    char path[128];
    snprintf(path, sizeof path, "%s/isle.db", h.place);
    assert_int_equal(unlink(path), 0);
    sqlite3 *db = open_file(h.place);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(version_of(db), 1);
    sqlite3_close(db);
    assert_int_equal(open_sqlite(h.loop, h.place, h.now_ms, &h.store), 0);
    for (int i = 0; i < 2; i++) { // after the migration, and after one more start
        struct store_query q = {
            .kind = STORE_LIST_JOBS, .team = text("red"), .status = -1, .limit = 10};
        const struct rows *r = harness_read(&h, &q);
        assert_int_equal(r->n, 2);
        SAME(r->at[0].job.reason, "ok");
        assert_int_equal(r->at[0].job.status, STATUS_COMPLETED);
        const struct store_record *job =
            harness_one(&h, STORE_GET_JOB, "01a22a34-bb9c-76cd-ae32-52a880f99a3e", "red");
        assert_non_null(job);
        SAME(job->job.request, "{\"language\":\"python\",\"code\":\"print(1)\"}");
        assert_non_null(job->job.result.data);
        q = (struct store_query){.kind = STORE_LIST_SESSIONS, .team = text("red"), .limit = 10};
        assert_int_equal(harness_read(&h, &q)->n, 1);
        assert_int_equal(harness_one(&h, STORE_FIND_KEY, NULL, "blue")->key.admin, 1);
        assert_int_equal(make_tool(&h, STORE_TOOL_CREATE, "t", "{}").error,
                         i == 0 ? 0 : STORE_CONFLICT);
        assert_non_null(harness_one(&h, STORE_GET_TOOL, "t", "red"));
        harness_reopen(&h);
    }
    harness_end(&h);
}

// A team's definitions are counted in bytes, old versions too. That it has nearly as many as it may
// is written here, as to send them takes long.
static void bytes_of_tools_are_bounded(void **state)
{
    (void)state;
    struct harness h;
    harness_start(&h, open_sqlite);
    assert_int_equal(make_tool(&h, STORE_TOOL_CREATE, "t", "1234").error, 0);
    assert_int_equal(make_tool(&h, STORE_TOOL_UPDATE, "t", "12345").error, 0);
    sqlite3 *db = open_file(h.place);
    AUTO_FREE char *sql = NULL;
    assert_true(asprintf(&sql, "UPDATE tools SET bytes = bytes + %d WHERE bytes = 9",
                         STORE_TOOLS_BYTES - 9 - 20) > 0);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_changes(db), 1);
    const struct store_write two[] = {tool_write_of(STORE_TOOL_CREATE, "u", "123456789"),
                                      tool_write_of(STORE_TOOL_CREATE, "v", "123456789012")};
    struct store_write w = {.kind = STORE_TOOL_IMPORT, .lent = true, .import = {two, 2}};
    const struct store_outcome o = harness_write(&h, &w); // each would fit; both do not
    assert_int_equal(o.error, STORE_IS_FULL);
    assert_int_equal(o.at, 1);
    assert_null(harness_one(&h, STORE_GET_TOOL, "u", "red"));
    assert_int_equal(make_tool(&h, STORE_TOOL_CREATE, "u", "123456789").error, 0); // 11 are left
    assert_int_equal(make_tool(&h, STORE_TOOL_CREATE, "v", "123456789012").error, STORE_IS_FULL);
    assert_int_equal(make_tool(&h, STORE_TOOL_UPDATE, "u", "123456789012").error, STORE_IS_FULL);
    assert_int_equal(make_tool(&h, STORE_TOOL_UPDATE, "u", "123456789").error, 0); // as it is
    assert_int_equal(make_tool(&h, STORE_TOOL_UPDATE, "u", "12345678901").error, 0);
    assert_int_equal(make_tool(&h, STORE_TOOL_CREATE, "v", "1").error, STORE_IS_FULL);
    w = (struct store_write){.kind = STORE_TOOL_DELETE, .tool = {.id = text("t")}};
    assert_int_equal(harness_write(&h, &w).error, 0);
    assert_int_equal(make_tool(&h, STORE_TOOL_CREATE, "v", "123456789012").error, 0);
    sqlite3_close(db);
    harness_end(&h);
}

// ---- a page of a list

struct meddling {
    struct harness *h;
    bool done;
    char seen[64];
    int end;
};

// Told before a statement begins: whoever shared the cursor's tool takes it back just then.
static int unshare_before_the_page(unsigned what, void *ctx, void *statement, void *sql)
{
    struct meddling *m = ctx;
    (void)what;
    (void)sql;
    if (strcmp(sqlite3_sql(statement), sql_reads[STORE_LIST_TOOLS].sql) == 0) {
        struct store_write w = {.kind = STORE_TOOL_UNSHARE,
                                .tool = {.id = text("b"), .with = text("blue")}};
        m->done = harness_write(m->h, &w).error == 0;
    }
    return 0;
}

static void on_seen(void *ctx, const struct store_record *r)
{
    struct meddling *m = ctx;
    size_t len = strlen(m->seen);
    snprintf(m->seen + len, sizeof m->seen - len, "%.*s", (int)r->tool.id.len, r->tool.id.data);
}

static void on_seen_all(void *ctx, int error) { ((struct meddling *)ctx)->end = error; }

static void cursor_and_page_are_of_one_moment(void **state)
{
    (void)state;
    struct harness h;
    harness_start(&h, open_sqlite);
    static const char *const ids[] = {"a", "b", "c"};
    for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
        assert_int_equal(make_tool(&h, STORE_TOOL_CREATE, ids[i], "{}").error, 0);
        struct store_write w = {
            .kind = STORE_TOOL_SHARE,
            .tool = {.id = text(ids[i]), .with = text("blue"), .permission = STORE_MAY_READ}};
        assert_int_equal(harness_write(&h, &w).error, 0);
    }
    struct sqlite_reader r = {0};
    struct meddling m = {.h = &h, .end = 1000};
    sqlite3 *db = open_file(h.place);
    assert_int_equal(sqlite_reader_open(&r, db), 0);
    assert_int_equal(sqlite3_trace_v2(db, SQLITE_TRACE_STMT, unshare_before_the_page, &m),
                     SQLITE_OK);
    struct store_query q = {
        .kind = STORE_LIST_TOOLS, .team = text("blue"), .cursor = text("b"), .limit = 10};
    struct store_reader to = {on_seen, on_seen_all, &m, NULL};
    sqlite_reader_run(&r, &q, &to);
    assert_true(m.done);
    assert_int_equal(m.end, 0);
    assert_string_equal(m.seen, "c");
    // and nothing holds on to that moment
    sqlite_reader_run(&r, &q, &to);
    assert_int_equal(m.end, STORE_MISSING);
    sqlite_reader_close(&r);
    harness_end(&h);
}

static void a_newer_store_is_left_alone(void **state)
{
    (void)state;
    struct harness h;
    sqlite3 *db;
    char path[128];
    harness_start(&h, open_sqlite);
    store_close(h.store);
    snprintf(path, sizeof path, "%s/isle.db", h.place);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "PRAGMA user_version = 1000", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    h.store = NULL;
    assert_int_equal(open_sqlite(h.loop, h.place, 0, &h.store), -EPROTONOSUPPORT);
    assert_non_null(strstr(last_error.text, "newer version"));
    harness_end(&h);
}

static void damage_is_found_at_the_start(void **state)
{
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        struct harness h;
        char path[128], id[16], body[512];
        memset(body, 'b', sizeof body - 1);
        body[sizeof body - 1] = 0;
        harness_start(&h, open_sqlite);
        for (int i = 0; i < 100; i++) {
            snprintf(id, sizeof id, "j%d", i);
            harness_submit(&h, id, "t", body);
        }
        store_close(h.store);
        h.store = NULL;
        snprintf(path, sizeof path, "%s/isle.db", h.place);
        int fd = open(path, O_RDWR | O_CLOEXEC);
        struct stat st;
        assert_int_equal(fstat(fd, &st), 0);
        memset(body, 0x5a, sizeof body);
        for (off_t at = kind ? 4096 : 0; at < st.st_size; at += kind ? 4096 : st.st_size) {
            assert_int_equal(pwrite(fd, body, sizeof body, at), sizeof body);
        }
        close(fd);
        assert_int_equal(open_sqlite(h.loop, h.place, 0, &h.store), -EBADMSG);
        assert_true(strlen(last_error.text) > 10);
        harness_end(&h);
    }
}

static void an_answered_write_has_been_synced(void **state)
{
    (void)state;
    struct harness h;
    char id[16];
    harness_start(&h, open_sqlite);
    for (int i = 0; i < 10; i++) {
        int before = atomic_load(&faulty.syncs);
        snprintf(id, sizeof id, "j%d", i);
        assert_int_equal(harness_submit(&h, id, "t", "{}").error, 0);
        assert_true(atomic_load(&faulty.syncs) > before);
    }
    harness_end(&h);
}

static void reads_use_an_index(void **state)
{
    (void)state;
    struct harness h;
    sqlite3 *db;
    char path[128];
    harness_start(&h, open_sqlite);
    snprintf(path, sizeof path, "%s/isle.db", h.place);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    for (int i = 0; i < SQL_READS; i++) {
        sqlite3_stmt *st;
        AUTO_FREE char *sql = NULL;
        assert_true(asprintf(&sql, "EXPLAIN QUERY PLAN %s", sql_reads[i].sql) > 0);
        assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &st, NULL), SQLITE_OK);
        while (sqlite3_step(st) == SQLITE_ROW) {
            const char *plan = (const char *)sqlite3_column_text(st, 3);
            bool few = i == STORE_LIST_KEYS || i == SQL_FIND_ANY_KEY; // never many
            if (!few && (strncmp(plan, "SCAN", 4) == 0 || strstr(plan, "TEMP B-TREE"))) {
                fail_msg("%s: %s", sql_reads[i].name, plan);
            }
        }
        sqlite3_finalize(st);
    }
    sqlite3_close(db);
    harness_end(&h);
}

// --- failures

struct sent {
    char id[32];
    int answered, error;
};

static void on_sent(void *ctx, const struct store_outcome *o)
{
    struct sent *s = ctx;
    s->answered++;
    s->error = o->error;
}

// Many at once, each of its own size. All are answered.
static void send_many(struct harness *h, struct sent *sent, int n, const char *prefix, size_t bytes)
{
    AUTO_FREE char *body = calloc(1, bytes + 1);
    assert_non_null(body);
    memset(body, 'b', bytes);
    for (int i = 0; i < n; i++) {
        sent[i] = (struct sent){0};
        snprintf(sent[i].id, sizeof sent[i].id, "%s%d", prefix, i);
        struct store_write w = {.kind = STORE_JOB_SUBMIT};
        w.job = (struct store_job){.id = text(sent[i].id),
                                   .team = text("t"),
                                   .caller_key = text(sent[i].id),
                                   .request_hash = text("h"),
                                   .request = {body, bytes * (size_t)(i + 1) / (size_t)n}};
        assert_int_equal(store_write(h->store, &w, on_sent, &sent[i]), 0);
    }
    for (int i = 0; i < n; i++) {
        while (!sent[i].answered) {
            assert_int_equal(loop_step(h->loop, 10000), 0);
        }
        assert_int_equal(sent[i].answered, 1);
    }
}

// What was acknowledged is there, whole; what was refused is not, in any part. Returns how many are
// there.
static int check_sent(struct harness *h, const struct sent *sent, int n, size_t bytes)
{
    int there = 0;
    for (int i = 0; i < n; i++) {
        const struct store_record *r = harness_one(h, STORE_GET_JOB, sent[i].id, "t");
        assert_int_equal(r != NULL, sent[i].error == 0);
        if (r) {
            assert_int_equal(r->job.request.len, bytes * (size_t)(i + 1) / (size_t)n);
            there++;
        }
    }
    return there;
}

static void a_disk_that_is_full_no_more_is_noticed(void **state)
{
    (void)state;
    enum { BYTES = 2000000, TRIES = 200 };
    struct harness h;
    struct sent one[1];
    struct store_stats st;
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) {
        print_message("no mount namespace of its own: not shown here\n");
        skip();
    }
    harness_start(&h, open_sqlite);
    store_close(h.store);
    assert_int_equal(mount("small", h.place, "tmpfs", MS_NOSUID | MS_NODEV, "size=1m,mode=0700"),
                     0);
    assert_int_equal(open_sqlite(h.loop, h.place, h.now_ms, &h.store), 0);
    send_many(&h, one, 1, "a", BYTES);
    store_stats(h.store, &st);
    assert_int_equal(st.error, -ENOSPC);
    assert_int_equal(mount("small", h.place, "tmpfs", MS_REMOUNT | MS_NOSUID | MS_NODEV, "size=9m"),
                     0);
    for (int i = 0; st.error != 0 && i < TRIES; i++) { // and nobody writes
        usleep(50 * 1000);
        store_stats(h.store, &st);
    }
    assert_int_equal(st.error, 0);
    store_close(h.store);
    h.store = NULL;
    assert_int_equal(umount2(h.place, MNT_DETACH), 0);
    harness_end(&h);
}

static void a_full_disk_loses_nothing(void **state)
{
    (void)state;
    enum { N = 24, BYTES = 400000 };
    struct harness h;
    struct sent first[N], again[N];
    struct store_stats st;
    char path[128];
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) {
        print_message("no mount namespace of its own: not shown here\n");
        skip();
    }
    harness_start(&h, open_sqlite);
    store_close(h.store);
    assert_int_equal(mount("small", h.place, "tmpfs", MS_NOSUID | MS_NODEV, "size=3m,mode=0700"),
                     0);
    assert_int_equal(open_sqlite(h.loop, h.place, h.now_ms, &h.store), 0);
    send_many(&h, first, N, "a", BYTES);
    int there = check_sent(&h, first, N, BYTES);
    assert_in_range(there, 1, N - 1);
    bool told = false;
    for (int i = 0; i < N; i++) {
        assert_true(first[i].error == 0 || first[i].error == -ENOSPC);
        told |= first[i].error == -ENOSPC;
    }
    assert_true(told);
    store_stats(h.store, &st);
    assert_int_equal(st.error, -ENOSPC);
    harness_reopen(&h); // on a disk that is full
    assert_int_equal(check_sent(&h, first, N, BYTES), there);
    snprintf(path, sizeof path, "size=%dm", 30);
    assert_int_equal(mount("small", h.place, "tmpfs", MS_REMOUNT | MS_NOSUID | MS_NODEV, path), 0);
    send_many(&h, again, N, "b", BYTES); // goes on by itself
    assert_int_equal(check_sent(&h, again, N, BYTES), N);
    store_stats(h.store, &st);
    assert_int_equal(st.error, 0);
    harness_reopen(&h);
    assert_int_equal(check_sent(&h, first, N, BYTES), there);
    assert_int_equal(check_sent(&h, again, N, BYTES), N);
    store_close(h.store);
    h.store = NULL;
    assert_int_equal(umount2(h.place, MNT_DETACH), 0);
    harness_end(&h);
}

// Each call that could fail fails once, with each error, and the disk comes back after it.
static void a_failing_disk_is_told_and_nothing_is_half_written(void **state)
{
    (void)state;
    enum { N = 6, BYTES = 20000 };
    static const int codes[] = {SQLITE_FULL, SQLITE_IOERR_WRITE};
    for (size_t c = 0; c < ARRAY_LEN(codes); c++) {
        struct harness h;
        struct sent sent[N];
        harness_start(&h, open_sqlite);
        bool failed = true;
        int points = 0;
        for (int at = 1; failed && at < 400; at++) {
            char prefix[16];
            snprintf(prefix, sizeof prefix, "%d-", at);
            atomic_store(&faulty.code, codes[c]);
            atomic_store(&faulty.countdown, at);
            send_many(&h, sent, N, prefix, BYTES);
            failed = atomic_load(&faulty.countdown) == 0;
            points += failed;
            atomic_store(&faulty.countdown, -1);
            check_sent(&h, sent, N, BYTES);
            for (int i = 0; i < N; i++) { // once more, as a caller would
                if (sent[i].error != 0) {
                    struct store_stats st;
                    assert_true(sent[i].error == -ENOSPC || sent[i].error == -EIO);
                    assert_int_equal(harness_submit(&h, sent[i].id, "t", "{}").error, 0);
                    store_stats(h.store, &st);
                    assert_int_equal(st.error, 0);
                }
            }
            if (at % 8 == 0) {
                harness_reopen(&h); // with its integrity check
            }
        }
        print_message("%d points of failure\n", points);
        assert_in_range(points, 5, 398);
        harness_end(&h);
    }
}

int main(void)
{
    faulty_install();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(its_files_are_its_own),
        cmocka_unit_test(others_see_that_it_is_in_use),
        cmocka_unit_test(migrations_are_whole_or_not_there),
        cmocka_unit_test(a_store_of_version_1_goes_on),
        cmocka_unit_test(bytes_of_tools_are_bounded),
        cmocka_unit_test(cursor_and_page_are_of_one_moment),
        cmocka_unit_test(a_newer_store_is_left_alone),
        cmocka_unit_test(damage_is_found_at_the_start),
        cmocka_unit_test(an_answered_write_has_been_synced),
        cmocka_unit_test(reads_use_an_index),
        cmocka_unit_test(a_failing_disk_is_told_and_nothing_is_half_written),
        cmocka_unit_test(a_full_disk_loses_nothing),
        cmocka_unit_test(a_disk_that_is_full_no_more_is_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
