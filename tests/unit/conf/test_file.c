// The text of a settings file: what it takes, what a shell makes of the same line, every refusal
// with its line.
#include "base/fd.h"
#include "conf/file.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

static int parse(const char *text, size_t len, struct conf_file *ret, struct conf_error *e)
{
    char *copy = malloc(len + 1);
    assert_non_null(copy);
    memcpy(copy, text, len);
    *e = (struct conf_error){""};
    return conf_file_parse(copy, len, "isle.conf", ret, e);
}

static void takes(void **state)
{
    (void)state;
    static const struct {
        const char *text, *value; // of SANDBOX_HOSTNAME; NULL: unset
    } cases[] = {
        {"SANDBOX_HOSTNAME=box", "box"},
        {"SANDBOX_HOSTNAME=box\n", "box"},
        {"\n\n# SANDBOX_HOSTNAME=no\n  # nor this\n \t\n  SANDBOX_HOSTNAME=box  \n", "box"},
        {"SANDBOX_HOSTNAME=box\r\nSANDBOX_MAX_DISK_MB=5\r\n", "box"},
        {"SANDBOX_HOSTNAME=box # mine", "box"},
        {"SANDBOX_HOSTNAME=box#1", "box#1"},
        {"SANDBOX_HOSTNAME=#1", "#1"},
        {"SANDBOX_HOSTNAME=a=b", "a=b"},
        {"SANDBOX_HOSTNAME='a b'", "a b"},
        {"SANDBOX_HOSTNAME='a \\ \" # b' # c", "a \\ \" # b"},
        {"SANDBOX_HOSTNAME=\"a \\\" \\\\ ' # \\n b\"", "a \" \\ ' # \\n b"},
        {"SANDBOX_HOSTNAME=", NULL},
        {"SANDBOX_HOSTNAME=\"\"", NULL},
        {"", NULL},
        {"#", NULL},
        {"SANDBOX_HOSTNAME=b\xc3\xb6x", "b\xc3\xb6x"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct conf_file file;
        struct conf_error e;
        assert_int_equal(parse(cases[i].text, strlen(cases[i].text), &file, &e), 0);
        if (cases[i].value) {
            assert_non_null(file.values[SETTING_HOSTNAME]);
            assert_string_equal(file.values[SETTING_HOSTNAME], cases[i].value);
        } else {
            assert_null(file.values[SETTING_HOSTNAME]);
        }
        conf_file_done(&file);
    }
}

// Where this and sh(1) both take a line, they make the same value of it.
static void a_shell_reads_the_same(void **state)
{
    (void)state;
    static const char *const values[] = {"box",     "'a b'",           "\"a \\\" \\\\ ' # \\n b\"",
                                         "box # x", "'\" \\ # *' # ?", "#1",
                                         "a=b",     "\"*\"",           "box#1 # y"};
    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        char line[200], command[300], shell[200] = "";
        struct conf_file file;
        struct conf_error e;
        snprintf(line, sizeof line, "SANDBOX_HOSTNAME=%s", values[i]);
        assert_int_equal(parse(line, strlen(line), &file, &e), 0);
        snprintf(command, sizeof command, "%s\nprintf %%s \"$SANDBOX_HOSTNAME\"", line);
        setenv("LINE", command, 1);
        FILE *out = popen("sh -c \"$LINE\"", "re");
        assert_non_null(out);
        assert_true(fread(shell, 1, sizeof shell - 1, out) > 0);
        assert_int_equal(pclose(out), 0);
        assert_string_equal(file.values[SETTING_HOSTNAME], shell);
        conf_file_done(&file);
    }
}

static void refuses(void **state)
{
    (void)state;
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"\n\nSANDBOX_HOSTNAME\n",
         "isle.conf:3: SANDBOX_HOSTNAME: a line is NAME=VALUE, or begins with #"},
        {"=x", "isle.conf:1: =x: a line is NAME=VALUE, or begins with #"},
        {"SANDBOX_HOSTNAME =x", "isle.conf:1: no blanks around ="},
        {"SANDBOX_HOSTNAME= x", "isle.conf:1: no blanks around ="},
        {"SANDBOX_HOSTNAME=a b", "isle.conf:1: something follows the value; one with blanks stands "
                                 "in '...' or \"...\""},
        {"SANDBOX_HOSTNAME='a'#b", "isle.conf:1: something follows the value; one with blanks "
                                   "stands in '...' or \"...\""},
        {"SANDBOX_HOSTNAME='a'b", "isle.conf:1: something follows the value; one with blanks "
                                  "stands in '...' or \"...\""},
        {"SANDBOX_HOSTNAME=a'b'", "isle.conf:1: a value with quotes or a backslash in it stands in "
                                  "'...' or \"...\""},
        {"SANDBOX_HOSTNAME=a\\ b", "isle.conf:1: a value with quotes or a backslash in it stands "
                                   "in '...' or \"...\""},
        {"SANDBOX_HOSTNAME=\"a\\\"", "isle.conf:1: the quote is not closed"},
        {"SANDBOX_HOSTNAME='a\nb'", "isle.conf:1: the quote is not closed"},
        {"SANDBOX_HOSTNAME=a\n#\nSANDBOX_HOSTNAME=a",
         "isle.conf:3: SANDBOX_HOSTNAME stands in line 1 already"},
        {"SANDBOX_HOSTNAME=\nSANDBOX_HOSTNAME=a",
         "isle.conf:2: SANDBOX_HOSTNAME stands in line 1 already"},
        {"SANDBOX_HOSTNAM=a",
         "isle.conf:1: SANDBOX_HOSTNAM is no setting; did you mean SANDBOX_HOSTNAME?"},
        {"HOSTNAME=a", "isle.conf:1: HOSTNAME is no setting; did you mean SANDBOX_HOSTNAME?"},
        {"sandbox_max_disk_mb=1",
         "isle.conf:1: sandbox_max_disk_mb is no setting; did you mean SANDBOX_MAX_DISK_MB?"},
        {"export SANDBOX_HOSTNAME=a",
         "isle.conf:1: export SANDBOX_HOSTNAME is no setting; isle config lists them"},
        {"PATH=/bin", "isle.conf:1: PATH is no setting; isle config lists them"},
        {"\x1b[2J=1", "isle.conf:1: ?[2J is no setting; isle config lists them"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct conf_file file = {};
        struct conf_error e;
        assert_int_equal(parse(cases[i].text, strlen(cases[i].text), &file, &e), -EINVAL);
        assert_string_equal(e.text, cases[i].why);
        assert_null(file.text);
    }
    struct conf_file file;
    struct conf_error e;
    assert_int_equal(parse("A\0B", 3, &file, &e), -EINVAL);
    assert_string_equal(e.text, "isle.conf:1: a NUL byte: this is no text");
}

static char folder[] = "/tmp/isle-conf-XXXXXX";

// The whole way through a descriptor of a file with this mode.
static int read_file(const char *text, size_t len, mode_t mode, struct conf_error *e)
{
    char path[80];
    snprintf(path, sizeof path, "%s/isle.conf", folder);
    AUTO_CLOSE int to = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(to >= 0);
    assert_int_equal(fd_write_all(to, text, len), 0);
    assert_int_equal(fchmod(to, mode), 0);
    AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct conf_file file = {};
    *e = (struct conf_error){""};
    int rc = conf_file_read(fd, "isle.conf", &file, e);
    conf_file_done(&file);
    unlink(path);
    return rc;
}

static void who_may_read_and_write(void **state)
{
    (void)state;
    struct conf_error e;
    static const char plain[] = "SANDBOX_HOSTNAME=a\n", key[] = "#\nSECRET_KEY=geheim\n";
    assert_int_equal(read_file(plain, sizeof plain - 1, 0644, &e), 0);
    assert_int_equal(read_file(plain, sizeof plain - 1, 0646, &e), -EPERM);
    assert_string_equal(e.text, "isle.conf: others can write it: chmod o-w");
    assert_int_equal(read_file(key, sizeof key - 1, 0600, &e), 0);
    assert_int_equal(read_file(key, sizeof key - 1, 0640, &e), 0);
    assert_int_equal(read_file(key, sizeof key - 1, 0644, &e), -EPERM);
    assert_string_equal(e.text,
                        "isle.conf:2: SECRET_KEY is a secret, and others can read the file: chmod "
                        "o-r");
}

static void what_is_no_file(void **state)
{
    (void)state;
    struct conf_error e;
    char *large = calloc(1, CONF_FILE_MAX + 1);
    assert_non_null(large);
    memset(large, '\n', CONF_FILE_MAX + 1);
    assert_int_equal(read_file(large, CONF_FILE_MAX, 0600, &e), 0);
    assert_int_equal(read_file(large, CONF_FILE_MAX + 1, 0600, &e), -EFBIG);
    assert_string_equal(e.text, "isle.conf: is larger than 64 KiB");
    free(large);
    struct conf_file file;
    AUTO_CLOSE int dir = open("/", O_RDONLY | O_CLOEXEC);
    assert_int_equal(conf_file_read(dir, "/", &file, &e), -EINVAL);
    assert_string_equal(e.text, "/: is not a file");
    AUTO_CLOSE int device = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    assert_int_equal(conf_file_read(device, "/dev/zero", &file, &e), -EINVAL);
    assert_int_equal(conf_file_read(-1, "gone", &file, &e), -EBADF);
}

int main(void)
{
    assert_non_null(mkdtemp(folder));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes),           cmocka_unit_test(a_shell_reads_the_same),
        cmocka_unit_test(refuses),         cmocka_unit_test(who_may_read_and_write),
        cmocka_unit_test(what_is_no_file),
    };
    int failed = cmocka_run_group_tests_name("conf-file", tests, NULL, NULL);
    rmdir(folder);
    return failed;
}
