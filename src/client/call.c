#include "client/call.h"

#include "base/clock.h"
#include "base/fd.h"
#include "codec/json.h"

#include <ctype.h>
#include <curl/curl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/signalfd.h>

enum { ERROR_MAX = 64 << 10, HEADERS_MAX = 256 << 10, CONNECT_S = 10 };

int call_refuse(struct call_error *e, int error, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(e->text, sizeof e->text, format, args);
    va_end(args);
    return error;
}

int caller_open(struct caller *c, const struct address *to, const char *key, int signals)
{
    *c = (struct caller){.to = to, .key = key && *key ? key : NULL, .signals = signals};
    if (curl_global_init(CURL_GLOBAL_DEFAULT)) {
        return -ENOMEM;
    }
    c->curl = curl_easy_init();
    c->multi = curl_multi_init();
    return c->curl && c->multi ? 0 : -ENOMEM;
}

void caller_close(struct caller *c)
{
    curl_easy_cleanup(c->curl);
    curl_multi_cleanup(c->multi);
    c->curl = c->multi = NULL;
    curl_global_cleanup();
}

void call_done(struct call *call) { buf_free(&call->answer); }

// ---- While it goes on

struct going {
    struct caller *c;
    struct call *call;
    struct call_error *error;
    struct curl_slist *headers;
    uint64_t began_ns, seen_ns;
    int64_t moved;
    size_t header_bytes, sent;
    int failed; // -errno of ours, with *error filled
    char curl_error[CURL_ERROR_SIZE];
};

static bool is_good(long status) { return status >= 200 && status < 300; }

static void note_move(struct going *g, size_t n)
{
    g->seen_ns = clock_now_ns();
    g->moved += (int64_t)n;
    if (g->call->moved) {
        g->call->moved(g->call->ctx, g->moved);
    }
}

static size_t fail(struct going *g, int error, const char *text)
{
    if (!g->failed) {
        g->failed = call_refuse(g->error, error, "%s", text);
    }
    return 0;
}

static size_t on_body(char *data, size_t one, size_t n, void *ctx)
{
    struct going *g = ctx;
    struct call *call = g->call;
    n *= one;
    curl_easy_getinfo(g->c->curl, CURLINFO_RESPONSE_CODE, &call->status);
    note_move(g, is_good(call->status) && g->call->file < 0 ? n : 0);
    if (is_good(call->status) && call->take) {
        int e = call->take(call->ctx, data, n);
        if (e) {
            g->failed = g->failed ? g->failed : e;
            return 0;
        }
        return n;
    }
    call->answer.max = is_good(call->status) ? call->max_bytes : ERROR_MAX;
    int e = buf_add(&call->answer, data, n);
    return !e ? n
              : fail(g, -EPROTO,
                     e == -EMSGSIZE ? "the answer is longer than isle believes"
                                    : "not enough memory");
}

// The value of a header "NAME: VALUE\r\n", if it is that one: its first size - 1 bytes.
static bool header_is(const char *line, size_t len, const char *name, char *ret, size_t size)
{
    size_t n = strlen(name);
    if (len <= n || strncasecmp(line, name, n) != 0 || line[n] != ':') {
        return false;
    }
    const char *from = line + n + 1, *end = line + len;
    while (from < end && (*from == ' ' || *from == '\t')) {
        from++;
    }
    while (end > from && isspace((unsigned char)end[-1])) {
        end--;
    }
    snprintf(ret, size, "%.*s", (int)(end - from), from);
    return true;
}

static size_t on_header(char *line, size_t one, size_t n, void *ctx)
{
    struct going *g = ctx;
    struct call *call = g->call;
    char value[128];
    n *= one;
    note_move(g, 0);
    g->header_bytes += n;
    if (g->header_bytes > HEADERS_MAX) {
        return fail(g, -EPROTO, "the answer's head is longer than isle believes");
    }
    if (header_is(line, n, "Retry-After", value, sizeof value)) {
        char *end;
        long seconds = strtol(value, &end, 10);
        call->retry_after = !*end && seconds >= 0 && seconds < 1000000 ? seconds : -1;
    } else if (header_is(line, n, "ETag", value, sizeof value)) {
        size_t len = strlen(value);
        bool quoted = len > 1 && value[0] == '"' && value[len - 1] == '"';
        snprintf(call->etag, sizeof call->etag, "%.*s", quoted ? (int)len - 2 : (int)len,
                 value + quoted);
    } else if (header_is(line, n, "Location", call->location, sizeof call->location) ||
               !header_is(line, n, "Content-Length", value, sizeof value)) {
        return n;
    } else {
        char *end;
        long long length = strtoll(value, &end, 10);
        call->length = !*end && length >= 0 ? length : -1;
    }
    return n;
}

static int take_signal(struct going *g);

// What is no file may keep us waiting, and a signal must not wait with us. 0 or why the call ends.
static int wait_readable(struct going *g)
{
    struct pollfd fds[] = {{g->call->file, POLLIN, 0}, {g->c->signals, POLLIN, 0}};
    while (poll(fds, ARRAY_LEN(fds), -1) < 0 || !fds[0].revents) {
        int e = fds[1].revents ? take_signal(g) : 0;
        if (e) {
            return e;
        }
    }
    return 0;
}

static size_t on_send(char *data, size_t one, size_t n, void *ctx)
{
    struct going *g = ctx;
    n *= one;
    if (g->call->file >= 0) {
        int e = wait_readable(g);
        if (e) {
            g->failed = e;
            return CURL_READFUNC_ABORT;
        }
        ssize_t got = read(g->call->file, data, n);
        if (got < 0) {
            g->failed = call_refuse(g->error, -errno, "reading the file: %m");
            return CURL_READFUNC_ABORT;
        }
        note_move(g, (size_t)got);
        return (size_t)got;
    }
    size_t left = g->call->body_len - g->sent;
    n = n < left ? n : left;
    memcpy(data, g->call->body + g->sent, n);
    g->sent += n;
    note_move(g, 0);
    return n;
}

// Not 0: the call ends.
static int take_signal(struct going *g)
{
    struct signalfd_siginfo info;
    if (g->c->signals < 0 || read(g->c->signals, &info, sizeof info) != sizeof info) {
        return 0;
    }
    if (g->call->signalled && g->call->signalled(g->call->ctx)) {
        return 0;
    }
    return call_refuse(g->error, -EINTR, "cancelled");
}

static int check_time(struct going *g)
{
    uint64_t now = clock_now_ns();
    unsigned silence = g->call->silence_s ? g->call->silence_s : CALL_SILENCE_S;
    if (now - g->seen_ns > silence * NS_PER_S) {
        return call_refuse(g->error, -ETIMEDOUT, "%.300s has said nothing for %u s",
                           g->c->to->shown, silence);
    }
    if (!g->call->endless && now - g->began_ns > (CALL_TOTAL_S + silence) * NS_PER_S) {
        return call_refuse(g->error, -ETIMEDOUT, "%.300s took more than %u s to answer",
                           g->c->to->shown, CALL_TOTAL_S + silence);
    }
    return 0;
}

// CURLE_OK or what ended it; g->failed is looked at first.
static CURLcode perform(struct going *g)
{
    int running = 1;
    while (!g->failed) {
        struct curl_waitfd signals = {g->c->signals, CURL_WAIT_POLLIN, 0};
        if (curl_multi_perform(g->c->multi, &running)) {
            return CURLE_FAILED_INIT;
        }
        if (!running) {
            int left = 0;
            const CURLMsg *m = curl_multi_info_read(g->c->multi, &left);
            return m && m->msg == CURLMSG_DONE ? m->data.result : CURLE_FAILED_INIT;
        }
        curl_multi_poll(g->c->multi, &signals, g->c->signals >= 0 ? 1 : 0, 1000, NULL);
        g->failed = g->failed ? g->failed : take_signal(g);
        g->failed = g->failed ? g->failed : check_time(g);
    }
    return CURLE_ABORTED_BY_CALLBACK;
}

// ---- Begin

static bool add_header(struct going *g, const char *line)
{
    struct curl_slist *more = curl_slist_append(g->headers, line);
    g->headers = more ? more : g->headers;
    return more != NULL;
}

static int set_headers(struct going *g)
{
    const struct call *call = g->call;
    char line[1200];
    bool good = add_header(g, "Expect:"); // its one second of waiting helps nobody
    if (g->c->key) {
        for (const char *p = g->c->key; *p; p++) {
            if (!isgraph((unsigned char)*p) || p - g->c->key > 1000) {
                return call_refuse(g->error, -EINVAL,
                                   "ISLE_KEY: holds a character that no key has, or is too long");
            }
        }
        snprintf(line, sizeof line, "Authorization: Bearer %s", g->c->key);
        good = good && add_header(g, line);
        explicit_bzero(line, sizeof line);
    }
    if (call->body || call->file >= 0) {
        snprintf(line, sizeof line, "Content-Type: %s",
                 call->type ? call->type : "application/json");
        good = good && add_header(g, line);
    } else {
        good = good && add_header(g, "Content-Type:"); // libcurl has one of its own for a POST
    }
    good = good && add_header(g, "Accept: application/json, text/event-stream, */*");
    for (size_t i = 0; i < CALL_HEADERS && call->headers[i]; i++) {
        good = good && add_header(g, call->headers[i]);
    }
    return good ? 0 : call_refuse(g->error, -ENOMEM, "not enough memory");
}

// A connection that was kept may have been closed meanwhile, and libcurl would send all of it again
// by a new one: what has a body may change something, and is sent once.
static void set_body(CURL *h, const struct call *call)
{
    curl_easy_setopt(h, CURLOPT_FRESH_CONNECT, call->body || call->file >= 0 ? 1L : 0L);
    if (call->body) {
        curl_easy_setopt(h, CURLOPT_UPLOAD, 1L);
        curl_easy_setopt(h, CURLOPT_INFILESIZE_LARGE, (curl_off_t)call->body_len);
    } else if (call->file >= 0) {
        curl_easy_setopt(h, CURLOPT_UPLOAD, 1L);
        if (call->file_bytes >= 0) {
            curl_easy_setopt(h, CURLOPT_INFILESIZE_LARGE, (curl_off_t)call->file_bytes);
        }
    } else if (strcmp(call->method, "POST") == 0) {
        curl_easy_setopt(h, CURLOPT_POSTFIELDS, "");
    }
}

static void set_options(struct going *g, const char *url)
{
    CURL *h = g->c->curl;
    const struct address *to = g->c->to;
    const char *bundle = getenv("SSL_CERT_FILE");
    curl_easy_reset(h); // connections stay
    curl_easy_setopt(h, CURLOPT_URL, url);
    curl_easy_setopt(h, CURLOPT_PATH_AS_IS, 1L); // libcurl would resolve a name that is ".."
    curl_easy_setopt(h, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(h, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(h, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(h, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(h, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_S);
    curl_easy_setopt(h, CURLOPT_TCP_KEEPALIVE, 1L); // a host that is gone says nothing, either
    curl_easy_setopt(h, CURLOPT_ERRORBUFFER, g->curl_error);
    curl_easy_setopt(h, CURLOPT_USERAGENT, "isle-client");
    if (to->socket[0]) {
        curl_easy_setopt(h, CURLOPT_UNIX_SOCKET_PATH, to->socket);
    }
    if (to->loopback) {
        curl_easy_setopt(h, CURLOPT_PROXY, "");
    }
    if (bundle && *bundle) {
        curl_easy_setopt(h, CURLOPT_CAINFO, bundle);
    }
    set_body(h, g->call);
    curl_easy_setopt(h, CURLOPT_CUSTOMREQUEST, g->call->method);
    curl_easy_setopt(h, CURLOPT_HTTPHEADER, g->headers);
    curl_easy_setopt(h, CURLOPT_READFUNCTION, on_send);
    curl_easy_setopt(h, CURLOPT_READDATA, g);
    curl_easy_setopt(h, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(h, CURLOPT_WRITEDATA, g);
    curl_easy_setopt(h, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(h, CURLOPT_HEADERDATA, g);
}

// ---- What became of it

static int explain_curl(struct going *g, CURLcode code)
{
    const char *shown = g->c->to->shown;
    const char *why = g->curl_error[0] ? g->curl_error : curl_easy_strerror(code);
    if (code == CURLE_COULDNT_CONNECT) {
        long number = 0;
        curl_easy_getinfo(g->c->curl, CURLINFO_OS_ERRNO, &number);
        return call_refuse(g->error, -ECONNREFUSED,
                           "no service answers at %.300s%s%s%s: `isle serve` starts one; --url or "
                           "ISLE_URL says where it is",
                           shown, number ? " (" : "", number ? strerrordesc_np((int)number) : "",
                           number ? ")" : "");
    }
    if (code == CURLE_PEER_FAILED_VERIFICATION) {
        return call_refuse(g->error, -EPROTO,
                           "%.300s: its certificate is not trusted: %.200s; SSL_CERT_FILE names "
                           "the certificates to trust",
                           shown, why);
    }
    if (code == CURLE_SSL_CONNECT_ERROR) {
        return call_refuse(
            g->error, -EPROTO,
            "%.300s does not speak TLS as isle does: %.200s; a service itself speaks "
            "http://, TLS is a proxy's",
            shown, why);
    }
    return call_refuse(g->error, code == CURLE_OPERATION_TIMEDOUT ? -ETIMEDOUT : -EPROTO,
                       "%.300s: %.200s", shown, why);
}

// The envelope's own words; "" where it has none.
static void read_message(const struct call *call, char *ret, size_t size)
{
    struct json_error ignored;
    yyjson_doc *doc = json_parse_envelope(buf_text(&call->answer), call->answer.len, &ignored);
    const char *text = yyjson_get_str(yyjson_obj_get(yyjson_doc_get_root(doc), "msg"));
    snprintf(ret, size, "%s", text ? text : "");
    yyjson_doc_free(doc);
}

static const struct {
    long status;
    int error;
    const char *advice;
} statuses[] = {
    {401, -EACCES,
     "; `isle key create --team TEAM --name NAME` on the service's host makes a key, "
     "ISLE_KEY gives it"},
    {403, -EACCES, ""},
    {404, -ENOENT, ""},
    {410, -ENOENT, ""},
    {429, -EAGAIN, ""},
    {503, -EAGAIN, ""},
};

static int explain_status(struct going *g)
{
    const struct call *call = g->call;
    char text[512], later[64] = "";
    const char *advice = "";
    int error = -EREMOTEIO;
    if (call->status >= 300 && call->status < 400) {
        return call_refuse(g->error, -EPROTO,
                           "%.300s sends elsewhere (to %.200s), where isle does not follow; if you "
                           "trust that, give it as --url",
                           g->c->to->shown, call->location);
    }
    for (size_t i = 0; i < ARRAY_LEN(statuses); i++) {
        if (statuses[i].status == call->status) {
            error = statuses[i].error;
            advice = statuses[i].advice;
        }
    }
    read_message(call, text, sizeof text);
    if (!text[0]) {
        snprintf(text, sizeof text, "status %ld of %.300s, which does not speak as isle does",
                 call->status, g->c->to->shown);
    }
    if (call->retry_after >= 0) {
        snprintf(later, sizeof later, "; try again in %lld s", (long long)call->retry_after);
    }
    return call_refuse(g->error, error, "%s%s%s", text, advice, later);
}

static int go(struct going *g, const char *url)
{
    set_options(g, url);
    if (curl_multi_add_handle(g->c->multi, g->c->curl)) {
        return call_refuse(g->error, -ENOMEM, "not enough memory");
    }
    CURLcode code = perform(g);
    curl_easy_getinfo(g->c->curl, CURLINFO_RESPONSE_CODE, &g->call->status);
    int e = g->failed ? g->failed : code ? explain_curl(g, code) : 0;
    curl_multi_remove_handle(g->c->multi, g->c->curl);
    return e ? e : is_good(g->call->status) ? 0 : explain_status(g);
}

int call_make(struct caller *c, struct call *call, struct call_error *ret_error)
{
    uint64_t now = clock_now_ns();
    struct going g = {.c = c, .call = call, .error = ret_error, .began_ns = now, .seen_ns = now};
    AUTO_BUF struct buf url = BUF_INIT(64 << 10);
    call->answer = BUF_INIT(call->max_bytes);
    ret_error->text[0] = '\0';
    buf_puts(&url, c->to->base);
    int e = buf_puts(&url, call->path);
    e = e ? call_refuse(ret_error, e, "the address is too long") : set_headers(&g);
    e = e ? e : go(&g, buf_text(&url));
    curl_slist_free_all(g.headers);
    return e;
}

yyjson_val *call_data(const struct call *call, yyjson_doc **ret_doc, struct call_error *ret_error)
{
    struct json_error why;
    int64_t code = -1;
    yyjson_doc *doc = json_parse_envelope(buf_text(&call->answer), call->answer.len, &why);
    yyjson_val *root = yyjson_doc_get_root(doc), *data = yyjson_obj_get(root, "data");
    if (data && json_int(yyjson_obj_get(root, "code"), &code) == 0 && code == 0) {
        *ret_doc = doc;
        return data;
    }
    call_refuse(ret_error, -EPROTO, "the answer is not what isle's service says: %s",
                doc ? "no code 0 with data" : why.text);
    yyjson_doc_free(doc);
    return NULL;
}
