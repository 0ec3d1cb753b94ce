// job_content.c: what a job brings as text: contents of input files and its standard input.
#include "model/parse.h"

#include "codec/base64.h"
#include "codec/sha256.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static int take_base64(struct parse *p, const char *field, yyjson_val *v, char **ret,
                       size_t *ret_len)
{
    char shown[SHOWN_BYTES];
    size_t len;
    if (!yyjson_is_str(v)) {
        return job_wrong_type(p, field, v, "base64");
    }
    if (!base64_measure(yyjson_get_str(v), yyjson_get_len(v), &len)) {
        return job_refuse(p->error, field, "%s is not base64 with its padding", job_show(v, shown));
    }
    char *data = malloc(len + 1);
    if (!data) {
        return -ENOMEM;
    }
    base64_decode(yyjson_get_str(v), yyjson_get_len(v), (uint8_t *)data);
    data[len] = '\0';
    *ret = data;
    *ret_len = len;
    return 0;
}

int job_parse_stdin_base64(struct parse *p, yyjson_val *v)
{
    if (p->job->stdin_index >= 0) {
        return job_refuse(p->error, "stdin_base64", "may not be given together with stdin_fd");
    }
    return take_base64(p, "stdin_base64", v, &p->job->stdin_data, &p->job->stdin_len);
}

static int check_size(struct parse *p, const char *field, yyjson_val *v, size_t len)
{
    int64_t wanted;
    char shown[SHOWN_BYTES];
    if (!v || yyjson_is_null(v)) {
        return 0;
    }
    if (json_int(v, &wanted)) {
        return job_wrong_type(p, field, v, "a whole number");
    }
    if (wanted < 0 || (uint64_t)wanted != len) {
        return job_refuse(p->error, field, "the content has %zu bytes, not %s", len,
                          job_show(v, shown));
    }
    return 0;
}

static int check_sum(struct parse *p, const char *field, yyjson_val *v, const struct job_file *f)
{
    static const char prefix[] = "sha256:";
    struct sha256 s;
    uint8_t digest[SHA256_BYTES];
    char hex[SHA256_HEX];
    if (!v || yyjson_is_null(v)) {
        return 0;
    }
    if (!yyjson_is_str(v)) {
        return job_wrong_type(p, field, v, "a SHA-256 in hexadecimal digits");
    }
    const char *wanted = yyjson_get_str(v);
    wanted += strncmp(wanted, prefix, sizeof prefix - 1) == 0 ? sizeof prefix - 1 : 0;
    sha256_init(&s);
    sha256_add(&s, f->content, f->content_len);
    sha256_end(&s, digest);
    sha256_hex(digest, hex);
    if (strcasecmp(wanted, hex) != 0) {
        return job_refuse(p->error, field, "the content's SHA-256 is %s", hex);
    }
    return 0;
}

int job_parse_content(struct parse *p, const char *where, yyjson_val *v, struct job_file *f)
{
    char field[64];
    yyjson_val *content = yyjson_obj_get(v, "content_base64");
    snprintf(field, sizeof field, "%s.content_base64", where);
    if (!content) {
        return job_refuse(p->error, field, "is missing");
    }
    int e = take_base64(p, field, content, &f->content, &f->content_len);
    if (!e) {
        snprintf(field, sizeof field, "%s.expected_size", where);
        e = check_size(p, field, yyjson_obj_get(v, "expected_size"), f->content_len);
    }
    if (!e) {
        snprintf(field, sizeof field, "%s.expected_checksum", where);
        e = check_sum(p, field, yyjson_obj_get(v, "expected_checksum"), f);
    }
    return e;
}
