// A command of a model: rewritten, refused or left alone; rewriting again changes nothing, and what
// is not understood comes back byte for byte.
#include "agent/shell.h"
#include "fuzz.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    // In a map of its own length, so that a look behind its end is seen.
    char *text = malloc(len + 1);
    MUST(text);
    memcpy(text, data, len);
    AUTO_BUF struct buf once = BUF_INIT(16 * len + 64), twice = BUF_INIT(64 * len + 256);
    struct agent_refusal why = {""};
    bool changed = false, again = false;
    int r = shell_rewrite(text, len, &once, &changed, &why);
    free(text);
    MUST(r == 0 || r == AGENT_REFUSED);
    if (r == AGENT_REFUSED) {
        MUST(once.len == 0 && why.text[0]);
        return 0;
    }
    MUST(changed || (once.len == len && memcmp(buf_text(&once), data, len) == 0));
    MUST(shell_rewrite(buf_text(&once), once.len, &twice, &again, &why) == 0 && !again);
    return 0;
}
