// Random edits of random texts, against a model that knows lists of lines only: what is not edited
// is the same bytes.
#include "agent.h"

enum { LINES = 24, ROUNDS = 4000 };

static uint32_t next(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

struct lines {
    char text[2 * LINES + 8][24]; // with their endings
    uint32_t n;
};

static void join(const struct lines *l, bool bom, char *ret)
{
    size_t at = 0;
    if (bom) {
        memcpy(ret, "\xef\xbb\xbf", 3);
        at = 3;
    }
    for (uint32_t i = 0; i < l->n; i++) {
        size_t len = strlen(l->text[i]);
        memcpy(ret + at, l->text[i], len);
        at += len;
    }
    ret[at] = 0;
}

static void make_lines(struct lines *l, uint32_t *seed, bool *ret_open)
{
    static const char *const endings[] = {"\n", "\r\n", "\n"};
    l->n = 1 + next(seed) % LINES;
    for (uint32_t i = 0; i < l->n; i++) {
        static const char *const kinds[] = {"a%u", "", "same", "caf\xe9 %u", "x\ry%u"};
        char body[16];
        const char *kind = kinds[next(seed) % 5];
        if (strstr(kind, "%u")) {
            snprintf(body, sizeof body, "%.*s%u", (int)(strlen(kind) - 2), kind, next(seed) % 50);
        } else {
            snprintf(body, sizeof body, "%s", kind);
        }
        snprintf(l->text[i], sizeof l->text[i], "%s%s", body, endings[next(seed) % 3]);
    }
    *ret_open = l->n > 1 && next(seed) % 3 == 0;
    if (*ret_open) {
        snprintf(l->text[l->n - 1], sizeof l->text[0], "end");
    } else {
        snprintf(l->text[0], sizeof l->text[0], "first\n"); // an LF, so that CR ends no line
    }
    if (*ret_open && !strchr(l->text[0], '\n')) {
        snprintf(l->text[0], sizeof l->text[0], "first\n");
    }
}

static const char *ending_of(const char *line)
{
    const char *end = line + strlen(line);
    return end > line && end[-1] == '\n' ? end - (end - 1 > line && end[-2] == '\r' ? 2 : 1) : end;
}

// The model of one edit: `removed` lines at `at` go, `added` new ones come.
static void apply(struct lines *l, uint32_t at, uint32_t removed, uint32_t added, bool open)
{
    char ending[3] = "\n";
    uint32_t candidates[] = {removed ? at : UINT32_MAX, at - 1, at, at - 2};
    for (int i = 0; i < 4; i++) {
        if (candidates[i] < l->n && *ending_of(l->text[candidates[i]])) {
            snprintf(ending, sizeof ending, "%s", ending_of(l->text[candidates[i]]));
            break;
        }
    }
    bool at_end = at + removed == l->n;
    if (open && at == l->n && added) {
        strncat(l->text[at - 1], ending, 3);
    }
    memmove(l->text[at + added], l->text[at + removed], (l->n - at - removed) * sizeof l->text[0]);
    for (uint32_t i = 0; i < added; i++) {
        bool last = open && at_end && i + 1 == added;
        snprintf(l->text[at + i], sizeof l->text[0], "new%u%s", i, last ? "" : ending);
    }
    l->n = l->n - removed + added;
}

static void one_round(uint32_t *seed)
{
    static struct lines l;
    static char text[4096], want[4096];
    bool open, bom = next(seed) % 4 == 0;
    make_lines(&l, seed, &open);
    join(&l, bom, text);
    struct file f = file_of("a.txt", text);
    file_see(&f, 0, 0);
    char list[1024] = "[";
    // From the last to the first, so that the model's numbers stay right.
    uint32_t above = l.n;
    for (uint32_t i = 0; i < 3 && above > 0; i++) {
        uint32_t line = 1 + next(seed) % above, kind = next(seed) % 4, added = 1 + next(seed) % 2;
        uint32_t last = line + next(seed) % (above - line + 1);
        const char *text_of_new = added == 1 ? "new0" : "new0\\nnew1\\n";
        size_t at = strlen(list);
        const char *comma = i ? "," : "";
        if (kind == 0) {
            snprintf(list + at, sizeof list - at,
                     "%s{'op':'replace','line':%u,'end_line':%u,'new':'%s'}", comma, line, last,
                     text_of_new);
            apply(&l, line - 1, last - line + 1, added, open && last == l.n);
        } else if (kind == 1) {
            snprintf(list + at, sizeof list - at,
                     "%s{'op':'replace','line':%u,'end_line':%u,'new':''}", comma, line, last);
            apply(&l, line - 1, last - line + 1, 0, false);
        } else {
            snprintf(list + at, sizeof list - at, "%s{'op':'insert_%s','line':%u,'new':'%s'}",
                     comma, kind == 2 ? "before" : "after", line, text_of_new);
            uint32_t place = kind == 2 ? line - 1 : line;
            apply(&l, place, 0, added, open && place == l.n);
        }
        above = line - 1;
        above -= above > 0; // neighbours see each other's endings: leave a line between
        if (open && i == 0) {
            open = false;
        }
    }
    strncat(list, "]", 2);
    join(&l, bom, want);
    int r = file_edit(&f, list);
    if (r != 0 || strcmp(f.data, want) != 0) {
        fail_msg("%s: %d %s\n%s\nnot\n%s", list, r, f.told, f.data, want);
    }
    file_done(&f);
}

static void edits_are_the_model(void **state)
{
    (void)state;
    uint32_t seed = 20261129;
    for (int i = 0; i < ROUNDS; i++) {
        one_round(&seed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(edits_are_the_model)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
