// routes.c: all subjects of the API. A new one is a line in route.h and one here.
#include "api/route.h"

const struct api_subject *const api_subjects[] = {
    &api_execute, &api_jobs,       &api_events,      &api_artifacts, &api_sessions,
    &api_files,   &api_tools,      &api_tool_calls,  &api_agent,     &api_workflow,
    &api_keys,    &api_operations, &api_description, NULL,
};
