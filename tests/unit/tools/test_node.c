// Declared outputs of a workflow node, and values held against them.
#include "codec/json.h"
#include "tools/node.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static yyjson_doc *parsed(const char *text)
{
    struct json_error why = {{0}};
    yyjson_doc *doc = json_parse_envelope(text, strlen(text), &why);
    if (!doc) {
        fail_msg("%s: %s", why.text, text);
    }
    return doc;
}

// Faults as they are told: a tab stands behind each path.
static const char *told(const struct buf *faults)
{
    static char text[1 << 16];
    size_t n = 0;
    for (const char *c = buf_text(faults); *c; c++) {
        text[n++] = *c == '\t' ? ':' : *c;
        text[n++] = ' ';
        n -= *c != '\t';
        assert_true(n + 2 < sizeof text);
    }
    text[n] = '\0';
    return text;
}

// The faults of a declaration are these lines.
static void declared_says(const char *declared, const char *faults)
{
    yyjson_doc *doc = parsed(declared);
    struct buf said = BUF_INIT(1 << 20);
    assert_int_equal(node_declared_check(yyjson_doc_get_root(doc), &said), *faults ? -EINVAL : 0);
    assert_string_equal(told(&said), faults);
    buf_free(&said);
    yyjson_doc_free(doc);
}

#define ONE(type, spec) "[{\"name\":\"x\",\"type\":\"" type "\",\"typeSpec\":" spec "}]"
#define TYPES "must be string, number, integer, boolean, object, array, any or array[TYPE], not "

static void takes_declarations(void **state)
{
    (void)state;
    static const char *const sound[] = {
        "null",
        "[]",
        "[{\"name\":\"a\",\"type\":\"string\"},{\"name\":\"b\",\"type\":\"any\",\"typeSpec\":null}"
        "]",
        "[{\"name\":\"a\",\"type\":\"array[array[integer]]\"}]",
        ONE("object", "{}"),
        ONE("object", "{\"properties\":{\"a\":\"number\",\"b\":{\"type\":\"array[object]\","
                      "\"items\":{\"required\":[\"c\"]}}},\"required\":[\"a\",\"z\"]}"),
        ONE("array[string]", "{\"items\":{\"enum\":[\"a\",\"b\"]}}"),
        ONE("array[string]", "{\"items\":\"string\",\"description\":\"names\"}"),
        ONE("integer", "{\"enum\":[1,2,null],\"nullable\":true,\"type\":\"integer\"}"),
    };
    for (size_t i = 0; i < sizeof sound / sizeof *sound; i++) {
        declared_says(sound[i], "");
    }
}

static void refuses_declarations(void **state)
{
    (void)state;
    static const struct {
        const char *declared, *faults;
    } rows[] = {
        {"5", "outputs: must be a list of up to 100 {name, type, typeSpec?}, not 5"},
        {"[5]", "outputs[0]: must be {name, type, typeSpec?}, not 5"},
        {"[{\"name\":\"\",\"type\":\"text\",\"kind\":1}]",
         "outputs[0].kind: unknown field: an output has name, type and typeSpec\n"
         "outputs[0].name: must be a text of 1 to 256 bytes, not \"\"\n"
         "outputs[0].type: " TYPES "\"text\""},
        {"[{\"name\":\"a\"}]", "outputs[0].type: is missing"},
        {"[{\"name\":\"a\",\"type\":\"any\"},{\"name\":\"a\",\"type\":\"any\"}]",
         "outputs[1].name: \"a\" is declared twice"},
        {"[{\"name\":\"a\",\"type\":\"array[]\"}]", "outputs[0].type: " TYPES "\"array[]\""},
        {"[{\"name\":\"a\",\"type\":\"array[array[string]\"}]",
         "outputs[0].type: " TYPES "\"array[array[string]\""},
        {ONE("object", "7"), "outputs[0].typeSpec: must be the name of a type or an object, not 7"},
        {ONE("object", "\"array\""),
         "outputs[0].typeSpec: must be object, as is said around it, not \"array\""},
        {ONE("array[string]", "{\"items\":{\"type\":\"number\"}}"),
         "outputs[0].typeSpec.items.type: must be string, as is said around it, not \"number\""},
        {ONE("string", "{\"properties\":{},\"items\":{},\"required\":[]}"),
         "outputs[0].typeSpec.properties: must be an object of up to 100 names, of type object, "
         "not {}\n"
         "outputs[0].typeSpec.required: is for objects only, not []\n"
         "outputs[0].typeSpec.items: is for arrays only, not {}"},
        {ONE("object", "{\"properties\":{\"a b\":{\"typ\":1}}}"),
         "outputs[0].typeSpec.properties[\"a b\"].typ: unknown field: a typeSpec has type, "
         "properties, required, items, enum, nullable and description"},
        {ONE("number", "{\"enum\":[1,\"2\"],\"nullable\":1}"),
         "outputs[0].typeSpec.nullable: must be true or false, not 1\n"
         "outputs[0].typeSpec.enum: must have values of type number, not \"2\""},
        {ONE("any", "{\"enum\":[]}"),
         "outputs[0].typeSpec.enum: must be a list of up to 100 values, not []"},
        {ONE("object", "{\"enum\":[1]}"),
         "outputs[0].typeSpec.enum: is for neither objects nor arrays, not [1]"},
        {ONE("object", "{\"required\":[1]}"), "outputs[0].typeSpec.required: must be names, not 1"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        declared_says(rows[i].declared, rows[i].faults);
    }
}

// `open` so many times, then `inner`, then `close` as often.
static char *nested(const char *before, const char *open, size_t n, const char *inner,
                    const char *close, const char *after)
{
    struct buf b = BUF_INIT(1 << 20);
    buf_puts(&b, before);
    for (size_t i = 0; i < n; i++) {
        buf_puts(&b, open);
    }
    buf_puts(&b, inner);
    for (size_t i = 0; i < n; i++) {
        buf_puts(&b, close);
    }
    buf_puts(&b, after);
    assert_int_equal(b.error, 0);
    return buf_take(&b);
}

static int verdict(const char *declared, const char *returned, struct buf *out,
                   struct buf *undeclared, struct buf *faults)
{
    yyjson_doc *types = parsed(declared), *value = parsed(returned);
    int e = node_outputs(yyjson_doc_get_root(types), yyjson_doc_get_root(value), out, undeclared,
                         faults);
    yyjson_doc_free(types);
    yyjson_doc_free(value);
    return e;
}

static void bounds_depth(void **state)
{
    (void)state;
    static const char open[] = "{\"items\":", before[] = "[{\"name\":\"x\",\"type\":\"array\","
                                                         "\"typeSpec\":";
    char *fits = nested(before, open, NODE_TYPE_DEPTH_MAX, "\"number\"", "}", "}]");
    declared_says(fits, "");
    char *deep = nested(before, open, NODE_TYPE_DEPTH_MAX, "{}", "}", "}]");
    yyjson_doc *doc = parsed(deep);
    struct buf said = BUF_INIT(1 << 20), ignored = BUF_INIT(1 << 20);
    assert_int_equal(node_declared_check(yyjson_doc_get_root(doc), &said), -EINVAL);
    assert_non_null(strstr(told(&said), ".items: nested more than 16 levels deep"));
    yyjson_doc_free(doc);
    // as deep as both ways together lead
    char *both = nested("[{\"name\":\"x\",\"type\":\"", "array[", NODE_TYPE_DEPTH_MAX - 1, "string",
                        "]", "\"}]");
    declared_says(both, "");
    char *value = nested("{\"x\":", "[", NODE_TYPE_DEPTH_MAX - 1, "5", "]", "}");
    buf_clear(&said);
    assert_int_equal(verdict(both, value, &ignored, &ignored, &said), -EINVAL);
    assert_string_equal(told(&said), "outputs.x[0][0][0][0][0][0][0][0][0][0][0][0][0][0][0]: "
                                     "string expected, got number");
    char *over = nested("[{\"name\":\"x\",\"type\":\"", "array[", NODE_TYPE_DEPTH_MAX, "string",
                        "]", "\"}]");
    doc = parsed(over);
    assert_int_equal(node_declared_check(yyjson_doc_get_root(doc), &said), -EINVAL);
    yyjson_doc_free(doc);
    free(fits), free(deep), free(both), free(value), free(over);
    buf_free(&said), buf_free(&ignored);
}

static void passes_on(void **state)
{
    (void)state;
    static const struct {
        const char *declared, *returned, *outputs, *undeclared;
    } rows[] = {
        {"null", "{\"a\":1}", "{\"a\":1}", "[]"},
        {"[]", "12345678901234567890.10", "{\"result\":12345678901234567890.10}", "[]"},
        {"[{\"name\":\"n\",\"type\":\"integer\"},{\"name\":\"f\",\"type\":\"number\"}]",
         "{\"f\":1.10,\"g\":0,\"n\":-12345678901234567890,\"a\\\"b\":1}",
         "{\"n\":-12345678901234567890,\"f\":1.10}", "[\"g\",\"a\\\"b\"]"},
        {"[{\"name\":\"result\",\"type\":\"array[any]\"}]", "[1,null,{}]",
         "{\"result\":[1,null,{}]}", "[]"},
        {ONE("string", "{\"nullable\":true}"), "{\"x\":null}", "{\"x\":null}", "[]"},
        {ONE("any", "{}"), "{\"x\":null}", "{\"x\":null}", "[]"},
        {ONE("number", "{\"enum\":[1,1.0]}"), "{\"x\":1.0}", "{\"x\":1.0}", "[]"},
        {ONE("object", "{\"properties\":{\"a\":\"string\"}}"), "{\"x\":{\"b\":5}}",
         "{\"x\":{\"b\":5}}", "[]"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct buf out = BUF_INIT(4096), others = BUF_INIT(4096), faults = BUF_INIT(4096);
        assert_int_equal(verdict(rows[i].declared, rows[i].returned, &out, &others, &faults), 0);
        assert_string_equal(buf_text(&out), rows[i].outputs);
        assert_string_equal(buf_text(&others), rows[i].undeclared);
        assert_int_equal(faults.len, 0);
        buf_free(&out), buf_free(&others), buf_free(&faults);
    }
}

static void names_mismatches(void **state)
{
    (void)state;
    static const struct {
        const char *declared, *returned, *faults;
    } rows[] = {
        {ONE("number", "null"), "{\"y\":1}", "outputs.x: is missing"},
        {ONE("string", "null"), "null", "outputs.x: is missing"},
        {ONE("number", "null"), "{\"x\":null}", "outputs.x: number expected, got null"},
        {ONE("integer", "null"), "{\"x\":2.0}", "outputs.x: integer expected, got number 2.0"},
        {ONE("integer", "null"), "{\"x\":1e3}", "outputs.x: integer expected, got number 1e3"},
        {ONE("integer", "null"), "{\"x\":\"2\"}", "outputs.x: integer expected, got string"},
        {ONE("boolean", "null"), "{\"x\":0}", "outputs.x: boolean expected, got number"},
        {ONE("object", "null"), "{\"x\":[]}", "outputs.x: object expected, got array"},
        {ONE("array[string]", "null"), "{\"x\":{}}",
         "outputs.x: array[string] expected, got object"},
        {ONE("array[string]", "null"), "{\"x\":[\"a\",1,null]}",
         "outputs.x[1]: string expected, got number\noutputs.x[2]: string expected, got null"},
        {ONE("string", "{\"enum\":[\"a\",\"b\"]}"), "{\"x\":\"c\"}",
         "outputs.x: \"c\" is none of the values of its enum"},
        {ONE("number", "{\"enum\":[1]}"), "{\"x\":1.0}",
         "outputs.x: 1.0 is none of the values of its enum"},
        {ONE("array[object]",
             "{\"items\":{\"properties\":{\"a b\":{\"items\":\"string\"},\"p\":\"number\"},"
             "\"required\":[\"p\",\"q\"]}}"),
         "{\"x\":[{\"p\":1,\"q\":1},{\"p\":\"1\",\"a b\":[\"s\",5]}]}",
         "outputs.x[1].q: is missing\noutputs.x[1].p: number expected, got string\n"
         "outputs.x[1][\"a b\"][1]: string expected, got number"},
        // what follows a container is looked at, too
        {"[{\"name\":\"x\",\"type\":\"array[array[string]]\"},{\"name\":\"y z\",\"type\":"
         "\"string\"}]",
         "{\"x\":[[\"a\"],[],[\"b\",2],\"c\"],\"y z\":3}",
         "outputs.x[2][1]: string expected, got number\n"
         "outputs.x[3]: array[string] expected, got string\n"
         "outputs[\"y z\"]: string expected, got number"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct buf out = BUF_INIT(4096), others = BUF_INIT(4096), faults = BUF_INIT(4096);
        assert_int_equal(verdict(rows[i].declared, rows[i].returned, &out, &others, &faults),
                         -EINVAL);
        assert_string_equal(told(&faults), rows[i].faults);
        buf_free(&out), buf_free(&others), buf_free(&faults);
    }
}

// Twenty faults are named, and what comes is not walked through to its end for more.
static void bounds_what_is_named(void **state)
{
    (void)state;
    char *value = nested("{\"x\":[1", ",1", 100000, "", "", "]}");
    struct buf out = BUF_INIT(4096), others = BUF_INIT(1 << 20), faults = BUF_INIT(4096);
    assert_int_equal(verdict(ONE("array[string]", "null"), value, &out, &others, &faults), -EINVAL);
    free(value);
    assert_non_null(strstr(told(&faults), "outputs.x[19]: string expected, got number\n"));
    assert_string_equal(buf_text(&faults) + faults.len - 9, "\nand more");
    // names that nothing declares: a hundred, and none in full length
    struct buf many = BUF_INIT(1 << 20);
    buf_puts(&many, "{\"x\":[]");
    for (int i = 0; i < 150; i++) {
        buf_printf(&many, ",\"%03d%0*d\":0", i, 400, 0);
    }
    buf_putc(&many, '}');
    buf_clear(&out), buf_clear(&others), buf_clear(&faults);
    assert_int_equal(verdict(ONE("array", "null"), buf_text(&many), &out, &others, &faults), 0);
    yyjson_doc *doc = parsed(buf_text(&others));
    assert_int_equal(yyjson_arr_size(yyjson_doc_get_root(doc)), NODE_UNDECLARED_MAX);
    assert_int_equal(yyjson_get_len(yyjson_arr_get_last(yyjson_doc_get_root(doc))), NODE_NAME_MAX);
    yyjson_doc_free(doc);
    buf_free(&out), buf_free(&others), buf_free(&faults), buf_free(&many);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_declarations), cmocka_unit_test(refuses_declarations),
        cmocka_unit_test(bounds_depth),       cmocka_unit_test(passes_on),
        cmocka_unit_test(names_mismatches),   cmocka_unit_test(bounds_what_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
