#include "api/session_call.h"

#include "base/fd.h"
#include "http/value.h"
#include "workspace/names.h"

#include <stdio.h>
#include <string.h>

enum { RETRY_SECONDS = 30 };

static void release(struct file_call *f)
{
    if (f->drop) {
        f->drop(f);
    }
    sessions_release(f->with->sessions, &f->lease,
                     f->changed ? SESSIONS_MEASURE : SESSIONS_UNCHANGED);
    free(f->path);
    free(f);
}

// What a thread still uses is released when it is done with it.
static void over(struct api_call *c)
{
    struct file_call *f = c->ctx;
    f->call = NULL;
    atomic_store(&f->gone, true);
    if (!f->work.queued) {
        release(f);
    }
}

// What is still in the queue when its caller has gone is not done.
static void run_piece(struct work *w)
{
    struct file_call *f = w->ctx;
    if (!atomic_load(&f->gone)) {
        f->run(w);
    }
}

static void done(struct work *w)
{
    struct file_call *f = w->ctx;
    if (f->call) {
        f->then(f);
    } else {
        release(f);
    }
}

bool file_call_work(struct file_call *f, void (*run)(struct work *w),
                    void (*then)(struct file_call *f))
{
    f->then = then;
    f->run = run;
    f->work = (struct work){.run = run_piece, .done = done, .ctx = f, .owner = f->owner};
    int e = work_queue(f->with->pool, &f->work);
    if (e) {
        api_fail_later(f->call, API_UNAVAILABLE, RETRY_SECONDS, "files: %s", strerror(-e));
        return false;
    }
    return true;
}

char *file_call_path(struct api_call *c, const char *field, const char *path, size_t len,
                     bool escaped)
{
    AUTO_BUF struct buf bytes = BUF_INIT(JOB_MAX_PATH + 1);
    struct job_error why;
    char *below = NULL;
    int e = escaped ? names_unescape(&bytes, path, len) : buf_add(&bytes, path, len);
    if (e == -EINVAL) {
        api_fail(c, API_VALIDATION, "%s: a %% without two hexadecimal digits, or %%00", field);
    } else if (e == -EMSGSIZE) {
        api_fail(c, API_VALIDATION, "%s: is over the maximum of %d bytes", field, JOB_MAX_PATH);
    } else if (e == 0) {
        e = job_path(field, buf_text(&bytes), bytes.len, &below, &why);
        if (e == -EINVAL) {
            api_fail_field(c, &why);
        }
    }
    if (e && e != -EINVAL && e != -EMSGSIZE) {
        api_fail_system(c, field, e);
    }
    return below;
}

// False: the call has failed.
static bool take_path(struct file_call *f, bool query)
{
    const char *path = query ? api_query(f->call, "path") : f->call->segment[1];
    if (!path || (!query && !*path)) {
        path = ".";
    }
    f->path =
        file_call_path(f->call, "path", path, strlen(path), api_query_flag(f->call, "escaped"));
    return f->path != NULL;
}

struct file_call *file_call_new(struct api_call *c, size_t size, bool query,
                                void (*drop)(struct file_call *f))
{
    struct file_call *f = calloc(1, size);
    if (!f) {
        api_fail(c, API_INTERNAL, "no memory");
        return NULL;
    }
    f->call = c;
    f->with = c->with;
    f->owner = work_owner(c->team);
    c->ctx = f;
    c->end = over;
    if (!take_path(f, query)) {
        return NULL;
    }
    int refusal = sessions_lease(c->with->sessions, c->team, c->segment[0], &f->lease);
    if (refusal) {
        api_fail_session(c, refusal);
        return NULL;
    }
    f->drop = drop;
    return f;
}

void file_call_fail(struct file_call *f, int refusal)
{
    static const struct {
        enum files_refusal refusal;
        enum api_code code;
    } table[] = {
        {FILES_MISSING, API_NOT_FOUND},     {FILES_EXISTS, API_EXISTS},
        {FILES_LINK, API_VALIDATION},       {FILES_OUTSIDE, API_VALIDATION},
        {FILES_FOLDER, API_EXISTS},         {FILES_NO_FOLDER, API_EXISTS},
        {FILES_SPECIAL, API_VALIDATION},    {FILES_FOREIGN, API_VALIDATION},
        {FILES_ROOT, API_VALIDATION},       {FILES_NAME, API_VALIDATION},
        {FILES_NOT_EMPTY, API_EXISTS},      {FILES_INTO_ITSELF, API_VALIDATION},
        {FILES_TOO_BIG, API_TOO_LARGE},     {FILES_FULL, API_UNAVAILABLE},
        {FILES_MISMATCH, API_PRECONDITION}, {FILES_CHANGED, API_EXISTS},
        {FILES_BUSY, API_EXISTS},
    };
    if (refusal < 0) {
        api_fail_system(f->call, "path", refusal);
        return;
    }
    enum api_code code = API_INTERNAL;
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        code = (int)table[i].refusal == refusal ? table[i].code : code;
    }
    const char *text = files_refusal_text((enum files_refusal)refusal);
    if (code == API_UNAVAILABLE) {
        api_fail_later(f->call, code, RETRY_SECONDS, "path: %s", text);
        return;
    }
    AUTO_BUF struct buf shown = BUF_INIT(4 * JOB_MAX_PATH);
    bool escaped;
    names_escape(&shown, f->path, strlen(f->path), "", &escaped);
    api_fail(f->call, code, "path: /workspace/%.300s %s", buf_text(&shown), text);
}

void file_etag(const char *sha256, char ret[FILE_ETAG])
{
    snprintf(ret, FILE_ETAG, "\"%.64s\"", sha256);
}

void api_download_fields(struct api_call *c, const char *name)
{
    AUTO_BUF struct buf value = BUF_INIT(8192);
    if (http_attachment(&value, name)) {
        buf_clear(&value);
        buf_puts(&value, "attachment");
    }
    http_set(c->r, "Content-Disposition", buf_text(&value));
    http_set(c->r, "Content-Security-Policy", "sandbox; default-src 'none'");
    http_set(c->r, "Cross-Origin-Resource-Policy", "same-origin");
}
