// What a job sees, and what its filter answers: probed from inside.
#include "base/fd.h"
#include "checks.h"
#include "plan/steps.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

static const char view[] =
    "import os,errno,socket,sys\n"
    "st=dict(l.split(':',1) for l in open('/proc/self/status'))\n"
    "g=lambda k: st[k].split()\n"
    "print('uid',*g('Uid'),'gid',*g('Gid'),'groups',*g('Groups'))\n"
    "print('caps',*[g(k)[0].lstrip('0') or '0' for k in('CapInh','CapPrm','CapEff','CapBnd',"
    "'CapAmb')])\n"
    "print('nnp',g('NoNewPrivs')[0],'seccomp',g('Seccomp')[0])\n"
    "M=[l.split() for l in open('/proc/self/mountinfo')]\n"
    "print('mounts',*sorted(m[4] for m in M if not m[4].startswith(('/proc/','/etc/'))))\n"
    "print('writable',*sorted(m[4] for m in M if 'rw' in m[5].split(',')))\n"
    "print('setid',*[m[4] for m in M if 'nosuid' not in m[5]])\n"
    "print('nodes',*[m[4] for m in M if 'nodev' not in m[5]])\n"
    "print('fds',*sorted(int(x) for x in os.listdir('/proc/self/fd'))[:4],"
    "len(os.listdir('/proc/self/fd')))\n"
    "print('pids',*[p for p in os.listdir('/proc') if p.isdigit()])\n"
    "print('roots',*sorted(os.listdir('/')))\n"
    "def t(n,f):\n"
    "  try: f(); print(n,'OK')\n"
    "  except OSError as e: print(n,errno.errorcode[e.errno])\n"
    "t('shadow',lambda:open('/etc/shadow'))\n"
    "t('usr',lambda:open('/usr/bin/true','r+b'))\n"
    "t('usrnew',lambda:open('/usr/x','w'))\n"
    "t('root',lambda:open('/x','w'))\n"
    "t('dev',lambda:open('/dev/x','w'))\n"
    "t('etc',lambda:open('/etc/passwd','a'))\n"
    "t('packages',lambda:open('/packages/0/x','w'))\n"
    "t('kill1',lambda:os.kill(1,9))\n"
    "t('mem1',lambda:open('/proc/1/mem','rb'))\n"
    "t('sysctl',lambda:open('/proc/sys/kernel/hostname','w'))\n"
    "t('core',lambda:open('/proc/sys/kernel/core_pattern','w'))\n"
    "t('null',lambda:(open('/dev/null','w').write('x'),open('/dev/zero','rb').read(1),"
    "open('/dev/urandom','rb').read(1)))\n"
    "t('shm',lambda:open('/dev/shm/x','w').write('x'))\n"
    "t('tmp',lambda:open('/tmp/x','w').write('x'))\n"
    "t('rename',lambda:(os.makedirs('/workspace/v/b'),open('/workspace/v/b/f','w').close(),"
    "os.rename('/workspace/v/b/f','/workspace/f'),os.link('/workspace/f','/workspace/v/g')))\n"
    "t('exec',lambda:(open('/workspace/x.sh','w').write('#!/bin/sh\\nexit 0\\n'),"
    "os.chmod('/workspace/x.sh',0o755),os.system('/workspace/x.sh') and sys.exit(9)))\n"
    "t('lo',lambda:(lambda s:(s.bind(('127.0.0.1',0)),s.listen(),"
    "socket.create_connection(s.getsockname())))(socket.socket()))\n"
    "t('out',lambda:socket.create_connection(('1.1.1.1',53),2))\n"
    "r=lambda p:open(p).read()\n"
    "print('masked',len(r('/proc/keys')+r('/proc/cmdline')+r('/proc/timer_list')+"
    "r('/proc/partitions')))\n"
    "print('boot',r('/proc/sys/kernel/random/boot_id').strip())\n"
    "print('maxuserns',r('/proc/sys/user/max_user_namespaces').strip(),'host',os.uname().nodename,"
    "'cg',r('/proc/self/cgroup').count(':/\\n')==r('/proc/self/cgroup').count('\\n'),'oom',"
    "r('/proc/self/oom_score_adj').strip())\n"
    "import pwd,time;p=pwd.getpwuid(os.getuid());print('passwd',p.pw_name,p.pw_dir,p.pw_shell)\n"
    "print('name',socket.gethostbyname('clouisle-sandbox'),time.tzname[0],os.umask(0))\n"
    "print('tls',os.path.getsize('/etc/ssl/certs/ca-certificates.crt')>100000)\n"
    "print('code',os.readlink('/code'),os.readlink('/script.sh'))\n"
    "n=0\n"
    "for d,ds,fs in os.walk('/'):\n"
    "  if d.startswith(('/proc','/usr')): ds[:]=[]; continue\n"
    "  n+=any('foreign-marker' in x for x in fs+ds)\n"
    "print('foreign',n)\n";

// Whole lines of the job's answer; without the newline: beginnings of lines.
static const char *const want[] = {
    "uid 1000 1000 1000 1000 gid 1000 1000 1000 1000 groups\n",
    "caps 0 0 0 0 0\n",
    "nnp 1 seccomp 2\n",
    "mounts / /dev /dev/shm /proc /tmp /usr /usr/lib/isle /workspace\n",
    "writable /dev/shm /tmp /workspace\n",
    "setid\n",
    "nodes /dev\n",
    "fds 0 1 2 3 4\n",
    "pids 2\n",
    "roots bin code dev etc lib lib64 packages proc sbin script.sh tmp usr workspace\n",
    "shadow ENOENT\n",
    "usr E",
    "usrnew E",
    "root E",
    "dev E",
    "etc E",
    "packages E",
    "kill1 EPERM\n",
    "mem1 E",
    "sysctl E",
    "core E",
    "null OK\n",
    "shm OK\n",
    "tmp OK\n",
    "rename OK\n",
    "exec OK\n",
    "lo OK\n",
    "out ENETUNREACH\n",
    "masked 0\n",
    "boot 00000000-0000-4000-8000-000000000000\n",
    "maxuserns 0 host clouisle-sandbox cg True oom 500\n",
    "passwd sandbox /workspace /bin/bash\n",
    "name 127.0.0.1 UTC 18\n",
    "tls True\n",
    "code /dev/shm/code /proc/self/fd/3\n",
    "foreign 0\n",
};

static void check_lines(const char *prefix, const char *const *lines, size_t n)
{
    char name[300];
    for (size_t i = 0; i < n; i++) {
        snprintf(name, sizeof name, "%s: %.*s", prefix, (int)strcspn(lines[i], "\n"), lines[i]);
        const char *hit = strstr(output, lines[i]);
        while (hit && hit != output && hit[-1] != '\n') {
            hit = strstr(hit + 1, lines[i]);
        }
        const char *word = strchr(lines[i], ' ');
        char key[64];
        snprintf(key, sizeof key, "%.*s",
                 word ? (int)(word - lines[i]) : (int)strcspn(lines[i], "\n"), lines[i]);
        const char *got = strstr(output, key);
        check(name, hit != NULL, got ? got : "no such line");
    }
}

void check_view(struct client *c)
{
    struct plan_record r;
    AUTO_CLOSE int other = client_make_workspace(c, "kept/other", V0 + 50, false);
    AUTO_CLOSE int marker = openat(other, "w/foreign-marker", O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
    check("another workspace with a marker", marker >= 0, strerror(errno));
    int e = run_python(c, view, &r);
    check("the view job ran", clean_exit(&r, e, 0), say(&r, e));
    check_lines("job sees", want, ARRAY_LEN(want));
    client_remove_workspace(c, "kept/other");
}

static const char calls[] =
    "import os,ctypes,errno,socket,fcntl,struct\n"
    "L=ctypes.CDLL(None,use_errno=True)\n"
    "def sc(n,*a):\n"
    "  r=L.syscall(*[ctypes.c_long(x) if isinstance(x,int) else x for x in a])\n"
    "  print(n,'OK' if r>=0 else errno.errorcode.get(ctypes.get_errno()))\n"
    "def t(n,f):\n"
    "  try: f(); print(n,'OK')\n"
    "  except OSError as e: print(n,errno.errorcode[e.errno])\n"
    "sc('mount',165,b'x',b'/tmp',b'tmpfs',0,0)\n"
    "sc('umount',166,b'/tmp',0)\n"
    "sc('unshare',272,0x10000000)\n"
    "sc('unshare-files',272,0x400)\n"
    "sc('clone-user',56,0x10000011,0,0,0,0)\n"
    "sc('clone-net',56,0x40000011,0,0,0,0)\n"
    "sc('clone3',435,0,0)\n"
    "sc('setns',308,0,0)\n"
    "sc('openat2',437,-100,b'/',0,0)\n"
    "sc('fchmodat2',452,-100,b'/tmp',0o755,0)\n"
    "sc('ptrace',101,16,1,0,0)\n"
    "sc('keyctl',250,0,-3,0)\n"
    "sc('bpf',321,0,0,0)\n"
    "sc('iouring',425,1,0)\n"
    "sc('userfaultfd',323,0)\n"
    "sc('x32',0x40000000+39)\n"
    "sc('unknown',999)\n"
    "sc('personality-aslr',135,0x40000)\n"
    "sc('personality-upper',135,(1<<32)|0x40000)\n"
    "sc('personality-read',135,0xffffffff)\n"
    "sc('prctl-mm',157,35,0,0,0,0)\n"
    "sc('prctl-ptracer',157,0x59616d61,-1,0,0,0)\n"
    "sc('listener',317,1,8,0)\n"
    "sc('fallocate',285,3,0,0,4096)\n"
    "sc('memfd_secret',447,0)\n"
    "sc('sethostname',170,b'x',1)\n"
    "t('vsock',lambda:socket.socket(40,1,0))\n"
    "t('netlink',lambda:socket.socket(16,3,0))\n"
    "t('packet',lambda:socket.socket(17,3,0))\n"
    "t('raw',lambda:socket.socket(2,3,1))\n"
    "t('mptcp',lambda:socket.socket(2,1,262))\n"
    "t('alg',lambda:socket.socket(38,5,0))\n"
    "t('inet-seqpacket',lambda:socket.socket(2,5,0))\n"
    "t('seqpacket',lambda:socket.socket(1,5,0))\n"
    "t('udp',lambda:socket.socket(2,2,0))\n"
    "S=socket.socket()\n"
    "t('attach-filter',lambda:S.setsockopt(1,26,b'x'*16))\n"
    "t('attach-bpf',lambda:S.setsockopt(1,50,0))\n"
    "t('tcp-ulp',lambda:S.setsockopt(6,31,b'tls'))\n"
    "t('nodelay',lambda:S.setsockopt(6,1,1))\n"
    "f=open('/workspace/pol','w')\n"
    "t('suid-chmod',lambda:os.chmod('/workspace/pol',0o4755))\n"
    "t('sgid-fchmod',lambda:os.fchmod(f.fileno(),0o2755))\n"
    "t('suid-open',lambda:os.open('/workspace/p2',os.O_CREAT|os.O_WRONLY,0o4755))\n"
    "t('suid-tmpfile',lambda:os.open('/workspace',os.O_TMPFILE|os.O_WRONLY,0o4755))\n"
    "sc('open-garbage-mode',257,-100,b'/workspace/pol',0,0o6777)\n"
    "t('sgid-mkdir',lambda:os.mkdir('/workspace/p3',0o2755))\n"
    "t('suid-mknod',lambda:os.mknod('/workspace/p4',0o104755))\n"
    "t('chr',lambda:os.mknod('/workspace/p5',0o20666,os.makedev(1,3)))\n"
    "t('whiteout',lambda:os.mknod('/workspace/p6',0o20000,0))\n"
    "t('blk',lambda:os.mknod('/workspace/p7',0o60666,os.makedev(7,0)))\n"
    "t('fifo',lambda:os.mkfifo('/workspace/p8'))\n"
    "t('lease',lambda:fcntl.fcntl(f,fcntl.F_SETLEASE,1))\n"
    "sc('tiocsti',16,0,0x5412,b'x')\n"
    "sc('tiocsti-upper',16,0,(1<<32)|0x5412,b'x')\n"
    "sc('setflags',16,f.fileno(),0x40086602,struct.pack('i',0x10))\n"
    "t('getflags',lambda:fcntl.ioctl(f,0x80086601,struct.pack('q',0)))\n"
    "import resource; "
    "t('rlimit-up',lambda:resource.setrlimit(resource.RLIMIT_MEMLOCK,(1<<40,1<<40)))\n";

static const char *const answers[] = {
    "mount EPERM\n",
    "umount EPERM\n",
    "unshare EPERM\n",
    "unshare-files EPERM\n",
    "clone-user EPERM\n",
    "clone-net EPERM\n",
    "clone3 ENOSYS\n",
    "setns EPERM\n",
    "openat2 ENOSYS\n",
    "fchmodat2 ENOSYS\n",
    "ptrace EPERM\n",
    "keyctl EPERM\n",
    "bpf EPERM\n",
    "iouring ENOSYS\n",
    "userfaultfd EPERM\n",
    "x32 ENOSYS\n",
    "unknown ENOSYS\n",
    "personality-aslr EPERM\n",
    "personality-upper EPERM\n",
    "personality-read OK\n",
    "prctl-mm EPERM\n",
    "prctl-ptracer EPERM\n",
    "listener ENOSYS\n",
    "fallocate ENOTSUP\n",
    "memfd_secret ENOSYS\n",
    "sethostname EPERM\n",
    "vsock EAFNOSUPPORT\n",
    "netlink EAFNOSUPPORT\n",
    "packet EAFNOSUPPORT\n",
    "raw EAFNOSUPPORT\n",
    "mptcp EAFNOSUPPORT\n",
    "alg EAFNOSUPPORT\n",
    "inet-seqpacket EAFNOSUPPORT\n",
    "seqpacket OK\n",
    "udp OK\n",
    "attach-filter EPERM\n",
    "attach-bpf EPERM\n",
    "tcp-ulp EPERM\n",
    "nodelay OK\n",
    "suid-chmod EPERM\n",
    "sgid-fchmod EPERM\n",
    "suid-open EPERM\n",
    "suid-tmpfile EPERM\n",
    "open-garbage-mode OK\n",
    "sgid-mkdir EPERM\n",
    "suid-mknod EPERM\n",
    "chr EPERM\n",
    "whiteout EPERM\n",
    "blk EPERM\n",
    "fifo OK\n",
    "lease EPERM\n",
    "tiocsti EPERM\n",
    "tiocsti-upper EPERM\n",
    "setflags EPERM\n",
};

void check_policy(struct client *c)
{
#if defined(__x86_64__) // the numbers above
    struct plan_record r;
    int e = run_python(c, calls, &r);
    if (r.error || e || output[0] == '\0') {
        check("the policy job ran", false, say(&r, e));
    }
    check_lines("filter", answers, ARRAY_LEN(answers));
    e = run_sh(c, "printf '\\270\\001\\000\\000\\000\\315\\200' >/dev/null; exit 0", &r);
    (void)e;
#else
    (void)c;
    (void)calls;
    (void)answers;
#endif
}
