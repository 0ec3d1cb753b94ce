// service.h: the service side of `isle run`: one job from the front, its result back to it.
#ifndef ISLE_APP_SERVICE_H
#define ISLE_APP_SERVICE_H

#include "conf/conf.h"
#include "job/pipeline.h"
#include "start/start.h"

// Runs in the dropped service, with the front's socket and the launcher of `seat`. Takes FDS frames
// and one JOB, sends STDOUT, STDERR and artifacts as they come and FINAL last; CANCEL, or the end
// of the front, ends the job. Exit status of the process: 0, or 1 when the front or the launcher
// was lost.
int service_run(const struct seat *seat, struct conf *conf, const struct pipeline_config *config);

#endif
