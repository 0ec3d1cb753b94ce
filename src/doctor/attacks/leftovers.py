# What the processes that made the sandbox may have left in it: descriptors, variables, IPC objects, keys.
import ctypes
import os

through = []
for name in os.listdir("/proc/self/fd"):
    fd = int(name)
    if fd <= 2:
        continue
    try:
        target = os.readlink(f"/proc/self/fd/{fd}")
    except OSError:
        continue  # the listing's own
    if not target.startswith(("/proc/", "/dev/shm/", "/usr/", "/workspace", "socket:", "anon_inode:", "pipe:")):
        through.append(f"descriptor {fd}: {target}")
secret = params.get("secret")
if secret and any(secret in value for value in os.environ.values()):
    through.append("a variable of who started it")
through += ["variable " + name for name in os.environ if name.startswith(("SANDBOX_", "ISLE_", "SSH_", "AWS_"))]
libc = ctypes.CDLL(None, use_errno=True)
if params.get("shm_key") and libc.shmget(params["shm_key"], 1, 0) >= 0:
    through.append("shared memory of the host")
for name in ("shm", "sem", "msg"):
    with open("/proc/sysvipc/" + name) as f:
        if len(f.readlines()) > 1:
            through.append("sees System V objects: " + name)
if os.uname().nodename == params.get("hostname"):
    through.append("the host's name")
return through
