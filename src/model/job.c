#include "model/job.h"

#include "base/fd.h"
#include "codec/utf8.h"
#include "model/parse.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const language_names[LANGUAGE_COUNT] = {"none", "python", "javascript", "bash"};

// A field that is absent or null.
static bool absent(const struct parse *p, const char *name)
{
    yyjson_val *v = yyjson_obj_get(p->root, name);
    return !v || yyjson_is_null(v);
}

int job_wrong_type(struct parse *p, const char *field, yyjson_val *v, const char *wanted)
{
    char shown[SHOWN_BYTES];
    return job_refuse(p->error, field, "must be %s, not %s", wanted, job_show(v, shown));
}

// A copy of a string without NUL; with `max` bytes at most.
static int take_string(struct parse *p, const char *field, yyjson_val *v, size_t max, char **ret)
{
    if (!yyjson_is_str(v)) {
        return job_wrong_type(p, field, v, "a string");
    }
    size_t n = yyjson_get_len(v);
    if (memchr(yyjson_get_str(v), '\0', n)) {
        return job_refuse(p->error, field, "contains a NUL");
    }
    if (n > max) {
        return job_refuse(p->error, field, "%zu bytes are above the maximum of %zu", n, max);
    }
    char *copy = strdup(yyjson_get_str(v));
    if (!copy) {
        return -ENOMEM;
    }
    *ret = copy;
    return 0;
}

int job_only_known(struct parse *p, const char *where, yyjson_val *object, const char *const *names,
                   size_t n)
{
    size_t i, count;
    yyjson_val *key, *value;
    yyjson_obj_foreach(object, i, count, key, value)
    {
        size_t known = 0;
        while (known < n && !yyjson_equals_str(key, names[known])) {
            known++;
        }
        if (known == n) {
            char field[96], shown[SHOWN_BYTES], meant[MEANT_BYTES];
            const char *near = NULL;
            for (size_t k = 0; k < n && !near; k++) {
                near = job_is_near(yyjson_get_str(key), yyjson_get_len(key), names[k]) ? names[k]
                                                                                       : NULL;
            }
            snprintf(field, sizeof field, "%s%s%.*s", where, *where ? "." : "",
                     (int)utf8_cut(yyjson_get_str(key),
                                   yyjson_get_len(key) < 40 ? yyjson_get_len(key) : 40),
                     yyjson_get_str(key));
            return job_refuse(p->error, field, "unknown field (value %s)%s", job_show(value, shown),
                              job_show_meant(near, meant));
        }
    }
    return 0;
}

static int parse_language(struct parse *p, yyjson_val *v)
{
    char shown[SHOWN_BYTES];
    for (int i = LANGUAGE_NONE + 1; i < LANGUAGE_COUNT; i++) {
        if (yyjson_equals_str(v, language_names[i])) {
            p->job->language = (enum language)i;
            return 0;
        }
    }
    return job_refuse(p->error, "language", "unknown language %s; python, javascript or bash",
                      job_show(v, shown));
}

static int parse_code(struct parse *p, yyjson_val *v)
{
    if (!yyjson_is_str(v)) {
        return job_wrong_type(p, "code", v, "a string");
    }
    size_t n = yyjson_get_len(v);
    if (n > JOB_MAX_CODE_BYTES) {
        job_refuse(p->error, "code", "%zu bytes are above the maximum of %d", n,
                   JOB_MAX_CODE_BYTES);
        p->error->too_large = true;
        return -EINVAL;
    }
    p->job->code = malloc(n + 1);
    if (!p->job->code) {
        return -ENOMEM;
    }
    memcpy(p->job->code, yyjson_get_str(v), n);
    p->job->code[n] = '\0';
    p->job->code_len = n;
    return 0;
}

static int parse_code_name(struct parse *p, yyjson_val *v)
{
    int e = take_string(p, "code_name", v, 255, &p->job->code_name);
    if (e) {
        return e;
    }
    const char *name = p->job->code_name;
    if (!*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strchr(name, '/')) {
        char shown[SHOWN_BYTES];
        return job_refuse(p->error, "code_name", "must be the name of a file, not %s",
                          job_show(v, shown));
    }
    return 0;
}

static int parse_params(struct parse *p, yyjson_val *v)
{
    if (!yyjson_is_obj(v)) {
        return job_wrong_type(p, "params", v, "an object");
    }
    struct buf text = BUF_INIT(JOB_MAX_PARAMS_BYTES);
    int e = json_write(&text, v);
    if (e) {
        buf_free(&text);
        if (e != -ENOMEM) {
            e = job_refuse(p->error, "params", "above the maximum of %d bytes",
                           JOB_MAX_PARAMS_BYTES);
            p->error->too_large = true;
        }
        return e;
    }
    p->job->params_len = text.len;
    p->job->params = buf_take(&text);
    return 0;
}

static int parse_argument(struct parse *p, size_t i, yyjson_val *v, size_t *total)
{
    char field[32];
    snprintf(field, sizeof field, "command[%zu]", i);
    int e = take_string(p, field, v, JOB_MAX_ARGV_BYTES, &p->job->argv[i]);
    if (e) {
        return e;
    }
    if (i == 0 && !p->job->argv[0][0]) {
        return job_refuse(p->error, field, "is empty: the first word is the program");
    }
    *total += yyjson_get_len(v) + 1;
    if (*total > JOB_MAX_ARGV_BYTES) {
        return job_refuse(p->error, "command",
                          "all words together are above the maximum of %d bytes",
                          JOB_MAX_ARGV_BYTES);
    }
    return 0;
}

static int parse_command(struct parse *p, yyjson_val *v)
{
    if (!yyjson_is_arr(v)) {
        return job_wrong_type(p, "command", v, "an array of strings");
    }
    size_t n = yyjson_arr_size(v), total = 0, i, count;
    if (n == 0) {
        return 0; // as absent
    }
    if (n > JOB_MAX_ARGV) {
        return job_refuse(p->error, "command", "%zu words are above the maximum of %d", n,
                          JOB_MAX_ARGV);
    }
    p->job->argv = calloc(n + 1, sizeof *p->job->argv);
    if (!p->job->argv) {
        return -ENOMEM;
    }
    yyjson_val *word;
    yyjson_arr_foreach(v, i, count, word)
    {
        int e = parse_argument(p, i, word, &total);
        if (e) {
            return e;
        }
    }
    return 0;
}

// [A-Za-z_][A-Za-z0-9_]*: what every shell can name.
static bool is_env_name(const char *name, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        char c = name[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        if (!letter && (i == 0 || c < '0' || c > '9')) {
            return false;
        }
    }
    return len > 0 && len <= 255;
}

static int parse_variable(struct parse *p, yyjson_val *key, yyjson_val *v, char **ret)
{
    char field[320], shown[SHOWN_BYTES];
    const char *name = yyjson_get_str(key);
    if (!is_env_name(name, yyjson_get_len(key))) {
        return job_refuse(p->error, "env", "%s is not a name: letters, digits and _ (at most 255)",
                          job_show(key, shown));
    }
    snprintf(field, sizeof field, "env.%s", name);
    if (job_env_refused(name)) {
        return job_refuse(p->error, field,
                          "refused: it steers a loader or an interpreter; set it in the job's own "
                          "code if it is needed");
    }
    AUTO_FREE char *value = NULL;
    int e = take_string(p, field, v, JOB_MAX_ENV_BYTES, &value);
    if (e) {
        return e;
    }
    return asprintf(ret, "%s=%s", name, value) < 0 ? -ENOMEM : 0;
}

static int parse_env(struct parse *p, yyjson_val *v)
{
    if (!yyjson_is_obj(v)) {
        return job_wrong_type(p, "env", v, "an object of strings");
    }
    size_t n = yyjson_obj_size(v), total = 0, i, count;
    if (n > JOB_MAX_ENV_NAMES) {
        return job_refuse(p->error, "env", "%zu names are above the maximum of %d", n,
                          JOB_MAX_ENV_NAMES);
    }
    p->job->env = calloc(n + 1, sizeof *p->job->env);
    if (!p->job->env) {
        return -ENOMEM;
    }
    yyjson_val *key, *value;
    yyjson_obj_foreach(v, i, count, key, value)
    {
        char *variable = NULL;
        int e = parse_variable(p, key, value, &variable);
        if (e) {
            return e;
        }
        p->job->env[i] = variable;
        total += strlen(variable) + 1;
        if (total > JOB_MAX_ENV_BYTES) {
            return job_refuse(p->error, "env", "all together above the maximum of %d bytes",
                              JOB_MAX_ENV_BYTES);
        }
    }
    return 0;
}

const char *const job_network_names[JOB_N_NETWORKS] = {
    [JOB_NETWORK_NONE] = "none", [JOB_NETWORK_HOST] = "host"};

static int parse_network(struct parse *p, yyjson_val *v)
{
    if (!yyjson_is_str(v)) {
        return job_wrong_type(p, "network", v, "a string");
    }
    for (int i = JOB_NETWORK_NONE; i < JOB_N_NETWORKS; i++) {
        if (yyjson_equals_str(v, job_network_names[i])) {
            p->job->network = (enum job_network)i;
            return 0;
        }
    }
    if (yyjson_equals_str(v, "proxy")) {
        return job_refuse(p->error, "network", "proxy is not available in this version");
    }
    char shown[SHOWN_BYTES];
    return job_refuse(p->error, "network", "%s is neither none nor host", job_show(v, shown));
}

static int parse_cwd(struct parse *p, yyjson_val *v)
{
    AUTO_FREE char *relative = NULL;
    if (!yyjson_is_str(v)) {
        return job_wrong_type(p, "cwd", v, "a string");
    }
    int e = job_path("cwd", yyjson_get_str(v), yyjson_get_len(v), &relative, p->error);
    if (e) {
        return e;
    }
    bool top = strcmp(relative, ".") == 0;
    e = asprintf(&p->job->cwd, "/workspace%s%s", top ? "" : "/", top ? "" : relative);
    if (e < 0) {
        p->job->cwd = NULL;
        return -ENOMEM;
    }
    return 0;
}

// A UUID in lower case, as every id of a session.
static int parse_session(struct parse *p, yyjson_val *v)
{
    static const char form[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
    const char *id = yyjson_is_str(v) ? yyjson_get_str(v) : "";
    bool sound = yyjson_get_len(v) == sizeof form - 1 && strlen(id) == sizeof form - 1;
    for (size_t i = 0; sound && i < sizeof form - 1; i++) {
        sound = form[i] == '-' ? id[i] == '-' : strchr("0123456789abcdef", id[i]) != NULL;
    }
    if (!sound) {
        char shown[SHOWN_BYTES];
        return job_refuse(p->error, "session_id", "%s is not an id", job_show(v, shown));
    }
    memcpy(p->job->session, id, sizeof p->job->session);
    return 0;
}

// Where other callers put the snippet's parameters; whatever else is in it is theirs.
static int parse_metadata(struct parse *p, yyjson_val *v)
{
    yyjson_val *params = yyjson_obj_get(v, "params");
    if (!yyjson_is_obj(v)) {
        return job_wrong_type(p, "metadata", v, "an object");
    }
    if (!params || yyjson_is_null(params) || !absent(p, "params")) {
        return 0;
    }
    return parse_params(p, params);
}

static int parse_shell(struct parse *p, yyjson_val *v)
{
    return yyjson_is_bool(v) ? 0 : job_wrong_type(p, "shell", v, "true or false");
}

// A text that is not used, whatever it says.
static int parse_unused(struct parse *p, yyjson_val *v)
{
    return yyjson_is_str(v) ? 0
                            : job_wrong_type(p, "source, runtime_profile, tenant_id", v, "texts");
}

static const struct field {
    const char *name;
    int (*parse)(struct parse *p, yyjson_val *v);
} fields[] = {
    {"language", parse_language},
    {"code", parse_code},
    {"code_name", parse_code_name},
    {"params", parse_params},
    {"command", parse_command},
    {"env", parse_env},
    {"cwd", parse_cwd},
    {"network", parse_network},
    {"timeout", job_parse_timeout},
    {"limits", job_parse_limits},
    {"input_files", job_parse_files},
    {"stdin_fd", job_parse_stdin},
    {"stdin_base64", job_parse_stdin_base64},
    {"artifacts", job_parse_artifacts},
    {"artifact_limits", job_parse_artifact_limits},
    {"package_sets", job_parse_sets},
    {"session_id", parse_session},
    {"metadata", parse_metadata},
    {"shell", parse_shell},
    {"source", parse_unused},
    {"runtime_profile", parse_unused},
    {"tenant_id", parse_unused},
    {"python_package_index_url", job_parse_python_index},
    {"node_package_registry_url", job_parse_js_registry},
    {"python_packages", job_parse_python_packages},
    {"js_packages", job_parse_js_packages},
};

int job_go_on(struct parse *p, int e)
{
    if (e != -EINVAL || !p->fault) {
        return e;
    }
    p->n_faults++;
    p->fault(p->ctx, p->error);
    return 0;
}

static int parse_fields(struct parse *p)
{
    const char *names[ARRAY_LEN(fields)];
    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        names[i] = fields[i].name;
    }
    int e = job_go_on(p, job_only_known(p, "", p->root, names, ARRAY_LEN(names)));
    for (size_t i = 0; i < ARRAY_LEN(fields) && !e; i++) {
        if (!absent(p, fields[i].name)) {
            e = job_go_on(p, fields[i].parse(p, yyjson_obj_get(p->root, fields[i].name)));
        }
    }
    return p->n_faults ? -EINVAL : e;
}

static void free_list(char **list)
{
    for (size_t i = 0; list && list[i]; i++) {
        free(list[i]);
    }
    free(list);
}

// Some callers name the interpreter beside the code: it says nothing that `language` does not.
static bool only_names_interpreter(const struct job *j)
{
    static const struct {
        enum language language;
        const char *name;
    } names[] = {
        {LANGUAGE_PYTHON, "python"},         {LANGUAGE_PYTHON, "python3"},
        {LANGUAGE_JAVASCRIPT, "node"},       {LANGUAGE_JAVASCRIPT, "nodejs"},
        {LANGUAGE_JAVASCRIPT, "javascript"},
    };
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (j->language == names[i].language && strcmp(j->argv[0], names[i].name) == 0) {
            return !j->argv[1];
        }
    }
    return false;
}

// What only makes sense together.
static int check_kind(struct parse *p)
{
    struct job *j = p->job;
    if (j->code && j->argv && only_names_interpreter(j)) {
        free_list(j->argv);
        j->argv = NULL;
    }
    if (yyjson_is_true(yyjson_obj_get(p->root, "shell")) && !j->argv) {
        return job_refuse(p->error, "shell", "needs a command");
    }
    if (j->code && j->argv) {
        return job_refuse(p->error, "command", "may not be given together with code");
    }
    if (!j->code && !j->argv) {
        return job_refuse(p->error, "code", "is missing: a job needs code or command");
    }
    if (j->code && j->language == LANGUAGE_NONE) {
        return job_refuse(p->error, "language", "is missing: python, javascript or bash");
    }
    if (j->argv && j->language != LANGUAGE_NONE) {
        return job_refuse(p->error, "language", "may not be given with command");
    }
    if (j->argv && j->code_name) {
        return job_refuse(p->error, "code_name", "may not be given with command");
    }
    j->kind = j->argv ? JOB_COMMAND : j->language == LANGUAGE_BASH ? JOB_SCRIPT : JOB_SNIPPET;
    if (j->kind != JOB_SNIPPET && j->params && strcmp(j->params, "{}") != 0) {
        return job_refuse(p->error, "params", "only a python or javascript snippet takes them");
    }
    return 0;
}

static int fill_text(char **text, const char *initial)
{
    if (!*text) {
        *text = strdup(initial);
    }
    return *text ? 0 : -ENOMEM;
}

static int fill_defaults(struct job *j)
{
    static const char *const code_names[LANGUAGE_COUNT] = {"", "snippet.py", "snippet.js",
                                                           "script.sh"};
    int e = fill_text(&j->cwd, "/workspace");
    if (!e && j->code) {
        e = fill_text(&j->code_name, code_names[j->language]);
    }
    if (!e && !j->params) {
        e = fill_text(&j->params, "{}");
        j->params_len = 2;
    }
    if (!e && !j->env) {
        j->env = calloc(1, sizeof *j->env);
        e = j->env ? 0 : -ENOMEM;
    }
    return e;
}

static int parse_root(struct parse *p)
{
    if (!yyjson_is_obj(p->root)) {
        return job_wrong_type(p, "job", p->root, "an object");
    }
    int e = parse_fields(p);
    e = e ? e : check_kind(p);
    e = e || p->fault ? e : job_check_packages(p);
    return e ? e : fill_defaults(p->job);
}

static void init(struct job *j)
{
    *j = (struct job){.stdin_fd = -1, .stdin_index = -1};
    job_new_id(j->id);
    limits_init(&j->limits);
}

int job_parse_value(yyjson_val *value, int n_fds, struct job *ret, struct job_error *ret_error)
{
    init(ret);
    AUTO_FREE bool *used = calloc((size_t)(n_fds > 0 ? n_fds : 1), sizeof *used);
    struct parse p = {
        .job = ret, .error = ret_error, .root = value, .fd_used = used, .n_fds = n_fds};
    int e = used ? parse_root(&p) : -ENOMEM;
    if (e && e != -EINVAL) {
        job_refuse(ret_error, "job", "%s", strerrordesc_np(-e));
    }
    return e;
}

int job_parse_saved(yyjson_val *value, struct job *ret,
                    void (*fault)(void *ctx, const struct job_error *e), void *ctx)
{
    struct job_error why;
    struct parse p = {.job = ret, .error = &why, .root = value, .fault = fault, .ctx = ctx};
    init(ret);
    int e = parse_root(&p);
    if (e == -EINVAL && !p.n_faults) { // of the fields together
        fault(ctx, &why);
    }
    return e;
}

int job_parse(const char *json, size_t len, int n_fds, struct job *ret, struct job_error *ret_error)
{
    init(ret);
    if (len > JOB_MAX_JSON_BYTES) {
        return job_refuse(ret_error, "job", "%zu bytes are above the maximum of %d", len,
                          JOB_MAX_JSON_BYTES);
    }
    struct json_error why;
    yyjson_doc *doc = json_parse_envelope(json, len, &why);
    if (!doc) {
        return job_refuse(ret_error, "job", "not valid JSON: %s", why.text);
    }
    int e = job_parse_value(yyjson_doc_get_root(doc), n_fds, ret, ret_error);
    yyjson_doc_free(doc);
    return e;
}

static void bind_one(int index, int *fds, int n_fds, int *ret)
{
    if (index >= 0 && index < n_fds) {
        *ret = fd_take(&fds[index]);
    }
}

void job_bind(struct job *j, int *fds, int n_fds)
{
    bind_one(j->stdin_index, fds, n_fds, &j->stdin_fd);
    for (size_t i = 0; i < j->n_files; i++) {
        bind_one(j->files[i].fd_index, fds, n_fds, &j->files[i].fd);
    }
    for (int i = 0; i < n_fds; i++) {
        fds[i] = fd_close(fds[i]);
    }
}

void job_done(struct job *j)
{
    free(j->code);
    free(j->code_name);
    free(j->params);
    free(j->cwd);
    free_list(j->argv);
    free_list(j->env);
    fd_close(j->stdin_fd);
    free(j->stdin_data);
    for (size_t i = 0; i < j->n_files; i++) {
        free(j->files[i].target);
        free(j->files[i].content);
        fd_close(j->files[i].fd);
    }
    for (size_t i = 0; i < j->n_artifacts; i++) {
        free(j->artifacts[i].path);
        free(j->artifacts[i].description);
    }
    for (size_t i = 0; i < j->n_package_sets; i++) {
        free(j->package_sets[i]);
    }
    free(j->files);
    free(j->artifacts);
    free(j->package_sets);
    *j = (struct job){.stdin_fd = -1, .stdin_index = -1};
}
