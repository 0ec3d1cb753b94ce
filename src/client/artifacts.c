// `isle artifacts`
#include "base/fd.h"
#include "client/client.h"
#include "client/fetch.h"
#include "client/print.h"

#include <ctype.h>
#include <string.h>

static int tell_list(yyjson_val *data)
{
    static const struct print_column columns[] = {
        {"path", "path"}, {"bytes", "size"}, {"type", "content_type"}, {"checksum", "checksum"}};
    yyjson_val *list = yyjson_obj_get(data, "artifacts");
    return yyjson_is_arr(list)
               ? print_table(stdout, isatty(STDOUT_FILENO), list, columns, ARRAY_LEN(columns))
               : -EPROTO;
}

// The job's result, of which the artifacts are a part.
static yyjson_val *ask_job(struct client *c, yyjson_doc **ret_doc, int *ret_status)
{
    AUTO_BUF struct buf path = BUF_INIT(1 << 16);
    client_path(&path, "/sandbox/jobs/%s", c->command.operands[0]);
    struct call call = CALL_INIT("GET", buf_text(&path));
    call.max_bytes = CALL_RESULT_MAX;
    return client_ask(c, &call, ret_doc, ret_status);
}

int artifacts_list(struct client *c)
{
    yyjson_doc *doc;
    int status = 0;
    yyjson_val *data = ask_job(c, &doc, &status);
    if (!data) {
        return status;
    }
    yyjson_val *list = yyjson_obj_get(data, "artifacts");
    int e = c->command.options.json && list ? print_json(stdout, list) : tell_list(data);
    yyjson_doc_free(doc);
    return client_printed(c, e);
}

// A name of the service's that may become one here: what a path of a job's is, and nothing that a
// terminal or a script would stumble over.
static bool is_harmless(const char *name, char **ret)
{
    struct job_error why;
    for (const char *p = name; *p; p++) {
        if (iscntrl((unsigned char)*p)) {
            return false;
        }
    }
    return job_path("artifact", name, strlen(name), ret, &why) == 0;
}

// By its path, whole or below /workspace, or by what it is called here.
static bool is_named(const char *word, const char *path, const char *name)
{
    return (path && strcmp(path, word) == 0) || (name && strcmp(name, word) == 0) ||
           (path && strncmp(path, "/workspace/", 11) == 0 && strcmp(path + 11, word) == 0);
}

// Which are to be written: the one that was named, or all. Malloc'ed; 0 or an exit status.
static int choose(const struct client *c, yyjson_val *data, const char *only, struct job *wanted)
{
    const char *verb = c->command.verb->name;
    yyjson_val *list = yyjson_obj_get(data, "artifacts"), *artifact;
    size_t i, n;
    wanted->artifacts = calloc(yyjson_arr_size(list) + 1, sizeof *wanted->artifacts);
    if (!wanted->artifacts) {
        return verb_complain(verb, "not enough memory");
    }
    yyjson_arr_foreach(list, i, n, artifact)
    {
        AUTO_FREE char *name = fetch_name(artifact);
        const char *path = yyjson_get_str(yyjson_obj_get(artifact, "path"));
        struct job_artifact *to = &wanted->artifacts[wanted->n_artifacts];
        if (only && !is_named(only, path, name)) {
            continue;
        }
        if (!name || !is_harmless(name, &to->path) || strcmp(to->path, name) != 0) {
            return verb_complain(verb, "the service names a file that isle does not write: %.200s",
                                 path ? path : "one without a path");
        }
        wanted->n_artifacts++;
    }
    return only && wanted->n_artifacts == 0
               ? verb_complain(verb, "%.200s: the job has no such artifact", only)
               : 0;
}

static int get_chosen(struct client *c, const char *job_id, yyjson_val *data, struct job *wanted)
{
    const char *verb = c->command.verb->name, *folder = c->command.options.output_dir;
    struct outdir to;
    int e = outdir_open(&to, folder, wanted);
    if (e) {
        outdir_done(&to);
        return verb_complain(verb, "--output-dir: %.300s: %s", folder, strerrordesc_np(-e));
    }
    struct call_error none = {""};
    e = fetch_artifacts(c, job_id, data, &to);
    outdir_done(&to);
    return e ? client_fail(c, e, &none) : to.error[0] ? verb_complain(verb, "%s", to.error) : 0;
}

int artifacts_take(struct client *c, const char *job_id, yyjson_val *data, const char *only)
{
    struct job wanted = {.stdin_fd = -1};
    int status = choose(c, data, only, &wanted);
    status = status ? status : get_chosen(c, job_id, data, &wanted);
    job_done(&wanted);
    return status;
}

int artifacts_get(struct client *c)
{
    const struct remote_command *words = &c->command;
    yyjson_doc *doc;
    int status = 0;
    yyjson_val *data = ask_job(c, &doc, &status);
    if (data) {
        status = artifacts_take(c, words->operands[0], data,
                                words->n_operands > 1 ? words->operands[1] : NULL);
        yyjson_doc_free(doc);
    }
    return status;
}
