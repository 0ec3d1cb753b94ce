// refuse.h: how the parts of the job parser say what is wrong. For model/ and for api/, which
// checks requests before they become jobs and says it in the same words.
#ifndef ISLE_MODEL_REFUSE_H
#define ISLE_MODEL_REFUSE_H

#include "codec/json.h"
#include "model/job.h"

// Fills *e: field (made printable), text "FIELD: ..." . Always -EINVAL.
int job_refuse(struct job_error *e, const char *field, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// Its text behind "FIELD: ", whatever the field's name holds.
const char *job_error_what(const struct job_error *e);

// One limit of a job's `limits`: key and value of the JSON object. 0 or -EINVAL.
int job_read_limit(const yyjson_val *key, yyjson_val *v, struct limits *ret,
                   struct job_error *ret_error);

// Whether a name that is unknown may have been meant for this one: a slip of a letter or two, or
// the part before an underscore. given need not end in a NUL.
bool job_is_near(const char *given, size_t n, const char *name);
// "; is NAME meant?" for a message, or "" where meant is NULL.
enum { MEANT_BYTES = 64 };
const char *job_show_meant(const char *meant, char text[MEANT_BYTES]);

enum { SHOWN_BYTES = 80 };
// A value for a message: compact JSON, cut when long.
const char *job_show(const yyjson_val *v, char text[SHOWN_BYTES]);
const char *job_show_text(const char *data, size_t len, char text[SHOWN_BYTES]);

#endif
