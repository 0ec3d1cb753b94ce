"""What a service stands on, taken away from it alone: the host and other instances notice nothing."""

from __future__ import annotations

import contextlib
import pathlib
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator

import harness
import variants
from service import EXECUTE, Service

# A process that joined a user namespace has all power in it until it executes something.
SAY = """
import ctypes, os, sys
pid, path, value = sys.argv[1:]
libc = ctypes.CDLL(None, use_errno=True)
if libc.setns(os.open(f"/proc/{pid}/ns/user", os.O_RDONLY), 0x10000000):
    raise OSError(ctypes.get_errno(), "setns")
with open(path) as f:
    print(f.read().strip())
with open(path, "w") as f:
    f.write(value)
"""


@contextlib.contextmanager
def without_namespaces(s: Service, kind: str) -> Iterator[None]:
    """No process of the instance can make a namespace of this kind ("mnt", "user", ...): every launch fails."""
    knob = f"/proc/sys/user/max_{kind}_namespaces"  # of the user namespace that looks at it

    def say(value: str) -> str:
        words = [sys.executable, "-c", SAY, str(s.service_pid), knob, value]
        return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True, timeout=20).stdout.strip()

    before = say("0")
    try:
        yield
    finally:
        if s.process and s.process.poll() is None:
            say(before)


# Descriptors: a process that is of no user namespace of ours has limits that only its own may change.
LIMIT = """
import ctypes, os, resource, sys
pid, extra = (int(word) for word in sys.argv[1:])
used = len(os.listdir(f"/proc/{pid}/fd"))
libc = ctypes.CDLL(None, use_errno=True)
if libc.setns(os.open(f"/proc/{pid}/ns/user", os.O_RDONLY), 0x10000000):
    raise OSError(ctypes.get_errno(), "setns")
before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
resource.prlimit(pid, resource.RLIMIT_NOFILE, (used + extra, before[1]))
print("limited", flush=True)
sys.stdin.read()
resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
"""


@contextlib.contextmanager
def few_descriptors(pid: int, extra: int) -> Iterator[None]:
    """The process can have so many more than it has."""
    words = [sys.executable, "-c", LIMIT, str(pid), str(extra)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as p:
        assert p.stdout.readline() == "limited\n"
        try:
            yield
        finally:
            p.stdin.close()
            assert p.wait(20) == 0


def run_until_failed(s: Service, tries: int = 20) -> dict | None:
    """Jobs whose sandbox was prepared before still run, and rightly. The first that fails; None: refused by 503."""
    for _ in range(tries):
        begin = time.monotonic()
        a = s.post(EXECUTE, {"language": "python", "code": "print('ran')"})
        assert time.monotonic() - begin < 20 * harness.SLOW
        if a.status == 503:
            return None
        if not a.data["success"]:
            return a.data
        assert a.data["stdout"] == "ran\n", a.data
    raise AssertionError("every job ran")


@contextlib.contextmanager
def on_small_disk(megabytes: int, settings: dict[str, str]) -> Iterator[tuple[Service, pathlib.Path]]:
    """A service whose data folder is a file system of its own, and a file there that may grow until it is full."""
    with variants.folder("isle-small-") as folder:
        folder.chmod(0o755)
        s = Service(folder, settings)
        options = f"size={megabytes}m,mode=0755"
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "isle-small", s.data], check=True, timeout=20)
        try:
            variants.give(s.data)
            s.start()
            yield s, s.data / "filler"
            s.stop()
        finally:
            s.abandon()
            subprocess.run(["umount", "-l", s.data], check=True, timeout=20)


def fill(filler: pathlib.Path) -> None:
    with filler.open("wb", buffering=0) as f, contextlib.suppress(OSError):
        while f.write(b"\0" * (64 << 10)):
            pass


def store_file(s: Service) -> pathlib.Path:
    files = [p for p in s.data.glob("*/store/*") if p.open("rb").read(15) == b"SQLite format 3"]
    assert len(files) == 1, files
    return files[0]


def backdate(s: Service, ids: list[str], end_ms: int) -> None:
    """Sessions, as if they had been made long ago."""
    with sqlite3.connect(store_file(s)) as db:
        for ident in ids:
            db.execute("UPDATE sessions SET expires_ms = ? WHERE CAST(id AS TEXT) = ?", (end_ms, ident))


def add_revoked_keys(s: Service, n: int) -> None:
    """Older ones than all that are there."""
    with sqlite3.connect(store_file(s)) as db:
        db.execute("UPDATE keys SET seq = seq + ?", (n,))
        db.executemany(
            "INSERT INTO keys (seq, id, team, name, salt, hash, admin, created_ms, revoked_ms, used_ms)"
            " VALUES (?, ?, CAST('old' AS BLOB), CAST('old' AS BLOB), x'00', x'00', 0, 1, 2, 0)",
            [(i, b"%016x" % i) for i in range(1, n + 1)],
        )
