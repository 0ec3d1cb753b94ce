// job_limits.c: the job's `limits` object.
#include "model/parse.h"

#include "codec/json.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

// A number beyond the scale of int64 is judged by its sign: the bounds are all far smaller.
static int out_of_scale(struct job_error *e, const char *field, int which, yyjson_val *v)
{
    char shown[SHOWN_BYTES], bound[32];
    const struct limit_spec *s = &limit_specs[which];
    bool low = job_show(v, shown)[0] == '-';
    limit_format((enum limit)which, low ? s->min : s->max, bound, sizeof bound);
    return job_refuse(e, field, "%s is %s of %s %s", shown,
                      low ? "below the minimum" : "above the maximum", bound, s->unit);
}

static int wrong_type(struct job_error *e, const char *field, int which, yyjson_val *v)
{
    char shown[SHOWN_BYTES];
    return job_refuse(e, field, "must be %s, not %s",
                      limit_specs[which].digits ? "a number" : "a whole number",
                      job_show(v, shown));
}

static int read_value(int which, const char *field, yyjson_val *v, struct limits *l,
                      struct job_error *e)
{
    const struct limit_spec *s = &limit_specs[which];
    char text[256], shown[SHOWN_BYTES];
    int64_t value = 0, low = 0;
    if (s->optional && yyjson_is_null(v)) {
        return 0;
    }
    if (!yyjson_is_raw(v)) {
        return wrong_type(e, field, which, v);
    }
    int error = s->digits ? json_decimal(v, s->digits, &value) : json_int(v, &value);
    if (error == -ERANGE) {
        return out_of_scale(e, field, which, v);
    }
    if (error) {
        return wrong_type(e, field, which, v);
    }
    // Rounding up must not lift a value over the lower bound.
    if (s->digits && (json_decimal_down(v, s->digits, &low) || low < s->min)) {
        char bound[32];
        limit_format((enum limit)which, s->min, bound, sizeof bound);
        return job_refuse(e, field, "%s is below the minimum of %s %s", job_show(v, shown), bound,
                          s->unit);
    }
    if (limit_check((enum limit)which, value, text, sizeof text)) {
        return job_refuse(e, field, "%s", text + strlen(s->name) + 2);
    }
    l->value[which] = value;
    l->source[which] = LIMIT_FROM_JOB;
    return 0;
}

int job_read_limit(const yyjson_val *key, yyjson_val *v, struct limits *ret,
                   struct job_error *ret_error)
{
    yyjson_val *k = (yyjson_val *)(uintptr_t)key; // the readers take no const
    const char *name = unsafe_yyjson_get_str(k);  // a key is a string
    char field[64];
    snprintf(field, sizeof field, "limits.%.50s", name);
    int which = limit_find(name);
    if (which < 0 || strlen(name) != yyjson_get_len(k)) {
        const char *near = NULL;
        char meant[MEANT_BYTES];
        for (int i = 0; i < LIMIT_COUNT && !near; i++) {
            near = job_is_near(name, yyjson_get_len(k), limit_specs[i].name) ? limit_specs[i].name
                                                                             : NULL;
        }
        return job_refuse(ret_error, field, "unknown limit%s", job_show_meant(near, meant));
    }
    return read_value(which, field, v, ret, ret_error);
}

int job_parse_limits(struct parse *p, yyjson_val *v)
{
    if (!yyjson_is_obj(v)) {
        return job_wrong_type(p, "limits", v, "an object");
    }
    size_t i, count;
    yyjson_val *key, *value;
    yyjson_obj_foreach(v, i, count, key, value)
    {
        int e = job_go_on(p, job_read_limit(key, value, &p->job->limits, p->error));
        if (e) {
            return e;
        }
    }
    return 0;
}

int job_parse_timeout(struct parse *p, yyjson_val *v)
{
    int64_t seconds;
    char shown[SHOWN_BYTES];
    if (json_int(v, &seconds) || seconds < 1 || seconds > JOB_MAX_EXECUTE_SECONDS) {
        return job_refuse(p->error, "timeout", "must be a whole number of seconds, 1 to %d, not %s",
                          JOB_MAX_EXECUTE_SECONDS, job_show(v, shown));
    }
    // `limits` comes later and has the last word.
    p->job->limits.value[LIMIT_TIMEOUT] = seconds * 1000;
    p->job->limits.source[LIMIT_TIMEOUT] = LIMIT_FROM_JOB;
    return 0;
}

static int parse_megabytes(struct parse *p, const char *field, yyjson_val *v, int64_t max_mb,
                           uint64_t *ret_bytes)
{
    int64_t thousandths;
    char shown[SHOWN_BYTES];
    if (!v || yyjson_is_null(v)) {
        return 0;
    }
    if (json_decimal(v, 3, &thousandths) || thousandths <= 0 || thousandths > max_mb * 1000) {
        return job_refuse(p->error, field, "must be a number above 0, at most %d MB, not %s",
                          (int)max_mb, job_show(v, shown));
    }
    *ret_bytes = (uint64_t)thousandths * (1 << 20) / 1000;
    return 0;
}

int job_parse_artifact_limits(struct parse *p, yyjson_val *v)
{
    static const char *const names[] = {"max_size_mb", "max_total_size_mb"};
    if (!yyjson_is_obj(v)) {
        return job_wrong_type(p, "artifact_limits", v, "an object");
    }
    int e = job_only_known(p, "artifact_limits", v, names, 2);
    e = e ? e
          : parse_megabytes(p, "artifact_limits.max_size_mb", yyjson_obj_get(v, names[0]),
                            JOB_MAX_ARTIFACT_MB, &p->job->artifact_max_bytes);
    return e ? e
             : parse_megabytes(p, "artifact_limits.max_total_size_mb", yyjson_obj_get(v, names[1]),
                               JOB_MAX_ARTIFACTS_MB, &p->job->artifacts_max_bytes);
}
