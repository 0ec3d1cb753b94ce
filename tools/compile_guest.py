"""compile_guest.py ROOT SOURCE OUTPUT: compiles a wrapper with the Python of the runtime root.

Its bytecode is that interpreter's own, so a job starts without compiling anything. The root's Python runs with the
root's loader and libraries: it may be newer than this machine's, and nothing here needs to be root.
"""

from __future__ import annotations

import pathlib
import subprocess
import sys

CODE = "import py_compile, sys; py_compile.compile(*sys.argv[1:3], dfile=sys.argv[3], doraise=True, optimize=0)"


def main() -> int:
    root, source, output = map(pathlib.Path, sys.argv[1:4])
    python = root / "usr/bin/python3.13"
    loaders = list((root / "usr/lib64").glob("ld-linux-*")) or list((root / "usr/lib").glob("ld-linux-*"))
    libraries = sorted({str(p.parent) for p in (root / "usr/lib").glob("*-linux-gnu/libc.so.6")})
    if not python.exists() or not loaders or not libraries:
        print(f"{root} is no runtime root. Run ./bootstrap setup first, or give another: meson -Druntime_root=FOLDER")
        return 1
    done = subprocess.run(
        [loaders[0], "--library-path", ":".join(libraries), python, "-s", "-c", CODE]
        + [str(source), str(output), f"/usr/lib/isle/{source.name}"],
        env={"PYTHONHOME": str(root / "usr"), "LC_ALL": "C.UTF-8"},
        check=False,
    )
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
