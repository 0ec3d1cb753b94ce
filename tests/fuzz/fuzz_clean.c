// Output of a command: what is left is valid UTF-8 without control characters, and the sizes told
// are its sizes.
#include "agent/clean.h"
#include "codec/utf8.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    for (int failed = 0; failed < 2; failed++) {
        AUTO_BUF struct buf out = BUF_INIT(64 * len + 256);
        struct clean_told told;
        MUST(clean_output((const char *)data, len, failed, &out, &told) == 0);
        MUST(told.bytes == len && told.bytes_kept == out.len);
        MUST(utf8_valid(buf_text(&out), out.len));
        for (size_t i = 0; i < out.len; i++) {
            unsigned char c = (unsigned char)out.data[i];
            MUST((c >= 32 && c != 127) || c == '\n' || c == '\t' || c == '\r');
        }
        if (failed) {
            MUST(told.lines_kept <= CLEAN_HEAD_LINES + CLEAN_TAIL_LINES + 1);
        }
    }
    return 0;
}
