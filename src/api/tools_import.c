// tools_import.c: many code tools at once. A thread reads all definitions; then names are held
// against those that the team has; when all are in order they are one write, all of them or none.
#include "api/route.h"
#include "api/schema.h"
#include "api/tool_call.h"

#include "base/clock.h"
#include "base/fd.h"
#include "codec/json_out.h"
#include "io/work.h"
#include "tools/tool.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    EXPORT_BYTES = 16 << 20, // an import takes it, with what a client escapes
    PIECE_BYTES = 2 << 20,   // of it that are read at once
    TEXT_BYTES = 16 << 10,   // of what is wrong, told at once
    TEXT_ENOUGH = TEXT_BYTES - 4096,
    ANSWER_BYTES = 1 << 20,
    RETRY_SECONDS = 5,
    TRIES = 5, // of an import that changes of the same names overtake
};

// ---- Export

static void put_exported(struct buf *out, const struct store_tool *s)
{
    json_begin(out, NULL, '{');
    json_put_bool(out, "is_enabled", s->enabled != 0);
    tool_call_put_definition(out, s);
    json_end(out, '}');
}

static void begin_export(struct tool_call *t)
{
    json_begin(&t->data, NULL, '{');
    json_begin(&t->data, "tools", '[');
}

static void end_export(struct tool_call *t)
{
    json_end(&t->data, ']');
    json_end(&t->data, '}');
    if (t->data.error == -EMSGSIZE) {
        api_fail(t->call, API_TOO_LARGE,
                 "the definitions are above the maximum of %d MiB; export them one by one (id=)",
                 EXPORT_BYTES >> 20);
    } else {
        api_reply(t->call, 200, &t->data);
    }
}

static void on_own(void *ctx, const struct store_record *r)
{
    struct tool_call *t = ((struct api_call *)ctx)->ctx;
    put_exported(&t->data, &r->tool);
    t->read += r->tool.body.len;
    t->enough = t->read >= PIECE_BYTES || t->data.error;
    snprintf(t->name, sizeof t->name, "%.*s", (int)r->tool.name.len, r->tool.name.data);
}

static void on_own_end(void *ctx, int error)
{
    struct api_call *c = ctx;
    struct tool_call *t = c->ctx;
    if (error) {
        tool_call_fail_store(c, error);
    } else if (!api_call_grow(c, t->data.len)) {
        api_fail_busy(c);
    } else if (t->enough && !t->data.error) {
        loop_timer_set(c->with->loop, &t->timer, 0); // others have a turn between
    } else {
        end_export(t);
    }
    api_call_release(c);
}

static void export_piece(struct loop_timer *timer)
{
    struct tool_call *t = timer->ctx;
    struct api_call *c = t->call;
    memcpy(t->after, t->name, sizeof t->after); // what is asked for stays while rows come
    const struct store_query q = {.kind = STORE_LIST_OWN_TOOLS,
                                  .team = store_text_of(c->team),
                                  .name = store_text_of(*t->after ? t->after : NULL),
                                  .limit = STORE_TOOLS_MAX};
    t->enough = false;
    t->read = 0;
    api_call_hold(c);
    store_read(c->with->store, &q, &(struct store_reader){on_own, on_own_end, c, &t->enough});
}

static void export_one(struct tool_call *t)
{
    begin_export(t);
    put_exported(&t->data, &t->at);
    end_export(t);
}

void tools_export(struct api_call *c)
{
    const char *id = api_query(c, "id");
    struct tool_call *t = tool_call_new(c);
    if (!t) {
        return;
    }
    t->data.max = EXPORT_BYTES;
    if (id) {
        tool_call_read(t, id, true, export_one);
        return;
    }
    begin_export(t);
    t->timer = LOOP_TIMER_INIT(export_piece, t);
    export_piece(&t->timer);
}

// ---- Import: what is known of each

enum on_conflict { REFUSE, SKIP, REPLACE };
const char *const tool_conflict_names[] = {"refuse", "skip", "replace", NULL};

enum outcome { CREATED, UPDATED, SKIPPED, OUTCOMES };
const char *const tool_outcome_names[] = {"created", "updated", "skipped", NULL};

struct item {
    char name[TOOL_NAME_MAX + 1];
    struct buf text; // canonical
    int64_t enabled; // -1: not said
    char id[37];
    int64_t version;
    enum outcome outcome;
};

struct import {
    struct api_call *call; // NULL: the request is over
    struct work work;
    yyjson_doc *doc; // the call's, taken
    enum on_conflict on_conflict;
    struct item *items, **by_name;
    size_t n, own;
    struct store_write *writes; // of what is not skipped; lent to the store
    size_t *at, n_writes;       // at: the item of each
    unsigned tries;
    struct buf faults;
    unsigned more; // tools with faults that there was no room for
    int error;
};

static void import_free(struct import *i)
{
    for (size_t k = 0; i->items && k < i->n; k++) {
        buf_free(&i->items[k].text);
    }
    free(i->items);
    free(i->by_name);
    free(i->writes);
    free(i->at);
    buf_free(&i->faults);
    yyjson_doc_free(i->doc);
    free(i);
}

// What the thread still uses is freed when it is done with it.
static void import_over(struct api_call *c)
{
    struct import *i = c->ctx;
    i->call = NULL;
    if (!i->work.queued) {
        import_free(i);
    }
}

// ---- On a thread: the definitions

static void add_fault(struct import *i, const struct item *item, const char *text)
{
    if (i->faults.len > TEXT_ENOUGH) {
        i->more++;
    } else {
        buf_printf(&i->faults, "%stools[%zu]: %s", i->faults.len ? "; " : "",
                   (size_t)(item - i->items), text);
    }
}

static int read_item(struct import *i, struct item *item, yyjson_val *v)
{
    struct tool tool;
    AUTO_BUF struct buf faults = BUF_INIT(TOOL_FAULTS_BYTES);
    int e = tool_parse(v, NULL, &tool, &faults);
    *item = (struct item){.text = BUF_INIT(TOOL_BYTES_MAX), .outcome = CREATED};
    memcpy(item->name, tool.name, sizeof item->name);
    item->enabled = tool.enabled_given ? tool.enabled : -1;
    e = e ? e : tool_write(&item->text, &tool);
    tool_done(&tool);
    if (e == -EINVAL) {
        add_fault(i, item, buf_text(&faults));
        e = 0;
    }
    return e;
}

static int compare(const void *a, const void *b)
{
    return strcmp((*(struct item *const *)a)->name, (*(struct item *const *)b)->name);
}

static void find_twins(struct import *i)
{
    qsort(i->by_name, i->n, sizeof *i->by_name, compare);
    for (size_t k = 1; k < i->n; k++) {
        const struct item *one = i->by_name[k - 1], *other = i->by_name[k];
        char text[TOOL_NAME_MAX + 64];
        if (*one->name && strcmp(one->name, other->name) == 0) {
            snprintf(text, sizeof text, "name: \"%s\" is the name of tools[%zu], too", one->name,
                     (size_t)((one < other ? one : other) - i->items));
            add_fault(i, one < other ? other : one, text);
        }
    }
}

static void read_all(struct work *w)
{
    struct import *i = w->ctx;
    yyjson_val *list = yyjson_obj_get(yyjson_doc_get_root(i->doc), "tools"), *v;
    size_t k, count;
    i->n = yyjson_arr_size(list);
    const size_t room = i->n ? i->n : 1;
    i->items = calloc(room, sizeof *i->items);
    i->by_name = calloc(room, sizeof *i->by_name);
    i->writes = calloc(room, sizeof *i->writes);
    i->at = calloc(room, sizeof *i->at);
    if (!i->items || !i->by_name || !i->writes || !i->at) {
        i->error = -ENOMEM;
        return;
    }
    yyjson_arr_foreach(list, k, count, v)
    {
        i->by_name[k] = &i->items[k];
        i->error = i->error ? i->error : read_item(i, &i->items[k], v);
    }
    find_twins(i);
    if (i->more) {
        buf_printf(&i->faults, "; and faults of %u more tools", i->more);
    }
}

// ---- Back on the loop: names

static struct item *item_of(const struct import *i, struct store_text name)
{
    struct item key;
    const struct item *wanted = &key;
    if (name.len >= sizeof key.name) {
        return NULL;
    }
    memcpy(key.name, name.data, name.len);
    key.name[name.len] = '\0';
    struct item **found = bsearch(&wanted, i->by_name, i->n, sizeof *i->by_name, compare);
    return found ? *found : NULL;
}

static void on_name(void *ctx, const struct store_record *r)
{
    struct import *i = ((struct api_call *)ctx)->ctx;
    struct item *item = item_of(i, r->tool.name);
    i->own++;
    if (item) {
        item->outcome = i->on_conflict == REPLACE ? UPDATED : SKIPPED;
        snprintf(item->id, sizeof item->id, "%.*s", (int)r->tool.id.len, r->tool.id.data);
    }
}

static unsigned count_of(const struct import *i, enum outcome outcome)
{
    unsigned n = 0;
    for (size_t k = 0; k < i->n; k++) {
        n += i->items[k].outcome == outcome;
    }
    return n;
}

// False: the call has failed.
static bool names_are_free(struct import *i)
{
    size_t made = count_of(i, CREATED);
    if (i->on_conflict == REFUSE && made < i->n) {
        for (size_t k = 0; k < i->n; k++) {
            char text[TOOL_NAME_MAX + 128];
            if (i->items[k].outcome != CREATED) {
                snprintf(text, sizeof text, "name: the team has a tool \"%s\" (id %s)",
                         i->items[k].name, i->items[k].id);
                add_fault(i, &i->items[k], text);
            }
        }
        api_fail(i->call, API_EXISTS, "on_conflict: names are taken; skip or replace goes on: %s%s",
                 buf_text(&i->faults), i->more ? "; and more" : "");
        return false;
    }
    if (i->own + made > STORE_TOOLS_MAX) {
        api_fail(i->call, API_EXISTS,
                 "tools: with %zu new ones the team would have %zu, above the maximum of %d", made,
                 i->own + made, STORE_TOOLS_MAX);
        return false;
    }
    return true;
}

// ---- One write of all, and the answer

static void look_up_names(struct import *i);

static void on_version(void *ctx, const struct store_record *r)
{
    struct item *item = item_of(((struct api_call *)ctx)->ctx, r->tool.name);
    if (item) {
        item->version = r->tool.version;
    }
}

static void answer(void *ctx, int error)
{
    struct api_call *c = ctx;
    struct import *i = c->ctx;
    struct buf data = BUF_INIT(ANSWER_BYTES);
    json_begin(&data, NULL, '{');
    json_begin(&data, "items", '[');
    for (size_t k = 0; k < i->n; k++) {
        json_begin(&data, NULL, '{');
        json_put_text(&data, "name", i->items[k].name);
        json_put_text(&data, "id", i->items[k].id);
        json_put_text(&data, "outcome", tool_outcome_names[i->items[k].outcome]);
        json_put_int(&data, "version", i->items[k].version);
        json_end(&data, '}');
    }
    json_end(&data, ']');
    for (enum outcome o = 0; o < OUTCOMES; o++) {
        json_put_int(&data, tool_outcome_names[o], count_of(i, o));
    }
    json_end(&data, '}');
    if (error) {
        tool_call_fail_store(c, error);
        buf_free(&data);
    } else {
        api_reply(c, 200, &data);
    }
    api_call_release(c);
}

static void read_names(struct api_call *c, void (*row)(void *ctx, const struct store_record *r),
                       void (*end)(void *ctx, int error))
{
    const struct store_query q = {
        .kind = STORE_LIST_TOOL_NAMES, .team = store_text_of(c->team), .limit = STORE_TOOLS_MAX};
    api_call_hold(c);
    store_read(c->with->store, &q, &(struct store_reader){row, end, c, NULL});
}

// None was written. A name that was made or deleted since the names were read: they are read again,
// and `on_conflict` is asked about what is there now.
static void fail_write(struct import *i, const struct store_outcome *o)
{
    if (o->error < 0) {
        tool_call_fail_store(i->call, o->error);
    } else if (o->error == STORE_IS_FULL) {
        api_fail(i->call, API_EXISTS,
                 "tools[%zu]: with those before it the team would have more than %d tools, or %d "
                 "MiB of definitions with all versions; nothing was saved",
                 i->at[o->at], STORE_TOOLS_MAX, STORE_TOOLS_BYTES >> 20);
    } else if (++i->tries < TRIES) {
        look_up_names(i);
    } else {
        api_fail(i->call, API_EXISTS,
                 "tools[%zu]: tools of these names are made and deleted meanwhile; nothing was "
                 "saved: import again",
                 i->at[o->at]);
    }
}

static void written(void *ctx, const struct store_outcome *o)
{
    struct api_call *c = ctx;
    struct import *i = c->ctx;
    if (o->error) {
        fail_write(i, o);
    } else {
        for (size_t k = 0; k < i->n_writes; k++) {
            const struct item *item = &i->items[i->at[k]];
            tool_call_audit(c, item->outcome == CREATED ? "tool created" : "tool changed", item->id,
                            item->name, NULL);
        }
        read_names(c, on_version, answer);
    }
    api_call_release(c);
}

static void put_write(struct import *i, size_t at, int64_t now_ms)
{
    struct item *item = &i->items[at];
    bool made = item->outcome == CREATED;
    if (made) {
        job_new_id(item->id);
    }
    i->at[i->n_writes] = at;
    i->writes[i->n_writes++] =
        (struct store_write){.kind = made ? STORE_TOOL_CREATE : STORE_TOOL_UPDATE,
                             .tool = {.id = store_text_of(item->id),
                                      .team = store_text_of(i->call->team),
                                      .name = store_text_of(item->name),
                                      .body = {item->text.data, item->text.len},
                                      .enabled = made && item->enabled < 0 ? 1 : item->enabled,
                                      .created_ms = now_ms,
                                      .updated_ms = now_ms}};
}

static void hand_in(struct import *i)
{
    struct api_call *c = i->call;
    const int64_t now_ms = clock_wall_ms();
    size_t bytes = 0;
    i->n_writes = 0;
    for (size_t k = 0; k < i->n; k++) {
        if (i->items[k].outcome != SKIPPED) {
            bytes += i->items[k].text.len;
            put_write(i, k, now_ms);
        }
    }
    if (!tool_call_has_room(c, bytes)) {
        return;
    }
    const struct store_write w = {
        .kind = STORE_TOOL_IMPORT, .lent = true, .import = {i->writes, i->n_writes}};
    api_call_hold(c);
    int e = store_write(c->with->store, &w, written, c);
    if (e) {
        tool_call_fail_store(c, e);
        api_call_release(c);
    }
}

static void on_names_end(void *ctx, int error)
{
    struct api_call *c = ctx;
    struct import *i = c->ctx;
    if (error) {
        tool_call_fail_store(c, error);
    } else if (names_are_free(i)) {
        hand_in(i);
    }
    api_call_release(c);
}

static void look_up_names(struct import *i)
{
    i->own = 0;
    for (size_t k = 0; k < i->n; k++) {
        i->items[k].outcome = CREATED;
    }
    read_names(i->call, on_name, on_names_end);
}

static void was_read(struct work *w)
{
    struct import *i = w->ctx;
    if (!i->call) {
        import_free(i);
    } else if (i->error) {
        api_fail_system(i->call, "tools", i->error);
    } else if (i->faults.len) {
        api_fail(i->call, API_VALIDATION, "%s", buf_text(&i->faults));
    } else {
        look_up_names(i);
    }
}

void tools_import(struct api_call *c)
{
    struct import *i = calloc(1, sizeof *i);
    if (!i) {
        api_fail(c, API_INTERNAL, "no memory");
        return;
    }
    *i = (struct import){.call = c, .doc = c->json, .faults = BUF_INIT(TEXT_BYTES)};
    c->json = NULL;
    c->ctx = i;
    c->end = import_over;
    yyjson_val *word = yyjson_obj_get(yyjson_doc_get_root(i->doc), "on_conflict");
    while (yyjson_is_str(word) && !yyjson_equals_str(word, tool_conflict_names[i->on_conflict])) {
        i->on_conflict++;
    }
    i->work =
        (struct work){.run = read_all, .done = was_read, .ctx = i, .owner = work_owner(c->team)};
    int e = work_queue(c->with->pool, &i->work);
    if (e) {
        api_fail_later(c, API_UNAVAILABLE, RETRY_SECONDS, "tools: %s", strerrordesc_np(-e));
    }
}
