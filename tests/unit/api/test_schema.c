// Declared objects: every fault of a request by name, and nothing refused that is sound.
#include "agent/edit.h"
#include "api/agent.h"
#include "api/functions.h"
#include "api/schema.h"
#include "codec/json.h"
#include "model/job.h"
#include "tools/tool.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct buf faults;
static enum schema_verdict verdict;

static const char *check(const struct schema *s, const char *json)
{
    struct json_error why;
    yyjson_doc *doc = json_parse(json, strlen(json), &why);
    assert_non_null(doc);
    buf_free(&faults);
    faults = BUF_INIT(65536);
    verdict = schema_check(s, yyjson_doc_get_root(doc), &faults);
    yyjson_doc_free(doc);
    assert_int_equal(verdict == SCHEMA_SOUND, faults.len == 0);
    return buf_text(&faults);
}

#define CODE "\"language\":\"python\",\"code\":\"1\""

static void takes_what_is_sound(void **state)
{
    (void)state;
    assert_string_equal(check(&schema_execute_code, "{" CODE "}"), "");
    assert_string_equal(
        check(&schema_execute_code,
              "{" CODE ",\"params\":{\"a\":[1e999]},\"timeout\":60,\"command\":[],\"limits\":"
              "{\"timeout_seconds\":2.5,\"cpu_seconds\":null},\"artifacts\":[\"a\",{\"path\":\"b\","
              "\"optional\":true}],\"session_id\":null,\"input_files\":[{\"target_path\":\"x\","
              "\"content_base64\":\"YWI=\",\"mode\":420}]}"),
        "");
    assert_string_equal(check(&schema_sandbox_job, "{\"env\":{\"A\":\"1\"},\"source\":\"tool\"}"),
                        "");
}

static void names_every_fault(void **state)
{
    (void)state;
    assert_string_equal(
        check(&schema_execute_code, "{\"timeout\":61,\"code\":1,\"nonesuch\":true}"),
        "language: is missing; code: must be a string, not 1; timeout: 61 is above the maximum of "
        "60; nonesuch: unknown field (value true)");
    assert_string_equal(check(&schema_execute_code, "{" CODE ",\"tiemout\":5}"),
                        "tiemout: unknown field (value 5); is timeout meant?");
    assert_string_equal(check(&schema_execute_code, "[]"), "body: must be an object, not []");
    assert_string_equal(check(&schema_execute_code, "{" CODE ",\"timeout\":0.5}"),
                        "timeout: must be a whole number, not 0.5");
    assert_string_equal(check(&schema_execute_code, "{" CODE ",\"timeout\":-1e99}"),
                        "timeout: -1e99 is below the minimum of 1");
    assert_string_equal(check(&schema_execute_code, "{\"code\":\"1\",\"language\":\"bash; id\"}"),
                        "language: \"bash; id\" is none of python, javascript (for bash and "
                        "commands: POST /api/v1/sandbox/jobs)");
}

static void names_the_place(void **state)
{
    (void)state;
    assert_string_equal(
        check(&schema_execute_code,
              "{" CODE ",\"input_files\":[{\"target_path\":\"x\",\"content_base64\":\"YQ==\"},"
              "{\"target_path\":\"\",\"content_base64\":\"!\",\"x\\u0000\\n\":1}]}"),
        "input_files[1].target_path: 0 bytes are below the minimum of 1; "
        "input_files[1].content_base64: \"!\" is not base64 with its padding; "
        "input_files[1].x\\u0000\\n: unknown field (value 1)");
    assert_string_equal(check(&schema_execute_code,
                              "{" CODE ",\"limits\":{\"memory_mb\":0,\"disk\":1,\"pids\":\"9\"}}"),
                        "limits.memory_mb: 0 is below the minimum of 32 MB; limits.disk: unknown "
                        "limit; is disk_mb meant?; limits.pids: must be a whole number, not \"9\"");
    assert_string_equal(check(&schema_sandbox_job, "{\"env\":{\"A\":1}}"),
                        "env.\"A\": must be a string, not 1");
    assert_string_equal(check(&schema_sandbox_job, "{\"artifacts\":[7]}"),
                        "artifacts[0]: must be a string or an object, not 7");
}

static void says_how_many_more(void **state)
{
    (void)state;
    char json[4096] = "{";
    for (int i = 0; i < 30; i++) {
        char one[16];
        snprintf(one, sizeof one, "%s\"u%d\":0", i ? "," : "", i);
        strcat(json, one);
    }
    strcat(json, "}");
    const char *text = check(&schema_session_create, json);
    assert_non_null(strstr(text, "u19: unknown field (value 0); and 10 more"));
    assert_null(strstr(text, "u20"));
}

// What is beyond the bound of an array is not looked at, however much it is.
static void says_that_there_are_too_many(void **state)
{
    (void)state;
    char json[4096] = "{\"artifacts\":[8";
    for (int i = 1; i < JOB_MAX_ARTIFACTS; i++) {
        strcat(json, ",\"a\"");
    }
    strcat(json, ",9,10]}");
    assert_string_equal(check(&schema_sandbox_job, json),
                        "artifacts: 102 elements are above the maximum of 100; "
                        "artifacts[0]: must be a string or an object, not 8");
}

static void tells_what_is_only_too_large(void **state)
{
    (void)state;
    static char json[JOB_MAX_CODE_BYTES + 100];
    static const char begin[] = "{\"language\":\"python\",\"code\":\"";
    memset(json, 'x', sizeof json);
    memcpy(json, begin, sizeof begin - 1);
    size_t at = sizeof begin - 1 + JOB_MAX_CODE_BYTES + 1;
    snprintf(json + at, sizeof json - at, "\"}");
    assert_string_equal(check(&schema_execute_code, json),
                        "code: 1048577 bytes are above the maximum of 1048576");
    assert_int_equal(verdict, SCHEMA_TOO_LARGE);
    snprintf(json + at, sizeof json - at, "\",\"timeout\":0}");
    check(&schema_execute_code, json);
    assert_int_equal(verdict, SCHEMA_FAULTY);
    memset(json + sizeof begin - 1, ' ', 1);
    snprintf(json + at - 1, sizeof json - at + 1, "\"}");
    assert_string_equal(check(&schema_execute_code, json), "");
}

static void reads_queries(void **state)
{
    (void)state;
    static const struct {
        const char *name, *value, *fault;
    } rows[] = {
        {"limit", "50", ""},
        {"limit", "0", "limit: 0 is below the minimum of 1"},
        {"limit", "1001", "limit: 1001 is above the maximum of 1000"},
        {"limit", "-1", "limit: must be a whole number, not \"-1\""},
        {"limit", "0x10", "limit: must be a whole number, not \"0x10\""},
        {"limit", "9223372036854775808", "limit: 9223372036854775808 is above the maximum of 1000"},
        {"limit", "18446744073709551616",
         "limit: must be a whole number, not "
         "\"18446744073709551616\""},
        {"limit", "01", "limit: must be a whole number without leading zeros"},
        {"limit", "", "limit: must be a whole number, not \"\""},
        {"status", "running", ""},
        {"recursive", "true", ""},
        {"recursive", "1", "recursive: must be true or false, not \"1\""},
        {"team", "a\n",
         "team: \"a\\n\" is not a team's name: up to 128 of A-Z a-z 0-9 . _ : @ -, the first a "
         "letter or a digit"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        buf_free(&faults);
        faults = BUF_INIT(65536);
        schema_check_query(schema_query(rows[i].name), rows[i].value, &faults);
        assert_string_equal(buf_text(&faults), rows[i].fault);
    }
}

static void knows_forms(void **state)
{
    (void)state;
    static const struct {
        enum schema_form form;
        const char *text;
        bool has;
    } rows[] = {
        {SCHEMA_FORM_TEAM, "team-1.a:b@c", true},
        {SCHEMA_FORM_TEAM, "", false},
        {SCHEMA_FORM_TEAM, ".a", false},
        {SCHEMA_FORM_TEAM, "a b", false},
        {SCHEMA_FORM_TEAM, "a\n", false},
        {SCHEMA_FORM_TOOL, "a", true},
        {SCHEMA_FORM_TOOL, "Z_9", true},
        {SCHEMA_FORM_TOOL, "", false},
        {SCHEMA_FORM_TOOL, "_a", false},
        {SCHEMA_FORM_TOOL, "9a", false},
        {SCHEMA_FORM_TOOL, "a-b", false},
        {SCHEMA_FORM_TOOL, "a\xc3\xa9", false},
        {SCHEMA_FORM_LINE, "", true},
        {SCHEMA_FORM_LINE, "\xe5\x90\x8d", true},
        {SCHEMA_FORM_LINE, "a\x1b[0m", false},
        {SCHEMA_FORM_LINE, "a\xc2\x85", false},
        {SCHEMA_FORM_LINE, "a\xe2\x80\xa8", false},
        {SCHEMA_FORM_BASE64, "", true},
        {SCHEMA_FORM_BASE64, "YQ==", true},
        {SCHEMA_FORM_BASE64, "YQ=", false},
        {SCHEMA_FORM_BASE64, "Y===", false},
        {SCHEMA_FORM_BASE64, "YQ-_", false},
        {SCHEMA_FORM_KEY_ID, "0123456789abcdef", true},
        {SCHEMA_FORM_KEY_ID, "0123456789abcdeF", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(schema_has_form(rows[i].form, rows[i].text, strlen(rows[i].text)),
                         rows[i].has);
    }
}

static void fields_are_sound(void **state)
{
    (void)state;
    for (const struct schema *const *s = schemas; *s; s++) {
        for (size_t i = 0; i < (*s)->n_fields; i++) {
            const struct schema_field *f = &(*s)->fields[i];
            bool of = f->type == SCHEMA_TEXT_OR || f->items == SCHEMA_TEXT_OR ||
                      (f->type == SCHEMA_ARRAY && f->items == SCHEMA_OBJECT);
            assert_non_null(f->name);
            assert_non_null(f->help);
            assert_true(f->min <= f->max || f->max == 0);
            assert_true(!of || f->of);
        }
    }
}

// What agents may send is declared, so that a model sees it; what is done with it is agent/'s.
static void agents_tools_are_declared(void **state)
{
    (void)state;
    for (int i = 0; i < EDIT_OPS; i++) {
        assert_string_equal(agent_edit_ops[i], edit_kinds[i].name);
    }
    assert_null(agent_edit_ops[EDIT_OPS]);
    assert_string_equal(check(&schema_agent_edit,
                              "{\"path\":\"a\",\"edits\":[{\"op\":\"cut\",\"line\":1,"
                              "\"end_line\":\"2#ab3f\"}]}"),
                        "");
    assert_string_equal(
        check(&schema_agent_edit, "{\"path\":\"a\",\"edits\":[{\"op\":\"cut\",\"line\":1.5}]}"),
        "edits[0].line: must be a whole number, not 1.5");
    assert_string_equal(
        check(&schema_agent_edit, "{\"path\":\"a\",\"edits\":[{\"op\":\"cut\",\"line\":true}]}"),
        "edits[0].line: must be a string or a whole number, not true");
}

// A code tool of such a name would stand beside the built-in one.
static void built_in_tools_keep_their_names(void **state)
{
    (void)state;
    size_t kept = 0;
    while (tool_builtin_names[kept]) {
        kept++;
    }
    assert_int_equal(kept, AGENT_TOOLS + FUNCTION_SNIPPETS);
    for (size_t i = 0; i < kept; i++) {
        const char *name =
            i < AGENT_TOOLS ? agent_tool_names[i] : function_snippets[i - AGENT_TOOLS].name;
        assert_string_equal(tool_builtin_of(name), name);
    }
    // What a tool may be made of is what its schema has.
    size_t known = 0;
    while (tool_config_names[known]) {
        AUTO_BUF struct buf name = BUF_INIT(64);
        buf_printf(&name, "{\"%s\":null}", tool_config_names[known++]);
        assert_null(strstr(check(&schema_tool_config, buf_text(&name)), "unknown field"));
    }
    assert_int_equal(schema_tool_config.n_fields, known + 1); // `dependencies`
    // What a caller may ask for is what a job may.
    assert_string_equal(check(&schema_tool_execute, "{\"timeout\":600}"), "");
    assert_string_equal(check(&schema_tool_execute, "{\"timeout\":601}"),
                        "timeout: 601 is above the maximum of 600");
    assert_int_equal(limit_specs[LIMIT_TIMEOUT].max, 600000);
}

static void models_are_given_one_piece(void **state)
{
    (void)state;
    static const char *const only[] = {"path", "edits", NULL};
    AUTO_BUF struct buf out = BUF_INIT(1 << 20);
    schema_write_whole(&out, NULL, &schema_agent_artifact, NULL);
    assert_int_equal(out.error, 0);
    assert_null(strstr(out.data, "$ref"));
    assert_null(strstr(out.data, "null"));
    assert_non_null(strstr(out.data, "\"items\":{\"anyOf\":[{\"type\":\"string\"},"
                                     "{\"type\":\"object\",\"required\":[\"path\"],"));
    buf_clear(&out);
    schema_write_whole(&out, NULL, &schema_execute_code, NULL); // with limits in it
    assert_null(strstr(out.data, "$ref"));
    assert_non_null(strstr(out.data, "\"memory_mb\":{"));
    buf_clear(&out);
    schema_write_whole(&out, NULL, &schema_agent_edit, only);
    assert_null(strstr(out.data, "\"tag\""));
    assert_non_null(strstr(out.data, "\"required\":[\"path\",\"edits\"]"));
    buf_clear(&out);
    schema_write_whole(&out, NULL, &schema_agent_write, NULL); // what is counted is what is told
    assert_non_null(strstr(out.data, "\"maxLength\":1000000"));
    // For openapi.json nothing has changed: others by name, and null beside what may be absent.
    buf_clear(&out);
    schema_write(&out, NULL, &schema_agent_artifact);
    assert_non_null(strstr(out.data, "#/components/schemas/AgentArtifactWish"));
    assert_non_null(strstr(out.data, "[\"integer\",\"null\"]"));
    buf_clear(&out);
    schema_write(&out, NULL, &schema_code_node);
    assert_non_null(strstr(out.data, "{\"anyOf\":[{\"type\":\"object\"},{\"type\":\"array\","
                                     "\"maxItems\":1000,\"items\":{\"$ref\":"
                                     "\"#/components/schemas/CodeNodeInput\"}},"));
    assert_non_null(strstr(out.data, "#/components/schemas/CodeNodeOutput"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_what_is_sound),
        cmocka_unit_test(names_every_fault),
        cmocka_unit_test(names_the_place),
        cmocka_unit_test(says_how_many_more),
        cmocka_unit_test(says_that_there_are_too_many),
        cmocka_unit_test(tells_what_is_only_too_large),
        cmocka_unit_test(reads_queries),
        cmocka_unit_test(knows_forms),
        cmocka_unit_test(fields_are_sound),
        cmocka_unit_test(agents_tools_are_declared),
        cmocka_unit_test(built_in_tools_keep_their_names),
        cmocka_unit_test(models_are_given_one_piece),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    buf_free(&faults);
    return failed;
}
