// border_plan.c: hostile plans. The launcher must refuse each, and live.
#include "border.h"

#include "base/fd.h"
#include "base/msg.h"
#include "plan/args.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

enum { PATIENCE_MS = 20000, MINE = PLAN_UID_WORKSPACE_0 + 40, OTHERS = PLAN_UID_WORKSPACE_0 + 41 };

static const char *const true_argv[] = {"/bin/true", NULL};

// The request must come back with an error.
static void refuse(struct border *b, const char *name, struct plan_request q, const int *fds, int n)
{
    struct plan_record r = {};
    int e = border_ask(b, &q, fds, n, PLAN_END, PATIENCE_MS, &r);
    border_check(b, name, !e && r.error > 0, "answer %d, error %d", e, r.error);
}

static void refuse_start(struct border *b, const char *name, struct plan_request q)
{
    int fds[PLAN_N_START_FDS];
    border_fds(fds, true_argv);
    refuse(b, name, q, fds, PLAN_N_START_FDS);
    border_fds_close(fds);
}

static void attack_operations(struct border *b)
{
    static const uint32_t ops[] = {0,        PLAN_READY,  PLAN_PARKED, PLAN_EXECUTED,
                                   PLAN_END, PLAN_OP_END, 999,         UINT32_MAX};
    char name[48];
    for (size_t i = 0; i < ARRAY_LEN(ops); i++) {
        snprintf(name, sizeof name, "op-%u", ops[i]);
        refuse(b, name, (struct plan_request){.op = ops[i]}, NULL, 0);
    }
    static const struct {
        const char *name;
        uint32_t op;
    } aimed[] = {{"signal", PLAN_SIGNAL},
                 {"kill", PLAN_KILL},
                 {"sample", PLAN_SAMPLE},
                 {"execution", PLAN_EXECUTION}};
    for (size_t i = 0; i < ARRAY_LEN(aimed); i++) {
        struct plan_request q = {.op = aimed[i].op, .id = 4242, .signal = 9};
        snprintf(name, sizeof name, "%s-nobody", aimed[i].name);
        refuse(b, name, q, NULL, 0);
        q.id = 0;
        snprintf(name, sizeof name, "%s-zero", aimed[i].name);
        refuse(b, name, q, NULL, 0);
    }
    struct plan_request q = border_good("once/mine", MINE);
    q.id = 4242;
    refuse_start(b, "start-nobody", q);
    refuse(b, "tmpfs-drop-none", (struct plan_request){.op = PLAN_TMPFS_DROP, .workspace_no = 7},
           NULL, 0);
    refuse(b, "tmpfs-drop-far",
           (struct plan_request){.op = PLAN_TMPFS_DROP, .workspace_no = UINT32_MAX}, NULL, 0);
    refuse(b, "set-drop-none", (struct plan_request){.op = PLAN_SET_DROP, .sets = {3}}, NULL, 0);
    refuse(b, "set-drop-far", (struct plan_request){.op = PLAN_SET_DROP, .sets = {UINT32_MAX}},
           NULL, 0);
}

// The host's network is what the seat allows, whatever the service says.
static void attack_networks(struct border *b)
{
    struct plan_request ahead = {.op = PLAN_PREPARE, .network = PLAN_NETWORK_HOST};
    struct plan_record r = {};
    refuse(b, "prepare-network-host", ahead, NULL, 0);
    ahead.network = PLAN_N_NETWORKS;
    refuse(b, "prepare-network-odd", ahead, NULL, 0);
    ahead.network = PLAN_NETWORK_NONE;
    int e = border_ask(b, &ahead, NULL, 0, PLAN_PARKED, PATIENCE_MS, &r);
    struct plan_request q = border_good("once/mine", MINE);
    q.id = e ? 4242 : r.id;
    q.network = PLAN_NETWORK_HOST; // in a sandbox that was born without
    refuse_start(b, "start-network-host", q);
}

// Nor are jobs without a sandbox the service's to decide: not new ones, not in one that is parked.
static void attack_isolation(struct border *b)
{
    struct plan_request ahead = {.op = PLAN_PREPARE, .plain = 1};
    struct plan_record r = {};
    refuse(b, "prepare-plain", ahead, NULL, 0);
    ahead.plain = 0;
    int e = border_ask(b, &ahead, NULL, 0, PLAN_PARKED, PATIENCE_MS, &r);
    struct plan_request q = border_good("once/mine", MINE);
    q.plain = 1;
    refuse_start(b, "start-plain", q);
    q.id = e ? 4242 : r.id;
    refuse_start(b, "start-plain-parked", q);
    q.id = 0;
    q.plain = 2;
    refuse_start(b, "start-plain-odd", q);
}

// A socket of the host's network, which a service that listens has, is no job's.
static void attack_listeners(struct border *b)
{
    static const struct {
        const char *name;
        enum plan_start_fd at;
    } places[] = {{"stdin", PLAN_FD_STDIN}, {"stdout", PLAN_FD_STDOUT}, {"frames", PLAN_FD_FRAMES}};
    char name[48];
    border_check(b, "has-a-listener", b->seat.n_passed == 1, "%u passed", b->seat.n_passed);
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        int fds[PLAN_N_START_FDS];
        border_fds(fds, true_argv);
        fd_close(fds[places[i].at]);
        fds[places[i].at] = fcntl(b->seat.passed[0], F_DUPFD_CLOEXEC, 3);
        snprintf(name, sizeof name, "start-listener-as-%s", places[i].name);
        refuse(b, name, border_good("once/mine", MINE), fds, PLAN_N_START_FDS);
        border_fds_close(fds);
    }
}

static void attack_sizes(struct border *b)
{
    char big[sizeof(struct plan_request) * 4] = "";
    struct plan_request q = {.op = PLAN_SAMPLE, .id = 1};
    memcpy(big, &q, sizeof q);
    static const size_t sizes[] = {1, 4, sizeof q - 1, sizeof q + 1, sizeof big};
    char name[48];
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        msg_send(b->seat.launcher, big, sizes[i], NULL, 0, 0);
        snprintf(name, sizeof name, "size-%s",
                 (const char *[]){"1", "4", "less-one", "plus-one", "four-fold"}[i]);
        border_check(b, name, border_alive(b), "no job runs afterwards");
    }
}

static void attack_uids(struct border *b)
{
    static const struct {
        const char *name;
        uint32_t uid;
    } uids[] = {{"launcher", PLAN_UID_LAUNCHER},
                {"service", PLAN_UID_SERVICE},
                {"zygote", PLAN_UID_ZYGOTE_0},
                {"job", PLAN_JOB_UID},
                {"slot", PLAN_UID_SLOT_0},
                {"below", PLAN_UID_WORKSPACE_0 - 1},
                {"end", PLAN_UID_WORKSPACE_END},
                {"max", UINT32_MAX},
                {"other", OTHERS}};
    char name[48];
    for (size_t i = 0; i < ARRAY_LEN(uids); i++) {
        snprintf(name, sizeof name, "uid-%s", uids[i].name);
        refuse_start(b, name, border_good("once/mine", uids[i].uid));
        if (uids[i].uid == OTHERS) {
            continue;
        }
        struct plan_request q = {
            .op = PLAN_TMPFS, .uid = uids[i].uid, .size_bytes = 4096, .size_inodes = 8};
        snprintf(name, sizeof name, "tmpfs-uid-%s", uids[i].name);
        refuse(b, name, q, NULL, 0);
    }
}

static void attack_names(struct border *b)
{
    static const struct {
        const char *name, *workspace;
    } names[] = {{"empty", ""},
                 {"dots", "once/.."},
                 {"up", "../once/mine"},
                 {"middle", "once/../once/mine"},
                 {"absolute", "/once/mine"},
                 {"one-part", "once"},
                 {"three-parts", "once/mine/w"},
                 {"double-slash", "once//mine"},
                 {"end-slash", "once/mine/"},
                 {"dot", "once/."},
                 {"dash", "once/-mine"},
                 {"upper", "once/MINE"},
                 {"space", "once/mi ne"},
                 {"newline", "once/mine\n"},
                 {"proc", "proc/self"},
                 {"absent", "once/absent"},
                 {"link", "once/link"},
                 {"inner-link", "once/inner"},
                 {"file", "once/file"},
                 {"foreign", "once/foreign"},
                 {"services", "once/services"}};
    char name[48];
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        snprintf(name, sizeof name, "name-%s", names[i].name);
        refuse_start(b, name, border_good(names[i].workspace, MINE));
    }
    struct plan_request q = border_good("once/mine", MINE);
    memset(q.workspace, 'a', sizeof q.workspace);
    memcpy(q.workspace, "once/", 5);
    refuse_start(b, "name-endless", q);
    q = border_good("once/mine", MINE);
    q.tmp_folder = 1; // there is no "t"
    refuse_start(b, "name-no-tmp", q);
}

static void attack_fields(struct border *b)
{
    struct plan_request good = border_good("once/mine", MINE), q;
#define FIELD(name, assignment)                                                                    \
    do {                                                                                           \
        q = good;                                                                                  \
        q.assignment;                                                                              \
        refuse_start(b, name, q);                                                                  \
    } while (0)
    FIELD("root-1", root = 1);
    FIELD("root-max", root = UINT32_MAX);
    FIELD("filter-none", filter = PLAN_N_FILTERS);
    FIELD("filter-max", filter = UINT32_MAX);
    FIELD("filter-of-tmpfs", filter = PLAN_FILTER_TMPFS);
    FIELD("network-host", network = 1);
    FIELD("rung-4", rung = 4);
    FIELD("kind-2", workspace_kind = 2);
    FIELD("tmp-folder-2", tmp_folder = 2);
    FIELD("frames-2", has_frames = 2);
    FIELD("sets-9", n_sets = PLAN_SETS_PER_JOB + 1);
    FIELD("sets-max", n_sets = UINT32_MAX);
    FIELD("set-unknown", n_sets = 1);
    q = good;
    q.n_sets = 1;
    q.sets[0] = UINT32_MAX;
    refuse_start(b, "set-far", q);
    FIELD("memory-0", limits.memory_bytes = 0);
    FIELD("memory-max", limits.memory_bytes = UINT64_MAX);
    FIELD("tmp-0", limits.tmp_bytes = 0);
    FIELD("tmp-max", limits.tmp_bytes = UINT64_MAX);
    FIELD("tmp-inodes-0", limits.tmp_inodes = 0);
    FIELD("file-0", limits.file_bytes = 0);
    FIELD("file-max", limits.file_bytes = UINT64_MAX);
    FIELD("cpu-0", limits.cpu_percent = 0);
    FIELD("cpu-max", limits.cpu_percent = UINT32_MAX);
    FIELD("pids-0", limits.pids = 0);
    FIELD("pids-max", limits.pids = UINT32_MAX);
    FIELD("nofile-0", limits.nofile = 0);
    FIELD("nofile-max", limits.nofile = UINT32_MAX);
#undef FIELD
    q = good;
    q.workspace_kind = PLAN_WORKSPACE_TMPFS;
    q.filter = PLAN_FILTER_TMPFS;
    q.workspace_no = 63;
    refuse_start(b, "tmpfs-absent", q);
    q.workspace_no = UINT32_MAX;
    refuse_start(b, "tmpfs-far", q);
    static const struct {
        const char *name;
        uint64_t bytes, inodes;
    } sizes[] = {{"bytes-0", 0, 8},
                 {"inodes-0", 4096, 0},
                 {"bytes-max", UINT64_MAX, 8},
                 {"inodes-max", 4096, UINT64_MAX}};
    char name[48];
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        q = (struct plan_request){.op = PLAN_TMPFS,
                                  .uid = MINE,
                                  .size_bytes = sizes[i].bytes,
                                  .size_inodes = sizes[i].inodes};
        snprintf(name, sizeof name, "tmpfs-%s", sizes[i].name);
        refuse(b, name, q, NULL, 0);
    }
}

// A running sandbox, which must be told to end.
static uint32_t sleeper(struct border *b, const char *workspace, uint32_t uid)
{
    static const char *const argv[] = {"/bin/sleep", "60", NULL};
    struct plan_request q = border_good(workspace, uid);
    struct plan_record r = {};
    int fds[PLAN_N_START_FDS];
    border_fds(fds, argv);
    int e = border_ask(b, &q, fds, PLAN_N_START_FDS, PLAN_EXECUTED, PATIENCE_MS, &r);
    border_fds_close(fds);
    return e || r.error ? 0 : r.id;
}

static void attack_running(struct border *b)
{
    uint32_t id = sleeper(b, "once/mine", MINE);
    border_check(b, "sleeper", id != 0, "does not run");
    refuse_start(b, "uid-is-running", border_good("once/mine", MINE));
    struct plan_request q = border_good("once/alive", PLAN_UID_WORKSPACE_0 + 1);
    q.id = id;
    refuse_start(b, "start-twice", q);
    refuse(b, "signal-0", (struct plan_request){.op = PLAN_SIGNAL, .id = id, .signal = 0}, NULL, 0);
    refuse(b, "signal-65", (struct plan_request){.op = PLAN_SIGNAL, .id = id, .signal = 65}, NULL,
           0);
    refuse(b, "signal-max",
           (struct plan_request){.op = PLAN_SIGNAL, .id = id, .signal = UINT32_MAX}, NULL, 0);
    struct plan_record r = {};
    q = (struct plan_request){.op = PLAN_KILL, .id = id};
    uint32_t tag = b->tag + 1;
    int e = border_ask(b, &q, NULL, 0, PLAN_KILL, PATIENCE_MS, &r);
    border_check(b, "kill-works", !e && !r.error && r.tag == tag, "%d %d", e, r.error);
    q = (struct plan_request){.op = PLAN_SIGNAL, .id = id, .signal = 9};
    for (int i = 0; i < 200 && !e && !r.error; i++) { // soon it is nobody's number
        usleep(100000);
        e = border_ask(b, &q, NULL, 0, PLAN_SIGNAL, PATIENCE_MS, &r);
    }
    border_check(b, "signal-dead", !e && r.error > 0, "answer %d, error %d", e, r.error);
}

// Descriptors that are not what they should be. Whether the job fails or not, the launcher lives
// and a job that runs has only what it was given.
static void odd_start(struct border *b, const char *name, int place, int fd, bool frames)
{
    struct plan_request q = border_good("once/mine", MINE);
    struct plan_record r = {};
    int fds[PLAN_N_START_FDS];
    border_fds(fds, true_argv);
    fd_close(fds[place]);
    fds[place] = fd;
    q.has_frames = frames;
    int e = border_ask(b, &q, fds, PLAN_N_START_FDS, PLAN_END, PATIENCE_MS, &r);
    border_fds_close(fds);
    border_check(b, name, !e && border_alive(b), "answer %d", e);
}

static int args_of(const void *data, size_t len, bool sealed)
{
    int fd =
        sealed ? fd_sealed("a", data, len) : memfd_create("a", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (!sealed && fd >= 0) {
        fd_write_all(fd, data, len);
    }
    return fd;
}

// What the job's process must refuse before it executes anything.
static void odd_args(struct border *b, const char *name, const void *data, size_t len)
{
    struct plan_request q = border_good("once/mine", MINE);
    int fds[PLAN_N_START_FDS];
    border_fds(fds, true_argv);
    fd_close(fds[PLAN_FD_ARGS]);
    fds[PLAN_FD_ARGS] = args_of(data, len, true);
    refuse(b, name, q, fds, PLAN_N_START_FDS);
    border_fds_close(fds);
}

static void attack_arguments(struct border *b)
{
    struct {
        struct args_header head;
        char text[64];
    } a = {.head = {ARGS_MAGIC, 1, 0, 21}, .text = "/bin/true\0/workspace"};
    odd_args(b, "args-empty", "", 0);
    odd_args(b, "args-short", &a, 7);
    // without seals the service could only change its own job's arguments: taken or not, the
    // launcher lives
    odd_start(b, "args-unsealed", PLAN_FD_ARGS, args_of(&a, sizeof a.head + 21, false), false);
    a.head.magic = 1;
    odd_args(b, "args-magic", &a, sizeof a.head + 21);
    a.head = (struct args_header){ARGS_MAGIC, 0, 0, 21};
    odd_args(b, "args-none", &a, sizeof a.head + 21);
    a.head = (struct args_header){ARGS_MAGIC, UINT32_MAX, UINT32_MAX, 21};
    odd_args(b, "args-many", &a, sizeof a.head + 21);
    a.head = (struct args_header){ARGS_MAGIC, 1, 0, UINT32_MAX};
    odd_args(b, "args-bytes", &a, sizeof a.head + 21);
    a.head = (struct args_header){ARGS_MAGIC, 30, 0, 21};
    odd_args(b, "args-fewer", &a, sizeof a.head + 21);
    memset(a.text, 'x', sizeof a.text);
    a.head = (struct args_header){ARGS_MAGIC, 1, 0, sizeof a.text};
    odd_args(b, "args-no-end", &a, sizeof a);
}

static void attack_descriptors(struct border *b)
{
    int pair[2], fds[MSG_MAX_FDS];
    static const int counts[] = {0, 1, PLAN_N_START_FDS - 1, PLAN_N_START_FDS + 1, MSG_MAX_FDS};
    char name[48];
    for (int i = 0; i < MSG_MAX_FDS; i++) {
        fds[i] = open("/dev/null", O_RDWR | O_CLOEXEC);
    }
    for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
        snprintf(name, sizeof name, "descriptors-%d", counts[i]);
        refuse(b, name, border_good("once/mine", MINE), fds, counts[i]);
    }
    refuse(b, "prepare-with-descriptors", (struct plan_request){.op = PLAN_TMPFS_DROP}, fds, 3);
    for (int i = 0; i < MSG_MAX_FDS; i++) {
        fd_close(fds[i]);
    }
    odd_start(b, "stdin-is-a-folder", PLAN_FD_STDIN, dup(b->seat.workspace_root), false);
    odd_start(b, "stdout-is-the-launchers-socket", PLAN_FD_STDOUT, dup(b->seat.launcher), false);
    odd_start(b, "args-is-a-folder", PLAN_FD_ARGS, dup(b->seat.workspace_root), false);
    odd_start(b, "args-is-a-device", PLAN_FD_ARGS, open("/dev/zero", O_RDONLY | O_CLOEXEC), false);
    odd_start(b, "frames-is-a-file", PLAN_FD_FRAMES, open("/dev/null", O_RDWR | O_CLOEXEC), true);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0) {
        odd_start(b, "args-is-a-socket", PLAN_FD_ARGS, pair[0], false);
        fd_close(pair[1]);
    }
    if (pipe2(pair, O_CLOEXEC) == 0) {
        odd_start(b, "args-is-a-pipe", PLAN_FD_ARGS, pair[0], false);
        fd_close(pair[1]);
    }
}

static void attack_sets(struct border *b)
{
    const struct {
        const char *name;
        int fd;
    } sets[] = {
        {"set-of-the-root", open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC)},
        {"set-of-proc", open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC)},
        {"set-of-hosts-proc", dup(b->host_proc)},
        {"set-of-workspaces", dup(b->seat.workspace_root)},
        {"set-of-a-workspace",
         openat(b->seat.workspace_root, "once/mine/w", O_RDONLY | O_DIRECTORY | O_CLOEXEC)},
        {"set-of-a-file", open("/proc/self/status", O_RDONLY | O_CLOEXEC)},
        {"set-of-a-device", open("/dev/null", O_RDONLY | O_CLOEXEC)},
        {"set-of-a-socket", dup(b->seat.launcher)},
        {"set-of-a-memfd", memfd_create("s", MFD_CLOEXEC)},
    };
    for (size_t i = 0; i < ARRAY_LEN(sets); i++) {
        refuse(b, sets[i].name, (struct plan_request){.op = PLAN_SET_ADD}, &sets[i].fd,
               sets[i].fd < 0 ? 0 : 1);
        fd_close(sets[i].fd);
    }
    refuse(b, "set-of-nothing", (struct plan_request){.op = PLAN_SET_ADD}, NULL, 0);
}

void attack_plans(struct border *b)
{
    int root = b->seat.workspace_root;
    int e = border_workspace(b, "once/mine", MINE);
    e = e ? e : border_workspace(b, "once/foreign", OTHERS);
    e = e ? e : border_workspace(b, "once/services", PLAN_UID_SERVICE);
    if (e || symlinkat("mine", root, "once/link") || mkdirat(root, "once/inner", 0711) ||
        symlinkat("../mine/w", root, "once/inner/w") || mkdirat(root, "once/file", 0711)) {
        e = -EIO;
    }
    int fd = openat(root, "once/file/w", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    const uid_t mine = b->seat.downgrades & PLAN_SINGLE_UID ? PLAN_UID_LAUNCHER : MINE;
    e = e ? e : fchown(fd, mine, mine);
    fd_close(fd);
    border_check(b, "traps-are-set", !e, "%s", strerror(errno));
    attack_operations(b);
    attack_networks(b);
    attack_isolation(b);
    attack_listeners(b);
    attack_sizes(b);
    attack_uids(b);
    attack_names(b);
    attack_fields(b);
    attack_running(b);
    attack_arguments(b);
    attack_descriptors(b);
    attack_sets(b);
    border_check(b, "alive-after-plans", border_alive(b), "no job runs afterwards");
}

static void drain(struct border *b)
{
    struct pollfd p = {.fd = b->seat.launcher, .events = POLLIN};
    while (poll(&p, 1, 300) > 0) {
        char record[sizeof(struct plan_record)];
        int fd = -1;
        if (msg_recv(b->seat.launcher, record, sizeof record, &fd, 1, NULL, MSG_DONTWAIT) <= 0) {
            return;
        }
        fd_close(fd);
    }
}

// Requests without reading an answer: the launcher bounds what it keeps, and lives.
static void flood(struct border *b, const char *name, struct plan_request q, const int *fds, int n)
{
    for (int i = 0; i < 20000; i++) {
        q.tag = ++b->tag;
        int e = msg_send(b->seat.launcher, &q, sizeof q, fds, n, MSG_DONTWAIT);
        if (e == -EAGAIN) {
            struct pollfd p = {.fd = b->seat.launcher, .events = POLLOUT};
            if (poll(&p, 1, 100) <= 0) {
                break; // it does not read on before its answers are read: that bounds them
            }
        } else if (e) {
            break;
        }
    }
    drain(b);
    border_check(b, name, border_alive(b), "no job runs afterwards");
}

// As many sandboxes as it gives: a bound must come, and all of them must be free again afterwards.
static void attack_slots(struct border *b)
{
    static uint32_t ids[PLAN_MAX_SANDBOXES + 8];
    struct plan_record r = {};
    size_t n = 0;
    int e = 0;
    while (n < ARRAY_LEN(ids)) {
        struct plan_request q = {.op = PLAN_PREPARE};
        e = border_ask(b, &q, NULL, 0, PLAN_PARKED, PATIENCE_MS, &r);
        if (e || r.error) {
            break;
        }
        ids[n++] = r.id;
    }
    border_check(b, "slots-are-bounded", !e && r.error > 0 && n <= PLAN_MAX_SANDBOXES,
                 "%zu sandboxes, answer %d", n, e);
    for (size_t i = 0; i < n; i++) {
        struct plan_request q = {.op = PLAN_KILL, .id = ids[i]};
        border_ask(b, &q, NULL, 0, PLAN_KILL, PATIENCE_MS, &r);
    }
    drain(b);
    border_check(b, "slots-are-free-again", border_alive(b), "no job runs after %zu sandboxes", n);
}

void attack_floods(struct border *b)
{
    attack_slots(b);
    flood(b, "flood-samples", (struct plan_request){.op = PLAN_SAMPLE, .id = 4242}, NULL, 0);
    flood(b, "flood-nonsense", (struct plan_request){.op = 999}, NULL, 0);
    int fds[PLAN_N_START_FDS];
    border_fds(fds, true_argv);
    flood(b, "flood-descriptors", (struct plan_request){.op = 999}, fds, PLAN_N_START_FDS);
    flood(b, "flood-bad-starts", border_good("once/foreign", MINE), fds, PLAN_N_START_FDS);
    border_fds_close(fds);
    flood(
        b, "flood-tmpfs",
        (struct plan_request){.op = PLAN_TMPFS, .uid = MINE, .size_bytes = 4096, .size_inodes = 8},
        NULL, 0);
}
