// sessions.c: workspaces that outlive a job.
#include "api/page.h"
#include "api/route.h"
#include "api/session_call.h"

#include "base/fd.h"
#include "codec/json.h"
#include "codec/json_out.h"
#include "log/log.h"
#include "serve/jobs.h"
#include "serve/sessions.h"
#include "serve/shares.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { RETRY_SECONDS = 30, SESSION_BYTES = 16384 };

void api_fail_share(struct api_call *c, const char *what)
{
    char text[SHARES_TEXT];
    api_fail_later(c, API_LIMITED, RETRY_SECONDS, "%s: %s", what,
                   shares_refuse(c->with->shares, c->team, text));
}

void api_fail_session(struct api_call *c, int refusal)
{
    switch (refusal) {
    case SESSIONS_MISSING:
        api_fail(c, API_NOT_FOUND, "session: there is none with this id");
        break;
    case SESSIONS_EXPIRED:
        api_fail(c, API_GONE, "session: it has expired or was deleted");
        break;
    case SESSIONS_NO_UID:
        api_fail_later(
            c, API_LIMITED, RETRY_SECONDS,
            "session: as many live as there may be, of all or of one team; delete one, or come "
            "back later");
        break;
    case SESSIONS_NO_DISK:
        api_fail_later(c, API_UNAVAILABLE, RETRY_SECONDS,
                       "session: the disk of the workspaces is full");
        break;
    case SESSIONS_NO_SHARE:
        api_fail_share(c, "session");
        break;
    case -EAGAIN:
        api_fail_later(c, API_UNAVAILABLE, RETRY_SECONDS, "session: the store cannot take it now");
        break;
    default:
        api_fail_system(c, "session", refusal);
    }
}

// ---- one session as JSON

static void put_session(struct buf *out, const struct store_session *s)
{
    json_begin(out, NULL, '{');
    json_put_bytes(out, "session_id", s->id.data, s->id.len);
    json_put_bytes(out, "conversation_id", s->conversation.data, s->conversation.len);
    json_put_bytes(out, "agent_id", s->agent.data, s->agent.len);
    json_put_bytes(out, "team_id", s->team.data, s->team.len);
    json_put_bytes(out, "user_id", s->user.data, s->user.len);
    json_put_time(out, "created_at", s->created_ms);
    json_put_time(out, "expires_at", s->expires_ms);
    json_put_int(out, "disk_usage_bytes", s->disk_bytes);
    json_put_time(out, "last_accessed_at", s->accessed_ms);
    json_end(out, '}');
}

// ---- calls that are answered with a session

static void log_event_of(const struct api_call *c, const char *event, const struct store_session *s)
{
    char id[STORE_ID_MAX + 1];
    snprintf(id, sizeof id, "%.*s", (int)s->id.len, s->id.data);
    log_audited(c->with->log, event, LOG_T("session", id), LOG_T("team", c->team),
                LOG_T("key", *c->key_id ? c->key_id : NULL), LOG_T("trace", c->trace));
}

static void answer(struct api_call *c, const struct sessions_outcome *o, int status)
{
    struct buf data = BUF_INIT(SESSION_BYTES);
    if (o->error) {
        api_fail_session(c, o->error);
    } else {
        put_session(&data, o->session);
        api_reply(c, status, &data);
    }
    api_call_release(c);
}

static void found(void *ctx, const struct sessions_outcome *o) { answer(ctx, o, 200); }

static void created(void *ctx, const struct sessions_outcome *o)
{
    if (!o->error && !o->same) {
        log_event_of(ctx, "session created", o->session);
    }
    answer(ctx, o, o->same ? 200 : 201);
}

static void extended(void *ctx, const struct sessions_outcome *o)
{
    if (!o->error && !o->same) {
        log_event_of(ctx, "session extended", o->session);
    }
    answer(ctx, o, 200);
}

static void deleted(void *ctx, const struct sessions_outcome *o)
{
    struct api_call *c = ctx;
    struct buf data = BUF_INIT(SESSION_BYTES);
    if (o->error) {
        api_fail_session(c, o->error);
    } else {
        log_event_of(c, "session deleted", o->session);
        json_begin(&data, NULL, '{');
        json_put_bytes(&data, "session_id", o->session->id.data, o->session->id.len);
        json_end(&data, '}');
        api_reply(c, 200, &data);
    }
    api_call_release(c);
}

// ---- handlers

static const char *text_of(const struct api_call *c, const char *field)
{
    return yyjson_get_str(yyjson_obj_get(yyjson_doc_get_root(c->json), field));
}

// 0: not given. The schema has looked at its bounds.
static int64_t ttl_of(const struct api_call *c)
{
    yyjson_val *v = yyjson_obj_get(yyjson_doc_get_root(c->json), "ttl_hours");
    int64_t hours = 0;
    return v && !yyjson_is_null(v) && json_int(v, &hours) == 0 ? hours : 0;
}

static void create_session(struct api_call *c)
{
    const struct sessions_create want = {
        .team = c->team,
        .conversation = text_of(c, "conversation_id"),
        .agent = text_of(c, "agent_id"),
        .user = text_of(c, "user_id"),
        .ttl_hours = ttl_of(c),
    };
    api_call_hold(c);
    sessions_create(c->with->sessions, &want, created, c);
}

static void get_session(struct api_call *c)
{
    api_call_hold(c);
    sessions_get(c->with->sessions, c->team, c->segment[0], found, c);
}

static void extend_session(struct api_call *c)
{
    api_call_hold(c);
    sessions_extend(c->with->sessions, c->team, c->segment[0], ttl_of(c), extended, c);
}

// Its jobs end first: nothing is to work in it when its files go.
static void delete_session(struct api_call *c)
{
    if (sessions_lives(c->with->sessions, c->team, c->segment[0])) {
        jobs_cancel_session(c->with->jobs, c->segment[0]);
    }
    api_call_hold(c);
    sessions_delete(c->with->sessions, c->team, c->segment[0], deleted, c);
}

static void on_row(void *ctx, const struct store_session *s, bool lives)
{
    struct buf *out = api_page_row(ctx, s->id, 0);
    if (out && lives) {
        put_session(out, s);
    }
}

static void on_end(void *ctx, int error)
{
    api_page_end(ctx, error == SESSIONS_MISSING ? STORE_MISSING : error);
}

static void list_sessions(struct api_call *c)
{
    struct api_page *p = api_page_begin(c, SCHEMA_FORM_ID, API_LIST_LIMIT);
    if (p) {
        sessions_list(c->with->sessions, c->team, p->cursor, p->limit, on_row, on_end, c);
    }
}

#define SESSIONS "/api/v1/sandbox/sessions"
static const struct api_route routes[] = {
    {.method = HTTP_M_POST,
     .path = SESSIONS,
     .who = API_TEAM,
     .body = API_JSON,
     .request = &schema_session_create,
     .example = "{\"conversation_id\": \"chat-17\", \"ttl_hours\": 2}",
     .response = &schema_session,
     .success = 201,
     .also = &schema_session,
     .handle = create_session,
     .summary = "Make a session (201), or find that of the conversation (200)."},
    {.method = HTTP_M_GET,
     .path = SESSIONS,
     .who = API_TEAM,
     .response = &schema_session_list,
     .handle = list_sessions,
     .query = "limit cursor",
     .summary = "The sessions that live, newest first."},
    {.method = HTTP_M_GET,
     .path = SESSIONS "/{id}",
     .who = API_TEAM,
     .response = &schema_session,
     .handle = get_session,
     .summary = "One session. Looking at it changes nothing."},
    {.method = HTTP_M_DELETE,
     .path = SESSIONS "/{id}",
     .who = API_TEAM,
     .response = &schema_session_deleted,
     .handle = delete_session,
     .summary = "End it: its jobs are cancelled, its files go in the background."},
    {.method = HTTP_M_POST,
     .path = SESSIONS "/{id}/extend",
     .who = API_TEAM,
     .body = API_JSON,
     .request = &schema_session_extend,
     .example = "{\"ttl_hours\": 24}",
     .response = &schema_session,
     .handle = extend_session,
     .summary =
         "Let it live longer: its end is so many hours from now, never earlier than it was."},
};

const struct api_subject api_sessions = {
    "sessions", "Workspaces that outlive a job. Jobs of one run one at a time, in order.", routes,
    ARRAY_LEN(routes)};
