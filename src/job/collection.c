#include "job/collection.h"

#include "base/fd.h"
#include "io/work.h"
#include "job/pipeline.h"
#include "workspace/disk.h"
#include "workspace/names.h"
#include "workspace/zip.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *text_of(int error)
{
    return error == -EDQUOT ? "as much is kept of this team as it may have "
                              "(SANDBOX_TEAM_DISK_MB): delete sessions or files of them"
                            : strerror(-error);
}

static void refuse(struct collection *c, const char *path, const char *why)
{
    result_fail(c->result, REASON_ARTIFACT, STAGE_COLLECTION, "artifact %.200s: %s", path, why);
    if (c->refused) {
        c->refused(c->refused_ctx, path, why);
    }
}

// On a thread, where that may take its time: somebody may have removed it meanwhile.
static void close_file(const struct collection *c, int *fd)
{
    work_close(c->pool, *fd, c->owner);
    *fd = -1;
}

// ---- caps

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
            c->result->truncated_artifacts = true;
            return false;
        }
    }
    return true;
}

// What the content of a folder may have.
static uint64_t room(const struct collection *c)
{
    uint64_t one = least(c->config->artifact_max_bytes, c->job->artifact_max_bytes);
    uint64_t all = least(c->config->artifacts_max_bytes, c->job->artifacts_max_bytes);
    uint64_t left = all > c->announced_bytes ? all - c->announced_bytes : 0;
    return one < left ? one : left;
}

// ---- names

static bool is_taken(const struct result *r, const char *name)
{
    for (size_t i = 0; i < r->n_artifacts; i++) {
        if (!strcmp(r->artifacts[i].filename, name)) {
            return true;
        }
    }
    return false;
}

// The last part of the path as text, and one of its own among the job's: "a.csv", then "a-2.csv".
static char *make_filename(const struct result *r, const char *path, bool folder)
{
    AUTO_BUF struct buf base = BUF_INIT(2048), name = BUF_INIT(2048);
    const char *slash = strrchr(path, '/');
    const char *last = slash ? slash + 1 : path;
    bool escaped;
    names_escape(&base, last, strlen(last), "", &escaped);
    if (folder) {
        buf_puts(&base, ".zip");
    }
    buf_puts(&name, buf_text(&base));
    const char *text = buf_text(&base), *dot = strrchr(text, '.');
    size_t stem = dot && dot != text ? (size_t)(dot - text) : base.len;
    for (unsigned n = 2; is_taken(r, buf_text(&name)); n++) {
        buf_clear(&name);
        buf_printf(&name, "%.*s-%u%s", (int)stem, text, n, text + stem);
    }
    return base.error || name.error ? NULL : buf_take(&name);
}

// ---- one artifact in the result

static const struct job_artifact *current(const struct collection *c)
{
    return &c->job->artifacts[c->next - 1];
}

// The newest of the list is none after all: its owner has not all of it.
static void forget_newest(struct result *r)
{
    struct result_artifact *a = &r->artifacts[--r->n_artifacts];
    free(a->path);
    free(a->filename);
    free(a->description);
}

// False: the sink does not take it.
static bool announce(struct collection *c, uint64_t size, uint32_t mode, bool folder)
{
    const struct job_artifact *wanted = current(c);
    struct result *r = c->result;
    struct result_artifact *a = &r->artifacts[r->n_artifacts];
    *a = (struct result_artifact){.path = strdup(wanted->path),
                                  .filename = make_filename(r, wanted->path, folder),
                                  .description =
                                      wanted->description ? strdup(wanted->description) : NULL,
                                  .size_bytes = size,
                                  .folder = folder,
                                  .optional = wanted->optional};
    r->n_artifacts++; // result_done() frees its strings
    bool whole = a->path && a->filename && (a->description || !wanted->description);
    int e = whole ? 0 : -ENOMEM;
    if (!e && c->sink->artifact) {
        e = c->sink->artifact(c->sink->ctx, a, mode);
    }
    if (e) {
        refuse(c, wanted->path, text_of(e));
        forget_newest(r);
        return false;
    }
    c->left_bytes = size;
    c->announced_bytes += size;
    sha256_init(&c->sha);
    return true;
}

// One piece of the open artifact. False: the job failed by it.
static bool send_piece(struct collection *c)
{
    struct result_artifact *a = &c->result->artifacts[c->result->n_artifacts - 1];
    size_t want =
        c->left_bytes < STREAM_CHUNK_BYTES ? (size_t)c->left_bytes : (size_t)STREAM_CHUNK_BYTES;
    ssize_t n = want ? fd_read_full(c->fd, c->chunk, want) : 0;
    if (n < 0 || (size_t)n < want) {
        refuse(c, a->path, n < 0 ? strerror((int)-n) : "became shorter while it was read");
        return false;
    }
    sha256_add(&c->sha, c->chunk, want);
    int e = 0;
    if (want && c->sink->artifact_data) {
        e = c->sink->artifact_data(c->sink->ctx, c->chunk, want);
    }
    if (e) {
        refuse(c, a->path, text_of(e));
        return false;
    }
    c->left_bytes -= want;
    if (c->left_bytes == 0 && c->opened.fd >= 0 && !files_unchanged(&c->opened)) {
        refuse(c, a->path, "was written to while it was read");
        return false;
    }
    if (c->left_bytes == 0) {
        uint8_t digest[SHA256_BYTES];
        sha256_end(&c->sha, digest);
        sha256_hex(digest, a->sha256);
        close_file(c, &c->fd);
    }
    return true;
}

// ---- a folder

static void end_zip(struct collection *c)
{
    if (c->zip) {
        c->config->zip->end(c->zip, c->pool, c->owner);
    }
    c->zip = NULL;
    c->folder = fd_close(c->folder);
    c->list = fd_close(c->list);
    close_file(c, &c->spool);
    c->packed = false;
}

static void refuse_zip(struct collection *c, int error)
{
    char why[160];
    if (error == -E2BIG) {
        snprintf(why, sizeof why, "the folder has more than %d entries", COLLECTION_MAX_ENTRIES);
    } else if (error == -EFBIG) {
        snprintf(why, sizeof why,
                 "the files of the folder are more than the %llu bytes that artifacts may have",
                 (unsigned long long)room(c));
    } else {
        snprintf(why, sizeof why, "%s", strerror(-error));
    }
    c->result->truncated_artifacts |= error == -E2BIG || error == -EFBIG;
    refuse(c, current(c)->path, why);
    end_zip(c);
}

static void begin_zip(struct collection *c)
{
    const struct files files = {c->workspace, c->uid};
    int e = files_open_folder(&files, current(c)->path, &c->folder);
    if (e > 0) {
        refuse(c, current(c)->path, files_refusal_text((enum files_refusal)e));
        return;
    }
    e = e ? e : files_spool(c->config->workspace_root, &c->list);
    e = e ? e : files_spool(c->config->workspace_root, &c->spool);
    const struct zip_options o = {.uid = c->uid,
                                  .spool = c->list,
                                  .max_entries = COLLECTION_MAX_ENTRIES,
                                  .max_bytes = room(c)};
    c->zip_bytes = 0;
    e = e ? e : c->config->zip->begin(c->folder, &o, &c->zip);
    if (e) {
        refuse_zip(c, e);
    }
}

// The archive is whole: it is sent as a file is.
static void zip_made(struct collection *c)
{
    int spool = fd_take(&c->spool);
    end_zip(c);
    if (lseek(spool, 0, SEEK_SET) < 0) {
        refuse(c, current(c)->path, strerror(errno));
    } else if (size_fits(c, current(c)->path, c->zip_bytes) &&
               announce(c, c->zip_bytes, 0644, true)) {
        c->fd = fd_take(&spool);
        c->opened.fd = -1;
    }
    close_file(c, &spool);
}

bool collection_packs(const struct collection *c) { return c->zip && !c->packed; }

bool collection_pack(struct collection *c)
{
    ssize_t n = c->config->zip->next(c->zip, c->chunk, STREAM_CHUNK_BYTES);
    int e = n > 0 ? disk_spool(c->spool, c->chunk, (size_t)n) : 0;
    c->zip_bytes += n > 0 ? (uint64_t)n : 0;
    c->packed = true;
    c->packed_len = e ? e : n;
    return c->packed_len > 0 || c->packed_len == -EAGAIN;
}

static void zip_more(struct collection *c)
{
    if (!c->packed) {
        collection_pack(c);
    }
    c->packed = false;
    if (c->packed_len == 0) {
        zip_made(c);
    } else if (c->packed_len < 0 && c->packed_len != -EAGAIN) {
        refuse_zip(c, (int)c->packed_len);
    }
}

// ---- the list

// The next of the list is open, passed over or refused.
static void open_next(struct collection *c)
{
    const struct job_artifact *wanted = &c->job->artifacts[c->next++];
    const struct files files = {c->workspace, c->uid};
    struct files_file opened;
    int e = files_open(&files, wanted->path, UINT64_MAX, &opened);
    if ((e == FILES_MISSING || e == FILES_NO_FOLDER) && wanted->optional) {
        return;
    }
    if (e == FILES_FOLDER && c->config->zip) {
        begin_zip(c);
    } else if (e == FILES_FOLDER) {
        refuse(c, wanted->path, "is a folder; name a file, or pack the folder into an archive");
    } else if (e) {
        refuse(c, wanted->path, e > 0 ? files_refusal_text((enum files_refusal)e) : strerror(-e));
    } else if (size_fits(c, wanted->path, opened.size_bytes) &&
               announce(c, opened.size_bytes, opened.mode, false)) {
        c->fd = opened.fd;
        c->opened = opened;
    } else {
        close_file(c, &opened.fd);
    }
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
    if (c->zip) {
        zip_more(c);
        return true;
    }
    if (c->next < c->job->n_artifacts) {
        open_next(c);
        return true;
    }
    return false;
}

void collection_end(struct collection *c)
{
    close_file(c, &c->fd);
    end_zip(c);
}
