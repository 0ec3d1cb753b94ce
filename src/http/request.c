#include "http/internal.h"
#include "http/value.h"

#include <errno.h>
#include <string.h>

enum http_method http_method(const struct http_request *r) { return r->parser.method; }

const char *http_method_text(const struct http_request *r)
{
    return llhttp_method_name((llhttp_method_t)r->parser.llhttp.method);
}

const char *http_path(const struct http_request *r) { return http_parser_path(&r->parser); }

bool http_query(const struct http_request *r, size_t i, const char **ret_name,
                const char **ret_value)
{
    return http_parser_pair(&r->parser, i, ret_name, ret_value);
}

int http_query_value(const struct http_request *r, const char *name, const char **ret_value)
{
    return http_parser_pair_value(&r->parser, name, ret_value);
}

bool http_field(const struct http_request *r, size_t i, const char **ret_name,
                const char **ret_value)
{
    return http_parser_field(&r->parser, i, ret_name, ret_value);
}

int http_field_value(const struct http_request *r, const char *name, const char **ret_value)
{
    return http_parser_field_value(&r->parser, name, ret_value);
}

const char *http_host(const struct http_request *r) { return http_parser_host(&r->parser); }

const struct http_peer *http_peer(const struct http_request *r) { return &r->conn->peer; }

int64_t http_body_length(const struct http_request *r) { return r->parser.length; }

void http_set_ctx(struct http_request *r, void *ctx) { r->ctx = ctx; }

void *http_ctx(const struct http_request *r) { return r->ctx; }

void http_on_end(struct http_request *r, void (*end)(struct http_request *r, enum http_end how))
{
    r->on_end = end;
}

void http_on_gone(struct http_request *r, void (*gone)(struct http_request *r))
{
    r->on_gone = gone;
}

// A list may be cut over several fields. *ret_there: the field is there at all.
static bool listed(const struct http_request *r, const char *field, const char *etag, bool weak,
                   bool *ret_there)
{
    const char *name, *value;
    bool found = false;
    *ret_there = false;
    for (size_t i = 0; http_field(r, i, &name, &value); i++) {
        if (strcmp(name, field) == 0) {
            *ret_there = true;
            found = found || (etag && http_etag_listed(value, etag, weak));
        }
    }
    return found;
}

int http_condition(const struct http_request *r, const char *etag)
{
    bool there;
    bool found = listed(r, "if-match", etag, false, &there);
    if (there && !found) {
        return 412;
    }
    found = listed(r, "if-none-match", etag, true, &there);
    if (!there || !found) {
        return 0;
    }
    return http_method(r) == HTTP_M_GET || http_method(r) == HTTP_M_HEAD ? 304 : 412;
}
