#include "client/sse.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

void sse_init(struct sse *s, size_t max_bytes, int (*event)(void *ctx, const struct sse_event *e),
              void *ctx)
{
    *s = (struct sse){
        .event = event, .ctx = ctx, .line = BUF_INIT(max_bytes), .data = BUF_INIT(max_bytes)};
}

void sse_done(struct sse *s)
{
    buf_free(&s->line);
    buf_free(&s->data);
}

// An empty line: the event is whole. Without data there is none.
static int dispatch(struct sse *s)
{
    struct sse_event e = {.name = s->name[0] ? s->name : "message",
                          .id = s->id,
                          .data = buf_text(&s->data),
                          .len = s->data.len};
    int rc = s->has_data ? s->event(s->ctx, &e) : 0;
    s->has_data = false;
    s->name[0] = '\0';
    buf_clear(&s->data);
    return rc;
}

static bool field_is(const char *line, size_t n, const char *name)
{
    return strlen(name) == n && memcmp(line, name, n) == 0;
}

static int take_line(struct sse *s)
{
    const char *line = buf_text(&s->line), *colon = memchr(line, ':', s->line.len);
    if (s->line.len == 0) {
        return dispatch(s);
    }
    size_t n = colon ? (size_t)(colon - line) : s->line.len;
    const char *value = colon ? colon + 1 : line + n;
    value += colon && *value == ' ';
    size_t len = s->line.len - (size_t)(value - line);
    if (field_is(line, n, "data")) {
        if (s->has_data) {
            buf_putc(&s->data, '\n');
        }
        s->has_data = true;
        return buf_add(&s->data, value, len);
    }
    if (field_is(line, n, "event")) {
        snprintf(s->name, sizeof s->name, "%.*s", (int)len, value);
    } else if (field_is(line, n, "id") && !memchr(value, '\0', len)) {
        snprintf(s->id, sizeof s->id, "%.*s", (int)len, value);
    }
    return 0; // "retry", comments (their name is empty), what is not known
}

int sse_feed(struct sse *s, const char *data, size_t len)
{
    for (size_t at = 0; at < len;) {
        if (s->after_cr && data[at] == '\n') {
            s->after_cr = false;
            at++;
            continue;
        }
        s->after_cr = false;
        size_t from = at;
        while (at < len && data[at] != '\n' && data[at] != '\r') {
            at++;
        }
        int e = buf_add(&s->line, data + from, at - from);
        if (e || at == len) {
            if (e) {
                return e;
            }
            break;
        }
        s->after_cr = data[at] == '\r';
        at++;
        e = take_line(s);
        buf_clear(&s->line);
        if (e) {
            return e;
        }
    }
    return 0;
}
