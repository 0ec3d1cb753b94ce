// routes.h: a handler whose routes do one thing each, for the tests of the server.
#ifndef ISLE_TESTS_HTTP_ROUTES_H
#define ISLE_TESTS_HTTP_ROUTES_H

#include "http/http.h"

struct routes {
    struct loop *loop;
    struct http_config config;
    int file;     // of /file
    bool give_up; // a request whose peer has closed its side
    unsigned begun, refused, gone, ends[4];
    int refused_status;
    size_t streamed;           // bytes of bodies
    struct http_request *kept; // of /wait, /hold and /sse
};

// Fills in config (begin, refused, ctx); the rest is the caller's.
void routes_init(struct routes *t, struct loop *loop);

#endif
