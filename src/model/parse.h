// parse.h: what the parts of the job parser share. Inside model/ only.
#ifndef ISLE_MODEL_PARSE_H
#define ISLE_MODEL_PARSE_H

#include "model/refuse.h"

struct parse {
    struct job *job;
    struct job_error *error;
    yyjson_val *root;
    bool *fd_used; // n_fds of them
    int n_fds;
    // Of a job that is kept: told of the fault of each field. NULL: the first one ends it.
    void (*fault)(void *ctx, const struct job_error *e);
    void *ctx;
    unsigned n_faults;
};

// Each 0 or -EINVAL with p->error, or -ENOMEM.
int job_parse_limits(struct parse *p, yyjson_val *v);
int job_parse_files(struct parse *p, yyjson_val *v);
int job_parse_stdin(struct parse *p, yyjson_val *v);
int job_parse_artifacts(struct parse *p, yyjson_val *v);
int job_parse_sets(struct parse *p, yyjson_val *v);
int job_parse_stdin_base64(struct parse *p, yyjson_val *v);
int job_parse_artifact_limits(struct parse *p, yyjson_val *v);
int job_parse_timeout(struct parse *p, yyjson_val *v);
int job_parse_python_packages(struct parse *p, yyjson_val *v);
int job_parse_js_packages(struct parse *p, yyjson_val *v);
int job_parse_python_index(struct parse *p, yyjson_val *v);
int job_parse_js_registry(struct parse *p, yyjson_val *v);
// What may be given along with packages only, once all fields were read.
int job_check_packages(struct parse *p);
// content_base64, expected_size and expected_checksum of an input file.
int job_parse_content(struct parse *p, const char *where, yyjson_val *v, struct job_file *f);

// After a fault of one field: 0 where the others are looked at all the same (p->fault).
int job_go_on(struct parse *p, int e);
int job_wrong_type(struct parse *p, const char *field, yyjson_val *v, const char *wanted);
// The object's members against a list of names: the first unknown one is refused.
int job_only_known(struct parse *p, const char *where, yyjson_val *object, const char *const *names,
                   size_t n);

#endif
