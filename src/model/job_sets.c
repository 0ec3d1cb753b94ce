// Package sets: folders that the operator keeps below SANDBOX_PACKAGES_ROOT, named by the job.
#include "model/job.h"
#include "model/parse.h"
#include "plan/plan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert((int)JOB_MAX_SETS == (int)PLAN_SETS_PER_JOB, "one bound");

// [A-Za-z0-9][A-Za-z0-9._-]*: the name of a folder, and never "." or "..".
static bool is_set_name(const char *name, size_t len)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  "._-";
    return len > 0 && len <= JOB_SET_NAME_MAX && strspn(name, allowed) == len &&
           !strchr("._-", name[0]);
}

static int parse_set(struct parse *p, size_t i, yyjson_val *v)
{
    char field[32], shown[SHOWN_BYTES];
    struct job *j = p->job;
    snprintf(field, sizeof field, "package_sets[%zu]", i);
    if (!yyjson_is_str(v)) {
        return job_wrong_type(p, field, v, "a string");
    }
    if (!is_set_name(yyjson_get_str(v), yyjson_get_len(v))) {
        return job_refuse(p->error, field,
                          "%s is not a name: letters, digits and . _ - inside (at most %d)",
                          job_show(v, shown), JOB_SET_NAME_MAX);
    }
    for (size_t k = 0; k < i; k++) {
        if (yyjson_equals_str(v, j->package_sets[k])) {
            return job_refuse(p->error, field, "%s is given twice", job_show(v, shown));
        }
    }
    j->package_sets[i] = strdup(yyjson_get_str(v));
    if (!j->package_sets[i]) {
        return -ENOMEM;
    }
    j->n_package_sets = i + 1;
    return 0;
}

int job_parse_sets(struct parse *p, yyjson_val *v)
{
    if (!yyjson_is_arr(v)) {
        return job_wrong_type(p, "package_sets", v, "an array of strings");
    }
    size_t n = yyjson_arr_size(v), i, count;
    if (n > JOB_MAX_SETS) {
        return job_refuse(p->error, "package_sets", "%zu are above the maximum of %d", n,
                          JOB_MAX_SETS);
    }
    p->job->package_sets = calloc(n + 1, sizeof *p->job->package_sets);
    if (!p->job->package_sets) {
        return -ENOMEM;
    }
    yyjson_val *set;
    yyjson_arr_foreach(v, i, count, set)
    {
        int e = parse_set(p, i, set);
        if (e) {
            return e;
        }
    }
    return 0;
}
