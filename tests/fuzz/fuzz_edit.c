// An edit request and a file: the request's JSON, a NUL, the file's bytes; behind another NUL,
// where there is one, the bytes that the file has when it is edited. The file is read whole, so
// that its lines are anchors. TAG in the request stands for its tag. Any answer is right that
// leaves what is before the first edit as it was; the memory survives as bytes, a refusal has a
// reason.
#include "agent/edit.h"
#include "agent/read.h"
#include "codec/json.h"
#include "fuzz.h"

#include <string.h>

static const char *const names[] = {"a.py", "a.md", "a.js", "a.rs", "a.txt"};

static void keep_memory(const struct agent_memory *m)
{
    AUTO_BUF struct buf bytes = BUF_INIT(16 << 20);
    struct agent_memory back;
    MUST(memory_write(m, &bytes) == 0);
    MUST(memory_read(bytes.data, bytes.len, &back) == 0);
    MUST(back.n == m->n && back.registers_n == m->registers_n);
    memory_done(&back);
}

static void edit(const struct text *t, struct agent_memory *m, yyjson_val *body, const char *path)
{
    struct edit_request r;
    struct edit_result made;
    struct agent_refusal why = {""};
    AUTO_BUF struct buf told = BUF_INIT(1 << 16);
    int result = edit_parse(body, &r, &why);
    if (result == 0) {
        result = edit_make(t, path, m, &r, &made, &why);
    }
    MUST(result == 0 || (result == AGENT_REFUSED && why.text[0]));
    if (result != 0) {
        return;
    }
    uint32_t first = UINT32_MAX;
    for (uint32_t i = 0; i < r.n; i++) {
        first = made.changes[i].first < first ? made.changes[i].first : first;
    }
    MUST(first >= 1 && first - 1 <= t->count);
    size_t before = t->at[first - 1]; // bytes that no edit is about
    MUST(made.data.len >= before && memcmp(buf_text(&made.data), t->data, before) == 0);
    MUST(edit_tell(&made, &r, &told) == 0);
    MUST(edit_commit(&made, path, m) == 0);
    edit_result_done(&made);
    keep_memory(m);
}

// The request with TAG replaced by the tag.
static yyjson_doc *request(const char *data, size_t len, const char *tag)
{
    AUTO_BUF struct buf text = BUF_INIT(2 * len + 16);
    for (size_t i = 0; i < len; i++) {
        bool here = len - i >= 3 && memcmp(data + i, "TAG", 3) == 0;
        buf_add(&text, here ? tag : data + i, here ? 4 : 1);
        i += here ? 2 : 0;
    }
    struct json_error bad;
    return text.error ? NULL : json_parse(buf_text(&text), text.len, &bad);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    const char *data = (const char *)bytes, *end = data + len;
    const char *file = len > 1 ? memchr(data + 1, 0, len - 1) : NULL;
    struct agent_memory m = {0}, read = {0};
    if (memory_read(data, len, &read) == 0) {
        keep_memory(&read);
        memory_done(&read);
    }
    if (!file) {
        return 0;
    }
    const char *path = names[bytes[0] % (sizeof names / sizeof *names)];
    const char *later = memchr(file + 1, 0, (size_t)(end - file - 1));
    struct text t, now;
    struct agent_refusal why;
    MUST(text_init(&t, file + 1, (size_t)((later ? later : end) - file - 1), &why) == 0);
    AUTO_BUF struct buf out = BUF_INIT(64 * len + 4096);
    struct read_result res;
    MUST(read_lines(&t, &(struct read_request){.path = path}, &m, &out, &res, &why) == 0);
    yyjson_doc *doc = request(data + 1, (size_t)(file - data - 1), t.tag);
    if (doc && later && text_init(&now, later + 1, (size_t)(end - later - 1), &why) == 0) {
        edit(&now, &m, yyjson_doc_get_root(doc), path);
        text_done(&now);
    } else if (doc) {
        edit(&t, &m, yyjson_doc_get_root(doc), path);
    }
    yyjson_doc_free(doc);
    text_done(&t);
    memory_done(&m);
    return 0;
}
