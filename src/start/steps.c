#include "start/steps.h"

#include "base/fd.h"
#include "kernel/sys.h"
#include "start/internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *const start_where_names[START_N_WHERE] = {
    [START_FRONT] = "front", [START_CHILD] = "child", [START_INNER] = "service"};

const struct start_step start_steps[] = {
    {"rights", START_FRONT, START_FOR_ALL, front_check,
     "As whom this start runs decides about all that follows; what cannot work is said before "
     "anything is made."},
    {"hierarchies", START_FRONT, START_FOR_ALL, front_find_groups,
     "Which control groups are of use must be known before leftovers are looked for in them."},
    {"instance", START_FRONT, START_FOR_ALL, instance_claim,
     "One locked number gives uid range, group and folder; what a dead owner left goes before any "
     "of it is used again."},
    {"folders", START_FRONT, START_FOR_ALL, instance_folders,
     "They get their inner owner while somebody still has the right to chown; an account's stay "
     "its own, which is inner root."},
    {"groups", START_FRONT, START_FOR_ALL, front_groups,
     "Limits of the whole instance stand before it has a process; the groups are delegated, their "
     "limits are not."},
    {"programs", START_FRONT, START_FOR_ALL, front_programs,
     "Opened by host root, so that no path of the host need be searchable inside."},
    {"child", START_FRONT, START_FOR_ALL, front_clone,
     "Born inside its group: to move it there later costs milliseconds."},
    {"session", START_CHILD, START_FOR_ALL, child_session,
     "A session of its own keeps the terminal's signals away; nothing the caller left open comes "
     "along."},
    {"mounts", START_CHILD, START_FOR_ROOT, child_mounts,
     "Only host root can mount a fully visible proc and one that hides others, and open the "
     "folders by path."},
    {"devices", START_CHILD, START_FOR_ROOT, child_devices,
     "Real nodes need mknod, which no user namespace grants."},
    {"network", START_CHILD, START_FOR_ROOT, child_network,
     "Only where jobs may have the host's network: its names and authorities, read with the rights "
     "that are about to go."},
    {"bubblewrap", START_CHILD, START_FOR_ROOT, child_bwrap,
     "Where it makes the sandboxes: its program and libraries, by whoever may open them by path."},
    {"user-namespace", START_CHILD, START_FOR_ROOT, child_user_namespace,
     "After the last act that needs host root; without a cgroup namespace, whose border would "
     "forbid to move jobs into their groups."},
    {"maps", START_FRONT, START_FOR_ROOT, front_maps,
     "Written from outside: a process inside may not map more than itself."},
    {"born-inside", START_CHILD, START_FOR_ACCOUNTS, child_born_inside,
     "An account can mount nothing before it is inside, so this child was born there; it waits for "
     "its maps."},
    {"subordinate-maps", START_FRONT, START_FOR_RANGE, front_maps_range,
     "Only newuidmap, which is root's, may map more than the account itself."},
    {"single-map", START_FRONT, START_FOR_SINGLE, front_maps_single,
     "The account itself is all it may map, and that only once it can change no groups."},
    {"no-groups", START_CHILD, START_FOR_MAPPED, child_no_groups,
     "The caller's groups open files of the host; who may map one id only may not drop them."},
    {"ids", START_CHILD, START_FOR_ALL, child_ids,
     "Once mapped: unprivileged ids, and a keyring that is not the caller's."},
    {"own-mounts", START_CHILD, START_FOR_ACCOUNTS, child_mounts,
     "The same mounts by an account, in the namespace that is its own; its proc is fully visible "
     "as the pid namespace is its own too."},
    {"own-shares", START_CHILD, START_FOR_ACCOUNTS, child_own_shares,
     "Jobs' watches count as the account's, whose own programs keep half of them; written in the "
     "proc that was just mounted, as a container's cannot be."},
    {"own-devices", START_CHILD, START_FOR_ACCOUNTS, child_devices,
     "The host's nodes, bound: to make some needs mknod."},
    {"own-network", START_CHILD, START_FOR_ACCOUNTS, child_network,
     "As step network, with what an account may read."},
    {"own-bubblewrap", START_CHILD, START_FOR_ACCOUNTS, child_bwrap,
     "As step bubblewrap, with what an account may open."},
    {"self-check", START_CHILD, START_FOR_ALL, child_check,
     "Nothing is started before it is proven that host root is gone."},
    {"launcher", START_CHILD, START_FOR_ALL, child_launcher,
     "Forked now, so that it prepares itself while this process executes itself again; its own "
     "execution takes it into the namespace as well."},
    {"re-exec", START_CHILD, START_FOR_ALL, child_reexec,
     "The memory of a process belongs to the namespace it was executed in; only a new image "
     "belongs to the inner one."},
    {"tree", START_INNER, START_FOR_ALL, inner_shed,
     "In a mount namespace of its own, so that the launcher's is not touched; the service keeps a "
     "proc that hides others, and five devices."},
    {"drop", START_INNER, START_FOR_MAPPED, inner_drop,
     "Another uid than the launcher's and three file capabilities: what a parser of strangers' "
     "bytes may hold at most."},
    {"drop-rights", START_INNER, START_FOR_SINGLE, inner_drop_rights,
     "There is no other uid to become: capabilities, debugging and new privileges go all the "
     "same."},
    {"filter", START_INNER, START_FOR_ALL, inner_filter,
     "Last of the locks, as it forbids the calls that made the others."},
    {"undo", START_INNER, START_FOR_ALL, inner_undo,
     "A drop that can be undone is none: tried, not believed."},
    {"ready", START_INNER, START_FOR_ALL, inner_ready,
     "Waited for last, as the launcher prepares itself meanwhile; it opens the workspace root in "
     "its "
     "own mount namespace, where alone a job's mount can be made of it."},
    {"serving", START_INNER, START_FOR_ALL, inner_serving,
     "The front hears of success or of the step that failed."},
    {"meanwhile", START_FRONT, START_FOR_ROOT, front_meanwhile,
     "Work that needs no service yet, while it starts; it may take its time now that the maps are "
     "written."},
    {"service", START_FRONT, START_FOR_ALL, front_serving,
     "Whatever failed in the other two processes is told here, before anything runs."},
};
const size_t start_n_steps = ARRAY_LEN(start_steps);

int start_fail(struct start *s, int error, const char *format, ...)
{
    char text[sizeof s->error->text];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    // what is too long for the record is cut: the beginning names the thing
    snprintf(s->error->text, sizeof s->error->text, "%.*s%s%s", error ? 200 : 255, text,
             error ? ": " : "", error ? strerror(-error) : "");
    return error ? error : -EINVAL;
}

int start_run_steps(struct start *s, enum start_where where)
{
    for (size_t i = 0; i < start_n_steps; i++) {
        // asked each time: the first step finds out whose start it is
        bool mine = start_steps[i].who & 1U << s->record.user;
        if (start_steps[i].where != where || !mine) {
            continue;
        }
        int e = start_steps[i].run(s);
        if (e) {
            if (!s->error->step[0]) { // else another process's, passed on
                snprintf(s->error->step, sizeof s->error->step, "%s", start_steps[i].name);
            }
            return e;
        }
    }
    return 0;
}

int start_place_fds(const int *fds, unsigned n, unsigned first)
{
    enum { ABOVE = 64, MAX = 16 };
    int high[MAX];
    if (n > MAX) {
        return -EINVAL;
    }
    // first out of the way: a place may hold a descriptor that another place is waiting for
    for (unsigned i = 0; i < n; i++) {
        high[i] = fds[i] < 0 ? -1 : fcntl(fds[i], F_DUPFD_CLOEXEC, ABOVE);
        if (fds[i] >= 0 && high[i] < 0) {
            return -errno;
        }
    }
    for (unsigned i = 0; i < n; i++) {
        int place = (int)(first + i);
        if (high[i] < 0) {
            close(place);
        } else if (dup2(high[i], place) < 0) {
            return -errno;
        }
    }
    return sys_close_from(first + n);
}
