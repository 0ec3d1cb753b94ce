#include "store/record.h"

#include "base/fd.h"

#include <errno.h>
#include <string.h>

enum record { RECORD_JOB, RECORD_SESSION, RECORD_KEY, RECORD_TOOL, RECORDS };

struct text_field {
    size_t offset, max;
};
#define FIELD(member, bound)                                                                       \
    {                                                                                              \
        offsetof(struct store_write, member), bound                                                \
    }

static const struct text_field job_texts[] = {
    FIELD(job.id, STORE_ID_MAX),           FIELD(job.team, STORE_NAME_MAX),
    FIELD(job.session, STORE_ID_MAX),      FIELD(job.reason, STORE_ID_MAX),
    FIELD(job.request, STORE_BODY_MAX),    FIELD(job.result, STORE_BODY_MAX),
    FIELD(job.caller_key, STORE_NAME_MAX), FIELD(job.request_hash, STORE_ID_MAX),
};
static const struct text_field session_texts[] = {
    FIELD(session.id, STORE_ID_MAX),
    FIELD(session.team, STORE_NAME_MAX),
    FIELD(session.conversation, STORE_NAME_MAX),
    FIELD(session.agent, STORE_NAME_MAX),
    FIELD(session.user, STORE_NAME_MAX),
};
static const struct text_field key_texts[] = {
    FIELD(key.id, STORE_ID_MAX),   FIELD(key.team, STORE_NAME_MAX), FIELD(key.name, STORE_NAME_MAX),
    FIELD(key.salt, STORE_ID_MAX), FIELD(key.hash, STORE_ID_MAX),
};
static const struct text_field tool_texts[] = {
    FIELD(tool.id, STORE_ID_MAX),     FIELD(tool.team, STORE_NAME_MAX),
    FIELD(tool.name, STORE_NAME_MAX), FIELD(tool.body, STORE_TOOL_MAX),
    FIELD(tool.with, STORE_NAME_MAX),
};
static const struct {
    const struct text_field *texts;
    size_t n;
} records[RECORDS] = {
    [RECORD_JOB] = {job_texts, ARRAY_LEN(job_texts)},
    [RECORD_SESSION] = {session_texts, ARRAY_LEN(session_texts)},
    [RECORD_KEY] = {key_texts, ARRAY_LEN(key_texts)},
    [RECORD_TOOL] = {tool_texts, ARRAY_LEN(tool_texts)},
};

static enum record record_of(enum store_write_kind kind)
{
    if (kind >= STORE_TOOL_CREATE) {
        return RECORD_TOOL;
    }
    if (kind >= STORE_KEY_CREATE) {
        return RECORD_KEY;
    }
    return kind >= STORE_SESSION_CREATE ? RECORD_SESSION : RECORD_JOB;
}

static const struct store_text *text_at(const struct store_write *w, size_t offset)
{
    return (const struct store_text *)(const void *)((const char *)w + offset);
}

// Which states and permissions a write may set.
static bool status_ok(const struct store_write *w)
{
    if (w->kind == STORE_JOB_STATUS) {
        return w->job.status > STATUS_QUEUED && w->job.status < STATUS_COMPLETED;
    }
    if (w->kind == STORE_JOB_END || w->kind == STORE_JOB_RECORD) {
        return w->job.status >= STATUS_COMPLETED && w->job.status < STATUS_COUNT;
    }
    if (w->kind == STORE_SESSION_STATE) {
        return w->session.state >= STORE_SESSION_ACTIVE && w->session.state <= STORE_SESSION_GONE;
    }
    if (w->kind == STORE_TOOL_SHARE) {
        return w->tool.permission == STORE_MAY_READ || w->tool.permission == STORE_MAY_EXECUTE;
    }
    return true;
}

static int check_one(const struct store_write *w)
{
    if (!status_ok(w)) {
        return -EINVAL;
    }
    enum record r = record_of(w->kind);
    for (size_t i = 0; i < records[r].n; i++) {
        const struct store_text *t = text_at(w, records[r].texts[i].offset);
        if (t->data && t->len > records[r].texts[i].max) {
            return -EMSGSIZE;
        }
    }
    const struct store_text *id = text_at(w, records[r].texts[0].offset);
    return id->data && id->len > 0 ? 0 : -EINVAL;
}

int store_write_check(const struct store_write *w)
{
    if ((unsigned)w->kind >= STORE_WRITE_KINDS) {
        return -EINVAL;
    }
    if (w->kind != STORE_TOOL_IMPORT) {
        return check_one(w);
    }
    int e = w->lent && w->import.n <= STORE_TOOLS_MAX ? 0 : -EINVAL;
    for (size_t i = 0; i < w->import.n && !e; i++) {
        const struct store_write *one = &w->import.writes[i];
        bool fits = one->kind == STORE_TOOL_CREATE || one->kind == STORE_TOOL_UPDATE;
        e = fits ? check_one(one) : -EINVAL;
    }
    return e;
}

static size_t size_of_one(const struct store_write *w)
{
    enum record r = record_of(w->kind);
    size_t sum = 0;
    for (size_t i = 0; i < records[r].n; i++) {
        const struct store_text *t = text_at(w, records[r].texts[i].offset);
        sum += t->data ? t->len : 0;
    }
    return sum;
}

size_t store_write_size(const struct store_write *w)
{
    size_t sum = 0;
    if (w->kind != STORE_TOOL_IMPORT) {
        return size_of_one(w);
    }
    for (size_t i = 0; i < w->import.n; i++) {
        sum += size_of_one(&w->import.writes[i]);
    }
    return sum;
}

void store_write_copy(const struct store_write *w, struct store_write *ret, char *room)
{
    enum record r = record_of(w->kind);
    *ret = *w;
    for (size_t i = 0; i < records[r].n; i++) {
        size_t offset = records[r].texts[i].offset;
        const struct store_text *from = text_at(w, offset);
        struct store_text *to = (struct store_text *)(void *)((char *)ret + offset);
        if (from->data) {
            memcpy(room, from->data, from->len);
            *to = (struct store_text){room, from->len};
            room += from->len;
        }
    }
}
