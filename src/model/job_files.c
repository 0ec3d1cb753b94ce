// job_files.c: what a job brings and takes away: input_files, stdin_fd, artifacts.
#include "model/parse.h"

#include "base/fd.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int take_fd(struct parse *p, const char *field, yyjson_val *v, int *ret)
{
    int64_t n;
    char shown[SHOWN_BYTES];
    if (!yyjson_is_raw(v) || json_int(v, &n) || n < 0 || n >= p->n_fds) {
        return job_refuse(p->error, field, "%s is not one of the %d descriptors that came along",
                          job_show(v, shown), p->n_fds);
    }
    if (p->fd_used[n]) {
        return job_refuse(p->error, field, "descriptor %d is named twice", (int)n);
    }
    p->fd_used[n] = true;
    *ret = (int)n;
    return 0;
}

int job_parse_stdin(struct parse *p, yyjson_val *v)
{
    return take_fd(p, "stdin_fd", v, &p->job->stdin_index);
}

static int parse_mode(struct parse *p, const char *field, yyjson_val *v, uint32_t *ret)
{
    static const struct {
        const char *text;
        int64_t number;
    } modes[] = {{"0644", 0644}, {"0755", 0755}, {"644", 0644}, {"755", 0755}};
    int64_t n = -1;
    char shown[SHOWN_BYTES];
    if (yyjson_is_raw(v) && json_int(v, &n)) {
        n = -1;
    }
    for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
        if (n == modes[i].number || yyjson_equals_str(v, modes[i].text)) {
            *ret = (uint32_t)modes[i].number;
            return 0;
        }
    }
    return job_refuse(p->error, field, "must be \"0644\" or \"0755\", not %s", job_show(v, shown));
}

// Is one path the other, or a folder above it?
static bool in_the_way(const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b), less = n < m ? n : m;
    return strncmp(a, b, less) == 0 && (n == m || (n < m ? b[n] == '/' : a[m] == '/'));
}

static int check_target(struct parse *p, const char *field, size_t n)
{
    const char *target = p->job->files[n].target;
    char shown[SHOWN_BYTES];
    if (strcmp(target, ".") == 0) {
        return job_refuse(p->error, field, "must name a file below /workspace");
    }
    for (size_t i = 0; i < n; i++) {
        if (in_the_way(p->job->files[i].target, target)) {
            return job_refuse(p->error, field, "%s is in the way of input_files[%zu]",
                              job_show_text(target, strlen(target), shown), i);
        }
    }
    return 0;
}

// Where its content comes from.
static int parse_source(struct parse *p, const char *where, yyjson_val *v, struct job_file *f)
{
    char field[48];
    yyjson_val *fd = yyjson_obj_get(v, "fd");
    bool content = yyjson_obj_get(v, "content_base64") != NULL;
    if (fd && content) {
        return job_refuse(p->error, where, "has both fd and content_base64");
    }
    if (content || (!fd && p->n_fds == 0)) {
        return job_parse_content(p, where, v, f);
    }
    snprintf(field, sizeof field, "%s.fd", where);
    return fd ? take_fd(p, field, fd, &f->fd_index) : job_refuse(p->error, field, "is missing");
}

static int parse_file(struct parse *p, size_t n, yyjson_val *v)
{
    static const char *const names[] = {"target_path",    "mode",          "fd",
                                        "content_base64", "expected_size", "expected_checksum"};
    char where[32], field[48];
    snprintf(where, sizeof where, "input_files[%zu]", n);
    if (!yyjson_is_obj(v)) {
        return job_wrong_type(p, where, v, "an object");
    }
    int e = job_only_known(p, where, v, names, ARRAY_LEN(names));
    if (e) {
        return e;
    }
    struct job_file *f = &p->job->files[n];
    snprintf(field, sizeof field, "%s.target_path", where);
    yyjson_val *path = yyjson_obj_get(v, "target_path"), *mode = yyjson_obj_get(v, "mode");
    if (!yyjson_is_str(path)) {
        return job_refuse(p->error, field, "must be given, a string");
    }
    e = job_path(field, yyjson_get_str(path), yyjson_get_len(path), &f->target, p->error);
    if (!e) {
        e = check_target(p, field, n);
    }
    if (!e && mode && !yyjson_is_null(mode)) {
        snprintf(field, sizeof field, "%s.mode", where);
        e = parse_mode(p, field, mode, &f->mode);
    }
    return e ? e : parse_source(p, where, v, f);
}

int job_parse_files(struct parse *p, yyjson_val *v)
{
    if (!yyjson_is_arr(v)) {
        return job_wrong_type(p, "input_files", v, "an array");
    }
    size_t n = yyjson_arr_size(v), i, count;
    if (n > JOB_MAX_FILES) {
        return job_refuse(p->error, "input_files", "%zu are above the maximum of %d", n,
                          JOB_MAX_FILES);
    }
    p->job->files = calloc(n ? n : 1, sizeof *p->job->files);
    if (!p->job->files) {
        return -ENOMEM;
    }
    yyjson_val *file;
    yyjson_arr_foreach(v, i, count, file)
    {
        p->job->files[i] = (struct job_file){.fd = -1, .fd_index = -1, .mode = 0644};
        p->job->n_files = i + 1;
        int e = parse_file(p, i, file);
        if (e) {
            return e;
        }
    }
    return 0;
}

static int parse_artifact_path(struct parse *p, const char *field, yyjson_val *path, char **ret)
{
    if (!yyjson_is_str(path)) {
        return job_refuse(p->error, field, "must be a path");
    }
    int e = job_path(field, yyjson_get_str(path), yyjson_get_len(path), ret, p->error);
    if (!e && strcmp(*ret, ".") == 0) {
        return job_refuse(p->error, field, "must name a file below /workspace");
    }
    return e;
}

static int parse_description(struct parse *p, const char *where, yyjson_val *v,
                             struct job_artifact *a)
{
    char field[48];
    if (!v || yyjson_is_null(v)) {
        return 0;
    }
    snprintf(field, sizeof field, "%s.description", where);
    if (!yyjson_is_str(v)) {
        return job_wrong_type(p, field, v, "a string");
    }
    if (yyjson_get_len(v) > JOB_MAX_DESCRIPTION ||
        memchr(yyjson_get_str(v), '\0', yyjson_get_len(v))) {
        return job_refuse(p->error, field, "must be at most %d bytes without NUL",
                          JOB_MAX_DESCRIPTION);
    }
    a->description = strdup(yyjson_get_str(v));
    return a->description ? 0 : -ENOMEM;
}

static int parse_artifact(struct parse *p, size_t n, yyjson_val *v)
{
    static const char *const names[] = {"path", "optional", "description"};
    char where[32], field[48];
    snprintf(where, sizeof where, "artifacts[%zu]", n);
    struct job_artifact *a = &p->job->artifacts[n];
    if (!yyjson_is_obj(v)) {
        return parse_artifact_path(p, where, v, &a->path);
    }
    int e = job_only_known(p, where, v, names, ARRAY_LEN(names));
    if (e) {
        return e;
    }
    yyjson_val *optional = yyjson_obj_get(v, "optional");
    if (optional && !yyjson_is_bool(optional) && !yyjson_is_null(optional)) {
        snprintf(field, sizeof field, "%s.optional", where);
        return job_wrong_type(p, field, optional, "true or false");
    }
    a->optional = yyjson_is_true(optional);
    e = parse_description(p, where, yyjson_obj_get(v, "description"), a);
    if (e) {
        return e;
    }
    snprintf(field, sizeof field, "%s.path", where);
    return parse_artifact_path(p, field, yyjson_obj_get(v, "path"), &a->path);
}

int job_parse_artifacts(struct parse *p, yyjson_val *v)
{
    if (!yyjson_is_arr(v)) {
        return job_wrong_type(p, "artifacts", v, "an array");
    }
    size_t n = yyjson_arr_size(v), i, count;
    if (n > JOB_MAX_ARTIFACTS) {
        return job_refuse(p->error, "artifacts", "%zu are above the maximum of %d", n,
                          JOB_MAX_ARTIFACTS);
    }
    p->job->artifacts = calloc(n ? n : 1, sizeof *p->job->artifacts);
    if (!p->job->artifacts) {
        return -ENOMEM;
    }
    yyjson_val *artifact;
    yyjson_arr_foreach(v, i, count, artifact)
    {
        p->job->n_artifacts = i + 1;
        int e = parse_artifact(p, i, artifact);
        if (e) {
            return e;
        }
    }
    return 0;
}
