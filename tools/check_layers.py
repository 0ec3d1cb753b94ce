"""Checks the direction of includes: a folder of src/ includes only itself and what LAYERS allows it.

The table is the architecture. Adding a name to a row is a decision; leaving the table as it is and moving the code
is the usual answer.
"""

from __future__ import annotations

import pathlib
import re
import sys

SRC = pathlib.Path(__file__).resolve().parent.parent / "src"

LAYERS = {
    folder: set(below.split())
    for folder, below in {
        "base": "",
        # towards the kernel
        "plan": "base",
        "kernel": "base plan",
        "guest": "base plan kernel",
        "launcher": "base plan kernel guest",  # what the shim tells it, the filters' numbers
        "host": "base kernel",
        "start": "base plan kernel host",
        # towards the user
        "codec": "base",
        "io": "base",
        "http": "base codec io",  # carries requests, and knows nothing of jobs
        "conf": "base",
        "model": "base plan codec io conf",
        "workspace": "base plan kernel codec io conf model",
        "runtime": "base plan codec io conf model",
        "job": "base plan codec io conf model workspace runtime",
        # the service's parts
        "queue": "base",
        "agent": "base codec model",
        "tools": "base codec model",  # saved tools and workflow nodes: what they declare, and whether values fit
        "store": "base codec io model",
        "doctor": "base plan host start codec io conf model runtime job",
        "log": "base codec",
        "serve": "base plan codec io conf model workspace runtime job queue agent tools store log doctor",
        "api": "base codec io http conf model workspace job queue agent tools store log serve",
        # the front: cli includes guest for the names of system calls
        "cli": "base plan guest host start codec io conf model workspace runtime job doctor",
        "client": "base codec model conf cli",  # the program that speaks to a service
        "app": "base plan kernel start codec io http conf model workspace runtime job queue store log doctor serve api"
        " cli",
    }.items()
}

INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.M)


def main() -> int:
    wrong = []
    for path in sorted(SRC.rglob("*.[chS]")):
        own = path.relative_to(SRC).parts[0]
        where = path.relative_to(SRC.parent)
        if own not in LAYERS:
            wrong.append(f"{where}: folder {own} is in no row of tools/check_layers.py")
            continue
        for name in INCLUDE.findall(path.read_text()):
            folder = name.split("/")[0] if "/" in name else own
            if folder == own or folder in LAYERS[own]:
                continue
            if folder not in LAYERS:
                continue  # made at build time, or of a library
            wrong.append(f'{where}: {own} may not include "{name}"')
    print("\n".join(wrong) or "includes point the right way")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
