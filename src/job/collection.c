#include "job/collection.h"

#include "base/fd.h"
#include "job/pipeline.h"
#include "workspace/artifact.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void refuse(struct collection *c, const char *path, const char *why)
{
    result_fail(c->result, REASON_ARTIFACT, STAGE_COLLECTION, "artifact %.200s: %s", path, why);
}

static uint64_t least(uint64_t operators, uint64_t jobs)
{
    return jobs && jobs < operators ? jobs : operators;
}

// Within the caps? Apparent size: a sparse file is as large as what reading it gives.
static bool size_fits(struct collection *c, const char *path, uint64_t size)
{
    const struct {
        uint64_t bytes, max;
        const char *what;
    } caps[] = {
        {size, c->config->artifact_max_bytes, "one artifact (SANDBOX_ARTIFACT_MAX_FILE_SIZE_MB)"},
        {size, least(c->config->artifact_max_bytes, c->job->artifact_max_bytes),
         "one artifact (artifact_limits.max_size_mb)"},
        {c->announced_bytes + size, c->config->artifacts_max_bytes,
         "all artifacts (SANDBOX_ARTIFACT_MAX_TOTAL_SIZE_MB)"},
        {c->announced_bytes + size,
         least(c->config->artifacts_max_bytes, c->job->artifacts_max_bytes),
         "all artifacts (artifact_limits.max_total_size_mb)"},
    };
    for (size_t i = 0; i < ARRAY_LEN(caps); i++) {
        if (caps[i].bytes > caps[i].max) {
            char why[160];
            snprintf(why, sizeof why, "%llu bytes are more than the maximum of %llu for %s",
                     (unsigned long long)caps[i].bytes, (unsigned long long)caps[i].max,
                     caps[i].what);
            refuse(c, path, why);
            return false;
        }
    }
    return true;
}

// The newest of the list is none after all: its owner has not all of it.
static void forget_newest(struct result *r)
{
    struct result_artifact *a = &r->artifacts[--r->n_artifacts];
    free(a->path);
    free(a->filename);
    free(a->description);
}

static bool announce(struct collection *c, const struct job_artifact *wanted,
                     const struct artifact *opened)
{
    struct result *r = c->result;
    struct result_artifact *a = &r->artifacts[r->n_artifacts];
    const char *slash = strrchr(wanted->path, '/');
    *a = (struct result_artifact){.path = strdup(wanted->path),
                                  .filename = strdup(slash ? slash + 1 : wanted->path),
                                  .description =
                                      wanted->description ? strdup(wanted->description) : NULL,
                                  .size_bytes = opened->size_bytes,
                                  .optional = wanted->optional};
    r->n_artifacts++; // result_done() frees its strings
    bool whole = a->path && a->filename && (a->description || !wanted->description);
    int e = whole ? 0 : -ENOMEM;
    if (!e && c->sink->artifact) {
        e = c->sink->artifact(c->sink->ctx, a, opened->mode);
    }
    if (e) {
        refuse(c, wanted->path, strerror(-e));
        forget_newest(r);
    }
    return !e;
}

// The next of the list is open, passed over or refused.
static void open_next(struct collection *c)
{
    const struct job_artifact *wanted = &c->job->artifacts[c->next++];
    struct artifact opened;
    const char *why = "";
    int e = artifact_open(c->workspace, wanted->path, c->uid, &opened, &why);
    if (e == ARTIFACT_MISSING && wanted->optional) {
        return;
    }
    if (e) {
        refuse(c, wanted->path, e > 0 ? why : strerror(-e));
        return;
    }
    AUTO_CLOSE int fd = opened.fd;
    if (size_fits(c, wanted->path, opened.size_bytes) && announce(c, wanted, &opened)) {
        c->fd = fd_take(&fd);
        c->left_bytes = opened.size_bytes;
        c->announced_bytes += opened.size_bytes;
    }
}

// One piece of the open artifact. False: the job failed by it.
static bool send_piece(struct collection *c)
{
    const char *path = c->result->artifacts[c->result->n_artifacts - 1].path;
    size_t want =
        c->left_bytes < STREAM_CHUNK_BYTES ? (size_t)c->left_bytes : (size_t)STREAM_CHUNK_BYTES;
    ssize_t n = want ? fd_read_full(c->fd, c->chunk, want) : 0;
    if (n < 0 || (size_t)n < want) {
        refuse(c, path, n < 0 ? strerror((int)-n) : "became shorter while it was read");
        return false;
    }
    int e = 0;
    if (want && c->sink->artifact_data) {
        e = c->sink->artifact_data(c->sink->ctx, c->chunk, want);
    }
    if (e) {
        refuse(c, path, strerror(-e));
        return false;
    }
    c->left_bytes -= want;
    if (c->left_bytes == 0) {
        c->fd = fd_close(c->fd);
    }
    return true;
}

int collection_begin(struct collection *c)
{
    c->result->artifacts = calloc(c->job->n_artifacts, sizeof *c->result->artifacts);
    return c->result->artifacts ? 0 : -ENOMEM;
}

bool collection_step(struct collection *c)
{
    if (c->fd >= 0) {
        if (send_piece(c)) {
            return true;
        }
        collection_end(c);
        forget_newest(c->result);
        return false;
    }
    if (c->next < c->job->n_artifacts) {
        open_next(c);
        return true;
    }
    return false;
}

void collection_end(struct collection *c) { c->fd = fd_close(c->fd); }
