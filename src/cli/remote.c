#include "cli/remote.h"

#include "base/fd.h"
#include "cli/remote_verbs.h"
#include "model/form.h"
#include "model/refuse.h"

#include <stdlib.h>
#include <string.h>

const struct verb *remote_find(const char *name)
{
    for (size_t i = 0; i < n_remote_verbs; i++) {
        if (strcmp(remote_verbs[i].verb->name, name) == 0) {
            return remote_verbs[i].verb;
        }
    }
    return NULL;
}

static const struct remote_action *actions_of(const struct verb *v)
{
    size_t i = 0;
    while (i + 1 < n_remote_verbs && remote_verbs[i].verb != v) {
        i++;
    }
    return remote_verbs[i].actions;
}

// How many operands there must be and may be: words before and inside the brackets.
static void count_operands(const char *operands, size_t *ret_least, size_t *ret_most)
{
    size_t least = 0, most = 0;
    for (const char *p = operands; *p; p += strspn(p, " ")) {
        size_t n = strcspn(p, " ");
        bool many = n > 4 && strncmp(p + n - 4, "...]", 4) == 0;
        most = many ? REMOTE_MAX_OPERANDS : most + 1;
        least += *p != '[';
        p += n;
    }
    *ret_least = least;
    *ret_most = most;
}

static const char *text_of(const struct option *o, const struct remote_options *options)
{
    return *(const char *const *)(const void *)((const char *)options + o->offset);
}

static bool is_given(const struct option *o, const struct remote_options *options)
{
    return o->kind == OPTION_FLAG ? *(const bool *)((const char *)options + o->offset)
                                  : text_of(o, options) != NULL;
}

// Ids and teams are told by their form before anybody is asked: the message can name the word.
static const struct form {
    const char *what; // a word of remote_action.operands, or an option
    bool (*has)(const char *text, size_t len);
    const char *help;
} forms[] = {
    {"JOB", form_is_id, FORM_ID_HELP "; `isle jobs list` prints them"},
    {"SESSION", form_is_id, FORM_ID_HELP "; `isle sessions list` prints them"},
    {"--session", form_is_id, FORM_ID_HELP "; `isle sessions list` prints them"},
    {"ID", form_is_key_id, FORM_KEY_ID_HELP "; `isle key list` prints them"},
    {"TEAM", form_is_team, FORM_TEAM_HELP},
    {"--team", form_is_team, FORM_TEAM_HELP},
};

// Is what stands for `what` (n bytes of it) as it has to be? 0 or an exit status.
static int check_form(const struct verb *v, const char *what, size_t n, const char *text,
                      size_t len)
{
    for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
        const struct form *f = &forms[i];
        if (n == strlen(f->what) && memcmp(what, f->what, n) == 0 && !f->has(text, len)) {
            char shown[SHOWN_BYTES];
            return verb_complain(v->name, "%s: %s is not %s", f->what,
                                 job_show_text(text, len, shown), f->help);
        }
    }
    return 0;
}

// 0 or an exit status.
static int check_options(const struct verb *v, const struct remote_command *c)
{
    const struct remote_action *a = c->action;
    for (size_t i = 0; i < v->n_options; i++) {
        const struct option *o = &v->options[i];
        bool given = is_given(o, &c->options);
        bool fits =
            verb_is_among(o->name, "--url --key --json") || verb_is_among(o->name, a->options);
        if (given && !fits) {
            return verb_complain(v->name, "%s: not an option of %s; see isle %s --help", o->name,
                                 a->name, v->name);
        }
        if (!given && a->must && verb_is_among(o->name, a->must)) {
            return verb_complain(v->name, "%s needs %s %s; see isle %s --help", a->name, o->name,
                                 o->argument, v->name);
        }
        const char *text = given && o->kind == OPTION_TEXT ? text_of(o, &c->options) : NULL;
        if (text && check_form(v, o->name, strlen(o->name), text, strlen(text))) {
            return CLI_REFUSED;
        }
    }
    return 0;
}

static const struct remote_action *find_action(const struct verb *v, const char *word)
{
    const struct remote_action *a = actions_of(v);
    while (a->name && strcmp(a->name, word) != 0) {
        a++;
    }
    return a->name ? a : NULL;
}

const char *remote_options_of(const struct verb *v, const char *word)
{
    const struct remote_action *a = find_action(v, word);
    return a ? a->options : NULL;
}

static int check_operands(const struct verb *v, const struct remote_command *c)
{
    const char *word = c->action->operands;
    int status = 0;
    for (size_t i = 0; i < c->n_operands && !status && *word; i++) {
        const size_t n = strcspn(word, " "), name = strcspn(word, " [:");
        // of a file the session stands before the colon
        const size_t len = strcspn(c->operands[i], name < n ? ":" : "");
        status = check_form(v, word, name, c->operands[i], len);
        word += n + strspn(word + n, " ");
    }
    return status;
}

// 0 or an exit status.
static int take_words(const struct verb *v, const struct option_rest *rest,
                      struct remote_command *ret)
{
    size_t least = 0, most = 0;
    // without a word the first action, which lists
    const char *word = rest->n_operands ? rest->operands[0] : actions_of(v)->name;
    ret->verb = v;
    ret->action = find_action(v, word);
    if (!ret->action) {
        return verb_complain(v->name, "%.60s: unknown; it is one of %s (see isle %s --help)", word,
                             v->operands, v->name);
    }
    ret->n_operands = rest->n_operands ? rest->n_operands - 1 : 0;
    count_operands(ret->action->operands, &least, &most);
    if (ret->n_operands < least || ret->n_operands > most || rest->command) {
        return verb_complain(v->name, "%s takes %s; see isle %s --help", ret->action->name,
                             most ? ret->action->operands : "no further word", v->name);
    }
    for (size_t i = 0; i < ret->n_operands; i++) {
        ret->operands[i] = rest->operands[i + 1];
    }
    int status = check_options(v, ret);
    return status ? status : check_operands(v, ret);
}

bool remote_parse(const struct verb *v, char **argv, struct remote_command *ret, int *ret_status)
{
    struct option_rest rest;
    *ret = (struct remote_command){};
    if (!verb_begin(v, argv, &ret->options, &rest, ret_status)) {
        return false;
    }
    *ret_status = take_words(v, &rest, ret);
    return *ret_status == 0;
}

void remote_done(struct remote_command *c)
{
    free(c->options.parameters.words);
    free(c->options.artifacts.words);
    c->options.parameters = c->options.artifacts = (struct option_list){};
}
