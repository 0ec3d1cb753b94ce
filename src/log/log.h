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

// fd and audit_fd (-1: none) stay the caller's and are written with one write(2) per line; a reader
// that does not read loses lines, never blocks the service (log_lost() counts them). 0 or -errno.
int log_new(int fd, int audit_fd, enum log_format format, enum log_level least, struct log **ret);
void log_free(struct log *l);
void log_change(struct log *l, enum log_format format, enum log_level least); // SIGHUP
uint64_t log_lost(const struct log *l);

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
// level and event come first. `l` NULL: nothing happens.
void log_event(struct log *l, enum log_level level, const char *event, const struct log_field *f,
               size_t n);
// The same to the audit log (keys, sessions: who did what), and to the log at INFO.
void log_audit(struct log *l, const char *event, const struct log_field *f, size_t n);

#define log_say(l, level, event, ...)                                                              \
    log_event((l), (level), (event), (const struct log_field[]){__VA_ARGS__},                      \
              sizeof((const struct log_field[]){__VA_ARGS__}) / sizeof(struct log_field))
#define log_audited(l, event, ...)                                                                 \
    log_audit((l), (event), (const struct log_field[]){__VA_ARGS__},                               \
              sizeof((const struct log_field[]){__VA_ARGS__}) / sizeof(struct log_field))

#endif
