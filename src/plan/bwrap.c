#include "plan/bwrap.h"

#include "plan/plan.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const bwrap_command_line[] = {"bwrap",       "--args", "6", "--",
                                          BWRAP_COMMAND, "inside", NULL};
_Static_assert(BWRAP_FD_ARGS == 6 && BWRAP_FD_FILTER == 7 && BWRAP_FD_PROGRAM == 4, "words below");

#define FROM_RUNTIME "of the runtime root, not of the host"
#define TRY_RUNTIME FROM_RUNTIME ", which need not have one"
#define NETWORK "/jail/tmp/net/" // as launcher/template.c makes it
#define HOSTS "a copy of the host's, as the job has its network"
#define COVERS "%covers" // a row that stands for several
#define SETS "%sets"

const struct bwrap_row bwrap_rows[] = {
    {{"--unshare-user"}, "", NULL, 0},
    {{"--unshare-pid"}, "", NULL, 0},
    {{"--unshare-ipc"}, "", NULL, 0},
    {{"--unshare-uts"}, "", NULL, 0},
    {{"--unshare-net"}, "", "no network but a loopback of the job's own", 0, BWRAP_WITHOUT_NETWORK},
    {{"--unshare-cgroup"}, "", "the job's own group is all it can see of the groups", 0},
    {{"--disable-userns"},
     "",
     "a nested user namespace would open mounts and packet filters of the kernel to the job",
     BWRAP_VERSION(0, 8, 0)},
    {{"--die-with-parent"}, "", NULL, 0},
    {{"--new-session"}, "", "no terminal of the caller's to type into", 0},
    {{"--as-pid-1"}, "", "isle's own first process looks around, reaps and reports", 0},
    {{"--cap-drop", "ALL"}, "", "also where Bubblewrap would leave some", 0},
    {{"--clearenv"}, "", "the environment of the job comes by a descriptor, later", 0},
    {{"--uid", "1000"}, "", "the job's user, whoever it is outside", 0},
    {{"--gid", "1000"}, "", "likewise", 0},
    {{"--hostname", "%h"}, "", NULL, 0},
    {{"--seccomp", "7"}, "", "isle's policy of system calls; its second stage follows", 0},
    {{"--ro-bind", "/jail/usr", "/usr"}, "--ro-bind /usr /usr", FROM_RUNTIME, 0},
    {{"--ro-bind", "/jail/usr/bin", "/bin"}, "--ro-bind /bin /bin", FROM_RUNTIME, 0},
    {{"--ro-bind-try", "/jail/usr/sbin", "/sbin"}, "--ro-bind /sbin /sbin", TRY_RUNTIME, 0},
    {{"--ro-bind", "/jail/usr/lib", "/lib"}, "--ro-bind /lib /lib", FROM_RUNTIME, 0},
    {{"--ro-bind-try", "/jail/usr/lib64", "/lib64"}, "--ro-bind /lib64 /lib64", TRY_RUNTIME, 0},
    {{"--ro-bind", "/jail/etc", "/etc"},
     "--ro-bind /etc /etc",
     "made up: no account, key or setting of the host",
     0},
    {{"--ro-bind-try", NETWORK "resolv.conf", "/etc/resolv.conf"},
     "",
     HOSTS,
     0,
     BWRAP_WITH_NETWORK},
    {{"--ro-bind-try", NETWORK "hosts", "/etc/hosts"}, "", HOSTS, 0, BWRAP_WITH_NETWORK},
    {{"--ro-bind-try", NETWORK "ca", "/etc/ssl/certs/ca-certificates.crt"},
     "",
     HOSTS,
     0,
     BWRAP_WITH_NETWORK},
    {{"--proc", "/proc"}, "--dir /proc", "programs need one; it shows the job's processes only", 0},
    {{COVERS}, "", "facts about the host and its kernel that no job needs", 0},
    {{"--remount-ro", "/proc"}, "", "as the native launcher's", 0},
    {{"--dev-bind", "/jail/dev", "/dev"},
     "--dev /dev",
     "null, zero, full, random, urandom; no terminals",
     0},
    {{"--bind", "/job/shm", "/dev/shm"}, "", "with a bound on bytes and files", 0},
    {{"--bind", "/job/tmp", "/tmp"},
     "--bind JOB/tmp /tmp",
     "a tmpfs with a bound on bytes and files, or a session's folder",
     0},
    {{"--dir", "/packages"}, "", "where package sets are mounted", 0},
    {{SETS}, "", "package sets of the job", 0},
    {{"--symlink", "/dev/shm/code", "/code"}, "", "the folder of a snippet's file", 0},
    {{"--symlink", "/proc/self/fd/3", "/script.sh"}, "", "a shell script's file", 0},
    {{"--bind", "/job/workspace", "/workspace"},
     "--bind JOB /workspace",
     "the launcher's own mount of it; last, so that no target can lie in a tenant's tree",
     0},
    {{"--remount-ro", "/"}, "", "the root has no bound on what is written to it", 0},
    {{"--chdir", "/workspace"}, "", NULL, 0},
};
const size_t bwrap_n_rows = sizeof bwrap_rows / sizeof *bwrap_rows;

struct words {
    char *data;
    size_t len, size;
    int error;
};

static void add(struct words *w, const char *word)
{
    size_t n = strlen(word) + 1;
    if (n > w->size - w->len) {
        w->error = -E2BIG;
        return;
    }
    memcpy(w->data + w->len, word, n);
    w->len += n;
}

static void add_covers(struct words *w, const struct bwrap_cover *covers)
{
    char path[96];
    for (; covers && covers->path; covers++) {
        add(w, "--ro-bind");
        snprintf(path, sizeof path, "/jail/%s", covers->cover);
        add(w, path);
        snprintf(path, sizeof path, "/proc/%s", covers->path);
        add(w, path);
    }
}

// The folders are there in any case, as they are natively.
static void add_sets(struct words *w, uint32_t n_sets)
{
    char from[32], to[32];
    for (unsigned i = 0; i < PLAN_SETS_PER_JOB; i++) {
        snprintf(from, sizeof from, "/job/packages/%u", i);
        snprintf(to, sizeof to, "/packages/%u", i);
        if (i < n_sets) {
            add(w, "--ro-bind");
            add(w, from);
        } else {
            add(w, "--dir");
        }
        add(w, to);
    }
}

int bwrap_arguments(const struct bwrap_input *in, char *ret, size_t size)
{
    struct words w = {.data = ret, .size = size};
    for (size_t i = 0; i < bwrap_n_rows; i++) {
        const struct bwrap_row *row = &bwrap_rows[i];
        bool left_out =
            row->when == (in->host_network ? BWRAP_WITHOUT_NETWORK : BWRAP_WITH_NETWORK);
        if (left_out || (in->version && in->version < row->since)) {
            continue;
        }
        if (!strcmp(row->words[0], COVERS)) {
            add_covers(&w, in->covers);
            continue;
        }
        if (!strcmp(row->words[0], SETS)) {
            add_sets(&w, in->n_sets);
            continue;
        }
        for (size_t k = 0; k < 4 && row->words[k]; k++) {
            add(&w, strcmp(row->words[k], "%h") ? row->words[k] : in->hostname);
        }
    }
    return w.error ? w.error : (int)w.len;
}

uint32_t bwrap_version_read(const char *text)
{
    unsigned part[3] = {0};
    if (sscanf(text, "bubblewrap %3u.%3u.%3u", &part[0], &part[1], &part[2]) < 2 || part[0] > 255 ||
        part[1] > 255 || part[2] > 255) {
        return 0;
    }
    return BWRAP_VERSION(part[0], part[1], part[2]);
}

const char *bwrap_translate(const char *line)
{
    static const struct {
        const char *part, *meaning;
    } rows[] = {
        {"No permissions to create", // "a new namespace", "new namespace"
         "this host refuses user namespaces to ordinary users (sysctl "
         "kernel.unprivileged_userns_clone=1, kernel.apparmor_restrict_unprivileged_userns=0, or "
         "an AppArmor profile for bwrap; isle doctor tells which)"},
        {"Creating new namespace failed",
         "this host refuses user namespaces (sysctl user.max_user_namespaces, or a container's "
         "seccomp profile; isle doctor tells which)"},
        {"setting up uid map", "this host lets nobody map user ids (a container's or a security "
                               "module's rule)"},
        {"Unexpected capabilities but not setuid", "it was started with capabilities"},
        {"Unknown option", "it is too old"},
        {"Can't mount proc", "no fully visible /proc: a container covers parts of it"},
        {"pivot_root", "a container's seccomp profile refuses what Bubblewrap cannot do without "
                       "(isle's own launcher can: --launcher native)"},
        {"loopback", "it could not bring the loopback interface up"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strstr(line, rows[i].part)) {
            return rows[i].meaning;
        }
    }
    return NULL;
}
