// The reference pages say what the tables say: every row, literally.
#include "base/buf.h"
#include "base/fd.h"
#include "conf/conf.h"
#include "model/limits.h"
#include "model/result.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *docs; // the folder

static void read_page(const char *name, struct buf *ret)
{
    char path[4096], chunk[4096];
    snprintf(path, sizeof path, "%s/%s", docs, name);
    AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    ssize_t n;
    while ((n = read(fd, chunk, sizeof chunk)) > 0) {
        assert_int_equal(buf_add(ret, chunk, (size_t)n), 0);
    }
}

static void expect(const struct buf *page, const char *row)
{
    if (!strstr(buf_text(page), row)) {
        fail_msg("the page lacks the row:\n%s", row);
    }
}

static void limits(void **state)
{
    (void)state;
    AUTO_BUF struct buf page = BUF_INIT(1 << 20);
    read_page("jobs.md", &page);
    for (int i = 0; i < LIMIT_COUNT; i++) {
        const struct limit_spec *s = &limit_specs[i];
        char min[32], max[32], initial[32], row[400];
        limit_format((enum limit)i, s->min, min, sizeof min);
        limit_format((enum limit)i, s->max, max, sizeof max);
        limit_format((enum limit)i, s->initial, initial, sizeof initial);
        snprintf(row, sizeof row, "| `%s` | `%s` | %s | %s to %s %s | %s |\n", s->name, s->option,
                 s->optional && s->initial == 0 ? "none" : initial, min, max, s->unit, s->on_hit);
        expect(&page, row);
    }
}

static void reasons(void **state)
{
    (void)state;
    static const enum reason today[] = {REASON_OK,
                                        REASON_ERROR,
                                        REASON_TIMEOUT,
                                        REASON_CPU_LIMIT,
                                        REASON_MEMORY_LIMIT,
                                        REASON_DISK_LIMIT,
                                        REASON_RESULT_TOO_LARGE,
                                        REASON_ARTIFACT,
                                        REASON_CANCELLED,
                                        REASON_INSTALL_FAILED,
                                        REASON_INTERNAL,
                                        REASON_ISOLATION_UNAVAILABLE};
    AUTO_BUF struct buf page = BUF_INIT(1 << 20);
    read_page("jobs.md", &page);
    for (size_t i = 0; i < ARRAY_LEN(today); i++) {
        char word[64];
        snprintf(word, sizeof word, "`%s`", reason_names[today[i]]);
        expect(&page, word);
    }
}

static void values_of(const struct setting_spec *s, char *text, size_t size)
{
    const char *unit = s->unit ? s->unit : "";
    switch (s->type) {
    case SETTING_BOOL:
        snprintf(text, size, "%s", s->choices ? s->choices : "true, false");
        break;
    case SETTING_NUMBER:
        snprintf(text, size, "%lld to %lld%s%s", (long long)s->min, (long long)s->max,
                 *unit ? " " : "", unit);
        break;
    case SETTING_PATH:
        snprintf(text, size, "absolute path");
        break;
    case SETTING_NAME:
        snprintf(text, size, "letters, digits, -; up to 63");
        break;
    case SETTING_CALLS:
        snprintf(text, size, "names with commas between");
        break;
    case SETTING_CHOICE:
        snprintf(text, size, "%s", *s->choices ? s->choices : "unset");
        break;
    }
}

static void settings(void **state)
{
    (void)state;
    AUTO_BUF struct buf page = BUF_INIT(1 << 20);
    read_page("settings.md", &page);
    for (int i = 0; i < SETTING_COUNT; i++) {
        const struct setting_spec *s = &setting_specs[i];
        char values[100], row[600];
        if (s->hidden) {
            continue;
        }
        values_of(s, values, sizeof values);
        snprintf(row, sizeof row, "| %s | %s | %s | %s |\n", s->name,
                 *s->initial ? s->initial : "unset", values, s->help);
        if (getenv("PRINT_ROWS")) {
            fputs(row, stdout);
            continue;
        }
        expect(&page, row);
    }
}

int main(int argc, char **argv)
{
    docs = argc > 1 ? argv[1] : "docs";
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limits),
        cmocka_unit_test(reasons),
        cmocka_unit_test(settings),
    };
    return cmocka_run_group_tests_name("docs", tests, NULL, NULL);
}
