# Devices, and files of /proc and /sys that change the host. They are opened, never written.
import os
import stat

through = []
node = params.get("workspace", "/workspace") + "/node"
for kind, number in ((stat.S_IFBLK, os.makedev(8, 0)), (stat.S_IFCHR, os.makedev(1, 1))):
    try:
        os.mknod(node, kind | 0o600, number)
        through.append("made a device node")
        os.unlink(node)
    except OSError:
        pass
allowed = {"fd", "full", "null", "ptmx", "pts", "random", "shm", "stderr", "stdin", "stdout", "urandom", "zero"}
through += ["there is /dev/" + name for name in sorted(set(os.listdir("/dev")) - allowed)]
knobs = ["/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sys/vm/overcommit_memory"]
knobs += [
    "/proc/sysrq-trigger",
    "/proc/sys/kernel/hostname",
    "/proc/sys/user/max_user_namespaces",
    "/proc/self/uid_map",
]
for path in [*knobs, "/sys/kernel/uevent_helper", "/sys/fs/cgroup/cgroup.procs", "/dev/kmsg", "/dev/mem"]:
    try:
        os.close(os.open(path, os.O_WRONLY))
        through.append("opened for writing: " + path)
    except OSError:
        pass
return through
