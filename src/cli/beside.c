#include "cli/beside.h"

#include "cli/verb.h"

#include <limits.h>
#include <unistd.h>

int beside_execute(const struct cli_places *places, const char *verb, const char *program,
                   char **argv)
{
    char path[PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/%s", places->libexec_dir, program);
    execv(path, argv);
    return verb_complain(verb, "%.300s: %m; install isle as a whole", path);
}
