#include "codec/utf8.h"
#include "http/parse.h"
#include "http/value.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

struct finding {
    int status;
    const char *why;
};
#define FINE ((struct finding){0})
#define BAD(status, why) ((struct finding){(status), (why)})

static bool only_digits(const char *text)
{
    return *text && strspn(text, "0123456789") == strlen(text);
}

// RFC 9112, 6: one way only to say how long the body is.
static struct finding check_framing(struct http_parser *p)
{
    const char *length = NULL, *coding = NULL;
    int lengths = http_parser_field_value(p, "content-length", &length);
    int codings = http_parser_field_value(p, "transfer-encoding", &coding);
    if (lengths < 0 || (lengths && (!only_digits(length) || strlen(length) > 18))) {
        return BAD(400, "Content-Length is not one number");
    }
    if (codings && lengths) {
        return BAD(400, "both Content-Length and Transfer-Encoding");
    }
    if (codings && llhttp_get_http_minor(&p->llhttp) == 0) {
        return BAD(400, "Transfer-Encoding in HTTP/1.0");
    }
    if (codings < 0 || (codings && strchr(coding, ','))) {
        return BAD(400, "several transfer codings");
    }
    if (codings && strcasecmp(coding, "chunked") != 0) {
        return BAD(501, "transfer coding not known");
    }
    p->length = codings ? -1 : lengths ? (int64_t)p->llhttp.content_length : 0;
    return FINE;
}

static struct finding check_host(struct http_parser *p)
{
    const char *host = NULL;
    int hosts = http_parser_field_value(p, "host", &host);
    if (hosts < 0) {
        return BAD(400, "several Host fields");
    }
    if (hosts == 0) {
        return llhttp_get_http_minor(&p->llhttp) == 0 ? FINE : BAD(400, "no Host field");
    }
    if (!http_is_host(host)) {
        return BAD(400, "Host is no host");
    }
    p->host = (uint32_t)(host - p->text.data);
    return FINE;
}

static struct finding check_expect(struct http_parser *p)
{
    const char *expect = NULL;
    int expects = http_parser_field_value(p, "expect", &expect);
    if (expects < 0 || (expects && strcasecmp(expect, "100-continue") != 0)) {
        return BAD(417, "what is expected is not known");
    }
    p->expects = expects && llhttp_get_http_minor(&p->llhttp) >= 1;
    return FINE;
}

// Without a scheme and an authority, which must be that of Host; NULL: refused.
static const char *origin_form(const struct http_parser *p, const char *target)
{
    size_t scheme = strncasecmp(target, "http://", 7) == 0    ? 7
                    : strncasecmp(target, "https://", 8) == 0 ? 8
                                                              : 0;
    if (!scheme) {
        return target;
    }
    const char *authority = target + scheme;
    size_t n = strcspn(authority, "/?");
    const char *host = http_parser_host(p);
    if (n == 0 || strlen(host) != n || strncasecmp(authority, host, n) != 0) {
        return NULL;
    }
    return authority[n] ? authority + n : "/";
}

static bool has_controls(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c < 0x20 || c == 0x7f) {
            return true;
        }
    }
    return false;
}

// Decodes and appends with a NUL. Control characters are let pass in values of the query alone,
// and NUL nowhere.
static bool decode(struct buf *out, const char *data, size_t len, bool query)
{
    size_t from = out->len;
    if (http_percent_decode(out, data, len, query)) {
        return false;
    }
    const char *text = buf_text(out) + from;
    size_t n = out->len - from;
    if (memchr(text, '\0', n) || !utf8_valid(text, n) || (!query && has_controls(text, n))) {
        return false;
    }
    return buf_putc(out, '\0') == 0;
}

// Segment by segment, as '/' and dots that come out of an escape must not become structure.
static struct finding decode_path(struct http_parser *p, const char *path, size_t len)
{
    if (path[0] != '/') {
        return BAD(400, "the target is no path");
    }
    for (size_t at = 0; at < len;) {
        size_t n = 1;
        while (at + n < len && path[at + n] != '/') {
            n++;
        }
        size_t from = p->decoded.len;
        if (!decode(&p->decoded, path + at, n, false)) {
            return BAD(400, "the path is not UTF-8 with whole escapes");
        }
        p->decoded.len--; // its NUL
        const char *segment = p->decoded.data + from + 1;
        if (strchr(segment, '/') || strcmp(segment, ".") == 0 || strcmp(segment, "..") == 0) {
            return BAD(400, "a segment of the path is a dot or holds a slash");
        }
        at += n;
    }
    return buf_putc(&p->decoded, '\0') ? BAD(500, "no memory") : FINE;
}

static struct finding decode_query(struct http_parser *p, const char *query)
{
    while (*query) {
        size_t n = strcspn(query, "&");
        size_t name = strcspn(query, "=&");
        if (n > 0) {
            if (p->n_pairs == HTTP_PAIRS_MAX) {
                return BAD(414, "the query has too many parameters");
            }
            const char *value = name < n ? query + name + 1 : query + n;
            p->pairs[p->n_pairs].name = (uint32_t)p->decoded.len;
            bool sound = decode(&p->decoded, query, name, true);
            p->pairs[p->n_pairs].value = (uint32_t)p->decoded.len;
            if (!sound || !decode(&p->decoded, value, (size_t)(query + n - value), true)) {
                return BAD(400, "the query is not UTF-8 with whole escapes");
            }
            p->n_pairs++;
        }
        query += n + (query[n] == '&');
    }
    return FINE;
}

static struct finding check_target(struct http_parser *p)
{
    const char *target = http_parser_target(p);
    for (const char *c = target; *c; c++) {
        if (*c <= ' ' || *c >= 0x7f || strchr("#\\\"<>", *c)) {
            return BAD(400, "a character in the target that must be escaped");
        }
    }
    if (strcmp(target, "*") == 0) {
        return p->method == HTTP_M_OPTIONS && buf_add(&p->decoded, "*\0", 2) == 0
                   ? FINE
                   : BAD(400, "the target is no path");
    }
    const char *path = origin_form(p, target);
    if (!path) {
        return BAD(400, "the target names another host than Host");
    }
    if (*path == '?') { // http://host?query
        struct finding f = decode_path(p, "/", 1);
        return f.status ? f : decode_query(p, path + 1);
    }
    size_t len = strcspn(path, "?");
    struct finding f = decode_path(p, path, len);
    return f.status || !path[len] ? f : decode_query(p, path + len + 1);
}

int http_head_check(struct http_parser *p, const char **ret_why)
{
    static struct finding (*const checks[])(struct http_parser *) = {
        check_framing,
        check_host,
        check_target,
        check_expect,
    };
    if (llhttp_get_http_major(&p->llhttp) != 1) {
        *ret_why = "HTTP/1.1 is spoken here";
        return 505;
    }
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
        struct finding f = checks[i](p);
        if (f.status) {
            *ret_why = f.why;
            return f.status;
        }
    }
    return 0;
}
