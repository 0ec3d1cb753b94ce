// What a client sends as a cursor of a listing or as an escaped name: refused or meant once, and
// never a way out of the folder.
#include "base/fd.h"
#include "fuzz.h"
#include "workspace/listing.h"
#include "workspace/names.h"

#include <fcntl.h>
#include <string.h>

static void names(const char *text, size_t len)
{
    AUTO_BUF struct buf escaped = BUF_INIT(3 * len + 8), back = BUF_INIT(3 * len + 8);
    bool odd;
    MUST(names_escape(&escaped, text, len, "\\", &odd) == 0);
    if (!odd) {
        MUST(escaped.len == len && memcmp(buf_text(&escaped), text, len) == 0);
    } else if (!memchr(text, '\0', len)) {
        MUST(names_unescape(&back, buf_text(&escaped), escaped.len) == 0);
        MUST(back.len == len && memcmp(buf_text(&back), text, len) == 0);
    }
    buf_clear(&back);
    int e = names_unescape(&back, text, len);
    MUST(e == 0 || e == -EINVAL);
}

static void cursor(const char *text, size_t len)
{
    AUTO_BUF struct buf copy = BUF_INIT(len + 1), again = BUF_INIT(LISTING_MAX_CURSOR);
    struct listing l;
    struct listing_entry entry;
    // a folder that has folders and that every machine has
    AUTO_CLOSE int folder = open("/etc", O_PATH | O_DIRECTORY | O_CLOEXEC);
    MUST(buf_add(&copy, text, len) == 0);
    int e = listing_begin(&l, folder, true, buf_text(&copy));
    MUST(e == 0 || e == -EINVAL);
    if (e) {
        return;
    }
    for (int i = 0; i < 3 && listing_next(&l, &entry) == 1; i++) {
        MUST(entry.path[0] != '/' && strncmp(entry.path, "../", 3) != 0);
        MUST(listing_cursor(&l, &again) == 0 && again.len <= LISTING_MAX_CURSOR);
        buf_clear(&again);
    }
    listing_end(&l);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    names((const char *)data, len);
    cursor((const char *)data, len);
    return 0;
}
