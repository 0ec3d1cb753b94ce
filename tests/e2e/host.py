"""What a killed `isle run` leaves on the host: by lock file, uid range, control group, folder and mount.

Instances of others may run meanwhile. An instance is ours when its lock file names one of our data folders
(src/start/instance.c); a process is ours when its uid lies in the range of such an instance.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import pathlib
import signal
import time

import harness
import leftovers

LOCK_DIR = harness.LOCK_DIR
RANGE = 65536


@dataclasses.dataclass(frozen=True)
class Instance:
    number: int
    uid_base: int
    data: str


def instances(data: list[pathlib.Path]) -> list[Instance]:
    """Those whose lock file has a text that names one of the data folders: alive, or with leftovers."""
    found = []
    for path in LOCK_DIR.glob("*.lock"):
        with contextlib.suppress(OSError, ValueError):
            head, _, folder = path.read_text(errors="replace").partition("\n")
            if folder and pathlib.Path(folder) in data:
                found.append(Instance(int(path.stem), int(head.split()[3]), folder))
    return found


def nobody_elses(known: list[Instance], data: list[pathlib.Path]) -> list[Instance]:
    """Of instances that were ours: those whose number has not been taken by somebody else meanwhile."""
    now = instances(data)
    return [i for i in known if i in now or leftovers.lock_is_free(str(i.number))]


def status_of(pid: int) -> dict[str, str]:
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as f:
            return dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)
    except OSError:
        return {}


def sleeps(pid: int) -> bool:
    """No thread of it has anything to do. One that was woken and has had no processor yet does not sleep."""
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/stat", encoding="utf-8", errors="replace") as f:
                if f.read().rpartition(")")[2].split()[0] != "S":
                    return False
    return True


def children(pid: int) -> list[int]:
    """Of a single-threaded process."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="utf-8") as f:
            return [int(word) for word in f.read().split()]
    except OSError:
        return []


def below(pid: int) -> list[int]:
    """All descendants that can be reached from pid."""
    found, todo = [], [pid]
    while todo:
        more = children(todo.pop())
        found += more
        todo += more
    return found


def runs_below(pid: int, name: str) -> bool:
    return any(status_of(p).get("Name") == name for p in below(pid))


def processes_in(ranges: set[int]) -> list[int]:
    """Processes (zombies aside) whose uid lies in a range that begins at one of these."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            s = status_of(int(entry))
            if s and not s["State"].startswith("Z"):
                uid = int(s["Uid"].split()[0])
                if any(base <= uid < base + RANGE for base in ranges):
                    found.append(int(entry))
    return found


def job_groups(numbers: set[int]) -> list[str]:
    """Groups that the launcher made for jobs."""
    return [
        str(group)
        for mount in leftovers.cgroup_mounts()
        for number in numbers
        for group in (mount / "isle" / str(number)).glob("*/")
        if group.name != "service"
    ]


def workspaces(data: list[pathlib.Path]) -> list[str]:
    return [str(w) for d in data for w in [*d.glob("*/once/*"), *d.glob("*/kept/*")]]


def litter(data: pathlib.Path) -> list[str]:
    """What is in a data folder but the empty folders that stay for the next owner of a number."""
    empty = ("", "once", "kept")
    return [
        str(p)
        for p in data.rglob("*")
        if not (p.is_dir() and p.relative_to(data).as_posix().partition("/")[2] in empty)
    ]


def mounts_of(data: list[pathlib.Path]) -> list[str]:
    with open("/proc/self/mountinfo", encoding="utf-8") as f:
        return [line for line in f if any(str(d) in line for d in data)]


def kill(pid: int | None) -> None:
    if pid:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def until(what, seconds: float):
    """Waits for a true answer, looking often: seconds it took, or None."""
    begin = time.monotonic()
    while True:
        late = time.monotonic() - begin > seconds * harness.SLOW  # as in harness.until()
        if what():
            return time.monotonic() - begin
        if late:
            return None
        time.sleep(0.002)
