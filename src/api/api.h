// api.h: the HTTP API: routes, envelope, who may do what. One row of the route table is one
// operation: method, path, who may call it, the schema of its body, its handler. The OpenAPI
// document and the checks of a request come from the same rows.
#ifndef ISLE_API_API_H
#define ISLE_API_API_H

#include "http/http.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <yyjson.h>

struct api;
struct agents; // serve/agent.h
struct artifacts;
struct conf;
struct jobs;
struct log;
struct loop;
struct ready; // serve/ready.h: the last trial run
struct sessions;
struct store;
struct work_pool;

struct api_config {
    struct loop *loop;
    const struct conf *conf;
    struct store *store;
    struct jobs *jobs;
    struct sessions *sessions;
    struct artifacts *artifacts;
    struct shares *shares;
    struct agents *agents;
    struct work_pool *pool;
    struct log *log;
    struct ready *ready;
    int workspace_root;
    bool loopback; // every TCP listener is on loopback: without a key the service may be used
};

int api_new(const struct api_config *c, struct api **ret);
void api_free(struct api *a);
// Of struct http_config: begin, refused, ctx, and the proxies that are trusted.
void api_configure_http(struct api *a, struct http_config *config);
// The server that has them, for /metrics.
void api_show_server(struct api *a, const struct http_server *server);

#endif
