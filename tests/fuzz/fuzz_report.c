// The result as a service sends it to the front, which keeps the user's rights: a service that was
// taken over gets an exit status and text for a person out of it, no more.
#include "cli/report.h"
#include "fuzz.h"

#include <errno.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    char *out = NULL, *err = NULL;
    size_t out_len, err_len;
    if (len < 1 || len > 1 << 16) {
        return 0;
    }
    struct buf final = BUF_INIT(1 << 16);
    buf_add(&final, data + 1, len - 1);
    struct report r = {.json = data[0] & 1,
                       .snippet = data[0] & 2,
                       .terminal = data[0] & 4,
                       .line_open = data[0] & 8,
                       .out = open_memstream(&out, &out_len),
                       .err = open_memstream(&err, &err_len)};
    int status = report_print(&r, &final);
    fclose(r.out);
    fclose(r.err);
    MUST(status == -EBADMSG || (status >= 0 && status <= 255));
    MUST(status >= 0 || (out_len == 0 && err_len == 0));
    for (size_t i = 0; i < err_len; i++) { // nothing steers a terminal
        MUST(((unsigned char)err[i] >= 0x20 && err[i] != 0x7f) || err[i] == '\n');
        MUST((unsigned char)err[i] != 0xc2 || (unsigned char)err[i + 1] > 0x9f);
    }
    if (status >= 0 && r.json) {
        MUST(out_len == final.len + 1);
    }
    free(out);
    free(err);
    buf_free(&final);
    return 0;
}
