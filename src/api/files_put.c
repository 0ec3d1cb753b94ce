// files_put.c: a file of a session, written as it comes. What is written waits for the disk on a
// thread, and the peer waits meanwhile: memory is constant.
#include "api/files.h"

#include "base/fd.h"
#include "codec/json_out.h"

#include <string.h>

enum { PIECE_BYTES = 256 * 1024, COMMIT_STEPS = 64 };

struct put_call {
    struct file_call file;
    bool charged;      // all of it, at the begin
    bool ended;        // the body has come whole
    bool failed;       // and answered so
    bool written;      // and in its place
    struct buf coming; // what is not with the thread yet
    struct buf piece;  // the thread's while it works
    struct files_write_options options;
    char if_match[SHA256_HEX];
    struct files_write write;
    int error;
};

static void put_drop(struct file_call *f)
{
    struct put_call *p = (struct put_call *)f;
    if (!p->written && f->lease.session) { // nothing of what was charged has been taken
        sessions_take(f->with->sessions, &f->lease, 0);
    }
    char part[FILES_RANDOM_NAME] = "";
    if (p->write.bytes > WORK_CLOSE_BYTES) { // it lies in the trash, where it is removed
        memcpy(part, p->write.temp, sizeof part);
        p->write.temp[0] = '\0';
    }
    work_close(f->with->pool, files_write_take_old(&p->write), f->owner);
    files_write_drop(&p->write);
    if (*part) {
        sessions_trashed(f->with->sessions, part, f->owner);
    }
    buf_free(&p->coming);
    buf_free(&p->piece);
}

int file_if_match(struct api_call *c, char ret[SHA256_HEX])
{
    const char *value;
    int given = http_field_value(c->r, "if-match", &value);
    if (given == 0) {
        return 0;
    }
    size_t len = given > 0 ? strlen(value) : 0;
    if (len != FILE_ETAG - 1 || value[0] != '"' || value[len - 1] != '"' ||
        strspn(value + 1, "0123456789abcdef") != SHA256_HEX - 1) {
        api_fail(c, API_VALIDATION,
                 "If-Match: must be one entity tag, the SHA-256 of the content: 64 of 0-9a-f in "
                 "quotes");
        return -1;
    }
    memcpy(ret, value + 1, SHA256_HEX - 1);
    ret[SHA256_HEX - 1] = '\0';
    return 1;
}

static void fail_put(struct put_call *p, int refusal)
{
    p->failed = true;
    file_call_fail(&p->file, refusal);
}

static void fail_too_big(struct put_call *p)
{
    struct api_call *c = p->file.call;
    p->failed = true;
    if (sessions_share_is_less(c->with->sessions, &p->file.lease)) {
        api_fail_share(c, "file");
        return;
    }
    api_fail(c, API_TOO_LARGE, "the file does not fit into what its session may hold (%llu bytes)",
             (unsigned long long)sessions_disk_bytes(c->with->sessions));
}

// ---- the end

static void reply_written(struct put_call *p)
{
    struct buf data = BUF_INIT(32768);
    json_begin(&data, NULL, '{');
    file_put_path(&data, p->file.path, NULL);
    json_put_int(&data, "size", (int64_t)p->write.bytes);
    json_put_text(&data, "checksum", p->write.sha256);
    json_end(&data, '}');
    char etag[FILE_ETAG];
    file_etag(p->write.sha256, etag);
    http_set(p->file.call->r, "ETag", etag);
    api_reply(p->file.call, p->write.replaced ? 200 : 201, &data);
}

static void commit_run(struct work *w)
{
    struct put_call *p = w->ctx;
    int steps = 0;
    do {
        p->error = files_write_commit(&p->write);
    } while (p->error == FILES_AGAIN && ++steps < COMMIT_STEPS);
}

static void committed(struct file_call *f)
{
    struct put_call *p = (struct put_call *)f;
    if (p->error == FILES_AGAIN) {
        file_call_work(f, commit_run, committed);
        return;
    }
    if (p->error) {
        file_call_fail(f, p->error);
        return;
    }
    p->written = true;
    reply_written(p);
}

// ---- the pieces

static void add_run(struct work *w)
{
    struct put_call *p = w->ctx;
    p->error = files_write_add(&p->write, p->piece.data, p->piece.len);
}

static void go_on(struct put_call *p);

static void added(struct file_call *f)
{
    struct put_call *p = (struct put_call *)f;
    if (p->failed) {
        return;
    }
    if (p->error) {
        fail_put(p, p->error);
        return;
    }
    buf_clear(&p->piece);
    http_body_resume(f->call->r);
    go_on(p);
}

// Gives the thread what there is for it. One piece at a time; while it has one, the peer is held as
// soon as the next is full.
static void go_on(struct put_call *p)
{
    if (p->file.work.queued) {
        return;
    }
    bool queued = true;
    if (p->coming.len >= PIECE_BYTES || (p->ended && p->coming.len)) {
        struct buf full = p->coming;
        p->coming = p->piece;
        p->piece = full;
        queued = file_call_work(&p->file, add_run, added);
    } else if (p->ended) {
        queued = file_call_work(&p->file, commit_run, committed);
    }
    p->failed = !queued;
}

static void take_piece(struct http_request *r, const char *data, size_t len)
{
    struct put_call *p = ((struct api_call *)http_ctx(r))->ctx;
    if (p->failed) {
        return;
    }
    if (len == 0) {
        p->ended = true;
    } else if (!p->charged && !sessions_charge(p->file.with->sessions, &p->file.lease, len)) {
        fail_too_big(p);
        return;
    } else if (buf_add(&p->coming, data, len)) {
        fail_put(p, -ENOMEM);
        return;
    }
    go_on(p);
    if (p->file.work.queued && p->coming.len >= PIECE_BYTES) {
        http_body_hold(r);
    }
}

// ---- the begin

// 0, or -1: the call has failed.
static int take_condition(struct api_call *c, struct files_write_options *o, char hex[SHA256_HEX])
{
    const char *none;
    int match = file_if_match(c, hex);
    int fresh = http_field_value(c->r, "if-none-match", &none);
    if (match < 0) {
        return -1;
    }
    if (fresh && (fresh < 0 || strcmp(none, "*") != 0 || match)) {
        api_fail(c, API_VALIDATION,
                 "If-None-Match: can only be * for a file that is written, and not with If-Match");
        return -1;
    }
    o->condition = match ? FILES_MATCH : fresh ? FILES_NEW : FILES_ANY;
    o->if_match = hex;
    return 0;
}

// On a thread: it may make a folder for each component of its path.
static void begin_run(struct work *w)
{
    struct put_call *p = w->ctx;
    p->error = files_write_begin(&p->write, &p->file.lease.files, p->file.path, &p->options);
}

static void begun(struct file_call *f)
{
    struct put_call *p = (struct put_call *)f;
    int e = p->error;
    if (!p->options.make_folders && (e == FILES_MISSING || (!e && !p->write.replaced))) {
        fail_too_big(p); // be it empty
        return;
    }
    if (e) {
        p->write = (struct files_write){0};
        // If-None-Match that does not hold is a precondition too
        if (e == FILES_EXISTS && p->options.condition == FILES_NEW) {
            api_fail(f->call, API_PRECONDITION, "If-None-Match: the file exists already");
        } else {
            file_call_fail(f, e);
        }
        return;
    }
    http_body_stream(f->call->r, UINT64_MAX, take_piece);
}

void file_put(struct api_call *c)
{
    char hex[SHA256_HEX] = "";
    struct files_write_options o = {.max_bytes = UINT64_MAX, // what is charged decides
                                    .parts = sessions_trash(c->with->sessions)};
    if (take_condition(c, &o, hex)) {
        return;
    }
    struct put_call *p = (struct put_call *)file_call_new(c, sizeof *p, false, put_drop);
    if (!p) {
        return;
    }
    p->coming = p->piece = BUF_INIT(2 * PIECE_BYTES + (1 << 20));
    int64_t length = http_body_length(c->r);
    o.make_folders = sessions_room(c->with->sessions, &p->file.lease) > 0;
    p->charged = length >= 0;
    if (length > 0 && !sessions_charge(c->with->sessions, &p->file.lease, (uint64_t)length)) {
        fail_too_big(p);
        return;
    }
    memcpy(p->if_match, hex, sizeof hex);
    p->options = o;
    p->options.if_match = p->if_match;
    p->file.changed = true; // a call that is refused may have made folders, too
    file_call_work(&p->file, begin_run, begun);
}
