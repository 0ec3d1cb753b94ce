// One number is lock, uid range, group and folder of an instance. RUN/K.lock is never unlinked
// (else there could be two owners of K); it is held by service and launcher, so a free lock means
// that both are gone. Its text says what the owner has made and where:
//
//   isle 2 MARK UID_BASE NAME
//   DATA FOLDER (absolute, up to the end of the file)
//
// NAME is that of its folder of workspaces in the data folder: K, or "serve" (folders.h).
//
// The text is written before anything is made and emptied when all is removed: text below a free
// lock means leftovers, over whichever data folder, and costs one stat to see. Only the folder of
// workspaces stays, empty (folders.h).
#include "base/clock.h"
#include "base/fd.h"
#include "base/tree.h"
#include "kernel/sys.h"
#include "plan/plan.h"
#include "start/folders.h"
#include "start/internal.h"
#include "start/kept.h"
#include "start/range.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

struct lock_text {
    uint64_t mark;
    uint32_t uid_base;
    char name[FOLDERS_NAME_MAX];
    char data_dir[PATH_MAX];
};

enum {
    GROUPS_GONE_MS = 3000, // a killed process may hang in the kernel for a while
    HELD_MS = 20,          // between the first lock that an ending owner gives back and the last
    HELD_SERVE_MS = 1000,  // the same on a busy host: DATA/serve has no number that could be left
};

// ---- lock files ---------------------------------------------------------------------------------

static void lock_name(char name[24], uint32_t k) { snprintf(name, 24, "%u.lock", k); }

// For reading only: service and launcher hold this very description, and must not be able to write
// where host root looks for what to remove. A descriptor, -EWOULDBLOCK (it lives) or -errno.
static int lock_take(int run_dir, uint32_t k)
{
    char name[24];
    lock_name(name, k);
    AUTO_CLOSE int fd =
        openat(run_dir, name, O_RDONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY, 0600);
    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB)) {
        return -errno;
    }
    return fd_take(&fd);
}

// 0, -ENOENT when the text is empty or not ours, or -errno: then what it says is not known.
static int lock_read(int run_dir, uint32_t k, struct lock_text *ret)
{
    char name[24], text[PATH_MAX + 64];
    int at = 0;
    unsigned long long mark;
    lock_name(name, k);
    ssize_t n = fd_read_at(run_dir, name, text, sizeof text);
    if (n < 0) {
        return (int)n;
    }
    if (sscanf(text, "isle 2 %llu %u %15[0-9a-z]\n%n", &mark, &ret->uid_base, ret->name, &at) !=
            3 ||
        at == 0 || text[at] != '/' || strlen(text + at) >= sizeof ret->data_dir) {
        return -ENOENT;
    }
    ret->mark = mark;
    memcpy(ret->data_dir, text + at, strlen(text + at) + 1);
    return 0;
}

static int lock_write(int run_dir, uint32_t k, const struct lock_text *text)
{
    char name[24], line[PATH_MAX + 64];
    lock_name(name, k);
    AUTO_CLOSE int fd = openat(run_dir, name, O_WRONLY | O_TRUNC | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        return -errno;
    }
    if (!text) {
        return 0;
    }
    int n = snprintf(line, sizeof line, "isle 2 %llu %u %s\n%s", (unsigned long long)text->mark,
                     text->uid_base, text->name, text->data_dir);
    return fd_write_all(fd, line, (size_t)n);
}

// ---- ids ----------------------------------------------------------------------------------------

struct ids {
    uint32_t uid_base, gid_base, count; // inner 1 is uid_base + 1, and so on
};

// Those of number k. An account has room for few instances, so they share: their workspaces have
// other numbers (struct seat), and no process sees another instance's. 0, -EBUSY or -ERANGE.
static int ids_of(const struct start_host *h, uint32_t k, struct ids *ret)
{
    const struct start_mode *m = &h->mode;
    if (m->user == START_ROOT) {
        int e = range_of_instance(h->groups.root, k, &ret->uid_base, &ret->count);
        ret->gid_base = ret->uid_base;
        return e;
    }
    *ret = (struct ids){geteuid(), getegid(), 1};
    if (m->user == START_RANGE) {
        uint32_t each = m->sub_count < PLAN_UID_COUNT - 1 ? m->sub_count : PLAN_UID_COUNT - 1;
        uint32_t offset = k % (m->sub_count / each) * each;
        *ret = (struct ids){m->sub_uid + offset - 1, m->sub_gid + offset - 1, each + 1};
    }
    return k < RANGE_MAX_INSTANCES ? 0 : -ERANGE;
}

// ---- leftovers ----------------------------------------------------------------------------------

static int clean_groups(const struct start_host *h, uint32_t k, uint32_t uid_base)
{
    struct groups_made claim;
    int e;
    // An owner that is just ending gives its locks back one by one; one that goes on living keeps
    // its lock files in another folder than ours: it has removed what was there before it, and
    // nothing of it may be killed. So what is killed is claimed first.
    for (unsigned ms = 0; (e = groups_take(&h->groups, k, &claim)) == -EBUSY; ms++) {
        if (ms == HELD_MS) {
            return 0;
        }
        clock_pause_ns(NS_PER_MS);
    }
    if (e) {
        return e == -ENOENT ? 0 : e;
    }
    e = groups_clear(&h->groups, k);
    for (unsigned ms = 0; e && ms < GROUPS_GONE_MS; ms++) {
        groups_kill(&h->groups, k, uid_base, NULL, NULL);
        clock_pause_ns(NS_PER_MS);
        e = groups_clear(&h->groups, k);
    }
    groups_close(&claim);
    return e;
}

struct emptied {
    int data_dir;
    const char *name;
};

static int empty_inside(void *ctx)
{
    const struct emptied *e = ctx;
    return folders_empty(e->data_dir, e->name, (struct folders_owner){0, 0});
}

struct folders_owner instance_owner(const struct start_host *h, uint32_t uid_base)
{
    uint32_t service = uid_base + PLAN_UID_SERVICE;
    return h->mode.user == START_ROOT ? (struct folders_owner){service, service}
                                      : (struct folders_owner){geteuid(), getegid()};
}

// What jobs leave belongs to their uids: an account removes it as root of a namespace that has
// them.
int instance_empty_folder(const struct start_host *h, int data_dir, const char *name,
                          uint32_t uid_base)
{
    struct emptied inside = {data_dir, name};
    int e = folders_empty(data_dir, name, instance_owner(h, uid_base));
    bool may_be_theirs = e && e != -EEXIST && h->mode.user != START_ROOT;
    return may_be_theirs ? maps_run_inside(&h->mode, empty_inside, &inside) : e;
}

// -EBUSY: an owner lives, whose lock file is elsewhere or was taken away.
static int empty_folder(const struct start_host *h, int data_dir, const char *name,
                        uint32_t uid_base, unsigned patience_ms)
{
    // On a busy host a pause of a millisecond lasts many: some tries there are in any case, but
    // whoever waits here holds the lock of another number.
    const uint64_t end_ns = clock_now_ns() + (uint64_t)patience_ms * NS_PER_MS;
    AUTO_CLOSE int alone = folders_lock(data_dir, name, LOCK_EX);
    for (unsigned tries = 0; alone == -EWOULDBLOCK; tries++) {
        if (tries >= HELD_MS && clock_now_ns() >= end_ns) {
            return -EBUSY;
        }
        clock_pause_ns(NS_PER_MS);
        alone = folders_lock(data_dir, name, LOCK_EX);
    }
    return instance_empty_folder(h, data_dir, name, uid_base);
}

// Is it the one that this start has locked, and empties later?
static bool is_kept(const struct start_host *h, int data_dir)
{
    struct stat own, st;
    return h->kept >= 0 && !fstat(h->kept, &own) &&
           !fstatat(data_dir, FOLDERS_SERVE, &st, AT_SYMLINK_NOFOLLOW) && own.st_dev == st.st_dev &&
           own.st_ino == st.st_ino;
}

// Of number k, of which no process lives any more.
static int empty_left(const struct start_host *h, int data_dir, const struct lock_text *text)
{
    bool serve = !strcmp(text->name, FOLDERS_SERVE);
    if (serve && is_kept(h, data_dir)) {
        return 0;
    }
    int e = empty_folder(h, data_dir, text->name, text->uid_base, serve ? HELD_SERVE_MS : HELD_MS);
    // a service's folder that somebody lives in has another owner by now
    return e == -EEXIST || (serve && e == -EBUSY) ? 0 : e; // EEXIST: it had not come so far
}

// Lock held. Processes first, then what they could write in.
static int clean_instance(const struct start_host *h, int run_dir, uint32_t k)
{
    struct lock_text text;
    int e = lock_read(run_dir, k, &text);
    if (e) { // not known: then what is left keeps its claim
        return e == -ENOENT ? 0 : e;
    }
    e = clean_groups(h, k, text.uid_base);
    AUTO_CLOSE int data = open(text.data_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (!e && data >= 0) { // a data folder that is gone has nothing of ours
        e = empty_left(h, data, &text);
    }
    return e ? e : lock_write(run_dir, k, NULL);
}

// "12" of "12.lock" (suffix ".lock") or of "12" (suffix ""); UINT32_MAX for any other name.
static uint32_t number_of(const char *name, const char *suffix)
{
    char again[24];
    unsigned k;
    if (sscanf(name, "%u", &k) != 1 || k >= RANGE_MAX_INSTANCES) {
        return UINT32_MAX;
    }
    snprintf(again, sizeof again, "%u%s", k, suffix);
    return strcmp(name, again) ? UINT32_MAX : k;
}

static DIR *open_listing(int dir)
{
    int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d) {
        fd_close(fd);
    }
    return d;
}

// What others left. A failure is the business of the number's next owner, not of this start.
static void clean_others(struct start *s)
{
    DIR *d = open_listing(s->run_dir);
    for (struct dirent *entry; d && (entry = readdir(d));) {
        struct stat st;
        uint32_t k = number_of(entry->d_name, ".lock");
        if (k == UINT32_MAX || k == s->instance ||
            fstatat(s->run_dir, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) || st.st_size == 0) {
            continue;
        }
        AUTO_CLOSE int lock = lock_take(s->run_dir, k);
        if (lock >= 0) {
            clean_instance(&s->host, s->run_dir, k);
        }
    }
    if (d) {
        closedir(d);
    }
    // The lock files go at a reboot, folders do not.
    d = open_listing(s->data_dir);
    for (struct dirent *entry; d && (entry = readdir(d));) {
        struct ids ids;
        uint32_t k = number_of(entry->d_name, "");
        if (k == UINT32_MAX || k == s->instance ||
            !folders_may_be_used(s->data_dir, entry->d_name) || ids_of(&s->host, k, &ids)) {
            continue;
        }
        AUTO_CLOSE int lock = lock_take(s->run_dir, k);
        if (lock >= 0) {
            empty_folder(&s->host, s->data_dir, entry->d_name, ids.uid_base, HELD_MS);
        }
    }
    if (d) {
        closedir(d);
    }
}

// ---- claiming -----------------------------------------------------------------------------------

static int open_run_dir(struct start *s)
{
    const char *path = s->config->run_dir;
    struct stat st;
    if (mkdir(path, 0700) && errno != EEXIST) {
        return start_fail(s, -errno, "folder for lock files %s cannot be made", path);
    }
    // no link: an account's may lie in /tmp, where others make them
    s->run_dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int e = s->run_dir < 0 ? -errno : 0;
    // another owner's is closed to us, and is told of as such
    bool others = e == -EACCES && !lstat(path, &st) && st.st_uid != geteuid();
    if ((e && !others) || (!e && fstat(s->run_dir, &st))) {
        return start_fail(s, e ? e : -errno, "folder for lock files %s", path);
    }
    if (st.st_mode & S_ISVTX) { // to follow the advice below would break it for everybody
        return start_fail(s, 0,
                          "folder for lock files %s: must be writable by nobody else; this is a "
                          "folder for all, name another by SANDBOX_RUN_DIR",
                          path);
    }
    if (st.st_uid != geteuid() || (st.st_mode & 022)) {
        const char *whose = geteuid() ? "you" : "root";
        return start_fail(s, 0,
                          "folder for lock files %s: must belong to %s and be writable by nobody "
                          "else (chown %s %s; chmod go-w %s)",
                          path, whose, geteuid() ? "USER" : whose, path, path);
    }
    return 0;
}

// An account's with what is missing above it, as the XDG base directories are made.
static int make_folders(const char *path)
{
    char part[PATH_MAX];
    if (!mkdir(path, 0711) || errno == EEXIST) {
        return 0;
    }
    if (geteuid() == 0) {
        return -errno;
    }
    snprintf(part, sizeof part, "%s", path);
    for (char *slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(part, 0700) && errno != EEXIST) {
            return -errno;
        }
        *slash = '/';
    }
    return mkdir(path, 0711) && errno != EEXIST ? -errno : 0;
}

static int open_data_dir(struct start *s, char ret_path[PATH_MAX])
{
    const char *path = s->config->data_dir;
    int e = s->config->data_dir_must_exist ? 0 : make_folders(path);
    if (e) {
        return start_fail(s, e, "workspace root %s cannot be made (set SANDBOX_WORKSPACE_ROOT)",
                          path);
    }
    s->data_dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (s->data_dir < 0) {
        return start_fail(s, -errno, "workspace root %s (make it, or set SANDBOX_WORKSPACE_ROOT)",
                          path);
    }
    if (faccessat(s->data_dir, ".", W_OK | X_OK, AT_EACCESS)) {
        return start_fail(s, -errno, "workspace root %s is not writable", path);
    }
    if (!realpath(path, ret_path)) {
        return start_fail(s, -errno, "workspace root %s", path);
    }
    return 0;
}

// Lock of k held: may this start have the number? 1, 0 (try the next), -ERANGE: none above either.
static int try_number(struct start *s, uint32_t k)
{
    struct ids ids;
    int e = ids_of(&s->host, k, &ids);
    if (e) {
        return e == -ERANGE ? e : 0;
    }
    s->uid_base = ids.uid_base;
    s->gid_base = ids.gid_base;
    s->uid_count = ids.count;
    // Groups are removed whatever the lock file says: they show somebody alive whose lock file was
    // taken away (a cleaner of /run), or who uses another folder for locks.
    if (clean_instance(&s->host, s->run_dir, k) || groups_remove(&s->host.groups, k)) {
        return 0;
    }
    char name[FOLDERS_NAME_MAX];
    snprintf(name, sizeof name, "%u", k);
    return empty_folder(&s->host, s->data_dir, name, s->uid_base, HELD_MS) ? 0 : 1;
}

// Says whose it is before anything of it is made. 1, 0 (try the next) or -errno.
static int take_number(struct start *s, uint32_t k, struct lock_text *text)
{
    if (s->config->serves) {
        memcpy(s->folder_name, FOLDERS_SERVE, sizeof FOLDERS_SERVE);
    } else {
        snprintf(s->folder_name, sizeof s->folder_name, "%u", k);
    }
    text->uid_base = s->uid_base;
    memcpy(text->name, s->folder_name, sizeof text->name);
    int e = lock_write(s->run_dir, k, text);
    if (!e && groups_claim(&s->host.groups, k, &s->groups)) {
        // somebody was quicker whose lock files are in another folder
        return lock_write(s->run_dir, k, NULL);
    }
    return e ? e : 1;
}

// 1: it is this start's, -EWOULDBLOCK or 0: it is not to be had, or -errno.
static int claim_one(struct start *s, uint32_t k, struct lock_text *text)
{
    AUTO_CLOSE int lock = lock_take(s->run_dir, k);
    if (lock < 0) {
        return lock;
    }
    int ok = try_number(s, k);
    ok = ok == 1 ? take_number(s, k, text) : ok;
    if (ok == 1) {
        s->instance = k;
        s->mark = text->mark;
        *start_fd(s, INNER_LOCK) = fd_take(&lock);
    }
    return ok;
}

static int claim_number(struct start *s, struct lock_text *text)
{
    // what a service keeps need not change its owner when it has the number of last time
    struct kept_record last = {.n = 0};
    if (s->folder >= 0 && !kept_read(s->folder, &last) && last.n &&
        last.ids[0].instance < RANGE_MAX_INSTANCES &&
        claim_one(s, last.ids[0].instance, text) == 1) {
        return 0;
    }
    for (uint32_t k = 0; k < RANGE_MAX_INSTANCES; k++) {
        int ok = claim_one(s, k, text);
        if (ok == 1) {
            return 0;
        }
        if (ok == -ERANGE) {
            break;
        }
        if (ok < 0 && ok != -EWOULDBLOCK) {
            return start_fail(s, ok, "lock file %s/%u.lock", s->config->run_dir, k);
        }
    }
    return start_fail(
        s, 0,
        s->record.user == START_ROOT
            ? "no free range of %d user ids: every one that /proc/self/uid_map has is in use or "
              "touched by /etc/passwd, group, subuid or subgid"
            : "%d instances run already, or what they left cannot be removed",
        s->record.user == START_ROOT ? PLAN_UID_COUNT : RANGE_MAX_INSTANCES);
}

// ---- the steps ----------------------------------------------------------------------------------

int instance_claim(struct start *s)
{
    struct lock_text text = {.mark = clock_now_ns() << 16 | ((uint64_t)getpid() & 0xffff)};
    int e = open_run_dir(s);
    e = e ? e : open_data_dir(s, text.data_dir);
    e = e || !s->config->serves ? e : serving_open(s);
    e = e ? e : claim_number(s, &text);
    if (e) {
        return e;
    }
    clean_others(s);
    e = s->config->serves ? serving_take(s) : 0;
    s->record.marks_ns[START_T_CLAIMED] = clock_now_ns();
    return e;
}

int instance_folders(struct start *s)
{
    const char *data = s->config->data_dir, *name = s->folder_name;
    int e = folders_make(s->data_dir, name, instance_owner(&s->host, s->uid_base));
    if (e == -EEXIST) {
        return start_fail(s, e, "workspace root %s: %s in it is not a folder of this instance",
                          data, name);
    }
    // until the launcher, and with it the service, has its own lock
    if (!e && s->config->serves) {
        e = kept_share(s->folder);
    } else if (!e) {
        s->folder = folders_lock(s->data_dir, name, LOCK_SH);
        e = s->folder < 0 ? s->folder : 0;
    }
    return e ? start_fail(s, e, "workspace root %s: folder %s cannot be made or locked", data, name)
             : 0;
}

// ---- giving back --------------------------------------------------------------------------------

struct ownership {
    int run_dir;
    uint32_t k;
    uint64_t mark;
};

// Is the lock file's text still that of this start?
static bool is_still_ours(void *ctx)
{
    const struct ownership *o = ctx;
    struct lock_text text;
    return !lock_read(o->run_dir, o->k, &text) && text.mark == o->mark;
}

// A descriptor, -ESTALE when the number has another owner by now, -EBUSY when nothing helps.
static int wait_lock(struct ownership *o, const struct start_host *h, unsigned limit_ms)
{
    const unsigned dead_ms = limit_ms + GROUPS_GONE_MS;
    struct lock_text text;
    for (unsigned ms = 0; ms <= dead_ms; ms++) {
        int lock = lock_take(o->run_dir, o->k);
        if (lock != -EWOULDBLOCK) {
            return lock;
        }
        int e = lock_read(o->run_dir, o->k, &text);
        if (e && e != -ENOENT) {
            return e;
        }
        if (e || text.mark != o->mark) {
            return -ESTALE;
        }
        if (ms == limit_ms) { // the launcher hangs
            groups_kill(&h->groups, o->k, text.uid_base, is_still_ours, o);
        }
        clock_pause_ns(NS_PER_MS);
    }
    return -EBUSY;
}

int instance_release(const struct start_host *h, int run_dir, uint32_t instance, uint64_t mark,
                     unsigned limit_ms)
{
    struct ownership o = {run_dir, instance, mark};
    AUTO_CLOSE int lock = wait_lock(&o, h, limit_ms);
    if (lock == -ESTALE) {
        return 0;
    }
    if (lock < 0) {
        return lock;
    }
    // Read only now: in between another start may have cleaned, or been and gone.
    struct lock_text text;
    int e = lock_read(run_dir, instance, &text);
    if (e) {
        return e == -ENOENT ? 0 : e;
    }
    return text.mark == mark ? clean_instance(h, run_dir, instance) : 0;
}
