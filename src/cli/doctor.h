// doctor.h: the row of `isle doctor`.
#ifndef ISLE_CLI_DOCTOR_H
#define ISLE_CLI_DOCTOR_H

#include "cli/verb.h"

extern const struct verb verb_doctor;

#endif
