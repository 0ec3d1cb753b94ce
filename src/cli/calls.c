#include "cli/calls.h"

#include "guest/policy/policy.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const struct policy_name *find(const char *name, size_t len)
{
    for (size_t i = 0; i < policy_n_names; i++) {
        if (strlen(policy_names[i].name) == len && memcmp(policy_names[i].name, name, len) == 0) {
            return &policy_names[i];
        }
    }
    return NULL;
}

int calls_parse(const char *text, struct calls *ret, struct calls_error *ret_error)
{
    struct calls c = {.n = 0};
    size_t len;
    for (; *text; text += len + (text[len] == ',')) {
        len = strcspn(text, ",");
        const struct policy_name *name = len ? find(text, len) : NULL;
        if (len && !name) {
            snprintf(ret_error->text, sizeof ret_error->text,
                     "%.*s is no system call of this processor", (int)(len < 80 ? len : 80), text);
            return -EINVAL;
        }
        if (name && c.n == SEAT_MAX_CALLS) {
            snprintf(ret_error->text, sizeof ret_error->text,
                     "%s is one more than the maximum of %d names", name->name, SEAT_MAX_CALLS);
            return -EINVAL;
        }
        if (name) {
            c.number[c.n++] = (uint32_t)name->number;
        }
    }
    *ret = c;
    return 0;
}
