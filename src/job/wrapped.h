// wrapped.h: what a person is told when Bubblewrap did not make the sandbox.
#ifndef ISLE_JOB_WRAPPED_H
#define ISLE_JOB_WRAPPED_H

#include "model/result.h"
#include "plan/plan.h"

// end: an END with an error at a step of Bubblewrap's own; said: what it wrote, or -1 (stays the
// caller's); bwrap: its path and version; NULL: another launcher's. Fails the result as
// isolation_unavailable; does nothing for any other record.
void wrapped_failed(struct result *r, const char *bwrap, const struct plan_record *end, int said);

#endif
