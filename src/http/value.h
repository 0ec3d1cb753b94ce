// value.h: what fields of HTTP say: ranges, entity tags, file names, hosts, origins, and for whom
// a proxy speaks. Pure; the fields are hostile text.
#ifndef ISLE_HTTP_VALUE_H
#define ISLE_HTTP_VALUE_H

#include "base/buf.h"
#include "http/http.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// RFC 9110, 5.6.2: characters of a token, at least one.
bool http_is_token(const char *text, size_t len);
// May be the value of a field that we write: UTF-8 without control characters but tab.
bool http_is_value(const char *text, size_t len);
// host or host:port as a Host field has it: letters, digits, '-', '.', '_', or an address in
// brackets; a port is 1 to 65535.
bool http_is_host(const char *text);

// Appends data percent-decoded. plus: '+' is a space. 0; -EINVAL for a broken escape; -errno.
int http_percent_decode(struct buf *out, const char *data, size_t len, bool plus);

// RFC 9110, 14: one range of bytes of `size`. 1: *ret_first and *ret_len (at least 1); 0: as if
// there were no Range field (another unit, several ranges, bad syntax); -ERANGE: none of it is
// there (416).
int http_range(const char *value, uint64_t size, uint64_t *ret_first, uint64_t *ret_len);

// Whether an If-Match or If-None-Match list names `etag` (with its quotes). "*" does. weak: tags
// that differ in W/ only are equal (If-None-Match); else weak ones equal nothing (If-Match).
bool http_etag_listed(const char *list, const char *etag, bool weak);

// Appends the value of a Content-Disposition field that makes every browser save, not show: the
// name in ASCII, and in UTF-8 where it differs (RFC 6266). Only the name's last part is used.
int http_attachment(struct buf *out, const char *name);

// Parses "10.0.0.0/8", "::1", "192.0.2.7". 0 or -EINVAL, also with bits behind the prefix.
int http_net_parse(const char *text, struct http_net *ret);
bool http_net_has(const struct http_net *nets, size_t n, const struct in6_addr *ip);

// For whom the request speaks: the peer itself, unless that is a trusted proxy: then the last
// address of X-Forwarded-For that is no trusted proxy. *ret_https: X-Forwarded-Proto of such a
// proxy says so. 0; -EINVAL when a trusted proxy sent what is no list of addresses.
struct http_client {
    struct in6_addr ip;
    char text[INET6_ADDRSTRLEN];
    bool https;
};
int http_client_of(const struct http_peer *peer, const struct http_config *config,
                   const char *forwarded_for, const char *forwarded_proto, struct http_client *ret);

// Whether `host` (a Host field) is one of the names, compared without case and, where the name has
// none, without port. This stops a name of somebody else that leads here (DNS rebinding).
bool http_host_allowed(const char *host, const char *const *names, size_t n);
// Whether a browser's Origin may use us: none (not a browser, or the same page), http or https of
// the host itself, or one of the origins listed, exactly. "null" never.
bool http_origin_allowed(const char *origin, const char *host, const char *const *origins,
                         size_t n);

#endif
