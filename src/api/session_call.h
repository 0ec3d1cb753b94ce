// session_call.h: calls that work in a session's files. What would block the loop runs on a thread;
// the request may end meanwhile, so that what such a call needs lives in a struct of its own.
#ifndef ISLE_API_SESSION_CALL_H
#define ISLE_API_SESSION_CALL_H

#include "api/call.h"
#include "serve/sessions.h"

#include <stdatomic.h>

// The message and status of a refusal of sessions.h, or of -errno.
void api_fail_session(struct api_call *c, int refusal);
// As much is kept of the caller's team as it may have; `what` is what is refused for it.
void api_fail_share(struct api_call *c, const char *what);

// First in the struct of its kind.
struct file_call {
    struct api_call *call; // NULL: the request is over
    const struct api_config *with;
    struct session_lease lease;
    char *path;   // below the workspace, as files.h takes it
    bool changed; // what the session takes is to be measured
    struct work work;
    uint64_t owner; // of that and of what is closed
    void (*run)(struct work *w);
    atomic_bool gone;                  // the request is over, as a thread may ask
    void (*then)(struct file_call *f); // after the work, on the loop; the request is not over
    void (*drop)(struct file_call *f); // releases what its kind holds; may be NULL
};

// Allocates `size` bytes for a call's struct (zeroed) and takes the session and the path, which is
// the route's second segment, or (query) the parameter "path". NULL: the call has failed.
struct file_call *file_call_new(struct api_call *c, size_t size, bool query,
                                void (*drop)(struct file_call *f));
// Runs on a thread, then `then`. False: the call has failed.
bool file_call_work(struct file_call *f, void (*run)(struct work *w),
                    void (*then)(struct file_call *f));
// The message and status of a refusal of files.h, or of -errno.
void file_call_fail(struct file_call *f, int refusal);
// A path of a body: as file_call_new(). NULL: the call has failed. malloc'ed.
char *file_call_path(struct api_call *c, const char *field, const char *path, size_t len,
                     bool escaped);

// The strong entity tag of one content: its SHA-256 in quotes.
enum { FILE_ETAG = 67 };
void file_etag(const char *sha256, char ret[FILE_ETAG]);

// Fields of every download: saved by a browser, not shown or run.
void api_download_fields(struct api_call *c, const char *name);

#endif
