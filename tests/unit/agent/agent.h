// agent.h: a file in memory, read and edited as a session does it.
#ifndef ISLE_TESTS_AGENT_H
#define ISLE_TESTS_AGENT_H

#include "agent/edit.h"
#include "agent/read.h"
#include "codec/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct file {
    const char *path;
    char *data;
    size_t len;
    struct agent_memory m;
    char tag[TEXT_TAG_SIZE]; // of the last read
    char told[512];          // the last refusal
    char reply[1024];
};

static inline void file_set(struct file *f, const char *data, size_t len)
{
    free(f->data);
    f->data = malloc(len + 1);
    assert_non_null(f->data);
    memcpy(f->data, data, len);
    f->data[len] = 0;
    f->len = len;
}

static inline struct file file_of(const char *path, const char *text)
{
    struct file f = {.path = path};
    file_set(&f, text, strlen(text));
    return f;
}

static inline void file_done(struct file *f)
{
    free(f->data);
    memory_done(&f->m);
}

__attribute__((noinline, unused)) static int file_read(struct file *f, const struct read_request *r,
                                                       struct buf *out, struct read_result *ret)
{
    struct text t;
    struct agent_refusal why = {""};
    struct read_request mine = *r;
    mine.path = f->path;
    int result = text_init(&t, f->data, f->len, &why);
    if (result == 0) {
        result = read_lines(&t, &mine, &f->m, out, ret, &why);
        memcpy(f->tag, t.tag, sizeof f->tag);
        text_done(&t);
    }
    memcpy(f->told, why.text, sizeof f->told);
    return result;
}

static inline void file_see(struct file *f, uint32_t from, uint32_t to)
{
    AUTO_BUF struct buf out = BUF_INIT(8 << 20);
    struct read_result res;
    assert_int_equal(
        file_read(f, &(struct read_request){.start_line = from, .end_line = to}, &out, &res), 0);
}

// One request: `edits` is the JSON list, with ' for " to be readable here; the tag is that of the
// last read.
__attribute__((noinline, unused)) static int file_edit(struct file *f, const char *edits)
{
    char body[2048];
    snprintf(body, sizeof body, "{'tag':'%s','edits':%s}", f->tag, edits);
    for (char *p = body; *p; p++) {
        *p = *p == '\'' ? '"' : *p;
    }
    struct json_error bad = {""};
    yyjson_doc *doc = json_parse(body, strlen(body), &bad);
    if (!doc) {
        fail_msg("%s: %s", bad.text, body);
    }
    struct edit_request r;
    struct agent_refusal why = {""};
    struct text t;
    struct edit_result made;
    int result = edit_parse(yyjson_doc_get_root(doc), &r, &why);
    if (result == 0) {
        assert_int_equal(text_init(&t, f->data, f->len, &why), 0);
        result = edit_make(&t, f->path, &f->m, &r, &made, &why);
        text_done(&t);
    }
    if (result == 0) {
        AUTO_BUF struct buf told = BUF_INIT(1000);
        assert_int_equal(edit_tell(&made, &r, &told), 0);
        memcpy(f->reply, buf_text(&told), told.len + 1);
        file_set(f, buf_text(&made.data), made.data.len);
        assert_int_equal(edit_commit(&made, f->path, &f->m), 0);
        memcpy(f->tag, made.tag, sizeof f->tag);
        edit_result_done(&made);
    }
    yyjson_doc_free(doc);
    memcpy(f->told, why.text, sizeof f->told);
    return result;
}

static inline void file_is(const struct file *f, const char *want)
{
    assert_string_equal(f->data, want);
    assert_int_equal(f->len, strlen(want));
}

#endif
