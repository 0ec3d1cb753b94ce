// Code tools: their names, versions and shares, and which team sees what.
#include "harness.h"

#include "base/fd.h"

#include <errno.h>
#include <stdio.h>

static struct store_outcome create(struct harness *h, const char *id, const char *team,
                                   const char *name, const char *body)
{
    struct store_write w = {.kind = STORE_TOOL_CREATE};
    w.tool = (struct store_tool){.id = text(id),
                                 .team = text(team),
                                 .name = text(name),
                                 .body = text(body),
                                 .enabled = 1,
                                 .created_ms = h->now_ms};
    return harness_write(h, &w);
}

static struct store_outcome update(struct harness *h, const char *id, const char *name,
                                   const char *body, int64_t version)
{
    struct store_write w = {.kind = STORE_TOOL_UPDATE};
    w.tool = (struct store_tool){.id = text(id),
                                 .name = text(name),
                                 .body = text(body),
                                 .enabled = 1,
                                 .version = version,
                                 .updated_ms = h->now_ms};
    return harness_write(h, &w);
}

// One of an import of the team red.
static struct store_write one_of(const struct harness *h, enum store_write_kind kind,
                                 const char *id, const char *name, const char *body)
{
    struct store_write w = {.kind = kind};
    w.tool = (struct store_tool){.id = text(id),
                                 .team = text("red"),
                                 .name = text(name),
                                 .body = text(body),
                                 .enabled = 1,
                                 .created_ms = h->now_ms,
                                 .updated_ms = h->now_ms};
    return w;
}

static struct store_outcome import(struct harness *h, const struct store_write *writes, size_t n)
{
    return harness_write(
        h, &(struct store_write){.kind = STORE_TOOL_IMPORT, .lent = true, .import = {writes, n}});
}

static int change(struct harness *h, enum store_write_kind kind, struct store_tool t)
{
    return harness_write(h, &(struct store_write){.kind = kind, .tool = t}).error;
}

static int share(struct harness *h, const char *id, const char *with, int64_t permission)
{
    return change(
        h, STORE_TOOL_SHARE,
        (struct store_tool){
            .id = text(id), .with = text(with), .permission = permission, .created_ms = h->now_ms});
}

static int unshare(struct harness *h, const char *id, const char *with)
{
    return change(h, STORE_TOOL_UNSHARE, (struct store_tool){.id = text(id), .with = text(with)});
}

static const struct rows *list(struct harness *h, const char *team, const char *cursor, int limit)
{
    return harness_read(h, &(struct store_query){.kind = STORE_LIST_TOOLS,
                                                 .team = text(team),
                                                 .cursor = text(cursor),
                                                 .limit = limit});
}

static const struct rows *of_id(struct harness *h, enum store_read_kind kind, const char *id)
{
    return harness_read(
        h, &(struct store_query){.kind = kind, .id = text(id), .limit = STORE_LIST_MAX});
}

static const struct store_record *version_of(struct harness *h, const char *id, int64_t version)
{
    const struct rows *r = harness_read(
        h, &(struct store_query){.kind = STORE_GET_VERSION, .id = text(id), .version = version});
    assert_int_equal(r->end, r->n == 1 ? 0 : STORE_MISSING);
    return r->n == 1 ? &r->at[0] : NULL;
}

static void count_outcomes(void *ctx, const struct store_outcome *o)
{
    *(int *)ctx += o->error == 0;
}

static bool text_is(struct store_text t, const char *s)
{
    return t.len == strlen(s) && memcmp(t.data, s, t.len) == 0;
}

// A version that is there, with this name and body.
static bool version_is(struct harness *h, const char *id, int64_t version, const char *name,
                       const char *body)
{
    const struct store_record *r = version_of(h, id, version);
    return r && r->tool.version == version && text_is(r->tool.name, name) &&
           text_is(r->tool.body, body);
}

#define IS(outcome, answer, of)                                                                    \
    do {                                                                                           \
        struct store_outcome o_ = (outcome);                                                       \
        assert_int_equal(o_.error, answer);                                                        \
        assert_int_equal(o_.id_len, strlen(of));                                                   \
        assert_memory_equal(o_.id, of, o_.id_len);                                                 \
    } while (0)

static void a_tool_comes_back_as_it_was_given(void **state)
{
    struct harness *h = *state;
    static const char odd[] = "{\"a\":\"\0\xff\"}";
    struct store_write w = {.kind = STORE_TOOL_CREATE};
    w.tool = (struct store_tool){.id = text("t1"),
                                 .team = text("red"),
                                 .name = text("add"),
                                 .body = {odd, sizeof odd},
                                 .created_ms = h->now_ms};
    assert_int_equal(harness_write(h, &w).error, 0);
    harness_reopen(h);
    const struct store_record *r = harness_one(h, STORE_GET_TOOL, "t1", "red");
    assert_non_null(r);
    SAME(r->tool.id, "t1");
    SAME(r->tool.team, "red");
    SAME(r->tool.name, "add");
    assert_int_equal(r->tool.body.len, sizeof odd);
    assert_memory_equal(r->tool.body.data, odd, sizeof odd);
    assert_null(r->tool.with.data);
    assert_int_equal(r->tool.permission, STORE_OWNS);
    assert_int_equal(r->tool.enabled, 0);
    assert_int_equal(r->tool.version, 1);
    assert_int_equal(r->tool.created_ms, h->now_ms);
    assert_int_equal(r->tool.updated_ms, h->now_ms);
    assert_non_null(harness_one(h, STORE_GET_TOOL, "t1", NULL));
    assert_null(harness_one(h, STORE_GET_TOOL, "t1", "blue")); // as one that does not exist
    assert_null(harness_one(h, STORE_GET_TOOL, "t2", "red"));

    w.tool.name = text("other");
    IS(harness_write(h, &w), -EEXIST, "");
    assert_int_equal(list(h, "red", NULL, 10)->n, 1); // nothing of it is there
    w.tool.id = text("t3");
    w.tool.body.data = NULL;
    assert_int_equal(harness_write(h, &w).error, -EINVAL);
    w.tool.body = (struct store_text){odd, STORE_TOOL_MAX + 1};
    assert_int_equal(harness_write(h, &w).error, -EMSGSIZE);
    w.tool.body = text("{}");
    w.tool.id = text("");
    assert_int_equal(harness_write(h, &w).error, -EINVAL);
}

static void a_name_is_taken_once_in_a_team(void **state)
{
    struct harness *h = *state;
    IS(create(h, "t1", "red", "add", "{}"), 0, "");
    IS(create(h, "t2", "red", "add", "{}"), STORE_CONFLICT, "t1");
    IS(create(h, "t3", "blue", "add", "{}"), 0, "");
    IS(create(h, "t4", "red", "Add", "{}"), 0, "");
    IS(update(h, "t4", "add", "{}", 0), STORE_CONFLICT, "t1");
    IS(update(h, "t4", "sub", "{}", 0), 0, "");
    IS(update(h, "t4", "sub", "{}", 0), 0, "");
    IS(create(h, "t5", "red", "Add", "{}"), 0, ""); // that name is free now
    assert_int_equal(change(h, STORE_TOOL_DELETE, (struct store_tool){.id = text("t1")}), 0);
    IS(update(h, "t4", "add", "{}", 0), 0, "");
    SAME(harness_one(h, STORE_GET_TOOL, "t3", "blue")->tool.name, "add");
}

static void a_change_makes_a_version_and_nothing_else_does(void **state)
{
    struct harness *h = *state;
    int64_t begun_ms = h->now_ms;
    create(h, "t", "red", "add", "one");
    h->now_ms += 10;
    IS(update(h, "t", "add", "one", 1), 0, ""); // as it is
    const struct store_record *r = harness_one(h, STORE_GET_TOOL, "t", "red");
    assert_int_equal(r->tool.version, 1);
    assert_int_equal(r->tool.updated_ms, begun_ms);
    IS(update(h, "t", "add", "two", 1), 0, "");
    IS(update(h, "t", "add", "three", 1), STORE_STALE, "");
    r = harness_one(h, STORE_GET_TOOL, "t", "red");
    assert_int_equal(r->tool.version, 2);
    assert_int_equal(r->tool.updated_ms, h->now_ms);
    assert_int_equal(r->tool.created_ms, begun_ms);
    SAME(r->tool.body, "two");
    h->now_ms += 10;
    IS(update(h, "t", "sum", "two", 0), 0, ""); // a new name is a change
    struct store_tool off = {.id = text("t"), .enabled = 0, .updated_ms = h->now_ms};
    assert_int_equal(change(h, STORE_TOOL_ENABLE, off), 0);
    share(h, "t", "blue", STORE_MAY_READ);
    r = harness_one(h, STORE_GET_TOOL, "t", "red");
    assert_int_equal(r->tool.version, 3);
    assert_int_equal(r->tool.enabled, 0);
    h->now_ms += 10;
    off.updated_ms = h->now_ms;
    assert_int_equal(change(h, STORE_TOOL_ENABLE, off), 0); // it is off already
    assert_int_equal(harness_one(h, STORE_GET_TOOL, "t", "red")->tool.updated_ms, h->now_ms - 10);
    struct store_write as_it_is = {.kind = STORE_TOOL_UPDATE};
    as_it_is.tool = (struct store_tool){
        .id = text("t"), .name = text("sum"), .body = text("two"), .enabled = -1, .updated_ms = 1};
    IS(harness_write(h, &as_it_is), 0, "");
    r = harness_one(h, STORE_GET_TOOL, "t", "red");
    assert_int_equal(r->tool.enabled, 0);
    assert_int_equal(r->tool.updated_ms, h->now_ms - 10);
    IS(update(h, "t", "sum", "two", 3), 0, ""); // enabled alone
    r = harness_one(h, STORE_GET_TOOL, "t", "red");
    assert_int_equal(r->tool.enabled, 1);
    assert_int_equal(r->tool.version, 3);
    assert_int_equal(r->tool.updated_ms, h->now_ms);

    assert_true(version_is(h, "t", 1, "add", "one"));
    assert_true(version_is(h, "t", 3, "sum", "two"));
    const struct rows *rows = of_id(h, STORE_LIST_VERSIONS, "t");
    assert_int_equal(rows->n, 3);
    assert_int_equal(rows->at[2].tool.updated_ms, begun_ms);
    assert_int_equal(rows->at[1].tool.updated_ms, begun_ms + 10);
    assert_null(version_of(h, "t", 4));
    assert_null(version_of(h, "none", 1));
    IS(update(h, "none", "x", "{}", 0), STORE_MISSING, "");
    off.id = text("none");
    assert_int_equal(change(h, STORE_TOOL_ENABLE, off), STORE_MISSING);
}

static void old_versions_go(void **state)
{
    struct harness *h = *state;
    char body[16];
    create(h, "other", "red", "other", "0"); // whose versions stay
    create(h, "t", "red", "add", "1");
    int done = 0;
    for (int i = 2; i < STORE_VERSIONS_MAX + 3; i++) {
        snprintf(body, sizeof body, "%d", i);
        struct store_write w = {.kind = STORE_TOOL_UPDATE, .lazy = true};
        w.tool = (struct store_tool){
            .id = text("t"), .name = text("add"), .body = text(body), .version = i - 1};
        assert_int_equal(store_write(h->store, &w, count_outcomes, &done), 0);
    }
    snprintf(body, sizeof body, "%d", STORE_VERSIONS_MAX + 3);
    IS(update(h, "t", "add", body, STORE_VERSIONS_MAX + 2), 0, "");
    assert_int_equal(done, STORE_VERSIONS_MAX + 1);
    const struct rows *r = of_id(h, STORE_LIST_VERSIONS, "t");
    assert_int_equal(r->end, 0);
    assert_int_equal(r->n, STORE_VERSIONS_MAX);
    for (size_t i = 0; i < r->n; i++) {
        assert_int_equal(r->at[i].tool.version, STORE_VERSIONS_MAX + 3 - (int64_t)i);
        assert_null(r->at[i].tool.body.data);
    }
    assert_null(version_of(h, "t", 3));
    assert_true(version_is(h, "t", 4, "add", "4"));
    assert_true(version_is(h, "other", 1, "other", "0"));
    assert_int_equal(of_id(h, STORE_LIST_VERSIONS, "none")->n, 0);
}

static void a_shared_tool_is_seen_by_that_team_alone(void **state)
{
    struct harness *h = *state;
    create(h, "t", "red", "add", "{}");
    assert_int_equal(share(h, "t", "blue", STORE_MAY_READ), 0);
    const struct store_record *r = harness_one(h, STORE_GET_TOOL, "t", "blue");
    SAME(r->tool.team, "red");
    SAME(r->tool.with, "blue");
    assert_int_equal(r->tool.permission, STORE_MAY_READ);
    assert_null(harness_one(h, STORE_GET_TOOL, "t", "green"));
    h->now_ms += 10;
    assert_int_equal(share(h, "t", "green", STORE_MAY_READ), 0);
    assert_int_equal(share(h, "t", "blue", STORE_MAY_EXECUTE), 0); // changes it, in its place
    const struct rows *rows = of_id(h, STORE_LIST_SHARES, "t");
    assert_int_equal(rows->n, 2);
    SAME(rows->at[0].tool.with, "blue");
    assert_int_equal(rows->at[0].tool.permission, STORE_MAY_EXECUTE);
    assert_int_equal(rows->at[0].tool.created_ms, h->now_ms - 10);
    SAME(rows->at[1].tool.with, "green");
    assert_int_equal(rows->at[1].tool.permission, STORE_MAY_READ);

    IS(update(h, "t", "sum", "{\"n\":2}", 0), 0, ""); // they see what it is now
    harness_reopen(h);
    r = harness_one(h, STORE_GET_TOOL, "t", "green");
    SAME(r->tool.name, "sum");
    SAME(r->tool.body, "{\"n\":2}");
    assert_int_equal(r->tool.version, 2);

    assert_int_equal(unshare(h, "t", "blue"), 0);
    assert_int_equal(unshare(h, "t", "blue"), STORE_MISSING);
    assert_null(harness_one(h, STORE_GET_TOOL, "t", "blue"));
    assert_int_equal(list(h, "blue", NULL, 10)->n, 0);
    assert_int_equal(unshare(h, "t", "red"), STORE_MISSING); // the owner's is no share
    assert_int_equal(share(h, "t", "red", STORE_MAY_READ), STORE_MISSING);
    assert_int_equal(harness_one(h, STORE_GET_TOOL, "t", "red")->tool.permission, STORE_OWNS);
    assert_int_equal(share(h, "none", "blue", STORE_MAY_READ), STORE_MISSING);
    assert_int_equal(share(h, "t", "blue", STORE_OWNS), -EINVAL);
    assert_int_equal(share(h, "t", "blue", STORE_MAY_EXECUTE + 1), -EINVAL);
    assert_int_equal(of_id(h, STORE_LIST_SHARES, "t")->n, 1);
}

static void shares_of_a_tool_are_bounded(void **state)
{
    struct harness *h = *state;
    char team[16];
    create(h, "t", "red", "add", "{}");
    int done = 0;
    for (int i = 0; i < STORE_SHARES_MAX; i++) {
        snprintf(team, sizeof team, "team%d", i);
        struct store_write w = {.kind = STORE_TOOL_SHARE, .lazy = true};
        w.tool =
            (struct store_tool){.id = text("t"), .with = text(team), .permission = STORE_MAY_READ};
        assert_int_equal(store_write(h->store, &w, count_outcomes, &done), 0);
    }
    assert_int_equal(share(h, "t", "one_more", STORE_MAY_READ), STORE_IS_FULL);
    assert_int_equal(done, STORE_SHARES_MAX);
    assert_int_equal(share(h, "t", "team7", STORE_MAY_EXECUTE), 0); // is one of them
    assert_int_equal(unshare(h, "t", "team3"), 0);
    assert_int_equal(share(h, "t", "one_more", STORE_MAY_READ), 0);
    create(h, "t2", "red", "sub", "{}");
    assert_int_equal(share(h, "t2", "one_more", STORE_MAY_READ), 0);
}

static void what_is_deleted_is_gone_whole(void **state)
{
    struct harness *h = *state;
    create(h, "t", "red", "add", "one");
    create(h, "other", "red", "sub", "kept");
    update(h, "t", "add", "two", 0);
    share(h, "t", "blue", STORE_MAY_EXECUTE);
    share(h, "other", "blue", STORE_MAY_EXECUTE);
    assert_int_equal(change(h, STORE_TOOL_DELETE, (struct store_tool){.id = text("t")}), 0);
    assert_int_equal(change(h, STORE_TOOL_DELETE, (struct store_tool){.id = text("t")}),
                     STORE_MISSING);
    assert_null(harness_one(h, STORE_GET_TOOL, "t", NULL));
    assert_null(version_of(h, "t", 1));
    assert_int_equal(of_id(h, STORE_LIST_SHARES, "t")->n, 0);
    assert_int_equal(list(h, "blue", NULL, 10)->n, 1);
    IS(create(h, "t", "green", "add", "new"), 0, ""); // another's now; nothing of the old one
    assert_null(harness_one(h, STORE_GET_TOOL, "t", "blue"));
    assert_int_equal(of_id(h, STORE_LIST_VERSIONS, "t")->n, 1);
    assert_true(version_is(h, "other", 1, "sub", "kept"));
}

static void tools_are_listed_by_name(void **state)
{
    struct harness *h = *state;
    // ids, names and times in three orders
    create(h, "5", "red", "b", "{}");
    create(h, "3", "red", "d", "{}");
    create(h, "9", "red", "a", "{}");
    create(h, "1", "blue", "b", "{}"); // shared later than that of green
    create(h, "2", "green", "b", "{}");
    create(h, "4", "green", "c", "{}");
    create(h, "6", "green", "hidden", "{}");
    share(h, "2", "red", STORE_MAY_READ);
    share(h, "1", "red", STORE_MAY_EXECUTE);
    share(h, "4", "red", STORE_MAY_READ);
    static const char *const order[] = {"9", "5", "2", "1", "4", "3"};
    for (int limit = 1; limit <= 7; limit++) {
        char cursor[8] = "";
        size_t n = 0;
        for (bool more = true; more;) {
            const struct rows *r = list(h, "red", n ? cursor : NULL, limit);
            assert_int_equal(r->end, 0);
            for (size_t i = 0; i < r->n; i++) {
                assert_in_range(n, 0, ARRAY_LEN(order) - 1);
                SAME(r->at[i].tool.id, order[n]);
                SAME(r->at[i].tool.body, "{}");
                snprintf(cursor, sizeof cursor, "%s", order[n++]);
            }
            more = r->n == (size_t)limit;
        }
        assert_int_equal(n, ARRAY_LEN(order));
    }
    assert_int_equal(list(h, "red", "6", 10)->end, STORE_MISSING); // that red does not see
    assert_int_equal(list(h, "red", "none", 10)->end, STORE_MISSING);
    assert_int_equal(list(h, "red", NULL, STORE_LIST_MAX + 1)->end, -EINVAL);
    assert_int_equal(list(h, "nobody", NULL, 10)->n, 0);
}

static void seen(struct harness *h, const char *cursor, int limit, char *ret_ids)
{
    const struct rows *r = harness_read(h, &(struct store_query){.kind = STORE_LIST_SEEN_TOOLS,
                                                                 .team = text("red"),
                                                                 .cursor = text(cursor),
                                                                 .limit = limit});
    assert_int_equal(r->end, 0);
    for (size_t i = 0; i < r->n; i++) {
        *ret_ids++ = r->at[i].tool.id.data[0];
    }
    *ret_ids = '\0';
}

// What a page has shown is on no later one, and what it has not is, whatever they are called.
static void pages_are_of_an_order_that_no_name_changes(void **state)
{
    struct harness *h = *state;
    char ids[16];
    create(h, "5", "red", "b", "{}");
    create(h, "3", "blue", "d", "{}");
    create(h, "9", "red", "a", "{}");
    create(h, "6", "blue", "hidden", "{}");
    share(h, "3", "red", STORE_MAY_READ);
    create(h, "1", "red", "c", "{}");
    seen(h, NULL, 10, ids);
    assert_string_equal(ids, "5931");
    seen(h, NULL, 2, ids);
    assert_string_equal(ids, "59");
    update(h, "9", "z", "{}", 0); // the cursor's own
    update(h, "5", "zz", "{}", 0);
    update(h, "3", "A", "{}", 0);
    update(h, "1", "AA", "{}", 0);
    seen(h, "9", 1, ids);
    assert_string_equal(ids, "3");
    seen(h, "3", 10, ids);
    assert_string_equal(ids, "1");
    struct store_query q = {
        .kind = STORE_LIST_SEEN_TOOLS, .team = text("red"), .cursor = text("6"), .limit = 10};
    assert_int_equal(harness_read(h, &q)->end, STORE_MISSING);
}

// Who goes on behind a tool by the name that it had sees each tool once, whatever it is called now.
static void a_list_goes_on_where_it_was(void **state)
{
    struct harness *h = *state;
    create(h, "1", "red", "a", "{}");
    create(h, "2", "red", "b", "{}");
    create(h, "3", "red", "c", "{}");
    struct store_query q = {.kind = STORE_LIST_TOOLS,
                            .team = text("red"),
                            .cursor = text("2"),
                            .name = text("b"),
                            .limit = 10};
    static const char *const now[] = {"b", "Z", "z"};
    for (size_t i = 0; i < ARRAY_LEN(now); i++) {
        update(h, "2", now[i], "{}", 0);
        const struct rows *r = harness_read(h, &q);
        assert_int_equal(r->end, 0);
        assert_int_equal(r->n, strcmp(now[i], "z") == 0 ? 2 : 1); // the other one is itself
        SAME(r->at[0].tool.name, "c");
    }
}

static void own_tools_are_listed_alone(void **state)
{
    struct harness *h = *state;
    create(h, "1", "red", "b", "one");
    create(h, "2", "red", "a", "two");
    create(h, "3", "blue", "c", "three");
    share(h, "3", "red", STORE_MAY_READ);
    for (int names = 0; names < 2; names++) {
        const struct rows *r = harness_read(
            h, &(struct store_query){.kind = names ? STORE_LIST_TOOL_NAMES : STORE_LIST_OWN_TOOLS,
                                     .team = text("red"),
                                     .limit = STORE_TOOLS_MAX});
        assert_int_equal(r->end, 0);
        assert_int_equal(r->n, 2);
        SAME(r->at[0].tool.id, "2");
        SAME(r->at[1].tool.name, "b");
        assert_int_equal(r->at[0].tool.permission, STORE_OWNS);
        if (names) {
            assert_null(r->at[0].tool.body.data);
        } else {
            SAME(r->at[0].tool.body, "two");
        }
    }
    const struct rows *r = harness_read(
        h, &(struct store_query){
               .kind = STORE_LIST_OWN_TOOLS, .team = text("red"), .name = text("a"), .limit = 1});
    assert_int_equal(r->n, 1);
    SAME(r->at[0].tool.name, "b");
}

struct some {
    unsigned n;
    int end;
    bool enough;
};

static void some_row(void *ctx, const struct store_record *r)
{
    struct some *s = ctx;
    assert_true(r->tool.id.len > 0);
    s->enough = ++s->n == 2;
}

static void some_end(void *ctx, int error) { ((struct some *)ctx)->end = error; }

static void a_reader_may_have_enough(void **state)
{
    struct harness *h = *state;
    create(h, "1", "red", "a", "{}");
    create(h, "2", "red", "b", "{}");
    create(h, "3", "red", "c", "{}");
    struct some s = {.end = 1000};
    store_read(h->store,
               &(struct store_query){.kind = STORE_LIST_TOOLS, .team = text("red"), .limit = 3},
               &(struct store_reader){some_row, some_end, &s, &s.enough});
    while (s.end == 1000) {
        assert_int_equal(loop_step(h->loop, 1000), 0);
    }
    assert_int_equal(s.end, 0);
    assert_int_equal(s.n, 2);
}

static const struct rows *find(struct harness *h, const char *team, const char *name)
{
    return harness_read(
        h, &(struct store_query){
               .kind = STORE_FIND_TOOL, .team = text(team), .name = text(name), .limit = 2});
}

static void a_name_means_the_teams_own_tool_first(void **state)
{
    struct harness *h = *state;
    create(h, "1", "blue", "add", "{}");
    create(h, "2", "green", "add", "{}");
    create(h, "3", "black", "add", "{}");
    share(h, "3", "red", STORE_MAY_READ);
    share(h, "1", "red", STORE_MAY_READ);
    share(h, "2", "red", STORE_MAY_EXECUTE);
    const struct rows *r = find(h, "red", "add");
    assert_int_equal(r->n, 2); // as many as were asked for: it is not one
    SAME(r->at[0].tool.id, "3");
    SAME(r->at[1].tool.id, "1");
    create(h, "4", "red", "add", "{}");
    r = find(h, "red", "add");
    assert_int_equal(r->n, 1);
    SAME(r->at[0].tool.id, "4");
    assert_int_equal(r->at[0].tool.permission, STORE_OWNS);
    update(h, "4", "own", "{}", 0);
    assert_int_equal(find(h, "red", "add")->n, 2);
    assert_int_equal(find(h, "red", "own")->n, 1);
    assert_int_equal(find(h, "red", "none")->n, 0);
    assert_int_equal(find(h, "red", "none")->end, 0);
}

static void tools_of_a_team_are_bounded(void **state)
{
    struct harness *h = *state;
    int done = 0;
    char id[16];
    for (int i = 0; i < STORE_TOOLS_MAX; i++) {
        snprintf(id, sizeof id, "t%04d", i);
        struct store_write w = {.kind = STORE_TOOL_CREATE, .lazy = true};
        w.tool = (struct store_tool){
            .id = text(id), .team = text("red"), .name = text(id), .body = text("{}")};
        assert_int_equal(store_write(h->store, &w, count_outcomes, &done), 0);
    }
    IS(create(h, "more", "red", "more", "{}"), STORE_IS_FULL, "");
    assert_int_equal(done, STORE_TOOLS_MAX);
    IS(create(h, "more", "red", "t0007", "{}"), STORE_CONFLICT, "t0007"); // says the nearer thing
    IS(create(h, "more", "blue", "more", "{}"), 0, "");
    IS(update(h, "t0007", "more", "{}", 0), 0, "");
    assert_int_equal(list(h, "red", NULL, STORE_LIST_MAX)->n, STORE_TOOLS_MAX);
    assert_int_equal(change(h, STORE_TOOL_DELETE, (struct store_tool){.id = text("t0003")}), 0);
    const struct store_write two[] = {one_of(h, STORE_TOOL_CREATE, "last", "last", "{}"),
                                      one_of(h, STORE_TOOL_CREATE, "more", "more2", "{}")};
    struct store_outcome o = import(h, two, 2);
    IS(o, STORE_IS_FULL, "");
    assert_int_equal(o.at, 1);
    assert_null(harness_one(h, STORE_GET_TOOL, "last", "red"));
    IS(import(h, two, 1), 0, "");
}

static void an_import_is_there_whole_or_not_at_all(void **state)
{
    struct harness *h = *state;
    create(h, "t", "red", "add", "one");
    const struct store_write all[] = {one_of(h, STORE_TOOL_CREATE, "n", "new", "{}"),
                                      one_of(h, STORE_TOOL_UPDATE, "t", "add", "two"),
                                      one_of(h, STORE_TOOL_CREATE, "twin", "add", "{}")};
    const struct store_write missing[] = {one_of(h, STORE_TOOL_CREATE, "n", "new", "{}"),
                                          one_of(h, STORE_TOOL_UPDATE, "none", "none", "{}")};
    const struct store_write same_id[] = {one_of(h, STORE_TOOL_UPDATE, "t", "add", "two"),
                                          one_of(h, STORE_TOOL_CREATE, "t", "new", "{}")};
    const struct {
        const struct store_write *writes;
        size_t n;
        int error;
        const char *id;
    } failing[] = {
        {all, 3, STORE_CONFLICT, "t"}, {missing, 2, STORE_MISSING, ""}, {same_id, 2, -EEXIST, ""}};
    for (size_t i = 0; i < ARRAY_LEN(failing); i++) {
        struct store_outcome o = import(h, failing[i].writes, failing[i].n);
        IS(o, failing[i].error, failing[i].id);
        assert_int_equal(o.at, failing[i].n - 1);
        assert_null(harness_one(h, STORE_GET_TOOL, "n", "red"));
        const struct store_record *r = harness_one(h, STORE_GET_TOOL, "t", "red");
        assert_int_equal(r->tool.version, 1);
        SAME(r->tool.body, "one");
        assert_int_equal(of_id(h, STORE_LIST_VERSIONS, "t")->n, 1);
    }
    IS(import(h, all, 2), 0, "");
    IS(import(h, all, 0), 0, "");
    harness_reopen(h);
    assert_int_equal(harness_one(h, STORE_GET_TOOL, "n", "red")->tool.version, 1);
    assert_int_equal(harness_one(h, STORE_GET_TOOL, "t", "red")->tool.version, 2);
    // each sees what those before it have done
    const struct store_write in_order[] = {one_of(h, STORE_TOOL_UPDATE, "t", "sum", "two"),
                                           one_of(h, STORE_TOOL_CREATE, "a", "add", "{}")};
    IS(import(h, in_order, 2), 0, "");
    assert_int_equal(list(h, "red", NULL, 10)->n, 3);
}

static void an_import_has_tools_alone(void **state)
{
    struct harness *h = *state;
    struct store_write one = one_of(h, STORE_TOOL_CREATE, "t", "add", "{}");
    struct store_write w = {.kind = STORE_TOOL_IMPORT, .import = {&one, 1}};
    assert_int_equal(harness_write(h, &w).error, -EINVAL); // nobody says that it stays
    w.import.n = STORE_TOOLS_MAX + 1;
    w.lent = true;
    assert_int_equal(harness_write(h, &w).error, -EINVAL);
    one.tool.body.len = STORE_TOOL_MAX + 1;
    IS(import(h, &one, 1), -EMSGSIZE, "");
    for (enum store_write_kind kind = 0; kind <= STORE_WRITE_KINDS; kind++) {
        one = one_of(h, kind, "t", "add", "{}");
        if (kind != STORE_TOOL_CREATE && kind != STORE_TOOL_UPDATE) {
            IS(import(h, &one, 1), -EINVAL, "");
        }
    }
    assert_int_equal(list(h, "red", NULL, 10)->n, 0);
}

const struct CMUnitTest contract_tools[] = {
    cmocka_unit_test(a_tool_comes_back_as_it_was_given),
    cmocka_unit_test(a_name_is_taken_once_in_a_team),
    cmocka_unit_test(a_change_makes_a_version_and_nothing_else_does),
    cmocka_unit_test(old_versions_go),
    cmocka_unit_test(a_shared_tool_is_seen_by_that_team_alone),
    cmocka_unit_test(shares_of_a_tool_are_bounded),
    cmocka_unit_test(what_is_deleted_is_gone_whole),
    cmocka_unit_test(tools_are_listed_by_name),
    cmocka_unit_test(pages_are_of_an_order_that_no_name_changes),
    cmocka_unit_test(a_list_goes_on_where_it_was),
    cmocka_unit_test(own_tools_are_listed_alone),
    cmocka_unit_test(a_reader_may_have_enough),
    cmocka_unit_test(a_name_means_the_teams_own_tool_first),
    cmocka_unit_test(tools_of_a_team_are_bounded),
    cmocka_unit_test(an_import_is_there_whole_or_not_at_all),
    cmocka_unit_test(an_import_has_tools_alone),
};
const size_t n_contract_tools = ARRAY_LEN(contract_tools);
