// agent.c: what an agent does in a session by name.
#include "api/agent.h"

#include "api/job_call.h"
#include "api/route.h"
#include "api/session_call.h"

#include "base/fd.h"
#include "model/refuse.h"
#include "workspace/zip.h"

#include <stdlib.h>
#include <string.h>

enum { COMMAND_BODY_BYTES = 6 * JOB_MAX_CODE_BYTES + (64 << 10) }; // every byte as an escape
enum { LIST_BODY_BYTES = 1 << 20 };
enum {
    TEXT_BODY_BYTES = 12 * AGENT_WRITE_MAX_CHARS + (64 << 10)
}; // every character as two escapes

struct agent_http {
    struct agent_call call;
    struct api_call *of;
};

static void answered(struct agent_call *c, struct buf *data)
{
    struct agent_http *h = c->ctx;
    api_reply(h->of, 200, data);
}

static bool makes_job(enum agent_tool tool) { return tool == AGENT_BASH || tool == AGENT_ARTIFACT; }

static void refused(struct agent_call *c, int error, const char *text)
{
    struct agent_http *h = c->ctx;
    char path[SHOWN_BYTES];
    if (error < 0 && !makes_job(c->tool)) {
        job_show(yyjson_obj_get(c->arguments, "path"), path);
        api_fail(h->of, API_INTERNAL, "%s %s: %s", agent_tool_names[c->tool], path, text);
    } else if (makes_job(c->tool)) {
        job_call_refuse(h->of, error, &c->queue);
    } else {
        api_fail_session(h->of, error);
    }
}

static void gone(struct api_call *c)
{
    struct agent_http *h = c->ctx;
    agents_leave(c->with->agents, &h->call);
    http_abort(c->r);
}

static void end(struct api_call *c)
{
    struct agent_http *h = c->ctx;
    agents_leave(c->with->agents, &h->call);
    yyjson_doc_free(h->call.doc);
    free(h);
}

static void call_tool(struct api_call *c)
{
    struct agent_http *h = calloc(1, sizeof *h);
    if (!h) {
        api_fail(c, API_INTERNAL, "no memory");
        return;
    }
    h->of = c;
    h->call = (struct agent_call){.team = c->team,
                                  .session = c->segment[0],
                                  .arguments = yyjson_doc_get_root(c->json),
                                  .doc = c->json,
                                  .trace = c->trace,
                                  .answered = answered,
                                  .refused = refused,
                                  .ctx = h};
    while (agent_requests[h->call.tool] != c->route->request) {
        h->call.tool++;
    }
    c->json = NULL;
    c->ctx = h;
    c->gone = gone;
    c->end = end;
    if (h->call.tool == AGENT_ARTIFACT && http_hold(c->r, ZIP_BYTES)) { // it may be of folders
        api_fail_busy(c);
        return;
    }
    agents_call(c->with->agents, &h->call);
}

#define TOOL(name, bytes, shown, text)                                                             \
    {                                                                                              \
        .method = HTTP_M_POST, .path = "/api/v1/sandbox/sessions/{id}/tools/" #name,               \
        .who = API_TEAM, .body = API_JSON, .max_bytes = (bytes), .request = &schema_agent_##name,  \
        .example = (shown), .response = &schema_agent_##name##_answer, .handle = call_tool,        \
        .summary = (text)                                                                          \
    }

static const struct api_route routes[] = {
    TOOL(bash, COMMAND_BODY_BYTES, "{\"command\": \"ls -la; python3 main.py\", \"timeout\": 60}",
         "A command, as a job of the session."),
    TOOL(read, 0, "{\"path\": \"main.py\", \"start_line\": 1, \"end_line\": 40}",
         "Lines of a file, with the anchors that edit takes."),
    TOOL(write, TEXT_BODY_BYTES, "{\"path\": \"main.py\", \"content\": \"print(1)\\n\"}",
         "A whole file."),
    TOOL(edit, TEXT_BODY_BYTES,
         "{\"path\": \"main.py\", \"edits\": [{\"op\": \"replace\", \"line\": \"1#ab3f\", \"new\": "
         "\"print(2)\"}]}",
         "Lines of a file, all edits or none."),
    TOOL(artifact, LIST_BODY_BYTES,
         "{\"paths\": [\"report.pdf\", {\"path\": \"plots\", \"optional\": true}]}",
         "Files of the session for the user, with links."),
};

const struct api_subject api_agent = {
    "agent tools",
    "What an agent does in a session. A tool that refuses answers 200 with `success` false and an "
    "`error` for the model.",
    routes, ARRAY_LEN(routes)};
