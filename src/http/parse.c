#include "http/parse.h"

#include <errno.h>
#include <string.h>

// What a body may need beside its content: sizes of chunks, extensions. Without a bound a peer
// could send for ever without sending anything.
enum { OVERHEAD_BASE = 64 << 10, OVERHEAD_FACTOR = 8, TRAILERS_MAX = 8 << 10 };

static const struct {
    uint8_t known;
    enum http_method method;
} methods[] = {
    {HTTP_GET, HTTP_M_GET},         {HTTP_HEAD, HTTP_M_HEAD},     {HTTP_POST, HTTP_M_POST},
    {HTTP_PUT, HTTP_M_PUT},         {HTTP_DELETE, HTTP_M_DELETE}, {HTTP_PATCH, HTTP_M_PATCH},
    {HTTP_OPTIONS, HTTP_M_OPTIONS},
};

static int refuse(struct http_parser *p, int status, const char *why)
{
    p->status = status;
    p->why = why;
    return HPE_USER;
}

static int on_method(llhttp_t *l)
{
    struct http_parser *p = l->data;
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        if (methods[i].known == llhttp_get_method(l)) {
            p->method = methods[i].method;
            return HPE_OK;
        }
    }
    if (llhttp_get_method(l) == HTTP_PRI) {
        return HPE_OK; // llhttp tells HTTP/2 by what follows
    }
    return refuse(p, 501, "method not known");
}

static int add_text(struct http_parser *p, const char *at, size_t len)
{
    return buf_add(&p->text, at, len) ? refuse(p, 500, "no memory") : HPE_OK;
}

static int on_url(llhttp_t *l, const char *at, size_t len)
{
    struct http_parser *p = l->data;
    if (p->text.len + len > p->target_bytes) {
        return refuse(p, 414, "the target is too long");
    }
    return add_text(p, at, len);
}

static int on_text_complete(llhttp_t *l)
{
    struct http_parser *p = l->data;
    return p->headed ? HPE_OK : add_text(p, "", 1);
}

static int on_trailer(struct http_parser *p, size_t len)
{
    p->trailer_bytes += len + 1;
    return p->trailer_bytes > TRAILERS_MAX ? refuse(p, 431, "trailers are too long") : HPE_OK;
}

// llhttp gives a name in pieces, and says when it is whole: the first piece opens the field.
static int on_field(llhttp_t *l, const char *at, size_t len)
{
    struct http_parser *p = l->data;
    if (p->headed) {
        return on_trailer(p, len);
    }
    if (!p->in_field) {
        if (p->n_fields == p->fields_max) {
            return refuse(p, 431, "too many fields");
        }
        p->in_field = true;
        p->fields[p->n_fields].name = (uint32_t)p->text.len;
    }
    size_t from = p->text.len;
    int e = add_text(p, at, len);
    for (size_t i = from; e == HPE_OK && i < p->text.len; i++) {
        char c = p->text.data[i];
        p->text.data[i] = (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    }
    return e;
}

static int on_field_complete(llhttp_t *l)
{
    struct http_parser *p = l->data;
    int e = on_text_complete(l);
    if (e == HPE_OK && !p->headed) {
        p->fields[p->n_fields].value = (uint32_t)p->text.len;
    }
    return e;
}

static int on_value(llhttp_t *l, const char *at, size_t len)
{
    struct http_parser *p = l->data;
    if (p->headed) {
        return on_trailer(p, len);
    }
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)at[i];
        if ((c < 0x20 && c != '\t') || c == 0x7f) {
            return refuse(p, 400, "a field holds a control character");
        }
    }
    return add_text(p, at, len);
}

static int on_value_complete(llhttp_t *l)
{
    struct http_parser *p = l->data;
    if (p->headed) {
        return HPE_OK;
    }
    size_t start = p->fields[p->n_fields].value;
    while (p->text.len > start &&
           (p->text.data[p->text.len - 1] == ' ' || p->text.data[p->text.len - 1] == '\t')) {
        p->text.len--;
    }
    p->n_fields++;
    p->in_field = false;
    return add_text(p, "", 1);
}

static int on_headers_complete(llhttp_t *l)
{
    struct http_parser *p = l->data;
    l->upgrade = 0; // an offer, which we do not take: the request is an ordinary one
    p->keep_alive = llhttp_should_keep_alive(l);
    const char *why = NULL;
    int status = http_head_check(p, &why);
    if (status) {
        refuse(p, status, why);
        return -1; // of this callback 1 and 2 mean other things, and 24 nothing
    }
    p->headed = true;
    p->event = HTTP_PARSED_HEAD;
    return HPE_PAUSED;
}

static int on_body(llhttp_t *l, const char *at, size_t len)
{
    struct http_parser *p = l->data;
    if (len == 0) {
        return HPE_OK; // llhttp calls again for the same nothing after a pause
    }
    p->event = HTTP_PARSED_BODY;
    p->body = at;
    p->body_len = len;
    p->body_read += len;
    return HPE_PAUSED;
}

static int on_message_complete(llhttp_t *l)
{
    struct http_parser *p = l->data;
    p->event = HTTP_PARSED_END;
    return HPE_PAUSED;
}

static const llhttp_settings_t settings = {
    .on_method_complete = on_method,
    .on_url = on_url,
    .on_url_complete = on_text_complete,
    .on_header_field = on_field,
    .on_header_field_complete = on_field_complete,
    .on_header_value = on_value,
    .on_header_value_complete = on_value_complete,
    .on_headers_complete = on_headers_complete,
    .on_body = on_body,
    .on_message_complete = on_message_complete,
};

void http_parser_init(struct http_parser *p, const struct http_config *bounds)
{
    size_t fields = bounds->fields < HTTP_FIELDS_MAX ? bounds->fields : HTTP_FIELDS_MAX;
    // Each byte of a head is kept at most once, each field adds at most two NUL.
    *p = (struct http_parser){
        .head_bytes = bounds->head_bytes,
        .target_bytes = bounds->target_bytes,
        .fields_max = fields,
        .text = BUF_INIT(bounds->head_bytes + 2 * fields + 16),
        .decoded = BUF_INIT(2 * bounds->target_bytes + 16),
        .host = UINT32_MAX,
    };
    llhttp_init(&p->llhttp, HTTP_REQUEST, &settings);
    p->llhttp.data = p;
}

void http_parser_done(struct http_parser *p)
{
    buf_free(&p->text);
    buf_free(&p->decoded);
}

static enum http_parsed bad(struct http_parser *p, int status, const char *why)
{
    if (!p->status) {
        refuse(p, status, why);
    }
    return p->event = HTTP_PARSED_BAD;
}

// One empty line before a request is what some old clients sent after a body (RFC 9112, 2.2);
// llhttp would skip any number. false: not past it yet, or refused.
static bool skip_empty_line(struct http_parser *p, const char *data, size_t len, size_t *at)
{
    for (; *at < len && !p->begun; (*at)++) {
        if (p->empty_line < 2 && data[*at] == "\r\n"[p->empty_line]) {
            p->empty_line++;
        } else if (p->empty_line == 1 || data[*at] == '\r' || data[*at] == '\n') {
            bad(p, 400, "empty lines before the request");
            return false;
        } else {
            p->begun = true;
            p->first = data[*at];
            return true;
        }
    }
    return p->begun;
}

static enum http_parsed fault(struct http_parser *p, llhttp_errno_t e)
{
    const char *why = llhttp_get_error_reason(&p->llhttp);
    why = why && *why ? why : "not HTTP";
    switch ((int)e) {
    case HPE_INVALID_METHOD:
        return p->first >= 'A' && p->first <= 'Z' ? bad(p, 501, "method not known")
                                                  : bad(p, 400, "not HTTP");
    case HPE_INVALID_VERSION: // also of a line that does not end behind its version
        return bad(p, strncmp(why, "Invalid HTTP version", 20) == 0 ? 505 : 400, why);
    case HPE_PAUSED_H2_UPGRADE:
        return bad(p, 505, "HTTP/1.1 is spoken here");
    default:
        return bad(p, 400, why);
    }
}

static bool over(struct http_parser *p)
{
    if (!p->headed && p->head_read >= p->head_bytes) {
        bad(p, p->n_fields || p->in_field ? 431 : 414, "the head is too long");
    } else if (p->headed &&
               p->raw_read - p->body_read > OVERHEAD_BASE + OVERHEAD_FACTOR * p->body_read) {
        bad(p, 400, "chunks of nothing");
    }
    return p->event == HTTP_PARSED_BAD;
}

enum http_parsed http_parse(struct http_parser *p, const char *data, size_t len, size_t *ret_used)
{
    *ret_used = 0;
    if (p->event == HTTP_PARSED_BAD || p->event == HTTP_PARSED_END) {
        return p->event;
    }
    size_t at = 0;
    p->event = HTTP_PARSED_MORE;
    if (!p->begun && !skip_empty_line(p, data, len, &at)) {
        *ret_used = at;
        return p->event;
    }
    // Never more than the head may have: the verdict is the same for all ways to cut the bytes.
    size_t room = p->head_bytes - p->head_read;
    size_t n = !p->headed && len - at > room ? room : len - at;
    bool in_head = !p->headed;
    if (llhttp_get_errno(&p->llhttp) == HPE_PAUSED) {
        llhttp_resume(&p->llhttp);
    }
    llhttp_errno_t e = llhttp_execute(&p->llhttp, data + at, n);
    if (e == HPE_PAUSED) {
        n = (size_t)(llhttp_get_error_pos(&p->llhttp) - (data + at));
    }
    *ret_used = at + n;
    *(in_head ? &p->head_read : &p->raw_read) += n;
    if (e != HPE_OK && e != HPE_PAUSED) {
        return fault(p, e);
    }
    if (e == HPE_OK) {
        over(p);
    }
    return p->event;
}

// ---- Of a whole head

const char *http_parser_path(const struct http_parser *p) { return buf_text(&p->decoded); }

const char *http_parser_target(const struct http_parser *p) { return buf_text(&p->text); }

const char *http_parser_host(const struct http_parser *p)
{
    return p->host == UINT32_MAX ? "" : p->text.data + p->host;
}

bool http_parser_field(const struct http_parser *p, size_t i, const char **ret_name,
                       const char **ret_value)
{
    if (i >= p->n_fields) {
        return false;
    }
    *ret_name = p->text.data + p->fields[i].name;
    *ret_value = p->text.data + p->fields[i].value;
    return true;
}

bool http_parser_pair(const struct http_parser *p, size_t i, const char **ret_name,
                      const char **ret_value)
{
    if (i >= p->n_pairs) {
        return false;
    }
    *ret_name = p->decoded.data + p->pairs[i].name;
    *ret_value = p->decoded.data + p->pairs[i].value;
    return true;
}

// The value of the one entry that is called so: 1; 0 without one; -EEXIST with several.
static int only_value(const struct http_parser *p,
                      bool (*entry)(const struct http_parser *p, size_t i, const char **ret_name,
                                    const char **ret_value),
                      const char *name, const char **ret_value)
{
    const char *own, *value, *found = NULL;
    for (size_t i = 0; entry(p, i, &own, &value); i++) {
        if (strcmp(own, name) == 0) {
            if (found) {
                return -EEXIST;
            }
            found = value;
        }
    }
    if (!found) {
        return 0;
    }
    *ret_value = found;
    return 1;
}

int http_parser_field_value(const struct http_parser *p, const char *name, const char **ret_value)
{
    return only_value(p, http_parser_field, name, ret_value);
}

int http_parser_pair_value(const struct http_parser *p, const char *name, const char **ret_value)
{
    return only_value(p, http_parser_pair, name, ret_value);
}
