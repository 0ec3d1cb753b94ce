// The agents' files, each allocation failing once: an edit is made and remembered, or neither; and
// nothing leaks.
#include "agent/clean.h"
#include "agent/edit.h"
#include "agent/read.h"
#include "agent/shell.h"
#include "codec/json.h"
#include "inject.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const char seen[] = "one line\ntwo lines\nthree lines\n";
static const char now[] = "new\none line\ntwo lines\nthree lines\n";
static const char body[] = "{\"edits\":[{\"op\":\"cut\",\"line\":2},{\"op\":\"paste_head\"},"
                           "{\"op\":\"insert_tail\",\"new\":\"x\"}]}";
static yyjson_doc *doc;

static int edit_changed(struct agent_memory *m, const struct text *t, const char *tag)
{
    struct edit_request r;
    struct edit_result made;
    struct agent_refusal why;
    assert_int_equal(edit_parse(yyjson_doc_get_root(doc), &r, &why), 0);
    memcpy(r.tag, tag, sizeof r.tag);
    int rc = edit_make(t, "a.txt", m, &r, &made, &why);
    assert_null(memory_register(m, "default"));
    if (rc != 0) {
        return rc;
    }
    assert_string_equal(buf_text(&made.data), "two lines\nnew\none line\nthree lines\nx\n");
    rc = edit_commit(&made, "a.txt", m);
    assert_non_null(memory_register(m, "default")); // whatever else was remembered
    edit_result_done(&made);
    return rc;
}

static int read_and_edit(void)
{
    static struct agent_memory m, back;
    struct text first = {0}, second = {0};
    struct agent_refusal why;
    struct read_result res;
    AUTO_BUF struct buf out = BUF_INIT(4096), bytes = BUF_INIT(4096);
    int rc = text_init(&first, seen, strlen(seen), &why);
    rc = rc ? rc : text_init(&second, now, strlen(now), &why);
    rc =
        rc ? rc : read_lines(&first, &(struct read_request){.path = "a.txt"}, &m, &out, &res, &why);
    rc = rc ? rc : edit_changed(&m, &second, first.tag);
    rc = rc ? rc : memory_write(&m, &bytes);
    rc = rc ? rc : memory_read(bytes.data, bytes.len, &back);
    memory_done(&back);
    memory_done(&m);
    text_done(&first);
    text_done(&second);
    return rc;
}

static int command_and_output(void)
{
    static const char text[] = "\033[1ma\nb\nb\nb\nb\n";
    AUTO_BUF struct buf out = BUF_INIT(4096), command = BUF_INIT(4096);
    struct clean_told told;
    struct agent_refusal why;
    bool changed;
    int rc = shell_rewrite("find /", 6, &command, &changed, &why);
    return rc ? rc : clean_output(text, strlen(text), true, &out, &told);
}

static void everything_fails_once(void **state)
{
    (void)state;
    struct json_error bad;
    doc = json_parse(body, strlen(body), &bad);
    assert_non_null(doc);
    assert_true(inject_all(read_and_edit, 0) >= 15);
    assert_true(inject_all(command_and_output, 0) >= 4);
    yyjson_doc_free(doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(everything_fails_once)};
    return cmocka_run_group_tests_name("inject-agent", tests, NULL, NULL);
}
