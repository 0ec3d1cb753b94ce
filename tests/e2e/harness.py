"""Runs the real `isle run` and looks at the host afterwards.

Nothing here believes what a job prints about itself: a test asks this module for the exit status, the
SandboxResult (read by a parser that is stricter than json.loads) and the state of the host, which is
compared with a picture taken before.
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import ClassVar

import variants

sys.set_int_max_str_digits(0)  # results keep every digit

ROOT = pathlib.Path(__file__).resolve().parents[2]
ISLE = pathlib.Path(os.environ.get("ISLE", ROOT / "build/src/app/isle"))
# A sanitizer build is several times slower: every time bound of the tests is multiplied.
SLOW = float(os.environ.get("ISLE_TEST_SLOW", "1"))
# On a machine that does other things meanwhile, what those change (mounts, /etc, inodes) is not compared.
SHARED_HOST = os.environ.get("ISLE_TEST_SHARED_HOST", "") == "1"
LONG = os.environ.get("ISLE_LONG", "") == "1"
RUNTIME_ROOT = pathlib.Path(os.environ.get("SANDBOX_RUNTIME_ROOT", "/var/lib/isle/runtime/current"))
LOCK_DIR = variants.RUN_DIR
HOSTNAME = "clouisle-sandbox"

# All tests together: a bomb that gets out of its job stops here. The settings reach the instance's own group.
BOUND_MEMORY_MB = 2560
BOUND_PIDS = 1500


# ---------------------------------------------------------------------------------------------------------
# Strict JSON


class NotStrict(ValueError):
    """Text that a strict reader of RFC 8259 refuses."""


def _no_constant(name: str) -> None:
    raise NotStrict(f"{name} is not JSON")


def _no_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    names = [name for name, _ in pairs]
    if len(set(names)) != len(names):
        raise NotStrict(f"a key twice among {names}")
    return dict(pairs)


def _no_surrogates(value: object) -> None:
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            try:
                item.encode("utf-8")
            except UnicodeEncodeError as e:
                raise NotStrict(f"lone surrogate in {item[:40]!r}") from e
        elif isinstance(item, dict):
            stack.extend(item.keys())
            stack.extend(item.values())
        elif isinstance(item, list):
            stack.extend(item)


sys.set_int_max_str_digits(0)  # numbers keep every digit, also here


def strict_json(data: bytes) -> object:
    """The one JSON value in data. Refuses bad UTF-8, NaN, duplicate keys, lone surrogates, raw controls."""
    try:
        text = data.decode("utf-8")
        value = json.loads(text, parse_constant=_no_constant, object_pairs_hook=_no_duplicates)
    except UnicodeDecodeError as e:
        raise NotStrict(f"not UTF-8: {e}") from e
    except json.JSONDecodeError as e:
        raise NotStrict(f"{e}: {data[:200]!r}") from e
    _no_surrogates(value)
    return value


# ---------------------------------------------------------------------------------------------------------
# The SandboxResult

RESULT_KEYS = [
    "job_id",
    "success",
    "status",
    "reason",
    "result",
    "error",
    "exit_code",
    "signal",
    "stdout",
    "stderr",
    "truncated",
    "artifacts",
    "usage",
    "isolation",
    "packages",
    "metadata",
]
TRUNCATED_KEYS = ["stdout", "stderr", "artifacts"]
USAGE_KEYS = [
    "wall_ms",
    "cpu_ms",
    "memory_peak_bytes",
    "disk_bytes",
    "pids_peak",
    "stdout_bytes",
    "stderr_bytes",
]
ISOLATION_KEYS = ["level", "launcher", "start", "network", "downgrades"]
REASONS = {
    "ok",
    "error",
    "timeout",
    "cpu_limit",
    "memory_limit",
    "disk_limit",
    "result_too_large",
    "artifact",
    "cancelled",
    "policy",
    "install_failed",
    "queue_timeout",
    "caller_timeout",
    "isolation_unavailable",
    "worker_lost",
    "internal",
}


def check_result(r: dict) -> None:
    """The shape that every SandboxResult has, whatever happened."""
    assert list(r) == RESULT_KEYS, list(r)
    assert list(r["truncated"]) == TRUNCATED_KEYS
    assert list(r["usage"]) == USAGE_KEYS
    assert list(r["isolation"]) == ISOLATION_KEYS
    assert re.fullmatch(
        r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}",
        r["job_id"],
    ), r["job_id"]
    assert r["reason"] in REASONS
    assert r["success"] is (r["reason"] == "ok")
    assert r["status"] == {"ok": "completed", "cancelled": "cancelled"}.get(r["reason"], "failed")
    assert r["exit_code"] is None or (type(r["exit_code"]) is int and 0 <= r["exit_code"] <= 255)
    assert r["signal"] is None or (type(r["signal"]) is int and 1 <= r["signal"] <= 64)
    assert r["exit_code"] is None or r["signal"] is None, "an exit code and a signal"
    assert (r["error"] is None) == (r["reason"] == "ok"), r["error"]
    assert r["error"] is None or "\n" not in r["error"], "error is one line"
    assert r["success"] is False or r["exit_code"] == 0
    for name, value in r["usage"].items():
        assert value is None or (type(value) is int and value >= 0), (name, value)
    for name in ("stdout", "stderr"):
        assert type(r[name]) is str and type(r["truncated"][name]) is bool
        if not r["truncated"][name] and "\ufffd" not in r[name]:
            assert len(r[name].encode()) == r["usage"][f"{name}_bytes"], name
    assert r["metadata"]["exit_code"] in (0, 1)
    assert (r["metadata"]["exit_code"] == 0) is r["success"]
    assert r["metadata"]["status"] == r["status"]
    ran = r["isolation"]["level"] != "none"
    assert r["isolation"]["launcher"] == variants.NOW.launcher or not ran
    # tests that bring a host of their own, with downgrades of its own, run in no other variant
    if ran and variants.NOW.changes:
        chosen = ("seccomp_allow", "network_host")  # by who runs isle, not by the host
        lost = [name for name in r["isolation"]["downgrades"] if name not in chosen]
        assert lost == list(variants.NOW.downgrades), r["isolation"]
    assert r["isolation"]["network"] in ("none", "host") or not ran
    assert (r["isolation"]["network"] == "host") == ("network_host" in r["isolation"]["downgrades"]) or not ran


# ---------------------------------------------------------------------------------------------------------
# Running


@dataclasses.dataclass
class Run:
    status: int
    out: bytes
    err: bytes
    wall: float
    result: dict | None = None

    @property
    def text(self) -> str:
        return self.out.decode("utf-8", "replace")

    @property
    def stdout(self) -> str:
        return self.result["stdout"]

    @property
    def stderr(self) -> str:
        return self.result["stderr"]

    @property
    def reason(self) -> str:
        return self.result["reason"]

    @property
    def lines(self) -> list[str]:
        return self.result["stdout"].splitlines()


class Hang(AssertionError):
    """`isle run` did not end within its time."""


@dataclasses.dataclass
class Isle:
    """One data folder and the settings that go with it."""

    data: pathlib.Path
    env: dict[str, str] = dataclasses.field(default_factory=dict)
    program: pathlib.Path = ISLE

    def environ(self, extra: dict[str, str] | None = None) -> dict[str, str]:
        account = variants.Session.account
        base = {
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": "/root",
            "LANG": "C.UTF-8",
            "SANDBOX_WORKSPACE_ROOT": str(self.data),
            "SANDBOX_RUNTIME_ROOT": str(RUNTIME_ROOT),
            "SANDBOX_INSTANCE_MEMORY_MB": str(BOUND_MEMORY_MB),
            "SANDBOX_INSTANCE_PIDS": str(BOUND_PIDS),
        }
        if account:
            base |= account.environ()
        for name in (
            "ASAN_OPTIONS",
            "UBSAN_OPTIONS",
            "LSAN_OPTIONS",
            "ISLE_LIBEXEC",
        ):
            if name in os.environ and name not in base:
                base[name] = os.environ[name]
        return base | self.env | (extra or {})

    def start(
        self,
        *args: str | os.PathLike,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env: dict[str, str] | None = None,
        cwd: str | os.PathLike | None = None,
        prefix: Sequence[str] = (),
    ) -> subprocess.Popen:
        """`PREFIX isle ARGS` in its own session, as the variant says; the caller waits."""
        account = variants.Session.account
        program = account.program if account else self.program
        words = [os.fspath(a) for a in args]
        if words[:1] == ["run"]:
            words[1:1] = variants.NOW.options
        return subprocess.Popen(
            [*variants.prefix(), *prefix, str(program), *words],
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            env=self.environ(env),
            cwd=cwd or "/",
            start_new_session=True,
            **(account.popen() if account else {}),
        )

    def run(
        self,
        *args: str | os.PathLike,
        input: bytes | None = None,
        stdin=subprocess.DEVNULL,
        within: float = 20,
        env: dict[str, str] | None = None,
        cwd: str | os.PathLike | None = None,
        prefix: Sequence[str] = (),
    ) -> Run:
        """`isle run ARGS`, both streams collected; kills and fails past `within` seconds."""
        begin = time.monotonic()
        p = self.start(
            "run",
            *args,
            stdin=subprocess.PIPE if input is not None else stdin,
            env=env,
            cwd=cwd,
            prefix=prefix,
        )
        try:
            out, err = p.communicate(input, timeout=within * SLOW)
        except subprocess.TimeoutExpired:
            p.kill()
            out, err = p.communicate()
            raise Hang(
                f"isle run {args!r}: not over after {within * SLOW:.0f} s; {out[-300:]!r} {err[-300:]!r}"
            ) from None
        return Run(p.returncode, out, err, time.monotonic() - begin)

    def job(self, *args: str | os.PathLike, **kw) -> Run:
        """`isle run --json ARGS`: one line of strict JSON of the right shape, and the status that fits it."""
        r = self.run("--json", *args, **kw)
        assert r.out.endswith(b"\n") and r.out.count(b"\n") == 1, (
            r.status,
            r.out[:500],
            r.err[-1500:],
        )
        value = strict_json(r.out)
        assert isinstance(value, dict)
        r.result = value
        check_result(value)
        assert r.status == exit_status(value), (r.status, value)
        return r

    def python(self, code: str, *args: str | os.PathLike, **kw) -> Run:
        return self.job("-l", "python", *args, "-c", code, **kw)

    def js(self, code: str, *args: str | os.PathLike, **kw) -> Run:
        return self.job("-l", "javascript", *args, "-c", code, **kw)

    def sh(self, code: str, *args: str | os.PathLike, **kw) -> Run:
        return self.job("-l", "bash", *args, "-c", code, **kw)

    def command(self, argv: Sequence[str], *args: str | os.PathLike, **kw) -> Run:
        return self.job(*args, "--", *argv, **kw)


def exit_status(r: dict) -> int:
    """What `isle run` must exit with for this result."""
    fixed = {
        "timeout": 124,
        "cpu_limit": 124,
        "memory_limit": 137,
        "cancelled": 130,
    }
    if r["reason"] in fixed:
        return fixed[r["reason"]]
    if r["reason"] == "ok":
        return 0
    if r["reason"] not in ("error", "result_too_large", "artifact"):
        return 125
    if r["signal"] is not None:
        return 128 + r["signal"]
    return r["exit_code"] or 1


def kill_later(p: subprocess.Popen, seconds: float, sig: int = signal.SIGKILL) -> None:
    def act() -> None:
        time.sleep(seconds)
        with contextlib.suppress(ProcessLookupError):
            p.send_signal(sig)

    threading.Thread(target=act, daemon=True).start()


def until(what: Callable[[], object], seconds: float, step: float = 0.02) -> object:
    """The first true answer of what(), or its last one when the time is over."""
    end = time.monotonic() + seconds * SLOW
    while True:
        answer = what()
        if answer or time.monotonic() > end:
            return answer
        time.sleep(step)


# ---------------------------------------------------------------------------------------------------------
# Processes and groups that isle left behind


@dataclasses.dataclass(frozen=True, order=True)
class Process:
    pid: int
    ppid: int
    uid: int
    state: str
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


def left_processes() -> list[Process]:
    """Processes under an instance's uid without a living `isle` of somebody else above them.

    A running instance hangs below its front; whoever reaches this test program or pid 1 without passing
    such a front was left behind.
    """
    table = processes()
    me = os.getpid()
    left = []
    for p in table.values():
        if not of_instance(p.uid) or (p.state == "Z" and SHARED_HOST):
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


def lock_is_free(instance: str) -> bool:
    """Nobody holds instance K: its service and its launcher are gone."""
    path = LOCK_DIR / f"{instance}.lock"
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    try:
        # /proc/locks answers without taking the lock, which would disturb a start.
        st = os.fstat(fd)
        want = f"{os.major(st.st_dev):02x}:{os.minor(st.st_dev):02x}:{st.st_ino}"
        with open("/proc/locks", encoding="utf-8") as f:
            return not any(want in line for line in f)
    finally:
        os.close(fd)


def left_groups() -> list[str]:
    return [str(g) for g in instance_groups() if lock_is_free(g.name) and g.is_dir()]


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
    def take(cls, data: pathlib.Path) -> Picture:
        return cls(
            sysctls(),
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


def _netns_left(before: set[str]) -> set[str]:
    now = net_namespaces() - before
    if not SHARED_HOST:
        return now
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

    def __post_init__(self) -> None:
        self.before = Picture.take(self.isle.data)
        self.netns = net_namespaces()
        self.zombies = zombies()

    def check(self) -> None:
        """Checks 2, 3, 4 and 7 of the catalogue; raises AssertionError with everything that is off."""
        wrong: list[str] = []

        def gone(name: str, what: Callable[[], list | set], seconds: float = 5) -> None:
            until(lambda: not what(), seconds)
            rest = what()
            if rest:
                wrong.append(f"{name}: {list(rest)[:8]}")

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
            if now.inodes - self.before.inodes > 2000:  # a job that leaks leaks thousands
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


def nothing_runs(seconds: float = 1) -> bool:
    """No process of an instance is left behind."""
    persisting = Persisting(left_processes)
    return bool(until(lambda: not persisting(), seconds))


def noisy_sysctls() -> frozenset[str]:
    """Values that change by themselves on this host."""
    first = sysctls()
    time.sleep(0.3)
    second = sysctls()
    return frozenset(k for k, v in second.items() if first.get(k) != v)


# ---------------------------------------------------------------------------------------------------------
# Canaries


@dataclasses.dataclass
class Canary:
    """Files and listeners outside every sandbox; touched by nobody, or a test fails."""

    folder: pathlib.Path
    hits: list[str] = dataclasses.field(default_factory=list)
    sockets: list[socket.socket] = dataclasses.field(default_factory=list)
    shm_id: int = -1

    SHM_KEY = 0x43414E41
    SHM_FILE = pathlib.Path("/dev/shm/attacks-canary")
    ENV: ClassVar[dict[str, str]] = {"CANARY_ENV": "CANARY-ENV-7f3a"}

    @classmethod
    @contextlib.contextmanager
    def planted(cls) -> Iterator[Canary]:
        folder = pathlib.Path(tempfile.mkdtemp(prefix="canary-", dir="/var/tmp"))
        c = cls(folder)
        try:
            c._plant()
            yield c
        finally:
            c._remove()

    def _plant(self) -> None:
        self.folder.chmod(0o755)
        for family, address in (
            (socket.AF_INET, ("127.0.0.1", 47001)),
            (socket.AF_INET6, ("::1", 47001)),
            (socket.AF_UNIX, "\0canary-abstract"),
            (socket.AF_UNIX, str(self.folder / "canary.sock")),
        ):
            self._open(family, address)
        for name, mode in (("secret.txt", 0o600), ("public.txt", 0o644), ("overwrite_me", 0o666)):
            (self.folder / name).write_text(f"CANARY-FILE-{name}\n")
            (self.folder / name).chmod(mode)
        (self.folder / "t3").mkdir()
        (self.folder / "t3/file").write_text("CANARY-FILE-t3\n")
        (self.folder / "target").mkdir()
        self.SHM_FILE.write_text("CANARY-SHM\n")
        libc = ctypes.CDLL(None, use_errno=True)
        self.shm_id = libc.shmget(self.SHM_KEY, 4096, 0o1600)
        assert self.shm_id >= 0, os.strerror(ctypes.get_errno())
        self.state = self._state()

    def _open(self, family: int, address: object) -> None:
        s = socket.socket(family)
        self.sockets.append(s)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        s.bind(address)
        s.listen(16)
        threading.Thread(target=self._listen, args=(s, str(address)), daemon=True).start()

    def _listen(self, s: socket.socket, name: str) -> None:
        while True:
            try:
                c, peer = s.accept()
            except OSError:
                return
            self.hits.append(f"{name} from {peer}")
            with contextlib.suppress(OSError):
                c.sendall(b"CANARY-NET\n")
            c.close()

    def _state(self) -> dict[str, object]:
        state: dict[str, object] = {}
        for at, dirs, files in os.walk(self.folder):
            for name in dirs + files:
                path = os.path.join(at, name)
                st = os.lstat(path)
                data = pathlib.Path(path).read_bytes() if stat.S_ISREG(st.st_mode) else b""
                state[path] = (
                    st.st_mode,
                    st.st_uid,
                    st.st_nlink,
                    st.st_mtime_ns,
                    st.st_ctime_ns,
                    data,
                )
        return state

    def differences(self) -> list[str]:
        now = self._state()
        wrong = [
            f"canary {path}: {self.state.get(path)} -> {now.get(path)}"
            for path in self.state.keys() | now.keys()
            if self.state.get(path) != now.get(path)
        ]
        if self.SHM_FILE.read_text() != "CANARY-SHM\n":
            wrong.append("canary in /dev/shm changed")
        wrong += [f"canary listener reached: {h}" for h in self.hits]
        return wrong

    def _remove(self) -> None:
        for s in self.sockets:
            with contextlib.suppress(OSError):
                s.shutdown(socket.SHUT_RDWR)
            s.close()
        if self.shm_id >= 0:  # else these are not ours
            ctypes.CDLL(None).shmctl(self.shm_id, 0, None)
            self.SHM_FILE.unlink(missing_ok=True)
        shutil.rmtree(self.folder, ignore_errors=True)


# ---------------------------------------------------------------------------------------------------------
# Things tests need


@contextlib.contextmanager
def data_folder() -> Iterator[pathlib.Path]:
    """A fresh SANDBOX_WORKSPACE_ROOT."""
    with variants.folder("isle-e2e-") as made:
        yield made


def compile_static(source: pathlib.Path, target: pathlib.Path) -> pathlib.Path:
    """A payload in C, linked statically: it must run in a root that has no compiler and another libc."""
    subprocess.run(
        ["gcc", "-O1", "-static", "-w", "-o", str(target), str(source), "-lpthread"],
        check=True,
        timeout=120,
    )
    return target


def kernel_log_lines() -> int | None:
    """Lines in the kernel's ring buffer, None where it may not be read."""
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        p = subprocess.run(["dmesg"], check=False, capture_output=True, timeout=10)
        if p.returncode == 0:
            return p.stdout.count(b"\n")
    return None


@contextlib.contextmanager
def only_session(name: str) -> Iterator[None]:
    """One holder of this name on the host at a time; waits. An abstract socket: nothing to leave or to remove."""
    s = socket.socket(socket.AF_UNIX)
    try:
        while True:
            try:
                s.bind(f"\0{name}")
                break
            except OSError:
                time.sleep(0.5)
        yield
    finally:
        s.close()
