// A code tool's definition and, behind a NUL, arguments: either is refused with a reason, or taken;
// what is taken is written as what is read as the same, and its arguments fit.
#include "codec/json.h"
#include "fuzz.h"
#include "tools/tool.h"

#include <errno.h>
#include <string.h>

static void call(const struct tool *t, const char *text, size_t len)
{
    struct json_error bad;
    AUTO_BUF struct buf faults = BUF_INIT(TOOL_FAULTS_BYTES);
    struct buf params = BUF_INIT(4 << 20);
    struct job job;
    struct job_error why;
    yyjson_doc *doc = json_parse_envelope(text, len, &bad);
    int e = doc ? tool_arguments(t, yyjson_doc_get_root(doc), &params, &faults) : -EINVAL;
    if (e == 0) {
        MUST(json_check(params.data, params.len, &bad) == 0 ||
             json_depth(yyjson_doc_get_root(doc)) > JSON_MAX_DEPTH);
        if (tool_job(t, &params, 1000, NULL, &job, &why) == 0) {
            MUST(job.kind == JOB_SNIPPET && job.limits.value[LIMIT_TIMEOUT] >= 1000);
        }
        job_done(&job);
    } else {
        MUST(!doc || faults.len > 0);
    }
    buf_free(&params);
    yyjson_doc_free(doc);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    const char *data = (const char *)bytes;
    const char *end = len > 0 ? memchr(data, 0, len) : NULL;
    struct json_error bad;
    AUTO_BUF struct buf faults = BUF_INIT(TOOL_FAULTS_BYTES), once = BUF_INIT(TOOL_BYTES_MAX),
                        twice = BUF_INIT(TOOL_BYTES_MAX), schema = BUF_INIT(TOOL_BYTES_MAX);
    struct tool t, back;
    yyjson_doc *doc = json_parse_envelope(data, end ? (size_t)(end - data) : len, &bad);
    if (!doc) {
        return 0;
    }
    int e = tool_parse(yyjson_doc_get_root(doc), NULL, &t, &faults);
    yyjson_doc_free(doc);
    MUST(e == 0 || (e == -EINVAL && faults.len > 0));
    if (e == 0) {
        MUST(tool_write(&once, &t) == 0);
        doc = json_parse_envelope(once.data, once.len, &bad);
        MUST(doc && tool_parse(yyjson_doc_get_root(doc), NULL, &back, &faults) == 0);
        yyjson_doc_free(doc);
        MUST(tool_write(&twice, &back) == 0);
        MUST(once.len == twice.len && memcmp(once.data, twice.data, once.len) == 0);
        MUST(tool_write_schema(&schema, &back) == 0);
        doc = json_parse_envelope(schema.data, schema.len, &bad);
        MUST(doc);
        yyjson_doc_free(doc);
        tool_done(&back);
        if (end) {
            call(&t, end + 1, len - (size_t)(end + 1 - data));
        }
    }
    tool_done(&t);
    return 0;
}
