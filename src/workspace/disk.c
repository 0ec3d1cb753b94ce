#include "workspace/disk.h"

#include "base/clock.h"
#include "base/fd.h"
#include "workspace/stage.h"

#include <sys/statfs.h>

enum {
    STEP_ENTRIES = 64, // between two looks at the clock
    FLOOR_MB = 256,
    FLOOR_INODES = 10000,
    SPARED_BYTES = 16 << 20, // above the floor, of records
    SMALL_MB = 16,           // a job that holds less is not what fills the host
    SMALL_ENTRIES = 1000,
    // The longest between two walks while free space moves at all: another's deleting may hide this
    // job's writing.
    REWALK_MS = 1000,
};

uint64_t disk_floor(uint64_t total_bytes)
{
    uint64_t part = total_bytes / 20;
    uint64_t fixed = (uint64_t)FLOOR_MB << 20;
    return part < fixed ? part : fixed;
}

static uint64_t fall(uint64_t from, uint64_t to) { return from > to ? from - to : 0; }

struct space {
    uint64_t free, total;          // bytes
    uint64_t inodes, total_inodes; // free, and 0 in all where the file system has no such number
};

static bool inodes_at_floor(const struct space *s)
{
    uint64_t part = s->total_inodes / 20;
    return s->inodes < (part < FLOOR_INODES ? part : FLOOR_INODES);
}

static int look_at(int root, struct space *ret)
{
    struct statfs s;
    if (fstatfs(root, &s)) {
        return -errno;
    }
    uint64_t block = (uint64_t)(s.f_frsize ? s.f_frsize : s.f_bsize);
    *ret = (struct space){s.f_bfree * block, s.f_blocks * block, s.f_ffree, s.f_files};
    return 0;
}

int disk_left(int fd, uint64_t *ret_bytes)
{
    struct space now = {0};
    int e = look_at(fd, &now);
    if (!e) {
        *ret_bytes = inodes_at_floor(&now) ? 0 : fall(now.free, disk_floor(now.total));
    }
    return e;
}

int disk_spool(int fd, const void *data, size_t len)
{
    uint64_t left;
    return !disk_left(fd, &left) && left < len ? -ENOSPC : fd_write_all(fd, data, len);
}

bool disk_at_floor(int fd)
{
    uint64_t left;
    return !disk_left(fd, &left) && left == 0;
}

bool disk_takes_record(int fd, size_t bytes)
{
    uint64_t left;
    return disk_left(fd, &left) || left >= 2 * (uint64_t)bytes + SPARED_BYTES;
}

int disk_begin(struct disk *d, int root, uint64_t max_bytes, uint64_t max_entries)
{
    struct space now = {0};
    int e = look_at(root, &now);
    if (e) {
        return e;
    }
    *d = (struct disk){.root = root,
                       .max_bytes = max_bytes,
                       .max_entries = max_entries,
                       .may_bytes = max_bytes,
                       .may_entries = max_entries,
                       .first_free = now.free,
                       .walk_free = now.free,
                       .walk_free_inodes = now.inodes,
                       .walked_at_ns = clock_now_ns()};
    return 0;
}

void disk_end(struct disk *d) { walk_end(&d->walk); }

// The blocks of the folders that every workspace has are nobody's use.
static uint64_t own_bytes(const struct disk *d)
{
    uint64_t given = (uint64_t)(stage_n_folders + d->given_folders) * 4096;
    return d->walk.bytes > given ? d->walk.bytes - given : 0;
}

static uint64_t own_entries(const struct disk *d)
{
    return d->walk.entries > d->given_folders ? d->walk.entries - d->given_folders : 0;
}

static uint64_t less(uint64_t a, uint64_t b) { return a < b ? a : b; }
static uint64_t more(uint64_t a, uint64_t b) { return a > b ? a : b; }

static void take_figures(struct disk *d, const struct space *now)
{
    d->used_bytes = own_bytes(d);
    d->used_entries = own_entries(d);
    d->used_content = d->walk.content;
    d->walk_free = now->free;
    d->walk_free_inodes = now->inodes;
}

// What began above its limit and has less now may have no more than that again. By two walks: one
// may have missed what was moved.
static void hold_to(struct disk *d, const struct disk *before)
{
    uint64_t bytes = more(d->used_bytes, before->used_bytes);
    uint64_t entries = more(d->used_entries, before->used_entries);
    uint64_t content = more(d->used_content, before->used_content);
    d->may_bytes = more(less(d->may_bytes, bytes), d->max_bytes);
    d->may_entries = more(less(d->may_entries, entries), d->max_entries);
    d->may_content = less(d->may_content, content);
}

// Of what began above its limit only content counts: a file in many pieces takes some blocks more
// when it is written out, which may be after the begin, and nobody's doing.
static bool is_over(const struct disk *d, uint64_t bytes, uint64_t content)
{
    return bytes > d->may_bytes && (d->may_bytes == d->max_bytes || content > d->may_content);
}

static int judge(struct disk *d, const struct space *now)
{
    const struct disk before = {.used_bytes = d->used_bytes,
                                .used_entries = d->used_entries,
                                .used_content = d->used_content};
    take_figures(d, now);
    uint64_t used = d->used_bytes, content = d->used_content;
    if (d->walk.blind && fall(d->first_free, now->free) > used) {
        used = fall(d->first_free, now->free); // what hides from the count bears the doubt
        content = UINT64_MAX;
    }
    const int verdict = is_over(d, used, content)          ? DISK_OVER
                        : d->used_entries > d->may_entries ? DISK_FILES
                                                           : DISK_FINE;
    if (!d->walk.blind && !d->cut) {
        hold_to(d, &before);
    }
    return verdict;
}

static int walk_for(struct disk *d, uint64_t max_ns)
{
    struct walk *w = &d->walk;
    uint64_t began = clock_now_ns();
    int e;
    w->folder_max = d->folder_max;
    do {
        e = walk_step(w, STEP_ENTRIES);
    } while (e == 0 && !w->waits && clock_now_ns() - began < max_ns);
    return e;
}

static int walk_on(struct disk *d, const struct space *now, uint64_t max_ns)
{
    int e = walk_for(d, max_ns);
    // enough is enough, even in mid-walk: a tree may grow faster than it is walked
    d->cut =
        e == 0 && (is_over(d, own_bytes(d), d->walk.content) || own_entries(d) > d->may_entries);
    if (e == 0 && !d->cut) {
        return DISK_FINE;
    }
    uint64_t end = clock_now_ns();
    walk_end(&d->walk);
    d->walking = false;
    d->walked_at_ns = end;
    d->walk_pause_ns = (end - d->walk_began_ns) * 4; // walking takes a fifth of the time at most
    return judge(d, now);
}

static bool wants_walk(const struct disk *d, const struct space *now)
{
    uint64_t since = clock_now_ns() - d->walked_at_ns;
    if (since < d->walk_pause_ns) {
        return false;
    }
    uint64_t fell = fall(d->walk_free, now->free);
    uint64_t made = fall(d->walk_free_inodes, now->inodes);
    bool may_be_over =
        d->used_bytes + fell > d->may_bytes || d->used_entries + made > d->may_entries;
    bool moved = now->free != d->walk_free || now->inodes != d->walk_free_inodes;
    return may_be_over || (moved && since > REWALK_MS * NS_PER_MS);
}

// At the floor, whose fault is it? Deleted but open files are seen by nobody: a fall of free space
// since this job began that exceeds its limit counts against it only here.
static bool at_floor(const struct disk *d, const struct space *now)
{
    uint64_t fell = fall(d->first_free, now->free);
    if (inodes_at_floor(now) && d->used_entries > SMALL_ENTRIES) {
        return true;
    }
    return now->free < disk_floor(now->total) &&
           (fell > d->max_bytes || d->used_bytes > (uint64_t)SMALL_MB << 20);
}

// A piece of the walk under way, or of a new one.
static int walk_more(struct disk *d, const struct space *now, uint64_t max_ns)
{
    if (!d->walking) {
        int e = walk_begin(&d->walk, d->root);
        if (e) {
            return e;
        }
        d->walking = true;
        d->walk_began_ns = clock_now_ns();
    }
    return walk_on(d, now, max_ns);
}

int disk_look(struct disk *d, uint64_t max_ns)
{
    struct space now = {0};
    int e = look_at(d->root, &now);
    if (e) {
        return e;
    }
    if (at_floor(d, &now)) {
        return DISK_FLOOR;
    }
    if (!d->walking && !wants_walk(d, &now)) {
        return DISK_FINE;
    }
    e = walk_more(d, &now, max_ns);
    if (e > DISK_FINE && !d->suspected) { // at once: meanwhile it may write on
        d->suspected = true;
        e = walk_more(d, &now, max_ns);
    }
    d->suspected = d->suspected && (e > DISK_FINE || d->walking);
    return e;
}

int64_t disk_of_tmpfs(int fd)
{
    struct statfs s;
    return fstatfs(fd, &s) ? -1 : (int64_t)((s.f_blocks - s.f_bfree) * (uint64_t)s.f_bsize);
}

// A piece of a walk while nothing runs. 1: it is over, 0: there is more, or -errno.
static int still_walk(struct disk *d, uint64_t max_ns)
{
    if (!d->still) {
        walk_end(&d->walk);
        d->walking = false;
        int e = walk_begin(&d->walk, d->root);
        if (e) {
            return e;
        }
        d->still = true;
    }
    return walk_for(d, max_ns);
}

static void still_end(struct disk *d, int walked)
{
    d->cut = walked == 0;
    walk_end(&d->walk);
    d->still = false;
}

int disk_first(struct disk *d, uint64_t max_ns)
{
    struct space now = {0};
    int e = look_at(d->root, &now);
    e = e ? e : still_walk(d, max_ns);
    if (e != 1) {
        return e ? e : DISK_MORE;
    }
    still_end(d, e);
    take_figures(d, &now);
    d->walked_at_ns = clock_now_ns();
    d->may_bytes = more(d->max_bytes, d->used_bytes);
    d->may_entries = more(d->max_entries, d->used_entries);
    d->may_content = d->used_content;
    return DISK_FINE;
}

bool disk_began_above(const struct disk *d)
{
    return d->may_bytes > d->max_bytes || d->may_entries > d->max_entries;
}

int disk_settle(struct disk *d, uint64_t max_ns)
{
    struct space now = {0};
    int e = look_at(d->root, &now);
    e = e ? e : still_walk(d, max_ns);
    // bounded: past the limit on entries the verdict is clear
    if (e < 0 || (e == 0 && own_entries(d) <= d->may_entries)) {
        return e ? e : DISK_MORE;
    }
    still_end(d, e);
    now.free = d->first_free; // nothing is open any more: the doubt is gone
    return judge(d, &now);
}
