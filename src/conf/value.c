#include "conf/value.h"

#include "base/text.h"
#include "conf/words.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static int refuse(struct conf_error *e, const struct setting_spec *s, const char *value,
                  const char *why)
{
    const char *shown = s->secret ? "the value" : value;
    snprintf(e->text, sizeof e->text, "%s: %.80s%s %s", s->name, shown,
             strlen(shown) > 80 ? "..." : "", why);
    text_no_controls(e->text); // messages go to terminals
    return -EINVAL;
}

// In a list of words; the empty value is in the empty list.
static bool is_choice(const char *choices, const char *value)
{
    size_t n = strlen(value);
    if (n == 0) {
        return true;
    }
    for (const char *at = choices; (at = strstr(at, value)); at++) {
        bool begins = at == choices || at[-1] == ' ';
        if (begins && (at[n] == '\0' || at[n] == ' ')) {
            return true;
        }
    }
    return false;
}

static int refuse_choice(struct conf_error *e, const struct setting_spec *s, const char *value)
{
    char why[200];
    const char *separator = *s->choices ? "; the value can be: " : "";
    snprintf(why, sizeof why, "is refused: %s%s%s", s->lacking, separator, s->choices);
    return refuse(e, s, value, why);
}

static int read_bool(const struct setting_spec *s, const char *value, int64_t *ret,
                     struct conf_error *e)
{
    static const struct {
        const char *word;
        int value;
    } words[] = {{"true", 1},  {"yes", 1}, {"on", 1},  {"1", 1},
                 {"false", 0}, {"no", 0},  {"off", 0}, {"0", 0}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcasecmp(value, words[i].word) == 0) {
            bool available =
                !s->choices || is_choice(s->choices, words[i].value ? "true" : "false");
            *ret = words[i].value;
            return available ? 0 : refuse_choice(e, s, value);
        }
    }
    return refuse(e, s, value, "is neither true nor false");
}

static int read_number(const struct setting_spec *s, const char *value, int64_t *ret,
                       struct conf_error *e)
{
    char why[120];
    const char *unit = s->unit ? s->unit : "";
    bool negative = *value == '-';
    size_t digits = strspn(value + negative, "0123456789");
    if (digits == 0 || value[negative + digits]) {
        return refuse(e, s, value, "is not a whole number");
    }
    errno = 0;
    long long number = strtoll(value, NULL, 10); // saturates where it does not fit
    if (number < s->min || number > s->max) {
        bool low = number < s->min;
        snprintf(why, sizeof why, "is %s of %lld%s%s",
                 low ? "below the minimum" : "above the maximum",
                 (long long)(low ? s->min : s->max), *unit ? " " : "", unit);
        return refuse(e, s, value, why);
    }
    *ret = number;
    return 0;
}

static int read_name(const struct setting_spec *s, const char *value, struct conf_error *e)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-";
    size_t n = strlen(value);
    if (n > 63) {
        return refuse(e, s, value, "is above the maximum of 63 characters");
    }
    if (strspn(value, allowed) != n || value[0] == '-' || value[n - 1] == '-') {
        return refuse(e, s, value, "is not a host name: letters, digits and - inside");
    }
    return 0;
}

static int read_calls(const struct setting_spec *s, const char *value, struct conf_error *e)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789_,";
    return value[strspn(value, allowed)] == '\0'
               ? 0
               : refuse(e, s, value, "is no list of system calls: names with commas between");
}

static int read_words(const struct setting_spec *s, const char *value, struct conf_error *e)
{
    char word[SETTING_MAX_WORD + 1], why[200];
    int64_t n = 0;
    for (const char *at = value; *value && at; n++) {
        size_t len = strcspn(at, ",");
        if (len == 0 || len > SETTING_MAX_WORD) {
            return refuse(e, s, value,
                          len ? "has a word of more than 255 characters" : "has an empty word");
        }
        memcpy(word, at, len);
        word[len] = '\0';
        if (!words_check(s->words, word)) {
            snprintf(why, sizeof why, "is refused: %s %s%s", s->max > 1 ? "these are" : "this is",
                     setting_word_names[s->words],
                     s->max > 1 ? ", with commas between, no blanks" : "");
            return refuse(e, s, value, why);
        }
        at = at[len] ? at + len + 1 : NULL;
    }
    snprintf(why, sizeof why, "has more than %lld words", (long long)s->max);
    return n <= s->max ? 0 : refuse(e, s, value, why);
}

static int read_text(const struct setting_spec *s, const char *value, struct conf_error *e)
{
    char why[80];
    snprintf(why, sizeof why, "is longer than %lld bytes", (long long)s->max);
    return strlen(value) <= (size_t)s->max ? 0 : refuse(e, s, value, why);
}

static int read_path(const struct setting_spec *s, const char *value, struct conf_error *e)
{
    bool word = s->choices && is_choice(s->choices, value);
    if (value[0] != '/' && value != s->initial && !word) {
        return refuse(e, s, value, "is not an absolute path");
    }
    return strlen(value) < 4096 ? 0 : refuse(e, s, value, "is longer than 4095 bytes");
}

int conf_value_check(enum setting n, const char *value, int64_t *ret, struct conf_error *e)
{
    const struct setting_spec *s = &setting_specs[n];
    switch (s->type) {
    case SETTING_BOOL:
        return read_bool(s, value, ret, e);
    case SETTING_NUMBER:
        return read_number(s, value, ret, e);
    case SETTING_PATH:
        return read_path(s, value, e);
    case SETTING_NAME:
        return read_name(s, value, e);
    case SETTING_TEXT:
        return read_text(s, value, e);
    case SETTING_CALLS:
        return read_calls(s, value, e);
    case SETTING_WORDS:
        return read_words(s, value, e);
    case SETTING_CHOICE:
        return is_choice(s->choices, value) ? 0 : refuse_choice(e, s, value);
    }
    return -EINVAL;
}
