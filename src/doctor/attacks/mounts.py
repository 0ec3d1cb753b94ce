# Mounts, roots and namespaces.
import ctypes
import os
import platform

through = []
workspace = params.get("workspace", "/workspace").encode()
libc = ctypes.CDLL(None, use_errno=True)
NEW = {
    "user": 0x10000000,
    "mount": 0x00020000,
    "network": 0x40000000,
    "pid": 0x20000000,
    "ipc": 0x08000000,
    "cgroup": 0x02000000,
}
for name, flag in NEW.items():
    pid = os.fork()
    if pid == 0:
        os._exit(1 if libc.unshare(flag) == 0 else 0)
    if os.waitpid(pid, 0)[1]:
        through.append(f"unshare: a {name} namespace")
if libc.mount(b"tmpfs", workspace, b"tmpfs", 0, None) == 0:
    through.append("mount")
if libc.mount(None, b"/usr", None, 0x1020, None) == 0:  # MS_REMOUNT | MS_BIND
    through.append("remount of /usr for writing")
if libc.umount2(b"/proc", 2) == 0:
    through.append("umount of /proc")
if libc.chroot(workspace) == 0:
    through.append("chroot")
number = {"open_tree": 428, "fsopen": 430, "pivot_root": 155 if platform.machine() == "x86_64" else 41}
calls = {"open_tree": (-100, b"/usr", 1), "fsopen": (b"tmpfs", 0), "pivot_root": (b".", b".")}
for name, arguments in calls.items():
    if libc.syscall(number[name], *arguments) >= 0:
        through.append(name)
for name in ("mnt", "user", "net", "pid"):
    for pid in ("1", "self"):
        try:
            fd = os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY)
        except OSError:
            continue
        if libc.setns(fd, 0) == 0:
            through.append(f"setns to {name} of {pid}")
        os.close(fd)
return through
