// install.c: package sets that are there already.
#include "job/stages.h"

#include "base/clock.h"
#include "job/verdict.h"

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
