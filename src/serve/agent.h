// agent.h: what an agent does in a session by name: bash, read, write, edit, artifact. read, write
// and edit work on the session's files by descriptors, on a thread, without a job; one call of a
// session after another, as they share what the session remembers (agent/memory.h). bash is a job
// of the session (jobs.h), and so is artifact, which runs nothing.
#ifndef ISLE_SERVE_AGENT_H
#define ISLE_SERVE_AGENT_H

#include "base/buf.h"
#include "serve/jobs.h"
#include "serve/sessions.h"

#include <stdbool.h>
#include <stdint.h>

#include <yyjson.h>

struct agents;

enum {
    AGENT_WRITE_MAX_CHARS = 1000000,
    AGENT_WRITE_MAX_BYTES = 4 * AGENT_WRITE_MAX_CHARS, // of UTF-8
    AGENT_ARTIFACT_MB = 10, // of an artifact, and of all, where the call does not say
};

struct agents_config {
    struct loop *loop;
    struct sessions *sessions;
    struct jobs *jobs;
    struct work_pool *pool;
    struct log *log;
};
// What sessions remember is kept in memory up to a bound, and written beside the session's files
// when it has been left alone for a moment, when the bound is reached, and at the end.
int agents_new(const struct agents_config *c, struct agents **ret);
// Writes what is not written yet. After work_pool_stop() and when all calls are over, before
// store_close(). NULL is harmless.
void agents_stop(struct agents *a);
void agents_free(struct agents *a); // after store_close(); NULL is harmless

enum agent_tool { AGENT_BASH, AGENT_READ, AGENT_WRITE, AGENT_EDIT, AGENT_ARTIFACT, AGENT_TOOLS };
extern const char *const agent_tool_names[AGENT_TOOLS];

// One call, in the caller's struct, not moved until `answered`, which comes once, from the loop,
// unless agents_leave() came before.
struct agent_call {
    const char *team, *session; // until the call is over
    enum agent_tool tool;
    yyjson_val *arguments; // checked against the tool's schema; until the call is over
    yyjson_doc *doc; // what they lie in, of yyjson_doc_free(): agents_call() takes it over, so that
                     // they outlive the call where a thread is at them (NULL from then on), or
                     // leaves it to the caller
    const char *trace; // or NULL
    // error 0: `data` is the answer, JSON, taken by whom it is given; a tool that refuses (an
    // anchor, a missing file) is an answer with "success":false and an "error" for the model, as
    // is a job that failed. Else told by `refused`: a refusal of jobs.h of bash and artifact, which
    // make jobs (429s have `queue`), of sessions.h of the others; or -errno.
    void (*answered)(struct agent_call *c, struct buf *data);
    void (*refused)(struct agent_call *c, int error, const char *text);
    void *ctx;
    struct queue_refusal queue;
    void *inner;
};
void agents_call(struct agents *a, struct agent_call *c);
// Its caller is gone: a job is cancelled, what runs on a thread ends unseen.
void agents_leave(struct agents *a, struct agent_call *c);

#endif
