// Routes: which operation a path means, and ids that are looked at before anything else sees them.
#include "api/route.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ID "0193f0a1-0000-7000-8000-00000000000a"

static const struct api_route rows[] = {
    {.method = HTTP_M_GET, .path = "/jobs"},
    {.method = HTTP_M_POST, .path = "/jobs"},
    {.method = HTTP_M_GET, .path = "/jobs/{id}"},
    {.method = HTTP_M_GET, .path = "/jobs/{id}/artifacts/{name}"},
    {.method = HTTP_M_DELETE, .path = "/keys/{key}"},
    {.method = HTTP_M_POST, .path = "/sessions/{id}/files:move"},
    {.method = HTTP_M_PUT, .path = "/sessions/{id}/files/{path...}"},
    {.method = HTTP_M_GET, .path = "/tools/{id}"},
    {.method = HTTP_M_POST, .path = "/tools/import"},
    {.method = HTTP_M_DELETE, .path = "/tools/{id}/share/{team}"},
    {.method = HTTP_M_GET, .path = "/tools/{id}/versions/{version}"},
};
static const struct api_subject subject = {"s", "", rows, sizeof rows / sizeof *rows};
static const struct api_subject *const subjects[] = {&subject, NULL};

static enum api_found find(enum http_method method, const char *path, struct api_match *ret)
{
    static char copy[20000];
    snprintf(copy, sizeof copy, "%s", path);
    return api_route_find(subjects, method, copy, ret);
}

static void finds_rows(void **state)
{
    (void)state;
    struct api_match m;
    assert_int_equal(find(HTTP_M_POST, "/jobs", &m), API_FOUND);
    assert_ptr_equal(m.route, &rows[1]);
    assert_int_equal(find(HTTP_M_HEAD, "/jobs", &m), API_FOUND);
    assert_ptr_equal(m.route, &rows[0]);
    assert_int_equal(find(HTTP_M_GET, "/jobs/" ID "/artifacts/a b.png", &m), API_FOUND);
    assert_ptr_equal(m.route, &rows[3]);
    assert_string_equal(m.segment[0], ID);
    assert_string_equal(m.segment[1], "a b.png");
    assert_int_equal(find(HTTP_M_DELETE, "/keys/0123456789abcdef", &m), API_FOUND);
    assert_string_equal(m.segment[0], "0123456789abcdef");
}

static void gives_the_rest_of_a_path(void **state)
{
    (void)state;
    struct api_match m;
    assert_int_equal(find(HTTP_M_PUT, "/sessions/" ID "/files/a/b/c.txt", &m), API_FOUND);
    assert_string_equal(m.segment[0], ID);
    assert_string_equal(m.segment[1], "a/b/c.txt");
    assert_int_equal(find(HTTP_M_PUT, "/sessions/" ID "/files/", &m), API_FOUND);
    assert_string_equal(m.segment[1], "");
    assert_int_equal(find(HTTP_M_POST, "/sessions/" ID "/files:move", &m), API_FOUND);
    assert_ptr_equal(m.route, &rows[5]);
}

static void tells_methods(void **state)
{
    (void)state;
    struct api_match m;
    char allow[64];
    assert_int_equal(find(HTTP_M_DELETE, "/jobs", &m), API_NO_METHOD);
    api_route_allow(m.methods, allow, sizeof allow);
    assert_string_equal(allow, "GET, HEAD, POST, OPTIONS");
    assert_int_equal(find(HTTP_M_HEAD, "/sessions/" ID "/files:move", &m), API_NO_METHOD);
    api_route_allow(m.methods, allow, sizeof allow);
    assert_string_equal(allow, "POST, OPTIONS");
}

static void refuses_what_is_no_path(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "/",      "",      "/job",          "/jobs/",
        "/jobs2", "/JOBS", "/jobs/" ID "/", "/jobs/" ID "/artifacts/a/b"};
    struct api_match m;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        enum api_found f = find(HTTP_M_GET, wrong[i], &m);
        assert_true(f == API_NO_PATH || f == API_BAD_ID);
        assert_null(m.route);
    }
}

static void looks_at_ids_by_pattern(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "x",
        "..",
        "0193F0A1-0000-7000-8000-00000000000A",
        "0193f0a1-0000-7000-8000-00000000000",
        "0193f0a1-0000-7000-8000-00000000000ab",
        "0193f0a1-0000-7000-8000_00000000000a",
        "%2e%2e%2f",
        "g193f0a1-0000-7000-8000-00000000000a",
    };
    struct api_match m;
    char path[128];
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        snprintf(path, sizeof path, "/jobs/%s", wrong[i]);
        assert_int_equal(find(HTTP_M_GET, path, &m), API_BAD_ID);
        assert_null(m.route);
        assert_string_equal(m.bad, wrong[i]);
        assert_non_null(strstr(m.form, "a UUID"));
    }
    char *huge = malloc(10007);
    memset(huge, 'a', 10006);
    huge[10006] = '\0';
    memcpy(huge, "/jobs/", 6);
    assert_int_equal(find(HTTP_M_GET, huge, &m), API_BAD_ID);
    free(huge);
    assert_int_equal(find(HTTP_M_DELETE, "/keys/0123456789ABCDEF", &m), API_BAD_ID);
}

static void the_first_that_is_none_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *path, *bad, *form;
    } cases[] = {
        {"/tools/x/share/.a", "x", "a UUID"},
        {"/tools/" ID "/share/.a", ".a", "a team's name"},
        {"/tools/" ID "/versions/0", "0", "a version"},
        {"/keys/12", "12", "16 hexadecimal"},
        {"/sessions/12/files/a/b", "12", "a UUID"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct api_match m;
        assert_int_equal(find(HTTP_M_GET, cases[i].path, &m), API_BAD_ID);
        assert_string_equal(m.bad, cases[i].bad);
        assert_non_null(strstr(m.form, cases[i].form));
    }
}

static void a_fixed_word_is_no_id(void **state)
{
    (void)state;
    struct api_match m;
    char allow[64];
    assert_int_equal(find(HTTP_M_POST, "/tools/import", &m), API_FOUND);
    assert_int_equal(find(HTTP_M_GET, "/tools/import", &m), API_NO_METHOD);
    api_route_allow(m.methods, allow, sizeof allow);
    assert_string_equal(allow, "POST, OPTIONS");
    assert_int_equal(find(HTTP_M_GET, "/tools/imports", &m), API_BAD_ID);
    assert_int_equal(find(HTTP_M_POST, "/tools/" ID, &m), API_NO_METHOD);
    api_route_allow(m.methods, allow, sizeof allow);
    assert_string_equal(allow, "GET, HEAD, OPTIONS");
}

static void looks_at_teams_and_versions(void **state)
{
    (void)state;
    static const char *const versions[] = {"0", "01", "x", "1x", "-1", "1.0", "1000000000", ""};
    struct api_match m;
    char path[128];
    assert_int_equal(find(HTTP_M_DELETE, "/tools/" ID "/share/a.b:c@d", &m), API_FOUND);
    assert_string_equal(m.segment[1], "a.b:c@d");
    assert_int_equal(find(HTTP_M_DELETE, "/tools/" ID "/share/.a", &m), API_BAD_ID);
    assert_int_equal(find(HTTP_M_GET, "/tools/" ID "/versions/999999999", &m), API_FOUND);
    assert_string_equal(m.segment[1], "999999999");
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        snprintf(path, sizeof path, "/tools/" ID "/versions/%s", versions[i]);
        assert_int_equal(find(HTTP_M_GET, path, &m), API_BAD_ID);
    }
}

// Every row of the product: paths are different, names of parameters are declared, bodies fit.
static void rows_are_sound(void **state)
{
    (void)state;
    for (const struct api_subject *const *s = api_subjects; *s; s++) {
        for (size_t i = 0; i < (*s)->n; i++) {
            const struct api_route *r = &(*s)->routes[i];
            assert_non_null(r->handle);
            assert_non_null(r->summary);
            assert_int_equal(r->path[0], '/');
            assert_true(!r->request || r->body == API_JSON);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_rows),
        cmocka_unit_test(gives_the_rest_of_a_path),
        cmocka_unit_test(tells_methods),
        cmocka_unit_test(refuses_what_is_no_path),
        cmocka_unit_test(looks_at_ids_by_pattern),
        cmocka_unit_test(the_first_that_is_none_is_named),
        cmocka_unit_test(a_fixed_word_is_no_id),
        cmocka_unit_test(looks_at_teams_and_versions),
        cmocka_unit_test(rows_are_sound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
