// Locks on parts of files: kernel memory that no group counts (launcher/locks.c).
#include "base/fd.h"
#include "checks.h"

#include <errno.h>
#include <string.h>

// More than the launcher allows, and enough that the host's figure for such memory moves, whatever
// others give back meanwhile. In many files, each a little at a time: a file's list is searched
// from its begin, and on a busy host a job has little processor time until its end.
void check_locks(struct client *c)
{
    static const char many[] = "import fcntl,os,time\nif not os.fork(): time.sleep(600)\n"
                               "F=[open(f'/workspace/l{k}','w') for k in range(500)]\n"
                               "for at in range(0,2000,200):\n"
                               "  for f in F:\n"
                               "    for i in range(at,at+200): fcntl.lockf(f,fcntl.LOCK_EX,1,2*i)\n"
                               "time.sleep(600)",
                      few[] = "import fcntl,time\nf=open('/workspace/l','w')\n"
                              "for i in range(2000): fcntl.lockf(f,fcntl.LOCK_EX,1,2*i)\n"
                              "time.sleep(0.4)";
    struct plan_record r, parked;
    uint32_t id = 0; // one that waits has none, and no program
    int e = client_prepare(c, &id, &parked);
    check("another waits", !e, strerror(-e));
    e = run_python(c, few, &r);
    check("a job with some thousand locks", clean_exit(&r, e, 0), say(&r, e));
    const char *const argv[] = {"/usr/bin/python3.13", "-c", many, NULL};
    struct try t = try_of(argv);
    e = run_try(c, &t, 4 * CLIENT_PATIENCE_MS, &r);
    check("a job with too many locks is ended, as at its memory limit",
          !e && r.flags == PLAN_HIT_MEMORY && !r.error, say(&r, e));
    struct plan_request kill_it = {.op = PLAN_KILL, .id = id};
    e = client_ask(c, &kill_it, &r);
    e = e ? e : client_wait(c, PLAN_END, parked.tag, CLIENT_PATIENCE_MS, &r, NULL);
    check("and the other still waited", !e && r.flags == PLAN_KILLED, say(&r, e));
}
