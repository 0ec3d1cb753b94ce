// prepare.c: a workspace with the job's files in it. A one-shot one is made and goes with the job;
// a session's is there, and stays.
#include "job/stages.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "job/verdict.h"
#include "workspace/folder.h"
#include "workspace/path.h"
#include "workspace/stage.h"
#include "workspace/uids.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

enum {
    STAGE_HERE_INODES = 64, // what there is to stage beyond is staged on a thread: about 2 ms
    STAGE_HERE_BYTES = 1 << 20,
};
enum { SESSION_FOLDERS = 2 }; // its workspace and its /tmp, in the folder that is counted

static const char cannot_make[] = "the workspace cannot be made",
                  cannot_measure[] = "the workspace cannot be measured",
                  disk_is_full[] = "no room for it on the disk of the workspaces";

// What is short, if that is why it failed: a PIPELINE_NO_*, or 0.
static enum pipeline_lack lack_of(int error)
{
    return error == -ENOSPC || error == -EDQUOT ? PIPELINE_NO_DISK
           : error_is_shortage(error)           ? PIPELINE_NO_MEMORY
                                                : 0;
}

static void cannot(struct pipeline *p, const char *what, int error)
{
    enum pipeline_lack lack = lack_of(error);
    if (lack) {
        pipeline_lacks(p, lack, lack == PIPELINE_NO_DISK ? disk_is_full : what, error);
    } else {
        pipeline_give_up(p, REASON_INTERNAL, what, error);
    }
}

// The folder's disk is short, not what the job may take of it.
static bool host_is_full(const struct pipeline *p, const struct stage_error *error)
{
    return error->no_room && p->plan.start.workspace_kind == PLAN_WORKSPACE_FOLDER;
}

// A session's files are left alone until there is room for all that replaces them: who waits for
// it, perhaps in vain, has changed nothing.
static bool session_has_room(const struct pipeline *p)
{
    uint64_t left;
    return !p->place.workspace || p->staged_bytes == 0 || disk_left(p->measured, &left) ||
           left >= p->staged_bytes;
}

// The accounting of a folder. A session's counts from what is there already, its /tmp included.
static int begin_counting(struct pipeline *p)
{
    bool session = p->place.workspace != NULL;
    int e = disk_begin(&p->disk, session ? p->measured : p->workspace, p->plan.workspace_bytes,
                       p->plan.workspace_inodes);
    if (!e && session) {
        p->disk.given_folders = SESSION_FOLDERS;
        p->disk.used_bytes = p->place.bytes > 0 ? (uint64_t)p->place.bytes : 0;
    }
    return e;
}

// Has the session more than this job may fill it to? The record of its entries is somewhat older
// than that of its bytes.
static bool may_be_above(const struct pipeline *p)
{
    return p->place.bytes < 0 || p->place.entries < 0 ||
           (uint64_t)p->place.bytes > p->plan.workspace_bytes ||
           (uint64_t)p->place.entries > p->plan.workspace_inodes / 2;
}

static void staged(struct pipeline *p)
{
    int e = p->tree_verdict;
    if (e && host_is_full(p, &p->staging)) {
        pipeline_lacks(p, PIPELINE_NO_DISK, disk_is_full, e);
        return;
    }
    if (e && p->sink->lacking && lack_of(e) == PIPELINE_NO_MEMORY) {
        cannot(p, cannot_make, e);
        return;
    }
    if (e) {
        verdict_staging(&p->result, e, p->staging.text);
    } else {
        p->result.prepare_completed_at = clock_wall_ms();
    }
    pipeline_next(p);
}

static void fill(struct pipeline *p)
{
    if (!session_has_room(p)) {
        pipeline_lacks(p, PIPELINE_NO_DISK, disk_is_full, -ENOSPC);
        return;
    }
    tree_stage(p, staged);
}

static void counted(struct pipeline *p)
{
    if (p->tree_verdict < 0) {
        cannot(p, cannot_measure, p->tree_verdict);
    } else if (p->result.reason != REASON_OK) { // cancelled meanwhile
        pipeline_next(p);
    } else {
        fill(p);
    }
}

static void stage(struct pipeline *p)
{
    bool folder = p->plan.start.workspace_kind == PLAN_WORKSPACE_FOLDER;
    int e = folder ? begin_counting(p) : 0;
    if (e) {
        cannot(p, cannot_measure, e);
        return;
    }
    e = p->was_ready || p->place.workspace ? 0 : stage_make_folders(p->workspace, p->owner);
    if (e) {
        cannot(p, cannot_make, e);
        return;
    }
    if (p->place.workspace && may_be_above(p)) {
        tree_count(p, counted);
    } else {
        fill(p);
    }
}

static void tmpfs_made(struct runner_call *c, const struct plan_record *rec, int fd)
{
    struct pipeline *p = c->ctx;
    p->has_tmpfs = fd >= 0 || (rec->error == EMFILE && rec->id); // then it is there all the same
    p->plan.start.workspace_no = rec->id;
    if (rec->error || fd < 0) {
        fd_close(fd);
        cannot(p, cannot_make, rec->error ? -rec->error : -EIO);
        return;
    }
    p->workspace = fd;
    if (p->result.reason != REASON_OK) { // cancelled while it was made
        pipeline_next(p);
        return;
    }
    stage(p);
}

static void make_tmpfs(struct pipeline *p)
{
    p->call = RUNNER_CALL_INIT(tmpfs_made, p);
    int e = runner_tmpfs(p->runner, p->uid, p->plan.workspace_bytes, p->plan.workspace_inodes,
                         &p->call);
    if (e) {
        cannot(p, cannot_make, e);
    }
}

// The instance's first may be there: made by its front, which had nothing to do at the start.
static void make_folder(struct pipeline *p)
{
    struct plan_request *q = &p->plan.start;
    const char *ready = p->config->ready_workspace;
    int root = p->config->workspace_root, e = 0;
    p->workspace = ready ? folder_open_ready(root, ready, p->owner) : -1;
    p->was_ready = p->workspace >= 0;
    snprintf(q->workspace, sizeof q->workspace, "%s%s", p->was_ready ? "" : "once/",
             p->was_ready ? ready : p->job.id);
    if (!p->was_ready) {
        e = folder_make(root, q->workspace, p->owner, &p->workspace);
    }
    p->has_folder = e == 0;
    if (e) {
        cannot(p, cannot_make, e);
    } else {
        stage(p);
    }
}

// The folder that the job begins in must be there: the launch would say so too, later and with the
// words of a failed launch.
static int check_cwd(struct pipeline *p)
{
    AUTO_FREE char *path = NULL;
    struct job_error error;
    if (job_path("cwd", p->job.cwd, strlen(p->job.cwd), &path, &error)) {
        return -EINVAL;
    }
    AUTO_CLOSE int fd = path_open(p->workspace, path, O_PATH | O_DIRECTORY, 0);
    return fd < 0 ? fd : 0;
}

static void open_session(struct pipeline *p)
{
    struct plan_request *q = &p->plan.start;
    snprintf(q->workspace, sizeof q->workspace, "%s", p->place.workspace);
    p->workspace = fcntl(p->place.fd, F_DUPFD_CLOEXEC, 0);
    p->measured =
        path_open(p->config->workspace_root, p->place.workspace, O_RDONLY | O_DIRECTORY, 0);
    if (p->workspace < 0 || p->measured < 0) {
        cannot(p, "the session's workspace cannot be opened",
               p->workspace < 0 ? -errno : p->measured);
        return;
    }
    int e = check_cwd(p);
    if (lack_of(e)) {
        cannot(p, "the session's workspace cannot be opened", e);
        return;
    }
    if (e) {
        result_fail(&p->result, REASON_ERROR, STAGE_PREPARATION, "cwd: %.200s: %s", p->job.cwd,
                    strerror(-e));
        pipeline_next(p);
        return;
    }
    stage(p);
}

static void take_place(struct pipeline *p)
{
    p->uid = p->place.workspace ? p->place.uid : uids_take(p->config->uids);
    p->plan.start.uid = p->uid;
    p->owner = p->config->downgrades & PLAN_SINGLE_UID ? PLAN_UID_LAUNCHER : p->uid;
    if (!p->uid) {
        pipeline_lacks(p, PIPELINE_NO_UID, "no uid is free", -EAGAIN);
    } else if (p->place.workspace) {
        open_session(p);
    } else if (p->plan.start.workspace_kind == PLAN_WORKSPACE_FOLDER) {
        make_folder(p);
    } else {
        make_tmpfs(p);
    }
}

void stage_prepare(struct pipeline *p)
{
    struct stage_need need;
    p->result.prepare_started_at = clock_wall_ms();
    pipeline_tell(p, STATUS_PREPARING);
    if (stage_measure(&p->job, &need, &p->staging)) {
        result_fail(&p->result, REASON_ERROR, STAGE_PREPARATION, "%s", p->staging.text);
        pipeline_next(p);
        return;
    }
    // What is replaced in a session may be a file of any size.
    p->much_to_stage =
        p->place.workspace || need.inodes > STAGE_HERE_INODES || need.bytes > STAGE_HERE_BYTES;
    struct lower_staged staged = {need.bytes, need.inodes - 1};
    p->staged_bytes = need.bytes;
    lower_job(&p->job, &p->config->host, &staged, &p->plan);
    if (p->place.workspace) {
        lower_into_session(&p->job, &p->plan);
    }
    take_place(p);
}

static void gone(struct pipeline *p)
{
    p->has_folder = false;
    if (!p->place.workspace) {
        uids_give(p->config->uids, p->uid);
    }
    p->uid = 0;
    p->undone(p);
}

void prepare_undo(struct pipeline *p, void (*then)(struct pipeline *p))
{
    p->undone = then;
    disk_end(&p->disk);
    p->workspace = fd_close(p->workspace);
    p->measured = fd_close(p->measured);
    if (p->has_tmpfs) {
        runner_tmpfs_drop(p->runner, p->plan.start.workspace_no);
        p->has_tmpfs = false;
    }
    if (p->has_folder && !p->lost) { // else the instance's folder goes as a whole, by the front
        tree_remove(p, gone);
    } else {
        gone(p);
    }
}
