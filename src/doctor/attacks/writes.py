# Writes outside of the workspace. The marker's name is looked for from outside afterwards.
import os

through = []
marker = params.get("marker", "isle-self-test")
for folder in ("/", "/usr", "/usr/bin", "/usr/lib/isle", "/etc", "/dev", "/proc", "/packages", "/packages/0"):
    path = os.path.join(folder, marker)
    try:
        with open(path, "w"):
            through.append("made " + path)
    except OSError:
        pass
for path in ("/usr/bin/python3.13", "/usr/lib/isle/python.pyc", "/etc/passwd", "/etc/resolv.conf", "/bin/bash"):
    try:
        os.close(os.open(path, os.O_WRONLY))
        through.append("opened for writing: " + path)
    except OSError:
        pass
return through
