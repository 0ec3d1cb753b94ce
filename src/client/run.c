// `isle run --url`: the same words as here, the same output and exit status; a service runs it.
#include "base/fd.h"
#include "cli/run_end.h"
#include "cli/run_job.h"
#include "client/client.h"
#include "client/fetch.h"
#include "client/follow.h"
#include "client/send.h"
#include "codec/json.h"

#include <stdio.h>
#include <string.h>

enum { RESULT_AND_REST_BYTES = 12 << 20 };

#define complain(...) verb_complain("run", __VA_ARGS__)

struct remote_run {
    struct client *c;
    struct run_options options;
    struct run_job job;
    struct job named; // what its artifacts may be called here
    struct outdir artifacts;
    struct follow follow;
};

static struct run_end end_of(const struct remote_run *r)
{
    return (struct run_end){.options = &r->options,
                            .job = &r->job.job,
                            .artifacts = &r->artifacts,
                            .line_open = r->follow.line_open,
                            .out_error = r->follow.out_error,
                            .err_error = r->follow.err_error};
}

// What this host alone can do. 0 or an exit status.
static int check_options(const struct run_options *o)
{
    const struct {
        bool given;
        const char *name;
    } rows[] = {{o->launcher != NULL, "--launcher"},
                {o->show_plan, "--show-plan"},
                {o->given.config != NULL, "--config"},
                {o->given.set.n > 0, "--set"}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (rows[i].given) {
            return complain("%s: not with --url or --session: the service decides that",
                            rows[i].name);
        }
    }
    return 0;
}

// Each of the job's as it is, and as the archive that a service makes of a folder. 0 or -ENOMEM.
static int name_artifacts(const struct job *job, struct job *ret)
{
    ret->artifacts = calloc(2 * job->n_artifacts + 1, sizeof *ret->artifacts);
    if (!ret->artifacts) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < 2 * job->n_artifacts; i++) {
        char **to = &ret->artifacts[ret->n_artifacts++].path;
        if (asprintf(to, "%s%s", job->artifacts[i / 2].path, i % 2 ? ".zip" : "") < 0) {
            *to = NULL;
            ret->n_artifacts--;
            return -ENOMEM;
        }
    }
    return 0;
}

static int prepare(struct remote_run *r, char **argv)
{
    struct option_error option = {"not enough memory"};
    struct run_error job;
    if (run_options_parse(argv, &r->options, &option)) {
        return complain("%s; see isle run --help", option.text);
    }
    int status = check_options(&r->options);
    if (!status && run_job_build(&r->options, NULL, &r->job, &job)) {
        status = complain("%s", job.text);
    }
    if (status) {
        return status;
    }
    int e = name_artifacts(&r->job.job, &r->named);
    e = e ? e : outdir_open(&r->artifacts, r->options.output_dir, &r->named);
    return e ? complain("--output-dir: %.300s: %s", r->options.output_dir, strerrordesc_np(-e)) : 0;
}

// A second try must not make a second job.
static void put_key(char *line, size_t size)
{
    char id[37];
    job_new_id(id);
    snprintf(line, size, "Idempotency-Key: isle-run-%s", id);
}

// "FIELD: what is wrong with it", in the words of options.
static int complain_field(const char *text)
{
    char field[64];
    const char *colon = strstr(text, ": ");
    snprintf(field, sizeof field, "%.*s", colon ? (int)(colon - text) : 0, text);
    const char *option = run_options_of_field(field);
    return option ? complain("%s: %s (%s)", option, colon + 2, field) : complain("%s", text);
}

// The job's id. 0 or an exit status after a complaint.
static int submit(struct remote_run *r, char *ret_id, size_t size)
{
    AUTO_BUF struct buf body = BUF_INIT(SEND_MAX_BYTES);
    struct call_error why = {""};
    char key[80];
    sigset_t held;
    client_unhold(r->c, &held);
    int e = send_write(&body, &r->job, r->options.session, &why);
    sigprocmask(SIG_SETMASK, &held, NULL);
    if (e) {
        return complain("%s", why.text);
    }
    put_key(key, sizeof key);
    struct call call = CALL_INIT("POST", CLIENT_API "/sandbox/jobs");
    call.body = buf_text(&body);
    call.body_len = body.len;
    call.headers[0] = key;
    yyjson_doc *doc;
    e = call_make(&r->c->caller, &call, &why);
    yyjson_val *data = e ? NULL : call_data(&call, &doc, &why);
    bool refused = call.status >= 400 && e != -EINTR;
    call_done(&call);
    if (!data) {
        return refused ? complain_field(why.text) : client_fail(r->c, e ? e : -EPROTO, &why);
    }
    const char *id = yyjson_get_str(yyjson_obj_get(data, "job_id"));
    int n = snprintf(ret_id, size, "%s", id ? id : "");
    yyjson_doc_free(doc);
    return n > 0 && (size_t)n < size ? 0 : complain("the service's answer has no job id");
}

// A result is no longer than what this job may write, with every byte a control character (six
// bytes of JSON), and the rest.
static size_t most_of(const struct job *j)
{
    const int64_t *limits = j->limits.value;
    // a command's result is its output once more
    size_t outputs = 2 * (size_t)limits[LIMIT_STDOUT] + (size_t)limits[LIMIT_STDERR];
    return outputs * 1024 * 6 + RESULT_AND_REST_BYTES;
}

static int fetch(struct remote_run *r)
{
    struct json_error ignored;
    const struct buf *final = &r->follow.final;
    yyjson_doc *doc = json_parse_envelope(buf_text(final), final->len, &ignored);
    int e = doc ? fetch_artifacts(r->c, r->follow.id, yyjson_doc_get_root(doc), &r->artifacts) : 0;
    yyjson_doc_free(doc);
    outdir_done(&r->artifacts);
    return e;
}

static int end_status(struct remote_run *r, int error, const struct call_error *why)
{
    error = error ? error : fetch(r);
    struct run_end end = end_of(r);
    if (error == -EINTR) {
        return run_end_own(&end, REASON_CANCELLED, "cancelled; the service was asked to end it");
    }
    if (error) {
        return client_fail(r->c, error, why);
    }
    int status = run_end_print(&end, &r->follow.final);
    return run_end_status(&end, status >= 0 ? status : complain("the service's result is none"));
}

static int run(struct remote_run *r, char **argv)
{
    bool live;
    struct call_error why;
    int status = prepare(r, argv);
    char id[64];
    status = status ? status : submit(r, id, sizeof id);
    if (status) {
        return status;
    }
    live = !r->options.json;
    r->follow = (struct follow){.c = r->c,
                                .out = live ? STDOUT_FILENO : -1,
                                .err = live ? STDERR_FILENO : -1,
                                .cancels = true,
                                .max_result = most_of(&r->job.job)};
    snprintf(r->follow.id, sizeof r->follow.id, "%s", id);
    int e = follow_job(&r->follow, &why);
    status = end_status(r, e, &why);
    follow_done(&r->follow);
    return status;
}

int client_run(struct client *c, char **argv)
{
    struct remote_run r = {
        .c = c, .job.job.stdin_fd = -1, .artifacts = {.dir = -1, .folder = -1, .file = -1}};
    int status = run(&r, argv);
    outdir_done(&r.artifacts);
    run_job_done(&r.job);
    job_done(&r.named);
    run_options_done(&r.options);
    return status;
}
