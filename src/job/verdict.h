// verdict.h: from what the kernel counted and the guest said to a reason, in one place.
#ifndef ISLE_JOB_VERDICT_H
#define ISLE_JOB_VERDICT_H

#include "job/guest.h"
#include "model/job.h"
#include "model/result.h"
#include "plan/plan.h"
#include "workspace/disk.h"

// The end of a sandbox. Sets exit code, signal, figures, value and, unless an earlier verdict
// stands (a time limit, a cancel), reason and error. Takes g's value and error over.
void verdict_end(struct result *r, const struct job *j, const struct plan_record *end,
                 struct guest *g);

// The part of it that tells of a sandbox that failed: end->error is not 0.
void verdict_launch(struct result *r, const struct job *j, const struct plan_record *end);

// Files that could not be staged (stage_files() said `error`, and `text`).
void verdict_staging(struct result *r, int error, const char *text);

// A package set that was refused (job/sets.h): install_failed, or internal without a launcher.
void verdict_set(struct result *r, const char *name, int error);

// A look at a folder workspace: disk_limit unless it was fine, or an earlier verdict stands.
void verdict_disk(struct result *r, const struct job *j, enum disk_verdict verdict,
                  const struct disk *d);

// "2.0s", "0.25s": how limits appear in messages. Returns text.
const char *verdict_seconds(int64_t ms, char *text, size_t size);

#endif
