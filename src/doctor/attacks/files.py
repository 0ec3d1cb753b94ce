# Files of the host: a planted secret, the accounts, what lies beside the sandbox.
import os

through = []
secret = params.get("secret_path")
ways = ["", "/proc/1/root", "/proc/self/root/..", "/proc/self/cwd/../..", "/workspace/../.."]
for way in ways if secret else []:
    try:
        with open(way + secret) as f:
            through.append(f"read {way}{secret}: {len(f.read())} bytes")
    except OSError:
        pass
for path in ("/etc/shadow", "/etc/gshadow", "/proc/kcore", "/proc/1/environ", "/proc/1/mem", "/proc/1/maps"):
    try:
        with open(path, "rb") as f:
            f.read(1)
            through.append("read " + path)
    except (OSError, ValueError):
        pass
known = "bin code dev etc lib lib64 packages proc sbin script.sh tmp usr workspace".split()
through += ["there is /" + name for name in os.listdir("/") if name not in known]
return through
