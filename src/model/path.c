#include "model/refuse.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { COMPONENT_MAX = 255 }; // NAME_MAX of every file system that isle meets

// Appends one component, or says why not. The leading one of an absolute path is dropped: the
// caller has checked it.
static int add_component(struct buf *out, const char *p, size_t n, const char **ret_why)
{
    if (n == 0 || (n == 1 && p[0] == '.')) {
        return 0;
    }
    if (n == 2 && p[0] == '.' && p[1] == '.') {
        *ret_why = "may not contain \"..\"";
        return -EINVAL;
    }
    if (n > COMPONENT_MAX) {
        *ret_why = "has a component over 255 bytes";
        return -EINVAL;
    }
    if (out->len > 0) {
        buf_putc(out, '/');
    }
    return buf_add(out, p, n);
}

static int normalise(struct buf *out, const char *path, size_t len, const char **ret_why)
{
    for (size_t at = 0; at < len;) {
        const char *slash = memchr(path + at, '/', len - at);
        size_t n = slash ? (size_t)(slash - path) - at : len - at;
        int e = add_component(out, path + at, n, ret_why);
        if (e) {
            return e;
        }
        at += n + 1;
    }
    return 0;
}

// Of a normalised path. /workspace is one.
static size_t components(const char *path)
{
    size_t n = *path != '\0';
    for (const char *s = strchr(path, '/'); s; s = strchr(s + 1, '/')) {
        n++;
    }
    return n;
}

int job_path(const char *field, const char *path, size_t len, char **ret,
             struct job_error *ret_error)
{
    static const char root[] = "workspace";
    char shown[SHOWN_BYTES];
    const char *why = NULL;
    AUTO_BUF struct buf out = BUF_INIT(JOB_MAX_PATH);
    if (len == 0) {
        why = "is empty";
    } else if (memchr(path, '\0', len)) {
        why = "contains a NUL";
    } else if (len > JOB_MAX_PATH) {
        return job_refuse(ret_error, field, "a path of %zu bytes is over the maximum of %d", len,
                          JOB_MAX_PATH);
    } else {
        normalise(&out, path, len, &why);
    }
    if (!why && out.error) {
        return out.error;
    }
    size_t n_components = components(buf_text(&out));
    if (!why && n_components > JOB_MAX_COMPONENTS) {
        return job_refuse(ret_error, field,
                          "a path of %zu components is over the maximum of %d; name something "
                          "further up",
                          n_components, JOB_MAX_COMPONENTS);
    }
    const char *inside = buf_text(&out);
    if (!why && path[0] == '/') {
        size_t n = sizeof root - 1;
        if (strncmp(inside, root, n) != 0 || (inside[n] && inside[n] != '/')) {
            why = "is outside /workspace";
        } else {
            inside += inside[n] ? n + 1 : n;
        }
    }
    if (why) {
        return job_refuse(ret_error, field, "%s %s", job_show_text(path, len, shown), why);
    }
    char *copy = strdup(*inside ? inside : ".");
    if (!copy) {
        return -ENOMEM;
    }
    *ret = copy;
    return 0;
}
