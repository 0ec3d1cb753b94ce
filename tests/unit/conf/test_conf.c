// The table of settings: defaults, every refusal, what the re-executed image gets.
#include "base/fd.h"
#include "conf/conf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static int load(const char *variable, struct conf *ret, struct conf_error *e)
{
    char *environment[] = {(char *)(uintptr_t) "PATH=/bin", (char *)(uintptr_t)variable, NULL};
    *e = (struct conf_error){""};
    return conf_load(&(struct conf_sources){.environment = environment}, ret, e);
}

static void defaults_are_valid(void **state)
{
    (void)state;
    struct conf c;
    struct conf_error e;
    char *none[] = {NULL};
    assert_int_equal(conf_load(&(struct conf_sources){.environment = none}, &c, &e), 0);
    assert_true(conf_bool(&c, SETTING_RUNTIME_ENABLED));
    assert_int_equal(c.number[SETTING_MAX_DISK_MB], 8192);
    assert_int_equal(c.number[SETTING_TMPFS_WORKSPACE_MB], 64);
    assert_string_equal(c.text[SETTING_HOSTNAME], "clouisle-sandbox");
    assert_string_equal(c.text[SETTING_WORKSPACE_ROOT], "/var/lib/isle/data");
    for (int i = 0; i < SETTING_COUNT; i++) {
        assert_non_null(setting_specs[i].name);
        assert_non_null(setting_specs[i].help);
        assert_int_equal(c.origin[i], CONF_DEFAULT);
    }
}

static void takes(void **state)
{
    (void)state;
    struct conf c;
    struct conf_error e;
    assert_int_equal(load("SANDBOX_MAX_DISK_MB=100", &c, &e), 0);
    assert_int_equal(c.number[SETTING_MAX_DISK_MB], 100);
    assert_int_equal(load("SANDBOX_RUNTIME_ENABLED=OFF", &c, &e), 0);
    assert_false(conf_bool(&c, SETTING_RUNTIME_ENABLED));
    assert_int_equal(load("SANDBOX_MAX_DISK_MB=", &c, &e), 0); // empty is unset
    assert_int_equal(c.number[SETTING_MAX_DISK_MB], 8192);
    assert_false(conf_given(&c, SETTING_MAX_DISK_MB));
    assert_int_equal(load("SANDBOX_FILESYSTEM_ISOLATION_ENABLED=1", &c, &e), 0);
    assert_int_equal(load("SANDBOX_SOMETHING_LATER=x", &c, &e), 0);
    assert_int_equal(load("SANDBOX_NETWORK_DEFAULT=none", &c, &e), 0);
}

static void refuses(void **state)
{
    (void)state;
    static const struct {
        const char *variable, *text;
    } cases[] = {
        {"SANDBOX_MAX_DISK_MB=many", "SANDBOX_MAX_DISK_MB: many is not a whole number"},
        {"SANDBOX_MAX_DISK_MB=1.5", "SANDBOX_MAX_DISK_MB: 1.5 is not a whole number"},
        {"SANDBOX_MAX_DISK_MB= 1", "SANDBOX_MAX_DISK_MB:  1 is not a whole number"},
        {"SANDBOX_MAX_DISK_MB=0x10", "SANDBOX_MAX_DISK_MB: 0x10 is not a whole number"},
        {"SANDBOX_MAX_DISK_MB=-1", "SANDBOX_MAX_DISK_MB: -1 is below the minimum of 0 MB"},
        {"SANDBOX_MAX_DISK_MB=102401",
         "SANDBOX_MAX_DISK_MB: 102401 is above the maximum of 102400 MB"},
        {"SANDBOX_MAX_DISK_MB=99999999999999999999",
         "SANDBOX_MAX_DISK_MB: 99999999999999999999 is above the maximum of 102400 MB"},
        {"SANDBOX_RUNTIME_ENABLED=perhaps",
         "SANDBOX_RUNTIME_ENABLED: perhaps is neither true nor false"},
        {"SANDBOX_HOSTNAME=a b",
         "SANDBOX_HOSTNAME: a b is not a host name: letters, digits and - inside"},
        {"SANDBOX_HOSTNAME=-a",
         "SANDBOX_HOSTNAME: -a is not a host name: letters, digits and - inside"},
        {"SANDBOX_RUNTIME_ROOT=runtime", "SANDBOX_RUNTIME_ROOT: runtime is not an absolute path"},
        {"SANDBOX_RUNTIME_ROOT=\x1b[1m", "SANDBOX_RUNTIME_ROOT: ?[1m is not an absolute path"},
        {"SANDBOX_NETWORK_DEFAULT=no",
         "SANDBOX_NETWORK_DEFAULT: no is refused: there is no such network; the value can be: none "
         "host"},
        {"SANDBOX_FILESYSTEM_ISOLATION_BINARY=bubblewrap",
         "SANDBOX_FILESYSTEM_ISOLATION_BINARY: bubblewrap is not an absolute path"},
        {"SANDBOX_LEGACY_FALLBACK_ENABLED=yes please",
         "SANDBOX_LEGACY_FALLBACK_ENABLED: yes please is neither true nor false"},
        {"ISLE_TRUSTED_PROXIES=10.0.0.1, 10.0.0.2",
         "ISLE_TRUSTED_PROXIES: 10.0.0.1, 10.0.0.2 is refused: these are addresses or networks "
         "such as 10.0.0.0/8, with commas between, no blanks"},
        {"ISLE_ALLOWED_HOSTS=a,,b", "ISLE_ALLOWED_HOSTS: a,,b has an empty word"},
        {"ISLE_ALLOWED_HOSTS=a,", "ISLE_ALLOWED_HOSTS: a, has an empty word"},
        {"ISLE_LISTEN=*:1,*:2,*:3,*:4,*:5,*:6,*:7",
         "ISLE_LISTEN: *:1,*:2,*:3,*:4,*:5,*:6,*:7 has more than 6 words"},
        {"ISLE_ALLOWED_HOSTS=,", "ISLE_ALLOWED_HOSTS: , has an empty word"},
        {"ISLE_LOG_FORMAT=xml",
         "ISLE_LOG_FORMAT: xml is refused: there is no such format; the value can be: text json"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct conf c = {};
        struct conf_error e;
        assert_int_not_equal(load(cases[i].variable, &c, &e), 0);
        assert_string_equal(e.text, cases[i].text);
        assert_null(c.text[0]);
    }
}

static void long_values_are_cut(void **state)
{
    (void)state;
    char variable[5000] = "SANDBOX_HOSTNAME=";
    memset(variable + strlen(variable), 'x', 4900);
    struct conf c;
    struct conf_error e;
    assert_int_not_equal(load(variable, &c, &e), 0);
    assert_non_null(strstr(e.text, "... is above the maximum of 63 characters"));
}

static void only_given_settings_travel(void **state)
{
    (void)state;
    struct conf c;
    struct conf_error e;
    assert_int_equal(load("SANDBOX_HOSTNAME=box", &c, &e), 0);
    char **environment = conf_environment(&c);
    assert_non_null(environment);
    assert_string_equal(environment[0], "SANDBOX_HOSTNAME=box");
    assert_int_equal(strncmp(environment[1], "ISLE_CONF_ORIGINS=", 18), 0);
    assert_null(environment[2]); // PATH stays behind
    conf_environment_free(environment);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_valid),
        cmocka_unit_test(takes),
        cmocka_unit_test(refuses),
        cmocka_unit_test(long_values_are_cut),
        cmocka_unit_test(only_given_settings_travel),
    };
    return cmocka_run_group_tests_name("conf", tests, NULL, NULL);
}
