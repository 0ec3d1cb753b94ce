// Declared outputs of a workflow node and, behind a NUL, what main returned: declarations are sound
// or refused with a reason; a value held against sound ones fits, and is passed on as JSON of the
// declared names, or is refused with a reason.
#include "codec/json.h"
#include "fuzz.h"
#include "tools/node.h"

#include <errno.h>
#include <string.h>

static void hold(yyjson_val *declared, const char *text, size_t len)
{
    struct json_error bad;
    AUTO_BUF struct buf faults = BUF_INIT(1 << 20), out = BUF_INIT(4 << 20),
                        undeclared = BUF_INIT(1 << 20);
    yyjson_doc *value = json_parse(text, len, &bad);
    if (!value) {
        return;
    }
    int e = node_outputs(declared, yyjson_doc_get_root(value), &out, &undeclared, &faults);
    MUST(e == 0 || (e == -EINVAL && faults.len > 0));
    if (e == 0) {
        MUST(faults.len == 0);
        yyjson_doc *passed = json_parse_envelope(out.data, out.len, &bad);
        yyjson_doc *names = json_parse(undeclared.data, undeclared.len, &bad);
        size_t n = yyjson_arr_size(declared);
        MUST(passed && yyjson_is_obj(yyjson_doc_get_root(passed)));
        MUST(n == 0 || yyjson_obj_size(yyjson_doc_get_root(passed)) == n);
        MUST(names && yyjson_arr_size(yyjson_doc_get_root(names)) <= NODE_UNDECLARED_MAX);
        yyjson_doc_free(passed);
        yyjson_doc_free(names);
    }
    yyjson_doc_free(value);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    const char *data = (const char *)bytes;
    const char *end = len > 0 ? memchr(data, 0, len) : NULL;
    struct json_error bad;
    AUTO_BUF struct buf faults = BUF_INIT(1 << 20);
    yyjson_doc *doc = json_parse_envelope(data, end ? (size_t)(end - data) : len, &bad);
    if (!doc) {
        return 0;
    }
    int e = node_declared_check(yyjson_doc_get_root(doc), &faults);
    MUST(e == 0 || (e == -EINVAL && faults.len > 0));
    if (e == 0 && end) {
        hold(yyjson_doc_get_root(doc), end + 1, len - (size_t)(end + 1 - data));
    }
    yyjson_doc_free(doc);
    return 0;
}
