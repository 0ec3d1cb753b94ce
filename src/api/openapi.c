// openapi.c: the API described, out of the tables that it obeys: /openapi.json for programs, /docs
// for people. Made once, at the start.
#include "api/envelope.h"
#include "api/internal.h"
#include "api/route.h"
#include "api/schema.h"

#include "base/fd.h"
#include "codec/json_out.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { DOCUMENT_BYTES = 4 << 20 };

#ifndef ISLE_VERSION
#define ISLE_VERSION "unknown"
#endif

static const char *const method_keys[] = {
    [HTTP_M_GET] = "get",     [HTTP_M_POST] = "post",     [HTTP_M_PUT] = "put",
    [HTTP_M_PATCH] = "patch", [HTTP_M_DELETE] = "delete",
};

// "{path...}" is "{path}" to OpenAPI.
static void path_text(const char *path, char *text, size_t size)
{
    size_t n = 0;
    while (*path && n + 1 < size) {
        if (strncmp(path, "...}", 4) == 0) {
            path += 3;
        }
        text[n++] = *path++;
    }
    text[n] = '\0';
}

// "post_sandbox_jobs_id_cancel"
static void operation_id(const struct api_route *r, char *text, size_t size)
{
    static const char prefix[] = "/api/v1";
    const char *p = r->path;
    size_t n = (size_t)snprintf(text, size, "%s", method_keys[r->method]);
    p += strncmp(p, prefix, sizeof prefix - 1) == 0 ? sizeof prefix - 1 : 0;
    for (; *p && n + 1 < size; p++) {
        bool word = isalnum((unsigned char)*p);
        if (word || (text[n - 1] != '_' && isalnum((unsigned char)p[1]))) {
            text[n++] = word ? *p : '_';
        }
    }
    text[n] = '\0';
}

static void put_parameter(struct buf *out, const struct schema_field *f, const char *in,
                          bool required)
{
    json_begin(out, NULL, '{');
    json_put_text(out, "name", f->name);
    json_put_text(out, "in", in);
    json_put_bool(out, "required", required);
    if (f->help) {
        json_put_text(out, "description", f->help);
    }
    struct schema_field plain = *f;
    plain.required = true; // absent is not null here
    plain.help = NULL;
    schema_field_write(out, "schema", &plain);
    json_end(out, '}');
}

static void put_segments(struct buf *out, const char *path)
{
    static const struct schema_field kinds[] = {
        {.name = "id", .type = SCHEMA_TEXT, .form = SCHEMA_FORM_ID, .help = "its id"},
        {.name = "key", .type = SCHEMA_TEXT, .form = SCHEMA_FORM_KEY_ID, .help = "id of the key"},
        {.name = "team", .type = SCHEMA_TEXT, .form = SCHEMA_FORM_TEAM, .help = "a team"},
        {.name = "version", .type = SCHEMA_INT, .min = 1, .max = 999999999, .help = "its number"},
        {.name = "name", .type = SCHEMA_TEXT, .min = 1, .max = 1024, .help = "its name"},
        {.name = "path",
         .type = SCHEMA_TEXT,
         .max = 4096,
         .help = "below /workspace; its / may stand as they are"},
    };
    while ((path = strchr(path, '{')) != NULL) {
        path++;
        for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
            size_t n = strlen(kinds[i].name);
            if (strncmp(path, kinds[i].name, n) == 0 && strchr("}.", path[n])) {
                put_parameter(out, &kinds[i], "path", true);
            }
        }
    }
}

// Calls `put` for each of the words.
static void put_listed(struct buf *out, const char *words, const char *in,
                       const struct schema_field *(*find)(const char *name))
{
    char name[64];
    while (words && *words) {
        size_t n = strcspn(words, " ");
        snprintf(name, sizeof name, "%.*s", (int)n, words);
        const struct schema_field *f = find(name);
        if (f) {
            put_parameter(out, f, in, false);
        }
        words += n + strspn(words + n, " ");
    }
}

static void put_envelope(struct buf *out, const char *key, const struct schema *s, bool ok)
{
    char reference[96];
    json_begin(out, key, '{');
    json_put_text(out, "type", "object");
    json_put_json(out, "required", "[\"code\",\"data\",\"msg\"]");
    json_begin(out, "properties", '{');
    json_put_json(out, "code", ok ? "{\"const\":0}" : "{\"type\":\"integer\",\"minimum\":1000}");
    if (s) {
        snprintf(reference, sizeof reference, "{\"$ref\":\"#/components/schemas/%s\"}", s->name);
        json_put_json(out, "data", reference);
    } else {
        json_put_json(out, "data", "{\"type\":\"null\"}");
    }
    json_put_json(out, "msg", "{\"type\":\"string\"}");
    json_end(out, '}');
    json_end(out, '}');
}

static void put_answer(struct buf *out, const char *status, const char *help, const char *type,
                       const struct schema *s)
{
    json_begin(out, status, '{');
    json_put_text(out, "description", help);
    json_begin(out, "content", '{');
    json_begin(out, s ? "application/json" : type, '{');
    if (s) {
        put_envelope(out, "schema", s, true);
    }
    json_end(out, '}');
    json_end(out, '}');
    json_end(out, '}');
}

static void put_answers(struct buf *out, const struct api_route *r)
{
    char status[16];
    const char *help = r->response ? r->response->help : "What was asked for.";
    json_begin(out, "responses", '{');
    snprintf(status, sizeof status, "%d", r->success ? r->success : 200);
    put_answer(out, status, help, r->type ? r->type : "application/octet-stream", r->response);
    if (r->also) {
        put_answer(out, "200", r->also->help, NULL, r->also);
    }
    if (!r->response) {
        json_put_json(out, "206", "{\"description\":\"The range that was asked for.\"}");
        json_put_json(out, "304", "{\"description\":\"As the caller has it.\"}");
    }
    json_put_json(out, "4XX", "{\"$ref\":\"#/components/responses/Error\"}");
    json_put_json(out, "503", "{\"$ref\":\"#/components/responses/Error\"}");
    json_end(out, '}');
}

static void put_body(struct buf *out, const struct api_route *r)
{
    char reference[96];
    if (r->body == API_NO_BODY) {
        return;
    }
    bool needed = !r->request;
    for (size_t i = 0; r->request && i < r->request->n_fields; i++) {
        needed = needed || r->request->fields[i].required;
    }
    json_begin(out, "requestBody", '{');
    json_put_bool(out, "required", needed);
    json_begin(out, "content", '{');
    json_begin(out, r->request ? "application/json" : "application/octet-stream", '{');
    if (r->request) {
        snprintf(reference, sizeof reference, "{\"$ref\":\"#/components/schemas/%s\"}",
                 r->request->name);
        json_put_json(out, "schema", reference);
    }
    if (r->example) {
        json_put_json(out, "example", r->example);
    }
    json_end(out, '}');
    json_end(out, '}');
    json_end(out, '}');
}

static void put_operation(struct buf *out, const struct api_subject *s, const struct api_route *r)
{
    char id[96];
    operation_id(r, id, sizeof id);
    json_begin(out, method_keys[r->method], '{');
    json_put_text(out, "operationId", id);
    json_put_text(out, "summary", r->summary);
    json_begin(out, "tags", '[');
    json_put_text(out, NULL, s->name);
    json_end(out, ']');
    if (r->who == API_ANYONE) {
        json_put_json(out, "security", "[]");
    }
    json_begin(out, "parameters", '[');
    put_segments(out, r->path);
    put_listed(out, r->query, "query", schema_query);
    put_listed(out, r->headers, "header", schema_header);
    json_end(out, ']');
    put_body(out, r);
    put_answers(out, r);
    json_end(out, '}');
}

// Is this the first row with its path?
static bool is_first(const struct api_route *r)
{
    for (const struct api_subject *const *s = api_subjects; *s; s++) {
        for (size_t i = 0; i < (*s)->n; i++) {
            if (strcmp((*s)->routes[i].path, r->path) == 0) {
                return &(*s)->routes[i] == r;
            }
        }
    }
    return true;
}

static void put_path(struct buf *out, const char *path)
{
    char text[128];
    path_text(path, text, sizeof text);
    json_begin(out, text, '{');
    for (const struct api_subject *const *s = api_subjects; *s; s++) {
        for (size_t i = 0; i < (*s)->n; i++) {
            if (strcmp((*s)->routes[i].path, path) == 0) {
                put_operation(out, *s, &(*s)->routes[i]);
            }
        }
    }
    json_end(out, '}');
}

static void put_paths(struct buf *out)
{
    json_begin(out, "paths", '{');
    for (const struct api_subject *const *s = api_subjects; *s; s++) {
        for (size_t i = 0; i < (*s)->n; i++) {
            if (is_first(&(*s)->routes[i])) {
                put_path(out, (*s)->routes[i].path);
            }
        }
    }
    json_end(out, '}');
}

static void put_components(struct buf *out)
{
    json_begin(out, "components", '{');
    json_begin(out, "schemas", '{');
    for (const struct schema *const *s = schemas; *s; s++) {
        schema_write(out, (*s)->name, *s);
    }
    schema_limits_write(out);
    put_envelope(out, "Error", NULL, false);
    json_end(out, '}');
    json_put_json(out, "responses",
                  "{\"Error\":{\"description\":\"Refused: `code` says why, `msg` names field and "
                  "limit.\",\"content\":{\"application/json\":{\"schema\":{\"$ref\":"
                  "\"#/components/schemas/Error\"}}}}}");
    json_put_json(out, "securitySchemes",
                  "{\"bearer\":{\"type\":\"http\",\"scheme\":\"bearer\"},"
                  "\"apiKey\":{\"type\":\"apiKey\",\"in\":\"header\",\"name\":\"X-Api-Key\"}}");
    json_end(out, '}');
}

int api_openapi_write(struct buf *out)
{
    json_begin(out, NULL, '{');
    json_put_text(out, "openapi", "3.1.0");
    json_begin(out, "info", '{');
    json_put_text(out, "title", "isle");
    json_put_text(out, "version", ISLE_VERSION);
    json_put_text(out, "description", "Runs untrusted code and answers with what became of it.");
    json_end(out, '}');
    json_put_json(out, "security", "[{\"bearer\":[]},{\"apiKey\":[]},{}]");
    json_begin(out, "tags", '[');
    for (const struct api_subject *const *s = api_subjects; *s; s++) {
        json_begin(out, NULL, '{');
        json_put_text(out, "name", (*s)->name);
        json_put_text(out, "description", (*s)->help);
        json_end(out, '}');
    }
    json_end(out, ']');
    put_paths(out);
    put_components(out);
    json_end(out, '}');
    return out->error;
}

int api_openapi_init(struct api *a)
{
    a->openapi = BUF_INIT(DOCUMENT_BYTES);
    a->docs = BUF_INIT(DOCUMENT_BYTES);
    int e = api_openapi_write(&a->openapi);
    return e ? e : api_docs_write(&a->docs, a->docs_policy);
}

static void get_openapi(struct api_call *c)
{
    c->status = 200;
    http_reply(c->r, 200, "application/json", c->api->openapi.data, c->api->openapi.len);
}

static void get_docs(struct api_call *c)
{
    c->status = 200;
    http_set(c->r, "Content-Security-Policy", c->api->docs_policy);
    http_set(c->r, "X-Frame-Options", "DENY");
    http_set(c->r, "Referrer-Policy", "no-referrer");
    http_reply(c->r, 200, "text/html; charset=utf-8", c->api->docs.data, c->api->docs.len);
}

static const struct api_route routes[] = {
    {.method = HTTP_M_GET,
     .path = "/openapi.json",
     .who = API_ANYONE,
     .type = "application/json",
     .handle = get_openapi,
     .summary = "This API, for programs (OpenAPI 3.1)."},
    {.method = HTTP_M_GET,
     .path = "/docs",
     .who = API_ANYONE,
     .type = "text/html",
     .handle = get_docs,
     .summary = "This API, for people."},
};

const struct api_subject api_description = {"description", "The API described.", routes,
                                            ARRAY_LEN(routes)};
