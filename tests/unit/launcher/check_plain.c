// Jobs without a sandbox: what still stands around them, and that nothing of them stays.
#include "base/clock.h"
#include "base/fd.h"
#include "checks.h"
#include "plan/steps.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void without_sandbox(struct plan_request *q) { q->plain = 1; }
static void with_sandbox(struct plan_request *q) { q->plain = 0; }

// A process that the job's output names, as "pid N".
static bool is_there(const struct client *c)
{
    char path[32];
    const char *at = strstr(output, "pid ");
    snprintf(path, sizeof path, "%d", at ? atoi(at + 4) : 1);
    return faccessat(c->proc, path, F_OK, 0) == 0;
}

static void leftovers(struct client *c)
{
    struct plan_record r;
    int e = run_python(c,
                       "import os, signal, time\n"
                       "r, w = os.pipe()\n"
                       "if os.fork() == 0:\n"
                       "    os.setsid()\n"
                       "    if os.fork():\n"
                       "        os._exit(0)\n"
                       "    for s in (1, 2, 15):\n"
                       "        signal.signal(s, signal.SIG_IGN)\n"
                       "    os.write(w, b'pid %d' % os.getpid())\n"
                       "    time.sleep(600)\n"
                       "print(os.read(r, 32).decode())\n",
                       &r);
    check("a daemon ends with its job",
          clean_exit(&r, e, 0) && strstr(output, "pid ") && !is_there(c), output);
    const char *const bomb[] = {
        "/bin/sh", "-c", "echo pid $$; f() { f | f & sleep 100; }; while :; do f & done", NULL};
    struct try t = try_of(bomb);
    AUTO_CLOSE int out = memory_file();
    t.fd[PLAN_FD_STDOUT] = out;
    t.limits.pids = 60;
    e = client_run(c, 0, &t, CLIENT_PATIENCE_MS, &r); // the shell ends when it cannot fork
    slurp(out);
    check("so does a bomb", !e && r.pids_peak > 40 && !is_there(c), say(&r, e));
}

static void walls(struct client *c)
{
    struct plan_record r;
    char script[1200];
    snprintf(script, sizeof script,
             "import ctypes, errno, os\n"
             "def no(what, error, call, *a):\n"
             "    try:\n"
             "        call(*a)\n"
             "        print('open', what)\n"
             "    except OSError as e:\n"
             "        if e.errno != error: print('other', what, e)\n"
             "libc = ctypes.CDLL(None, use_errno=True)\n"
             "def shm():\n"
             "    if libc.shmget(4711, 4096, 0o1600) == -1:\n"
             "        raise OSError(ctypes.get_errno(), '')\n"
             "no('ipc', errno.EPERM, shm)\n"
             "no('launcher', errno.EPERM, os.kill, %d, 9)\n"
             "no('uid', errno.EPERM, os.setuid, 0)\n"
             "no('namespace', errno.EPERM, os.unshare, os.CLONE_NEWUTS)\n"
             "no('usr', errno.EROFS, open, '/usr/x', 'w')\n"
             "no('proc', errno.ENOENT, os.stat, '/proc/%d')\n"
             "s = open('/proc/self/status').read()\n"
             "for line in ('CapEff:\\t0000000000000000', 'CapBnd:\\t0000000000000000',\n"
             "             'NoNewPrivs:\\t1', 'Seccomp:\\t2'):\n"
             "    if line not in s: print('lacks', line)\n"
             "open('/workspace/x', 'w').write('y')\n"
             "print(os.getuid() > 1, os.getcwd(), os.environ.get('HOME'))\n",
             c->seat.launcher_pid, c->seat.launcher_pid);
    int e = run_python(c, script, &r);
    check("uid, capabilities, filter and mounts hold all the same",
          clean_exit(&r, e, 0) && !strncmp(output, "True /workspace ", 16), output);
    check("and the record says what is lost",
          r.downgrades & PLAN_NO_ISOLATION && r.downgrades & PLAN_HOST_NETWORK &&
              r.rung == PLAN_RUNG_NONE,
          say(&r, e));
}

void check_plain(struct client *c)
{
    struct plan_record r;
    check("no isolation is said at once", c->seat.downgrades & PLAN_NO_ISOLATION, "");
    c->change = with_sandbox;
    int e = run_sh(c, "exit 7", &r);
    c->change = NULL;
    check("no sandbox is made where there are none", !e && r.error == EPERM, say(&r, e));
    walls(c);
    leftovers(c);
}

// Where the service may ask for one, all others have their sandbox.
void check_asked(struct client *c)
{
    struct plan_record r;
    struct plan_request ahead = {.op = PLAN_PREPARE, .plain = 1};
    int e = run_sh(c, "exit 7", &r);
    check("a job with a sandbox", clean_exit(&r, e, 7) && !(r.downgrades & PLAN_NO_ISOLATION),
          say(&r, e));
    client_request(c, &ahead, NULL, 0);
    e = client_wait(c, PLAN_PREPARE, ahead.tag, CLIENT_PATIENCE_MS, &r, NULL);
    check("none without is made ahead", !e && r.error == EOPNOTSUPP, say(&r, e));
    c->change = without_sandbox;
    walls(c);
    leftovers(c);
    c->change = NULL;
    e = run_sh(c, "exit 7", &r);
    check("and again with one", clean_exit(&r, e, 7) && !(r.downgrades & PLAN_NO_ISOLATION),
          say(&r, e));
}
