// tree.c: what is done to the tree of a workspace: files are put there, and where it is a folder it
// is counted while the job runs and when it has ended, and removed with the job. A program makes a
// hundred thousand folders in a second or two, and counting or removing these takes longer; one
// file may have so many pieces that the disk needs seconds to give it back. So only few files are
// staged here, a first piece is counted, and few names without blocks are removed; what is more is
// done on a thread. Where there is none (`isle run`) nobody else waits for the loop.
#include "job/stages.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/tree.h"
#include "workspace/folder.h"
#include "workspace/path.h"

#include <fcntl.h>
#include <string.h>

enum {
    HERE_MS = 1,                   // of counting
    HERE_ENTRIES = 128,            // of a removal: about 2 ms
    HERE_FOLDER_BYTES = 256 << 10, // of one that is listed
    PIECE_MS = 20,                 // of counting on a thread, then others have their turn there
    PIECE_ENTRIES = 2000,
    PIECE_FILES = 16, // to be staged, with up to 63 folders each
    REMOVE_AGAIN_MS = 200,
};

bool tree_hand_over(struct pipeline *p, void (*run)(struct work *w), void (*done)(struct work *w))
{
    p->tree_work = (struct work){.run = run, .done = done, .ctx = p, .owner = p->place.owner};
    return p->place.pool && work_queue(p->place.pool, &p->tree_work) == 0;
}

// What has ended may begin the next.
static void go_on(struct pipeline *p)
{
    void (*then)(struct pipeline * p) = p->tree_then;
    p->tree_then = NULL;
    then(p);
}

// ---- filled

static void stage_piece(struct work *w)
{
    struct pipeline *p = w->ctx;
    p->tree_verdict =
        stage_some(p->workspace, &p->job, p->owner, &p->stage_rest, PIECE_FILES, &p->staging);
}

static void staged(struct work *w)
{
    struct pipeline *p = w->ctx;
    while (!p->tree_verdict && p->stage_rest.next < p->job.n_files && !p->unwanted) {
        if (p->much_to_stage && tree_hand_over(p, stage_piece, staged)) {
            return;
        }
        stage_piece(&p->tree_work);
    }
    go_on(p);
}

void tree_stage(struct pipeline *p, void (*then)(struct pipeline *p))
{
    p->tree_then = then;
    p->tree_work.ctx = p;
    p->tree_verdict = 0;
    p->stage_rest = (struct stage_rest){.left_bytes = p->plan.workspace_bytes};
    staged(&p->tree_work);
}

// ---- counted

static uint64_t longest_here(const struct pipeline *p)
{
    return p->place.pool ? HERE_FOLDER_BYTES : 0;
}

static void look(struct work *w)
{
    struct pipeline *p = w->ctx;
    p->disk.folder_max = 0;
    p->tree_verdict = disk_look(&p->disk, PIECE_MS * NS_PER_MS);
}

static void settle_begin(struct pipeline *p);

static void looked(struct work *w)
{
    struct pipeline *p = w->ctx;
    if (p->tree_then) { // the job has ended meanwhile
        settle_begin(p);
    } else {
        execute_disk_says(p, p->tree_verdict);
    }
}

void tree_look(struct pipeline *p)
{
    if (!p->disk.walking || !tree_hand_over(p, look, looked)) {
        p->disk.folder_max = longest_here(p);
        p->tree_verdict = disk_look(&p->disk, (p->place.pool ? HERE_MS : PIECE_MS) * NS_PER_MS);
        execute_disk_says(p, p->tree_verdict);
    }
}

static void count_piece(struct work *w)
{
    struct pipeline *p = w->ctx;
    p->disk.folder_max = 0;
    p->tree_verdict = disk_first(&p->disk, PIECE_MS * NS_PER_MS);
}

static void settle_piece(struct work *w)
{
    struct pipeline *p = w->ctx;
    p->disk.folder_max = 0;
    p->tree_verdict = disk_settle(&p->disk, PIECE_MS * NS_PER_MS);
}

static void go_on_counting(struct pipeline *p, void (*piece)(struct work *w),
                           void (*done)(struct work *w))
{
    while (p->tree_verdict == DISK_MORE) {
        if (tree_hand_over(p, piece, done)) {
            return;
        }
        piece(&p->tree_work);
    }
    go_on(p);
}

static void counted(struct work *w)
{
    struct pipeline *p = w->ctx;
    if (p->unwanted) {
        go_on(p);
    } else {
        go_on_counting(p, count_piece, counted);
    }
}

static void settled(struct work *w) { go_on_counting(w->ctx, settle_piece, settled); }

void tree_count(struct pipeline *p, void (*then)(struct pipeline *p))
{
    p->tree_then = then;
    p->tree_work.ctx = p;
    p->disk.folder_max = longest_here(p);
    p->tree_verdict = disk_first(&p->disk, HERE_MS * NS_PER_MS);
    counted(&p->tree_work);
}

static void settle_begin(struct pipeline *p)
{
    p->disk.folder_max = longest_here(p);
    p->tree_verdict = disk_settle(&p->disk, HERE_MS * NS_PER_MS);
    // Whatever has blocks may have to wait for the disk when it is removed.
    p->tree_is_small =
        p->tree_verdict == DISK_FINE && !p->disk.walk.blind && p->disk.used_bytes == 0;
    p->tree_work.ctx = p;
    settled(&p->tree_work);
}

void tree_settle(struct pipeline *p, void (*then)(struct pipeline *p))
{
    p->tree_then = then;
    if (!p->tree_work.queued) { // else a look is on a thread, and comes back
        settle_begin(p);
    }
}

// ---- removed

static void remove_some(struct pipeline *p, unsigned max_entries)
{
    if (tree_step(p->removal, max_entries)) {
        tree_drop(p);
        p->tree_verdict = folder_remove(p->config->workspace_root, p->plan.start.workspace);
    }
}

// Others will give back what there is none of, and the job is over only without its folder.
static bool may_wait_for(const struct pipeline *p, int error)
{
    return p->place.pool && error_is_shortage(error);
}

static void remove_piece(struct work *w) { remove_some(w->ctx, PIECE_ENTRIES); }

static void removed(struct work *w)
{
    struct pipeline *p = w->ctx;
    while (p->removal) {
        if (tree_hand_over(p, remove_piece, removed)) {
            return;
        }
        remove_piece(&p->tree_work);
    }
    if (may_wait_for(p, p->tree_verdict)) {
        loop_timer_set(p->loop, &p->remove_again, REMOVE_AGAIN_MS * NS_PER_MS);
        return;
    }
    if (p->tree_verdict) {
        result_fail(&p->result, REASON_INTERNAL, STAGE_COLLECTION,
                    "the workspace cannot be removed: %s", strerror(-p->tree_verdict));
    }
    go_on(p);
}

// 0 or -errno.
static int remove_begin(struct pipeline *p)
{
    AUTO_CLOSE int dir =
        path_open(p->config->workspace_root, p->plan.start.workspace, O_PATH | O_DIRECTORY, 0);
    AUTO_FREE struct tree_removal *r = malloc(sizeof *r);
    int e = dir < 0 ? dir : r ? tree_begin(r, dir) : -ENOMEM;
    if (!e) {
        p->removal = r;
        r = NULL;
    }
    return e;
}

void tree_remove(struct pipeline *p, void (*then)(struct pipeline *p))
{
    p->tree_then = then;
    p->tree_work.ctx = p;
    int e = remove_begin(p);
    if (may_wait_for(p, e)) {
        p->tree_verdict = e;
    } else if (e) { // the whole of it at once says why, or it is gone
        p->tree_verdict = folder_remove(p->config->workspace_root, p->plan.start.workspace);
    } else if (p->tree_is_small) {
        remove_some(p, HERE_ENTRIES);
    }
    removed(&p->tree_work);
}

static void remove_again(struct loop_timer *t)
{
    struct pipeline *p = t->ctx;
    tree_remove(p, p->tree_then);
}

void tree_init(struct pipeline *p) { p->remove_again = LOOP_TIMER_INIT(remove_again, p); }

void tree_drop(struct pipeline *p)
{
    if (p->removal) {
        tree_end(p->removal);
        free(p->removal);
        p->removal = NULL;
    }
}
