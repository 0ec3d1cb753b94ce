// What read shows, and what it remembers.
#include "agent.h"
#include "base/fd.h"
#include "effort.h"

#include <errno.h>

static void reads(const char *text, struct read_request r, const char *want)
{
    struct file f = file_of("a.txt", text);
    AUTO_BUF struct buf out = BUF_INIT(1 << 20), expected = BUF_INIT(1 << 20);
    struct read_result res;
    assert_int_equal(file_read(&f, &r, &out, &res), 0);
    for (const char *p = want; *p; p++) { // @ stands for #TAG|
        if (*p == '@') {
            buf_printf(&expected, "#%s|", f.tag);
        } else {
            buf_putc(&expected, *p);
        }
    }
    assert_string_equal(buf_text(&out), buf_text(&expected));
    file_done(&f);
}

static void lines_are_shown(void **state)
{
    (void)state;
    reads("a\nb\n", (struct read_request){0}, "1@ a\n2@ b\n");
    reads("a\r\nb", (struct read_request){0}, "1@ a\n2@ b\n");
    reads("a\rb\r", (struct read_request){0}, "1@ a\n2@ b\n");
    reads("a\rb\n", (struct read_request){0}, "1@ a\rb\n"); // as grep -n counts
    reads("\xef\xbb\xbfx\n\n", (struct read_request){0}, "1@ x\n2@ \n");
    reads("", (struct read_request){0}, "[the file has no lines]\n");
    reads("\xef\xbb\xbf", (struct read_request){0}, "[the file has no lines]\n");
    reads("a\nb\nc\nd\n", (struct read_request){.start_line = 2, .end_line = 3},
          "2@ b\n3@ c\n[lines 2-3 of 4]\n");
    reads("a\nb\n", (struct read_request){.start_line = 2, .end_line = 99}, "2@ b\n");
    reads("caf\xe9 \xc3\xa9\n", (struct read_request){0},
          "1@ caf\xef\xbf\xbd \xc3\xa9\n[bytes that are not UTF-8 are shown as \xef\xbf\xbd; they "
          "stay as they are in lines that are not edited]\n");
}

static void search_is_plain_text(void **state)
{
    (void)state;
    reads("x(a+)+$\nb\na(a+)+$\n", (struct read_request){.search = "(a+)+$", .search_len = 6},
          "1@ x(a+)+$\n3@ a(a+)+$\n");
    reads("a\n", (struct read_request){.search = "A", .search_len = 1},
          "[no line of 1-1 contains the searched text; it is searched as it is written, upper and "
          "lower case apart]\n");
}

static void max_chars_stops_and_tells(void **state)
{
    (void)state;
    reads("aaaa\nbbbb\ncccc\n", (struct read_request){.max_chars = 26},
          "1@ aaaa\n2@ bbbb\n[stopped at max_chars: 2 lines shown, the file has 3; go on with "
          "start_line=3]\n");
    reads("\xc3\xa9\xc3\xa9\xc3\xa9\n", (struct read_request){.max_chars = 11},
          "1@ \xc3\xa9\xc3\xa9\n[line 1 is cut: 4 of its 6 bytes are shown, so it cannot be an "
          "anchor; use bash for the rest (cut -b, Python)]\n");
}

static void refusals(void **state)
{
    (void)state;
    struct file f = file_of("a.txt", "a\nb\n");
    AUTO_BUF struct buf out = BUF_INIT(1000);
    struct read_result res;
    const struct {
        struct read_request r;
        const char *why;
    } cases[] = {
        {{.start_line = 3}, "start_line 3: the file has 2 lines"},
        {{.start_line = 2, .end_line = 1}, "end_line 1 is before start_line 2"},
        {{.search = "", .search_len = 0}, "search: 1 to 4096 bytes"},
        {{.search = "a\nb", .search_len = 3}, "no line contains a line break"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(file_read(&f, &cases[i].r, &out, &res), AGENT_REFUSED);
        assert_non_null(strstr(f.told, cases[i].why));
    }
    file_set(&f, "a\0b", 3);
    assert_int_equal(file_read(&f, &(struct read_request){0}, &out, &res), AGENT_REFUSED);
    assert_non_null(strstr(f.told, "binary"));
    file_done(&f);
}

static void large_files_are_bounded(void **state)
{
    (void)state;
    size_t len = 50u << 20;
    char *data = malloc((size_t)TEXT_MAX_BYTES + 1);
    assert_non_null(data);
    memset(data, 'x', (size_t)TEXT_MAX_BYTES + 1);
    struct file f = {.path = "long.txt", .data = data, .len = len};
    AUTO_BUF struct buf out = BUF_INIT(1 << 20);
    struct read_result res;
    uint64_t before = effort_now_ns();
    assert_int_equal(file_read(&f, &(struct read_request){.max_chars = 1000}, &out, &res), 0);
    assert_non_null(strstr(buf_text(&out), "line 1 is cut: 991 of its 52428800 bytes"));
    assert_true(out.len < 1200);
    assert_int_equal(file_edit(&f, "[{'op':'replace','line':1,'new':'y'}]"), AGENT_REFUSED);
    f.tag[0] = 0;
    assert_true(effort_now_ns() - before < 20 * NS_PER_S);

    struct text t;
    struct agent_refusal why;
    assert_int_equal(text_init(&t, f.data, (size_t)TEXT_MAX_BYTES + 1, &why), AGENT_REFUSED);
    assert_non_null(strstr(why.text, "67108865 bytes"));
    memset(f.data, '\n', TEXT_MAX_BYTES);
    assert_int_equal(text_init(&t, f.data, TEXT_MAX_LINES, &why), 0);
    text_done(&t);
    assert_int_equal(text_init(&t, f.data, TEXT_MAX_LINES + 1, &why), AGENT_REFUSED);
    assert_non_null(strstr(why.text, "more than 4194304 lines"));
    file_done(&f);
}

static void memories_survive_as_bytes(void **state)
{
    (void)state;
    struct file f = file_of("a.txt", "one\ntwo\nthree\nfour\nfive\nsix\n");
    file_see(&f, 2, 3);
    file_see(&f, 6, 6);
    assert_int_equal(file_edit(&f, "[{'op':'cut','line':2,'register':'r'}]"), 0);
    AUTO_BUF struct buf once = BUF_INIT(1 << 20), twice = BUF_INIT(1 << 20);
    assert_int_equal(memory_write(&f.m, &once), 0);
    AUTO_FREE struct agent_memory *back = malloc(sizeof *back); // the stack has no room for two
    assert_non_null(back);
    assert_int_equal(memory_read(once.data, once.len, back), 0);
    assert_int_equal(memory_write(back, &twice), 0);
    assert_int_equal(once.len, twice.len);
    assert_memory_equal(once.data, twice.data, once.len);
    assert_memory_equal(memory_register(back, "r")->data, "two\n", 4);
    memory_done(back);
    for (size_t len = 0; len < once.len; len++) {
        assert_int_equal(memory_read(once.data, len, back), -EBADMSG);
    }
    buf_putc(&once, 0);
    assert_int_equal(memory_read(once.data, once.len, back), -EBADMSG);
    file_done(&f);
}

static void memories_are_bounded(void **state)
{
    (void)state;
    struct file f = file_of("a.txt", "");
    for (int i = 0; i < 3 * MEMORY_VIEWS_MAX; i++) {
        char text[32];
        snprintf(text, sizeof text, "version %d\n", i);
        file_set(&f, text, strlen(text));
        file_see(&f, 1, 1);
    }
    assert_int_equal(f.m.n, MEMORY_VIEWS_MAX);
    AUTO_BUF struct buf many = BUF_INIT(8 << 20);
    for (int i = 0; i < 300000; i++) {
        buf_puts(&many, "x\n");
    }
    file_set(&f, many.data, many.len);
    AUTO_BUF struct buf out = BUF_INIT(8 << 20);
    struct read_result res;
    struct read_request r = {.max_chars = 8 << 20};
    assert_int_equal(file_read(&f, &r, &out, &res), 0);
    assert_true(f.m.views[f.m.n - 1].n <= MEMORY_LINES_MAX);
    assert_null(memory_line(&f.m.views[f.m.n - 1], 1)); // the last ones are remembered
    assert_true(memory_line(&f.m.views[f.m.n - 1], 300000)->shown);
    file_done(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_shown),           cmocka_unit_test(search_is_plain_text),
        cmocka_unit_test(max_chars_stops_and_tells), cmocka_unit_test(refusals),
        cmocka_unit_test(large_files_are_bounded),   cmocka_unit_test(memories_survive_as_bytes),
        cmocka_unit_test(memories_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
