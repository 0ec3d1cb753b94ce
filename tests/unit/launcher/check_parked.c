// Sandboxes that wait between the phases, tmpfs and session workspaces, rungs.
#include "base/clock.h"
#include "base/fd.h"
#include "checks.h"
#include "plan/steps.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static void drop_tmpfs(struct client *c, int number)
{
    struct plan_request q = {.op = PLAN_TMPFS_DROP, .workspace_no = (uint32_t)number};
    struct plan_record r;
    int e = client_ask(c, &q, &r);
    check("the tmpfs is dropped", !e, strerror(-e));
}

// Four parked, started in reverse: a one-shot tmpfs, a kept folder with its own /tmp, two folders;
// each under another uid.
static void late_workspaces(struct client *c)
{
    static const char *const names[] = {NULL, "kept/s", "kept/f", "once/f"};
    const char *const job[] = {
        "/bin/sh", "-c",
        "id -u; echo mine > f; echo t > /tmp/f; sleep 0.2; cat f; ls -ld . | cut -c1-10", NULL};
    uint32_t id[4], tag[4];
    int out[4], fd[4] = {-1, -1, -1, -1}, number = -1;
    struct plan_record r;
    int e = 0;
    for (int i = 0; i < 4; i++) {
        e = e ? e : client_prepare(c, &id[i], &r);
    }
    check("four sandboxes are parked", !e, strerror(-e));
    for (int i = 0; i < 4; i++) {
        struct try t = try_of(job);
        t.uid = V0 + 700 + 11 * (uint32_t)i;
        t.workspace = names[i];
        t.tmp_folder = i == 1;
        if (names[i]) {
            fd[i] = client_make_workspace(c, names[i], t.uid, i == 1);
        } else {
            t.tmpfs_no = number = client_add_tmpfs(c, t.uid, 4 << 20, &fd[i]);
        }
        t.fd[PLAN_FD_STDOUT] = t.fd[PLAN_FD_STDERR] = out[i] = memory_file();
        tag[i] = client_start(c, id[3 - i], &t);
    }
    for (int i = 3; i >= 0; i--) {
        struct stat st;
        char name[96];
        e = client_wait(c, PLAN_END, tag[i], CLIENT_PATIENCE_MS, &r, NULL);
        slurp(out[i]);
        bool owner = !fstatat(fd[i], names[i] ? "w/f" : "f", &st, 0) &&
                     st.st_uid == V0 + 700 + 11 * (uint32_t)i;
        snprintf(name, sizeof name, "a parked sandbox takes %s",
                 names[i] ? names[i] : "a one-shot tmpfs");
        check(name, clean_exit(&r, e, 0) && owner && !strcmp(output, "1000\nmine\ndrwx------\n"),
              say(&r, e));
        close(out[i]);
    }
    check("a session's /tmp stays beside its workspace", !faccessat(fd[1], "t/f", F_OK, 0), "");
    for (int i = 0; i < 4; i++) {
        fd_close(fd[i]);
        if (names[i]) {
            client_remove_workspace(c, names[i]);
        }
    }
    drop_tmpfs(c, number);
}

static void late_limits(struct client *c)
{
    uint32_t id;
    struct plan_record r;
    const char *const job[] = {"/bin/sh", "-c",
                               "df -k /tmp | tail -1; ulimit -n; python3.13 -c "
                               "'b=bytearray(300<<20)'; sleep 20",
                               NULL};
    struct try t = try_of(job);
    t.limits = (struct plan_limits){.memory_bytes = 64 << 20, .tmp_bytes = 4 << 20, .nofile = 99};
    AUTO_CLOSE int out = memory_file();
    t.fd[PLAN_FD_STDOUT] = out;
    int e = client_prepare(c, &id, &r);
    e = e ? e
          : client_run(c, id, &t, c->seat.downgrades & PLAN_NO_CGROUP_MEMORY ? 2000 : 10000, &r);
    slurp(out);
    bool bounded = !(c->seat.downgrades & PLAN_NO_CGROUP_MEMORY);
    check("limits that come late hold: memory where it is counted, /tmp, files",
          !e && r.flags == (bounded ? PLAN_HIT_MEMORY : PLAN_KILLED) && strstr(output, " 4096 ") &&
              strstr(output, "\n99\n"),
          say(&r, e));
}

static void kill_parked(struct client *c)
{
    uint32_t id;
    struct plan_record r;
    int e = client_prepare(c, &id, &r);
    struct plan_request q = {.op = PLAN_KILL, .id = id};
    uint32_t tag = r.tag;
    e = e ? e : client_ask(c, &q, &r);
    e = e ? e : client_wait(c, PLAN_END, tag, CLIENT_PATIENCE_MS, &r, NULL);
    check("a parked sandbox can be thrown away", !e && r.id == id && r.flags == PLAN_KILLED,
          say(&r, e));
    const char *const yes[] = {"/bin/true", NULL};
    struct try t = try_of(yes);
    e = client_run(c, id, &t, CLIENT_PATIENCE_MS, &r);
    check("and is not there any more", !e && r.error == ENOENT, say(&r, e));
    // one whose START is refused does not stay behind
    e = client_prepare(c, &id, &r);
    t.workspace = "once/none";
    e = e ? e : client_run(c, id, &t, CLIENT_PATIENCE_MS, &r);
    check("a refused START ends its sandbox", !e && r.error == ENOENT && r.id == id, say(&r, e));
}

// Many at once, each in its own workspace; then more than there are places.
static void crowd(struct client *c)
{
    enum { CROWD = 40 };
    const char *const job[] = {"/bin/sh", "-c", "echo $PPID-$$ > f; sleep 0.3; exit 7", NULL};
    char name[24];
    uint32_t tag[CROWD];
    struct plan_record r;
    int good = 0, e = 0;
    for (uint32_t i = 0; i < CROWD; i++) {
        struct try t = try_of(job);
        snprintf(name, sizeof name, "once/c%u", i);
        t.uid = V0 + 1000 + i;
        t.workspace = name;
        fd_close(client_make_workspace(c, name, t.uid, false));
        tag[i] = client_start(c, 0, &t);
    }
    for (uint32_t i = 0; i < CROWD; i++) {
        char text[16], path[32];
        struct plan_record executed;
        client_wait(c, PLAN_EXECUTED, tag[i], CLIENT_PATIENCE_MS, &executed, NULL);
        client_wait(c, PLAN_PARKED, tag[i], 0, &executed, NULL);
        e = client_wait(c, PLAN_END, tag[i], CLIENT_PATIENCE_MS, &r, NULL);
        snprintf(path, sizeof path, "once/c%u/w/f", i);
        fd_read_at(c->seat.workspace_root, path, text, sizeof text);
        good += clean_exit(&r, e, 7) && !strcmp(text, "1-2\n");
        snprintf(name, sizeof name, "once/c%u", i);
        client_remove_workspace(c, name);
    }
    check("forty sandboxes at once, each with its own end", good == CROWD, say(&r, e));
}

void check_parked(struct client *c)
{
    crowd(c);
    late_workspaces(c);
    late_limits(c);
    kill_parked(c);
}

static void on_tmpfs(struct client *c)
{
    struct plan_record r;
    int fd = -1, number = client_add_tmpfs(c, V0 + 300, 8 << 20, &fd);
    check("a tmpfs workspace", number >= 0 && fd >= 0, strerror(-number));
    AUTO_CLOSE int in = openat(fd, "in.txt", O_CREAT | O_WRONLY | O_EXCL | O_CLOEXEC, 0644);
    int e = fd_write_all(in, "hello", 5);
    check("the service fills it", !e && !fchown(in, V0 + 300, V0 + 300), strerror(errno));
    const char *const first[] = {"/bin/sh", "-c",
                                 "cat in.txt; tr a-z A-Z < in.txt > out.txt; rm in.txt; head -c "
                                 "20m /dev/zero > big; fallocate -l 1 small && echo allocated; "
                                 "mkdir -m 0 zero",
                                 NULL},
                      *const second[] = {
                          "/bin/sh", "-c",
                          "rm big; cat out.txt; i=0; while : > f$i; do i=$((i+1)); done", NULL};
    struct try t = try_of(first);
    t.uid = V0 + 300;
    t.tmpfs_no = number;
    e = run_try(c, &t, CLIENT_PATIENCE_MS, &r);
    check("its job reads, writes, and meets its size",
          !e && !r.error && strstr(output, "hello") && strstr(output, "No space left"), say(&r, e));
    char text[16] = "";
    fd_read_at(fd, "out.txt", text, sizeof text);
    check("the service reads the result after the end",
          !strcmp(text, "HELLO") && faccessat(fd, "in.txt", F_OK, 0), text);
    t.argv = second;
    e = run_try(c, &t, CLIENT_PATIENCE_MS, &r);
    check("a second job in it, and its inodes are bounded",
          !e && !r.error && strstr(output, "HELLO") && strstr(output, "No space left"), say(&r, e));
    t.uid = V0 + 301;
    e = run_try(c, &t, CLIENT_PATIENCE_MS, &r);
    check("not for another uid", !e && r.error == EPERM, say(&r, e));
    fd_close(fd);
    drop_tmpfs(c, number);
}

static void sessions(struct client *c)
{
    struct plan_record r, s;
    const char *const first[] = {"/bin/sh", "-c", "echo one > f; mkdir -p a/b; chmod 0 a/b a",
                                 NULL},
                      *const next[] = {"/bin/sh", "-c", "cat f; echo two >> f", NULL},
                      *const slow[] = {"/bin/sleep", "0.5", NULL};
    AUTO_CLOSE int fd = client_make_workspace(c, "kept/sess", V0 + 9, true);
    struct try t = try_of(first);
    t.uid = V0 + 9;
    t.workspace = "kept/sess";
    t.tmp_folder = true;
    int e = run_try(c, &t, CLIENT_PATIENCE_MS, &r);
    check("a session's first job", fd >= 0 && clean_exit(&r, e, 0), say(&r, e));
    t.argv = next;
    e = run_try(c, &t, CLIENT_PATIENCE_MS, &r);
    check("its second sees the first one's files", clean_exit(&r, e, 0) && !strcmp(output, "one\n"),
          say(&r, e));
    t.argv = slow;
    uint32_t a = client_start(c, 0, &t), b = client_start(c, 0, &t);
    e = client_wait(c, PLAN_END, b, CLIENT_PATIENCE_MS, &r, NULL);
    check("one running job per workspace", !e && r.error == EBUSY, say(&r, e));
    e = client_wait(c, PLAN_END, a, CLIENT_PATIENCE_MS, &s, NULL);
    check("and the running one is not disturbed", clean_exit(&s, e, 0), say(&s, e));
    e = client_remove_workspace(c, "kept/sess");
    check("the service removes what it left", !e, strerror(-e));
}

static void refused_sets(struct client *c)
{
    AUTO_CLOSE int own = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    check("the cache itself is no package set", client_add_set(c, c->seat.cache_root) == -EPERM,
          "");
    check("a workspace is none", client_add_set(c, c->seat.workspace_root) == -EPERM, "");
    check("a folder of the service is none", client_add_set(c, own) == -EPERM, "");
    check("a file is none", client_add_named_set(c, "file") == -EPERM, "");
    check("a folder that others can write to is none", client_add_named_set(c, "open") == -EPERM,
          "");
    AUTO_CLOSE int closed = openat(c->seat.cache_root, "closed", O_PATH | O_CLOEXEC);
    check("a folder that others cannot read is none", client_add_set(c, closed) == -EACCES, "");
}

static void package_sets(struct client *c)
{
    const char *const use[] = {"/bin/sh", "-c",
                               "/packages/0/name; /packages/1/name; ls /packages/2; "
                               ": > /packages/0/x; : > /packages/name/x",
                               NULL};
    struct plan_record r;
    int one = client_add_named_set(c, "one"), two = client_add_named_set(c, "two");
    check("package sets are registered", one >= 0 && two >= 0, strerror(-one));
    struct try t = try_of(use);
    t.n_sets = 2;
    t.sets[0] = (uint32_t)two;
    t.sets[1] = (uint32_t)one;
    int e = run_try(c, &t, CLIENT_PATIENCE_MS, &r);
    check("a job has its sets, in its order, to read and run, not to write",
          !e && !r.error && !strncmp(output, "two\none\n", 8) && strstr(output, "Read-only"),
          say(&r, e));
    const char *const none[] = {"/bin/sh", "-c", "ls -A /packages/*", NULL};
    t = try_of(none);
    e = run_try(c, &t, CLIENT_PATIENCE_MS, &r);
    check("and another job has none", clean_exit(&r, e, 0) && !strstr(output, "name"), say(&r, e));
    struct plan_request drop = {.op = PLAN_SET_DROP, .sets = {(uint32_t)one}};
    e = client_ask(c, &drop, &r);
    t.n_sets = 1;
    t.sets[0] = (uint32_t)one;
    int g = run_try(c, &t, CLIENT_PATIENCE_MS, &r);
    check("a dropped set is not there any more", !e && !g && r.error == ENOENT, say(&r, g));
}

void check_stock(struct client *c)
{
    on_tmpfs(c);
    sessions(c);
    refused_sets(c);
    package_sets(c);
}

void check_rung(struct client *c, uint32_t rung)
{
    static const char *const names[] = {"auto", "parent", "self", "none"};
    struct plan_record r;
    char title[96], uid[24];
    snprintf(title, sizeof title, "rung found at start: %s", names[rung]);
    check(title, c->seat.rung == rung, names[c->seat.rung]);
    check("its downgrade is told",
          (rung == PLAN_RUNG_NONE) == !!(c->seat.downgrades & PLAN_NO_USER_NAMESPACE), "");
    int e = run_sh(c,
                   "id -u; whoami; grep CapBnd /proc/self/status; grep NoNewPrivs "
                   "/proc/self/status; : > /workspace/r && rm /workspace/r; unshare -U true || "
                   "echo refused; cat /proc/sys/user/max_user_namespaces",
                   &r);
    snprintf(uid, sizeof uid, "%u\nsandbox\n", rung == PLAN_RUNG_NONE ? V0 : 1000U);
    snprintf(title, sizeof title, "rung %s: uid, name, no capability, no namespaces", names[rung]);
    check(title,
          clean_exit(&r, e, 0) && r.rung == rung && !strncmp(output, uid, strlen(uid)) &&
              strstr(output, "CapBnd:\t0000000000000000") && strstr(output, "NoNewPrivs:\t1") &&
              strstr(output, "refused\n"),
          say(&r, e));
}
