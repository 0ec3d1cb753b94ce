"""Runs a command that shares the host with others as little as possible: python3 tools/apart.py COMMAND...

It has a network (loopback only), System V objects, mounts, /var/tmp and /dev/shm of its own, so that two test sessions
can run side by side: their listeners do not meet, and neither sees the other's files. Processes, control groups and
isle's lock files remain the host's: instances tell each other apart by those.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import pathlib
import socket
import struct
import subprocess
import sys
import tempfile

CLONE_NEWNS, CLONE_NEWIPC, CLONE_NEWNET = 0x20000, 0x8000000, 0x40000000
MS_NOSUID, MS_NODEV, MS_BIND, MS_REC, MS_PRIVATE = 2, 4, 0x1000, 0x4000, 0x40000
SIOCSIFFLAGS = 0x8914

libc = ctypes.CDLL(None, use_errno=True)


def must(status: int, what: str) -> None:
    if status:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")


def mount(source: str, target: str, kind: str | None, flags: int) -> None:
    names = [text.encode() if text is not None else None for text in (source, target, kind)]
    must(libc.mount(*names, ctypes.c_ulong(flags), None), f"mount {target}")


def leave(folder: str) -> None:
    """In the child, before it executes the command."""
    must(libc.unshare(CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWNET), "unshare")
    mount("none", "/", None, MS_REC | MS_PRIVATE)
    mount(folder, "/var/tmp", None, MS_BIND)
    mount("tmpfs", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        fcntl.ioctl(s, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", 0x41))  # up, running


def main(command: list[str]) -> int:
    # On the disk that /var/tmp is on: what jobs write there must not count as memory.
    folder = pathlib.Path(tempfile.mkdtemp(prefix="isle-apart-", dir="/var/tmp"))
    folder.chmod(0o1777)
    try:
        return subprocess.run(command, check=False, preexec_fn=lambda: leave(str(folder))).returncode
    finally:
        # Not Python's, whose stack a tree that a failed test leaves may be deeper than.
        subprocess.run(["rm", "-rf", "--one-file-system", folder], check=False)


if __name__ == "__main__":
    status = main(sys.argv[1:])
    sys.exit(128 - status if status < 0 else status)
