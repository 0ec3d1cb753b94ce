// JSON: what is taken is written again as the same value, is taken again, and holds no invalid
// UTF-8; what is refused comes with words.
#include "codec/json.h"
#include "codec/utf8.h"
#include "fuzz.h"

#include <string.h>

static void numbers(const yyjson_val *v)
{
    int64_t n, up, down;
    (void)json_int(v, &n);
    if (json_decimal(v, 3, &up) == 0 && json_decimal_down(v, 3, &down) == 0) {
        MUST(up - down == 0 || up - down == 1);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct json_error why = {.text = ""};
    yyjson_doc *doc = json_parse((const char *)data, len, &why);
    MUST((json_check((const char *)data, len, &why) == 0) == (doc != NULL));
    if (!doc) {
        MUST(why.text[0] != '\0' && memchr(why.text, '\0', sizeof why.text));
        return 0;
    }
    numbers(yyjson_doc_get_root(doc));
    AUTO_BUF struct buf first = BUF_INIT(8 * len + 64), second = BUF_INIT(8 * len + 64);
    MUST(json_write(&first, yyjson_doc_get_root(doc)) == 0);
    yyjson_doc_free(doc);
    MUST(utf8_valid(first.data, first.len));
    doc = json_parse(first.data, first.len, &why);
    MUST(doc);
    MUST(json_write(&second, yyjson_doc_get_root(doc)) == 0);
    MUST(first.len == second.len && memcmp(first.data, second.data, first.len) == 0);
    yyjson_doc_free(doc);
    return 0;
}
