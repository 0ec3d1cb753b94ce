// result_json.c: the SandboxResult as one line of JSON. The order of keys is documented; readers of
// the platform rely on the types (stdout and stderr are strings, metadata is an object, always).
#include "model/result.h"

#include "codec/utf8.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static void put_text(struct buf *out, const char *key, const char *text)
{
    buf_printf(out, "\"%s\":", key);
    if (text) {
        utf8_json_string(out, text, strlen(text));
    } else {
        buf_puts(out, "null");
    }
}

static void put_bytes(struct buf *out, const char *key, const struct buf *b)
{
    buf_printf(out, "\"%s\":", key);
    utf8_json_string(out, buf_text(b), b->len);
}

static void put_int(struct buf *out, const char *key, int64_t value)
{
    if (value == RESULT_UNKNOWN) {
        buf_printf(out, "\"%s\":null", key);
    } else {
        buf_printf(out, "\"%s\":%lld", key, (long long)value);
    }
}

static void put_bool(struct buf *out, const char *key, bool value)
{
    buf_printf(out, "\"%s\":%s", key, value ? "true" : "false");
}

static void put_outcome(struct buf *out, const struct result *r)
{
    put_text(out, "job_id", r->job_id);
    buf_putc(out, ',');
    put_bool(out, "success", r->reason == REASON_OK);
    buf_putc(out, ',');
    put_text(out, "status", status_names[result_status(r)]);
    buf_putc(out, ',');
    put_text(out, "reason", reason_names[r->reason]);
    buf_puts(out, ",\"result\":");
    buf_add(out, r->value ? r->value : "null", r->value ? r->value_len : 4);
    buf_putc(out, ',');
    put_text(out, "error", r->error);
    buf_putc(out, ',');
    put_int(out, "exit_code", r->signal > 0 || r->exit_code < 0 ? RESULT_UNKNOWN : r->exit_code);
    buf_putc(out, ',');
    put_int(out, "signal", r->signal > 0 ? r->signal : RESULT_UNKNOWN);
}

static void put_output(struct buf *out, const struct result *r)
{
    put_bytes(out, "stdout", &r->out);
    buf_putc(out, ',');
    put_bytes(out, "stderr", &r->err);
    buf_puts(out, ",\"truncated\":{");
    put_bool(out, "stdout", r->truncated_stdout);
    buf_putc(out, ',');
    put_bool(out, "stderr", r->truncated_stderr);
    buf_puts(out, ",\"artifacts\":false}"); // an artifact comes whole or not at all
}

static void put_artifact(struct buf *out, const struct result_artifact *a)
{
    buf_puts(out, "{\"path\":");
    AUTO_BUF struct buf path = BUF_INIT(16384);
    buf_printf(&path, "/workspace/%s", a->path);
    utf8_json_string(out, buf_text(&path), path.len);
    buf_putc(out, ',');
    put_bool(out, "optional", a->optional);
    buf_puts(out, ",\"description\":null,\"file_type\":\"file\",");
    put_int(out, "size", (int64_t)a->size_bytes);
    buf_puts(out, ",\"checksum\":null,\"content_type\":null,\"storage_path\":null,\"url\":null,");
    put_text(out, "filename", a->filename);
    buf_puts(out, ",\"asset_id\":null}");
}

static void put_artifacts(struct buf *out, const struct result *r)
{
    buf_puts(out, "\"artifacts\":[");
    for (size_t i = 0; i < r->n_artifacts; i++) {
        buf_puts(out, i ? "," : "");
        put_artifact(out, &r->artifacts[i]);
    }
    buf_putc(out, ']');
}

static void put_usage(struct buf *out, const struct result *r)
{
    const struct {
        const char *key;
        int64_t value;
    } figures[] = {
        {"wall_ms", r->usage.wall_ms},
        {"cpu_ms", r->usage.cpu_ms},
        {"memory_peak_bytes", r->usage.memory_peak_bytes},
        {"disk_bytes", r->usage.disk_bytes},
        {"pids_peak", r->usage.pids_peak},
        {"stdout_bytes", r->usage.stdout_bytes},
        {"stderr_bytes", r->usage.stderr_bytes},
    };
    buf_puts(out, "\"usage\":{");
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) {
        buf_puts(out, i ? "," : "");
        put_int(out, figures[i].key, figures[i].value);
    }
    buf_putc(out, '}');
}

static void put_isolation(struct buf *out, const struct result *r)
{
    const char *level = !r->isolation.isolated    ? "none"
                        : r->isolation.downgrades ? "degraded"
                                                  : "full";
    buf_puts(out, "\"isolation\":{");
    put_text(out, "level", level);
    buf_putc(out, ',');
    put_text(out, "launcher", r->isolation.launcher);
    buf_putc(out, ',');
    put_text(out, "start", r->isolation.start);
    buf_putc(out, ',');
    put_text(out, "network", r->isolation.network);
    buf_puts(out, ",\"downgrades\":");
    downgrades_write(out, r->isolation.downgrades);
    buf_putc(out, '}');
}

// "2026-11-29T11:36:19.475000Z"; the fraction is left out when it is zero.
static void put_time(struct buf *out, const char *key, int64_t ms)
{
    struct tm t;
    time_t seconds = (time_t)(ms / 1000);
    if (ms <= 0 || !gmtime_r(&seconds, &t)) {
        buf_printf(out, "\"%s\":null", key);
        return;
    }
    char text[32], fraction[12] = "";
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &t);
    if (ms % 1000) {
        snprintf(fraction, sizeof fraction, ".%03d000", (int)(ms % 1000));
    }
    buf_printf(out, "\"%s\":\"%s%sZ\"", key, text, fraction);
}

// From `begin` to `end` or, where that was not reached, to the job's end. `absent` for what never
// began.
static int64_t span(const struct result *r, int64_t begin, int64_t end, int64_t absent)
{
    int64_t until = end ? end : r->completed_at;
    if (!begin) {
        return absent;
    }
    return until > begin ? until - begin : 0;
}

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
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        put_time(out, times[i].key, times[i].ms);
        buf_putc(out, ',');
    }
}

static void put_durations(struct buf *out, const struct result *r)
{
    int64_t total =
        span(r, r->queued_at ? r->queued_at : r->started_at, r->completed_at, RESULT_UNKNOWN);
    int64_t install = span(r, r->install_started_at, r->install_completed_at, 0);
    const struct {
        const char *key;
        int64_t ms;
    } durations[] = {
        {"duration_ms", total},
        {"queue_wait_ms", span(r, r->queued_at, r->started_at, RESULT_UNKNOWN)},
        {"prepare_ms", span(r, r->prepare_started_at, r->prepare_completed_at, RESULT_UNKNOWN)},
        {"install_duration_ms", install},
        {"install_ms", install},
        {"execute_ms", span(r, r->execute_started_at, r->execute_completed_at, RESULT_UNKNOWN)},
        {"collect_ms", span(r, r->collect_started_at, r->collect_completed_at, 0)},
        {"total_ms", total},
    };
    for (size_t i = 0; i < sizeof durations / sizeof *durations; i++) {
        put_int(out, durations[i].key, durations[i].ms);
        buf_putc(out, ',');
    }
}

static void put_metadata(struct buf *out, const struct result *r)
{
    buf_puts(out, "\"metadata\":{");
    put_text(out, "status", status_names[result_status(r)]);
    buf_putc(out, ',');
    put_text(out, "stage", r->stage == STAGE_NONE ? NULL : stage_names[r->stage]);
    buf_putc(out, ',');
    put_times(out, r);
    put_durations(out, r);
    buf_puts(out, "\"cache_hit_python\":false,\"cache_hit_node\":false,");
    put_int(out, "exit_code", r->reason == REASON_OK ? 0 : 1); // success or not, as documented
    buf_puts(out, ",\"worker_id\":null}");
}

int result_write(struct buf *out, const struct result *r)
{
    static void (*const parts[])(struct buf *, const struct result *) = {
        put_outcome, put_output, put_artifacts, put_usage, put_isolation};
    buf_putc(out, '{');
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        parts[i](out, r);
        buf_putc(out, ',');
    }
    buf_puts(out, "\"packages\":null,");
    put_metadata(out, r);
    return buf_putc(out, '}');
}
