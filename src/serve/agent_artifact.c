// agent_artifact.c: the artifact tool: files of the session are kept for their owner, as those that
// jobs leave, under a job of their own that runs nothing (jobs_collect).
#include "serve/agent_calls.h"

#include "base/fd.h"
#include "codec/json.h"
#include "codec/json_out.h"
#include "codec/utf8.h"
#include "model/media.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    REQUEST_BYTES = 1 << 20,
    ANSWER_BYTES = 8 << 20,
    URL_BYTES = 16384,
};

struct gift {
    struct agent_call *call;
    struct jobs_watch watch;
    struct job_artifact *wanted; // of the request: paths normalised
    size_t n_wanted;
};

static void gift_free(struct gift *g)
{
    for (size_t i = 0; i < g->n_wanted; i++) {
        free(g->wanted[i].path);
    }
    free(g->wanted);
    free(g);
}

// ---- Markdown ----------------------------------------------------------------------------------

// A name between the brackets of a link: nothing in it ends the link or begins something else.
// Names of artifacts are text without control characters and line ends. CommonMark 0.31, 2.4: a
// backslash takes the meaning of any ASCII punctuation.
static void put_label(struct buf *out, const char *name)
{
    static const char special[] = "\\`*_{}[]()<>#!|~&$\"'@:";
    const char *end = name + strlen(name);
    for (const char *c = name; c < end; c++) {
        size_t turns = utf8_turns(c, (size_t)(end - c));
        if (turns) {
            for (size_t i = 0; i < turns; i++) {
                buf_printf(out, "%%%02X", (unsigned char)c[i]);
            }
            c += turns - 1;
        } else {
            buf_printf(out, strchr(special, *c) ? "\\%c" : "%c", *c);
        }
    }
}

// Only what a browser shows as a picture: a drawing that may have a program in it is a link.
static bool is_picture(const char *name)
{
    return strncmp(media_type_inert(name), "image/", strlen("image/")) == 0;
}

static void put_markdown(struct buf *out, const struct result *r)
{
    AUTO_BUF struct buf text = BUF_INIT(ANSWER_BYTES);
    for (size_t i = 0; i < r->n_artifacts; i++) {
        const struct result_artifact *a = &r->artifacts[i];
        buf_puts(&text, i ? "\n\n" : "");
        buf_puts(&text, is_picture(a->filename) ? "![" : "[");
        put_label(&text, a->filename);
        buf_puts(&text, "](");
        result_artifact_url(&text, r, a);
        buf_puts(&text, ")");
    }
    json_put_text(out, "markdown", buf_text(&text));
    out->error = out->error ? out->error : text.error;
}

// ---- The answer --------------------------------------------------------------------------------

static void put_path(struct buf *out, const char *key, const char *path)
{
    AUTO_BUF struct buf text = BUF_INIT(2 * JOB_MAX_PATH);
    buf_printf(&text, "/workspace/%s", path);
    json_put_bytes(out, key, buf_text(&text), text.len);
}

static void put_file(struct buf *out, const struct result *r, const struct result_artifact *a)
{
    AUTO_BUF struct buf url = BUF_INIT(URL_BYTES);
    result_artifact_url(&url, r, a);
    json_begin(out, NULL, '{');
    put_path(out, "path", a->path);
    json_put_text(out, "name", a->filename);
    json_put_text(out, "url", buf_text(&url));
    json_put_int(out, "size_bytes", (int64_t)a->size_bytes);
    json_put_text(out, "content_type", media_type(a->filename));
    json_put_text(out, "sha256", a->sha256);
    json_put_text(out, "description", a->description);
    json_end(out, '}');
}

static bool is_there(const struct result *r, const char *path)
{
    for (size_t i = 0; i < r->n_artifacts; i++) {
        if (strcmp(r->artifacts[i].path, path) == 0) {
            return true;
        }
    }
    return false;
}

// r NULL: nothing was looked at.
static void write_answer(struct buf *out, const struct gift *g, const struct result *r,
                         const char *error)
{
    const bool success = r && r->reason == REASON_OK;
    json_begin(out, NULL, '{');
    json_put_bool(out, "success", success);
    json_put_text(out, "error", error);
    json_begin(out, "files", '[');
    for (size_t i = 0; success && i < r->n_artifacts; i++) {
        put_file(out, r, &r->artifacts[i]);
    }
    json_end(out, ']');
    if (success) {
        put_markdown(out, r);
    } else {
        json_put_text(out, "markdown", "");
    }
    json_begin(out, "missing", '[');
    for (size_t i = 0; success && i < g->n_wanted; i++) {
        if (g->wanted[i].optional && !is_there(r, g->wanted[i].path)) {
            put_path(out, NULL, g->wanted[i].path);
        }
    }
    json_end(out, ']');
    json_put_text(out, "job_id", success ? r->job_id : NULL);
    json_end(out, '}');
}

static void answer(struct gift *g, const struct result *r, const char *error)
{
    struct agent_call *c = g->call;
    struct buf data = BUF_INIT(ANSWER_BYTES);
    write_answer(&data, g, r, error);
    c->inner = NULL;
    gift_free(g);
    if (data.error) {
        int e = data.error;
        buf_free(&data);
        c->refused(c, e, strerror(-e));
    } else {
        c->answered(c, &data);
    }
}

static void ended(struct jobs_watch *w, const struct result *r, const char *json, size_t len)
{
    struct gift *g = w->ctx;
    (void)json, (void)len;
    answer(g, r, r->error);
}

// ---- Its job -----------------------------------------------------------------------------------

static void put_bound(struct buf *json, const char *key, yyjson_val *value)
{
    AUTO_BUF struct buf text = BUF_INIT(64);
    if (value && !yyjson_is_null(value) && json_write(&text, value) == 0) {
        json_put_json(json, key, buf_text(&text));
    } else {
        json_put_int(json, key, AGENT_ARTIFACT_MB);
    }
}

// The tool's paths are what a job's artifacts are, and are read as those.
static int make_job(const struct gift *g, struct job *ret, struct job_error *ret_why)
{
    static const char *const nothing[] = {"true", NULL}; // a job has something to run
    yyjson_val *arguments = g->call->arguments;
    AUTO_BUF struct buf json = BUF_INIT(REQUEST_BYTES), paths = BUF_INIT(REQUEST_BYTES);
    int e = json_write(&paths, yyjson_obj_get(arguments, "paths"));
    json_begin(&json, NULL, '{');
    json_put_texts(&json, "command", nothing);
    json_put_text(&json, "session_id", g->call->session);
    json_put_json(&json, "artifacts", buf_text(&paths));
    json_begin(&json, "artifact_limits", '{');
    put_bound(&json, "max_size_mb", yyjson_obj_get(arguments, "max_size_mb"));
    put_bound(&json, "max_total_size_mb", yyjson_obj_get(arguments, "max_total_size_mb"));
    json_end(&json, '}');
    json_end(&json, '}');
    e = e ? e : json.error;
    return e ? e : job_parse(buf_text(&json), json.len, 0, ret, ret_why);
}

// The faults of a job's fields, by the names that the tool has for them.
static void rename_fault(const struct job_error *why, char *text, size_t size)
{
    static const struct {
        const char *job, *tool;
    } names[] = {{"artifacts", "paths"}, {"artifact_limits.", ""}};
    snprintf(text, size, "%s", why->text);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        size_t n = strlen(names[i].job);
        if (strncmp(why->text, names[i].job, n) == 0) {
            snprintf(text, size, "%s%s", names[i].tool, why->text + n);
        }
    }
}

static int keep_wanted(struct gift *g, const struct job *job)
{
    g->wanted = calloc(job->n_artifacts + 1, sizeof *g->wanted);
    for (size_t i = 0; g->wanted && i < job->n_artifacts; i++) {
        g->wanted[i].optional = job->artifacts[i].optional;
        g->wanted[i].path = strdup(job->artifacts[i].path);
        if (!g->wanted[i].path) {
            return -ENOMEM;
        }
        g->n_wanted++;
    }
    return g->wanted ? 0 : -ENOMEM;
}

void agent_artifact_call(const struct agents_config *with, struct agent_call *c)
{
    struct job_error why;
    char id[37], text[sizeof why.text];
    struct gift *g = calloc(1, sizeof *g);
    struct jobs_submission s = {.team = c->team,
                                .job = {.stdin_fd = -1},
                                .tool_call = true,
                                .entry = "agent-artifact",
                                .trace = c->trace};
    if (!g) {
        c->refused(c, -ENOMEM, strerror(ENOMEM));
        return;
    }
    *g = (struct gift){.call = c, .watch = {.ended = ended, .ctx = g}};
    c->inner = g;
    int e = make_job(g, &s.job, &why);
    if (e == -EINVAL) {
        job_done(&s.job);
        rename_fault(&why, text, sizeof text);
        answer(g, NULL, text);
        return;
    }
    e = e ? e : keep_wanted(g, &s.job);
    if (e) {
        job_done(&s.job);
    } else {
        e = jobs_collect(with->jobs, &s, &g->watch, id);
    }
    if (e) {
        c->inner = NULL;
        gift_free(g);
        c->refused(c, e, e < 0 ? strerror(-e) : NULL);
    }
}

void agent_artifact_leave(const struct agents_config *with, struct agent_call *c)
{
    struct gift *g = c->inner;
    if (g) {
        c->inner = NULL;
        jobs_leave(with->jobs, &g->watch);
        gift_free(g);
    }
}
