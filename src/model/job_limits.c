// job_limits.c: the job's `limits` object.
#include "model/parse.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

// A number beyond the scale of int64 is judged by its sign: the bounds are all far smaller.
static int out_of_scale(struct parse *p, const char *field, int which, yyjson_val *v)
{
    char shown[SHOWN_BYTES], bound[32];
    const struct limit_spec *s = &limit_specs[which];
    bool low = job_show(v, shown)[0] == '-';
    limit_format((enum limit)which, low ? s->min : s->max, bound, sizeof bound);
    return job_refuse(p->error, field, "%s is %s of %s %s", shown,
                      low ? "below the minimum" : "above the maximum", bound, s->unit);
}

static int parse_limit(struct parse *p, int which, const char *field, yyjson_val *v)
{
    const struct limit_spec *s = &limit_specs[which];
    char text[256], shown[SHOWN_BYTES];
    int64_t value = 0, low = 0;
    if (s->optional && yyjson_is_null(v)) {
        return 0;
    }
    if (!yyjson_is_raw(v)) {
        return job_wrong_type(p, field, v, s->digits ? "a number" : "a whole number");
    }
    int e = s->digits ? json_decimal(v, s->digits, &value) : json_int(v, &value);
    if (e == -ERANGE) {
        return out_of_scale(p, field, which, v);
    }
    if (e) {
        return job_wrong_type(p, field, v, "a whole number");
    }
    // Rounding up must not lift a value over the lower bound.
    if (s->digits && (json_decimal_down(v, s->digits, &low) || low < s->min)) {
        char bound[32];
        limit_format((enum limit)which, s->min, bound, sizeof bound);
        return job_refuse(p->error, field, "%s is below the minimum of %s %s", job_show(v, shown),
                          bound, s->unit);
    }
    if (limit_check((enum limit)which, value, text, sizeof text)) {
        return job_refuse(p->error, field, "%s", text + strlen(s->name) + 2);
    }
    p->job->limits.value[which] = value;
    p->job->limits.source[which] = LIMIT_FROM_JOB;
    return 0;
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
        char field[64];
        const char *name = unsafe_yyjson_get_str(key); // a key is a string
        snprintf(field, sizeof field, "limits.%.50s", name);
        int which = limit_find(name);
        if (which < 0 || strlen(name) != yyjson_get_len(key)) {
            return job_refuse(p->error, field, "unknown limit");
        }
        int e = parse_limit(p, which, field, value);
        if (e) {
            return e;
        }
    }
    return 0;
}
