// Every op, every refusal, and what stays as it was.
#include "agent.h"
#include "effort.h"

// Reads all of text, makes the edits, and holds the result against want.
static void edits(const char *text, const char *list, const char *want)
{
    struct file f = file_of("a.txt", text);
    file_see(&f, 0, 0);
    if (file_edit(&f, list) != 0) {
        fail_msg("%s: %s", list, f.told);
    }
    file_is(&f, want);
    file_done(&f);
}

static void refuses(const char *path, const char *text, const char *list, const char *why)
{
    struct file f = file_of(path, text);
    file_see(&f, 0, 0);
    assert_int_equal(file_edit(&f, list), AGENT_REFUSED);
    if (!strstr(f.told, why) || !strstr(f.told, "Nothing was changed")) {
        fail_msg("%s: told \"%s\", not \"%s\"", list, f.told, why);
    }
    file_is(&f, text);
    file_done(&f);
}

#define ABC "a\nb\nc\n"

static void every_op(void **state)
{
    (void)state;
    edits(ABC, "[{'op':'replace','line':2,'new':'B'}]", "a\nB\nc\n");
    edits(ABC, "[{'op':'replace','line':2,'new':'B\\nBB\\n'}]", "a\nB\nBB\nc\n");
    edits(ABC, "[{'op':'replace','line':1,'end_line':3,'new':'x'}]", "x\n");
    edits(ABC, "[{'op':'replace','line':2,'new':''}]", "a\nc\n");
    edits(ABC, "[{'op':'replace','line':2,'new':'\\n'}]", "a\n\nc\n");
    edits(ABC, "[{'op':'cut','line':'2'}]", "a\nc\n");
    edits(ABC, "[{'op':'cut','line':1,'end_line':3}]", "");
    edits(ABC, "[{'op':'insert_before','line':1,'new':'x'}]", "x\na\nb\nc\n");
    edits(ABC, "[{'op':'insert_after','line':3,'new':'x'}]", "a\nb\nc\nx\n");
    edits(ABC, "[{'op':'insert_head','new':'x'}]", "x\na\nb\nc\n");
    edits(ABC, "[{'op':'insert_tail','new':'x'}]", "a\nb\nc\nx\n");
    edits(ABC, "[{'op':'cut','line':1},{'op':'paste_before','line':3}]", "b\na\nc\n");
    edits(ABC, "[{'op':'cut','line':1},{'op':'paste_after','line':3}]", "b\nc\na\n");
    edits(ABC, "[{'op':'cut','line':3},{'op':'paste_head'}]", "c\na\nb\n");
    edits(ABC, "[{'op':'cut','line':1,'register':'r'},{'op':'paste_tail','register':'r'}]",
          "b\nc\na\n");
    edits("f:\n  g\nh\n", "[{'op':'replace_block','line':1,'new':'x'}]", "x\nh\n");
    edits("f:\n  g\nh\n", "[{'op':'cut_block','line':1},{'op':'paste_after','line':3}]",
          "h\nf:\n  g\n");
    edits("f:\n  g\nh\n", "[{'op':'insert_block_after','line':1,'new':'x'}]", "f:\n  g\nx\nh\n");
    edits("f:\n  g\nh\n", "[{'op':'cut','line':3},{'op':'paste_block_after','line':1}]",
          "f:\n  g\nh\n");
    edits("", "[{'op':'insert_head','new':'x'}]", "x\n");
    edits(ABC,
          "[{'op':'insert_after','line':1,'new':'1'},{'op':'insert_before','line':2,'new':'2'},"
          "{'op':'replace','line':2,'new':'B'},{'op':'insert_after','line':2,'new':'3'}]",
          "a\n1\n2\nB\n3\nc\n");
}

// FS-01, FS-02, FS-03
static void endings_and_bom_stay(void **state)
{
    (void)state;
    edits("a\r\nb\r\nc\r\n", "[{'op':'replace','line':2,'new':'B'}]", "a\r\nB\r\nc\r\n");
    edits("a\r\nb\r\n", "[{'op':'replace','line':2,'new':'x\\r\\ny\\n'}]", "a\r\nx\r\ny\r\n");
    edits("one\r\ntwo\nthr\ree\n", "[{'op':'replace','line':2,'new':'2'}]", "one\r\n2\nthr\ree\n");
    edits("one\r\ntwo\n", "[{'op':'insert_after','line':1,'new':'x'}]", "one\r\nx\r\ntwo\n");
    edits("\xef\xbb\xbfx=1\n", "[{'op':'replace','line':1,'new':'x=2'}]", "\xef\xbb\xbfx=2\n");
    edits("\xef\xbb\xbfx\n", "[{'op':'insert_head','new':'y'}]", "\xef\xbb\xbfy\nx\n");
    edits("a\rb\rc", "[{'op':'replace','line':2,'new':'x\\ny'}]", "a\rx\ry\rc");
    edits("a\nb", "[{'op':'replace','line':2,'new':'B\\n'}]", "a\nB");
    edits("a\nb", "[{'op':'insert_tail','new':'c\\n'}]", "a\nb\nc");
    edits("a\r\nb", "[{'op':'insert_after','line':2,'new':'c'}]", "a\r\nb\r\nc");
    edits("a\nb", "[{'op':'cut','line':2}]", "a\n");
    edits("a\nb", "[{'op':'cut','line':2},{'op':'paste_head'}]", "b\na\n");
    edits("a", "[{'op':'replace','line':1,'new':'b'}]", "b");
    edits("a", "[{'op':'insert_before','line':1,'new':'b'}]", "b\na");
    edits("caf\xe9\nb\n", "[{'op':'replace','line':2,'new':'c'}]", "caf\xe9\nc\n");
    edits("caf\xe9\nb\n", "[{'op':'cut','line':1},{'op':'paste_tail'}]", "b\ncaf\xe9\n");
}

static void every_refusal(void **state)
{
    (void)state;
    static const struct {
        const char *list, *why;
    } cases[] = {
        {"[]", "1 to 64 edits"},
        {"{}", "1 to 64 edits"},
        {"[3]", "edit 1: not an object"},
        {"[{'line':1}]", "edit 1: has no op"},
        {"[{'op':'delete','line':1}]", "edit 1: unknown op"},
        {"[{'op':'cut','line':1},{'op':'replace','line':2}]", "edit 2 (replace): new is missing"},
        {"[{'op':'replace','line':2,'new':null}]", "new is missing"},
        {"[{'op':'replace','line':2,'new':7}]", "edit 1 (replace): new"},
        {"[{'op':'replace','line':2,'new':'a\\u0000'}]", "without NUL"},
        {"[{'op':'insert_after','line':2,'new':''}]", "nothing to insert"},
        {"[{'op':'cut','line':1,'new':'x'}]", "cut takes no new"},
        {"[{'op':'cut_block','line':1,'end_line':2}]", "cut_block takes no end_line"},
        {"[{'op':'insert_head','line':1,'new':'x'}]", "insert_head takes no line"},
        {"[{'op':'cut','line':1,'lines':2}]", "there is no field lines"},
        {"[{'op':'cut'}]", "edit 1 (cut): line"},
        {"[{'op':'cut','line':0}]", "edit 1 (cut): line"},
        {"[{'op':'cut','line':1.5}]", "edit 1 (cut): line"},
        {"[{'op':'cut','line':'1#12'}]", "edit 1 (cut): line"},
        {"[{'op':'cut','line':'x'}]", "edit 1 (cut): line"},
        {"[{'op':'cut','line':'1#7c3e| a'}]", "such as 12#ab3f, or a number, not \"1#7c3e| a\". "},
        {"[{'op':'cut','line':'0123456789012345678901234567890123456789\\u00e9'}]", "6789...\". "},
        {"[{'op':'cut','line':1,'end_line':'?'}]", "edit 1 (cut): end_line"},
        {"[{'op':'cut','line':1,'register':'a b'}]", "register"},
        {"[{'op':'cut','line':3,'end_line':2}]", "end_line 2 is before line 3"},
        {"[{'op':'cut','line':4}]", "has 3 lines"},
        {"[{'op':'paste_after','line':1}]", "register default is empty"},
        {"[{'op':'paste_after','line':1},{'op':'cut','line':2}]", "register default is empty"},
        {"[{'op':'cut','line':1},{'op':'cut','line':2}]", "edit 1 has used the register default"},
        {"[{'op':'replace','line':1,'end_line':2,'new':'x'},{'op':'cut','line':2}]",
         "edit 2 (cut): it is about lines that edit 1 takes (lines 1-2)"},
        {"[{'op':'replace','line':1,'end_line':2,'new':'x'},"
         "{'op':'insert_after','line':1,'new':'y'}]",
         "lines that edit 1 takes"},
        {"[{'op':'replace_block','line':2,'new':'x'}]", "line 2 begins no block"},
        {"[{'op':'cut','line':'1#zzzz'}]", "edit 1 (cut): line"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        refuses("a.txt", ABC, cases[i].list, cases[i].why);
    }
}

static void only_shown_lines_are_anchors(void **state)
{
    (void)state;
    struct file f = file_of("a.txt", "a\nb\nc\nd\ne\n");
    memcpy(f.tag, "0000", 5);
    assert_int_equal(file_edit(&f, "[{'op':'cut','line':1}]"), AGENT_REFUSED);
    assert_non_null(strstr(f.told, "no version 0000 of this file was read"));
    f.tag[0] = 0;
    file_see(&f, 2, 3);
    assert_int_equal(file_edit(&f, "[{'op':'cut','line':1}]"), AGENT_REFUSED);
    assert_non_null(strstr(f.told, "line 1 was not shown"));
    assert_int_equal(file_edit(&f, "[{'op':'cut','line':2,'end_line':4}]"), AGENT_REFUSED);
    assert_non_null(strstr(f.told, "line 4 was not shown whole by read. Read it first: start_line "
                                   "2, end_line 4"));
    file_see(&f, 4, 4); // what was read in parts is known together
    assert_int_equal(file_edit(&f, "[{'op':'cut','line':2,'end_line':4}]"), 0);
    file_is(&f, "a\ne\n");
    assert_int_equal(file_edit(&f, "[{'op':'cut','line':1}]"), AGENT_REFUSED); // still not shown
    assert_int_equal(file_edit(&f, "[{'op':'insert_tail','new':'x\\ny'}]"), 0);
    assert_int_equal(file_edit(&f, "[{'op':'replace','line':4,'new':'z'}]"), 0); // it wrote that
    file_is(&f, "a\ne\nx\nz\n");
    assert_non_null(strstr(f.reply, "edit 1 (replace): 1 line removed, new lines 4-4"));
    file_done(&f);
}

static void tags_are_asked_for(void **state)
{
    (void)state;
    struct file f = file_of("a.txt", ABC);
    file_see(&f, 0, 0);
    char list[128], old[TEXT_TAG_SIZE];
    memcpy(old, f.tag, sizeof old);
    snprintf(list, sizeof list, "[{'op':'replace','line':'2#%s','new':'B'}]", old);
    assert_int_equal(file_edit(&f, list), 0);
    file_is(&f, "a\nB\nc\n");
    snprintf(list, sizeof list, "[{'op':'cut','line':1},{'op':'cut','line':'3#%s'}]", old);
    assert_int_equal(file_edit(&f, list), AGENT_REFUSED);
    assert_non_null(strstr(f.told, "one request has one version"));
    file_done(&f);
}

#define PROGRAM "import os\n\ndef one():\n    return 1\n\ndef two():\n    return 2\n\nmain()\n"

// Reads text, changes the file to `now` behind the reader's back, edits.
static void changed(const char *text, const char *now, const char *list, const char *want)
{
    struct file f = file_of("a.py", text);
    file_see(&f, 0, 0);
    file_set(&f, now, strlen(now));
    int r = file_edit(&f, list);
    if (*want != '!') {
        if (r != 0) {
            fail_msg("%s", f.told);
        }
        file_is(&f, want);
        assert_non_null(strstr(f.reply, "the file had changed"));
    } else if (r != AGENT_REFUSED || !strstr(f.told, want + 1)) {
        fail_msg("%d: %s", r, f.told);
    } else {
        file_is(&f, now);
    }
    file_done(&f);
}

static void changed_files(void **state)
{
    (void)state;
    changed(PROGRAM, "# new\n" PROGRAM, "[{'op':'replace','line':7,'new':'    return 3'}]",
            "# new\nimport os\n\ndef one():\n    return 1\n\ndef two():\n    return 3\n\nmain()\n");
    changed(PROGRAM, "# new\n" PROGRAM, "[{'op':'cut_block','line':3}]",
            "# new\nimport os\n\n\ndef two():\n    return 2\n\nmain()\n");
    changed(PROGRAM,
            "import os\n\ndef one():\n    return 1\n\ndef two():\n    return 5\n\nmain()\n",
            "[{'op':'replace','line':7,'new':'x'}]", "!line 7 of it cannot be found again");
    changed(PROGRAM, "import os\n\ndef one():\n    x()\n    return 1\n\nmain()\n",
            "[{'op':'cut_block','line':3}]", "!line 4 of the block was not read as it is now");
    changed("a\nsame\nb\n", "same\n1\nsame\n2\nsame\n", "[{'op':'cut','line':2}]",
            "!not there any more");
    changed("x1234\nsame\ny1234\n", "x1234\nsame\ny1234\nx1234\nsame\ny1234\n",
            "[{'op':'cut','line':2}]", "!several places look alike");
    changed("aaaa\nbbbb\n", "bbbb\naaaa\nbbbb\n", "[{'op':'cut','line':1}]", "bbbb\nbbbb\n");
    changed("{\n}\n", "{\n}\n{\n}\n", "[{'op':'cut','line':2}]", "!cannot be found again");
}

// A file of equal lines must not cost the square of its length.
static void locating_is_linear(void **state)
{
    (void)state;
    AUTO_BUF struct buf many = BUF_INIT(16 << 20);
    for (int i = 0; i < 1000000; i++) {
        buf_puts(&many, "same line\n");
    }
    struct file f = {.path = "a.txt"};
    file_set(&f, many.data, many.len);
    uint64_t before = effort_now_ns();
    file_see(&f, 1, 60000);
    buf_puts(&many, "more\n");
    file_set(&f, many.data, many.len);
    assert_int_equal(file_edit(&f, "[{'op':'cut','line':1,'end_line':9000}]"), 0);
    assert_int_equal(file_edit(&f, "[{'op':'cut','line':100,'end_line':9000}]"), AGENT_REFUSED);
    // Its square would be hours; a sanitizer is not to be mistaken for it.
    assert_true(effort_now_ns() - before < 20 * NS_PER_S);
    file_done(&f);
}

// Each block goes through the file: many of them in a large one are not begun.
static void blocks_are_bounded(void **state)
{
    (void)state;
    AUTO_BUF struct buf text = BUF_INIT(9 << 20), list = BUF_INIT(2000);
    buf_puts(&text, "f() {\n}\n");
    while (text.len < 8 << 20) {
        buf_puts(&text, "a(b, \"c\");\n");
    }
    struct file f = {.path = "a.c"};
    file_set(&f, text.data, text.len);
    file_see(&f, 1, 2);
    for (int i = 0; i < 20; i++) {
        buf_printf(&list, "%c{'op':'insert_block_after','line':1,'new':'x'}", i ? ',' : '[');
    }
    buf_putc(&list, ']');
    assert_int_equal(file_edit(&f, buf_text(&list)), AGENT_REFUSED);
    assert_non_null(strstr(f.told, "edit 17 (insert_block_after): the file is too large for so "
                                   "many blocks"));
    file_done(&f);
}

static void registers_last(void **state)
{
    (void)state;
    static struct file f, other;
    f = file_of("a.txt", ABC);
    other = file_of("b.txt", "x\r\ny\r\n");
    file_see(&f, 0, 0);
    assert_int_equal(file_edit(&f, "[{'op':'cut','line':1,'end_line':2}]"), 0);
    other.m = f.m;
    file_see(&other, 0, 0);
    assert_int_equal(file_edit(&other, "[{'op':'paste_after','line':1},{'op':'paste_tail'}]"), 0);
    file_is(&other, "x\r\na\r\nb\r\ny\r\na\r\nb\r\n");
    f.m = (struct agent_memory){0};
    file_done(&f);
    file_done(&other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_op),           cmocka_unit_test(endings_and_bom_stay),
        cmocka_unit_test(every_refusal),      cmocka_unit_test(only_shown_lines_are_anchors),
        cmocka_unit_test(tags_are_asked_for), cmocka_unit_test(changed_files),
        cmocka_unit_test(locating_is_linear), cmocka_unit_test(registers_last),
        cmocka_unit_test(blocks_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
