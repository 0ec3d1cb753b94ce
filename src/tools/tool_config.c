// tool_config.c: what a tool runs. It is checked as the job that it will be, by the parser of jobs.
#include "tools/tool_inner.h"

#include "base/fd.h"
#include "codec/json.h"
#include "codec/json_out.h"
#include "model/refuse.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

const char *const tool_config_names[] = {"language",
                                         "code",
                                         "command",
                                         "env",
                                         "cwd",
                                         "network",
                                         "package_sets",
                                         "python_packages",
                                         "js_packages",
                                         "python_package_index_url",
                                         "node_package_registry_url",
                                         "artifacts",
                                         "artifact_limits",
                                         "limits",
                                         NULL};

enum { PACKAGE_TEXT_BYTES = 264 };

static const struct {
    enum language language;
    const char *packages, *form, *between;
} kinds[] = {
    {LANGUAGE_PYTHON, "python_packages", "NAME==VERSION", "=="},
    {LANGUAGE_JAVASCRIPT, "js_packages", "NAME@VERSION", "@"},
};

// Of the languages that a tool may have; ARRAY_LEN(kinds): none of them.
static size_t kind_of(yyjson_val *config)
{
    size_t i = 0;
    yyjson_val *v = yyjson_obj_get(config, "language");
    while (i < ARRAY_LEN(kinds) && !yyjson_equals_str(v, language_names[kinds[i].language])) {
        i++;
    }
    return i;
}

// ---- Dependencies of older platforms

static bool is_text(yyjson_val *v)
{
    return yyjson_is_str(v) && strlen(yyjson_get_str(v)) == yyjson_get_len(v);
}

// "NAME==VERSION", or {"name": NAME, "version": VERSION}; of that nothing is passed over, as it
// might say another package than is saved.
static bool dependency_text(yyjson_val *v, size_t kind, char text[PACKAGE_TEXT_BYTES])
{
    const char *between = kinds[kind].between;
    yyjson_val *name = yyjson_is_obj(v) ? yyjson_obj_get(v, "name") : v;
    yyjson_val *given = yyjson_obj_get(v, "version");
    const char *version = yyjson_get_str(given);
    if (!is_text(name) || (given && !yyjson_is_null(given) && !is_text(given)) ||
        yyjson_obj_size(v) > 1 + (size_t)(given != NULL)) {
        return false;
    }
    if (version && strncmp(version, between, strlen(between)) == 0) { // some saved "==1.0" in it
        version += strlen(between);
    }
    int n = version && *version ? snprintf(text, PACKAGE_TEXT_BYTES, "%s%s%s", yyjson_get_str(name),
                                           between, version)
                                : snprintf(text, PACKAGE_TEXT_BYTES, "%s", yyjson_get_str(name));
    return n < PACKAGE_TEXT_BYTES && job_is_package(kinds[kind].language, text, (size_t)n);
}

// The package that a text names, in whichever version.
static bool has_package(yyjson_val *list, size_t kind, const char *text)
{
    size_t i, count;
    yyjson_val *one;
    yyjson_arr_foreach(list, i, count, one)
    {
        const char *other = yyjson_get_str(one);
        if (other && job_same_package(kinds[kind].language, other, yyjson_get_len(one), text,
                                      strlen(text))) {
            return true;
        }
    }
    return false;
}

// The packages as given, and after them the dependencies that are not among them: where both name
// one, the version of the packages is it.
static void put_packages(struct buf *out, yyjson_val *config, size_t kind, struct tool_faults *f)
{
    static const char at[] = "code_config.dependencies";
    yyjson_val *packages = yyjson_obj_get(config, kinds[kind].packages), *one;
    yyjson_val *list = yyjson_obj_get(config, "dependencies");
    size_t i, count;
    json_begin(out, kinds[kind].packages, '[');
    yyjson_arr_foreach(packages, i, count, one)
    {
        buf_puts(out, i ? "," : "");
        json_write(out, one);
    }
    yyjson_arr_foreach(list, i, count, one)
    {
        char text[PACKAGE_TEXT_BYTES], here[TOOL_PATH_BYTES], shown[SHOWN_BYTES];
        if (!dependency_text(one, kind, text)) {
            snprintf(here, sizeof here, "%s[%zu]", at, i);
            tool_fault(f, here, "must name a package and its exact version, as %s, not %s",
                       kinds[kind].form, job_show(one, shown));
        } else if (!has_package(packages, kind, text)) {
            json_put_text(out, NULL, text);
        }
        if (f->n > TOOL_FAULTS_MAX) {
            break;
        }
    }
    json_end(out, ']');
}

// ---- The object

// The canonical form: known fields in their order, null ones left out, dependencies resolved.
static void write_config(struct buf *out, yyjson_val *config, struct tool_faults *f)
{
    char shown[SHOWN_BYTES];
    yyjson_val *list = yyjson_obj_get(config, "dependencies");
    size_t kind = kind_of(config);
    bool merge = yyjson_arr_size(list) > 0 && kind < ARRAY_LEN(kinds);
    if (list && !yyjson_is_null(list) && !yyjson_is_arr(list)) {
        tool_fault(f, "code_config.dependencies", "must be an array, not %s",
                   job_show(list, shown));
    } else if (yyjson_arr_size(list) > JOB_MAX_PACKAGES) {
        tool_fault(f, "code_config.dependencies", "%zu are above the maximum of %d",
                   yyjson_arr_size(list), JOB_MAX_PACKAGES);
        merge = false;
    }
    buf_putc(out, '{');
    for (const char *const *name = tool_config_names; *name; name++) {
        yyjson_val *v = yyjson_obj_get(config, *name);
        if (merge && strcmp(*name, kinds[kind].packages) == 0 &&
            (!v || yyjson_is_null(v) || yyjson_is_arr(v))) {
            put_packages(out, config, kind, f);
        } else if (v && !yyjson_is_null(v)) {
            buf_printf(out, "%s\"%s\":", out->len > 1 ? "," : "", *name);
            json_write(out, v);
        }
    }
    buf_putc(out, '}');
}

static void fault_of_job(void *ctx, const struct job_error *e)
{
    char path[TOOL_PATH_BYTES];
    snprintf(path, sizeof path, "code_config.%s", e->field);
    tool_fault(ctx, path, "%s", job_error_what(e));
}

// Arguments come as params, which only these take.
static void check_kind(yyjson_val *config, struct tool_faults *f)
{
    char shown[SHOWN_BYTES];
    yyjson_val *language = yyjson_obj_get(config, "language");
    yyjson_val *code = yyjson_obj_get(config, "code");
    if (!language || yyjson_is_null(language)) {
        tool_fault(f, "code_config.language", "is missing: python or javascript");
    } else if (kind_of(config) == ARRAY_LEN(kinds)) {
        tool_fault(f, "code_config.language", "%s is neither python nor javascript",
                   job_show(language, shown));
    }
    if (!code || yyjson_is_null(code)) {
        tool_fault(f, "code_config.code", "is missing");
    }
}

static int check_config(struct tool *t, yyjson_doc *doc, struct tool_faults *f)
{
    struct job job;
    unsigned before = f->n;
    check_kind(yyjson_doc_get_root(doc), f);
    if (f->n > before) { // the parser of jobs would say the same in other words
        return 0;
    }
    int e = job_parse_saved(yyjson_doc_get_root(doc), &job, fault_of_job, f);
    if (e == 0 && job.limits.source[LIMIT_TIMEOUT] != LIMIT_FROM_DEFAULT) {
        t->timeout_ms = job.limits.value[LIMIT_TIMEOUT];
    }
    job_done(&job);
    return e == -EINVAL ? 0 : e;
}

int tool_parse_config(yyjson_val *v, struct tool *t, struct tool_faults *f)
{
    // A control character takes six bytes.
    AUTO_BUF struct buf text = BUF_INIT((size_t)JOB_MAX_JSON_BYTES);
    const char *known[ARRAY_LEN(tool_config_names) + 1] = {0};
    char shown[SHOWN_BYTES];
    struct json_error why;
    if (!v) {
        tool_fault(f, "code_config", "is missing");
        return 0;
    }
    if (!yyjson_is_obj(v)) {
        tool_fault(f, "code_config", "must be an object, not %s", job_show(v, shown));
        return 0;
    }
    memcpy(known, tool_config_names, sizeof tool_config_names);
    known[ARRAY_LEN(known) - 2] = "dependencies";
    tool_fault_unknown(f, "code_config", v, known);
    write_config(&text, v, f);
    if (text.error) {
        if (text.error == -EMSGSIZE) {
            tool_fault(f, "code_config", "above the maximum of %d bytes", JOB_MAX_JSON_BYTES);
        }
        return text.error == -EMSGSIZE ? 0 : text.error;
    }
    yyjson_doc *doc = json_parse_envelope(text.data, text.len, &why);
    if (!doc) {
        return -ENOMEM; // it was read before
    }
    int e = check_config(t, doc, f);
    yyjson_doc_free(doc);
    t->code_config_len = text.len;
    t->code_config = buf_take(&text);
    return e ? e : t->code_config ? 0 : -ENOMEM;
}
