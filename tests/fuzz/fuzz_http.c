// Requests of a hostile peer: in whatever pieces they come, the same request comes out or a
// refusal, and what the head says is what the rest may rely on. Fields of it go through all that
// reads fields.
#include "codec/utf8.h"
#include "fuzz.h"
#include "http/parse.h"
#include "http/value.h"

#include <string.h>

struct seen {
    uint32_t hash;
    size_t body, used;
    bool head, end, bad;
};

static uint32_t mix(uint32_t hash, const char *data, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        hash = (hash ^ (uint8_t)data[i]) * UINT32_C(16777619);
    }
    return hash;
}

static void read_field(const struct http_config *config, const char *value)
{
    uint64_t first, len;
    if (http_range(value, 1000, &first, &len) == 1) {
        MUST(first < 1000 && len >= 1 && len <= 1000 - first);
    }
    http_etag_listed(value, "\"a\"", true);
    AUTO_BUF struct buf out = BUF_INIT(1 << 20);
    MUST(http_attachment(&out, value) == 0 && http_is_value(out.data, out.len));
    struct http_net net;
    if (http_net_parse(value, &net) == 0) {
        MUST(net.prefix <= 128 && http_net_has(&net, 1, &net.ip));
    }
    struct http_peer peer = {.ip = config->trusted[0].ip};
    struct http_client client;
    http_client_of(&peer, config, value, value, &client);
    http_host_allowed(value, &value, 1);
    http_origin_allowed(value, value, &value, 1);
}

static uint32_t look(const struct http_config *config, const struct http_parser *p)
{
    const char *path = http_parser_path(p), *name, *value;
    size_t n = strlen(path);
    MUST(utf8_valid(path, n) && (path[0] == '/' || strcmp(path, "*") == 0));
    MUST(!strstr(path, "/../") && !strstr(path, "/./") && !strpbrk(path, "\r\n"));
    MUST(n < 3 || strcmp(path + n - 3, "/..") != 0);
    MUST(!*http_parser_host(p) || http_is_host(http_parser_host(p)));
    MUST(p->length >= -1 && strlen(http_parser_target(p)) <= config->target_bytes);
    uint32_t hash = mix(UINT32_C(2166136261), path, n);
    for (size_t i = 0; http_parser_field(p, i, &name, &value); i++) {
        MUST(http_is_token(name, strlen(name)) && !strpbrk(value, "\r\n"));
        hash = mix(mix(hash, name, strlen(name)), value, strlen(value));
        read_field(config, value);
    }
    for (size_t i = 0; http_parser_pair(p, i, &name, &value); i++) {
        MUST(utf8_valid(name, strlen(name)) && utf8_valid(value, strlen(value)));
        hash = mix(mix(hash, name, strlen(name)), value, strlen(value));
    }
    return hash;
}

static struct seen run(const struct http_config *config, const char *data, size_t len, size_t piece)
{
    struct seen s = {0};
    struct http_parser *p = malloc(sizeof *p);
    MUST(p);
    http_parser_init(p, config);
    while (s.used < len && !s.end && !s.bad) {
        size_t n = len - s.used < piece ? len - s.used : piece, at = 0, used = 0;
        enum http_parsed event;
        size_t events = 0;
        do {
            event = http_parse(p, data + s.used + at, n - at, &used);
            MUST(used <= n - at && ++events <= 2 * n + 4);
            at += used;
            if (event == HTTP_PARSED_HEAD) {
                MUST(!s.head);
                s.head = true;
                s.hash = look(config, p);
            } else if (event == HTTP_PARSED_BODY) {
                MUST(s.head && p->length != 0);
                MUST(p->body >= data && p->body + p->body_len <= data + len && p->body_len > 0);
                s.hash = mix(s.hash, p->body, p->body_len);
                s.body += p->body_len;
            }
        } while (event == HTTP_PARSED_HEAD || event == HTTP_PARSED_BODY);
        s.used += at;
        s.end = event == HTTP_PARSED_END;
        s.bad = event == HTTP_PARSED_BAD;
        MUST(event != HTTP_PARSED_MORE || at == n);
    }
    MUST(!s.end || (s.head && (p->length < 0 || (uint64_t)p->length == s.body)));
    MUST(!s.bad || (p->status >= 400 && p->status < 600 && p->why));
    http_parser_done(p);
    free(p);
    if (s.bad) {
        s.used = 0; // how far a piece reaches behind the fault
    }
    return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    if (len < 1 || len > 1 << 14) {
        return 0;
    }
    struct http_config config;
    http_config_init(&config);
    config.n_trusted = 1;
    http_net_parse("127.0.0.1", &config.trusted[0]);
    const char *text = (const char *)data + 1;
    struct seen whole = run(&config, text, len - 1, len);
    struct seen pieces = run(&config, text, len - 1, 1 + data[0] % 16);
    MUST(whole.bad == pieces.bad && whole.head == pieces.head && whole.end == pieces.end);
    MUST(whole.bad ||
         (whole.hash == pieces.hash && whole.body == pieces.body && whole.used == pieces.used));
    return 0;
}
