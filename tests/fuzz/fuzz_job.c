// A job as a tenant writes it: checked or refused with the field's name, never anything between.
#include "fuzz.h"
#include "model/job.h"

#include <string.h>

// Relative, normalised, below the workspace.
static void check_path(const char *path)
{
    MUST(path[0] != '/' && path[0] != '\0');
    for (const char *part = path; part; part = strchr(part, '/')) {
        part += *part == '/';
        size_t n = strcspn(part, "/");
        MUST(n > 0 && !(n == 2 && memcmp(part, "..", 2) == 0));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct job j;
    struct job_error why;
    if (job_parse((const char *)data, len, 3, &j, &why) == 0) {
        MUST(j.kind == JOB_COMMAND || j.code);
        for (size_t i = 0; i < j.n_files; i++) {
            check_path(j.files[i].target);
        }
        for (size_t i = 0; i < j.n_artifacts; i++) {
            check_path(j.artifacts[i].path);
        }
    }
    job_done(&j);
    return 0;
}
