// parse.h: the bytes of a request, in whatever pieces they come, become one head, a body and an
// end, or a refusal. Syntax is llhttp's in its strict form; what it leaves open and two readers
// could take for two things is refused here. Pure: no socket, no clock.
#ifndef ISLE_HTTP_PARSE_H
#define ISLE_HTTP_PARSE_H

#include "base/buf.h"
#include "http/http.h"

#include <llhttp.h>

enum {
    HTTP_FIELDS_MAX = 128, // of the table; the bound in use is given
    HTTP_PAIRS_MAX = 100,  // of a query: each name that is asked for is held against all of them
};

enum http_parsed {
    HTTP_PARSED_MORE, // all was read: give more
    HTTP_PARSED_HEAD, // the head is whole and sound
    HTTP_PARSED_BODY, // body[0..body_len): a slice of the given data
    HTTP_PARSED_END,  // the request is whole; what follows belongs to the next
    HTTP_PARSED_BAD,  // for good: status and why
};

struct http_parser {
    llhttp_t llhttp;
    size_t head_bytes, target_bytes, fields_max; // bounds
    size_t head_read;                            // bytes of the head so far
    uint64_t body_read, raw_read;                // after the head: content, and all bytes
    size_t trailer_bytes;
    struct buf text;    // target (at 0), then names and values, each with its NUL
    struct buf decoded; // path, then names and values of the query, each with its NUL
    struct {
        uint32_t name, value; // in text
    } fields[HTTP_FIELDS_MAX];
    struct {
        uint32_t name, value; // in decoded
    } pairs[HTTP_PAIRS_MAX];
    size_t n_fields, n_pairs;
    uint32_t host; // in text; UINT32_MAX: none
    enum http_method method;
    int64_t length; // of the body; -1: chunked
    bool in_field;  // a field has begun
    bool begun;     // the first byte of the request line was seen
    bool headed;    // the head is whole
    bool expects;   // Expect: 100-continue
    bool keep_alive;
    unsigned empty_line; // bytes of an empty line before the request
    char first;
    enum http_parsed event;
    const char *body;
    size_t body_len;
    int status; // of the refusal
    const char *why;
};

// Ready for the next request; releases nothing: http_parser_done() first.
void http_parser_init(struct http_parser *p, const struct http_config *bounds);
void http_parser_done(struct http_parser *p);
// Reads on; *ret_used bytes were read. To be called until it says MORE, END or BAD, also with what
// is left when that is nothing. data may not be NULL.
enum http_parsed http_parse(struct http_parser *p, const char *data, size_t len, size_t *ret_used);

// Of a whole head; as in http.h.
const char *http_parser_path(const struct http_parser *p);
const char *http_parser_target(const struct http_parser *p);
const char *http_parser_host(const struct http_parser *p);
bool http_parser_field(const struct http_parser *p, size_t i, const char **ret_name,
                       const char **ret_value);
int http_parser_field_value(const struct http_parser *p, const char *name, const char **ret_value);
bool http_parser_pair(const struct http_parser *p, size_t i, const char **ret_name,
                      const char **ret_value);
int http_parser_pair_value(const struct http_parser *p, const char *name, const char **ret_value);

// Looks at a head whose syntax is right: framing, Host, target, Expect. 0, or the status of a
// refusal and *ret_why. (head.c)
int http_head_check(struct http_parser *p, const char **ret_why);

#endif
