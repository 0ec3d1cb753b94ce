// fetch.h: a job's artifacts, into a folder of the user's. Which there are is the service's word;
// which are written, and where, is decided here (cli/outdir.h).
#ifndef ISLE_CLIENT_FETCH_H
#define ISLE_CLIENT_FETCH_H

#include "cli/outdir.h"
#include "client/client.h"

// Those of `result` (a SandboxResult) that `to` was opened for. Failures stand in to->error. 0, or
// -EINTR.
int fetch_artifacts(struct client *c, const char *job_id, yyjson_val *result, struct outdir *to);

// What the artifact is called here: its path below /workspace, with ".zip" behind it if it is the
// archive of a folder. Malloc'ed; NULL: it is no such path, or there is no memory.
char *fetch_name(yyjson_val *artifact);

#endif
