// agent_calls.h: the agents' tools that make jobs. Inside serve/agent*.c only.
//
// Each is begun once and answers as agent.h says, possibly before it returns; `inner` is its own
// from then on. After _leave() nothing is called any more. `with` stays.
#ifndef ISLE_SERVE_AGENT_CALLS_H
#define ISLE_SERVE_AGENT_CALLS_H

#include "serve/agent.h"

// agent_bash.c: {command, timeout?, cwd?}
void agent_bash_call(const struct agents_config *with, struct agent_call *c);
void agent_bash_leave(const struct agents_config *with, struct agent_call *c);
// agent_artifact.c: {paths, max_size_mb?, max_total_size_mb?}
void agent_artifact_call(const struct agents_config *with, struct agent_call *c);
void agent_artifact_leave(const struct agents_config *with, struct agent_call *c);

#endif
