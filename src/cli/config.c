#include "cli/config.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/text.h"
#include "cli/front.h"
#include "codec/json_out.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define complain(...) verb_complain("config", __VA_ARGS__)

struct options {
    struct front_given given;
    bool json, help;
};

static const struct option option_rows[] = {
    {"--json", NULL, NULL, OPTION_FLAG, offsetof(struct options, json), "one line of JSON", NULL},
    FRONT_OPTIONS(struct options, given),
    VERB_HELP(struct options, help),
};

// ---- Words

// Words with spaces between become words with commas between, behind what is there already.
static const char *add_words(char *text, size_t size, const char *words)
{
    size_t len = strlen(text);
    for (const char *p = words; *p && len + sizeof ", x" <= size; p++) {
        if (*p == ' ' || (p == words && len)) {
            text[len++] = ',';
            text[len++] = ' ';
        }
        if (*p != ' ') {
            text[len++] = *p;
        }
    }
    text[len] = '\0';
    return text;
}

const char *config_values(const struct setting_spec *s, char *text, size_t size)
{
    const char *unit = s->unit ? s->unit : "";
    text[0] = '\0';
    switch (s->type) {
    case SETTING_BOOL:
        return s->choices ? s->choices : "true, false";
    case SETTING_NUMBER:
        snprintf(text, size, "%lld to %lld%s%s", (long long)s->min, (long long)s->max,
                 *unit ? " " : "", unit);
        return text;
    case SETTING_PATH:
        snprintf(text, size, "absolute path");
        return add_words(text, size, s->choices ? s->choices : "");
    case SETTING_NAME:
        return "letters, digits, -; up to 63";
    case SETTING_WORDS:
        if (s->max == 1) {
            return setting_word_names[s->words];
        }
        snprintf(text, size, "%s; with commas between, up to %lld", setting_word_names[s->words],
                 (long long)s->max);
        return text;
    case SETTING_TEXT:
        snprintf(text, size, "text of up to %lld bytes", (long long)s->max);
        return text;
    case SETTING_CALLS:
        return "names with commas between";
    case SETTING_CHOICE:
        return *s->choices ? add_words(text, size, s->choices) : "unset";
    }
    return "";
}

// As a person reads it: never a secret, nothing that a terminal obeys.
static const char *shown(const struct conf *c, enum setting n, char *text, size_t size)
{
    const char *value = c->text[n];
    if (!*value) {
        return "unset";
    }
    snprintf(text, size, "%s", setting_specs[n].secret ? "(set)" : value);
    text_no_controls(text);
    return text;
}

static const char *or_unset(const char *value) { return *value ? value : "unset"; }

// ---- For people

static bool is_listed(const struct conf *c, enum setting n)
{
    return !setting_specs[n].hidden || conf_given(c, n);
}

static void print_table(const struct conf *c)
{
    char value[4096];
    int widths[2] = {0, 0};
    for (int i = 0; i < SETTING_COUNT; i++) {
        int name = (int)strlen(setting_specs[i].name);
        int len = (int)strlen(shown(c, (enum setting)i, value, sizeof value));
        if (is_listed(c, (enum setting)i)) {
            widths[0] = name > widths[0] ? name : widths[0];
            widths[1] = len > widths[1] && len <= 40 ? len : widths[1]; // longer ones stick out
        }
    }
    printf("%-*s  %-*s  %-11s  %s\n", widths[0], "SETTING", widths[1], "VALUE", "FROM",
           "DEPARTS FROM");
    for (int i = 0; i < SETTING_COUNT; i++) {
        enum setting n = (enum setting)i;
        const struct setting_spec *s = &setting_specs[i];
        const char *last = conf_is_idle(c, n)   ? "(not used by this version)"
                           : conf_departs(c, n) ? or_unset(s->platform)
                                                : "";
        if (is_listed(c, n)) {
            printf("%-*s  %-*s  %-*s%s%s\n", widths[0], s->name, widths[1],
                   shown(c, n, value, sizeof value), *last ? 11 : 0,
                   conf_origin_names[c->origin[i]], *last ? "  " : "", last);
        }
    }
    if (c->file) {
        snprintf(value, sizeof value, "%s", c->file);
        text_no_controls(value);
        printf("\nfile: %s%s\n", value, c->file_read ? "" : " (not there)");
    }
}

static void print_one(const struct conf *c, enum setting n)
{
    const struct setting_spec *s = &setting_specs[n];
    char value[4096], values[256];
    bool from_file = c->origin[n] == CONF_FILE;
    printf("%s=%s\n%s\n", s->name, *c->text[n] ? shown(c, n, value, sizeof value) : "", s->help);
    snprintf(value, sizeof value, "%s", from_file ? c->file : "");
    text_no_controls(value);
    printf("  from      %s%s%s\n", conf_origin_names[c->origin[n]], from_file ? " " : "", value);
    printf("  values    %s\n", config_values(s, values, sizeof values));
    printf("  default   %s\n", or_unset(s->initial));
    if (s->platform) {
        printf("  platform  %s%s%s\n", or_unset(s->platform), s->why ? "; isle departs: " : "",
               s->why ? s->why : "");
    }
    printf("  changes   %s\n", s->idle   ? "nothing: this version does not use it"
                               : s->live ? "with SIGHUP, without a restart of the service"
                                         : "with a restart of the service");
}

// ---- For programs

static void put_value(struct buf *out, const struct conf *c, enum setting n)
{
    const struct setting_spec *s = &setting_specs[n];
    if (!*c->text[n] || s->secret) {
        json_put_text(out, "value", *c->text[n] ? "(set)" : NULL);
    } else if (s->type == SETTING_BOOL) {
        json_put_bool(out, "value", conf_bool(c, n));
    } else if (s->type == SETTING_NUMBER) {
        json_put_int(out, "value", c->number[n]);
    } else {
        json_put_text(out, "value", c->text[n]);
    }
}

static void put_setting(struct buf *out, const struct conf *c, enum setting n)
{
    const struct setting_spec *s = &setting_specs[n];
    json_begin(out, NULL, '{');
    json_put_text(out, "name", s->name);
    put_value(out, c, n);
    json_put_text(out, "from", conf_origin_names[c->origin[n]]);
    json_put_text(out, "unit", s->unit);
    json_put_text(out, "default", *s->initial ? s->initial : NULL);
    json_put_text(out, "platform_default", s->platform && *s->platform ? s->platform : NULL);
    json_put_bool(out, "departs", conf_departs(c, n));
    json_put_bool(out, "live", s->live);
    json_put_bool(out, "used", !s->idle);
    json_end(out, '}');
}

static int print_json(const struct conf *c, enum setting one)
{
    AUTO_BUF struct buf out = BUF_INIT(1 << 20);
    if (one != SETTING_COUNT) {
        put_setting(&out, c, one);
    } else {
        json_begin(&out, NULL, '{');
        json_put_text(&out, "file", c->file);
        json_put_bool(&out, "file_read", c->file_read);
        json_begin(&out, "settings", '[');
        for (int i = 0; i < SETTING_COUNT; i++) {
            if (is_listed(c, (enum setting)i)) {
                put_setting(&out, c, (enum setting)i);
            }
        }
        json_end(&out, ']');
        json_end(&out, '}');
    }
    if (out.error) {
        return complain("not enough memory");
    }
    puts(buf_text(&out));
    return 0;
}

// ---- The verb

static int tell(const struct options *o, const struct option_rest *rest,
                struct front_settings *settings)
{
    struct front_error why;
    char unknown[CONF_UNKNOWN_MAX];
    enum setting one = SETTING_COUNT;
    if (rest->n_operands > 1 || rest->command) {
        return complain("one NAME is enough; see isle config --help");
    }
    if (rest->n_operands == 1 && conf_setting_find(rest->operands[0], &one, unknown)) {
        return complain("%s", unknown);
    }
    if (front_settings_load(&o->given, settings, &why)) {
        return complain("%s", why.text);
    }
    front_tell_preset(settings, "config");
    if (o->json) {
        return print_json(&settings->conf, one);
    }
    if (one != SETTING_COUNT) {
        print_one(&settings->conf, one);
    } else {
        print_table(&settings->conf);
    }
    return 0;
}

static int config_main(int argc, char **argv, const struct cli_places *places)
{
    (void)argc, (void)places;
    struct options o = {};
    struct option_rest rest = {};
    static struct front_settings settings; // too large for a frame of the sanitizers' build
    int status = 0;
    if (verb_begin(&verb_config, argv, &o, &rest, &status)) {
        status = tell(&o, &rest, &settings);
        status = status ? status : verb_end_output("config");
    }
    front_settings_done(&settings);
    free(o.given.set.words);
    return status;
}

static const struct verb_form forms[] = {
    {"[OPTIONS]", "every setting"}, {"[OPTIONS] NAME", "one, with what it can be"}, {NULL, NULL}};

static const struct verb_status statuses[] = {
    {"0", "printed: every value is one that isle takes"},
    {"125", "bad options or settings, an unknown name"},
    {NULL, NULL},
};

static const char *const examples[] = {
    "isle config",
    "isle config SANDBOX_QUEUE_LIMIT",
    "isle config --config new.conf    # before it is put in place",
    "isle config --json | jq '.settings[] | select(.departs)'",
    NULL,
};

const struct verb verb_config = {
    .name = "config",
    .summary = "print the settings: values, where they are from, what departs from the platform",
    .forms = forms,
    .about = "Prints the settings as every other verb would have them here and now, and checks "
             "them.",
    .notes =
        "Options outweigh the environment, the environment outweighs the file, the file\n"
        "outweighs the defaults. The last column has the default that the platform documents,\n"
        "where another value is in force. Secrets are never printed: (set) stands for them.\n"
        "SANDBOX_PRESET=platform restores all of the platform's defaults at once.",
    .options = option_rows,
    .n_options = ARRAY_LEN(option_rows),
    .operands = VALUES_SETTING,
    .statuses = statuses,
    .examples = examples,
    .run = config_main,
};
