#include "conf/conf.h"

#include "base/text.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { MAX_NAME = 64 };

// How many letters have to be put in, taken out or changed (Levenshtein), whatever their case.
static unsigned distance(const char *a, const char *b)
{
    unsigned row[MAX_NAME + 1];
    size_t n = strlen(b);
    for (unsigned k = 0; k <= n; k++) {
        row[k] = k;
    }
    for (size_t i = 0; a[i]; i++) {
        unsigned diagonal = row[0]++;
        for (size_t k = 0; k < n; k++) {
            bool same = toupper((unsigned char)a[i]) == toupper((unsigned char)b[k]);
            unsigned best = diagonal + !same;
            diagonal = row[k + 1];
            best = diagonal + 1 < best ? diagonal + 1 : best;
            row[k + 1] = row[k] + 1 < best ? row[k] + 1 : best;
        }
    }
    return row[n];
}

// With or without the prefix; NULL where nothing is near.
static const char *nearest(const char *name)
{
    const char *found = NULL;
    unsigned least = 6; // more than this is another name
    for (int i = 0; i < SETTING_COUNT && strlen(name) <= MAX_NAME; i++) {
        const char *whole = setting_specs[i].name, *bare = strchr(whole, '_');
        unsigned d = distance(name, whole), b = bare ? distance(name, bare + 1) : d;
        d = b < d ? b : d;
        if (!setting_specs[i].hidden && d < least && d * 2 < strlen(name)) {
            least = d;
            found = whole;
        }
    }
    return found;
}

int conf_setting_find(const char *name, enum setting *ret, char ret_why[CONF_UNKNOWN_MAX])
{
    for (int i = 0; i < SETTING_COUNT; i++) {
        if (strcmp(setting_specs[i].name, name) == 0) {
            *ret = (enum setting)i;
            return 0;
        }
    }
    const char *near = nearest(name);
    snprintf(ret_why, CONF_UNKNOWN_MAX, "%.80s is no setting; %s%s%s", name,
             near ? "did you mean " : "isle config lists them", near ? near : "", near ? "?" : "");
    text_no_controls(ret_why);
    return -EINVAL;
}

int conf_option_parse(const char *text, struct conf_option *ret, struct conf_error *ret_error)
{
    char name[MAX_NAME + 1], why[CONF_UNKNOWN_MAX];
    const char *equals = strchr(text, '=');
    size_t n = equals ? (size_t)(equals - text) : 0;
    if (n == 0 || n > MAX_NAME) {
        snprintf(ret_error->text, sizeof ret_error->text, "%.80s: a setting is given as NAME=VALUE",
                 text);
        text_no_controls(ret_error->text);
        return -EINVAL;
    }
    memcpy(name, text, n);
    name[n] = '\0';
    enum setting setting = SETTING_COUNT;
    if (conf_setting_find(name, &setting, why)) {
        snprintf(ret_error->text, sizeof ret_error->text, "%s", why);
        return -EINVAL;
    }
    if (setting_specs[setting].secret) {
        snprintf(ret_error->text, sizeof ret_error->text,
                 "%s is a secret, and every user of a host sees command lines: put it in the "
                 "settings file or the environment",
                 name);
        return -EINVAL;
    }
    *ret = (struct conf_option){setting, equals + 1};
    return 0;
}
