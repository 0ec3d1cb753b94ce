// artifacts.c: what jobs left for their owners, to be fetched by name as the job's result has it.
#include "api/job_call.h"
#include "api/route.h"
#include "api/session_call.h"

#include "base/fd.h"
#include "codec/json.h"
#include "model/media.h"
#include "serve/artifacts.h"
#include "serve/jobs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct fetch {
    int error;
    uint32_t n;
    char etag[FILE_ETAG]; // "": none
};

// The place of the name in the result's list, which is that of its file. -ENOENT.
static int find(yyjson_val *result, const char *name, uint32_t *ret_n, const char **ret_checksum)
{
    yyjson_val *list = yyjson_obj_get(result, "artifacts"), *one;
    size_t i, count;
    yyjson_arr_foreach(list, i, count, one)
    {
        if (yyjson_equals_str(yyjson_obj_get(one, "filename"), name)) {
            *ret_n = (uint32_t)i;
            *ret_checksum = yyjson_get_str(yyjson_obj_get(one, "checksum"));
            return 0;
        }
    }
    return -ENOENT;
}

// On a thread, where the result is long.
static void look_up(struct api_call *c)
{
    struct fetch *f = c->ctx;
    struct json_error why;
    yyjson_doc *doc = json_parse(c->shared, c->shared_len, &why);
    const char *checksum = NULL;
    f->error = doc ? find(yyjson_doc_get_root(doc), c->segment[1], &f->n, &checksum) : -EBADMSG;
    if (checksum) {
        file_etag(checksum, f->etag);
    }
    yyjson_doc_free(doc);
}

static void send_artifact(struct api_call *c)
{
    struct fetch *f = c->ctx;
    api_call_unshare(c); // a slow reader of the file holds nothing of the result
    const char *id = c->segment[0], *name = c->segment[1];
    const char *etag = *f->etag ? f->etag : NULL;
    uint64_t size = 0;
    AUTO_CLOSE int fd = f->error ? f->error : artifacts_open(c->with->artifacts, id, f->n, &size);
    if (fd == -EBADMSG) {
        api_fail_no_record(c);
        return;
    }
    if (fd == -ENOENT) {
        api_fail(c, API_NOT_FOUND, "name: the job has no artifact \"%.200s\"", name);
        return;
    }
    if (fd < 0) {
        api_fail_system(c, "name", fd);
        return;
    }
    if (etag && http_condition(c->r, etag) == 412) {
        api_fail(c, API_PRECONDITION, "name: the artifact has other content than expected");
        return;
    }
    api_download_fields(c, name);
    c->status = 200;
    http_reply_file(c->r, fd_take(&fd), size, media_type_inert(name), etag);
}

static void got_job(void *ctx, const char *json, size_t len, int status)
{
    struct api_call *c = ctx;
    if (!json && status >= 0) {
        api_fail_no_job(c);
    } else if (!json) {
        api_fail_no_record(c);
    } else if (!api_call_share(c, json, len)) {
        api_fail_busy(c);
    } else {
        api_work(c, len, look_up, send_artifact);
    }
    api_call_release(c);
}

static void end(struct api_call *c) { free(c->ctx); }

static void get_artifact(struct api_call *c)
{
    c->ctx = calloc(1, sizeof(struct fetch));
    if (!c->ctx) {
        api_fail(c, API_INTERNAL, "no memory");
        return;
    }
    c->end = end;
    api_call_hold(c);
    jobs_get(c->with->jobs, c->team, c->segment[0], got_job, c);
}

static const struct api_route routes[] = {
    {.method = HTTP_M_GET,
     .path = "/api/v1/sandbox/jobs/{id}/artifacts/{name}",
     .who = API_TEAM,
     .handle = get_artifact,
     .headers = "Range If-Match If-None-Match",
     .summary = "A file that a job left, by its `filename` (ETag: its SHA-256; ranges)."},
};

const struct api_subject api_artifacts = {
    "artifacts", "What jobs left for their owners, kept as long as their results.", routes,
    ARRAY_LEN(routes)};
