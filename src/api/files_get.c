// files_get.c: a file of a session, with its hash as entity tag; a folder as a zip that is made
// while it is sent.
#include "api/files.h"

#include "base/clock.h"
#include "base/fd.h"
#include "model/media.h"
#include "workspace/zip.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

enum {
    HASH_PIECE_BYTES = 8 << 20,   // about 50 ms
    ZIP_PIECE_BYTES = 128 * 1024, // sent at once; below http_config.out_bytes
    ZIP_MAX_ENTRIES = 200000,
};
#define ZIP_MAX_BYTES (UINT64_C(16) << 30)

void file_digest_begin(struct file_digest *d, const struct files_file *file)
{
    d->over = 0;
    files_hash_begin(&d->hash, file);
}

void file_digest_step(struct file_digest *d)
{
    d->over = files_hash_step(&d->hash, HASH_PIECE_BYTES, d->hex);
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

// ---- a file

struct get_call {
    struct file_call file;
    struct files_file opened; // fd -1: none
    int64_t opened_ms;
    struct file_digest digest;
};

static void get_drop(struct file_call *f)
{
    work_close(f->with->pool, ((struct get_call *)f)->opened.fd, f->owner);
}

static void get_run(struct work *w)
{
    struct get_call *g = w->ctx;
    file_digest_step(&g->digest);
}

static void send_file(struct file_call *f)
{
    struct get_call *g = (struct get_call *)f;
    struct api_call *c = f->call;
    char etag[FILE_ETAG], mode[16];
    file_etag(g->digest.hex, etag);
    if (http_condition(c->r, etag) == 412) {
        file_call_fail(f, FILES_MISMATCH);
        return;
    }
    snprintf(mode, sizeof mode, "%04o", g->opened.mode);
    http_set(c->r, "Isle-File-Mode", mode);
    api_download_fields(c, base_name(f->path));
    c->status = 200;
    http_reply_file(c->r, fd_take(&g->opened.fd), g->opened.size_bytes, media_type_inert(f->path),
                    etag);
}

static void hashed(struct file_call *f)
{
    struct get_call *g = (struct get_call *)f;
    const struct file_digest *d = &g->digest;
    if (d->over == 0) {
        file_call_work(f, get_run, hashed);
    } else if (d->over < 0) {
        file_call_fail(f, d->over == -ESTALE ? (int)FILES_CHANGED : d->over);
    } else {
        sessions_keep_hash(f->with->sessions, &g->opened, g->opened_ms, d->hex);
        send_file(f);
    }
}

// ---- a folder

struct zip_call {
    struct file_call file;
    int folder, spool; // -1: none
    struct zip *zip;   // NULL: not begun
    bool begun;
    // the thread's
    char *piece;
    size_t len;
    ssize_t got; // of the last zip_next()
};

static void zip_drop(struct file_call *f)
{
    struct zip_call *z = (struct zip_call *)f;
    zip_end(z->zip, f->with->pool, f->owner);
    free(z->piece);
    fd_close(z->folder);
    work_close(f->with->pool, z->spool, f->owner);
}

static int zip_open(struct zip_call *z)
{
    const struct file_call *f = &z->file;
    z->piece = malloc(ZIP_PIECE_BYTES);
    int e = z->piece ? files_spool(sessions_trash(f->with->sessions), &z->spool) : -ENOMEM;
    const struct zip_options o = {.uid = f->lease.files.uid,
                                  .spool = z->spool,
                                  .max_entries = ZIP_MAX_ENTRIES,
                                  .max_bytes = ZIP_MAX_BYTES};
    e = e ? e : zip_begin(z->folder, &o, &z->zip);
    z->folder = fd_close(z->folder);
    return e == -EAGAIN ? -EIO : e; // it would be called again
}

static void zip_run(struct work *w)
{
    struct zip_call *z = w->ctx;
    z->len = 0;
    z->got = z->zip ? 0 : zip_open(z);
    if (z->got) {
        return;
    }
    do {
        z->got = zip_next(z->zip, z->piece + z->len, ZIP_PIECE_BYTES - z->len);
        z->len += z->got > 0 ? (size_t)z->got : 0;
    } while ((z->got > 0 || z->got == -EAGAIN) && z->len < ZIP_PIECE_BYTES);
}

static void zip_piece(struct file_call *f);

static void zip_more(struct http_request *r)
{
    struct api_call *c = http_ctx(r);
    struct zip_call *z = c->ctx;
    if (!z->file.work.queued && !file_call_work(&z->file, zip_run, zip_piece)) {
        http_abort(r);
    }
}

static void zip_refuse(struct file_call *f, int error)
{
    if (error == -E2BIG) {
        api_fail(f->call, API_TOO_LARGE, "path: more than %d entries", ZIP_MAX_ENTRIES);
    } else {
        file_call_fail(f, error == -EFBIG    ? (int)FILES_TOO_BIG
                          : error == -ENOSPC ? (int)FILES_FULL
                                             : error);
    }
}

// False: no body is wanted, or the call has failed.
static bool zip_begin_reply(struct zip_call *z)
{
    struct api_call *c = z->file.call;
    AUTO_BUF struct buf name = BUF_INIT(512);
    buf_printf(&name, "%s.zip", strcmp(z->file.path, ".") ? base_name(z->file.path) : "workspace");
    z->begun = true;
    api_download_fields(c, buf_text(&name));
    c->status = 200;
    int wanted = http_stream_begin(c->r, 200, "application/zip", -1);
    http_stream_on_room(c->r, zip_more);
    if (wanted == 1) {
        http_stream_end(c->r);
    }
    return wanted == 0;
}

static void zip_piece(struct file_call *f)
{
    struct zip_call *z = (struct zip_call *)f;
    struct api_call *c = f->call;
    bool failed = z->got < 0 && z->got != -EAGAIN;
    if (failed && z->begun) {
        http_abort(c->r); // who reads it sees that it is not whole
        return;
    }
    if (failed) {
        zip_refuse(f, (int)z->got);
        return;
    }
    if (!z->begun && !zip_begin_reply(z)) {
        return;
    }
    int e = z->len ? http_stream_write(c->r, z->piece, z->len) : 0;
    if (e < 0) {
        http_abort(c->r);
    } else if (z->got == 0) {
        http_stream_end(c->r);
    } else if (e == 0) {
        zip_more(c->r);
    }
}

static void get_folder(struct api_call *c)
{
    struct zip_call *z = (struct zip_call *)file_call_new(c, sizeof *z, false, zip_drop);
    if (!z) {
        return;
    }
    struct file_call *f = &z->file;
    z->folder = z->spool = -1;
    int e = files_open_folder(&f->lease.files, f->path, &z->folder);
    if (e) {
        file_call_fail(f, e);
        return;
    }
    if (http_hold(c->r, ZIP_BYTES)) { // as long as the reader takes
        api_fail_busy(c);
    } else {
        file_call_work(f, zip_run, zip_piece);
    }
}

// Nothing is hashed or packed for a reader who has closed.
static void reader_gone(struct api_call *c) { http_abort(c->r); }

void file_get(struct api_call *c)
{
    struct get_call *g = (struct get_call *)file_call_new(c, sizeof *g, false, get_drop);
    if (!g) {
        return;
    }
    c->gone = reader_gone;
    g->opened.fd = -1;
    g->opened_ms = clock_wall_ms();
    int e = files_open(&g->file.lease.files, g->file.path, UINT64_MAX, &g->opened);
    if (e == FILES_FOLDER) {
        c->end(c); // another kind of call goes on
        c->end = NULL;
        get_folder(c);
        return;
    }
    if (e) {
        g->opened.fd = -1;
        file_call_fail(&g->file, e);
    } else if (sessions_known_hash(c->with->sessions, &g->opened, g->digest.hex)) {
        send_file(&g->file);
    } else {
        file_digest_begin(&g->digest, &g->opened);
        file_call_work(&g->file, get_run, hashed);
    }
}
