#include "start/mode.h"

#include "base/fd.h"
#include "kernel/caps.h"
#include "plan/plan.h"
#include "start/groups.h"
#include "start/range.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

const char *const start_user_names[START_N_USERS] = {
    [START_ROOT] = "root", [START_RANGE] = "range", [START_SINGLE] = "single"};

static bool has_sys_admin(void) { return caps_effective() >> CAP_SYS_ADMIN & 1; }

int mode_find_program(int root, const char *prefix, const char *name, char ret[64])
{
    static const char *const folders[] = {"usr/bin", "bin", "usr/local/bin"};
    for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
        snprintf(ret, 64, "%s%s/%s", prefix, folders[i], name);
        if (fd_is_program(root, ret)) {
            return 0;
        }
    }
    return -ENOENT;
}

bool mode_has_power(int root, const char *path)
{
    char name[32];
    struct stat st;
    AUTO_CLOSE int fd = openat(root, path, O_PATH | O_CLOEXEC);
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    return fd >= 0 && !fstat(fd, &st) &&
           (st.st_mode & S_ISUID || getxattr(name, "security.capability", NULL, 0) > 0);
}

// The account's ranges, and whether they can be used. False: *ret says why.
static bool find_range(int root, struct start_mode *ret)
{
    struct range_of_account uids, gids;
    const struct passwd *entry = getpwuid(geteuid());
    char number[16];
    snprintf(number, sizeof number, "%u", geteuid());
    const char *name = entry ? entry->pw_name : number;
    bool found = range_of_account(root, "etc/subuid", name, geteuid(), &uids) &&
                 range_of_account(root, "etc/subgid", name, geteuid(), &gids);
    if (!found) {
        snprintf(ret->why, sizeof ret->why,
                 "%s has no %d subordinate ids in /etc/subuid and /etc/subgid (root: usermod "
                 "--add-subuids 200000-265535 --add-subgids 200000-265535 %s)",
                 name, RANGE_MIN_IDS, name);
        return false;
    }
    char user[64], group[64];
    if (mode_find_program(root, "", "newuidmap", user) ||
        mode_find_program(root, "", "newgidmap", group)) {
        snprintf(ret->why, sizeof ret->why,
                 "newuidmap and newgidmap are missing (package uidmap or shadow-utils)");
        return false;
    }
    if (!mode_has_power(root, user) || !mode_has_power(root, group)) {
        snprintf(
            ret->why, sizeof ret->why,
            "newuidmap or newgidmap is neither set-uid nor has a capability (an image may have "
            "lost them: chmod u+s /%s /%s)",
            user, group);
        return false;
    }
    if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1) {
        snprintf(ret->why, sizeof ret->why,
                 "newuidmap has no effect under no_new_privs, which the caller has set");
        return false;
    }
    uint32_t count = uids.count < gids.count ? uids.count : gids.count;
    ret->sub_uid = uids.first;
    ret->sub_gid = gids.first;
    ret->sub_count = count;
    return true;
}

void start_mode_find_user(int root, struct start_mode *ret)
{
    *ret = (struct start_mode){.user = START_SINGLE};
    if (geteuid() == 0) {
        // Never as an account: a namespace that maps root's own uid leaves it root's files to
        // write.
        ret->user = START_ROOT;
        if (!has_sys_admin()) {
            snprintf(ret->refused, sizeof ret->refused,
                     "root needs CAP_SYS_ADMIN to make sandboxes (in a container: --cap-add "
                     "SYS_ADMIN), or run isle as an ordinary user");
        }
    } else {
        ret->user = find_range(root, ret) ? START_RANGE : START_SINGLE;
    }
}

void start_mode_find(int root, struct start_mode *ret)
{
    static const char delegate[] =
        "systemd-run --user --scope -p Delegate=yes isle ... (cgroup v2), or root gives the "
        "account a folder of its own in each v1 hierarchy (docs/hosts.md has the commands)";
    struct groups groups;
    start_mode_find_user(root, ret);
    (ret->user == START_ROOT ? groups_detect : groups_detect_own)(root, &groups);
    uint32_t lacking = groups_lacking(&groups);
    int other, mounts;
    if (ret->user == START_ROOT && !ret->refused[0] && lacking && groups_any_read_only(root) &&
        !groups_open_writable(&other, &mounts)) { // as a start would
        groups_detect_writable(other, &groups);
        lacking = groups_lacking(&groups);
        close(other);
        close(mounts);
    }
    ret->downgrades = lacking | (ret->user == START_SINGLE ? PLAN_SINGLE_UID : 0U);
    if (ret->downgrades & ~(uint32_t)PLAN_SINGLE_UID) {
        snprintf(ret->groups, sizeof ret->groups, "%s",
                 ret->user == START_ROOT ? "mount the cgroup hierarchies for writing" : delegate);
    }
}

// ---- places -------------------------------------------------------------------------------------

// An absolute path of the environment, or NULL.
static const char *folder_of(const char *variable)
{
    const char *value = getenv(variable);
    return value && value[0] == '/' ? value : NULL;
}

// The account's folder of one kind: what `variable` says, or `below` its home.
static void find_own(const char *variable, const char *below, char to[START_PLACE_MAX])
{
    const char *own = folder_of(variable), *home = folder_of("HOME");
    const struct passwd *entry = own || home ? NULL : getpwuid(geteuid());
    if (own) {
        snprintf(to, START_PLACE_MAX, "%s/isle", own);
    } else {
        snprintf(to, START_PLACE_MAX, "%s/%s/isle",
                 home    ? home
                 : entry ? entry->pw_dir
                         : "/",
                 below);
    }
}

void start_places_find(struct start_places *ret)
{
    static const char system_root[] = "/var/lib/isle/runtime/current";
    *ret = (struct start_places){.data_dir = "/var/lib/isle/data",
                                 .run_dir = "/run/isle",
                                 .runtime_root = "",
                                 .config_file = "/etc/isle/isle.conf"};
    snprintf(ret->runtime_root, sizeof ret->runtime_root, "%s", system_root);
    if (geteuid() == 0) {
        return;
    }
    char data[START_PLACE_MAX], config[START_PLACE_MAX];
    find_own("XDG_CONFIG_HOME", ".config", config);
    snprintf(ret->config_file, sizeof ret->config_file, "%.990s/isle.conf", config);
    find_own("XDG_DATA_HOME", ".local/share", data);
    snprintf(ret->data_dir, sizeof ret->data_dir, "%.990s/data", data);
    const char *run = folder_of("XDG_RUNTIME_DIR");
    if (run) {
        snprintf(ret->run_dir, sizeof ret->run_dir, "%s/isle", run);
    } else { // checked when it is used: the account's own, writable by nobody else
        snprintf(ret->run_dir, sizeof ret->run_dir, "/tmp/isle-%u", geteuid());
    }
    char own[START_PLACE_MAX];
    snprintf(own, sizeof own, "%.990s/runtime/current", data);
    // with neither, the host's is the one to tell of: what nobody made in HOME explains nothing
    if (access(system_root, R_OK | X_OK) && !access(own, F_OK)) {
        memcpy(ret->runtime_root, own, sizeof own);
    }
}
