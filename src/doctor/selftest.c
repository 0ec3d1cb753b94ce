#include "doctor/selftest.h"

#include "base/fd.h"
#include "base/text.h"
#include "codec/json.h"
#include "codec/utf8.h"
#include "doctor/attacks.h"
#include "io/loop.h"
#include "plan/plan.h"

#include <stdio.h>
#include <string.h>

enum { JOB_MB = 96 }; // half of what attack `memory` takes

const char *const selftest_verdict_names[SELFTEST_N_VERDICTS] = {
    [SELFTEST_NOT_RUN] = "not run",         [SELFTEST_HELD] = "held",
    [SELFTEST_UNENFORCED] = "not enforced", [SELFTEST_ESCAPED] = "escaped",
    [SELFTEST_BROKEN] = "broken",
};

static void judge_start(struct selftest_item *item, const struct result *r);
static void judge_attack(struct selftest_item *item, const struct result *r);
static void judge_calls(struct selftest_item *item, const struct result *r);
static void judge_memory(struct selftest_item *item, const struct result *r);

// A start: `command` is what it runs, as JSON. An attack: the program of its name in attacks/, with
// these params, or what was planted.
static const struct row {
    const char *name, *what, *command, *params;
    void (*judge)(struct selftest_item *item, const struct result *r);
} rows[SELFTEST_N] = {
    {"python", "the Python of the runtime root starts", "[\"python3.13\",\"--version\"]", NULL,
     judge_start},
    {"javascript", "the Node of the runtime root starts", "[\"node\",\"--version\"]", NULL,
     judge_start},
    {"bash", "the Bash of the runtime root starts", "[\"bash\",\"-c\",\"echo $BASH_VERSION\"]",
     NULL, judge_start},
    {"files", "reads files of the host", NULL, NULL, judge_attack},
    {"writes", "writes outside of its workspace", NULL, NULL, judge_attack},
    {"identity", "becomes another user, or gains a capability", NULL, NULL, judge_attack},
    {"processes", "sees or signals other processes", NULL, NULL, judge_calls},
    {"network", "reaches the host's network", NULL, NULL, judge_attack},
    {"mounts", "mounts, leaves its root, makes namespaces", NULL, NULL, judge_calls},
    {"kernel", "makes dangerous system calls", NULL, NULL, judge_calls},
    {"devices", "makes devices, opens kernel settings for writing", NULL, NULL, judge_attack},
    {"leftovers", "finds descriptors, variables or IPC objects of others", NULL, NULL,
     judge_attack},
    {"memory", "takes more memory than it has", NULL, "{\"mb\":192}", judge_memory},
};

struct selftest {
    struct loop *loop;
    struct runner *runner;
    const struct pipeline_config *config;
    const char *planted;
    void (*done)(void *ctx);
    void *ctx;
    struct job_sink sink;
    struct loop_timer next;
    struct pipeline *pipeline;
    size_t at; // the row that runs
    uint32_t downgrades;
    struct selftest_item items[SELFTEST_N];
};

void selftest_items_init(struct selftest_item *ret_items)
{
    for (size_t i = 0; i < SELFTEST_N; i++) {
        ret_items[i] = (struct selftest_item){
            .name = rows[i].name, .what = rows[i].what, .is_attack = !rows[i].command};
    }
}

static const char *text_of(const char *name)
{
    for (unsigned i = 0; i < n_attack_texts; i++) {
        if (strcmp(attack_texts[i].name, name) == 0) {
            return attack_texts[i].text;
        }
    }
    return "";
}

// ---- Verdicts

static void judge(struct selftest_item *item, enum selftest_verdict verdict, const char *text,
                  size_t len)
{
    item->verdict = verdict;
    snprintf(item->detail, sizeof item->detail, "%.*s", (int)(len < 4096 ? len : 4096), text);
    text_no_controls(item->detail);
}

// How a job ended that should have come to its own end.
static void judge_broken(struct selftest_item *item, const struct result *r)
{
    char text[SELFTEST_DETAIL_MAX];
    int n = snprintf(text, sizeof text, "%s: %s", reason_names[r->reason],
                     r->error ? r->error : "no result");
    judge(item, SELFTEST_BROKEN, text, (size_t)n);
}

static void judge_start(struct selftest_item *item, const struct result *r)
{
    if (r->reason == REASON_OK) {
        size_t len =
            r->out.len && r->out.data[r->out.len - 1] == '\n' ? r->out.len - 1 : r->out.len;
        judge(item, SELFTEST_HELD, buf_text(&r->out), len);
    } else {
        judge_broken(item, r);
    }
}

// Its end is the kernel's word: the counter of its group.
static void judge_memory(struct selftest_item *item, const struct result *r)
{
    if (r->reason == REASON_MEMORY_LIMIT) {
        judge(item, SELFTEST_HELD, "", 0);
    } else if (r->isolation.downgrades & PLAN_NO_CGROUP_MEMORY) {
        judge(item, SELFTEST_UNENFORCED, "no_cgroup_memory", 16);
    } else if (r->reason == REASON_OK) {
        judge(item, SELFTEST_ESCAPED, r->value, r->value_len);
    } else {
        judge_broken(item, r);
    }
}

static void judge_value(struct selftest_item *item, const struct result *r,
                        enum selftest_verdict of_success)
{
    if (r->reason != REASON_OK || !r->value) {
        judge_broken(item, r);
    } else if (r->value_len == 2 && memcmp(r->value, "[]", 2) == 0) {
        judge(item, SELFTEST_HELD, "", 0);
    } else {
        judge(item, of_success, r->value, r->value_len);
    }
}

static void judge_attack(struct selftest_item *item, const struct result *r)
{
    judge_value(item, r, SELFTEST_ESCAPED);
}

// What it tries are system calls, which an operator may allow (SANDBOX_SECCOMP_ALLOW).
static void judge_calls(struct selftest_item *item, const struct result *r)
{
    bool allowed = r->isolation.downgrades & PLAN_SECCOMP_ALLOW;
    judge_value(item, r, allowed ? SELFTEST_UNENFORCED : SELFTEST_ESCAPED);
}

// ---- Jobs, one after the other

static void job_is_done(void *ctx, struct result *r)
{
    struct selftest *t = ctx;
    struct selftest_item *item = &t->items[t->at];
    t->downgrades |= r->isolation.downgrades;
    rows[t->at].judge(item, r);
    if (item->verdict == SELFTEST_ESCAPED && (r->isolation.downgrades & PLAN_NO_ISOLATION)) {
        judge(item, SELFTEST_UNENFORCED, "no_isolation", 12);
    }
    t->at++;
    loop_timer_set(t->loop, &t->next, 0); // the pipeline is not ours to free before it returns
}

static int write_job(struct buf *json, const struct selftest *t)
{
    const struct row *row = &rows[t->at];
    if (row->command) {
        buf_printf(json, "{\"command\":%s", row->command);
    } else {
        const char *code = text_of(row->name);
        buf_puts(json, "{\"language\":\"python\",\"code_name\":\"attack.py\",\"code\":");
        utf8_json_string(json, code, strlen(code));
        buf_printf(json, ",\"params\":%s", row->params ? row->params : t->planted);
    }
    buf_printf(json,
               ",\"network\":\"none\",\"limits\":{\"timeout_seconds\":10,\"memory_mb\":%d,\"disk_"
               "mb\":4,\"pids\":32,"
               "\"max_stdout_kb\":64,\"max_stderr_kb\":64}}",
               JOB_MB);
    return json->error;
}

static int start_job(struct selftest *t, char *text, size_t size)
{
    AUTO_BUF struct buf json = BUF_INIT(1 << 16);
    struct job job;
    struct job_error error = {};
    int e = write_job(&json, t);
    snprintf(text, size, "%s", e ? strerror(-e) : "");
    if (e) {
        return e;
    }
    e = job_parse(json.data, json.len, 0, &job, &error);
    if (e) {
        snprintf(text, size, "%.200s", error.text);
        job_done(&job);
        return e;
    }
    e = pipeline_start(t->loop, t->runner, t->config, &job, &t->sink, &t->pipeline);
    snprintf(text, size, "%s", e ? strerror(-e) : "");
    return e;
}

static void next_job(struct loop_timer *timer)
{
    struct selftest *t = timer->ctx;
    char text[SELFTEST_DETAIL_MAX];
    pipeline_free(t->pipeline);
    t->pipeline = NULL;
    while (t->at < SELFTEST_N && start_job(t, text, sizeof text)) {
        judge(&t->items[t->at++], SELFTEST_BROKEN, text, strlen(text));
    }
    if (t->at == SELFTEST_N) {
        t->done(t->ctx);
    }
}

int selftest_start(struct loop *loop, struct runner *runner, const struct pipeline_config *config,
                   const char *planted, void (*done)(void *ctx), void *ctx, struct selftest **ret)
{
    struct selftest *t = calloc(1, sizeof *t);
    if (!t) {
        return -ENOMEM;
    }
    t->loop = loop;
    t->runner = runner;
    t->config = config;
    t->planted = planted;
    t->done = done;
    t->ctx = ctx;
    t->sink = (struct job_sink){.ctx = t, .done = job_is_done};
    t->next = LOOP_TIMER_INIT(next_job, t);
    selftest_items_init(t->items);
    loop_timer_set(loop, &t->next, 0);
    *ret = t;
    return 0;
}

const struct selftest_item *selftest_items(const struct selftest *t) { return t->items; }

uint32_t selftest_downgrades(const struct selftest *t) { return t->downgrades; }

void selftest_free(struct selftest *t)
{
    if (t) {
        loop_timer_clear(t->loop, &t->next);
        pipeline_free(t->pipeline);
        free(t);
    }
}

// ---- Between service and front

int selftest_write(struct buf *out, const struct selftest_item *items)
{
    buf_putc(out, '[');
    for (size_t i = 0; i < SELFTEST_N; i++) {
        buf_printf(out, "%s{\"name\":\"%s\",\"verdict\":%d,\"detail\":", i ? "," : "",
                   items[i].name, items[i].verdict);
        utf8_json_string(out, items[i].detail, strlen(items[i].detail));
        buf_putc(out, '}');
    }
    buf_putc(out, ']');
    return out->error;
}

int selftest_read(const char *json, size_t len, struct selftest_item *ret_items)
{
    struct json_error why;
    yyjson_doc *doc = json_parse(json, len, &why);
    yyjson_val *list = yyjson_doc_get_root(doc), *item;
    size_t i, n;
    int e = yyjson_arr_size(list) == SELFTEST_N ? 0 : -EBADMSG;
    selftest_items_init(ret_items);
    yyjson_arr_foreach(list, i, n, item)
    {
        int64_t verdict = -1;
        const char *detail = yyjson_get_str(yyjson_obj_get(item, "detail"));
        if (e || !detail || json_int(yyjson_obj_get(item, "verdict"), &verdict) || verdict < 0 ||
            verdict >= SELFTEST_N_VERDICTS) {
            e = -EBADMSG;
            break;
        }
        judge(&ret_items[i], (enum selftest_verdict)verdict, detail, strlen(detail));
    }
    yyjson_doc_free(doc);
    return e;
}
