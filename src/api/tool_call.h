// tool_call.h: calls about one code tool: it is read for the caller's team first, and again after a
// change, for the answer.
#ifndef ISLE_API_TOOL_CALL_H
#define ISLE_API_TOOL_CALL_H

#include "api/call.h"
#include "io/loop.h"
#include "io/work.h"
#include "store/store.h"
#include "tools/tool.h"

enum { TOOL_DATA_BYTES = 4 << 20 }; // of an answer with one definition

struct tool_call {
    struct api_call *call; // NULL: the request is over
    yyjson_val *body;      // of the request; NULL: none
    struct store_tool at;  // as it was read last
    struct tool tool;      // as it was parsed last, and as the store keeps it
    struct buf text;
    struct buf data; // of the answer
    // of an export, which is read in pieces: the next one's turn, and behind which name it begins
    struct loop_timer timer;
    char after[STORE_NAME_MAX + 1];
    size_t read;
    bool enough;
    // inner
    yyjson_doc *doc; // of the body
    struct work work;
    bool over_base;
    struct buf faults;
    int error;
    void (*parsed)(struct tool_call *t);
    char *texts; // of `at`
    bool found, owner_only;
    const char *missing; // what a 404 says
    void (*then)(struct tool_call *t);
    void (*put)(struct buf *out, const struct store_tool *s);
    // of a change
    enum store_write_kind kind;
    const char *event;
    char id[STORE_ID_MAX + 1], name[STORE_NAME_MAX + 1], with[STORE_NAME_MAX + 1];
    void (*changed)(struct tool_call *t);
    bool (*stale)(struct tool_call *t);
    int status;
    unsigned tries;
};

// It is c->ctx from here on, and freed with the call. NULL: the call has failed.
struct tool_call *tool_call_new(struct api_call *c);

// Reads one: the tool of this id that the caller's team sees, into t->at, then `then`. Not there:
// 404; owner_only, and it is another team's: 403.
void tool_call_read(struct tool_call *t, const char *id, bool owner_only,
                    void (*then)(struct tool_call *t));
// The same of one version of the tool that was read.
void tool_call_read_version(struct tool_call *t, int64_t version,
                            void (*then)(struct tool_call *t));
// Answers with a list about the tool that was read: shares or versions, each as `put` has it.
void tool_call_list(struct tool_call *t, enum store_read_kind kind,
                    void (*put)(struct buf *out, const struct store_tool *s));

// Reads the body as a definition, or (over) as a change of that of the tool that was read, into
// t->tool and t->text; a long one on a thread. Faulty: the call fails. Then `then`.
void tool_call_parse(struct tool_call *t, bool over, void (*then)(struct tool_call *t));

// Hands in a change; once it is durable, `event` is in the audit log, then `changed`. Else the call
// fails: what CONFLICT, STALE and the like mean is the same everywhere. `stale` (may be NULL) comes
// first, and says true if it has begun anew.
void tool_call_change(struct tool_call *t, const struct store_write *w, const char *event,
                      void (*changed)(struct tool_call *t));
// Answers with the tool of the change as it is now.
void tool_call_answer(struct tool_call *t);

// The store says nothing, or not this.
void tool_call_fail_store(struct api_call *c, int error);
// Before definitions of so many bytes are stored: false where the disk has no room for them but its
// last, which is for how jobs end. Then the call has failed.
bool tool_call_has_room(struct api_call *c, size_t bytes);
void tool_call_audit(const struct api_call *c, const char *event, const char *id, const char *name,
                     const char *with);
// The definition's fields, behind others of an object.
void tool_call_put_definition(struct buf *out, const struct store_tool *s);
// What is kept beside it.
void tool_call_put_kept(struct buf *out, const struct store_tool *s);
// A whole tool: both.
void tool_call_put(struct buf *out, const struct store_tool *s);
extern const char *const tool_permission_names[]; // enum store_permission; ended by NULL

// tools_import.c: what an import does with a name that is taken, and did with each tool; ended by
// NULL.
extern const char *const tool_conflict_names[], *const tool_outcome_names[];
void tools_export(struct api_call *c);
void tools_import(struct api_call *c);

#endif
