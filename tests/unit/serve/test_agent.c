// The agents' file tools without HTTP: turns of one session, callers that leave, and memories that
// are kept beside the files, found again, and forgotten while there are too many.
#include "place.h"

#include "base/clock.h"
#include "codec/json.h"
#include "log/log.h"
#include "serve/agent.h"
#include "serve/shares.h"
#include "store/sqlite.h"
#include "workspace/uids.h"

enum {
    SESSIONS = 50,
    LINES = 60000, // each remembers both versions of a file: 1.4 MB
    ALL_REMEMBERED = 45,
};

struct set {
    struct place place;
    struct store *store;
    struct uids uids;
    struct shares *shares;
    struct sessions *sessions;
    struct log *log;
    struct agents *agents;
    char ids[SESSIONS][37];
    unsigned made;
    bool deleted;
    // of the last answers
    unsigned answers;
    int error;
    char *text;
};

static void open_all(struct set *s)
{
    struct store_error why;
    const struct store_sqlite place = {.dir = s->place.path, .now_ms = clock_wall_ms()};
    assert_int_equal(store_sqlite_open(s->place.loop, &place, &s->store, &why), 0);
    s->uids = (struct uids){0};
    const struct shares_config shares = {.store = s->store, .data_folder = s->place.root};
    assert_int_equal(shares_new(&shares, &s->shares), 0);
    const struct sessions_config config = {.loop = s->place.loop,
                                           .shares = s->shares,
                                           .store = s->store,
                                           .pool = s->place.pool,
                                           .log = s->log,
                                           .uids = &s->uids,
                                           .workspace_root = s->place.root,
                                           .ttl_hours = 24,
                                           .cleanup_batch = 2,
                                           .disk_bytes = 100 << 20};
    assert_int_equal(sessions_new(&config, &s->sessions), 0);
    const struct agents_config agents = {
        .loop = s->place.loop, .sessions = s->sessions, .pool = s->place.pool, .log = s->log};
    assert_int_equal(agents_new(&agents, &s->agents), 0);
}

static void close_all(struct set *s)
{
    work_pool_stop(s->place.pool);
    agents_stop(s->agents);
    store_close(s->store);
    agents_free(s->agents);
    sessions_free(s->sessions);
    shares_free(s->shares);
}

static void restart(struct set *s)
{
    close_all(s);
    place_no_threads(&s->place);
    place_threads(&s->place);
    open_all(s);
}

static int make(void **state)
{
    struct set *s = calloc(1, sizeof *s);
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    assert_int_equal(log_new(nowhere, -1, LOG_TEXT, LOG_INFO, &s->log), 0);
    place_make(&s->place);
    open_all(s);
    *state = s;
    return 0;
}

static int drop(void **state)
{
    struct set *s = *state;
    close_all(s);
    place_drop(&s->place);
    log_free(s->log);
    free(s->text);
    free(s);
    return 0;
}

static void session_made(void *ctx, const struct sessions_outcome *o)
{
    struct set *s = ctx;
    assert_int_equal(o->error, 0);
    snprintf(s->ids[s->made++], 37, "%.*s", (int)o->session->id.len, o->session->id.data);
}

static bool all_made(void *ctx) { return ((struct set *)ctx)->made == SESSIONS; }
static bool one_made(void *ctx) { return ((struct set *)ctx)->made > 0; }

static const char *a_session(struct set *s)
{
    sessions_create(s->sessions, &(struct sessions_create){.team = "t"}, session_made, s);
    place_run(&s->place, one_made, s);
    return s->ids[0];
}

// ---- calls

struct call {
    struct agent_call call;
    struct set *set;
    bool over;
};

static void answered(struct agent_call *c, struct buf *data)
{
    struct call *call = c->ctx;
    call->over = true;
    call->set->answers++;
    call->set->error = 0;
    free(call->set->text);
    call->set->text = buf_take(data);
}

static void refused(struct agent_call *c, int error, const char *text)
{
    struct call *call = c->ctx;
    (void)text;
    call->over = true;
    call->set->answers++;
    call->set->error = error;
}

static bool is_over(void *ctx) { return ((struct call *)ctx)->over; }

static void begin(struct set *s, struct call *c, const char *id, enum agent_tool tool,
                  const char *arguments)
{
    struct json_error why;
    *c = (struct call){.set = s,
                       .call = {.team = "t",
                                .session = id,
                                .tool = tool,
                                .doc = json_parse(arguments, strlen(arguments), &why),
                                .answered = answered,
                                .refused = refused,
                                .ctx = c}};
    assert_non_null(c->call.doc);
    c->call.arguments = yyjson_doc_get_root(c->call.doc);
    agents_call(s->agents, &c->call);
}

// The answer, or NULL: s->error.
static const char *call(struct set *s, const char *id, enum agent_tool tool, const char *arguments)
{
    struct call c;
    begin(s, &c, id, tool, arguments);
    place_run(&s->place, is_over, &c);
    yyjson_doc_free(c.call.doc);
    return s->error ? NULL : s->text;
}

#define WRITE(path, content) "{\"path\":\"" path "\",\"content\":\"" content "\"}"
static const char last_line[] =
    "{\"path\":\"f\",\"edits\":[{\"op\":\"replace\",\"line\":\"%d#%.4s\","
    "\"new\":\"x\"}]}";

static bool edits(struct set *s, const char *id, int line, const char *tag)
{
    char arguments[256];
    snprintf(arguments, sizeof arguments, last_line, line, tag);
    const char *answer = call(s, id, AGENT_EDIT, arguments);
    assert_non_null(answer);
    return strstr(answer, "\"success\":true");
}

static void tag_of(const char *answer, char ret[5])
{
    const char *tag = strstr(answer, "\"tag\":\"");
    assert_non_null(tag);
    snprintf(ret, 5, "%.4s", tag + 7);
}

static void there_is_no_such_session(void **state)
{
    struct set *s = *state;
    assert_null(call(s, "01a22a49-751b-78a0-b024-984af006d761", AGENT_READ, "{\"path\":\"f\"}"));
    assert_int_equal(s->error, SESSIONS_MISSING);
    const char *id = a_session(s);
    struct call first, other;
    begin(s, &first, id, AGENT_WRITE, WRITE("f", "a\\n"));
    begin(s, &other, "01a22a49-751b-78a0-b024-984af006d761", AGENT_READ, "{\"path\":\"f\"}");
    assert_true(other.over && !first.over); // at once
    yyjson_doc_free(other.call.doc);
    place_run(&s->place, is_over, &first);
    assert_int_equal(s->error, 0);
}

// Whoever leaves hears nothing; what waits behind goes on, and what had begun is done.
static void a_caller_leaves(void **state)
{
    struct set *s = *state;
    const char *id = a_session(s);
    struct call first, second, third;
    begin(s, &first, id, AGENT_WRITE, WRITE("f", "first\\n"));
    begin(s, &second, id, AGENT_WRITE, WRITE("g", "second\\n"));
    begin(s, &third, id, AGENT_READ, "{\"path\":\"f\"}");
    agents_leave(s->agents, &first.call);
    agents_leave(s->agents, &second.call);
    agents_leave(s->agents, &second.call);
    place_run(&s->place, is_over, &third);
    assert_int_equal(s->answers, 1);
    assert_non_null(strstr(s->text, "| first"));
    assert_false(first.over || second.over);
    char path[96];
    snprintf(path, sizeof path, "kept/%s/w/g", id);
    assert_false(place_has(&s->place, path));
}

// The end comes while a call is at work and others wait: nothing is called any more.
static void the_end_comes_first(void **state)
{
    struct set *s = *state;
    const char *id = a_session(s);
    struct call calls[3];
    for (int i = 0; i < 3; i++) {
        begin(s, &calls[i], id, AGENT_WRITE, WRITE("f", "a\\n"));
    }
    work_pool_stop(s->place.pool);
    for (int i = 0; i < 3; i++) {
        agents_leave(s->agents, &calls[i].call);
    }
    restart(s);
    assert_int_equal(s->answers, 0);
    assert_non_null(call(s, id, AGENT_READ, "{\"path\":\"f\"}"));
}

static void what_is_new_is_kept_at_the_end(void **state)
{
    struct set *s = *state;
    const char *id = a_session(s);
    char tag[5], path[96];
    snprintf(path, sizeof path, "kept/%s/m", id);
    tag_of(call(s, id, AGENT_WRITE, WRITE("f", "a\\nb\\n")), tag);
    assert_false(place_has(&s->place, path)); // not yet
    restart(s);
    assert_true(place_has(&s->place, path));
    assert_true(edits(s, id, 2, tag));
    // what is no memory is an empty one; what cannot be written is lost, and nothing else
    restart(s);
    place_write(&s->place, path, "isle?");
    assert_false(edits(s, id, 1, tag));
    tag_of(call(s, id, AGENT_READ, "{\"path\":\"f\"}"), tag);
    assert_int_equal(unlinkat(s->place.root, path, 0), 0);
    place_folder(&s->place, path);
    restart(s);
    assert_false(edits(s, id, 1, tag));
    tag_of(call(s, id, AGENT_READ, "{\"path\":\"f\"}"), tag);
    assert_true(edits(s, id, 1, tag));
}

static bool all_kept(void *ctx)
{
    struct set *s = ctx;
    char path[96];
    bool all = true;
    for (int i = 0; i < SESSIONS; i++) {
        snprintf(path, sizeof path, "kept/%s/m", s->ids[i]);
        all = all && place_has(&s->place, path);
    }
    return all;
}

// More than all may remember together: those that were unused for longest are on disk only.
static void too_many_are_forgotten(void **state)
{
    struct set *s = *state;
    char tags[SESSIONS][5], path[96];
    AUTO_BUF struct buf write = BUF_INIT(1 << 20);
    buf_puts(&write, "{\"path\":\"f\",\"content\":\"");
    for (int i = 0; i < LINES; i++) {
        buf_puts(&write, "\\n");
    }
    buf_puts(&write, "\"}");
    for (int i = 0; i < SESSIONS; i++) {
        sessions_create(s->sessions, &(struct sessions_create){.team = "t"}, session_made, s);
    }
    place_run(&s->place, all_made, s);
    for (int i = 0; i < SESSIONS; i++) {
        tag_of(call(s, s->ids[i], AGENT_WRITE, buf_text(&write)), tags[i]);
        assert_true(edits(s, s->ids[i], LINES, tags[i]));
        tag_of(s->text, tags[i]);
    }
    place_run(&s->place, all_kept, s);
    // whose memory is in memory does not look at the disk
    for (int i = 0; i < SESSIONS; i += SESSIONS - 1) {
        snprintf(path, sizeof path, "kept/%s/m", s->ids[i]);
        place_write(&s->place, path, "isle?");
    }
    assert_false(edits(s, s->ids[0], 1, tags[0]));
    assert_true(edits(s, s->ids[1], 1, tags[1])); // was read again
    assert_true(edits(s, s->ids[SESSIONS - 1], 1, tags[SESSIONS - 1]));
}

static void session_deleted(void *ctx, const struct sessions_outcome *o)
{
    assert_int_equal(o->error, 0);
    ((struct set *)ctx)->deleted = true;
}
static bool is_deleted(void *ctx) { return ((struct set *)ctx)->deleted; }

// Too much is remembered, and the session that was unused for longest is gone before what is new of
// it was written.
static void the_oldest_is_gone_meanwhile(void **state)
{
    struct set *s = *state;
    AUTO_BUF struct buf write = BUF_INIT(1 << 20);
    char tag[5];
    buf_puts(&write, "{\"path\":\"f\",\"content\":\"");
    for (int i = 0; i < LINES; i++) {
        buf_puts(&write, "\\n");
    }
    buf_puts(&write, "\"}");
    for (int i = 0; i < SESSIONS; i++) {
        sessions_create(s->sessions, &(struct sessions_create){.team = "t"}, session_made, s);
    }
    place_run(&s->place, all_made, s);
    for (int i = 0; i < ALL_REMEMBERED; i++) {
        tag_of(call(s, s->ids[i], AGENT_WRITE, buf_text(&write)), tag);
        assert_true(edits(s, s->ids[i], LINES, tag));
    }
    assert_non_null(call(s, s->ids[0], AGENT_WRITE, buf_text(&write)));
    for (int i = 1; i < ALL_REMEMBERED; i++) {
        assert_non_null(call(s, s->ids[i], AGENT_READ, "{\"path\":\"f\",\"end_line\":1}"));
    }
    sessions_delete(s->sessions, "t", s->ids[0], session_deleted, s);
    place_run(&s->place, is_deleted, s);
    for (int i = ALL_REMEMBERED; i < SESSIONS; i++) {
        tag_of(call(s, s->ids[i], AGENT_WRITE, buf_text(&write)), tag);
        assert_true(edits(s, s->ids[i], LINES, tag));
    }
    assert_null(call(s, s->ids[0], AGENT_READ, "{\"path\":\"f\"}"));
    assert_int_equal(s->error, SESSIONS_EXPIRED);
}

int main(void)
{
    if (geteuid() != 0) {
        return 77; // sessions have uids of their own
    }
#define TEST(name) cmocka_unit_test_setup_teardown(name, make, drop)
    const struct CMUnitTest tests[] = {
        TEST(there_is_no_such_session), TEST(a_caller_leaves),
        TEST(the_end_comes_first),      TEST(what_is_new_is_kept_at_the_end),
        TEST(too_many_are_forgotten),   TEST(the_oldest_is_gone_meanwhile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
