#include "base/fd.h"
#include "codec/utf8.h"
#include "http/internal.h"
#include "http/value.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>

enum { CHUNK_FRAME = 32 }; // bytes around a chunk, at most

static const struct {
    int status;
    const char *text;
} reasons[] = {
    {200, "OK"},
    {201, "Created"},
    {202, "Accepted"},
    {204, "No Content"},
    {206, "Partial Content"},
    {301, "Moved Permanently"},
    {302, "Found"},
    {303, "See Other"},
    {304, "Not Modified"},
    {307, "Temporary Redirect"},
    {308, "Permanent Redirect"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {406, "Not Acceptable"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {410, "Gone"},
    {411, "Length Required"},
    {412, "Precondition Failed"},
    {413, "Content Too Large"},
    {414, "URI Too Long"},
    {415, "Unsupported Media Type"},
    {416, "Range Not Satisfiable"},
    {417, "Expectation Failed"},
    {421, "Misdirected Request"},
    {422, "Unprocessable Content"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {502, "Bad Gateway"},
    {503, "Service Unavailable"},
    {504, "Gateway Timeout"},
    {505, "HTTP Version Not Supported"},
    {507, "Insufficient Storage"},
};

static const char *reason(int status)
{
    for (size_t i = 0; i < ARRAY_LEN(reasons); i++) {
        if (reasons[i].status == status) {
            return reasons[i].text;
        }
    }
    return "Status"; // the text means nothing to a program
}

// RFC 9110, 5.6.7; not by strftime(3), which speaks the locale's language.
static void add_date(struct buf *out)
{
    static const char days[] = "SunMonTueWedThuFriSat";
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    time_t now = (time_t)(clock_wall_ms() / 1000);
    struct tm t;
    if (gmtime_r(&now, &t)) {
        buf_printf(out, "Date: %.3s, %02d %.3s %04d %02d:%02d:%02d GMT\r\n", days + 3 * t.tm_wday,
                   t.tm_mday, months + 3 * t.tm_mon, t.tm_year + 1900, t.tm_hour, t.tm_min,
                   t.tm_sec);
    }
}

int http_set(struct http_request *r, const char *name, const char *value)
{
    static const char *const own[] = {"connection", "content-length", "transfer-encoding", "date"};
    if (r->begun) {
        return -EALREADY;
    }
    int e = http_is_token(name, strlen(name)) && http_is_value(value, strlen(value)) ? 0 : -EINVAL;
    for (size_t i = 0; i < ARRAY_LEN(own); i++) {
        e = strcasecmp(name, own[i]) == 0 ? -EPERM : e;
    }
    e = e ? e : buf_printf(&r->fields, "%s: %s\r\n", name, value);
    if (e) {
        r->fields_error = e;
    }
    return e;
}

int reply_head(struct http_request *r, int status, const char *type, int64_t length)
{
    struct http_conn *c = r->conn;
    struct buf *out = &c->out.data;
    int minor = llhttp_get_http_minor(&r->parser.llhttp);
    if (type && !http_is_value(type, strlen(type))) {
        r->fields_error = -EINVAL;
    }
    int e = r->fields_error;
    if (e) {
        buf_clear(&r->fields);
        status = 500;
        type = NULL;
        length = 0;
    }
    bool without = status < 200 || status == 204 || status == 304;
    r->begun = true;
    r->no_body = e || without || r->parser.method == HTTP_M_HEAD;
    r->chunked = length < 0 && minor > 0 && !without;
    r->left = length;
    r->close_after = !r->parser.keep_alive || !r->whole || c->server->stopping || r->refusal ||
                     (length < 0 && minor == 0);
    buf_printf(out, "HTTP/1.1 %d %s\r\n", status, reason(status));
    add_date(out);
    if (type) {
        buf_printf(out, "Content-Type: %s\r\n", type);
    }
    buf_add(out, buf_text(&r->fields), r->fields.len);
    if (r->chunked) {
        buf_puts(out, "Transfer-Encoding: chunked\r\n");
    } else if (length >= 0 && !without) {
        buf_printf(out, "Content-Length: %" PRId64 "\r\n", length);
    }
    if (r->close_after) {
        buf_puts(out, "Connection: close\r\n");
    } else if (minor == 0) {
        buf_puts(out, "Connection: keep-alive\r\n");
    }
    if (buf_puts(out, "\r\n")) {
        conn_cut(c, HTTP_END_ABORTED);
    }
    return e;
}

static void complete(struct http_request *r)
{
    r->ended = true;
    server_kick(r->conn);
}

void http_reply_buf(struct http_request *r, int status, const char *type, struct buf *body)
{
    AUTO_BUF struct buf own = *body;
    *body = BUF_INIT(own.max);
    if (r->begun) {
        return;
    }
    bool waits = own.len > SMALL_BODY && r->parser.method != HTTP_M_HEAD;
    if (waits && !share_take(r, SHARE_REPLIES, own.len)) {
        refuse_later(r, 503, "too many large replies are being read");
        server_kick(r->conn);
        return;
    }
    reply_head(r, status, type, (int64_t)own.len);
    if (!r->no_body && own.len > 0 && own.len <= SMALL_BODY) {
        if (buf_add(&r->conn->out.data, own.data, own.len)) {
            conn_cut(r->conn, HTTP_END_ABORTED);
        }
    } else if (!r->no_body) {
        r->payload.data = own;
        own = BUF_INIT(0);
    }
    complete(r);
}

void http_reply(struct http_request *r, int status, const char *type, const void *body, size_t len)
{
    AUTO_BUF struct buf own = BUF_INIT(len);
    if (buf_add(&own, body, len)) {
        http_abort(r);
        return;
    }
    http_reply_buf(r, status, type, &own);
}

void reply_refuse(struct http_request *r)
{
    struct http_conn *c = r->conn;
    const struct http_config *config = &c->server->config;
    AUTO_BUF struct buf body = BUF_INIT(SMALL_BODY);
    const char *type = NULL;
    if (config->refused) {
        type = config->refused(config->ctx, &c->peer, r->refusal, r->why, &body);
    }
    buf_clear(&r->fields);
    r->fields_error = 0;
    if (r->refusal == 503) {
        http_set(r, "Retry-After", "1");
    }
    reply_head(r, r->refusal, type, type ? (int64_t)body.len : 0);
    if (type && !r->no_body) {
        buf_add(&c->out.data, buf_text(&body), body.len);
    }
}

static void file_close(struct http_request *r)
{
    work_close(r->conn->server->config.pool, r->file, r->owner);
    r->file = -1;
}

void reply_drop(struct http_request *r)
{
    buf_free(&r->fields);
    outbox_free(&r->payload);
    share_give(r, SHARE_REPLIES);
    share_give(r, SHARE_REQUESTS);
    file_close(r);
}

// ---- Files

// The range that is asked for and may be given (RFC 9110, 14.2): 1, 0 or -ERANGE.
static int wanted_range(const struct http_request *r, uint64_t size, const char *etag,
                        uint64_t *ret_first, uint64_t *ret_len)
{
    const char *range, *only_if;
    if (!etag || http_method(r) != HTTP_M_GET || http_field_value(r, "range", &range) != 1) {
        return 0;
    }
    int conditions = http_field_value(r, "if-range", &only_if);
    if (conditions < 0 || (conditions && (strncmp(etag, "W/", 2) == 0 || strcmp(only_if, etag)))) {
        return 0;
    }
    return http_range(range, size, ret_first, ret_len);
}

void http_reply_file(struct http_request *r, int fd, uint64_t size, const char *type,
                     const char *etag)
{
    AUTO_CLOSE int own = fd;
    char text[80];
    uint64_t first = 0, len = size;
    int status = etag ? http_condition(r, etag) : 0;
    if (r->begun) {
        return;
    }
    if (etag) {
        http_set(r, "ETag", etag);
        http_set(r, "Accept-Ranges", "bytes");
    }
    int range = status ? 0 : wanted_range(r, size, etag, &first, &len);
    if (range < 0) {
        snprintf(text, sizeof text, "bytes */%" PRIu64, size);
        http_set(r, "Content-Range", text);
        status = 416;
    } else if (range > 0) {
        snprintf(text, sizeof text, "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64, first,
                 first + len - 1, size);
        http_set(r, "Content-Range", text);
    }
    if (status) {
        http_reply(r, status, NULL, "", 0);
        return;
    }
    reply_head(r, range > 0 ? 206 : 200, type, (int64_t)len);
    if (!r->no_body) {
        r->file = fd_take(&own);
        r->file_at = first;
        r->file_left = len;
    }
    complete(r);
}

// What is sent next is fetched while others have their turn: a file that nobody has read lately
// would keep the loop waiting for the disk, piece by piece.
static void read_ahead(struct http_request *r)
{
    if (r->file_at + FILE_AHEAD / 2 >= r->file_ahead && r->file_left > FILE_PIECE) {
        posix_fadvise(r->file, (off_t)r->file_at, FILE_AHEAD, POSIX_FADV_WILLNEED);
        r->file_ahead = r->file_at + FILE_AHEAD;
    }
}

bool reply_fill(struct http_request *r)
{
    struct http_conn *c = r->conn;
    if (r->file < 0 || c->fills == 0 || outbox_left(&c->out) > FILE_PIECE / 2) {
        return false;
    }
    read_ahead(r);
    c->fills--;
    size_t want = r->file_left < FILE_PIECE ? (size_t)r->file_left : FILE_PIECE;
    struct buf *out = &c->out.data;
    ssize_t n = 0;
    if (want > 0) {
        n = buf_reserve(out, want) ? -1
                                   : pread(r->file, out->data + out->len, want, (off_t)r->file_at);
        if (n < 0 && errno == EINTR) {
            return true;
        }
        if (n <= 0) {
            conn_cut(c, HTTP_END_ABORTED);
            return true;
        }
    }
    out->len += (size_t)n;
    r->file_at += (uint64_t)n;
    r->file_left -= (uint64_t)n;
    if (r->file_left == 0) {
        file_close(r);
    }
    return true;
}

// ---- Streams

int http_stream_begin(struct http_request *r, int status, const char *type, int64_t length)
{
    if (r->begun) {
        return 1;
    }
    reply_head(r, status, type, length < 0 ? -1 : length);
    server_kick(r->conn);
    return r->no_body;
}

int http_stream_write(struct http_request *r, const void *data, size_t len)
{
    struct http_conn *c = r->conn;
    size_t bound = c->server->config.out_bytes;
    if (c->cut || c->hung_up) {
        return -EPIPE;
    }
    if (!r->begun || r->ended || r->no_body || len == 0) {
        return 0;
    }
    if (len > bound || (r->left >= 0 && len > (uint64_t)r->left)) {
        return -EMSGSIZE;
    }
    bound = share_of_stream(c->server);
    size_t waits = outbox_left(&c->out);
    if (waits > 0 && waits + len + CHUNK_FRAME > bound) {
        r->room_wanted = true;
        return -EAGAIN;
    }
    struct buf *out = &c->out.data;
    if (r->chunked) {
        buf_printf(out, "%zx\r\n", len);
    }
    buf_add(out, data, len);
    if (r->chunked) {
        buf_puts(out, "\r\n");
    }
    if (out->error) {
        conn_cut(c, HTTP_END_ABORTED);
    }
    r->left -= r->left >= 0 ? (int64_t)len : 0;
    if (conn_flush(c) || outbox_left(&c->out) > 0) {
        server_kick(c);
    }
    r->room_wanted = outbox_left(&c->out) > bound / 2;
    return c->cut ? -EPIPE : r->room_wanted;
}

void http_stream_on_room(struct http_request *r, void (*room)(struct http_request *r))
{
    r->on_room = room;
}

void http_stream_end(struct http_request *r)
{
    struct http_conn *c = r->conn;
    if (!r->begun || r->ended) {
        return;
    }
    if (!r->no_body && r->left > 0) {
        http_abort(r);
        return;
    }
    if (r->chunked && !r->no_body && buf_puts(&c->out.data, "0\r\n\r\n")) {
        conn_cut(c, HTTP_END_ABORTED);
    }
    complete(r);
}

void http_abort(struct http_request *r)
{
    // A reset: an end would look like that of a reply whose length the end says.
    struct linger now = {.l_onoff = 1};
    setsockopt(r->conn->fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    conn_cut(r->conn, HTTP_END_ABORTED);
    server_kick(r->conn);
}

// ---- Server-sent events

static uint64_t next_comment(const struct http_request *r)
{
    return clock_now_ns() + r->conn->server->config.sse_ms * NS_PER_MS;
}

int http_sse_begin(struct http_request *r)
{
    http_set(r, "Cache-Control", "no-store");
    http_set(r, "X-Accel-Buffering", "no"); // proxies that would wait for more
    int e = http_stream_begin(r, 200, "text/event-stream", -1);
    r->sse = true;
    r->sse_due_ns = next_comment(r);
    return e;
}

static int add_line(struct buf *out, const char *name, const char *value)
{
    return value ? buf_printf(out, "%s: %s\n", name, value) : 0;
}

static bool is_line(const char *text)
{
    return !text || (!strpbrk(text, "\r\n") && utf8_valid(text, strlen(text)));
}

int http_sse_send(struct http_request *r, const char *id, const char *event, const char *data,
                  size_t len)
{
    if (!is_line(id) || !is_line(event) || !utf8_valid(data, len)) {
        return -EINVAL;
    }
    AUTO_BUF struct buf out = BUF_INIT(r->conn->server->config.out_bytes);
    add_line(&out, "id", id);
    add_line(&out, "event", event);
    for (size_t at = 0; at <= len;) {
        size_t n = 0;
        while (at + n < len && data[at + n] != '\n' && data[at + n] != '\r') {
            n++;
        }
        buf_puts(&out, "data: ");
        buf_add(&out, data + at, n);
        buf_putc(&out, '\n');
        at += n;
        at += at + 1 < len && data[at] == '\r' && data[at + 1] == '\n' ? 2 : 1;
    }
    if (buf_putc(&out, '\n')) {
        return out.error;
    }
    r->sse_due_ns = next_comment(r);
    return http_stream_write(r, out.data, out.len);
}

void reply_sse_due(struct http_request *r, uint64_t now_ns)
{
    if (r->sse_due_ns <= now_ns) {
        r->sse_due_ns = next_comment(r);
        if (conn_unsent(r->conn) == 0) {
            http_stream_write(r, ":\n\n", 3);
        }
    }
}
