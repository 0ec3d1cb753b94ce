// The description of the API: one strict JSON document whose references lead somewhere, and a page
// that holds every operation.
#include "api/internal.h"
#include "api/route.h"
#include "api/schema.h"
#include "codec/json.h"
#include "model/result.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct buf text;
static yyjson_doc *doc;

static int describe(void **state)
{
    struct json_error why;
    (void)state;
    text = BUF_INIT(16 << 20);
    if (api_openapi_write(&text)) {
        return -1;
    }
    doc = json_parse(text.data, text.len, &why);
    return doc ? 0 : -1;
}

static int forget(void **state)
{
    (void)state;
    yyjson_doc_free(doc);
    buf_free(&text);
    return 0;
}

static void every_body_has_an_example_that_is_taken(void **state)
{
    (void)state;
    for (const struct api_subject *const *s = api_subjects; *s; s++) {
        for (size_t i = 0; i < (*s)->n; i++) {
            const struct api_route *r = &(*s)->routes[i];
            struct json_error why;
            AUTO_BUF struct buf faults = BUF_INIT(4096);
            assert_true(!r->request == !r->example);
            yyjson_doc *body = r->example ? json_parse(r->example, strlen(r->example), &why) : NULL;
            if (r->example) {
                schema_check(r->request, yyjson_doc_get_root(body), &faults);
                assert_string_equal(buf_text(&faults), "");
            }
            yyjson_doc_free(body);
        }
    }
}

static void every_operation_is_there(void **state)
{
    (void)state;
    yyjson_val *paths = yyjson_obj_get(yyjson_doc_get_root(doc), "paths");
    size_t operations = 0, rows = 0, i, n, k, m;
    yyjson_val *path, *item, *method, *operation;
    const char *ids[256];
    yyjson_obj_foreach(paths, i, n, path, item)
    {
        assert_null(strstr(yyjson_get_str(path), "..."));
        yyjson_obj_foreach(item, k, m, method, operation)
        {
            ids[operations] = yyjson_get_str(yyjson_obj_get(operation, "operationId"));
            for (size_t o = 0; o < operations; o++) {
                assert_string_not_equal(ids[o], ids[operations]);
            }
            operations++;
        }
    }
    for (const struct api_subject *const *s = api_subjects; *s; s++) {
        rows += (*s)->n;
    }
    assert_int_equal(operations, rows);
}

static void every_reference_leads_somewhere(void **state)
{
    (void)state;
    static const char prefix[] = "\"$ref\":\"#/components/";
    yyjson_val *components = yyjson_obj_get(yyjson_doc_get_root(doc), "components");
    size_t seen = 0;
    for (const char *at = text.data; (at = strstr(at, prefix)) != NULL; seen++) {
        char kind[32], name[64];
        at += sizeof prefix - 1;
        assert_int_equal(sscanf(at, "%31[a-z]/%63[A-Za-z]\"", kind, name), 2);
        assert_non_null(yyjson_obj_get(yyjson_obj_get(components, kind), name));
    }
    assert_true(seen > 50);
}

// Names in a row of routes that no table has would be left out of the description in silence.
static void every_parameter_is_declared(void **state)
{
    (void)state;
    for (const struct api_subject *const *s = api_subjects; *s; s++) {
        for (size_t i = 0; i < (*s)->n; i++) {
            const char *lists[] = {(*s)->routes[i].query, (*s)->routes[i].headers};
            for (size_t k = 0; k < 2; k++) {
                for (const char *w = lists[k]; w && *w;) {
                    char name[64];
                    size_t n = strcspn(w, " ");
                    snprintf(name, sizeof name, "%.*s", (int)n, w);
                    assert_non_null(k ? schema_header(name) : schema_query(name));
                    w += n + strspn(w + n, " ");
                }
            }
        }
    }
    for (size_t i = 0; i < STATUS_COUNT; i++) {
        assert_string_equal(status_names_listed[i], status_names[i]);
    }
    assert_null(status_names_listed[STATUS_COUNT]);
}

static void the_page_is_whole(void **state)
{
    (void)state;
    struct buf page = BUF_INIT(16 << 20);
    char policy[API_POLICY_BYTES];
    assert_int_equal(api_docs_write(&page, policy), 0);
    assert_non_null(strstr(policy, "default-src 'none'; style-src 'sha256-"));
    assert_null(strstr(policy, "unsafe"));
    assert_non_null(strstr(page.data, "</html>"));
    assert_null(strstr(page.data, "<script"));
    assert_null(strstr(page.data, " style="));
    for (const struct schema *const *s = schemas; *s; s++) {
        char anchor[96];
        snprintf(anchor, sizeof anchor, "id=\"%s\"", (*s)->name);
        assert_non_null(strstr(page.data, anchor));
    }
    buf_free(&page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_operation_is_there),
        cmocka_unit_test(every_body_has_an_example_that_is_taken),
        cmocka_unit_test(every_reference_leads_somewhere),
        cmocka_unit_test(every_parameter_is_declared),
        cmocka_unit_test(the_page_is_whole),
    };
    return cmocka_run_group_tests(tests, describe, forget);
}
