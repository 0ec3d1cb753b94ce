#include "plan/args.h"

#include "base/fd.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

// Adds the strings of a list to data[*used..max). Their count or -E2BIG.
static int pack_list(char *data, size_t *used, const char *const *list, int max_count)
{
    int count = 0;
    for (; list && list[count]; count++) {
        size_t len = strlen(list[count]) + 1;
        if (count >= max_count || len > ARGS_MAX_BYTES - *used) {
            return -E2BIG;
        }
        memcpy(data + *used, list[count], len);
        *used += len;
    }
    return count;
}

int args_pack(const char *const *argv, const char *const *env, const char *cwd)
{
    if (!argv || !argv[0] || !argv[0][0] || !cwd) {
        return -EINVAL;
    }
    AUTO_FREE char *data = malloc(ARGS_MAX_BYTES);
    if (!data) {
        return -ENOMEM;
    }
    struct args_header h = {.magic = ARGS_MAGIC};
    size_t used = sizeof h;
    const char *const last[] = {cwd, NULL};
    int argc = pack_list(data, &used, argv, ARGS_MAX_ARGV);
    int envc = argc < 0 ? argc : pack_list(data, &used, env, ARGS_MAX_ENV);
    int e = envc < 0 ? envc : pack_list(data, &used, last, 1);
    if (e < 0) {
        return e;
    }
    h.argc = (uint32_t)argc;
    h.envc = (uint32_t)envc;
    h.bytes = (uint32_t)(used - sizeof h);
    memcpy(data, &h, sizeof h);
    return fd_sealed("args", data, used);
}

int args_parse(char *data, size_t len, char **ret_argv, char **ret_env, char **ret_cwd)
{
    struct args_header h;
    if (len < sizeof h || len > ARGS_MAX_BYTES) {
        return -EINVAL;
    }
    memcpy(&h, data, sizeof h);
    if (h.magic != ARGS_MAGIC || h.argc < 1 || h.argc > ARGS_MAX_ARGV || h.envc > ARGS_MAX_ENV ||
        h.bytes != len - sizeof h) {
        return -EINVAL;
    }
    char *p = data + sizeof h, *end = data + len, *cwd = NULL;
    for (uint32_t i = 0; i < h.argc + h.envc + 1; i++) {
        char *nul = memchr(p, '\0', (size_t)(end - p));
        if (!nul) {
            return -EINVAL;
        }
        if (i < h.argc) {
            ret_argv[i] = p;
        } else if (i < h.argc + h.envc) {
            ret_env[i - h.argc] = p;
        } else {
            cwd = p;
        }
        p = nul + 1;
    }
    if (p != end || ret_argv[0][0] == '\0' || !cwd || cwd[0] != '/') {
        return -EINVAL;
    }
    ret_argv[h.argc] = NULL;
    ret_env[h.envc] = NULL;
    *ret_cwd = cwd;
    return 0;
}
