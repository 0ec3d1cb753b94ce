// install.c: package sets that are there already.
#include "job/install.h"

#include "base/clock.h"
#include "base/fd.h"
#include "job/stages.h"
#include "job/verdict.h"

#include <errno.h>
#include <stdio.h>

int install_check(yyjson_val *job, struct job_error *ret_error)
{
    static const char *const fields[] = {"python_packages", "js_packages",
                                         "python_package_index_url", "node_package_registry_url"};
    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        yyjson_val *v = yyjson_obj_get(job, fields[i]);
        if (v && !yyjson_is_null(v) && !(yyjson_is_arr(v) && yyjson_arr_size(v) == 0)) {
            snprintf(ret_error->field, sizeof ret_error->field, "%s", fields[i]);
            snprintf(ret_error->text, sizeof ret_error->text, "%s: packages are not available yet",
                     fields[i]);
            return -EINVAL;
        }
    }
    return 0;
}

static void installed(void *ctx, int error)
{
    struct pipeline *p = ctx;
    if (error) {
        verdict_set(&p->result, p->job.package_sets[p->sets.n], error);
    }
    p->result.install_completed_at = clock_wall_ms();
    pipeline_next(p);
}

void stage_install(struct pipeline *p)
{
    if (p->job.n_package_sets == 0) {
        pipeline_next(p);
        return;
    }
    p->result.install_started_at = clock_wall_ms();
    p->sets = SETS_INIT(p->runner, p->config->cache_root, &p->job, installed, p);
    p->sets.number = p->plan.start.sets;
    int e = sets_register(&p->sets);
    if (e) {
        installed(p, e);
    }
}
