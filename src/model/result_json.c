// result_json.c: the SandboxResult as one line of JSON. The order of keys is documented; readers of
// the platform rely on the types (stdout and stderr are strings, metadata is an object, always).
#include "model/result.h"

#include "base/clock.h"
#include "base/fd.h"
#include "codec/json_out.h"
#include "model/media.h"
#include "plan/plan.h"

#include <string.h>

static void put_int(struct buf *out, const char *key, int64_t value)
{
    if (value == RESULT_UNKNOWN) {
        json_put_json(out, key, NULL);
    } else {
        json_put_int(out, key, value);
    }
}

static void put_exit(struct buf *out, const struct result *r)
{
    put_int(out, "exit_code", r->signal > 0 || r->exit_code < 0 ? RESULT_UNKNOWN : r->exit_code);
    put_int(out, "signal", r->signal > 0 ? r->signal : RESULT_UNKNOWN);
}

static void put_value(struct buf *out, const struct result *r)
{
    if (r->value_is_output) {
        json_put_bytes(out, "result", buf_text(&r->out) + r->value_at, r->value_len);
    } else {
        json_put_json(out, "result", r->value);
    }
}

static void put_outcome(struct buf *out, const struct result *r)
{
    json_put_text(out, "job_id", r->job_id);
    json_put_bool(out, "success", result_status(r) == STATUS_COMPLETED);
    json_put_text(out, "status", status_names[result_status(r)]);
    json_put_text(out, "reason", r->under_way ? NULL : reason_names[r->reason]);
    put_value(out, r);
    json_put_text(out, "error", r->error);
    put_exit(out, r);
}

static void put_output(struct buf *out, const struct result *r)
{
    json_put_bytes(out, "stdout", buf_text(&r->out), r->out.len);
    json_put_bytes(out, "stderr", buf_text(&r->err), r->err.len);
    json_begin(out, "truncated", '{');
    json_put_bool(out, "stdout", r->truncated_stdout);
    json_put_bool(out, "stderr", r->truncated_stderr);
    json_put_bool(out, "artifacts", r->truncated_artifacts);
    json_end(out, '}');
}

int result_artifact_url(struct buf *out, const struct result *r, const struct result_artifact *a)
{
    if (!r->artifact_urls) {
        return out->error;
    }
    buf_printf(out, "%s%s/artifacts/", r->artifact_urls, r->job_id);
    for (const char *c = a->filename; *c; c++) {
        bool plain = (*c >= '0' && *c <= '9') || (*c >= 'a' && *c <= 'z') ||
                     (*c >= 'A' && *c <= 'Z') || strchr("-._~", *c);
        buf_printf(out, plain ? "%c" : "%%%02X", (unsigned char)*c);
    }
    return out->error;
}

static void put_url(struct buf *out, const struct result *r, const struct result_artifact *a)
{
    AUTO_BUF struct buf url = BUF_INIT(16384);
    result_artifact_url(&url, r, a);
    json_put_text(out, "url", r->artifact_urls ? buf_text(&url) : NULL);
}

static void put_artifact(struct buf *out, const struct result *r, const struct result_artifact *a)
{
    AUTO_BUF struct buf path = BUF_INIT(16384);
    buf_printf(&path, "/workspace/%s", a->path);
    json_begin(out, NULL, '{');
    json_put_bytes(out, "path", buf_text(&path), path.len);
    json_put_bool(out, "optional", a->optional);
    json_put_text(out, "description", a->description);
    json_put_text(out, "file_type", a->folder ? "directory" : "file");
    put_int(out, "size", (int64_t)a->size_bytes);
    json_put_text(out, "checksum", *a->sha256 ? a->sha256 : NULL);
    json_put_text(out, "content_type", media_type(a->filename));
    json_put_text(out, "storage_path", NULL);
    put_url(out, r, a);
    json_put_text(out, "filename", a->filename);
    json_put_text(out, "asset_id", NULL);
    json_end(out, '}');
}

static void put_artifacts(struct buf *out, const struct result *r)
{
    json_begin(out, "artifacts", '[');
    for (size_t i = 0; i < r->n_artifacts; i++) {
        put_artifact(out, r, &r->artifacts[i]);
    }
    json_end(out, ']');
}

static void put_usage(struct buf *out, const struct result *r)
{
    json_begin(out, "usage", '{');
    put_int(out, "wall_ms", r->usage.wall_ms);
    put_int(out, "cpu_ms", r->usage.cpu_ms);
    put_int(out, "memory_peak_bytes", r->usage.memory_peak_bytes);
    put_int(out, "disk_bytes", r->usage.disk_bytes);
    put_int(out, "pids_peak", r->usage.pids_peak);
    put_int(out, "stdout_bytes", r->usage.stdout_bytes);
    put_int(out, "stderr_bytes", r->usage.stderr_bytes);
    json_end(out, '}');
}

static void put_isolation(struct buf *out, const struct result *r)
{
    const uint32_t lost = r->isolation.downgrades;
    const char *level = !r->isolation.isolated || (lost & PLAN_NO_ISOLATION) ? "none"
                        : lost                                               ? "degraded"
                                                                             : "full";
    json_begin(out, "isolation", '{');
    json_put_text(out, "level", level);
    json_put_text(out, "launcher", r->isolation.launcher);
    json_put_text(out, "start", r->isolation.start);
    json_put_text(out, "network", lost & PLAN_HOST_NETWORK ? "host" : r->isolation.network);
    downgrades_write(out, "downgrades", lost);
    json_put_text(out, "fallback", r->isolation.fallback);
    json_end(out, '}');
}

// From `begin` to `end` or, where that was not reached, to the job's end or now. `absent` for what
// never began.
static int64_t span(const struct result *r, int64_t begin, int64_t end, int64_t absent)
{
    int64_t until = end ? end : r->completed_at ? r->completed_at : clock_wall_ms();
    if (!begin) {
        return absent;
    }
    return until > begin ? until - begin : 0;
}

int64_t result_duration_ms(const struct result *r)
{
    return span(r, r->queued_at ? r->queued_at : r->started_at, r->completed_at, RESULT_UNKNOWN);
}

// In their order, also when the clock of the day was set back meanwhile.
static void put_times(struct buf *out, const struct result *r)
{
    const struct {
        const char *key;
        int64_t ms;
    } times[] = {
        {"queued_at", r->queued_at},
        {"started_at", r->started_at},
        {"prepare_started_at", r->prepare_started_at},
        {"prepare_completed_at", r->prepare_completed_at},
        {"install_started_at", r->install_started_at},
        {"install_completed_at", r->install_completed_at},
        {"execute_started_at", r->execute_started_at},
        {"execute_completed_at", r->execute_completed_at},
        {"collect_started_at", r->collect_started_at},
        {"collect_completed_at", r->collect_completed_at},
        {"completed_at", r->completed_at},
    };
    int64_t last = 0;
    for (size_t i = 0; i < ARRAY_LEN(times); i++) {
        last = times[i].ms > last ? times[i].ms : last;
        json_put_time(out, times[i].key, times[i].ms ? last : 0);
    }
}

static void put_span(struct buf *out, const char *key, const struct result *r, int64_t begin,
                     int64_t end, int64_t absent)
{
    put_int(out, key, span(r, begin, end, absent));
}

static void put_durations(struct buf *out, const struct result *r)
{
    const int64_t none = RESULT_UNKNOWN;
    int64_t total = result_duration_ms(r);
    int64_t install = span(r, r->install_started_at, r->install_completed_at, 0);
    put_int(out, "duration_ms", total);
    put_span(out, "queue_wait_ms", r, r->queued_at, r->started_at, none);
    put_span(out, "prepare_ms", r, r->prepare_started_at, r->prepare_completed_at, none);
    put_int(out, "install_duration_ms", install);
    put_int(out, "install_ms", install);
    put_span(out, "execute_ms", r, r->execute_started_at, r->execute_completed_at, none);
    put_span(out, "collect_ms", r, r->collect_started_at, r->collect_completed_at, 0);
    put_int(out, "total_ms", total);
}

static void put_metadata(struct buf *out, const struct result *r)
{
    json_begin(out, "metadata", '{');
    json_put_text(out, "status", status_names[result_status(r)]);
    json_put_text(out, "stage", r->stage == STAGE_NONE ? NULL : stage_names[r->stage]);
    put_times(out, r);
    put_durations(out, r);
    json_put_bool(out, "cache_hit_python", false);
    json_put_bool(out, "cache_hit_node", false);
    // success or not, as documented
    put_int(out, "exit_code", r->under_way ? RESULT_UNKNOWN : r->reason != REASON_OK);
    json_put_text(out, "worker_id", NULL);
    json_end(out, '}');
}

int result_write(struct buf *out, const struct result *r)
{
    json_begin(out, NULL, '{');
    put_outcome(out, r);
    put_output(out, r);
    put_artifacts(out, r);
    put_usage(out, r);
    put_isolation(out, r);
    json_put_text(out, "packages", NULL);
    put_metadata(out, r);
    json_end(out, '}');
    return out->error;
}

void result_put_logs(struct buf *out, const struct result *r)
{
    size_t len = r->out.len;
    const char *text = buf_text(&r->out);
    len -= len > 0 && text[len - 1] == '\n';
    if (len > 0) {
        json_put_bytes(out, "logs", text, len);
    } else {
        json_put_text(out, "logs", NULL);
    }
}

int result_write_answer(struct buf *out, const struct result *r)
{
    json_begin(out, NULL, '{');
    json_put_bool(out, "success", result_status(r) == STATUS_COMPLETED);
    put_value(out, r);
    json_put_text(out, "error", r->error);
    result_put_logs(out, r);
    put_artifacts(out, r);
    put_int(out, "duration_ms", result_duration_ms(r));
    json_put_text(out, "job_id", r->job_id);
    json_put_text(out, "reason", r->under_way ? NULL : reason_names[r->reason]);
    put_exit(out, r);
    put_output(out, r);
    put_usage(out, r);
    put_isolation(out, r);
    json_end(out, '}');
    return out->error;
}
