# Another user, a capability, a set-id file.
import ctypes
import os

through = []
libc = ctypes.CDLL(None, use_errno=True)
status = dict(line.split(":", 1) for line in open("/proc/self/status") if ":" in line)
for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
    if int(status[name], 16):
        through.append(f"{name} {status[name].strip()}")
if status["NoNewPrivs"].strip() != "1" or status["Seccomp"].strip() != "2":
    through.append("no_new_privs or the filter is missing")
try:  # files of /proc/sys belong to the host's root, whoever that is here
    if os.stat("/proc/sys/kernel/ostype").st_uid in (0, os.getuid()):
        through.append("is root of the host")
except OSError:
    pass
for call in ("setuid", "seteuid", "setgid", "setegid"):
    if getattr(libc, call)(0) == 0:
        through.append(call + "(0)")
if libc.setgroups(1, ctypes.byref(ctypes.c_uint(0))) == 0:
    through.append("setgroups")
path = params.get("workspace", "/workspace") + "/set-id"
with open(path, "w"):
    pass
for mode in (0o4755, 0o2755):
    try:
        os.chmod(path, mode)
        through.append(f"chmod {mode:o}")
    except OSError:
        pass
return through
