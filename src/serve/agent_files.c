#include "agent/read.h"
#include "codec/json.h"
#include "codec/json_out.h"
#include "model/job.h"
#include "serve/agent_inner.h"

#include "base/fd.h"
#include "base/populate.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { REFUSAL_BYTES = 1024, PREFIX_BYTES = 12 };

// ---- arguments

static yyjson_val *argument(const struct agent_op *op, const char *name)
{
    return yyjson_obj_get(op->arguments, name);
}

// 0 where there is none; the schema has bounds that fit.
static uint32_t number(const struct agent_op *op, const char *name)
{
    int64_t n = 0;
    return json_int(argument(op, name), &n) == 0 ? (uint32_t)n : 0;
}

char *agent_op_path(struct agent_op *op)
{
    struct job_error why;
    char *below = NULL;
    yyjson_val *v = argument(op, "path");
    if (job_path("path", yyjson_get_str(v), yyjson_get_len(v), &below, &why)) {
        agent_op_refuse(op, NULL, "%s. Files are in /workspace: name one there", why.text);
        return NULL;
    }
    return below;
}

// ---- answers

enum { FULL_PATH = JOB_MAX_PATH + 16 };

// As a model knows it.
static void full_path(const char *path, char ret[FULL_PATH])
{
    bool root = strcmp(path, ".") == 0;
    snprintf(ret, FULL_PATH, "/workspace%s%s", root ? "" : "/", root ? "" : path);
}

static void put_path(struct buf *out, const char *path)
{
    char full[FULL_PATH];
    full_path(path, full);
    json_put_text(out, "path", full);
}

void agent_op_begin_answer(struct agent_op *op, const char *path, const char *tag)
{
    json_begin(&op->answer, NULL, '{');
    json_put_bool(&op->answer, "success", true);
    json_put_text(&op->answer, "error", NULL);
    put_path(&op->answer, path);
    json_put_text(&op->answer, "tag", tag);
}

static void put_refusal(struct agent_op *op, const char *path, const char *text)
{
    AUTO_BUF struct buf whole = BUF_INIT(JOB_MAX_PATH + REFUSAL_BYTES + 64);
    if (path) {
        char full[FULL_PATH];
        full_path(path, full);
        buf_printf(&whole, "%s: ", full);
    }
    buf_puts(&whole, text);
    buf_clear(&op->answer);
    json_begin(&op->answer, NULL, '{');
    json_put_bool(&op->answer, "success", false);
    json_put_text(&op->answer, "error", buf_text(&whole));
    if (path) {
        put_path(&op->answer, path);
    }
    json_end(&op->answer, '}');
}

void agent_op_refuse(struct agent_op *op, const char *path, const char *format, ...)
{
    char text[REFUSAL_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    put_refusal(op, path, text);
}

void agent_op_refuse_file(struct agent_op *op, const char *path, int refusal)
{
    static const struct {
        enum files_refusal refusal;
        const char *advice;
    } table[] = {
        {FILES_MISSING, ". Look with bash (ls) what there is, or make it with write"},
        {FILES_LINK, ". Name the file that it leads to (bash: realpath)"},
        {FILES_FOLDER, ". Name a file in it (bash: ls)"},
        {FILES_ROOT, ". Name a file in it (bash: ls)"},
        {FILES_NO_FOLDER, ". Choose another path"},
        {FILES_SPECIAL, ". Use bash for it"},
        {FILES_FOREIGN, ". Use bash for it"},
        {FILES_NAME, ". Choose a shorter one"},
        {FILES_FULL,
         ", or as much is kept of the session or its team as it may have. Remove what is not "
         "needed any more, or write it anew with less in it"},
        {FILES_BUSY, ". Nothing was changed: wait until it has ended, then read again"},
        {FILES_CHANGED, ". Nothing was changed by this call: read it again, then decide"},
    };
    const char *advice = "";
    if (refusal < 0) {
        op->error = refusal;
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        advice = (int)table[i].refusal == refusal ? table[i].advice : advice;
    }
    agent_op_refuse(op, path, "%s%s", files_refusal_text((enum files_refusal)refusal), advice);
}

// ---- a whole file

// What is there of the size it had when it was opened: it may shrink meanwhile.
static int read_whole(const struct files_file *file, char *data, size_t *ret_len)
{
    size_t n = 0;
    while (n < file->size_bytes) {
        ssize_t got = pread(file->fd, data + n, file->size_bytes - n, (off_t)n);
        if (got < 0 && errno != EINTR) {
            return -errno;
        }
        if (got == 0) {
            break;
        }
        n += got > 0 ? (size_t)got : 0;
    }
    *ret_len = n;
    return 0;
}

int agent_file_read(struct agent_op *op, const char *path, struct agent_file *ret)
{
    *ret = (struct agent_file){.file = {.fd = -1}};
    int e = files_open(&op->lease.files, path, UINT64_MAX, &ret->file);
    if (e) {
        ret->file.fd = -1;
        agent_op_refuse_file(op, path, e);
        return -EINVAL;
    }
    if (ret->file.size_bytes > TEXT_MAX_BYTES) {
        agent_op_refuse(op, path,
                        "the file has %llu bytes, and this tool takes %d: use bash (sed -n, head, "
                        "tail, grep, Python)",
                        (unsigned long long)ret->file.size_bytes, TEXT_MAX_BYTES);
        return -EINVAL;
    }
    ret->data = malloc(ret->file.size_bytes + 1);
    if (ret->data) {
        populate(ret->data, ret->file.size_bytes);
    }
    e = ret->data ? read_whole(&ret->file, ret->data, &ret->len) : -ENOMEM;
    op->error = e;
    return e;
}

void agent_file_done(struct agent_file *f)
{
    if (f->data || f->file.fd > 0) { // not zeroed
        fd_close(f->file.fd);
    }
    free(f->data);
    *f = (struct agent_file){.file = {.fd = -1}};
}

// ---- read

static void tell_lines(struct agent_op *op, const char *path, const struct agent_file *f,
                       const struct text *t, const struct buf *lines, const struct read_result *r)
{
    struct buf *out = &op->answer;
    buf_reserve(out, lines->len + lines->len / 8 + REFUSAL_BYTES);
    agent_op_begin_answer(op, path, t->tag);
    json_put_bytes(out, "content", buf_text(lines), lines->len);
    json_put_int(out, "first_line", r->first);
    json_put_int(out, "last_line", r->last);
    json_put_int(out, "total_lines", t->count);
    json_put_int(out, "shown", r->shown);
    json_put_int(out, "matched", r->matched);
    if (r->next) {
        json_put_int(out, "next_line", r->next);
    } else {
        json_put_text(out, "next_line", NULL);
    }
    json_put_int(out, "size_bytes", (int64_t)f->len);
    json_put_bool(out, "truncated", r->next || r->cut);
    json_end(out, '}');
}

static void read_text(struct agent_op *op, const char *path, const struct agent_file *f,
                      const struct text *t)
{
    AUTO_BUF struct buf lines = BUF_INIT(AGENT_ANSWER_MAX);
    yyjson_val *search = argument(op, "search");
    struct agent_refusal why;
    struct read_result res;
    uint32_t most = number(op, "max_chars");
    size_t all = f->len + (size_t)t->count * PREFIX_BYTES, room = most ? most : READ_MAX_CHARS;
    buf_reserve(&lines, (all < room ? all : room) + REFUSAL_BYTES); // a guess
    const struct read_request r = {.path = path,
                                   .start_line = number(op, "start_line"),
                                   .end_line = number(op, "end_line"),
                                   .search = yyjson_get_str(search),
                                   .search_len = yyjson_get_len(search),
                                   .max_chars = most};
    int e = read_lines(t, &r, &op->session->memory, &lines, &res, &why);
    if (e == AGENT_REFUSED) {
        agent_op_refuse(op, path, "%s", why.text);
    } else if (e) {
        op->error = e;
    } else {
        op->remembered = true;
        tell_lines(op, path, f, t, &lines, &res);
    }
}

void agent_read_run(struct agent_op *op)
{
    struct agent_file f = {0};
    struct agent_refusal why;
    struct text t = {0};
    AUTO_FREE char *path = agent_op_path(op);
    if (!path || agent_file_read(op, path, &f)) {
        agent_file_done(&f);
        return;
    }
    int e = text_init(&t, f.data, f.len, &why);
    if (e == AGENT_REFUSED) {
        agent_op_refuse(op, path, "%s", why.text);
    } else if (e) {
        op->error = e;
    } else {
        read_text(op, path, &f, &t);
        text_done(&t);
    }
    agent_file_done(&f);
}

// ---- write

static size_t characters(const char *data, size_t len)
{
    size_t n = 0;
    for (size_t i = 0; data && i < len; i++) {
        n += ((unsigned char)data[i] & 0xc0) != 0x80;
    }
    return n;
}

// 0, or a refusal of files.h, or -errno.
static int write_file(struct agent_op *op, const char *path, const char *data, size_t len,
                      bool *ret_created)
{
    struct files_write w = {0};
    const struct files_write_options o = {.condition = FILES_ANY,
                                          .max_bytes = len,
                                          .make_folders = op->room_bytes > 0,
                                          .quick = true,
                                          .parts = sessions_trash(op->sessions)};
    op->measure = true; // a call that is refused may have made folders, too
    int e = files_write_begin(&w, &op->lease.files, path, &o);
    if (e) {
        return e == FILES_MISSING && !o.make_folders ? (int)FILES_FULL : e;
    }
    e = w.replaced || op->room_bytes > 0 ? 0 : FILES_FULL;
    e = e ? e : files_write_add(&w, data, len);
    e = e ? e : files_write_commit(&w);
    *ret_created = op->measure = !w.replaced;
    op->more_bytes = e ? 0 : w.more_bytes;
    files_write_drop(&w);
    return e;
}

// Who wrote the lines knows them.
static int remember_written(struct agent_op *op, const char *path, const struct text *t)
{
    AUTO_FREE uint32_t *numbers = malloc(((size_t)t->count + 1) * sizeof *numbers);
    if (!numbers) {
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < t->count; i++) {
        numbers[i] = i + 1;
    }
    op->remembered = true;
    return t->count ? memory_show(&op->session->memory, path, t, numbers, NULL, t->count) : 0;
}

static void tell_written(struct agent_op *op, const char *path, const char *data, size_t len,
                         bool created)
{
    struct buf *out = &op->answer;
    struct agent_refusal why;
    struct text t = {0};
    char tag[TEXT_TAG_SIZE];
    int e = text_init(&t, data, len, &why); // refuses what is no text: it is written all the same
    op->error = e < 0 ? e : e ? 0 : remember_written(op, path, &t);
    text_tag(text_hash(data, len), tag);
    agent_op_begin_answer(op, path, tag);
    json_put_int(out, "bytes", (int64_t)len);
    if (e == 0) {
        json_put_int(out, "total_lines", t.count);
    } else {
        json_put_text(out, "total_lines", NULL);
    }
    json_put_bool(out, "created", created);
    json_end(out, '}');
    text_done(&t);
}

void agent_write_run(struct agent_op *op)
{
    yyjson_val *content = argument(op, "content");
    const char *text = yyjson_get_str(content), *data = text ? text : "";
    size_t len = text ? yyjson_get_len(content) : 0, chars = characters(data, len);
    bool created = false;
    AUTO_FREE char *path = agent_op_path(op);
    if (!path) {
        return;
    }
    if (chars > AGENT_WRITE_MAX_CHARS) {
        agent_op_refuse(op, path,
                        "content has %zu characters, and one call takes %d: write the first part, "
                        "then add the others with edit (insert_tail), or make it with bash",
                        chars, AGENT_WRITE_MAX_CHARS);
        return;
    }
    if (len > op->room_bytes) {
        agent_op_refuse_file(op, path, FILES_FULL);
        return;
    }
    int e = write_file(op, path, data, len, &created);
    if (e) {
        agent_op_refuse_file(op, path, e);
        return;
    }
    tell_written(op, path, data, len, created);
}
