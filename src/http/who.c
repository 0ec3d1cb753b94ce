#include "http/value.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool parse_port(const char *text)
{
    size_t n = strlen(text);
    if (n < 1 || n > 5 || strspn(text, "0123456789") != n) {
        return false;
    }
    long port = strtol(text, NULL, 10);
    return port >= 1 && port <= 65535;
}

// Bytes of the host's name, without the port; 0: no host.
static size_t host_name(const char *host)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    if (*host == '[') {
        size_t n = 1 + strspn(host + 1, "0123456789abcdefABCDEF:.");
        return n > 2 && host[n] == ']' ? n + 1 : 0;
    }
    size_t n = 0;
    while (host[n] && (strchr(letters, host[n]) || strchr("-._", host[n]))) {
        n++;
    }
    return n;
}

bool http_is_host(const char *text)
{
    size_t n = host_name(text);
    if (n == 0 || n > 255) {
        return false;
    }
    return text[n] == '\0' || (text[n] == ':' && parse_port(text + n + 1));
}

// IPv4 as ::ffff:a.b.c.d. *ret_bits: of the address as it was written.
static int parse_address(const char *text, struct in6_addr *ret, unsigned *ret_bits)
{
    struct in_addr v4;
    if (inet_pton(AF_INET, text, &v4) == 1) {
        *ret = (struct in6_addr){.s6_addr = {[10] = 0xff, [11] = 0xff}};
        memcpy(ret->s6_addr + 12, &v4, 4);
        *ret_bits = 32;
        return 0;
    }
    *ret_bits = 128;
    return inet_pton(AF_INET6, text, ret) == 1 ? 0 : -EINVAL;
}

static bool bit(const struct in6_addr *ip, unsigned i)
{
    return ip->s6_addr[i / 8] >> (7 - i % 8) & 1;
}

int http_net_parse(const char *text, struct http_net *ret)
{
    char address[INET6_ADDRSTRLEN];
    size_t n = strcspn(text, "/");
    if (n >= sizeof address) {
        return -EINVAL;
    }
    memcpy(address, text, n);
    address[n] = '\0';
    struct http_net net;
    unsigned bits;
    if (parse_address(address, &net.ip, &bits)) {
        return -EINVAL;
    }
    net.prefix = 128;
    if (text[n] == '/') {
        const char *digits = text + n + 1;
        size_t len = strlen(digits);
        if (len < 1 || len > 3 || strspn(digits, "0123456789") != len) {
            return -EINVAL;
        }
        unsigned long prefix = strtoul(digits, NULL, 10);
        if (prefix > bits) {
            return -EINVAL;
        }
        net.prefix = 128 - bits + (unsigned)prefix;
    }
    for (unsigned i = net.prefix; i < 128; i++) {
        if (bit(&net.ip, i)) {
            return -EINVAL;
        }
    }
    *ret = net;
    return 0;
}

bool http_net_has(const struct http_net *nets, size_t n, const struct in6_addr *ip)
{
    for (size_t i = 0; i < n; i++) {
        unsigned k = 0;
        while (k < nets[i].prefix && bit(&nets[i].ip, k) == bit(ip, k)) {
            k++;
        }
        if (k == nets[i].prefix) {
            return true;
        }
    }
    return false;
}

static void print_address(struct http_client *c)
{
    if (IN6_IS_ADDR_V4MAPPED(&c->ip)) {
        inet_ntop(AF_INET, c->ip.s6_addr + 12, c->text, sizeof c->text);
    } else {
        inet_ntop(AF_INET6, &c->ip, c->text, sizeof c->text);
    }
}

// One element of X-Forwarded-For: an address, perhaps in brackets or with a port, as some proxies
// write it.
static int forwarded_address(const char *at, size_t len, struct in6_addr *ret)
{
    char text[64];
    while (len && (*at == ' ' || *at == '\t')) {
        at++;
        len--;
    }
    while (len && (at[len - 1] == ' ' || at[len - 1] == '\t')) {
        len--;
    }
    if (len == 0 || len >= sizeof text) {
        return -EINVAL;
    }
    memcpy(text, at, len);
    text[len] = '\0';
    char *address = text, *port = NULL;
    if (*text == '[') {
        char *end = strchr(text, ']');
        if (!end || (end[1] && end[1] != ':')) {
            return -EINVAL;
        }
        port = end[1] ? end + 2 : NULL;
        *end = '\0';
        address = text + 1;
    } else if (strchr(text, ':') && strchr(text, ':') == strrchr(text, ':')) {
        port = strchr(text, ':') + 1;
        port[-1] = '\0';
    }
    unsigned bits;
    return port && !parse_port(port) ? -EINVAL : parse_address(address, ret, &bits);
}

int http_client_of(const struct http_peer *peer, const struct http_config *config,
                   const char *forwarded_for, const char *forwarded_proto, struct http_client *ret)
{
    struct http_client c = {.ip = peer->ip};
    memcpy(c.text, peer->text, sizeof c.text);
    if (!peer->local && http_net_has(config->trusted, config->n_trusted, &peer->ip)) {
        c.https = forwarded_proto && strcasecmp(forwarded_proto, "https") == 0;
        size_t end = forwarded_for ? strlen(forwarded_for) : 0;
        while (end > 0) { // from the right: what stands to the left of a stranger is his word
            size_t start = end;
            while (start > 0 && forwarded_for[start - 1] != ',') {
                start--;
            }
            if (forwarded_address(forwarded_for + start, end - start, &c.ip)) {
                return -EINVAL;
            }
            if (!http_net_has(config->trusted, config->n_trusted, &c.ip)) {
                break;
            }
            end = start > 0 ? start - 1 : 0;
        }
        print_address(&c);
    }
    *ret = c;
    return 0;
}

bool http_host_allowed(const char *host, const char *const *names, size_t n)
{
    size_t len = host_name(host);
    for (size_t i = 0; len && i < n; i++) {
        bool with_port = names[i][host_name(names[i])] == ':';
        if (with_port ? strcasecmp(names[i], host) == 0
                      : strlen(names[i]) == len && strncasecmp(names[i], host, len) == 0) {
            return true;
        }
    }
    return false;
}

bool http_origin_allowed(const char *origin, const char *host, const char *const *origins, size_t n)
{
    if (!origin) {
        return true;
    }
    size_t scheme = strncmp(origin, "http://", 7) == 0    ? 7
                    : strncmp(origin, "https://", 8) == 0 ? 8
                                                          : 0;
    if (!scheme) {
        return false;
    }
    if (*host && strcasecmp(origin + scheme, host) == 0) {
        return true;
    }
    for (size_t i = 0; i < n; i++) {
        if (strcmp(origins[i], origin) == 0) {
            return true;
        }
    }
    return false;
}
