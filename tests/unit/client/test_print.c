// Tables, columns, JSON: what a service says has no control character and no more lines than rows.
#include "base/fd.h"
#include "client/print.h"
#include "codec/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct print_column columns[] = {{"id", "id"}, {"what", "what"}, {"deep", "a.b"}};

static char *printed(const char *json, int mode)
{
    char *text = NULL;
    size_t len;
    struct json_error why;
    yyjson_doc *doc = json_parse(json, strlen(json), &why);
    yyjson_val *root = yyjson_doc_get_root(doc);
    FILE *out = open_memstream(&text, &len);
    assert_non_null(doc);
    int e = mode == 2   ? print_fields(out, root, columns, ARRAY_LEN(columns))
            : mode == 3 ? print_json(out, root)
                        : print_table(out, mode == 1, root, columns, ARRAY_LEN(columns));
    assert_int_equal(e, 0);
    fclose(out);
    yyjson_doc_free(doc);
    return text;
}

static void check(const char *json, int mode, const char *wanted)
{
    char *text = printed(json, mode);
    assert_string_equal(text, wanted);
    free(text);
}

static void tables(void **state)
{
    (void)state;
    const char *json = "[{\"id\":1.50,\"what\":\"\\u00e9\\u00e9\",\"a\":{\"b\":true}},"
                       "{\"id\":\"abcdef\",\"what\":null}]";
    check(json, 0, "1.50\t\xc3\xa9\xc3\xa9\tyes\nabcdef\t-\t-\n");
    check(json, 1, "id      what  deep\n1.50    \xc3\xa9\xc3\xa9    yes\nabcdef  -     -\n");
    check("[]", 0, "");
    check("{}", 0, "");
    check("[3,\"x\",[]]", 0, "-\t-\t-\n-\t-\t-\n-\t-\t-\n");
}

static void nothing_steers_the_reader(void **state)
{
    (void)state;
    check("[{\"id\":\"\\u001b[2Ja\\tb\\nc\\u007f\\u009b\",\"what\":{\"x\":\"\\n\"}}]", 0,
          "?[2Ja?b?c???\t{\"x\":\"\\n\"}\t-\n");
    check("{\"id\":\"a\\nb\",\"other\":1}", 2, "id: a?b\n");
}

static void json_is_whole(void **state)
{
    (void)state;
    check("{\"id\": 12345678901234567890.10, \"b\": [1 , 2]}", 3,
          "{\"id\":12345678901234567890.10,\"b\":[1,2]}\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables),
        cmocka_unit_test(nothing_steers_the_reader),
        cmocka_unit_test(json_is_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
