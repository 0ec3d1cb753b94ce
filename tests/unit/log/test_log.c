// One line per event, whatever strangers wrote; both formats read back; a reader that does not read
// loses lines and holds up nobody.
#include "base/buf.h"
#include "base/fd.h"
#include "log/log.h"

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cmocka.h>
#include <yyjson.h>

struct place {
    struct log *log;
    int fd, audit; // memory files
    char text[64 * 1024];
};

static int memory_file(void)
{
    int fd = memfd_create("log", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(fcntl(fd, F_SETFL, O_APPEND), 0);
    return fd;
}

static int begin(void **state)
{
    struct place *p = calloc(1, sizeof *p);
    assert_non_null(p);
    p->fd = memory_file();
    p->audit = memory_file();
    assert_int_equal(log_new(p->fd, p->audit, LOG_TEXT, LOG_INFO, &p->log), 0);
    *state = p;
    return 0;
}

static int end(void **state)
{
    struct place *p = *state;
    log_free(p->log);
    fd_close(p->fd);
    fd_close(p->audit);
    free(p);
    return 0;
}

// What was written so far, and the file is empty again.
static const char *written(struct place *p, int fd)
{
    ssize_t n = pread(fd, p->text, sizeof p->text - 1, 0);
    assert_true(n >= 0);
    p->text[n] = '\0';
    assert_int_equal(ftruncate(fd, 0), 0);
    return p->text;
}

// The one line without its time, which is checked.
static const char *line(struct place *p, int fd)
{
    const char *text = written(p, fd);
    const char *end_of_line = strchr(text, '\n');
    assert_non_null(end_of_line);
    assert_int_equal(end_of_line[1], '\0');
    int year, month, day, hour, minute, second, ms, n = 0;
    assert_int_equal(sscanf(text, "time=%4d-%2d-%2dT%2d:%2d:%2d.%3dZ %n", &year, &month, &day,
                            &hour, &minute, &second, &ms, &n),
                     7);
    assert_int_equal(n, strlen("time=2026-01-01T00:00:00.000Z "));
    return text + n;
}

static void fields(void **state)
{
    struct place *p = *state;
    log_say(p->log, LOG_INFO, "job ended", LOG_T("job", "0197-a"), LOG_T("none", NULL),
            LOG_I("code", -7), LOG_B("cached", true), LOG_T("empty", ""), LOG_T("word", "a b"),
            LOG_T("sum", "1=1"), LOG_T("quoted", "a\"b\\"), LOG_T("name", "ä"));
    assert_string_equal(line(p, p->fd),
                        "level=info event=\"job ended\" job=0197-a code=-7 cached=true empty=\"\" "
                        "word=\"a b\" sum=\"1=1\" quoted=\"a\\\"b\\\\\" name=\"ä\"\n");
    assert_string_equal(written(p, p->audit), "");
}

static void levels(void **state)
{
    struct place *p = *state;
    log_say(p->log, LOG_DEBUG, "seen", LOG_I("n", 1));
    assert_string_equal(written(p, p->fd), "");
    log_change(p->log, LOG_TEXT, LOG_DEBUG);
    log_say(p->log, LOG_DEBUG, "seen", LOG_I("n", 1));
    assert_string_equal(line(p, p->fd), "level=debug event=seen n=1\n");
    log_change(p->log, LOG_TEXT, LOG_ERROR);
    log_say(p->log, LOG_WARNING, "seen", LOG_I("n", 1));
    assert_string_equal(written(p, p->fd), "");
    log_say(NULL, LOG_ERROR, "seen", LOG_I("n", 1));
    enum log_level level = LOG_INFO;
    enum log_format format = LOG_TEXT;
    assert_int_equal(log_level_find("warning", &level), 0);
    assert_int_equal(level, LOG_WARNING);
    assert_int_equal(log_level_find("loud", &level), -EINVAL);
    assert_int_equal(log_format_find("json", &format), 0);
    assert_int_equal(format, LOG_JSON);
    assert_int_equal(log_format_find("", &format), -EINVAL);
}

static void audit(void **state)
{
    struct place *p = *state;
    static const char expected[] =
        "level=info event=\"key made\" audit=true key=0123456789abcdef\n";
    log_audited(p->log, "key made", LOG_T("key", "0123456789abcdef"));
    assert_string_equal(line(p, p->fd), expected);
    assert_string_equal(line(p, p->audit), expected);
    log_change(p->log, LOG_TEXT, LOG_ERROR); // only where it is the one place
    log_audited(p->log, "key made", LOG_T("key", "0123456789abcdef"));
    assert_string_equal(written(p, p->fd), "");
    assert_string_equal(line(p, p->audit), expected);
    log_change_files(p->log, p->fd, -1);
    log_audited(p->log, "key made", LOG_T("key", "0123456789abcdef"));
    assert_string_equal(line(p, p->fd), expected);
}

// What strangers write, and what of it a line must not have.
static const struct {
    const char *text, *shown;
} hostile[] = {
    {"a\nlevel=error event=forged", "a\\nlevel=error event=forged"},
    {"a\r\nb", "a\\r\\nb"},
    {"\x1b[2J\x1b]0;t\a", "\\u001b[2J\\u001b]0;t\\u0007"},
    {"a\u2028b\u2029c", "a\\u2028b\\u2029c"},
    {"\xc2\x85\xc2\x9b"
     "2J",
     "\\u0085\\u009b2J"},
    {"\u202egpj.exe\u2066\ufeff\u200b", "\\u202egpj.exe\\u2066\\ufeff\\u200b"},
    {"\x7f", "\\u007f"},
    {"\xff\xfe x \xc3", "\ufffd\ufffd x \ufffd"},
    {"\xed\xa0\x80", "\ufffd\ufffd\ufffd"},
    {"\xc0\x8a", "\ufffd\ufffd"},
    {"level=error", "level=error"},
    {"\"} {\"level\":\"error\"", "\\\"} {\\\"level\\\":\\\"error\\\""},
};

static void hostile_text(void **state)
{
    struct place *p = *state;
    for (size_t i = 0; i < ARRAY_LEN(hostile); i++) {
        char expected[200];
        log_say(p->log, LOG_INFO, "request refused", LOG_T("agent", hostile[i].text));
        snprintf(expected, sizeof expected, "level=info event=\"request refused\" agent=\"%s\"\n",
                 hostile[i].shown);
        assert_string_equal(line(p, p->fd), expected);
    }
}

static yyjson_doc *json_line(struct place *p)
{
    const char *text = written(p, p->fd);
    size_t len = strlen(text);
    assert_true(len > 1 && len <= LOG_MAX_LINE && text[len - 1] == '\n');
    assert_ptr_equal(strchr(text, '\n'), text + len - 1);
    yyjson_doc *doc = yyjson_read(text, len - 1, 0);
    assert_non_null(doc);
    return doc;
}

static const char *member(yyjson_doc *doc, const char *key)
{
    return yyjson_get_str(yyjson_obj_get(yyjson_doc_get_root(doc), key));
}

static void json(void **state)
{
    struct place *p = *state;
    log_change(p->log, LOG_JSON, LOG_INFO);
    log_say(p->log, LOG_ERROR, "job ended", LOG_I("low", INT64_MIN), LOG_B("yes", true),
            LOG_T("none", NULL));
    yyjson_doc *doc = json_line(p);
    yyjson_val *root = yyjson_doc_get_root(doc);
    assert_string_equal(member(doc, "level"), "error");
    assert_string_equal(member(doc, "event"), "job ended");
    assert_int_equal(yyjson_get_sint(yyjson_obj_get(root, "low")), INT64_MIN);
    assert_true(yyjson_is_true(yyjson_obj_get(root, "yes")));
    assert_int_equal(yyjson_obj_size(root), 5);
    yyjson_doc_free(doc);
    for (size_t i = 0; i < ARRAY_LEN(hostile); i++) {
        log_say(p->log, LOG_INFO, "request refused", LOG_T("agent", hostile[i].text));
        doc = json_line(p);
        const char *read_back = member(doc, "agent");
        assert_non_null(read_back);
        if (!strstr(hostile[i].shown, "\ufffd")) {
            assert_string_equal(read_back, hostile[i].text);
        }
        yyjson_doc_free(doc);
    }
}

// Every byte of a text between quotes comes back by JSON's rules, and a bare one as it is: what any
// reader of logfmt does.
static void text_round_trip(void **state)
{
    struct place *p = *state;
    char every[130] = "";
    for (int c = 1; c < 128; c++) {
        every[c - 1] = (char)c;
    }
    const char *texts[] = {every, "plain", "a=b c=d", "\"", "\\", "a\\\"b", "true", "\t"};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        log_say(p->log, LOG_INFO, "said", LOG_T("text", texts[i]), LOG_T("next", "x"));
        const char *said = line(p, p->fd);
        char *value = strstr(said, " text=");
        assert_non_null(value);
        value += strlen(" text=");
        char *next = strstr(value, " next=x\n");
        assert_non_null(next);
        *next = '\0';
        if (*value != '"') {
            assert_string_equal(value, texts[i]);
            continue;
        }
        yyjson_doc *doc = yyjson_read(value, strlen(value), 0);
        assert_non_null(doc);
        assert_string_equal(yyjson_get_str(yyjson_doc_get_root(doc)), texts[i]);
        yyjson_doc_free(doc);
    }
}

// A long text is cut where a character ends; a line that is full leaves fields out and says so.
static void bounds(void **state)
{
    struct place *p = *state;
    static char large[1 << 20];
    for (size_t i = 0; i + 2 < sizeof large; i += 2) {
        memcpy(large + i, "ä", 2);
    }
    log_say(p->log, LOG_INFO, "x", LOG_T("name", large + 1), LOG_I("after", 1));
    const char *text = line(p, p->fd);
    assert_true(strlen(text) < LOG_MAX_TEXT + 64);
    assert_non_null(strstr(text, "ä...\" after=1\n"));
    memset(large, 1, 5000); // six bytes each
    for (int format = 0; format < LOG_N_FORMATS; format++) {
        log_change(p->log, (enum log_format)format, LOG_INFO);
        log_say(p->log, LOG_INFO, "x", LOG_T("a", large), LOG_T("b", large), LOG_I("c", 3),
                LOG_T("d", large), LOG_I("e", 5));
        text = written(p, p->fd);
        assert_true(strlen(text) <= LOG_MAX_LINE);
        assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
        assert_non_null(strstr(text, format == LOG_JSON ? ",\"c\":3,\"e\":5,\"cut\":true}\n"
                                                        : " c=3 e=5 cut=true\n"));
        assert_null(strstr(text, format == LOG_JSON ? "\"b\"" : " b="));
    }
}

// A pipe that may wait: nobody asked for O_NONBLOCK.
static void reader_that_does_not_read(void **state)
{
    struct place *p = *state;
    for (int kind = 0; kind < 3; kind++) {
        int ends[2];
        assert_int_equal(kind < 2 ? pipe2(ends, O_CLOEXEC | (kind ? O_NONBLOCK : 0))
                                  : socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends),
                         0);
        log_change_files(p->log, ends[1], p->audit);
        uint64_t lost = log_lost(p->log);
        uint64_t written_lines = 0;
        while (log_lost(p->log) == lost) {
            log_say(p->log, LOG_INFO, "said", LOG_I("n", (int64_t)written_lines++));
            assert_true(written_lines < 100000);
        }
        log_audited(p->log, "key made", LOG_T("key", "a")); // the other file is not held up
        assert_non_null(strstr(written(p, p->audit), "key made"));
        assert_int_equal(log_lost(p->log), lost + 2);
        char data[LOG_MAX_LINE];
        assert_int_equal(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0); // of this end only
        ssize_t n = 0;
        while ((n = read(ends[0], data, sizeof data - 1)) > 0) {
        }
        log_say(p->log, LOG_INFO, "back", LOG_I("n", 1)); // room again
        n = read(ends[0], data, sizeof data - 1);
        assert_true(n > 0);
        data[n] = '\0';
        assert_non_null(strstr(data, "event=back"));
        close(ends[0]);
        lost = log_lost(p->log);
        log_say(p->log, LOG_INFO, "gone", LOG_I("n", 1)); // EPIPE
        assert_int_equal(log_lost(p->log), lost + 1);
        close(ends[1]);
    }
}

// Two writers with a file each, one pipe: every line is whole, so each is one write.
static void *talk(void *arg)
{
    for (int i = 0; i < 2000; i++) {
        log_say(arg, LOG_INFO, "said", LOG_T("filler", "0123456789012345678901234567890123456789"),
                LOG_I("n", i));
    }
    return NULL;
}

static void lines_are_whole(void **state)
{
    struct place *p = *state;
    struct log *logs[2];
    pthread_t threads[2];
    char *got = calloc(1, 1 << 20);
    assert_non_null(got);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(log_new(p->fd, -1, LOG_TEXT, LOG_INFO, &logs[i]), 0);
        assert_int_equal(pthread_create(&threads[i], NULL, talk, logs[i]), 0);
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(log_lost(logs[i]), 0);
        log_free(logs[i]);
    }
    assert_true(pread(p->fd, got, (1 << 20) - 1, 0) > 0);
    int n = 0;
    for (char *rest = got, *l; (l = strsep(&rest, "\n")) && *l; n++) {
        assert_memory_equal(l, "time=", 5);
        assert_non_null(strstr(l, "filler=0123456789012345678901234567890123456789 n="));
    }
    assert_int_equal(n, 4000);
    free(got);
}

// A full disk tears a line; the one after it begins a line of its own.
static void torn_line(void **state)
{
    struct place *p = *state;
    struct rlimit old, tight = {.rlim_cur = 100, .rlim_max = RLIM_INFINITY};
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    tight.rlim_max = old.rlim_max;
    log_say(p->log, LOG_INFO, "first", LOG_I("n", 1));
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
    log_say(p->log, LOG_INFO, "second", LOG_T("filler", "01234567890123456789012345678901234567"));
    log_say(p->log, LOG_INFO, "third", LOG_I("n", 3)); // not a byte of it
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_int_equal(log_lost(p->log), 2);
    log_say(p->log, LOG_INFO, "fourth", LOG_I("n", 4));
    const char *text = written(p, p->fd);
    const char *last = strrchr(text, '4') - strlen("time=2026-01-01T00:00:00.000Z level=info "
                                                   "event=fourth n=");
    assert_true(last > text + 100 && last[-1] == '\n');
    assert_memory_equal(last, "time=", 5);
}

static void rotation(void **state)
{
    struct place *p = *state;
    char folder[] = "/tmp/isle-log-XXXXXX";
    assert_non_null(mkdtemp(folder));
    int dir = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC), fd = -1, next = -1;
    assert_int_equal(log_open_file(dir, "audit", &fd), 0);
    log_change_files(p->log, p->fd, fd);
    log_audited(p->log, "one", LOG_I("n", 1));
    assert_int_equal(renameat(dir, "audit", dir, "audit.1"), 0);
    assert_int_equal(log_open_file(dir, "audit", &next), 0);
    log_change_files(p->log, p->fd, next);
    close(fd);
    log_audited(p->log, "two", LOG_I("n", 2));
    char text[200];
    assert_true(fd_read_at(dir, "audit.1", text, sizeof text) > 0 && strstr(text, "event=one"));
    assert_true(fd_read_at(dir, "audit", text, sizeof text) > 0 && strstr(text, "event=two"));
    struct stat st;
    assert_int_equal(fstat(next, &st), 0);
    assert_int_equal(st.st_mode & 07137, 0); // nobody else reads it
    assert_int_equal(symlinkat("audit", dir, "link"), 0);
    assert_int_equal(mkfifoat(dir, "pipe", 0600), 0);
    assert_int_equal(log_open_file(dir, "link", &fd), -ELOOP);
    assert_int_equal(log_open_file(dir, "pipe", &fd), -ENXIO); // and does not wait
    assert_int_equal(log_open_file(dir, "missing/x", &fd), -ENOENT);
    close(next);
    for (size_t i = 0; i < 4; i++) {
        unlinkat(dir, ((const char *[]){"audit", "audit.1", "link", "pipe"})[i], 0);
    }
    close(dir);
    rmdir(folder);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    alarm(60); // what waits for a reader waits for ever
    const struct CMUnitTest tests[] = {
        TEST(fields),
        TEST(levels),
        TEST(audit),
        TEST(hostile_text),
        TEST(json),
        TEST(text_round_trip),
        TEST(bounds),
        TEST(reader_that_does_not_read),
        TEST(lines_are_whole),
        TEST(torn_line),
        TEST(rotation),
    };
    return cmocka_run_group_tests_name("log", tests, NULL, NULL);
}
