#include "api/page.h"

#include "codec/json_out.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PAGE_BYTES = 1 << 20,     // a page with so many has no further row
    PAGE_MAX_BYTES = 2 << 20, // one row more has room
    PAGE_READ_BYTES = 2 << 20,
    RETRY_SECONDS = 5,
};

static void page_end(struct api_call *c)
{
    struct api_page *p = c->ctx;
    buf_free(&p->data);
    free(p);
}

struct api_page *api_page_begin(struct api_call *c, enum schema_form form, int64_t limit)
{
    const char *cursor = api_query(c, "cursor");
    if (cursor && !schema_has_form(form, cursor, strlen(cursor))) {
        api_fail(c, API_VALIDATION, "cursor: must be next_cursor of the page before");
        return NULL;
    }
    struct api_page *p = calloc(1, sizeof *p);
    if (!p) {
        api_fail(c, API_INTERNAL, "no memory");
        return NULL;
    }
    *p = (struct api_page){.cursor = cursor,
                           .limit = api_query_number(c, "limit", limit),
                           .data = BUF_INIT(PAGE_MAX_BYTES)};
    json_begin(&p->data, NULL, '{');
    json_begin(&p->data, "items", '[');
    c->ctx = p;
    c->end = page_end;
    api_call_hold(c);
    return p;
}

struct buf *api_page_row(struct api_call *c, struct store_text id, size_t read)
{
    struct api_page *p = c->ctx;
    p->enough = p->enough || p->data.len >= PAGE_BYTES || p->read >= PAGE_READ_BYTES;
    if (p->enough) {
        return NULL;
    }
    p->rows++;
    p->read += read;
    snprintf(p->last, sizeof p->last, "%.*s", (int)id.len, id.data);
    return &p->data;
}

void api_page_end(struct api_call *c, int error)
{
    struct api_page *p = c->ctx;
    if (error == STORE_MISSING) {
        api_fail(c, API_VALIDATION, "cursor: what it names is not there any more; begin anew");
    } else if (error) {
        api_fail_later(c, API_UNAVAILABLE, RETRY_SECONDS, "the store cannot be read: %s",
                       strerrordesc_np(-error));
    } else {
        bool more = p->enough || p->rows == p->limit;
        json_end(&p->data, ']');
        json_put_text(&p->data, "next_cursor", more ? p->last : NULL);
        json_end(&p->data, '}');
        api_reply(c, 200, &p->data);
    }
    api_call_release(c);
}

void api_page_ended(void *call, int error) { api_page_end(call, error); }
