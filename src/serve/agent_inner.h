// agent_inner.h: what the parts of agent.h share. Inside serve/agent*.c only.
//
//   agent.c        in: calls, one of a session after another   agent_kept.c  memories on disk
//   agent_files.c  read, write; what all file tools share      agent_edit.c  edit
//   agent_bash.c, agent_artifact.c (agent_calls.h)             make jobs
#ifndef ISLE_SERVE_AGENT_INNER_H
#define ISLE_SERVE_AGENT_INNER_H

#include "agent/memory.h"
#include "serve/agent.h"

struct agent_op;

// What one session remembers, and who works with it.
struct agent_session {
    char id[37];
    struct agent_memory memory;    // the thread's while an op is at work
    size_t bytes;                  // of it, as last counted
    bool loaded;                   // it has been looked for on disk
    bool dirty;                    // there is more in it than on disk
    uint64_t used_ns, dirty_ns;    // last used; dirty since
    struct agent_op *first, *last; // first: at work
    struct agent_session *next;    // in its bucket
};

// One turn with a session: a file tool's call, or the writing of its memory. On a thread it touches
// its own, the session's memory, and the files of its lease.
struct agent_op {
    struct agents *of;
    const struct sessions *sessions; // for what does not change
    struct agent_session *session;
    struct agent_call *call; // NULL: its caller has left, or there never was one
    char *team;              // NULL: the memory's writing
    yyjson_doc *doc;
    yyjson_val *arguments;
    void (*run)(struct agent_op *op);
    bool forget; // the memory's writing: it is to make room
    struct session_lease lease;
    uint64_t room_bytes; // that the session may still take
    struct work work;
    struct agent_op *next;
    // the thread's
    struct buf answer;
    int error;          // -errno: no answer
    bool measure;       // files and perhaps folders were made
    bool remembered;    // the memory was changed
    int memory_error;   // the memory could not be read, or written: -errno
    int64_t more_bytes; // the session takes so many more
};

enum { AGENT_ANSWER_MAX = 64 << 20 };

// agent_files.c, agent_edit.c: the tools, each a `run`.
void agent_read_run(struct agent_op *op);
void agent_write_run(struct agent_op *op);
void agent_edit_run(struct agent_op *op);

// agent_files.c. The argument `path` as files.h takes it, malloc'ed. NULL: it is refused.
char *agent_op_path(struct agent_op *op);
// The answer is a refusal: "/workspace/PATH: " and the text.
void agent_op_refuse(struct agent_op *op, const char *path, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
// The same for what files.h says: a refusal, with what to do, or an -errno.
void agent_op_refuse_file(struct agent_op *op, const char *path, int refusal);
// The answer's first fields; the caller goes on, and ends the object.
void agent_op_begin_answer(struct agent_op *op, const char *path, const char *tag);

// A whole file of text. agent_file_read() answers 0, or has refused.
struct agent_file {
    struct files_file file;
    char *data;
    size_t len;
};
int agent_file_read(struct agent_op *op, const char *path, struct agent_file *ret);
void agent_file_done(struct agent_file *f); // also a zeroed one, and after a refusal

// agent_kept.c: on a thread, or where none is any more. The memory beside the session's files; none
// there is an empty one. 0 or -errno (-EBADMSG: it is not what was written; then it is empty).
int agent_kept_load(const struct session_lease *l, struct agent_memory *m);
int agent_kept_save(const struct session_lease *l, const struct agent_memory *m);
size_t agent_kept_bytes(const struct agent_memory *m); // that it takes in memory

#endif
