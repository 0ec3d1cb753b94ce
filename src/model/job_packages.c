// job_packages.c: packages by name and version. Their grammar is checked, so that a caller's
// mistake is named today; installing them is not there yet, and a job that asks for it is refused.
#include "model/parse.h"

#include "base/fd.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { PACKAGE_BYTES = 256 };

#define DIGITS "0123456789"
#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

static bool only(const char *text, size_t len, const char *set)
{
    size_t i = 0;
    while (i < len && text[i] && strchr(set, text[i])) {
        i++;
    }
    return i == len && len > 0;
}

// NAME==VERSION: a distribution's name, with [extras] perhaps, and one version exactly.
static bool is_python_package(const char *text, size_t len)
{
    const char *equal = memmem(text, len, "==", 2);
    if (!equal) {
        return false;
    }
    size_t name = (size_t)(equal - text), version = len - name - 2;
    const char *extras = memchr(text, '[', name);
    if (extras) {
        size_t n = name - (size_t)(extras - text);
        if (extras[n - 1] != ']' || !only(extras + 1, n - 2, LETTERS DIGITS "._-,")) {
            return false;
        }
        name = (size_t)(extras - text);
    }
    return only(text, name, LETTERS DIGITS "._-") && strchr(LETTERS DIGITS, text[0]) &&
           only(equal + 2, version, LETTERS DIGITS ".!+_-") && strchr(DIGITS, equal[2]);
}

// NAME@VERSION or @SCOPE/NAME@VERSION.
static bool is_js_package(const char *text, size_t len)
{
    const char *at = len > 1 ? memrchr(text + 1, '@', len - 1) : NULL;
    if (!at) {
        return false;
    }
    const char *name = text;
    size_t name_len = (size_t)(at - text), version = len - name_len - 1;
    if (*text == '@') {
        const char *slash = memchr(text, '/', name_len);
        if (!slash || !only(text + 1, (size_t)(slash - text - 1), LETTERS DIGITS "._-~")) {
            return false;
        }
        name = slash + 1;
        name_len = (size_t)(at - name);
    }
    return only(name, name_len, LETTERS DIGITS "._-~") && name[0] != '.' && name[0] != '-' &&
           only(at + 1, version, LETTERS DIGITS ".+-") && strchr(DIGITS, at[1]);
}

bool job_is_package(enum language language, const char *text, size_t len)
{
    return len <= PACKAGE_BYTES && (language == LANGUAGE_PYTHON       ? is_python_package(text, len)
                                    : language == LANGUAGE_JAVASCRIPT ? is_js_package(text, len)
                                                                      : false);
}

static size_t name_len(enum language language, const char *text, size_t len)
{
    if (language == LANGUAGE_JAVASCRIPT) {
        const char *at = len > 1 ? memrchr(text + 1, '@', len - 1) : NULL;
        return at ? (size_t)(at - text) : len;
    }
    size_t n = 0;
    while (n < len && text[n] != '[' && text[n] != '=') {
        n++;
    }
    return n;
}

// The next character of a distribution's name as PEP 503 compares them: in lower case, and a run of
// - _ . is one -. '\0': there is none.
static char next_of_name(const char **at, const char *end)
{
    static const char runs[] = "-_.";
    if (*at == end) {
        return '\0';
    }
    char c = *(*at)++;
    if (!strchr(runs, c)) {
        return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
    }
    while (*at < end && strchr(runs, **at)) {
        ++*at;
    }
    return '-';
}

bool job_same_package(enum language language, const char *a, size_t a_len, const char *b,
                      size_t b_len)
{
    const char *a_end = a + name_len(language, a, a_len), *b_end = b + name_len(language, b, b_len);
    if (language == LANGUAGE_JAVASCRIPT) {
        return a_end - a == b_end - b && memcmp(a, b, (size_t)(a_end - a)) == 0;
    }
    char c;
    do {
        c = next_of_name(&a, a_end);
        if (c != next_of_name(&b, b_end)) {
            return false;
        }
    } while (c);
    return true;
}

// A package that an earlier one of the list is, too, in whichever version: one of them would win.
static int refuse_twice(struct parse *p, const char *name, yyjson_val *list, size_t at,
                        enum language language)
{
    yyjson_val *one = yyjson_arr_get(list, at), *before;
    const char *text = yyjson_get_str(one);
    char field[48], shown[SHOWN_BYTES];
    size_t i, count;
    yyjson_arr_foreach(list, i, count, before)
    {
        if (i == at) {
            break;
        }
        if (job_same_package(language, yyjson_get_str(before), yyjson_get_len(before), text,
                             yyjson_get_len(one))) {
            snprintf(field, sizeof field, "%s[%zu]", name, at);
            job_show_text(text, name_len(language, text, yyjson_get_len(one)), shown);
            return job_refuse(p->error, field, "%s is there twice, as [%zu]", shown, i);
        }
    }
    return 0;
}

static int parse_packages(struct parse *p, const char *name, yyjson_val *v, enum language language,
                          const char *wanted)
{
    char field[48], shown[SHOWN_BYTES];
    size_t i, count;
    yyjson_val *one;
    if (!yyjson_is_arr(v)) {
        return job_wrong_type(p, name, v, "an array of strings");
    }
    if (yyjson_arr_size(v) > JOB_MAX_PACKAGES) {
        return job_refuse(p->error, name, "%zu are above the maximum of %d", yyjson_arr_size(v),
                          JOB_MAX_PACKAGES);
    }
    yyjson_arr_foreach(v, i, count, one)
    {
        if (!yyjson_is_str(one) ||
            !job_is_package(language, yyjson_get_str(one), yyjson_get_len(one))) {
            snprintf(field, sizeof field, "%s[%zu]", name, i);
            return job_refuse(p->error, field, "must be %s, not %s", wanted, job_show(one, shown));
        }
        int e = refuse_twice(p, name, v, i, language);
        if (e) {
            return e;
        }
    }
    return 0;
}

int job_parse_python_packages(struct parse *p, yyjson_val *v)
{
    return parse_packages(p, "python_packages", v, LANGUAGE_PYTHON, "NAME==VERSION");
}

int job_parse_js_packages(struct parse *p, yyjson_val *v)
{
    return parse_packages(p, "js_packages", v, LANGUAGE_JAVASCRIPT, "NAME@VERSION");
}

// http or https, a host, and no name or password before it.
static int parse_url(struct parse *p, const char *field, yyjson_val *v)
{
    enum { MAX_BYTES = 2048 };
    char shown[SHOWN_BYTES];
    const char *url = yyjson_is_str(v) ? yyjson_get_str(v) : "";
    size_t len = strlen(url);
    const char *host = strncmp(url, "https://", 8) == 0  ? url + 8
                       : strncmp(url, "http://", 7) == 0 ? url + 7
                                                         : NULL;
    if (!host || len != yyjson_get_len(v) || len > MAX_BYTES ||
        !only(host, strcspn(host, "/?#"), LETTERS DIGITS ".-:[]") ||
        strpbrk(url, " \t\r\n\"<>\\")) {
        return job_refuse(p->error, field,
                          "must be an http or https URL without name and password, not %s",
                          job_show(v, shown));
    }
    return 0;
}

int job_parse_python_index(struct parse *p, yyjson_val *v)
{
    return parse_url(p, "python_package_index_url", v);
}

int job_parse_js_registry(struct parse *p, yyjson_val *v)
{
    return parse_url(p, "node_package_registry_url", v);
}

int job_check_packages(struct parse *p)
{
    static const char *const names[] = {"python_packages", "js_packages"};
    char shown[SHOWN_BYTES];
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        yyjson_val *first = yyjson_arr_get_first(yyjson_obj_get(p->root, names[i]));
        if (first) {
            return job_refuse(p->error, names[i],
                              "%s: this version installs no packages; package_sets names what the "
                              "operator has prepared",
                              job_show(first, shown));
        }
    }
    return 0;
}
