// Where values come from and which one counts; what travels to the service; what SIGHUP changes.
#include "base/fd.h"
#include "conf/conf.h"

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

static char path[] = "/tmp/isle-conf-XXXXXX";

static void write_file(const char *text)
{
    AUTO_CLOSE int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
}

#define TEXT(t) ((char *)(uintptr_t)(t))
#define ENVIRONMENT(...) ((char *const[]){__VA_ARGS__, NULL})

static int load(const char *text, char *const *environment, const struct conf_option *options,
                size_t n, struct conf *ret, struct conf_error *e)
{
    write_file(text);
    *e = (struct conf_error){""};
    return conf_load(&(struct conf_sources){.environment = environment,
                                            .file = path,
                                            .file_must_exist = true,
                                            .options = options,
                                            .n_options = n},
                     ret, e);
}

static void weights(void **state)
{
    (void)state;
    struct conf c;
    struct conf_error e;
    const struct conf_option options[] = {{SETTING_MAX_DISK_MB, "1"},
                                          {SETTING_MAX_DISK_MB, "4"}, // the last counts
                                          {SETTING_QUEUE_LIMIT, NULL},
                                          {SETTING_QUEUE_LIMIT, ""}};
    assert_int_equal(load("SANDBOX_MAX_DISK_MB=2\nSANDBOX_QUEUE_LIMIT=2\nSANDBOX_HOSTNAME=f\n"
                          "ISLE_LOG_LEVEL=debug\n",
                          ENVIRONMENT(TEXT("SANDBOX_MAX_DISK_MB=3"), TEXT("SANDBOX_QUEUE_LIMIT=3"),
                                      TEXT("ISLE_LOG_LEVEL=")),
                          options, ARRAY_LEN(options), &c, &e),
                     0);
    static const struct {
        enum setting setting;
        const char *value;
        enum conf_origin origin;
    } rows[] = {{SETTING_MAX_DISK_MB, "4", CONF_OPTION},
                {SETTING_QUEUE_LIMIT, "3", CONF_ENVIRONMENT},
                {SETTING_HOSTNAME, "f", CONF_FILE},
                {SETTING_LOG_LEVEL, "debug", CONF_FILE}, // empty is unset
                {SETTING_LOG_FORMAT, "text", CONF_DEFAULT}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_string_equal(c.text[rows[i].setting], rows[i].value);
        assert_int_equal(c.origin[rows[i].setting], rows[i].origin);
    }
    assert_int_equal(c.number[SETTING_MAX_DISK_MB], 4);
    assert_string_equal(c.file, path);
    assert_true(c.file_read);
    conf_done(&c);
}

static void the_same_bounds_everywhere(void **state)
{
    (void)state;
    struct conf c;
    struct conf_error e;
    char expected[200];
    static const char why[] = "SANDBOX_QUEUE_LIMIT: 1000001 is above the maximum of 1000000 jobs";
    assert_int_equal(load("", ENVIRONMENT(TEXT("SANDBOX_QUEUE_LIMIT=1000001")), NULL, 0, &c, &e),
                     -EINVAL);
    assert_string_equal(e.text, why);
    const struct conf_option option = {SETTING_QUEUE_LIMIT, "1000001"};
    assert_int_equal(load("", ENVIRONMENT(NULL), &option, 1, &c, &e), -EINVAL);
    assert_string_equal(e.text, why);
    assert_int_equal(load("#\nSANDBOX_QUEUE_LIMIT=1000001", ENVIRONMENT(NULL), NULL, 0, &c, &e),
                     -EINVAL);
    snprintf(expected, sizeof expected, "%s:2: %s", path, why);
    assert_string_equal(e.text, expected);
}

static void a_file_that_is_not_there(void **state)
{
    (void)state;
    struct conf c;
    struct conf_error e;
    struct conf_sources from = {.file = "/nonexistent/isle.conf"};
    assert_int_equal(conf_load(&from, &c, &e), 0); // nobody named it
    assert_false(c.file_read);
    assert_string_equal(c.file, "/nonexistent/isle.conf");
    conf_done(&c);
    from.file_must_exist = true;
    assert_int_equal(conf_load(&from, &c, &e), -ENOENT);
    assert_string_equal(e.text, "/nonexistent/isle.conf: No such file or directory");
}

static void presets(void **state)
{
    (void)state;
    struct conf c;
    struct conf_error e;
    int64_t changed = 0;
    // what is given outweighs the preset
    assert_int_equal(load("SANDBOX_PRESET=platform\nSANDBOX_FILESYSTEM_ISOLATION_ENABLED=true\n"
                          "SANDBOX_LEGACY_FALLBACK_ENABLED=false\nSANDBOX_NETWORK_DEFAULT=none\n",
                          ENVIRONMENT(NULL), NULL, 0, &c, &e),
                     0);
    for (int i = 0; i < SETTING_COUNT; i++) {
        const struct setting_spec *s = &setting_specs[i];
        bool other = s->platform && strcmp(s->platform, s->initial) != 0;
        changed += other;
        assert_true(other == (s->why != NULL)); // each departure has its reason
        if (s->platform && c.origin[i] != CONF_FILE) {
            assert_string_equal(c.text[i], s->platform);
            assert_false(conf_departs(&c, (enum setting)i));
        }
    }
    assert_true(changed >= 4);
    assert_int_equal(c.origin[SETTING_FILESYSTEM_ISOLATION_BINARY], CONF_PRESET);
    assert_true(conf_departs(&c, SETTING_LEGACY_FALLBACK_ENABLED));
    assert_true(conf_departs(&c, SETTING_NETWORK_DEFAULT));
    conf_done(&c);
    assert_int_equal(load("SANDBOX_PRESET=plattform\n", ENVIRONMENT(NULL), NULL, 0, &c, &e),
                     -EINVAL);
    // the number counts, not how it is written
    assert_int_equal(load("", ENVIRONMENT(TEXT("SANDBOX_MAX_DISK_MB=08192")), NULL, 0, &c, &e), 0);
    assert_false(conf_departs(&c, SETTING_MAX_DISK_MB));
    conf_done(&c);
}

static void options_of_a_command_line(void **state)
{
    (void)state;
    struct conf_option o = {};
    struct conf_error e;
    assert_int_equal(conf_option_parse("SANDBOX_HOSTNAME=a=b", &o, &e), 0);
    assert_int_equal(o.setting, SETTING_HOSTNAME);
    assert_string_equal(o.value, "a=b");
    assert_int_equal(conf_option_parse("SANDBOX_HOSTNAME", &o, &e), -EINVAL);
    assert_string_equal(e.text, "SANDBOX_HOSTNAME: a setting is given as NAME=VALUE");
    assert_int_equal(conf_option_parse("QUEUE_LIMIT=1", &o, &e), -EINVAL);
    assert_string_equal(e.text, "QUEUE_LIMIT is no setting; did you mean SANDBOX_QUEUE_LIMIT?");
    assert_int_equal(conf_option_parse("SECRET_KEY=geheim", &o, &e), -EINVAL);
    assert_null(strstr(e.text, "geheim"));
    char name[5000];
    memset(name, 'A', sizeof name - 3);
    memcpy(name + sizeof name - 3, "=1", 3);
    assert_int_equal(conf_option_parse(name, &o, &e), -EINVAL);
}

static void a_secret_is_never_shown(void **state)
{
    (void)state;
    struct conf c;
    struct conf_error e;
    static char variable[70000] = "SECRET_KEY=geheim";
    memset(variable + strlen(variable), 'x', sizeof variable - strlen(variable) - 1);
    assert_int_equal(load("", ENVIRONMENT(variable), NULL, 0, &c, &e), -EINVAL);
    assert_string_equal(e.text, "SECRET_KEY: the value is longer than 65536 bytes");
    assert_int_equal(load("", ENVIRONMENT(TEXT("SECRET_KEY=geheim")), NULL, 0, &c, &e), 0);
    assert_true(conf_is_idle(&c, SETTING_SECRET_KEY));
    char **passed = conf_environment(&c); // and nobody gets it who has no use for it
    for (size_t i = 0; passed[i]; i++) {
        assert_null(strstr(passed[i], "geheim"));
    }
    conf_environment_free(passed);
    conf_done(&c);
}

// As the service has it after the re-execution.
static struct conf passed_on(struct conf *c, char ***ret_environment)
{
    struct conf passed;
    struct conf_error e;
    *ret_environment = conf_environment(c);
    assert_non_null(*ret_environment);
    assert_int_equal(conf_load_passed(*ret_environment, &passed, &e), 0);
    return passed;
}

static void origins_travel(void **state)
{
    (void)state;
    struct conf c;
    struct conf_error e;
    char **environment;
    const struct conf_option option = {SETTING_LISTEN, "127.0.0.1:0"};
    assert_int_equal(load("SANDBOX_HOSTNAME=f\n",
                          ENVIRONMENT(TEXT("SANDBOX_QUEUE_LIMIT=3"), TEXT("ISLE_CONF_FILE=/no"),
                                      TEXT("ISLE_CONF_ORIGINS=4444")),
                          &option, 1, &c, &e),
                     0);
    struct conf passed = passed_on(&c, &environment);
    for (int i = 0; i < SETTING_COUNT; i++) {
        assert_int_equal(passed.origin[i], c.origin[i]);
        assert_string_equal(passed.text[i], c.text[i]);
        assert_int_equal(passed.number[i], c.number[i]);
    }
    assert_string_equal(passed.file, path); // not the caller's
    conf_done(&passed);
    conf_environment_free(environment);
    conf_done(&c);
}

static int reload(struct conf *c, const char *text, struct conf_changes *ret, struct conf_error *e)
{
    write_file(text);
    AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    return conf_reload(c, fd, ret, e);
}

static void sighup(void **state)
{
    (void)state;
    struct conf c;
    struct conf_error e;
    struct conf_changes changes = {};
    char **environment;
    assert_int_equal(load("SANDBOX_HOSTNAME=f\nSANDBOX_QUEUE_LIMIT=5\nISLE_LOG_LEVEL=error\n",
                          ENVIRONMENT(TEXT("SANDBOX_DRAIN_SECONDS=7")), NULL, 0, &c, &e),
                     0);
    struct conf live = passed_on(&c, &environment);
    static const char *const same = "ISLE_LOG_LEVEL=error\nSANDBOX_QUEUE_LIMIT=5\n"
                                    "SANDBOX_HOSTNAME=f";
    assert_int_equal(reload(&live, same, &changes, &e), 0);
    assert_int_equal(changes.n, 0);

    assert_int_equal(reload(&live,
                            "SANDBOX_HOSTNAME=g\nISLE_LOG_LEVEL=debug\nSANDBOX_DRAIN_SECONDS=8\n"
                            "SANDBOX_MAX_DISK_MB=9\nSECRET_KEY=x\n",
                            &changes, &e),
                     0);
    static const struct {
        enum setting setting;
        const char *value;
        bool told, taken;
    } rows[] = {{SETTING_HOSTNAME, "f", true, false},       // needs a restart
                {SETTING_LOG_LEVEL, "debug", true, true},   // other text
                {SETTING_DRAIN_SECONDS, "7", false, false}, // the environment's
                {SETTING_QUEUE_LIMIT, "1000", true, true},  // no longer in the file
                {SETTING_MAX_DISK_MB, "9", true, true}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        bool told = false;
        for (size_t k = 0; k < changes.n; k++) {
            if (changes.rows[k].setting == rows[i].setting) {
                told = true;
                assert_int_equal(changes.rows[k].taken, rows[i].taken);
            }
        }
        assert_int_equal(told, rows[i].told);
        assert_string_equal(live.text[rows[i].setting], rows[i].value);
    }
    assert_int_equal(changes.n, 4);
    assert_int_equal(live.number[SETTING_QUEUE_LIMIT], 1000);
    assert_int_equal(live.origin[SETTING_QUEUE_LIMIT], CONF_DEFAULT);
    assert_int_equal(live.origin[SETTING_MAX_DISK_MB], CONF_FILE);
    conf_done(&live);
    conf_environment_free(environment);
    conf_done(&c);
}

static void sighup_with_a_bad_file(void **state)
{
    (void)state;
    struct conf c;
    struct conf_error e;
    struct conf_changes changes = {.n = 77};
    assert_int_equal(load("SANDBOX_QUEUE_LIMIT=5\n", ENVIRONMENT(NULL), NULL, 0, &c, &e), 0);
    static const char *const bad[] = {"SANDBOX_QUEUE_LIMIT=6\nSANDBOX_MAX_DISK_MB=many\n",
                                      "SANDBOX_QUEUE_LIMIT=6\nSANDBOX_HOSTNAME=-\n",
                                      "SANDBOX_QUEUE_LIMIT=6\nWHAT=1\n"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        assert_int_equal(reload(&c, bad[i], &changes, &e), -EINVAL);
        assert_memory_equal(e.text, path, strlen(path));
        assert_int_equal(c.number[SETTING_QUEUE_LIMIT], 5);
    }
    assert_int_equal(conf_reload(&c, -1, &changes, &e), -EBADF);
    assert_int_equal(chmod(path, 0666), 0);
    assert_int_equal(reload(&c, "", &changes, &e), -EPERM);
    assert_int_equal(chmod(path, 0644), 0);
    assert_int_equal(reload(&c, "SECRET_KEY=geheim\n", &changes, &e), -EPERM);
    assert_null(strstr(e.text, "geheim"));
    assert_int_equal(chmod(path, 0600), 0);
    assert_int_equal(c.number[SETTING_QUEUE_LIMIT], 5);
    assert_int_equal(changes.n, 77);
    conf_done(&c);
}

int main(void)
{
    AUTO_CLOSE int fd = mkstemp(path);
    assert_true(fd >= 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights),
        cmocka_unit_test(the_same_bounds_everywhere),
        cmocka_unit_test(a_file_that_is_not_there),
        cmocka_unit_test(presets),
        cmocka_unit_test(options_of_a_command_line),
        cmocka_unit_test(a_secret_is_never_shown),
        cmocka_unit_test(origins_travel),
        cmocka_unit_test(sighup),
        cmocka_unit_test(sighup_with_a_bad_file),
    };
    int failed = cmocka_run_group_tests_name("conf-sources", tests, NULL, NULL);
    unlink(path);
    return failed;
}
