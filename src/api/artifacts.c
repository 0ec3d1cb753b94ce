// artifacts.c: what jobs left for their owners, to be fetched by name as the job's result has it.
#include "api/route.h"
#include "api/session_call.h"

#include "base/fd.h"
#include "codec/json.h"
#include "model/media.h"
#include "serve/artifacts.h"
#include "serve/jobs.h"

#include <string.h>

// One request; it may end before the job's record is there.
struct fetch {
    struct api_call *call; // NULL: the request is over
    bool answered;
};

static void fetch_over(struct api_call *c)
{
    struct fetch *f = c->ctx;
    f->call = NULL;
    if (f->answered) {
        free(f);
    }
}

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

static void send_artifact(struct api_call *c, yyjson_val *result)
{
    const char *id = c->segment[0], *name = c->segment[1], *checksum = NULL;
    char etag[FILE_ETAG];
    uint64_t size = 0;
    uint32_t n = 0;
    int e = find(result, name, &n, &checksum);
    AUTO_CLOSE int fd = e ? e : artifacts_open(c->with->artifacts, id, n, &size);
    if (fd == -ENOENT) {
        api_fail(c, API_NOT_FOUND, "name: the job has no artifact \"%.200s\"", name);
        return;
    }
    if (fd < 0) {
        api_fail(c, API_INTERNAL, "name: %s", strerror(-fd));
        return;
    }
    if (checksum) {
        file_etag(checksum, etag);
    }
    if (checksum && http_condition(c->r, etag) == 412) {
        api_fail(c, API_PRECONDITION, "name: the artifact has other content than expected");
        return;
    }
    api_download_fields(c, name);
    c->status = 200;
    http_reply_file(c->r, fd_take(&fd), size, media_type_inert(name), checksum ? etag : NULL);
}

static void got_job(void *ctx, const char *json, size_t len, int status)
{
    struct fetch *f = ctx;
    struct api_call *c = f->call;
    if (!c) {
        free(f);
        return;
    }
    f->answered = true;
    struct json_error why;
    yyjson_doc *doc = json ? json_parse(json, len, &why) : NULL;
    if (!json && status >= 0) {
        api_fail(c, API_NOT_FOUND, "job: there is none with this id, or its result is gone");
    } else if (!doc) {
        api_fail(c, API_INTERNAL, "job: its result cannot be read");
    } else {
        send_artifact(c, yyjson_doc_get_root(doc));
    }
    yyjson_doc_free(doc);
}

static void get_artifact(struct api_call *c)
{
    struct fetch *f = calloc(1, sizeof *f);
    if (!f) {
        api_fail(c, API_INTERNAL, "no memory");
        return;
    }
    f->call = c;
    c->ctx = f;
    c->end = fetch_over;
    jobs_get(c->with->jobs, c->team, c->segment[0], got_job, f);
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
