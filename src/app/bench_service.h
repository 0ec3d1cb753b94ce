// bench_service.h: the service side of `isle bench`: orders instead of one job (cli/bench.h).
#ifndef ISLE_APP_BENCH_SERVICE_H
#define ISLE_APP_BENCH_SERVICE_H

#include "conf/conf.h"
#include "job/pipeline.h"
#include "start/start.h"

// As service_run(): runs in the dropped service until the front closes its socket. Exit status.
int bench_service_run(const struct seat *seat, struct conf *conf,
                      const struct pipeline_config *config);

#endif
