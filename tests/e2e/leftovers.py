"""What isle left on the host: processes, groups, folders, and all that must be as it was before."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import pathlib
import re
import time
from collections.abc import Callable
from typing import ClassVar

import variants
from canaries import Canary
from harness import LOCK_DIR, SHARED_HOST, Isle, until

# ---------------------------------------------------------------------------------------------------------
# Processes and groups


@dataclasses.dataclass(frozen=True, order=True)
class Process:
    pid: int
    ppid: int = dataclasses.field(compare=False)
    uid: int
    state: str = dataclasses.field(compare=False)
    name: str


def processes() -> dict[int, Process]:
    found = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/status", encoding="utf-8", errors="replace") as f:
                fields = dict(line.split(":", 1) for line in f if ":" in line)
        except OSError:
            continue
        found[int(entry)] = Process(
            int(entry),
            int(fields["PPid"]),
            int(fields["Uid"].split()[0]),
            fields["State"].split()[0],
            fields["Name"].strip(),
        )
    return found


# Uids that people and services have are below; what is above belongs to instances (src/start/range.c).
UID_FLOOR = int(os.environ.get("ISLE_TEST_UID_FLOOR", "200000"))


def of_instance(uid: int) -> bool:
    """An instance's uid, or that of the account which does nothing but run isle."""
    return uid >= UID_FLOOR or (variants.Session.account is not None and uid == variants.Session.account.uid)


# Fronts of services that run on while tests look (service.py).
EXPECTED: set[int] = set()


def ancestors(pid: int, table: dict[int, Process]) -> list[int]:
    found = []
    while pid in table and pid not in found:
        found.append(pid)
        pid = table[pid].ppid
    return found


def of_others() -> list[int]:
    """Where the ids of host root's instances begin that a lock file gives to a data folder of nobody here."""
    found = []
    for path in pathlib.Path("/run/isle").glob("*.lock"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            head, _, folder = path.read_text(errors="replace").partition("\n")
            if folder and not any(folder.startswith(made) for made in variants.FOLDERS):
                found.append(int(head.split()[3]))
    return found


def left_processes() -> list[Process]:
    """Processes under an instance's uid without a living `isle` of somebody else above them.

    A running instance hangs below its front; whoever reaches this test program or pid 1 without passing
    such a front was left behind.
    """
    table = processes()
    me = os.getpid()
    left = []
    elsewhere = of_others() if SHARED_HOST else []  # their jobs without a sandbox may outlive a launcher for a while
    for p in table.values():
        if not of_instance(p.uid) or (p.state == "Z" and SHARED_HOST):
            continue
        if any(base <= p.uid < base + 65536 for base in elsewhere):
            continue
        if EXPECTED.intersection(ancestors(p.pid, table)):
            continue
        at = p
        while of_instance(at.uid) and at.ppid in table:
            at = table[at.ppid]
        foreign = at.pid not in (1, me) and not of_instance(at.uid)
        if foreign:
            # a front: ours are over when this is asked, so an `isle` below us is a leftover as well
            up = at
            while up.pid not in (0, 1, me) and up.ppid in table:
                up = table[up.ppid]
            foreign = up.pid != me
        if not foreign:
            left.append(p)
    return left


def cgroup_mounts() -> list[pathlib.Path]:
    with open("/proc/self/mountinfo", encoding="utf-8") as f:
        rows = [line.split(" - ") for line in f]
    return [pathlib.Path(head.split()[4]) for head, tail in rows if tail.split()[0] in ("cgroup", "cgroup2")]


def instance_groups() -> list[pathlib.Path]:
    """Every group folder isle/K on the host, or of the account."""
    bases = variants.Session.account.groups if variants.Session.account else cgroup_mounts()
    return [d for base in bases if (base / "isle").is_dir() for d in (base / "isle").iterdir() if d.is_dir()]


def locked() -> set[str]:
    """Device and inode of every locked file. It takes no lock to see that, which would disturb a start."""
    with open("/proc/locks", encoding="utf-8") as f:
        return {word for line in f for word in line.split() if word.count(":") == 2}


def identity(path: str | os.PathLike) -> str:
    """As /proc/locks has it; empty where nothing is."""
    with contextlib.suppress(OSError):
        st = os.lstat(path)
        return f"{os.major(st.st_dev):02x}:{os.minor(st.st_dev):02x}:{st.st_ino}"
    return ""


def lock_is_free(instance: str) -> bool:
    """Nobody holds instance K: its service and its launcher are gone."""
    return identity(LOCK_DIR / f"{instance}.lock") not in locked()


def lock_holders(instance: str) -> list[str]:
    """Who has instance K's lock file open, for a message: what /proc/locks names has ended often, or is a front."""
    path = str(LOCK_DIR / f"{instance}.lock")
    found = []
    for pid, p in processes().items():
        with contextlib.suppress(OSError):
            if any(os.readlink(f"/proc/{pid}/fd/{fd}") == path for fd in os.listdir(f"/proc/{pid}/fd")):
                with open(f"/proc/{pid}/wchan") as f:
                    found.append(f"{instance}: {p.name} {pid}, child of {p.ppid}, uid {p.uid}, {p.state} {f.read()}")
    return found


def left_groups() -> list[str]:
    """Groups without an owner. One whose lock files are elsewhere (in a container) has locked one of its groups."""
    groups = instance_groups()
    held = locked()
    alive = {g.name for g in groups if identity(g) in held}
    return [str(g) for g in groups if g.name not in alive and lock_is_free(g.name) and g.is_dir()]


def left_folders(data: pathlib.Path) -> list[str]:
    """What lies in a data folder after its last instance ended."""
    found = []
    for at, dirs, files in os.walk(data):
        for name in files:
            found.append(os.path.join(at, name))
        for name in dirs:
            path = os.path.join(at, name)
            if os.path.basename(at) in ("once", "kept"):
                found.append(path)
    return [f for f in found if not f.endswith(".lock")]


# ---------------------------------------------------------------------------------------------------------
# The host's state

_VOLATILE = re.compile(
    r"/(random/|fs/(dentry-state|file-nr|inode-nr|inode-state|aio-nr|quota)|kernel/ns_last_pid|"
    r"kernel/perf_event_max_sample_rate|kernel/perf_cpu_time_max_percent|vm/stat_refresh|"
    r"net/netfilter/nf_conntrack_count|kernel/pty/nr|fs/binfmt_misc|sunrpc|debug/exception)"
)


def sysctls() -> dict[str, bytes]:
    values = {}
    for at, _, files in os.walk("/proc/sys"):
        for name in files:
            path = f"{at}/{name}"
            if _VOLATILE.search(path):
                continue
            with contextlib.suppress(OSError), open(path, "rb") as f:
                values[path] = f.read(4096)
    return values


def modules() -> set[str]:
    try:
        with open("/proc/modules", encoding="utf-8") as f:
            return {line.split()[0] for line in f}
    except FileNotFoundError:
        return set()


def host_keys() -> list[str]:
    """Keys of instance uids, and any that a payload named."""
    rows = []
    with open("/proc/keys", encoding="utf-8") as f:
        for line in f:
            cells = line.split()
            if of_instance(int(cells[5])) or "atk" in line:
                rows.append(line.strip())
    return rows


def sysv_objects() -> set[tuple[str, str, str]]:
    found = set()
    for kind in ("shm", "sem", "msg"):
        with contextlib.suppress(FileNotFoundError), open(f"/proc/sysvipc/{kind}") as f:
            next(f)
            for line in f:
                key, ident = line.split()[:2]
                found.add((kind, key, ident))
    return found


def net_namespaces() -> set[str]:
    found = set()
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError):
                found.add(os.readlink(f"/proc/{entry}/ns/net"))
    return found


def mounts() -> list[str]:
    with open("/proc/self/mountinfo", encoding="utf-8") as f:
        return [line.split(" ", 1)[1] for line in f]


def tree_state(*roots: str) -> dict[str, tuple[int, int]]:
    """Name, size and mtime of everything below."""
    state = {}
    for root in roots:
        for at, dirs, files in os.walk(root):
            for name in dirs + files:
                path = os.path.join(at, name)
                with contextlib.suppress(OSError):
                    st = os.lstat(path)
                    state[path] = (st.st_size, st.st_mtime_ns)
    return state


def pty_count() -> int:
    with open("/proc/sys/kernel/pty/nr") as f:
        return int(f.read())


def zombies() -> int:
    return sum(1 for p in processes().values() if p.state == "Z" and of_instance(p.uid))


def inodes_used(path: str | os.PathLike) -> int:
    s = os.statvfs(path)
    return s.f_files - s.f_ffree


@dataclasses.dataclass
class Picture:
    """What must be the same before and after."""

    sysctls: dict[str, bytes]
    modules: set[str]
    keys: list[str]
    ipc: set
    mounts: list[str]
    etc: dict
    inodes: int
    ptys: int

    @classmethod
    def take(cls, data: pathlib.Path, sysctl_values: dict[str, bytes] | None = None) -> Picture:
        return cls(
            sysctls() if sysctl_values is None else sysctl_values,
            modules(),
            host_keys(),
            sysv_objects(),
            mounts(),
            {} if SHARED_HOST else tree_state("/etc", "/var/spool/cron", "/dev/shm", "/dev/mqueue"),
            inodes_used(data),
            pty_count(),
        )


def _ours(mount_line: str) -> bool:
    return "isle" in mount_line or "atk" in mount_line


def _mounts_differ(before: Picture) -> list[str]:
    now = mounts()
    new = [m for m in now if m not in before.mounts]
    gone = [m for m in before.mounts if m not in now]
    if SHARED_HOST:
        new = [m for m in new if _ours(m)]
        gone = []
    return new + gone


def of_services(namespaces: set[str]) -> set[str]:
    """Those of jobs that a service which runs on has prepared."""
    if not namespaces or not EXPECTED:
        return set()
    table = processes()
    found = set()
    for pid in table:
        if EXPECTED.intersection(ancestors(pid, table)):
            with contextlib.suppress(OSError):
                found.add(os.readlink(f"/proc/{pid}/ns/net"))
    return found


def _netns_left(before: set[str]) -> set[str]:
    now = net_namespaces() - before
    if not SHARED_HOST:
        return now - of_services(now)
    # Another instance's namespaces come and go: only those that nobody's front explains count.
    mine = set()
    for p in left_processes():
        with contextlib.suppress(OSError):
            mine.add(os.readlink(f"/proc/{p.pid}/ns/net"))
    return now & mine


@dataclasses.dataclass
class Host:
    """A picture of the host, its canaries, and the checks that follow every attack."""

    isle: Isle
    canary: Canary | None = None
    noisy: frozenset[str] = frozenset()

    # A thousand files: those of the last check serve the next test as well.
    last_sysctls: ClassVar[dict[str, bytes] | None] = None

    def __post_init__(self) -> None:
        self.before = Picture.take(self.isle.data, Host.last_sysctls)
        self.netns = net_namespaces()
        self.zombies = zombies()

    def check(self) -> None:
        """Checks 2, 3, 4 and 7 of the catalogue; raises AssertionError with everything that is off."""
        wrong: list[str] = []

        def gone(name: str, what: Callable[[], list | set], seconds: float = 5) -> None:
            if not until(lambda: not what(), seconds):
                wrong.append(f"{name}: {list(what())[:8]}")

        gone("processes left", Persisting(left_processes))
        if not SHARED_HOST:  # when all processes of a start are killed together, its groups stay until the next
            gone("groups left", left_groups)
        gone("files left in the data folder", lambda: left_folders(self.isle.data))
        gone("mounts differ", lambda: _mounts_differ(self.before))
        gone("net namespaces left", Persisting(lambda: list(_netns_left(self.netns))))
        gone(
            "keys left",
            lambda: (
                [k for k in host_keys() if k not in self.before.keys]
                if not SHARED_HOST
                else [k for k in host_keys() if "atk" in k]
            ),
        )
        gone("SysV objects left", lambda: sysv_objects() ^ self.before.ipc)
        now = Picture.take(self.isle.data)
        Host.last_sysctls = now.sysctls
        for path, value in now.sysctls.items():
            if path not in self.noisy and self.before.sysctls.get(path) not in (None, value):
                wrong.append(f"{path} changed: {self.before.sysctls[path]!r} -> {value!r}")
        if now.modules - self.before.modules:
            wrong.append(f"modules loaded: {now.modules - self.before.modules}")
        if now.ptys != self.before.ptys and not SHARED_HOST:
            wrong.append(f"ptys {self.before.ptys} -> {now.ptys}")
        if not SHARED_HOST:
            changed = now.etc.items() ^ self.before.etc.items()
            if changed:
                wrong.append(f"files changed: {sorted(str(k) for k in changed)[:8]}")
            if now.inodes - self.before.inodes > 5000:  # compilers beside make some thousands, F07 more
                wrong.append(f"inodes {self.before.inodes} -> {now.inodes}")
        if not SHARED_HOST:
            gone("zombies", lambda: ["more"] if zombies() > self.zombies else [])
        if self.canary:
            wrong += self.canary.differences()
        assert not wrong, "\n".join(wrong)


class Persisting:
    """What was there at the first look and at every look since: others' short lives do not count."""

    def __init__(self, look: Callable[[], list]) -> None:
        self.look = look
        self.rest: set | None = None

    def __call__(self) -> list:
        now = set(self.look())
        self.rest = now if self.rest is None else self.rest & now
        return sorted(self.rest)


def nothing_runs(seconds: float = 5) -> bool:
    """No process of an instance is left behind."""
    persisting = Persisting(left_processes)
    return bool(until(lambda: not persisting(), seconds))


def noisy_sysctls() -> frozenset[str]:
    """Values that change by themselves on this host."""
    first = sysctls()
    time.sleep(0.3)
    second = sysctls()
    return frozenset(k for k, v in second.items() if first.get(k) != v)
