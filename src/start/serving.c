// DATA/serve at the start of a service: locked, and given to the ids of this start.
#include "start/folders.h"
#include "start/internal.h"
#include "start/kept.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// From here on DATA/serve is this start's alone. Before any number is claimed: a second service
// touches nothing.
int serving_open(struct start *s)
{
    const char *data = s->config->data_dir;
    s->folder = kept_open(s->data_dir);
    int e = s->folder < 0 ? s->folder : kept_lock(s->folder);
    if (e == -EWOULDBLOCK) {
        return start_fail(s, 0,
                          "a service runs with the data folder %s already (stop it, or name "
                          "another folder by --data)",
                          data);
    }
    s->host.kept = e ? -1 : s->folder;
    return e ? start_fail(s, e, "workspace root %s: its folder " FOLDERS_SERVE, data) : 0;
}

struct given {
    int folder;
    struct kept_ids from, to;
};

static int give_inside(void *ctx)
{
    const struct given *g = ctx;
    return kept_give(g->folder, &g->from, &g->to);
}

// An account gives as root of a namespace that has all of its subordinate ids, where each has
// another number. False: it has lost some of them.
static bool seen_inside(const struct start_mode *m, struct kept_ids *ids)
{
    if (ids->uid_base + 1 < m->sub_uid || ids->gid_base + 1 < m->sub_gid ||
        ids->uid_base - (m->sub_uid - 1) + ids->count > m->sub_count + 1 ||
        ids->gid_base - (m->sub_gid - 1) + ids->count > m->sub_count + 1) {
        return false;
    }
    ids->uid_base -= m->sub_uid - 1;
    ids->gid_base -= m->sub_gid - 1;
    return true;
}

static int give(struct start *s, const struct kept_ids *from, const struct kept_ids *to)
{
    const struct start_mode *m = &s->host.mode;
    struct given g = {s->folder, *from, *to};
    if ((from->uid_base == to->uid_base && from->gid_base == to->gid_base) || from->count == 1) {
        return 0;
    }
    if (m->user == START_ROOT) {
        return kept_give(s->folder, from, to);
    }
    return seen_inside(m, &g.from) && seen_inside(m, &g.to) ? maps_run_inside(m, give_inside, &g)
                                                            : -EIDRM;
}

static int give_kept(struct start *s)
{
    const struct kept_ids own = {s->instance, s->uid_base, s->gid_base, s->uid_count};
    const struct folders_owner owner = instance_owner(&s->host, s->uid_base);
    struct kept_record record, alone = {.ids = {own}, .n = 1};
    struct stat st;
    int e = kept_read(s->folder, &record);
    if (e || fstat(s->folder, &st)) {
        return e ? e : -errno;
    }
    if (!record.n && st.st_uid != geteuid() && st.st_uid != owner.uid) {
        return -EEXIST;
    }
    bool same = record.n == 1 && !memcmp(&record.ids[0], &own, sizeof own);
    if (!same && record.n) {
        if (record.n == KEPT_MAX) {
            return -ELOOP;
        }
        record.ids[record.n++] = own;
        e = kept_write(s->folder, &record);
        for (size_t i = 0; !e && i < record.n - 1; i++) {
            e = give(s, &record.ids[i], &own);
        }
    }
    e = e || same ? e : kept_write(s->folder, &alone);
    if (!e && (st.st_uid != owner.uid || st.st_gid != owner.gid)) {
        e = fchown(s->folder, owner.uid, owner.gid) ? -errno : 0;
    }
    return e ? e : instance_empty_folder(&s->host, s->data_dir, FOLDERS_SERVE, s->uid_base);
}

int serving_take(struct start *s)
{
    const char *data = s->config->data_dir;
    int e = give_kept(s);
    switch (e) {
    case 0:
        return 0;
    case -EBADMSG:
    case -EEXIST:
        return start_fail(s, 0,
                          "%s/" FOLDERS_SERVE " is not a service's folder, or its file instance "
                          "was changed",
                          data);
    case -EIDRM:
        return start_fail(s, 0,
                          "%s/" FOLDERS_SERVE " holds files of subordinate ids that this account "
                          "no longer has (/etc/subuid, /etc/subgid)",
                          data);
    default:
        return start_fail(s, e, "%s/" FOLDERS_SERVE ": what is kept cannot be taken over", data);
    }
}
