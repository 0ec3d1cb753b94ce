// Exits, program search, limits, signals: what a job does and how it is told.
#include "base/clock.h"
#include "base/fd.h"
#include "checks.h"
#include "plan/steps.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

// Until the job has written `text` so often: the machine may be busy.
static bool wait_for(int out, const char *text, int count)
{
    for (int tries = 0; tries < CLIENT_PATIENCE_MS / 10; tries++) {
        int seen = 0;
        slurp(out);
        for (const char *p = output; (p = strstr(p, text)); p++) {
            seen++;
        }
        if (seen >= count) {
            return true;
        }
        clock_pause_ns(10 * NS_PER_MS);
    }
    return false;
}

// A job whose standard input is a pipe: its other end.
static int feed(struct try *t, const char *const *argv)
{
    int pair[2];
    *t = try_of(argv);
    if (pipe2(pair, O_CLOEXEC)) {
        return -errno;
    }
    t->fd[PLAN_FD_STDIN] = pair[0];
    return pair[1];
}

void check_exits(struct client *c)
{
    struct plan_record r;
    const char *const yes[] = {"/bin/true", NULL};
    struct try t = try_of(yes);
    int e = run_try(c, &t, CLIENT_PATIENCE_MS, &r);
    check("/bin/true", clean_exit(&r, e, 0), say(&r, e));
    e = run_python(c, "print(6*7)", &r);
    check("python3.13 -c", clean_exit(&r, e, 0) && !strcmp(output, "42\n"), say(&r, e));
    static const int codes[] = {0, 1, 2, 7, 99, 125, 126, 127, 128, 137, 255};
    static const int signals[] = {1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 31};
    char script[64];
    int bad = 0;
    for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
        snprintf(script, sizeof script, "exit %d", codes[i]);
        e = run_sh(c, script, &r);
        bad += !clean_exit(&r, e, codes[i]);
    }
    check("exit codes are exact", !bad, say(&r, e));
    for (size_t i = 0; i < ARRAY_LEN(signals); i++) {
        snprintf(script, sizeof script, "kill -%d $$; sleep 1", signals[i]);
        e = run_sh(c, script, &r);
        bad += e || r.error || !WIFSIGNALED(r.status) || WTERMSIG(r.status) != signals[i] ||
               WCOREDUMP(r.status);
    }
    check("signals are exact, and leave no core", !bad, say(&r, e));
    e = run_sh(c, "(setsid sleep 30; echo late) & echo main; exit 3", &r);
    check("the main process ends, orphans die with it",
          clean_exit(&r, e, 3) && r.marks_ns[PLAN_T_END] - r.marks_ns[PLAN_T_EXEC] < 15 * NS_PER_S,
          say(&r, e));
    const char *const sleeper[] = {"/bin/sleep", "60", NULL};
    t = try_of(sleeper);
    e = run_try(c, &t, 100, &r);
    check("killed by request, and told so",
          !e && (r.flags & PLAN_KILLED) && !r.error &&
              r.marks_ns[PLAN_T_END] - r.marks_ns[PLAN_T_EXEC] < 30 * NS_PER_S,
          say(&r, e));
}

void check_execution(struct client *c)
{
    struct plan_record r, x;
    const char *const by_path[] = {"sh", "-c", "exit 4", NULL}, *const none[] = {"nix", "a", NULL},
                      *const absent[] = {"/nix", NULL}, *const folder[] = {"/usr", NULL},
                      *const text[] = {"./text", NULL}, *const where[] = {"pwd", NULL};
    struct try t = try_of(by_path);
    int e = run_try(c, &t, CLIENT_PATIENCE_MS, &r);
    check("a program is found by PATH", clean_exit(&r, e, 4), say(&r, e));
    t.argv = none;
    e = run_try(c, &t, CLIENT_PATIENCE_MS, &r);
    check("a missing command is the program's failure: 127",
          clean_exit(&r, e, 127) && !strcmp(output, "isle: nix: command not found\n"), say(&r, e));
    t.argv = absent;
    e = run_try(c, &t, CLIENT_PATIENCE_MS, &r);
    check("a missing path: 127", clean_exit(&r, e, 127) && strstr(output, "isle: /nix: No such"),
          say(&r, e));
    t.argv = folder;
    e = run_try(c, &t, CLIENT_PATIENCE_MS, &r);
    check("not executable: 126",
          clean_exit(&r, e, 126) && strstr(output, "isle: /usr: Permission denied"), say(&r, e));
    run_sh(c, "echo text > text; chmod +x text", &r);
    t.argv = text;
    e = run_try(c, &t, CLIENT_PATIENCE_MS, &r);
    check("not a program: 126", clean_exit(&r, e, 126) && strstr(output, "Exec format error"),
          say(&r, e));
    t.argv = where;
    t.cwd = "/workspace/none";
    e = run_try(c, &t, CLIENT_PATIENCE_MS, &r);
    check("a missing working directory is told with its step",
          !e && r.error == ENOENT && plan_step_kind(r.step) == PLAN_KIND_CHDIR, say(&r, e));
    run_sh(c, "mkdir -p a/b", &r);
    t.cwd = "/workspace/a/b";
    e = run_try(c, &t, CLIENT_PATIENCE_MS, &r);
    check("working directory", clean_exit(&r, e, 0) && !strcmp(output, "/workspace/a/b\n"),
          say(&r, e));
    // told as soon as the program runs, not at its end: which we make come
    const char *const wait[] = {"/bin/cat", NULL};
    AUTO_CLOSE int to_job = feed(&t, wait);
    uint32_t tag = client_start(c, 0, &t);
    fd_close(t.fd[PLAN_FD_STDIN]);
    e = client_wait(c, PLAN_EXECUTED, tag, CLIENT_PATIENCE_MS, &x, NULL);
    check("EXECUTED comes when execve has succeeded", !e && x.main_pid > 0, say(&x, e));
    to_job = fd_close(to_job);
    e = client_wait(c, PLAN_END, tag, CLIENT_PATIENCE_MS, &r, NULL);
    check("and END with the same id", clean_exit(&r, e, 0) && r.id == x.id, say(&r, e));
}

static void check_memory(struct client *c)
{
    struct plan_record r;
    const char *const self[] = {"/usr/bin/python3.13", "-c", "b=bytearray(300<<20)", NULL},
                      *const child[] = {"/bin/sh", "-c",
                                        "python3.13 -c 'b=bytearray(300<<20)'; sleep 20", NULL};
    struct try t = try_of(self);
    t.limits.memory_bytes = 64 << 20;
    int e = run_try(c, &t, CLIENT_PATIENCE_MS, &r);
    check("memory limit: told by the kernel's counter",
          !e && (r.flags & PLAN_HIT_MEMORY) && !r.error && r.memory_peak_bytes <= 64 << 20,
          say(&r, e));
    t.argv = child;
    e = run_try(c, &t, CLIENT_PATIENCE_MS, &r);
    check("memory limit: one kill, of a child, ends the job",
          !e && r.flags == PLAN_HIT_MEMORY &&
              r.marks_ns[PLAN_T_END] - r.marks_ns[PLAN_T_EXEC] < 15 * NS_PER_S,
          say(&r, e));
    const char *const liar[] = {"/bin/sh", "-c", "echo MemoryError >&2; exit 137", NULL};
    t.argv = liar;
    e = run_try(c, &t, CLIENT_PATIENCE_MS, &r);
    check("memory limit: nothing else looks like it", clean_exit(&r, e, 137), say(&r, e));
}

static void check_cpu(struct client *c)
{
    struct plan_record r;
    const char *const busy[] = {"/usr/bin/python3.13", "-c",
                                "import time\nwhile time.process_time()<0.25: pass", NULL},
                      *const many[] = {"/bin/sh", "-c",
                                       "(while :; do :; done) & while :; do :; done", NULL};
    struct try t = try_of(busy);
    t.limits.cpu_percent = 20;
    int e = run_try(c, &t, CLIENT_PATIENCE_MS, &r);
    // 20 ms in each 100: other load only makes it slower. The first and the last of these periods
    // need not be whole.
    uint64_t took_ns = r.marks_ns[PLAN_T_REPORT] - r.marks_ns[PLAN_T_EXEC];
    check("cpu share of 20 %, and its figure",
          clean_exit(&r, e, 0) && r.cpu_ns >= 200000000 && took_ns + 200000000 > r.cpu_ns * 4,
          say(&r, e));
    t.argv = many;
    t.limits.cpu_percent = 200;
    t.limits.cpu_ns = 400 * NS_PER_MS;
    e = run_try(c, &t, CLIENT_PATIENCE_MS, &r);
    check("cpu time of all processes together ends the job",
          !e && r.flags == PLAN_HIT_CPU && r.cpu_ns >= 400000000 && r.cpu_ns < 20 * NS_PER_S,
          say(&r, e));
}

static void check_processes(struct client *c)
{
    struct plan_record r;
    const char *const bomb[] = {"/bin/sh", "-c", "f() { f | f & }; f; sleep 600", NULL},
                      *const many[] = {"/usr/bin/python3.13", "-c",
                                       "import os,time\nfor i in range(400):\n  if not os.fork(): "
                                       "os.setsid(); time.sleep(60)",
                                       NULL},
                      *const files[] = {"/usr/bin/python3.13", "-c",
                                        "import resource as r\nfor n in 'CORE NOFILE FSIZE STACK "
                                        "MEMLOCK NPROC SIGPENDING MSGQUEUE AS'.split(): "
                                        "print(n,*r.getrlimit(getattr(r,'RLIMIT_'+n)))",
                                        NULL};
    struct try t = try_of(bomb);
    t.limits.pids = 32;
    int e = run_try(c, &t, 1000, &r);
    for (int ms = 4000; ms < CLIENT_PATIENCE_MS && !e && r.pids_peak < 30; ms *= 4) {
        e = run_try(c, &t, ms, &r); // a busy host gives it more time
    }
    check("a fork bomb is held and removed",
          !e && r.pids_peak >= 30 && r.pids_peak <= 32 &&
              r.marks_ns[PLAN_T_END] - r.marks_ns[PLAN_T_EXEC] < 50 * NS_PER_S,
          say(&r, e));
    t.argv = many;
    t.limits.pids = 1000;
    e = run_try(c, &t, CLIENT_PATIENCE_MS, &r);
    check("400 children with sessions of their own are gone with the main process",
          clean_exit(&r, e, 0) && r.pids_peak > 300, say(&r, e));
    t.argv = files;
    t.limits = (struct plan_limits){.nofile = 99, .file_bytes = 12345678, .pids = 50};
    e = run_try(c, &t, CLIENT_PATIENCE_MS, &r);
    check("resource limits",
          clean_exit(&r, e, 0) && strstr(output, "CORE 1 1\n") &&
              strstr(output, "NOFILE 99 99\n") && strstr(output, "FSIZE 12345678 12345678\n") &&
              strstr(output, "STACK 8388608 67108864\n") && strstr(output, "NPROC 66 66\n") &&
              strstr(output, "AS -1 -1\n"),
          say(&r, e));
}

static void check_space(struct client *c)
{
    struct plan_record r;
    const char *const fill[] = {
        "/bin/sh", "-c",
        "head -c 200m /dev/zero > /tmp/x; head -c 200m /dev/zero > "
        "/dev/shm/x; df -k /tmp | tail -1;"
        "df -k /dev/shm | tail -1; rm /tmp/x; i=0; while true > /tmp/f$i; do "
        "i=$((i+1)); done; echo $i",
        NULL};
    struct try t = try_of(fill);
    t.limits.memory_bytes = 512 << 20;
    t.limits.tmp_bytes = 4 << 20;
    t.limits.tmp_inodes = 100;
    int e = run_try(c, &t, CLIENT_PATIENCE_MS, &r);
    check("/tmp and /dev/shm have their sizes and inodes",
          !e && !r.error && strstr(output, "No space left") && strstr(output, " 4096 ") &&
              strstr(output, " 65536 ") && strstr(output, "\n99\n"),
          say(&r, e));
}

void check_limits(struct client *c)
{
    check_memory(c);
    check_cpu(c);
    check_processes(c);
    check_space(c);
}

// One sandbox with several executions; SIGNAL reaches all but the shim.
void check_signals(struct client *c)
{
    struct plan_record r, x, s;
    static const char script[] =
        "import os,signal,sys,time\n"
        "r,w=os.pipe()\n"
        "def end(name,status):\n"
        "  def f(*a): os.write(1,name+b'\\n'); os._exit(status)\n"
        "  signal.signal(signal.SIGTERM,f); os.write(1,b'ready\\n')\n"
        "if os.fork()==0:\n"
        "  if os.fork()==0: os.setsid(); end(b'deep',0)\n"
        "  else: end(b'child',0)\n"
        "else: end(b'main',9); signal.pthread_sigmask(signal.SIG_BLOCK,[15]); os.close(w); "
        "os.write(1,b'blocked\\n'); os.read(r,1)\n" // until both others have ended
        "signal.pthread_sigmask(signal.SIG_UNBLOCK,[15])\n"
        "while True: time.sleep(1)\n";
    const char *const trap[] = {"/usr/bin/python3.13", "-c", script, NULL};
    AUTO_CLOSE int out = memory_file();
    struct try t = try_of(trap);
    t.fd[PLAN_FD_STDOUT] = t.fd[PLAN_FD_STDERR] = out;
    uint32_t tag = client_start(c, 0, &t);
    int e = client_wait(c, PLAN_EXECUTED, tag, CLIENT_PATIENCE_MS, &x, NULL);
    wait_for(out, "ready", 3);
    wait_for(out, "blocked", 1);
    int g = e ? e : client_signal(c, x.id, SIGTERM);
    e = client_wait(c, PLAN_END, tag, CLIENT_PATIENCE_MS, &r, NULL);
    slurp(out);
    check("SIGNAL reaches every process, in whatever session; the shim lives to tell the status",
          !g && clean_exit(&r, e, 9) && strstr(output, "main\n") && strstr(output, "child\n") &&
              strstr(output, "deep\n"),
          say(&r, e ? e : g));
    check("SIGNAL to what is over", client_signal(c, x.id, SIGTERM) == -ENOENT, "");
    const char *const burn[] = {
        "/usr/bin/python3.13", "-c",
        "import os,time\nfor k in range(2):\n  t=time.process_time()\n  while "
        "time.process_time()-t<0.3: pass\n  os.write(1,b'turn\\n'); os.read(0,1)\nwhile True: "
        "pass",
        NULL};
    AUTO_CLOSE int to_job = feed(&t, burn);
    t.limits.cpu_ns = 900 * NS_PER_MS;
    AUTO_CLOSE int turns = memory_file();
    t.fd[PLAN_FD_STDOUT] = turns;
    tag = client_start(c, 0, &t);
    fd_close(t.fd[PLAN_FD_STDIN]);
    e = client_wait(c, PLAN_EXECUTED, tag, CLIENT_PATIENCE_MS, &x, NULL);
    wait_for(turns, "turn", 1);
    struct plan_request sample = {.op = PLAN_SAMPLE, .id = x.id};
    g = client_ask(c, &sample, &s);
    check("SAMPLE tells figures of a running job",
          !g && s.cpu_ns > 250000000 && s.cpu_ns < 900000000 && s.memory_peak_bytes > 1 << 20,
          say(&s, g));
    struct plan_request next = {.op = PLAN_EXECUTION, .id = x.id, .limits.cpu_ns = 900 * NS_PER_MS};
    g = client_ask(c, &next, &s);
    e = e ? e : fd_write_all(to_job, "x", 1);
    check("EXECUTION ends one execution with its figures", !g && s.cpu_ns > 200000000, say(&s, g));
    wait_for(turns, "turn", 2);
    g = client_ask(c, &next, &s);
    // what the first has used, with the start of Python, is not in it
    check("and the next begins from 0", !g && s.cpu_ns > 250000000 && s.cpu_ns < 550000000,
          say(&s, g));
    e = e ? e : fd_write_all(to_job, "x", 1);
    e = e ? e : client_wait(c, PLAN_END, tag, CLIENT_PATIENCE_MS, &r, NULL);
    check("the budget is each execution's own", !e && r.flags == PLAN_HIT_CPU, say(&r, e));
}
