// access.c: from where a request may come. Names of somebody else that lead here (DNS rebinding)
// and pages of other origins are turned away on every route, before anything else is looked at.
#include "api/internal.h"

#include "conf/conf.h"
#include "http/value.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

// Splits at commas, in place; empty words are left out.
static size_t split(char *text, const char **ret, size_t max)
{
    size_t n = 0;
    char *rest = NULL;
    for (char *word = strtok_r(text, ", ", &rest); word && n < max;
         word = strtok_r(NULL, ", ", &rest)) {
        ret[n++] = word;
    }
    return n;
}

static int read_proxies(struct api *a, const char *text)
{
    char *copy = strdup(text), *rest = NULL;
    int e = copy ? 0 : -ENOMEM;
    for (char *word = copy ? strtok_r(copy, ", ", &rest) : NULL; word && !e;
         word = strtok_r(NULL, ", ", &rest)) {
        e = a->proxies.n_trusted == HTTP_MAX_NETS
                ? -E2BIG
                : http_net_parse(word, &a->proxies.trusted[a->proxies.n_trusted]);
        a->proxies.n_trusted += e == 0;
    }
    free(copy);
    return e;
}

int api_access_init(struct api *a)
{
    const struct conf *c = a->with.conf;
    const char *hosts = c->text[SETTING_ALLOWED_HOSTS], *origins = c->text[SETTING_ALLOWED_ORIGINS];
    size_t n = strlen(hosts) + 1, m = strlen(origins) + 1;
    a->words = malloc(n + m);
    if (!a->words) {
        return -ENOMEM;
    }
    memcpy(a->words, hosts, n);
    memcpy(a->words + n, origins, m);
    a->n_hosts = split(a->words, a->hosts, API_MAX_WORDS);
    a->n_origins = split(a->words + n, a->origins, API_MAX_WORDS);
    return read_proxies(a, c->text[SETTING_TRUSTED_PROXIES]);
}

void api_configure_http(struct api *a, struct http_config *config)
{
    memcpy(config->trusted, a->proxies.trusted, sizeof config->trusted);
    config->n_trusted = a->proxies.n_trusted;
    config->begin = api_begin;
    config->refused = api_refused;
    config->pool = a->with.pool;
    config->ctx = a;
}

// The value of a field that may come once; "" when it is absent or comes twice.
static const char *field(const struct api_call *c, const char *name)
{
    const char *value;
    return http_field_value(c->r, name, &value) == 1 ? value : "";
}

static bool has_field(const struct api_call *c, const char *name)
{
    const char *value;
    return http_field_value(c->r, name, &value) != 0;
}

// An address is nobody's name, so no name server can lead a browser here by it.
static bool is_address(const char *host)
{
    char text[INET6_ADDRSTRLEN + 2];
    struct in6_addr ip;
    size_t n = strcspn(host, "]");
    if (*host == '[') {
        if (host[n] != ']' || n > sizeof text) {
            return false;
        }
        memcpy(text, host + 1, n - 1);
        text[n - 1] = '\0';
        return inet_pton(AF_INET6, text, &ip) == 1;
    }
    n = strcspn(host, ":");
    if (n >= sizeof text) {
        return false;
    }
    memcpy(text, host, n);
    text[n] = '\0';
    return inet_pton(AF_INET, text, &ip) == 1;
}

static bool host_allowed(const struct api_call *c)
{
    static const char *const own[] = {"localhost"};
    const char *host = http_host(c->r);
    return is_address(host) || http_host_allowed(host, own, 1) ||
           http_host_allowed(host, c->api->hosts, c->api->n_hosts);
}

static bool origin_listed(const struct api_call *c, const char *origin)
{
    for (size_t i = 0; i < c->api->n_origins; i++) {
        if (strcmp(c->api->origins[i], origin) == 0) {
            return true;
        }
    }
    return false;
}

// What a browser says of a request that has no Origin: pictures, scripts, links of other pages.
// /docs and the like may be linked to.
static bool site_allowed(const struct api_call *c)
{
    const char *site = field(c, "sec-fetch-site");
    bool other = strcmp(site, "cross-site") == 0 || strcmp(site, "same-site") == 0;
    return !other || (c->route && c->route->who == API_ANYONE);
}

bool api_access_check(struct api_call *c)
{
    const char *origin = field(c, "origin");
    if (http_peer(c->r)->local) {
        return true; // no browser speaks to a Unix socket
    }
    if (!host_allowed(c)) {
        api_fail(c, API_FORBIDDEN,
                 "Host: %.100s is no name of this service; ISLE_ALLOWED_HOSTS lists more",
                 http_host(c->r));
        return false;
    }
    if (c->api->n_origins > 0) {
        http_set(c->r, "Vary", "Origin");
    }
    if (!has_field(c, "origin")) {
        if (!site_allowed(c)) {
            api_fail(c, API_FORBIDDEN, "Sec-Fetch-Site: a page of another site may not do this");
            return false;
        }
        return true;
    }
    if (!http_origin_allowed(*origin ? origin : "null", http_host(c->r), c->api->origins,
                             c->api->n_origins)) {
        api_fail(c, API_FORBIDDEN,
                 "Origin: a page of another origin may not call; ISLE_ALLOWED_ORIGINS lists some");
        return false;
    }
    if (origin_listed(c, origin)) {
        http_set(c->r, "Access-Control-Allow-Origin", origin);
        http_set(c->r, "Access-Control-Expose-Headers",
                 "Content-Disposition, ETag, Location, Retry-After, X-Trace-Id");
    }
    return true;
}

void api_access_preflight(struct api_call *c)
{
    const char *origin = field(c, "origin");
    if (*origin && origin_listed(c, origin)) {
        http_set(c->r, "Access-Control-Allow-Methods", "GET, HEAD, POST, PUT, DELETE");
        http_set(c->r, "Access-Control-Allow-Headers",
                 "Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, "
                 "Last-Event-ID, Range, Traceparent, X-Api-Key");
        http_set(c->r, "Access-Control-Max-Age", "600");
    }
}

static bool is_loopback(const struct in6_addr *ip)
{
    static const uint8_t mapped[13] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127};
    return IN6_IS_ADDR_LOOPBACK(ip) || memcmp(ip->s6_addr, mapped, sizeof mapped) == 0;
}

bool api_is_local(const struct api_call *c)
{
    const struct http_peer *p = http_peer(c->r);
    bool proxied = has_field(c, "x-forwarded-for") || has_field(c, "forwarded") ||
                   has_field(c, "x-real-ip") || has_field(c, "via");
    return p->local || (is_loopback(&p->ip) && !proxied);
}

void api_client_of(const struct api_call *c, struct http_client *ret)
{
    const struct http_peer *p = http_peer(c->r);
    if (p->local || http_client_of(p, &c->api->proxies, field(c, "x-forwarded-for"),
                                   field(c, "x-forwarded-proto"), ret)) {
        *ret = (struct http_client){.ip = p->ip};
        memcpy(ret->text, p->text, sizeof ret->text);
    }
}
