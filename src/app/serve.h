// serve.h: the service of isled: wires up what answers requests and runs jobs, and ends it in
// order.
#ifndef ISLE_APP_SERVE_H
#define ISLE_APP_SERVE_H

#include "conf/conf.h"
#include "job/pipeline.h"
#include "start/start.h"

// Runs in the dropped service until the front says so, or is gone. What was passed with the seat
// are sockets that listen, and the audit log. Exit status of the process: 0 when it ended as it was
// told to.
int serve_run(const struct seat *seat, struct conf *conf, const struct pipeline_config *config);

#endif
