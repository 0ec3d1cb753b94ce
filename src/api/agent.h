// agent.h: what the agents' tools take, for whoever describes them to a model (functions.c).
#ifndef ISLE_API_AGENT_H
#define ISLE_API_AGENT_H

#include "api/schema.h"
#include "serve/agent.h"

// By tool: fields with their texts; the schema's own help is the tool's description. Names are
// agent_tool_names.
extern const struct schema *const agent_requests[AGENT_TOOLS];
extern const char *const agent_edit_ops[]; // those of agent/edit.h, ended by NULL

#endif
