// `isle doctor`: what this host gives isle, what is missing, what that costs, how to mend it; and a
// self-test that attacks a real start of isle from inside.
#include "cli/doctor.h"

#include "base/fd.h"
#include "cli/front.h"
#include "cli/signals.h"
#include "cli/verb.h"
#include "codec/json_out.h"
#include "doctor/doctor.h"
#include "model/result.h"
#include "plan/plan.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

enum { NOT_ISOLATED = 1, CANCELLED = 130, NAME_WIDTH = 32 };

struct options {
    const char *launcher;
    struct front_given given;
    bool json, no_self_test, help;
};

#define AT(field) offsetof(struct options, field)
static const struct option option_rows[] = {
    {"--json", NULL, NULL, OPTION_FLAG, AT(json), "one line of JSON", NULL},
    {"--launcher", NULL, "NAME", OPTION_TEXT, AT(launcher),
     "what the self-test's sandboxes are made by: native or bwrap; else as the settings say",
     "native bwrap"},
    {"--no-self-test", NULL, NULL, OPTION_FLAG, AT(no_self_test),
     "starts nothing: only looks and tries", NULL},
    FRONT_OPTIONS(struct options, given),
    VERB_HELP(struct options, help),
};

// ---- For people

static const struct {
    const char *word, *color;
} looks[DOCTOR_N_STATES] = {
    [DOCTOR_FINE] = {"ok", "32"},         [DOCTOR_FACT] = {"--", "0"},
    [DOCTOR_ADVICE] = {"advice", "36"},   [DOCTOR_DEGRADED] = {"degraded", "33"},
    [DOCTOR_FAILED] = {"FAILED", "1;31"},
};

static void print_row(const struct doctor_row *r, bool colors)
{
    const char *word = looks[r->state].word;
    int pad = 9 - (int)strlen(word);
    if (colors) {
        printf("  \033[%sm%s\033[0m%*s", looks[r->state].color, word, pad, "");
    } else {
        printf("  %s%*s", word, pad, "");
    }
    printf("%-*s  %s\n", NAME_WIDTH, r->name, r->found);
    if (r->cost[0]) {
        printf("%11scost: %s\n", "", r->cost);
    }
    if (r->fix[0]) {
        printf("%11sfix:  %s\n", "", r->fix);
    }
}

static void print_conclusion(const struct doctor *d)
{
    size_t n[DOCTOR_N_STATES] = {};
    for (size_t i = 0; i < d->n; i++) {
        n[d->rows[i].state]++;
    }
    const char *text = n[DOCTOR_FAILED] ? "jobs cannot be isolated here"
                       : n[DOCTOR_DEGRADED]
                           ? "jobs are isolated; this host gives less than all of it"
                           : "jobs are isolated";
    printf("\n%s: %zu failed, %zu degraded, %zu with advice%s\n", text, n[DOCTOR_FAILED],
           n[DOCTOR_DEGRADED], n[DOCTOR_ADVICE],
           d->trial ? "" : "; not proven: the self-test was left out");
}

static void print_table(const struct doctor *d)
{
    bool colors = isatty(STDOUT_FILENO) && !getenv("NO_COLOR");
    const char *group = "";
    for (size_t i = 0; i < d->n; i++) {
        if (strcmp(d->rows[i].group, group) != 0) {
            group = d->rows[i].group;
            printf("%s%s\n", i ? "\n" : "", group);
        }
        print_row(&d->rows[i], colors);
    }
    print_conclusion(d);
}

// ---- For programs

// "" is null.
static void put_text(struct buf *b, const char *key, const char *text)
{
    json_put_text(b, key, text[0] ? text : NULL);
}

static void put_rows(struct buf *b, const struct doctor *d)
{
    json_begin(b, "checks", '[');
    for (size_t i = 0; i < d->n; i++) {
        const struct doctor_row *r = &d->rows[i];
        json_begin(b, NULL, '{');
        json_put_text(b, "group", r->group);
        json_put_text(b, "name", r->name);
        json_put_text(b, "state", doctor_state_names[r->state]);
        put_text(b, "found", r->found);
        put_text(b, "cost", r->cost);
        put_text(b, "fix", r->fix);
        json_end(b, '}');
    }
    json_end(b, ']');
}

static void put_jobs(struct buf *b, const struct trial *t)
{
    json_begin(b, "jobs", '[');
    for (size_t i = 0; t->started && i < SELFTEST_N; i++) {
        const struct selftest_item *item = &t->items[i];
        json_begin(b, NULL, '{');
        json_put_text(b, "name", item->name);
        json_put_bool(b, "attack", item->is_attack);
        json_put_text(b, "verdict", selftest_verdict_names[item->verdict]);
        put_text(b, "detail", item->detail);
        json_end(b, '}');
    }
    json_end(b, ']');
}

static void put_trial(struct buf *b, const struct trial *t)
{
    static const char *const rungs[] = {[PLAN_RUNG_AUTO] = "auto",
                                        [PLAN_RUNG_PARENT] = "parent",
                                        [PLAN_RUNG_SELF] = "self",
                                        [PLAN_RUNG_NONE] = "none"};
    if (!t) {
        json_put_text(b, "downgrades", NULL);
        json_put_text(b, "self_test", NULL);
        return;
    }
    bool known = t->started && t->seat.rung < ARRAY_LEN(rungs);
    downgrades_write(b, "downgrades", t->seat.downgrades);
    json_begin(b, "self_test", '{');
    json_put_bool(b, "started", t->started);
    json_put_int(b, "milliseconds", (int64_t)t->total_ms);
    json_put_text(b, "rung", known ? rungs[t->seat.rung] : NULL);
    put_jobs(b, t);
    json_end(b, '}');
}

static int print_json(const struct doctor *d)
{
    AUTO_BUF struct buf b = BUF_INIT(1 << 20);
    enum doctor_state worst = doctor_worst(d);
    json_begin(&b, NULL, '{');
    json_put_bool(&b, "isolated", worst != DOCTOR_FAILED);
    json_put_text(&b, "level",
                  worst == DOCTOR_FAILED     ? "none"
                  : worst == DOCTOR_DEGRADED ? "degraded"
                                             : "full");
    json_put_text(&b, "user_namespaces", refusal_names[d->own.cause]);
    put_trial(&b, d->trial);
    put_rows(&b, d);
    json_end(&b, '}');
    if (b.error) {
        return verb_complain("doctor", "%s", strerror(-b.error));
    }
    puts(buf_text(&b));
    return 0;
}

// ---- The verb

static int try_start(const struct front_settings *settings, const struct cli_places *places,
                     const struct bwrap_found *bwrap, struct trial *ret)
{
    struct start_config config = front_start_config(settings, places);
    config.bwrap = bwrap;
    char **environment = conf_environment(&settings->conf);
    sigset_t before;
    if (!environment) {
        return -ENOMEM;
    }
    AUTO_CLOSE int signals = signals_hold(&before);
    int e = trial_run(&config, environment, signals, ret);
    sigprocmask(SIG_SETMASK, &before, NULL);
    conf_environment_free(environment);
    return e;
}

static int doctor_with_options(struct options *o, struct front_settings *settings,
                               const struct cli_places *places)
{
    static struct doctor d; // large
    static struct trial trial;
    struct front_error why;
    struct bwrap_found bwrap;
    enum seat_launcher launcher;
    if (front_settings_load(&o->given, settings, &why) || front_check_enabled(settings, &why) ||
        front_choose_launcher(settings, o->launcher, &launcher, &why)) {
        return verb_complain("doctor", "%s", why.text);
    }
    if (launcher == SEAT_BWRAP && front_find_bwrap(settings, &bwrap, &why)) { // its row says so
        o->no_self_test = true;
    }
    AUTO_CLOSE int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    d.root = root;
    d.conf = &settings->conf;
    d.python = settings->python;
    d.libexec_dir = places->libexec_dir;
    d.wrapped = launcher == SEAT_BWRAP;
    if (!o->no_self_test && places->found) {
        int e = try_start(settings, places, d.wrapped ? &bwrap : NULL, &trial);
        if (e) {
            return e == -EINTR ? CANCELLED : verb_complain("doctor", "%s", strerror(-e));
        }
        d.trial = &trial;
    }
    doctor_examine(&d);
    int status = 0;
    if (o->json) {
        status = print_json(&d);
    } else {
        print_table(&d);
    }
    int output = verb_end_output("doctor");
    status = status ? status : output;
    return status ? status : doctor_worst(&d) == DOCTOR_FAILED ? NOT_ISOLATED : 0;
}

static int doctor_run(int argc, char **argv, const struct cli_places *places)
{
    (void)argc;
    struct options o = {};
    struct option_rest rest = {};
    static struct front_settings settings; // as what points into it
    int status = 0;
    bool begun = verb_begin(&verb_doctor, argv, &o, &rest, &status);
    if (begun && (rest.n_operands || rest.command)) {
        status = verb_complain("doctor", "%.60s: it takes no operand; see isle doctor --help",
                               rest.n_operands ? rest.operands[0] : "--");
    } else if (begun) {
        status = doctor_with_options(&o, &settings, places);
    }
    front_settings_done(&settings);
    free(o.given.set.words);
    return status;
}

static const struct verb_form forms[] = {{"[OPTIONS]", NULL}, {NULL, NULL}};
static const struct verb_status statuses[] = {
    {"0", "jobs are isolated; what this host lacks is listed"},
    {"1", "jobs cannot be isolated, or an attack of the self-test got through"},
    {"125", "bad options or settings"},
    {"130", "interrupted"},
    {NULL, NULL}};
static const char *const examples[] = {"isle doctor",
                                       "isle doctor --json | jq '.checks[] | "
                                       "select(.state != \"fine\")'",
                                       NULL};

const struct verb verb_doctor = {
    .name = "doctor",
    .summary = "what this host gives isle: found, missing, what that costs, how to mend it",
    .about = "Looks at this host and attacks a real start of isle from inside.",
    .forms = forms,
    .notes = "Each row: what was found; where something is missing, what that costs and the fix.\n"
             "The self-test starts isle as a job would and runs ten attacks as real jobs; what\n"
             "they reached is looked for from outside as well.",
    .options = option_rows,
    .n_options = ARRAY_LEN(option_rows),
    .operands = "",
    .statuses = statuses,
    .examples = examples,
    .run = doctor_run,
};
