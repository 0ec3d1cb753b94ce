// Bytes of a job: cleaned text is valid, clean text stays as it is, and a cut never lies inside a
// character.
#include "codec/json.h"
#include "codec/utf8.h"
#include "fuzz.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    const char *text = (const char *)data;
    AUTO_BUF struct buf once = BUF_INIT(4 * len + 8), twice = BUF_INIT(4 * len + 8),
                        literal = BUF_INIT(8 * len + 8);
    MUST(utf8_clean(&once, text, len) == 0);
    MUST(utf8_valid(buf_text(&once), once.len));
    MUST(utf8_clean(&twice, buf_text(&once), once.len) == 0);
    MUST(once.len == twice.len && memcmp(buf_text(&once), buf_text(&twice), once.len) == 0);
    if (utf8_valid(text, len)) {
        MUST(once.len == len && memcmp(buf_text(&once), text, len) == 0);
        MUST(utf8_cut(text, len) == len);
        for (size_t n = 0; n < len && n < 64; n++) {
            MUST(utf8_cut(text, n) <= n && n - utf8_cut(text, n) < 4);
            MUST(utf8_valid(text, utf8_cut(text, n)));
        }
    }
    struct json_error why;
    MUST(utf8_json_string(&literal, text, len) == 0);
    MUST(json_check(literal.data, literal.len, &why) == 0);
    return 0;
}
