#include "serve/agent.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/hash.h"
#include "io/loop.h"
#include "log/log.h"
#include "serve/agent_calls.h"
#include "serve/agent_inner.h"

#include <string.h>

enum {
    BUCKETS = 1024,
    MEMORY_BYTES_MAX = 64 << 20, // of all sessions
    REST_MS = 1000,              // so long after its last use a memory is written ...
    LONGEST_MS = 10 * 1000,      // ... and in any case so long after its first change
};

struct agents {
    struct agents_config config;
    struct agent_session *buckets[BUCKETS];
    uint64_t bytes; // of all memories
    struct loop_timer due;
    bool stopped;
};

const char *const agent_tool_names[AGENT_TOOLS] = {
    [AGENT_BASH] = "bash", [AGENT_READ] = "read",         [AGENT_WRITE] = "write",
    [AGENT_EDIT] = "edit", [AGENT_ARTIFACT] = "artifact",
};

// Those that make jobs have calls of their own; the others a `run`.
static const struct tool {
    void (*call)(const struct agents_config *with, struct agent_call *c);
    void (*leave)(const struct agents_config *with, struct agent_call *c);
    void (*run)(struct agent_op *op);
} tools[AGENT_TOOLS] = {
    [AGENT_BASH] = {.call = agent_bash_call, .leave = agent_bash_leave},
    [AGENT_ARTIFACT] = {.call = agent_artifact_call, .leave = agent_artifact_leave},
    [AGENT_READ] = {.run = agent_read_run},
    [AGENT_WRITE] = {.run = agent_write_run},
    [AGENT_EDIT] = {.run = agent_edit_run},
};

// ---- who is remembered

static struct agent_session **bucket(struct agents *a, const char *id)
{
    return &a->buckets[hash_bytes(id, strlen(id)) % BUCKETS];
}

static struct agent_session *find(struct agents *a, const char *id)
{
    struct agent_session *s = *bucket(a, id);
    while (s && strcmp(s->id, id) != 0) {
        s = s->next;
    }
    return s;
}

static struct agent_session *find_or_make(struct agents *a, const char *id)
{
    struct agent_session *s = find(a, id);
    if (s) {
        return s;
    }
    s = calloc(1, sizeof *s);
    if (s) {
        struct agent_session **first = bucket(a, id);
        memcpy(s->id, id, sizeof s->id); // a session's: 36 characters
        s->bytes = sizeof *s;
        s->next = *first;
        *first = s;
        a->bytes += s->bytes;
    }
    return s;
}

// Nobody works with it.
static void forget(struct agents *a, struct agent_session *s)
{
    struct agent_session **at = bucket(a, s->id);
    while (*at != s) {
        at = &(*at)->next;
    }
    *at = s->next;
    a->bytes -= s->bytes;
    memory_done(&s->memory);
    free(s);
}

// ---- turns

static void op_free(struct agent_op *op)
{
    yyjson_doc_free(op->doc);
    buf_free(&op->answer);
    free(op->team);
    free(op);
}

static void keep_room(struct agents *a);
static void write_later(struct agents *a, struct agent_session *s);

static void log_memory(const struct agents *a, const struct agent_op *op, const char *event)
{
    log_say(a->config.log, LOG_WARNING, event, LOG_T("session", op->session->id),
            LOG_T("error",
                  op->memory_error == -EBADMSG ? "it is damaged" : strerror(-op->memory_error)));
}

static void answer(struct agent_op *op)
{
    struct agent_call *c = op->call;
    int error = op->error ? op->error : op->answer.error;
    if (!c) {
        return;
    }
    op->call = NULL;
    c->inner = NULL;
    if (error) {
        c->refused(c, error, strerror(-error));
    } else {
        struct buf data = op->answer;
        op->answer = BUF_INIT(0);
        c->answered(c, &data);
    }
}

// What it did to the session's memory.
static void settle(struct agents *a, struct agent_op *op)
{
    struct agent_session *s = op->session;
    if (!op->team) {
        if (op->memory_error) {
            log_memory(a, op, "what agents remember was not kept");
        }
        s->dirty = false; // or the next change tries again
        return;
    }
    s->used_ns = clock_now_ns();
    if (op->memory_error) {
        log_memory(a, op, "what agents remembered was lost");
    }
    a->bytes -= s->bytes;
    s->bytes = agent_kept_bytes(&s->memory);
    a->bytes += s->bytes;
    if (op->remembered) {
        write_later(a, s);
    }
}

static bool go_on(struct agents *a, struct agent_session *s);

static void op_done(struct work *w)
{
    struct agent_op *op = w->ctx;
    struct agents *a = op->of;
    struct agent_session *s = op->session;
    settle(a, op);
    sessions_take(a->config.sessions, &op->lease, op->more_bytes);
    sessions_release(a->config.sessions, &op->lease,
                     op->measure ? SESSIONS_MEASURE : SESSIONS_UNCHANGED);
    s->first = op->next;
    s->last = s->first ? s->last : NULL;
    bool gone = op->forget && !s->first;
    if (gone) {
        forget(a, s);
    } else {
        go_on(a, s);
    }
    answer(op); // may come back here with another call
    op_free(op);
    keep_room(a);
}

static void op_run(struct work *w)
{
    struct agent_op *op = w->ctx;
    struct agent_session *s = op->session;
    if (!op->team) {
        op->memory_error = agent_kept_save(&op->lease, &s->memory);
        return;
    }
    if (!s->loaded) {
        op->memory_error = agent_kept_load(&op->lease, &s->memory);
        s->loaded = true;
    }
    op->run(op);
}

// 0, or a refusal of sessions.h, or -errno.
static int op_start(struct agents *a, struct agent_op *op)
{
    int e = sessions_lease(a->config.sessions, op->team, op->session->id, &op->lease);
    if (e) {
        return e;
    }
    op->room_bytes = sessions_room(a->config.sessions, &op->lease);
    op->work =
        (struct work){.run = op_run, .done = op_done, .ctx = op, .owner = work_owner(op->team)};
    e = work_queue(a->config.pool, &op->work);
    if (e) {
        sessions_release(a->config.sessions, &op->lease, SESSIONS_UNCHANGED);
    }
    return e;
}

// The next turn that can begin. Those that cannot are answered when the session's state is whole:
// an answer may bring the next call. False: s is gone.
static bool go_on(struct agents *a, struct agent_session *s)
{
    struct agent_op *over = NULL, **last = &over;
    bool saved = false;
    while (s->first && !s->first->work.queued) {
        struct agent_op *op = s->first;
        bool wanted = op->call || !op->team;
        op->error = wanted ? op_start(a, op) : -ECANCELED;
        if (!op->error) {
            break;
        }
        saved = saved || (!op->team && op->error > 0);
        s->first = op->next;
        s->last = s->first ? s->last : NULL;
        op->next = NULL;
        *last = op;
        last = &op->next;
    }
    bool gone = !s->first && (saved || !s->loaded); // so is the session, or it never was
    if (gone) {
        forget(a, s);
    }
    while (over) {
        struct agent_op *op = over;
        over = op->next;
        answer(op);
        op_free(op);
    }
    return !gone;
}

static bool enqueue(struct agents *a, struct agent_session *s, struct agent_op *op)
{
    op->of = a;
    op->sessions = a->config.sessions;
    op->session = s;
    op->answer = BUF_INIT(AGENT_ANSWER_MAX);
    *(s->last ? &s->last->next : &s->first) = op;
    s->last = op;
    return go_on(a, s);
}

// ---- what is remembered is kept

// False: s is gone.
static bool write_now(struct agents *a, struct agent_session *s, bool forget_it)
{
    struct agent_op *op = calloc(1, sizeof *op);
    if (!op) { // the next look tries again
        return true;
    }
    op->forget = forget_it;
    return enqueue(a, s, op);
}

static void look_again(struct agents *a, uint64_t at_ns, uint64_t now_ns)
{
    if (!a->stopped && (!a->due.due_ns || at_ns < a->due.due_ns)) {
        loop_timer_set(a->config.loop, &a->due, at_ns > now_ns ? at_ns - now_ns : 1);
    }
}

static uint64_t due_ns(const struct agent_session *s)
{
    uint64_t rested = s->used_ns + REST_MS * NS_PER_MS;
    uint64_t longest = s->dirty_ns + LONGEST_MS * NS_PER_MS;
    return rested < longest ? rested : longest;
}

static void write_later(struct agents *a, struct agent_session *s)
{
    if (!s->dirty) {
        s->dirty = true;
        s->dirty_ns = s->used_ns;
    }
    look_again(a, due_ns(s), s->used_ns);
}

static void look(struct loop_timer *t)
{
    struct agents *a = t->ctx;
    uint64_t now_ns = clock_now_ns(), next_ns = UINT64_MAX;
    for (size_t i = 0; i < BUCKETS; i++) {
        struct agent_session *next;
        for (struct agent_session *s = a->buckets[i]; s; s = next) {
            next = s->next;
            if (!s->dirty) {
                continue;
            }
            uint64_t at_ns = s->first ? now_ns + REST_MS * NS_PER_MS : due_ns(s);
            if (at_ns <= now_ns) {
                bool stays = write_now(a, s, false);
                if (!stays || s->first) {
                    continue;
                }
                at_ns = now_ns + REST_MS * NS_PER_MS; // it could not begin
            }
            next_ns = at_ns < next_ns ? at_ns : next_ns;
        }
    }
    if (next_ns != UINT64_MAX) {
        look_again(a, next_ns, now_ns);
    }
}

// Those that were unused for longest go while there are too many.
static void keep_room(struct agents *a)
{
    while (a->bytes > MEMORY_BYTES_MAX) {
        uint64_t going = 0;
        struct agent_session *oldest = NULL;
        for (size_t i = 0; i < BUCKETS; i++) {
            for (struct agent_session *s = a->buckets[i]; s; s = s->next) {
                going += s->first && s->first->forget ? s->bytes : 0;
                if (!s->first && (!oldest || s->used_ns < oldest->used_ns)) {
                    oldest = s;
                }
            }
        }
        if (!oldest || a->bytes - going <= MEMORY_BYTES_MAX) {
            return;
        }
        if (!oldest->dirty) {
            forget(a, oldest);
            continue;
        }
        if (write_now(a, oldest, true) && !oldest->first) { // no memory for it
            return;
        }
    }
}

// ---- calls

static int begin(struct agents *a, struct agent_call *c)
{
    struct agent_session *s = find(a, c->session);
    if (s && s->first) { // a call that cannot be is refused before its turn comes
        struct session_lease l;
        int e = sessions_lease(a->config.sessions, c->team, c->session, &l);
        if (e) {
            return e;
        }
        sessions_release(a->config.sessions, &l, SESSIONS_UNCHANGED);
    }
    s = find_or_make(a, c->session);
    AUTO_FREE struct agent_op *op = calloc(1, sizeof *op);
    AUTO_FREE char *team = strdup(c->team);
    if (!s || !op || !team) {
        return -ENOMEM;
    }
    op->team = team;
    op->call = c;
    op->run = tools[c->tool].run;
    op->arguments = c->arguments;
    op->doc = c->doc;
    c->doc = NULL;
    c->inner = op;
    struct agent_op *taken = op;
    team = NULL;
    op = NULL;
    enqueue(a, s, taken); // which may be its end
    return 0;
}

void agents_call(struct agents *a, struct agent_call *c)
{
    if (tools[c->tool].call) {
        tools[c->tool].call(&a->config, c);
        return;
    }
    int e = begin(a, c);
    if (e) {
        c->refused(c, e, strerror(e < 0 ? -e : 0));
    }
}

void agents_leave(struct agents *a, struct agent_call *c)
{
    if (tools[c->tool].leave) {
        tools[c->tool].leave(&a->config, c);
    } else if (c->inner) {
        ((struct agent_op *)c->inner)->call = NULL;
        c->inner = NULL;
    }
}

// ---- all of them

int agents_new(const struct agents_config *c, struct agents **ret)
{
    struct agents *a = calloc(1, sizeof *a);
    if (!a) {
        return -ENOMEM;
    }
    a->config = *c;
    a->due = LOOP_TIMER_INIT(look, a);
    *ret = a;
    return 0;
}

static void stop_turns(struct agents *a, struct agent_session *s)
{
    while (s->first) {
        struct agent_op *op = s->first;
        s->first = op->next;
        s->dirty = s->dirty || op->remembered;
        sessions_release(a->config.sessions, &op->lease, SESSIONS_UNCHANGED);
        op_free(op);
    }
}

void agents_stop(struct agents *a)
{
    if (!a) {
        return;
    }
    a->stopped = true;
    loop_timer_clear(a->config.loop, &a->due);
    for (size_t i = 0; i < BUCKETS; i++) {
        for (struct agent_session *s = a->buckets[i]; s; s = s->next) {
            struct session_lease l;
            stop_turns(a, s);
            if (s->dirty && sessions_lease(a->config.sessions, NULL, s->id, &l) == 0) {
                agent_kept_save(&l, &s->memory);
                sessions_release(a->config.sessions, &l, SESSIONS_UNCHANGED);
            }
        }
    }
}

void agents_free(struct agents *a)
{
    for (size_t i = 0; a && i < BUCKETS; i++) {
        while (a->buckets[i]) {
            forget(a, a->buckets[i]);
        }
    }
    free(a);
}
