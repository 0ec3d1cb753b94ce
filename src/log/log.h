// log.h: one structured line per event, to a descriptor, and an audit log beside it. JSON or text
// (logfmt). What a line holds is facts of isle's own: never a job's code, params, environment or
// output; texts of strangers are escaped, so that a line is a line.
#ifndef ISLE_LOG_LOG_H
#define ISLE_LOG_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARNING, LOG_ERROR, LOG_N_LEVELS };
extern const char *const log_level_names[LOG_N_LEVELS];
enum log_format { LOG_TEXT, LOG_JSON, LOG_N_FORMATS };
extern const char *const log_format_names[LOG_N_FORMATS];

struct log;

enum {
    LOG_MAX_LINE = 4096, // bytes with the newline: what a pipe takes whole or not at all (PIPE_BUF)
    LOG_MAX_TEXT = 512,  // bytes of one text before its escapes; what is longer ends in "..."
};

// fd and audit_fd (-1: none) stay the caller's and are written with one write(2) per line; a reader
// that does not read loses lines, never blocks the service (log_lost() counts them): neither needs
// O_NONBLOCK, which would be every other holder's as well. SIGPIPE is the caller's to ignore. For
// one thread. 0 or -errno.
int log_new(int fd, int audit_fd, enum log_format format, enum log_level least, struct log **ret);
void log_free(struct log *l);
void log_change(struct log *l, enum log_format format, enum log_level least); // SIGHUP
// Other files from here on (rotated ones, opened again); the former ones are the caller's to close.
void log_change_files(struct log *l, int fd, int audit_fd);
uint64_t log_lost(const struct log *l);

// The words of enum log_level and enum log_format. 0 or -EINVAL.
int log_level_find(const char *name, enum log_level *ret);
int log_format_find(const char *name, enum log_format *ret);

// Opens a file for lines: appends, made with mode 0640 where it is missing; never follows a link,
// waits for no reader of a pipe (-ENXIO: there is none). `folder` and `name` as of openat(2). 0 or
// -errno.
int log_open_file(int folder, const char *name, int *ret);

// A field: a text, a number, or a truth. `key` is a literal.
enum log_kind { LOG_K_TEXT, LOG_K_INT, LOG_K_BOOL };
struct log_field {
    const char *key;
    enum log_kind kind;
    const char *text; // NULL: the field is left out
    int64_t number;
};
#define LOG_T(k, t) ((struct log_field){(k), LOG_K_TEXT, (t), 0})
#define LOG_I(k, n) ((struct log_field){(k), LOG_K_INT, NULL, (n)})
#define LOG_B(k, b) ((struct log_field){(k), LOG_K_BOOL, NULL, (b)})

// "event" is a short literal in the past tense: "job ended", "request refused". Time (UTC, ms),
// level and event come first. Fields that the line has no room for are left out, and it says
// cut=true. `l` NULL: nothing happens.
void log_event(struct log *l, enum log_level level, const char *event, const struct log_field *f,
               size_t n);
// The same with audit=true, to the audit log (keys, sessions: who did what) and to the log at INFO;
// without an audit log, to the log whatever its least level is.
void log_audit(struct log *l, const char *event, const struct log_field *f, size_t n);

#define log_say(l, level, event, ...)                                                              \
    log_event((l), (level), (event), (const struct log_field[]){__VA_ARGS__},                      \
              sizeof((const struct log_field[]){__VA_ARGS__}) / sizeof(struct log_field))
#define log_audited(l, event, ...)                                                                 \
    log_audit((l), (event), (const struct log_field[]){__VA_ARGS__},                               \
              sizeof((const struct log_field[]){__VA_ARGS__}) / sizeof(struct log_field))

#endif
