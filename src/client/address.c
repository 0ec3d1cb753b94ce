#include "client/address.h"

#include "base/fd.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <curl/curl.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static int refuse(struct address_error *e, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static int refuse(struct address_error *e, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(e->text, sizeof e->text, format, args);
    va_end(args);
    return -EINVAL;
}

static int parse_socket(const char *path, struct address *ret, struct address_error *e)
{
    if (path[0] != '/' || strlen(path) >= sizeof ret->socket) {
        return refuse(e,
                      "unix:%.120s: an absolute path of at most %zu bytes must follow unix:", path,
                      sizeof ret->socket - 1);
    }
    snprintf(ret->socket, sizeof ret->socket, "%s", path);
    snprintf(ret->base, sizeof ret->base, "http://localhost");
    snprintf(ret->shown, sizeof ret->shown, "unix:%s", path);
    ret->loopback = true;
    return 0;
}

// "127.0.0.1.example" is a name, and somebody else's.
static bool is_loopback(const char *host)
{
    struct in_addr v4;
    return strcmp(host, "localhost") == 0 || strcmp(host, "[::1]") == 0 ||
           (inet_pton(AF_INET, host, &v4) == 1 && ntohl(v4.s_addr) >> 24 == IN_LOOPBACKNET);
}

static bool has_part(CURLU *u, CURLUPart part)
{
    char *text = NULL;
    bool there = curl_url_get(u, part, &text, 0) == CURLUE_OK;
    curl_free(text);
    return there;
}

static int take_parts(CURLU *u, const char *url, struct address *ret, struct address_error *e)
{
    char *whole = NULL, *scheme = NULL, *host = NULL;
    int rc = 0;
    if (curl_url_get(u, CURLUPART_URL, &whole, 0) ||
        curl_url_get(u, CURLUPART_SCHEME, &scheme, 0) ||
        curl_url_get(u, CURLUPART_HOST, &host, 0)) {
        rc = refuse(e, "%.200s is no address", url);
    } else if (strcmp(scheme, "http") != 0 && strcmp(scheme, "https") != 0) {
        rc = refuse(e, "%.200s: http://, https:// or unix: must begin it", url);
    } else if (strlen(whole) >= sizeof ret->base) {
        rc = refuse(e, "the address has more than %zu bytes", sizeof ret->base - 1);
    } else {
        size_t n = strlen(whole);
        while (n > 0 && whole[n - 1] == '/') {
            n--;
        }
        snprintf(ret->base, sizeof ret->base, "%.*s", (int)n, whole);
        snprintf(ret->shown, sizeof ret->shown, "%s", ret->base);
        ret->loopback = is_loopback(host);
        ret->overt = !ret->loopback && strcmp(scheme, "http") == 0;
    }
    curl_free(whole);
    curl_free(scheme);
    curl_free(host);
    return rc;
}

int address_parse(const char *url, struct address *ret, struct address_error *ret_error)
{
    static const CURLUPart none[] = {CURLUPART_USER, CURLUPART_PASSWORD, CURLUPART_QUERY,
                                     CURLUPART_FRAGMENT};
    struct address a = {};
    if (strncmp(url, "unix:", 5) == 0) {
        int e = parse_socket(url + 5, &a, ret_error);
        *ret = e ? *ret : a;
        return e;
    }
    CURLU *u = curl_url();
    if (!u) {
        return refuse(ret_error, "not enough memory");
    }
    int e = 0;
    if (curl_url_set(u, CURLUPART_URL, url, CURLU_NON_SUPPORT_SCHEME)) {
        const char *shown = strchr(url, '@') ? "this" : url; // it may hold a password
        e = refuse(ret_error,
                   "%.200s is no address; it looks like http://127.0.0.1:4753, "
                   "https://isle.example or unix:/run/isle/isle.sock",
                   shown);
    }
    for (size_t i = 0; !e && i < ARRAY_LEN(none); i++) {
        if (has_part(u, none[i])) { // not quoted either
            e = refuse(ret_error, "an address has no user, query or fragment; who asks is said by "
                                  "ISLE_KEY");
        }
    }
    e = e ? e : take_parts(u, url, &a, ret_error);
    curl_url_cleanup(u);
    if (!e) {
        *ret = a;
    }
    return e;
}

int address_escape(struct buf *out, const char *text, bool path)
{
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        bool plain = (c < 0x80 && isalnum(c)) || strchr("-._~", c) || (path && c == '/');
        if (plain) {
            buf_putc(out, (char)c);
        } else {
            buf_printf(out, "%%%02X", c);
        }
    }
    return out->error;
}
