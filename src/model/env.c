#include "model/job.h"

#include <stddef.h>
#include <string.h>

// Names that make a loader, an interpreter or a shell run or load something else than it was told.
// A trailing '*' matches every name that begins so.
static const char *const refused[] = {
    "LD_*",
    "DYLD_*",
    "GLIBC_TUNABLES",
    "GCONV_PATH",
    "LOCPATH",
    "NLSPATH",
    "PYTHONSTARTUP",
    "PYTHONHOME",
    "PYTHONINSPECT",
    "PYTHONPATH",
    "PYTHONUSERBASE",
    "PYTHONEXECUTABLE",
    "PYTHONPLATLIBDIR",
    "PYTHONBREAKPOINT",
    "PYTHONPYCACHEPREFIX",
    "NODE_OPTIONS",
    "NODE_PATH",
    "NODE_REPL_EXTERNAL_MODULE",
    "NODE_V8_COVERAGE",
    "BASH_ENV",
    "ENV",
    "BASHOPTS",
    "SHELLOPTS",
    "PROMPT_COMMAND",
    "PS4",
    "BASH_FUNC_*",
    "BASH_LOADABLES_PATH",
    "RUBYOPT",
    "RUBYLIB",
    "PERL5LIB",
    "PERL5OPT",
    "PERLLIB",
    "PERL5DB",
    "OPENSSL_CONF",
    "OPENSSL_MODULES",
    "OPENSSL_ENGINES",
};

bool job_env_refused(const char *name)
{
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        const char *star = strchr(refused[i], '*');
        if (star ? strncmp(name, refused[i], (size_t)(star - refused[i])) == 0
                 : strcmp(name, refused[i]) == 0) {
            return true;
        }
    }
    return false;
}
