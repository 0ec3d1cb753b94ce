#include "client/fetch.h"

#include "base/fd.h"
#include "client/progress.h"
#include "codec/json.h"
#include "codec/sha256.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct arrival {
    struct outdir *to;
    struct sha256 sha;
    struct progress progress;
    uint64_t size, bytes;
    char last; // kept back until all is known to be right: the last byte gives the file its name
};

char *fetch_name(yyjson_val *artifact)
{
    static const char folder[] = "/workspace/";
    const char *path = yyjson_get_str(yyjson_obj_get(artifact, "path"));
    bool archive = yyjson_equals_str(yyjson_obj_get(artifact, "file_type"), "directory");
    char *name = NULL;
    if (!path || strncmp(path, folder, sizeof folder - 1) != 0 ||
        asprintf(&name, "%s%s", path + sizeof folder - 1, archive ? ".zip" : "") < 0) {
        return NULL;
    }
    return name;
}

static int on_data(void *ctx, const char *data, size_t len)
{
    struct arrival *a = ctx;
    if (len > a->size - a->bytes) {
        return -EBADMSG;
    }
    sha256_add(&a->sha, data, len);
    a->bytes += len;
    if (a->bytes == a->size && len > 0) {
        a->last = data[--len];
    }
    outdir_write(a->to, data, len);
    return a->to->error[0] ? -EIO : 0;
}

static void on_moved(void *ctx, int64_t bytes)
{
    progress_move(&((struct arrival *)ctx)->progress, bytes);
}

static bool is_right(struct arrival *a, yyjson_val *artifact)
{
    uint8_t digest[SHA256_BYTES];
    char hex[SHA256_HEX];
    const char *told = yyjson_get_str(yyjson_obj_get(artifact, "checksum"));
    sha256_end(&a->sha, digest);
    sha256_hex(digest, hex);
    return a->bytes == a->size && (!told || strcmp(told, hex) == 0);
}

static void fail(struct outdir *to, const char *name, const char *why)
{
    if (!to->error[0]) {
        snprintf(to->error, sizeof to->error, "artifact %.120s: %.160s", name, why);
    }
}

// 0 or -EINTR.
static int fetch_one(struct client *c, const char *path, const char *name, yyjson_val *artifact,
                     struct outdir *to)
{
    struct arrival a = {.to = to};
    struct call_error why;
    int64_t size = -1;
    if (json_int(yyjson_obj_get(artifact, "size"), &size) || size < 0) {
        fail(to, name, "the service does not say how long it is");
        return 0;
    }
    a.size = (uint64_t)size;
    sha256_init(&a.sha);
    struct call call = CALL_INIT("GET", path);
    call.take = on_data;
    call.moved = on_moved;
    call.ctx = &a;
    call.endless = true;
    progress_begin(&a.progress, name, size);
    if (size > 0) {
        outdir_begin(to, name, a.size);
    }
    int e = to->error[0] ? 0 : call_make(&c->caller, &call, &why);
    progress_end(&a.progress);
    call_done(&call);
    if (e && e != -EINTR) {
        fail(to, name, why.text[0] ? why.text : "it is not what the service said");
    } else if (!e && !to->error[0] && !is_right(&a, artifact)) {
        fail(to, name, "it came with another length or checksum than the service says");
    } else if (!e && !to->error[0] && size > 0) {
        outdir_write(to, &a.last, 1);
    } else if (!e && !to->error[0]) {
        outdir_begin(to, name, 0);
    }
    return e == -EINTR ? e : 0;
}

static bool is_asked_for(const struct job *job, const char *name)
{
    for (size_t i = 0; i < job->n_artifacts; i++) {
        if (strcmp(job->artifacts[i].path, name) == 0) {
            return true;
        }
    }
    return false;
}

// Where the service has it: its own word, if that is a path of this job's artifacts; else by name.
static void put_path(struct buf *out, const char *job_id, yyjson_val *artifact)
{
    AUTO_BUF struct buf own = BUF_INIT(1 << 10);
    const char *url = yyjson_get_str(yyjson_obj_get(artifact, "url"));
    const char *filename = yyjson_get_str(yyjson_obj_get(artifact, "filename"));
    client_path(&own, "/sandbox/jobs/%s/artifacts/", job_id);
    bool good = url && !own.error && strncmp(url, buf_text(&own), own.len) == 0 &&
                strspn(url, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                            "-._~%/") == strlen(url) &&
                !strstr(url, "..");
    if (good) {
        buf_puts(out, url);
    } else {
        buf_puts(out, buf_text(&own));
        address_escape(out, filename ? filename : "", false);
    }
}

int fetch_artifacts(struct client *c, const char *job_id, yyjson_val *result, struct outdir *to)
{
    size_t i, n;
    yyjson_val *artifact;
    yyjson_arr_foreach(yyjson_obj_get(result, "artifacts"), i, n, artifact)
    {
        AUTO_BUF struct buf path = BUF_INIT(1 << 16);
        AUTO_FREE char *name = fetch_name(artifact);
        if (to->dir < 0 || to->error[0] || !name || !is_asked_for(to->job, name)) {
            continue;
        }
        put_path(&path, job_id, artifact);
        int e = fetch_one(c, buf_text(&path), name, artifact, to);
        if (e) {
            return e;
        }
    }
    return 0;
}
