# Processes that are not the job's: to be seen, signalled, read, traced.
import ctypes
import os

through = []
own = {1, os.getpid(), os.getppid()}
for name in os.listdir("/proc"):
    if name.isdigit() and int(name) not in own:
        through.append("sees process " + name)
for pid in [*range(2, 400), params.get("pid", 0)]:
    if pid <= 1 or pid in own:
        continue
    try:
        os.kill(pid, 0)
        through.append(f"can signal process {pid}")
    except OSError:
        pass
libc = ctypes.CDLL(None, use_errno=True)
PTRACE_SEIZE = 0x4206
if libc.ptrace(PTRACE_SEIZE, 1, 0, 0) == 0:
    through.append("traces pid 1")
for path in ("/proc/1/mem", "/proc/1/oom_score_adj", "/proc/1/clear_refs"):
    try:
        os.close(os.open(path, os.O_WRONLY))
        through.append("opened for writing: " + path)
    except OSError:
        pass
try:
    os.setpriority(os.PRIO_PROCESS, 0, -5)
    through.append("raised its priority")
except OSError:
    pass
return through
