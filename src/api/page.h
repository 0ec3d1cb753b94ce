// page.h: lists that are answered page by page: {"items":[...],"next_cursor":...}. The route takes
// `limit` and `cursor`; a cursor is the id of the last record of the page before.
#ifndef ISLE_API_PAGE_H
#define ISLE_API_PAGE_H

#include "api/call.h"
#include "api/schema.h"
#include "store/store.h"

struct api_page {
    const char *cursor; // of the request; NULL: the first page
    int64_t limit;
    bool enough; // no further row is wanted: for struct store_reader
    // inner
    struct buf data;
    int64_t rows;
    size_t read;
    char last[STORE_ID_MAX + 1];
};

// Begins a page, c->ctx from here on, and holds the call for the rows that are to come. `form`: of
// the ids; `limit`: rows where the caller does not say. NULL: the call has failed, and is not held.
struct api_page *api_page_begin(struct api_call *c, enum schema_form form, int64_t limit);
// Where the next row is to be put, as one object. `read`: bytes that it is made of, if they may be
// many. NULL: the page is full.
struct buf *api_page_row(struct api_call *c, struct store_text id, size_t read);
// After the last row: answers, and lets the call go. The second: error is one of store.h.
void api_page_end(struct api_call *c, int error);
void api_page_ended(void *call, int error);

#endif
