"""kill -9 at any moment, ten side by side, leftovers: what is on the host afterwards."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import pathlib
import random
import subprocess
import time

import harness
import host
import leftovers
import pytest

# 7 kinds of moment; 21 in all here, 210 with ISLE_LONG=1.
MOMENTS = 30 if harness.LONG else 3
SLOW = harness.SLOW

# A job with children of every kind, among them one in a session of its own.
# The root has no setsid(1).
SESSION = "python3 -c \"import os; os.setsid(); os.execlp('sleep', 'sleep', '61')\""
JOB = f"{SESSION} & (sleep 62 &) ; echo up; sleep 60"
FOLDER = ("--disk", "100")  # above SANDBOX_TMPFS_WORKSPACE_MB: a folder on disk
TMPFS = ("--disk", "10")

# What a start removes for others is only sure where no other session starts instances meanwhile: one that does not see
# our data folders may take the number of a killed one.
pytestmark = pytest.mark.usefixtures("host")


@pytest.fixture
def folders(alone):
    """Two data folders, and nothing of them on the host afterwards."""
    with harness.data_folder() as one, harness.data_folder() as two:
        yield [one, two]
        assert host.mounts_of([one, two]) == []
        for i in host.instances([one, two]):
            for pid in host.processes_in({i.uid_base}):
                host.kill(pid)


def isle_over(data: pathlib.Path) -> harness.Isle:
    return harness.Isle(data)


@dataclasses.dataclass
class Run:
    """One `isle run` that is going to be killed."""

    popen: subprocess.Popen
    data: list[pathlib.Path]

    @property
    def front(self) -> int:
        return self.popen.pid

    @property
    def service(self) -> int | None:
        return next(iter(host.children(self.front)), None)

    @property
    def launcher(self) -> int | None:
        service = self.service
        return next(iter(host.children(service)), None) if service else None

    def is_over(self) -> bool:
        return self.popen.poll() is not None and not self.processes()

    def processes(self) -> list[int]:
        return host.processes_in({i.uid_base for i in host.instances(self.data)})

    def close(self) -> None:
        host.kill(self.front)
        self.popen.wait()
        for stream in (self.popen.stdout, self.popen.stderr):
            stream.close()


@contextlib.contextmanager
def started(data: pathlib.Path, kind: tuple[str, ...], everywhere: list[pathlib.Path]):
    p = isle_over(data).start("run", "-l", "bash", *kind, "-c", JOB)
    run = Run(p, everywhere)
    try:
        yield run
    finally:
        run.close()


def wait_up(run: Run) -> None:
    line = run.popen.stdout.readline()
    assert line == b"up\n", (line, run.popen.stderr.read())


def true_over(data: pathlib.Path) -> None:
    r = isle_over(data).run("--", "true")
    assert r.status == 0, r


def check_noticed(run: Run, what: str) -> None:
    """What has to hold without any later start, when somebody was left to notice."""
    known = host.instances(run.data)

    def processes() -> list[int]:
        return host.processes_in({i.uid_base for i in host.nobody_elses(known, run.data)})

    def groups() -> list[str]:
        return host.job_groups({i.number for i in host.nobody_elses(known, run.data)})

    def is_over() -> bool:
        return run.is_over() and not processes()  # a walk through /proc can miss the child of what ends meanwhile

    assert host.until(is_over, 20) is not None, (what, processes(), run.popen.poll())
    assert host.mounts_of(run.data) == [], what
    if what in ("front+service+launcher", "start-up"):
        return
    if what != "front+launcher":  # the service alone has no power over groups: they stay, empty
        assert host.until(lambda: not groups(), 10) is not None, (what, groups())
    assert host.until(lambda: not host.workspaces(run.data), 10) is not None, (what, host.workspaces(run.data))
    if "front" not in what:
        assert host.instances(run.data) == [], (what, "the front removes all")


def check_next_start(run: Run, what: str) -> None:
    """A start over the other data folder removes whatever is left."""
    before = host.instances(run.data)
    true_over(run.data[1])
    assert host.instances(run.data) == [], (what, before)
    assert host.workspaces(run.data) == [], what
    for data in run.data:
        assert host.litter(data) == [], (what, before)
    for i in before:
        for mount in leftovers.cgroup_mounts():
            group = mount / "isle" / str(i.number)
            # somebody else may have the number by now
            gone = host.until(lambda g=group, n=i.number: not g.exists() or not leftovers.lock_is_free(str(n)), 10)
            assert gone is not None, (what, group, i)


def end(run: Run) -> None:
    host.kill(run.front)
    check_noticed(run, "front")
    check_next_start(run, "front")


def kill_some(run: Run, what: str) -> None:
    pids = {"front": run.front, "service": run.service, "launcher": run.launcher}
    chosen = what.split("+")
    random.shuffle(chosen)
    for name in chosen:
        assert pids[name], (what, pids)
    for name in chosen:
        host.kill(pids[name])
        if random.random() < 0.5:
            time.sleep(random.uniform(0, 0.01))


@pytest.mark.parametrize(
    "what",
    [
        "front",
        "service",
        "launcher",
        "front+service",
        "front+launcher",
        "service+launcher",
        "front+service+launcher",
    ],
)
def test_kill_while_running(folders, what):
    for i in range(MOMENTS):
        with started(folders[0], (FOLDER, TMPFS)[i % 2], folders) as run:
            wait_up(run)
            time.sleep(random.uniform(0, 0.05))
            kill_some(run, what)
            check_noticed(run, what)
        check_next_start(run, what)


def test_kill_at_start_or_end(folders):
    """Anywhere between the first instruction and the end of a short job, whoever is there."""
    begin = time.monotonic()
    true_over(folders[0])
    whole = time.monotonic() - begin
    for _ in range(MOMENTS * 4):
        p = isle_over(folders[0]).start("run", *random.choice((FOLDER, TMPFS)), "--", "true")
        run = Run(p, folders)
        try:
            time.sleep(random.uniform(0, whole))
            host.kill(random.choice([run.front, *host.below(run.front)]))
            check_noticed(run, "start-up")
        finally:
            run.close()
        check_next_start(run, "start-up")


def test_ten_side_by_side(folders):
    words = ("run", "--timeout", "300", "--stdin", "-", "-l", "bash", "-c")
    runs = [  # each is there until it is told to end
        isle_over(folders[i % 2]).start(*words, f"read x; echo {i}; exit {i}", stdin=subprocess.PIPE) for i in range(10)
    ]
    numbers = set()

    def seen() -> bool:
        numbers.update(i.number for i in host.instances(folders))
        return len(numbers) >= 10

    together = host.until(seen, 60)
    ends = [(p.communicate(b"go\n", timeout=60 * SLOW), p.returncode) for p in runs]
    assert [(out, status) for (out, _), status in ends] == [(f"{i}\n".encode(), i) for i in range(10)], ends
    assert together is not None and len(numbers) >= 10, numbers
    assert host.instances(folders) == []
    assert [host.litter(d) for d in folders] == [[], []]


def test_living_instance_is_no_leftover(folders):
    with started(folders[0], FOLDER, folders) as run:
        wait_up(run)
        before, service = host.instances(folders), run.service
        for data in folders:
            true_over(data)
        assert host.instances(folders) == before
        assert run.popen.poll() is None and run.service == service and len(run.processes()) >= 4
        host.kill(run.front)
        check_noticed(run, "front")
    left = host.instances(folders)
    assert left == before  # nobody was there to give the number back
    check_next_start(run, "front")


def test_stale_lock_in_another_folder_kills_nobody(folders, tmp_path):
    """Locks kept elsewhere, with a stale text about a number that lives: its groups show its owner."""
    tmp_path.chmod(0o755)
    with started(folders[0], FOLDER, folders) as run:
        wait_up(run)
        (living,) = host.instances(folders)
        name = f"{living.number}.lock"
        (tmp_path / name).write_text((host.LOCK_DIR / name).read_text())
        before = {run.service, run.launcher}
        r = isle_over(folders[1]).run("--", "true", env={"SANDBOX_RUN_DIR": str(tmp_path)})
        assert r.status == 0, r
        assert run.popen.poll() is None and before == {run.service, run.launcher} and len(run.processes()) >= 4
        end(run)


def test_leftovers_after_a_reboot(folders):
    """Lock files in /run are gone then, folders are not; what only looks like ours stays."""
    base = 0x78000000 + 997 * host.RANGE  # src/start/range.c, where all uids are mapped
    old, foreign, root = (folders[0] / name for name in ("997", "998", "999"))
    (old / "once/r1/w").mkdir(parents=True)
    (old / "once/r1/w/file").write_text("left")
    (old / "kept").symlink_to("/etc")
    os.chown(old, base + 1, base + 1)
    for other in (foreign, root):
        (other / "once/mine").mkdir(parents=True)
    os.chown(foreign, 4711, 4711)
    root.chmod(0o700)
    true_over(folders[0])
    assert list((old / "once").iterdir()) == [] and not (old / "kept").is_symlink()
    assert (foreign / "once/mine").is_dir() and (root / "once/mine").is_dir()
    for number in range(3):  # taken by somebody else: the next number is used
        (folders[1] / str(number) / "once/mine").mkdir(parents=True)
    true_over(folders[1])
    assert len(list(folders[1].glob("*/once/mine"))) == 3


def test_service_hears_no_terminal(folders):
    """Ctrl-C reaches the foreground group: of isle only the front is in it."""
    with started(folders[0], TMPFS, folders) as run:
        wait_up(run)
        assert os.getsid(run.service) == run.service
        assert os.getpgid(run.launcher) != os.getpgid(run.front)
        end(run)


def open_files(pid: int) -> list[str]:
    found = []
    for path in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # open for a moment only
            found.append(os.readlink(path))
    return found


def test_front_keeps_nothing(folders):
    """Above all not the lock: free must mean that service and launcher are gone."""
    with started(folders[0], FOLDER, folders) as run:
        wait_up(run)
        targets = open_files(run.front)
        assert not [t for t in targets if t.endswith(".lock") or "cgroup" in t or str(folders[0]) in t], targets
        for pid in (run.service, run.launcher):
            kept = open_files(pid)
            assert sum(t.endswith(".lock") for t in kept) == 1, kept
        end(run)
