// Packed argv and environment, read by a job's own process: every pointer leads to a string inside
// the data.
#include "base/fd.h"
#include "fuzz.h"
#include "plan/args.h"

#include <string.h>

static void inside(const char *data, size_t len, const char *text)
{
    MUST(text >= data && text < data + len);
    MUST(memchr(text, '\0', (size_t)(data + len - text)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static char *argv[ARGS_MAX_ARGV + 1], *env[ARGS_MAX_ENV + 1];
    char *cwd = NULL;
    // The header's magic and size are set right now and then, so that the strings are reached.
    char *copy = malloc(len + 1);
    MUST(copy);
    memcpy(copy, data, len);
    struct args_header h;
    if (len > sizeof h && data[len - 1] == 0) {
        memcpy(&h, copy, sizeof h);
        h.magic = ARGS_MAGIC;
        h.bytes = (uint32_t)(len - sizeof h);
        memcpy(copy, &h, sizeof h);
    }
    if (args_parse(copy, len, argv, env, &cwd) == 0) {
        size_t argc = 0, envc = 0;
        for (; argv[argc]; argc++) {
            inside(copy, len, argv[argc]);
        }
        for (; env[envc]; envc++) {
            inside(copy, len, env[envc]);
        }
        inside(copy, len, cwd);
        MUST(argc >= 1 && argc <= ARGS_MAX_ARGV && envc <= ARGS_MAX_ENV);
        MUST(argv[0][0] != '\0' && cwd[0] == '/');
    }
    free(copy);
    return 0;
}
