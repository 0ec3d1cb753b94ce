// install.h: which packages a job may ask for.
#ifndef ISLE_JOB_INSTALL_H
#define ISLE_JOB_INSTALL_H

#include "model/job.h"

#include <yyjson.h>

// Looks at the fields of a job's JSON that name packages. Until packages can be installed, each
// that asks for something is refused by name. 0, or -EINVAL with *ret_error.
int install_check(yyjson_val *job, struct job_error *ret_error);

#endif
