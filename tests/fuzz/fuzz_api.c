// What a request is checked by before a handler sees it: routes, declared objects, queries. The
// first byte says which; the rest is hostile.
#include "api/route.h"
#include "api/schema.h"
#include "codec/json.h"
#include "codec/utf8.h"
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

enum { FAULT_BYTES = 64 << 10 };

static void find(const char *text)
{
    static const enum http_method methods[] = {HTTP_M_GET, HTTP_M_POST, HTTP_M_PUT, HTTP_M_DELETE};
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        struct api_match m;
        char *path = strdup(text);
        size_t len = strlen(text);
        enum api_found f = api_route_find(api_subjects, methods[i], path, &m);
        MUST((f == API_FOUND) == (m.route != NULL));
        for (size_t k = 0; m.route && k < API_MAX_SEGMENTS && m.segment[k]; k++) {
            MUST(m.segment[k] > path && m.segment[k] <= path + len);
            MUST(strlen(m.segment[k]) <= len);
        }
        // Whatever stands for {id} is an id.
        const char *id = m.route ? strstr(m.route->path, "{id}") : NULL;
        MUST(!id || schema_has_form(SCHEMA_FORM_ID, m.segment[0], strlen(m.segment[0])));
        free(path);
    }
}

static void check(const struct schema *s, const char *data, size_t len)
{
    struct json_error why;
    struct buf faults = BUF_INIT(FAULT_BYTES);
    yyjson_doc *doc = json_parse_envelope(data, len, &why);
    if (doc) {
        enum schema_verdict v = schema_check(s, yyjson_doc_get_root(doc), &faults);
        MUST((v == SCHEMA_SOUND) == (faults.len == 0) && !faults.error);
        MUST(utf8_valid(buf_text(&faults), faults.len));
        MUST(!strpbrk(buf_text(&faults), "\n\r\x1b"));
    }
    yyjson_doc_free(doc);
    buf_free(&faults);
}

static void ask(const char *text)
{
    static const char *const names[] = {"wait", "status", "limit", "team", "recursive", "path"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct buf faults = BUF_INIT(FAULT_BYTES);
        unsigned n = schema_check_query(schema_query(names[i]), text, &faults);
        MUST((n == 0) == (faults.len == 0));
        buf_free(&faults);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    if (len == 0) {
        return 0;
    }
    const char *rest = (const char *)data + 1;
    char *text = malloc(len);
    memcpy(text, rest, len - 1);
    text[len - 1] = '\0';
    if (data[0] == 'p') {
        find(text);
    } else if (data[0] == 'q') {
        ask(text);
    } else {
        size_t n = 0;
        while (schemas[n]) {
            n++;
        }
        check(schemas[data[0] % n], rest, len - 1);
    }
    free(text);
    return 0;
}
