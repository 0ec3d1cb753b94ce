#include "runtime/runtime.h"

#include "base/fd.h"

#include <stdio.h>
#include <string.h>

int64_t runtime_heap_mb(int64_t memory_mb)
{
    int64_t heap = memory_mb * 3 / 4 - 32; // the process itself, its code, young objects
    return heap < 16 ? 16 : heap;
}

// CPUs as a program may use them: those granted, rounded up.
static long whole_cpus(const struct job *j)
{
    return (long)((j->limits.value[LIMIT_CPUS] + 99) / 100);
}

// Arguments before what the job brings. "%python" stands for the interpreter that was chosen,
// "%heap" for the option with the job's figure.
static const struct start {
    enum runtime_fd3 fd3;
    const char *argv[8];
} starts[LANGUAGE_COUNT] = {
    [LANGUAGE_PYTHON] = {RUNTIME_FD3_FRAMES,
                         {"%python", "-s", "-S", "-u", "/usr/lib/isle/python.pyc"}},
    [LANGUAGE_JAVASCRIPT] = {RUNTIME_FD3_FRAMES,
                             {"/usr/bin/node", "%heap", "/usr/lib/isle/javascript.cjs"}},
    [LANGUAGE_BASH] = {RUNTIME_FD3_SCRIPT, {"/bin/bash", "/script.sh"}},
};

#define OWN_PATH "/usr/local/bin:/usr/bin:/bin"

static const char *const fixed_env[] = {
    ("PATH=" OWN_PATH), "HOME=/workspace", "TMPDIR=/tmp",
    // built into libc: nothing to load, where en_US.UTF-8 costs each process a file
    "LANG=C.UTF-8", "LC_ALL=C.UTF-8", "MATPLOTLIBRC=/usr/share/isle/matplotlib/matplotlibrc",
    "MPLCONFIGDIR=/tmp/matplotlib", // it makes the folder; else it litters the workspace
};

// With the host's network: its authorities, which lie there then (launcher/phase_one.c). OpenSSL,
// and with it Python, looks into a folder otherwise, Node into itself.
static const char *const host_network_env[] = {
    "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt",
    "NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt",
};

// "NAME=%ld" with the CPUs a job may use: libraries would start a thread per CPU of the host.
static const char *const cpu_env[] = {"PYTHON_CPU_COUNT",    "OPENBLAS_NUM_THREADS",
                                      "OMP_NUM_THREADS",     "MKL_NUM_THREADS",
                                      "NUMEXPR_NUM_THREADS", "NUMEXPR_MAX_THREADS"};

static size_t count(char *const *list)
{
    size_t n = 0;
    while (list && list[n]) {
        n++;
    }
    return n;
}

// Appends "NAME=VALUE" to text, which does not move, and returns it; NULL without room.
static const char *put(struct runtime_start *s, size_t *used, const char *name, const char *value)
{
    char *at = s->text + *used;
    int n = snprintf(at, RUNTIME_ENV_BYTES - *used, "%s=%s", name, value);
    if (n < 0 || (size_t)n >= RUNTIME_ENV_BYTES - *used) {
        return NULL;
    }
    *used += (size_t)n + 1;
    return at;
}

// What package sets bring, the first one first. A folder that a set lacks is looked for in vain.
// Nothing here reads the sets: the same job has the same environment everywhere.
static const struct {
    const char *name, *part, *other, *more; // "NAME=/packages/0PART:/packages/0OTHER:...:MORE"
    bool first_only;
} set_env[] = {
    {"PATH", "/bin", "/node_modules/.bin", OWN_PATH, false},
    {"VIRTUAL_ENV", "", NULL, NULL, true},
    {"PYTHONPATH", "/lib/python3.13/site-packages", NULL, NULL, false},
    {"NODE_PATH", "/node_modules", NULL, NULL, false},
};

static const char *put_sets(struct runtime_start *s, const struct job *j, size_t row, size_t *used)
{
    char value[1024];
    size_t n = set_env[row].first_only ? 1 : j->n_package_sets, len = 0;
    for (size_t i = 0; i < n; i++) {
        len += (size_t)snprintf(value + len, sizeof value - len, "%s/packages/%zu%s", i ? ":" : "",
                                i, set_env[row].part);
        if (set_env[row].other) {
            len += (size_t)snprintf(value + len, sizeof value - len, ":/packages/%zu%s", i,
                                    set_env[row].other);
        }
    }
    if (set_env[row].more) {
        snprintf(value + len, sizeof value - len, ":%s", set_env[row].more);
    }
    return put(s, used, set_env[row].name, value);
}

static int build_env(struct runtime_start *s, const struct job *j, const char *tz, size_t *used)
{
    size_t n = 0;
    for (size_t i = 0; i < ARRAY_LEN(fixed_env); i++) {
        s->own_env[n++] = fixed_env[i];
    }
    for (size_t i = 0; j->n_package_sets && i < ARRAY_LEN(set_env); i++) {
        s->own_env[i ? n++ : 0] = put_sets(s, j, i, used); // PATH is the first of fixed_env
    }
    char cpus[24];
    snprintf(cpus, sizeof cpus, "%ld", whole_cpus(j));
    for (size_t i = 0; i < ARRAY_LEN(cpu_env); i++) {
        s->own_env[n++] = put(s, used, cpu_env[i], cpus);
    }
    for (size_t i = 0; j->network == JOB_NETWORK_HOST && i < ARRAY_LEN(host_network_env); i++) {
        s->own_env[n++] = host_network_env[i];
    }
    s->own_env[n++] = put(s, used, "TZ", tz ? tz : "UTC");
    // what a program printed before it was ended is worth more than its speed; for snippets too,
    // whose spawned workers and children get no flags of ours
    s->own_env[n++] = "PYTHONUNBUFFERED=1";
    for (size_t i = 0; i < n; i++) {
        if (!s->own_env[i]) {
            return -E2BIG;
        }
    }
    // A name that the job gives replaces ours: a program may look at the first or at the last.
    for (size_t k = 0; j->env && j->env[k]; k++) {
        size_t name = (size_t)(strchrnul(j->env[k], '=') - j->env[k]) + 1;
        size_t i = 0;
        while (i < n && strncmp(s->own_env[i], j->env[k], name) != 0) {
            i++;
        }
        s->own_env[i] = j->env[k];
        n += i == n;
    }
    s->own_env[n] = NULL;
    s->env = s->own_env;
    return 0;
}

static int build_argv(struct runtime_start *s, const struct job *j, const char *python,
                      size_t *used)
{
    if (j->kind == JOB_COMMAND) {
        s->argv = (const char *const *)j->argv;
        s->fd3 = RUNTIME_FD3_NONE;
        return 0;
    }
    const struct start *row = &starts[j->language];
    for (size_t i = 0; i < ARRAY_LEN(row->argv) && row->argv[i]; i++) {
        s->own_argv[i] = row->argv[i];
        if (!strcmp(row->argv[i], "%python")) {
            s->own_argv[i] = python && *python ? python : RUNTIME_PYTHON;
        }
        if (!strcmp(row->argv[i], "%heap")) {
            char mb[24];
            snprintf(mb, sizeof mb, "%lld",
                     (long long)runtime_heap_mb(j->limits.value[LIMIT_MEMORY]));
            s->own_argv[i] = put(s, used, "--max-old-space-size", mb);
        }
        if (!s->own_argv[i]) {
            return -E2BIG;
        }
    }
    s->argv = s->own_argv;
    s->fd3 = row->fd3;
    return row->argv[0] ? 0 : -EINVAL;
}

int runtime_begin(struct runtime_start *s, const struct job *j, const char *tz, const char *python)
{
    *s = (struct runtime_start){0};
    s->own_env = calloc(RUNTIME_MAX_ENV + count(j->env) + 1, sizeof *s->own_env);
    s->text = malloc(RUNTIME_ENV_BYTES);
    size_t used = 0;
    int e = s->own_env && s->text ? build_env(s, j, tz, &used) : -ENOMEM;
    if (!e) {
        e = build_argv(s, j, python, &used);
    }
    if (e) {
        runtime_done(s);
    }
    return e;
}

void runtime_done(struct runtime_start *s)
{
    free(s->own_env);
    free(s->text);
    s->own_env = NULL;
    s->text = NULL;
}
