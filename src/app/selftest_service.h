// selftest_service.h: the service side of `isle doctor` (doctor/trial.h).
#ifndef ISLE_APP_SELFTEST_SERVICE_H
#define ISLE_APP_SELFTEST_SERVICE_H

#include "conf/conf.h"
#include "job/pipeline.h"
#include "start/start.h"

// As service_run(): runs in the dropped service until the report is sent. Exit status.
int selftest_service_run(const struct seat *seat, struct conf *conf,
                         const struct pipeline_config *config);

#endif
