// Code tools: what a definition may be, every fault by its path; its canonical form; arguments; the
// job of a call. JSON is written with ' for ".
#include "base/fd.h"
#include "codec/json.h"
#include "tools/tool.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { TEXT_BYTES = 4 << 20 };

static yyjson_doc *read_json(const char *text)
{
    struct json_error why = {""};
    char *copy = strdup(text);
    assert_non_null(copy);
    for (char *p = copy; *p; p++) {
        *p = *p == '\'' ? '"' : *p;
    }
    yyjson_doc *doc = json_parse_envelope(copy, strlen(copy), &why);
    if (!doc) {
        fail_msg("%s: %s", why.text, text);
    }
    free(copy);
    return doc;
}

static int parse(const char *text, const char *base, struct tool *ret, struct buf *faults)
{
    yyjson_doc *doc = read_json(text), *under = base ? read_json(base) : NULL;
    int e = tool_parse(yyjson_doc_get_root(doc), yyjson_doc_get_root(under), ret, faults);
    yyjson_doc_free(doc); // the tool keeps nothing of it
    yyjson_doc_free(under);
    return e;
}

static struct tool tool_of(const char *text)
{
    AUTO_BUF struct buf faults = BUF_INIT(TOOL_FAULTS_BYTES);
    struct tool t;
    if (parse(text, NULL, &t, &faults)) {
        fail_msg("%s: %s", buf_text(&faults), text);
    }
    return t;
}

static void is_written(const struct tool *t, const char *want)
{
    AUTO_BUF struct buf out = BUF_INIT(TEXT_BYTES);
    assert_int_equal(tool_write(&out, t), 0);
    for (size_t i = 0; i < out.len; i++) {
        out.data[i] = out.data[i] == '"' ? '\'' : out.data[i];
    }
    assert_string_equal(buf_text(&out), want);
}

static void is_refused(const char *text, const char *want)
{
    AUTO_BUF struct buf faults = BUF_INIT(TOOL_FAULTS_BYTES);
    struct tool t;
    assert_int_equal(parse(text, NULL, &t, &faults), -EINVAL);
    assert_string_equal(buf_text(&faults), want);
    tool_done(&t);
}

#define CODE "'code_config':{'language':'python','code':'return 1'}"

static void a_whole_definition(void **state)
{
    (void)state;
    static const char text[] =
        "{'is_enabled':false,'name':'Add_2','display_name':'Add','description':'adds\\nnumbers',"
        "'icon':'\xe2\x9e\x95','category':'math','parameters':["
        "{'name':'a','type':'integer','description':'first','required':true},"
        "{'name':'how','type':'string','default':'up','enum':['up','down']},"
        "{'name':'list','type':'array','items':'number','enum':null,'default':[1.50,2e3]},"
        "{'name':'any','type':'array','items':{}}],"
        "'code_config':{'limits':{'timeout_seconds':2.5},'code':'return 1','language':'python',"
        "'env':null,'js_packages':[],'artifacts':['a.txt',{'path':'b','optional':true}]}}";
    struct tool t = tool_of(text);
    assert_string_equal(t.name, "Add_2");
    assert_false(t.enabled);
    assert_true(t.enabled_given);
    assert_int_equal(t.n_parameters, 4);
    assert_int_equal(t.parameters[2].items, TOOL_NUMBER);
    assert_int_equal(t.parameters[3].items, TOOL_TYPES);
    assert_int_equal(t.timeout_ms, 2500);
    is_written(
        &t, "{'name':'Add_2','display_name':'Add','description':'adds\\nnumbers','icon':'"
            "\xe2\x9e\x95','category':'math','parameters':["
            "{'name':'a','type':'integer','description':'first','required':true},"
            "{'name':'how','type':'string','required':false,'default':'up','enum':['up','down']},"
            "{'name':'list','type':'array','required':false,'default':[1.50,2e3],"
            "'items':{'type':'number'}},"
            "{'name':'any','type':'array','required':false,'items':{}}],"
            "'code_config':{'language':'python','code':'return 1','js_packages':[],"
            "'artifacts':['a.txt',{'path':'b','optional':true}],"
            "'limits':{'timeout_seconds':2.5}}}");
    tool_done(&t);
}

static void the_least_definition(void **state)
{
    (void)state;
    struct tool t = tool_of("{'name':'t','parameters':null,'icon':''," CODE "}");
    assert_true(t.enabled);
    assert_false(t.enabled_given);
    assert_int_equal(t.timeout_ms, 0);
    is_written(&t, "{'name':'t','parameters':[]," CODE "}");
    tool_done(&t);
}

static void every_fault_has_its_path(void **state)
{
    (void)state;
    is_refused("[]", "tool: must be an object, not []");
    is_refused("{}", "name: is missing; code_config: is missing");
    is_refused(
        "{'name':'2x','display_name':'a\\nb','icon':7,'is_enabled':'yes','parameters':["
        "{'name':'a','type':'float','requird':true},"
        "{'name':'a','type':'string','default':5},"
        "7,"
        "{'type':'integer','enum':[1,'x',1]},"
        "{'name':' b','type':'string','items':'string','required':1},"
        "{'name':'c','type':'array','items':{'type':'text','x':1}}],"
        "'code_config':{'language':'ruby','cod':'x','params':{}}}",
        "name: \"2x\" is not a name of a tool: letters, digits and _, a letter first; "
        "display_name: must be one line without control characters, not \"a\\nb\"; "
        "icon: must be a string, not 7; is_enabled: must be true or false, not \"yes\"; "
        "parameters[0].requird: unknown field (value true); is required meant?; "
        "parameters[0].type: \"float\" is none of string, number, integer, boolean, object, array; "
        "parameters[1].name: \"a\" is the name of parameters[0], too; "
        "parameters[1].default: must be a string, not 5; "
        "parameters[2]: must be an object, not 7; "
        "parameters[3].name: is missing; "
        "parameters[3].enum[1]: must be an integer, written without fraction and exponent, not "
        "\"x\"; "
        "parameters[3].enum[2]: 1 is there twice; "
        "parameters[4].name: must be a name without spaces around it, not \" b\"; "
        "parameters[4].required: must be true or false, not 1; "
        "parameters[4].items: only a parameter of type array has items; "
        "parameters[5].items.x: unknown field (value 1); "
        "parameters[5].items: \"text\" is none of string, number, integer, boolean, object, array; "
        "code_config.cod: unknown field (value \"x\"); is code meant?; "
        "code_config.params: unknown field (value {}); "
        "code_config.language: \"ruby\" is neither python nor javascript; and 1 more");
}

static void code_config_is_checked_as_a_job(void **state)
{
    (void)state;
    is_refused(
        "{'name':'t','code_config':{'language':'python','code':'','env':{'LD_PRELOAD':'x'},"
        "'limits':{'timeout_seconds':601,'memory_mb':'much','pids':64},"
        "'artifacts':['../x'],'python_packages':['numpy'],"
        "'node_package_registry_url':'ftp://x','network':'proxy'}}",
        "code_config.env.LD_PRELOAD: refused: it steers a loader or an interpreter; set it in "
        "the job's own code if it is needed; "
        "code_config.network: proxy is not available in this version; "
        "code_config.limits.timeout_seconds: 601 is above the maximum of 600 s; "
        "code_config.limits.memory_mb: must be a whole number, not \"much\"; "
        "code_config.artifacts[0]: \"../x\" may not contain \"..\"; "
        "code_config.node_package_registry_url: must be an http or https URL without name "
        "and password, not \"ftp://x\"; "
        "code_config.python_packages[0]: must be NAME==VERSION, not \"numpy\"");
    is_refused("{'name':'t','code_config':{'language':'python','code':'x','command':['ls']}}",
               "code_config.command: may not be given together with code");
    is_refused("{'name':'t','code_config':{'language':'bash','code':'ls'}}",
               "code_config.language: \"bash\" is neither python nor javascript");
    struct tool t = tool_of("{'name':'t','code_config':{'language':'python','code':'',"
                            "'command':['python3'],'python_packages':['numpy==1.0']}}");
    tool_done(&t);
}

static void dependencies_of_older_platforms(void **state)
{
    (void)state;
    struct tool t = tool_of(
        "{'name':'t','code_config':{'language':'python','code':'x','python_packages':['a==1'],"
        "'dependencies':['b==2.0',{'name':'c','version':'3'},{'name':'a','version':'==1'}]}}");
    is_written(&t, "{'name':'t','parameters':[],'code_config':{'language':'python','code':'x',"
                   "'python_packages':['a==1','b==2.0','c==3']}}");
    tool_done(&t);
    // Of one that both name, in whichever spelling, the version of the packages stays.
    t = tool_of("{'name':'t','code_config':{'language':'python','code':'x','python_packages':"
                "['My.Pack==1'],'dependencies':['my-pack==2','my__pack[x]==3','b==1']}}");
    is_written(&t, "{'name':'t','parameters':[],'code_config':{'language':'python','code':'x',"
                   "'python_packages':['My.Pack==1','b==1']}}");
    tool_done(&t);
    is_refused("{'name':'t','code_config':{'language':'python','code':'x',"
               "'dependencies':['a==1','A==2']}}",
               "code_config.python_packages[1]: \"A\" is there twice, as [0]");
    t = tool_of("{'name':'t','code_config':{'language':'javascript','code':'x',"
                "'dependencies':[{'name':'@a/b','version':'1.2.3'},'left-pad@1.3.0']}}");
    is_written(&t, "{'name':'t','parameters':[],'code_config':{'language':'javascript','code':'x',"
                   "'js_packages':['@a/b@1.2.3','left-pad@1.3.0']}}");
    tool_done(&t);
    t = tool_of("{'name':'t','code_config':{'language':'python','code':'x','dependencies':[]}}");
    is_written(&t, "{'name':'t','parameters':[],'code_config':{'language':'python','code':'x'}}");
    tool_done(&t);
    is_refused("{'name':'t','code_config':{'language':'python','code':'x',"
               "'dependencies':['b',{'name':'c','version':''},7]}}",
               "code_config.dependencies[0]: must name a package and its exact version, as "
               "NAME==VERSION, not \"b\"; code_config.dependencies[1]: must name a package and its "
               "exact version, as NAME==VERSION, not {\"name\":\"c\",\"version\":\"\"}; "
               "code_config.dependencies[2]: must name a package and its exact version, as "
               "NAME==VERSION, not 7");
    // What was passed over might say another package than the one that is saved.
    static const char *const more[] = {
        "{'name':'a==1','version':2}",          "{'name':'a==1','version':['2']}",
        "{'name':'a','version':'1\\u0000.5'}",  "{'name':'a','version':'1','index_url':'x'}",
        "{'name':'a==1','version':'2'}",        "{'name':'a\\u0000','version':'1'}",
        "{'name':'a==1','version':null,'x':1}",
    };
    for (size_t i = 0; i < ARRAY_LEN(more); i++) {
        char text[256], quoted[128], want[256];
        snprintf(text, sizeof text,
                 "{'name':'t','code_config':{'language':'python','code':'x','dependencies':[%s]}}",
                 more[i]);
        snprintf(quoted, sizeof quoted, "%s", more[i]);
        for (char *c = quoted; *c; c++) {
            *c = *c == '\'' ? '"' : *c;
        }
        snprintf(want, sizeof want,
                 "code_config.dependencies[0]: must name a package and its exact version, as "
                 "NAME==VERSION, not %s",
                 quoted);
        is_refused(text, want);
    }
    t = tool_of("{'name':'t','code_config':{'language':'python','code':'x',"
                "'dependencies':[{'name':'a==1','version':null}]}}");
    assert_non_null(strstr(t.code_config, "\"python_packages\":[\"a==1\"]"));
    tool_done(&t);
}

static void built_in_names_are_taken(void **state)
{
    (void)state;
    for (const char *const *name = tool_builtin_names; *name; name++) {
        char text[256], want[256];
        snprintf(text, sizeof text, "{'name':'%s'," CODE "}", *name);
        snprintf(want, sizeof want, "name: \"%s\" is the name of the built-in tool %s", *name,
                 *name);
        is_refused(text, want);
    }
    is_refused("{'name':'Bash'," CODE "}", "name: \"Bash\" is the name of the built-in tool bash");
    is_refused("{'name':'RUN_PYTHON'," CODE "}",
               "name: \"RUN_PYTHON\" is the name of the built-in tool run_python");
    struct tool t = tool_of("{'name':'bash_'," CODE "}");
    tool_done(&t);
}

// A tool that was saved before there was a built-in one of its name is run, and changed, as ever.
static void a_stored_name_stays(void **state)
{
    (void)state;
    static const char base[] = "{'name':'read'," CODE "}";
    AUTO_BUF struct buf faults = BUF_INIT(TOOL_FAULTS_BYTES);
    yyjson_doc *stored = read_json(base);
    struct tool t;
    assert_int_equal(tool_parse(NULL, yyjson_doc_get_root(stored), &t, &faults), 0);
    assert_string_equal(t.name, "read");
    tool_done(&t);
    yyjson_doc_free(stored);
    static const char *const changes[] = {"{'icon':'i'}", "{'name':'read','icon':'i'}"};
    for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
        assert_int_equal(parse(changes[i], base, &t, &faults), 0);
        assert_string_equal(t.name, "read");
        tool_done(&t);
    }
    assert_int_equal(parse("{'name':'Read'}", base, &t, &faults), -EINVAL);
    tool_done(&t);
    assert_int_equal(tool_parse(NULL, NULL, &t, &faults), -EINVAL);
    tool_done(&t);
}

static void what_is_absent_comes_from_the_base(void **state)
{
    (void)state;
    static const char base[] = "{'name':'t','description':'old','icon':'i','parameters':[{'name':"
                               "'a','type':'string','enum':['x']}]," CODE "}";
    AUTO_BUF struct buf faults = BUF_INIT(TOOL_FAULTS_BYTES);
    struct tool t;
    assert_int_equal(parse("{'description':'new','icon':null}", base, &t, &faults), 0);
    is_written(&t, "{'name':'t','description':'new','parameters':[{'name':'a','type':'string',"
                   "'required':false,'enum':['x']}]," CODE "}");
    tool_done(&t);
    assert_int_equal(parse("{'name':null,'parameters':[]}", base, &t, &faults), -EINVAL);
    assert_string_equal(buf_text(&faults), "name: is missing");
    tool_done(&t);
}

static char *filled(const char *before, char with, size_t n, const char *after)
{
    size_t head = strlen(before);
    char *text = malloc(head + n + strlen(after) + 1);
    assert_non_null(text);
    memcpy(text, before, head);
    memset(text + head, with, n);
    strcpy(text + head + n, after);
    return text;
}

static void bounds(void **state)
{
    (void)state;
    static const struct {
        const char *before, *after, *fault;
        size_t most;
        char with;
    } rows[] = {
        {"{'name':'", "'," CODE "}", "name: 101 bytes are above the maximum of 100", 100, 'n'},
        {"{'name':'t','category':'", "'," CODE "}",
         "category: 201 bytes are above the maximum of 200", 200, 'c'},
        {"{'name':'t','description':'", "'," CODE "}",
         "description: 8193 bytes are above the maximum of 8192", 8192, 'd'},
        {"{'name':'t','parameters':[{'type':'string','name':'", "'}]," CODE "}",
         "parameters[0].name: 65 bytes are above the maximum of 64", 64, 'p'},
        {"{'name':'t','parameters':[{'name':'a','type':'string','default':'", "'}]," CODE "}",
         "parameters[0].default: above the maximum of 16384 bytes", TOOL_VALUE_MAX - 2, 'v'},
        {"{'name':'t','code_config':{'language':'python','code':'", "'}}",
         "code_config.code: 1048577 bytes are above the maximum of 1048576", 1 << 20, '#'},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char *fits = filled(rows[i].before, rows[i].with, rows[i].most, rows[i].after);
        char *over = filled(rows[i].before, rows[i].with, rows[i].most + 1, rows[i].after);
        struct tool t = tool_of(fits);
        tool_done(&t);
        is_refused(over, rows[i].fault);
        free(fits);
        free(over);
    }
    AUTO_BUF struct buf text = BUF_INIT(TEXT_BYTES * 2);
    buf_puts(&text, "{'name':'t','code_config':{'language':'python','code':'");
    for (int i = 0; i < 400000; i++) {
        buf_puts(&text, "\\u0001");
    }
    buf_puts(&text, "'}}");
    is_refused(buf_text(&text),
               "code_config: the whole definition is above the maximum of 2097152 bytes");
    AUTO_BUF struct buf deep = BUF_INIT(TEXT_BYTES);
    buf_puts(&deep, "{'name':'t','parameters':[{'name':'a','type':'array','default':");
    for (int i = 0; i < JSON_MAX_DEPTH + 1; i++) {
        buf_puts(&deep, "[");
    }
    for (int i = 0; i < JSON_MAX_DEPTH + 1; i++) {
        buf_puts(&deep, "]");
    }
    buf_puts(&deep, "}]," CODE "}");
    is_refused(buf_text(&deep), "parameters[0].default: nested deeper than 64 levels");
}

// ---- Any definition

static unsigned long seed;
static unsigned roll(unsigned n)
{
    seed = seed * 6364136223846793005UL + 1442695040888963407UL;
    return (unsigned)(seed >> 33) % n;
}

static void put_parameter(struct buf *b, int i)
{
    static const struct {
        const char *type, *value, *choices;
    } kinds[] = {{"string", "'x\\u0000\xe6\x9d\xb1'", "['a','x\\u0000\xe6\x9d\xb1']"},
                 {"number", "-0.50e-3", "[1,-5e-4,1e300]"},
                 {"integer", "123456789012345678901234567890", "null"},
                 {"boolean", "false", "[false]"},
                 {"object", "{'b':[1.0],'a':{}}", "[{'a':{},'b':[1]}]"},
                 {"array", "[[],{'k':null}]", "[]"}};
    static const char *const names[] = {"a", "class", "user-id", "with space", "\xe5\x90\x8d", "'"};
    unsigned k = roll(ARRAY_LEN(kinds));
    const char *name = names[roll(ARRAY_LEN(names) - 1)];
    buf_printf(b, "%s{'name':'%s%d','type':'%s'", i ? "," : "", name, i, kinds[k].type);
    if (roll(2)) {
        buf_printf(b, ",'default':%s", kinds[k].value);
    }
    if (roll(2)) {
        buf_printf(b, ",'enum':%s", kinds[k].choices);
    }
    if (roll(2)) {
        buf_printf(b, ",'required':%s", roll(2) ? "true" : "null");
    }
    if (k == 5 && roll(2)) {
        buf_puts(b, roll(2) ? ",'items':{}" : ",'items':null");
    }
    buf_printf(b, ",'description':'%s'}", roll(2) ? "" : "line\\nand \\ud83d\\ude00");
}

static void what_is_written_is_read_as_the_same(void **state)
{
    (void)state;
    for (seed = 1; seed < 400; seed++) {
        unsigned long first = seed;
        AUTO_BUF struct buf text = BUF_INIT(TEXT_BYTES), once = BUF_INIT(TEXT_BYTES),
                            twice = BUF_INIT(TEXT_BYTES), faults = BUF_INIT(TOOL_FAULTS_BYTES);
        struct json_error why;
        buf_puts(&text, "{'name':'t','parameters':[");
        for (int i = 0, n = (int)roll(6); i < n; i++) {
            put_parameter(&text, i);
        }
        buf_printf(&text, "],'code_config':{'code':'\\u2028#','limits':%s,'language':'%s'%s}}",
                   roll(2) ? "{'timeout_seconds':1.0}" : "null", roll(2) ? "python" : "javascript",
                   roll(2) ? ",'dependencies':null" : "");
        struct tool t = tool_of(buf_text(&text)), back;
        assert_int_equal(tool_write(&once, &t), 0);
        yyjson_doc *doc = json_parse_envelope(once.data, once.len, &why);
        assert_non_null(doc);
        assert_int_equal(tool_parse(yyjson_doc_get_root(doc), NULL, &back, &faults), 0);
        assert_int_equal(tool_write(&twice, &back), 0);
        assert_string_equal(buf_text(&once), buf_text(&twice));
        assert_int_equal(t.timeout_ms, back.timeout_ms);
        AUTO_BUF struct buf schema = BUF_INIT(TEXT_BYTES);
        assert_int_equal(tool_write_schema(&schema, &t), 0);
        assert_int_equal(json_check(schema.data, schema.len, &why), 0);
        yyjson_doc_free(doc);
        tool_done(&t);
        tool_done(&back);
        seed = first;
    }
}

static void the_schema(void **state)
{
    (void)state;
    struct tool t = tool_of("{'name':'t','parameters':["
                            "{'name':'user id','type':'integer','required':true,'enum':[1,2]},"
                            "{'name':'b','type':'array','required':true,'default':[]}]," CODE "}");
    AUTO_BUF struct buf out = BUF_INIT(TEXT_BYTES);
    assert_int_equal(tool_write_schema(&out, &t), 0);
    assert_string_equal(buf_text(&out),
                        "{\"type\":\"object\",\"properties\":{\"user id\":{\"type\":\"integer\","
                        "\"enum\":[1,2]},\"b\":{\"type\":\"array\",\"default\":[],\"items\":{}}},"
                        "\"required\":[\"user id\"],\"additionalProperties\":false}");
    tool_done(&t);
}

// ---- Arguments

static const char takes[] = "{'name':'t','parameters':["
                            "{'name':'n','type':'integer','required':true},"
                            "{'name':'class','type':'string','enum':['a','b'],'default':'b'},"
                            "{'name':'with space','type':'number','enum':[0.1,1e2]},"
                            "{'name':'__proto__','type':'object','enum':[{'x':[1,2.0]}]},"
                            "{'name':'list','type':'array','items':'boolean'}]," CODE "}";

static void are_taken(const struct tool *t, const char *arguments, const char *want)
{
    AUTO_BUF struct buf params = BUF_INIT(TEXT_BYTES), faults = BUF_INIT(TOOL_FAULTS_BYTES);
    yyjson_doc *doc = read_json(arguments);
    if (tool_arguments(t, yyjson_doc_get_root(doc), &params, &faults)) {
        fail_msg("%s: %s", arguments, buf_text(&faults));
    }
    for (size_t i = 0; i < params.len; i++) {
        params.data[i] = params.data[i] == '"' ? '\'' : params.data[i];
    }
    assert_string_equal(buf_text(&params), want);
    yyjson_doc_free(doc);
}

static void are_refused(const struct tool *t, const char *arguments, const char *want)
{
    AUTO_BUF struct buf params = BUF_INIT(TEXT_BYTES), faults = BUF_INIT(TOOL_FAULTS_BYTES);
    yyjson_doc *doc = read_json(arguments);
    assert_int_equal(tool_arguments(t, yyjson_doc_get_root(doc), &params, &faults), -EINVAL);
    assert_string_equal(buf_text(&faults), want);
    yyjson_doc_free(doc);
}

static void arguments_are_held_against_the_parameters(void **state)
{
    (void)state;
    struct tool t = tool_of(takes);
    are_taken(&t, "{'n':1}", "{'n':1,'class':'b'}");
    are_taken(&t, "{'class':null,'n':-123456789012345678901234567890}",
              "{'n':-123456789012345678901234567890,'class':'b'}");
    are_taken(&t, "{'n':-0,'with space':100,'__proto__':{'x':[1.00,2]},'list':[true,false]}",
              "{'n':-0,'class':'b','with space':100,'__proto__':{'x':[1.00,2]},"
              "'list':[true,false]}");
    are_taken(&t, "{'n':1,'with space':0.10}", "{'n':1,'class':'b','with space':0.10}");
    are_refused(&t, "[]", "arguments: must be an object, not []");
    are_refused(&t, "null", "arguments.n: is missing");
    are_refused(&t, "{'n':1.0}",
                "arguments.n: must be an integer, written without fraction and exponent, not 1.0");
    are_refused(&t,
                "{'n':'1','class':'c','with space':0.1000000000000000055,"
                "'__proto__':{'x':[2,1]},'list':[true,0,'x'],'nn':1,'a b':2}",
                "arguments.n: must be an integer, written without fraction and exponent, not "
                "\"1\"; arguments.class: \"c\" is none of \"a\", \"b\"; "
                "arguments[\"with space\"]: 0.1000000000000000055 is none of 0.1, 1e2; "
                "arguments.__proto__: {\"x\":[2,1]} is none of {\"x\":[1,2.0]}; "
                "arguments.list[1]: must be true or false, not 0; "
                "arguments.list[2]: must be true or false, not \"x\"; "
                "arguments.nn: the tool has no such parameter (value 1); is n meant?; "
                "arguments[\"a b\"]: the tool has no such parameter (value 2)");
    tool_done(&t);
}

// What would arrive as an infinity; an integer has as many digits as it likes.
static void numbers_are_those_that_there_are(void **state)
{
    (void)state;
    struct tool t =
        tool_of("{'name':'t','parameters':[{'name':'x','type':'number'},{'name':'l',"
                "'type':'array','items':'number'},{'name':'o','type':'object'}]," CODE "}");
    char *digits = filled("{'x':", '7', 400, "}"), *point = filled("{'x':", '7', 400, ".5}");
    are_taken(&t, "{'x':1e308,'l':[-1.7e308,1E+2,1e-400,0.0],'o':{'any':1e400}}",
              "{'x':1e308,'l':[-1.7e308,1E+2,1e-400,0.0],'o':{'any':1e400}}");
    are_taken(&t, digits, digits);
    are_refused(&t, "{'x':1e400,'l':[1,-2E309]}",
                "arguments.x: 1e400 is beyond what a number can hold; "
                "arguments.l[1]: -2E309 is beyond what a number can hold");
    AUTO_BUF struct buf params = BUF_INIT(1024), faults = BUF_INIT(TOOL_FAULTS_BYTES);
    yyjson_doc *doc = read_json(point);
    assert_int_equal(tool_arguments(&t, yyjson_doc_get_root(doc), &params, &faults), -EINVAL);
    assert_non_null(strstr(buf_text(&faults), "is beyond what a number can hold"));
    yyjson_doc_free(doc);
    free(digits);
    free(point);
    tool_done(&t);
    is_refused("{'name':'t','parameters':[{'name':'x','type':'number','default':1e999}]," CODE "}",
               "parameters[0].default: 1e999 is beyond what a number can hold");
}

static void arguments_have_a_bound(void **state)
{
    (void)state;
    AUTO_BUF struct buf params = BUF_INIT(64), faults = BUF_INIT(TOOL_FAULTS_BYTES);
    struct tool t = tool_of(takes);
    char *text = filled("{'n':", '7', 60, "}");
    yyjson_doc *doc = read_json(text);
    assert_int_equal(tool_arguments(&t, yyjson_doc_get_root(doc), &params, &faults), -EMSGSIZE);
    assert_string_equal(buf_text(&faults), "arguments: above the maximum of 64 bytes");
    yyjson_doc_free(doc);
    free(text);
    tool_done(&t);
}

static void a_million_faults_are_told_shortly(void **state)
{
    (void)state;
    struct tool t = tool_of(takes);
    AUTO_BUF struct buf text = BUF_INIT(TEXT_BYTES), params = BUF_INIT(TEXT_BYTES),
                        faults = BUF_INIT(TOOL_FAULTS_BYTES);
    buf_puts(&text, "{'list':[");
    for (int i = 0; i < 1000000; i++) {
        buf_puts(&text, i ? ",1" : "1");
    }
    buf_puts(&text, "]}");
    yyjson_doc *doc = read_json(buf_text(&text));
    assert_int_equal(tool_arguments(&t, yyjson_doc_get_root(doc), &params, &faults), -EINVAL);
    assert_non_null(strstr(buf_text(&faults), "and 999981 more"));
    yyjson_doc_free(doc);
    tool_done(&t);
}

// ---- The job

static int job_of(const char *text, int64_t timeout_ms, struct job *ret, struct job_error *why)
{
    struct buf params = BUF_INIT(TEXT_BYTES);
    struct tool t = tool_of(text);
    buf_puts(&params, "{\"n\":1.50}");
    int e = tool_job(&t, &params, timeout_ms, "01234567-89ab-cdef-0123-456789abcdef", ret, why);
    tool_done(&t);
    buf_free(&params);
    return e;
}

static void the_job_of_a_call(void **state)
{
    (void)state;
    struct job j;
    struct job_error why;
    assert_int_equal(job_of("{'name':'t'," CODE "}", 0, &j, &why), 0);
    assert_int_equal(j.kind, JOB_SNIPPET);
    assert_string_equal(j.params, "{\"n\":1.50}");
    assert_string_equal(j.code_name, "t.py");
    assert_string_equal(j.session, "01234567-89ab-cdef-0123-456789abcdef");
    assert_int_equal(j.limits.value[LIMIT_TIMEOUT], 30000);
    job_done(&j);
    assert_int_equal(job_of("{'name':'t'," CODE "}", 7000, &j, &why), 0);
    assert_int_equal(j.limits.value[LIMIT_TIMEOUT], 7000);
    assert_int_equal(j.limits.source[LIMIT_TIMEOUT], LIMIT_FROM_JOB);
    job_done(&j);
    // A saved one wins, whichever is longer.
    static const char saved[] = "{'name':'t','code_config':{'language':'javascript','code':'',"
                                "'limits':{'timeout_seconds':5,'pids':64}}}";
    for (int64_t ms = 1000; ms <= 600000; ms += 599000) {
        assert_int_equal(job_of(saved, ms, &j, &why), 0);
        assert_int_equal(j.limits.value[LIMIT_TIMEOUT], 5000);
        assert_int_equal(j.limits.source[LIMIT_TIMEOUT], LIMIT_FROM_TOOL);
        assert_int_equal(j.limits.source[LIMIT_PIDS], LIMIT_FROM_TOOL);
        assert_string_equal(j.code_name, "t.js");
        job_done(&j);
    }
    assert_int_equal(job_of("{'name':'t','code_config':{'language':'python','code':'',"
                            "'dependencies':['numpy==2.0.0']}}",
                            0, &j, &why),
                     -EINVAL);
    assert_string_equal(why.field, "python_packages");
    job_done(&j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_whole_definition),
        cmocka_unit_test(the_least_definition),
        cmocka_unit_test(every_fault_has_its_path),
        cmocka_unit_test(code_config_is_checked_as_a_job),
        cmocka_unit_test(dependencies_of_older_platforms),
        cmocka_unit_test(built_in_names_are_taken),
        cmocka_unit_test(a_stored_name_stays),
        cmocka_unit_test(what_is_absent_comes_from_the_base),
        cmocka_unit_test(bounds),
        cmocka_unit_test(what_is_written_is_read_as_the_same),
        cmocka_unit_test(the_schema),
        cmocka_unit_test(arguments_are_held_against_the_parameters),
        cmocka_unit_test(numbers_are_those_that_there_are),
        cmocka_unit_test(arguments_have_a_bound),
        cmocka_unit_test(a_million_faults_are_told_shortly),
        cmocka_unit_test(the_job_of_a_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
