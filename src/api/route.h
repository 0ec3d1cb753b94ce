// route.h: which operation a method and a path mean. A subject is a file of handlers: its rows, and
// what it is about.
#ifndef ISLE_API_ROUTE_H
#define ISLE_API_ROUTE_H

#include "api/call.h"

struct api_subject {
    const char *name, *help;
    const struct api_route *routes;
    size_t n;
};

extern const struct api_subject api_operations;  // operations.c
extern const struct api_subject api_execute;     // execute.c
extern const struct api_subject api_tool_calls;  // tools_run.c
extern const struct api_subject api_jobs;        // jobs.c
extern const struct api_subject api_events;      // events.c
extern const struct api_subject api_artifacts;   // artifacts.c
extern const struct api_subject api_sessions;    // sessions.c
extern const struct api_subject api_files;       // files.c
extern const struct api_subject api_agent;       // agent.c
extern const struct api_subject api_tools;       // tools.c
extern const struct api_subject api_workflow;    // workflow.c
extern const struct api_subject api_keys;        // keys.c
extern const struct api_subject api_description; // openapi.c

// All subjects, in the order of the reference; ended by NULL. The one list: routes.c.
extern const struct api_subject *const api_subjects[];

enum api_found {
    API_FOUND,
    API_NO_PATH,   // 404
    API_NO_METHOD, // the path is there, with other methods
    API_BAD_ID,    // the path is there, but an id in it is none: 404, as for one that is not there
};

struct api_match {
    const struct api_route *route;
    char *segment[API_MAX_SEGMENTS]; // within the path that was given
    unsigned methods;                // bits (1 << enum http_method) that the path has
    const char *bad, *form; // API_BAD_ID: the text within the path, cut off, and what it is not
};

// Cuts `path` (http_path()) at its '/' where a segment ends; on API_FOUND the segments point into
// it. Ids are looked at by pattern here, before anything else sees them: {id} is a UUID, {key} 16
// hexadecimal digits, {team} a team's name, {version} a number from 1 on, {name} one segment,
// {path...} the rest, which may be empty.
enum api_found api_route_find(const struct api_subject *const *subjects, enum http_method method,
                              char *path, struct api_match *ret);
// "GET, HEAD, OPTIONS"
void api_route_allow(unsigned methods, char *text, size_t size);

#endif
