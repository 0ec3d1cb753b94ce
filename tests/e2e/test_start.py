"""The start alone (start_probe): what it refuses and how it says so, what it finds, what the service may still do."""

from __future__ import annotations

import contextlib
import os
import pathlib
import shutil
import subprocess

import harness
import host
import leftovers
import pytest

BUILD = harness.ISLE.parents[2]
PROBE = BUILD / "tests/unit/start/start_probe"
NO_MEMORY, NO_PIDS, NO_CPU, NO_CPU_TIME = 4, 8, 16, 32  # enum plan_downgrade
CAPS = (1 << 0) | (1 << 1) | (1 << 3)  # CHOWN, DAC_OVERRIDE, FOWNER


@pytest.fixture
def probe(alone, tmp_path):
    """Runs start_probe over a data folder of its own; nothing stays behind."""
    libexec = tmp_path / "libexec"
    libexec.mkdir()
    (libexec / "isle-launcher").symlink_to(BUILD / "src/launcher/isle-launcher")
    (libexec / "isle-shim").symlink_to(BUILD / "src/launcher/isle-shim")
    data = tmp_path / "data"
    data.mkdir()
    base = {
        "--data": data,
        "--runtime": harness.RUNTIME_ROOT,
        "--guest": harness.ROOT / "src/guest",
        "--libexec": libexec,
    }

    def command(*args: object, prefix=(), **changed: object) -> list[str]:
        options = base | {"--" + k: v for k, v in changed.items()}
        return [*prefix, str(PROBE), *(str(w) for pair in options.items() for w in pair), *map(str, args)]

    def run(*args: object, prefix=(), **changed: object) -> subprocess.CompletedProcess:
        return subprocess.run(
            command(*args, prefix=prefix, **changed),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=30 * harness.SLOW,
            check=False,
        )

    run.command = command
    yield run
    assert host.instances([data]) == []
    assert host.litter(data) == []


def fields(text: str) -> dict[str, str]:
    """The last value of each first word."""
    return {
        k.rstrip(":"): v.strip() for k, _, v in (line.replace("\t", " ").partition(" ") for line in text.splitlines())
    }


@pytest.mark.parametrize(
    "changed, words",
    [
        ({"run": "/nonexistent/run"}, ["instance:", "/nonexistent/run", "lock files"]),
        ({"run": "/proc/run"}, ["instance:", "/proc/run"]),
        ({"run": "/etc/passwd"}, ["/etc/passwd", "Not a directory"]),
        ({"run": "/tmp"}, ["/tmp", "writable by nobody else", "SANDBOX_RUN_DIR"]),
        ({"data": "/nonexistent/data"}, ["workspace root /nonexistent/data"]),
        ({"data": "/etc/passwd"}, ["workspace root /etc/passwd", "Not a directory"]),
        ({"data": "/proc/data"}, ["workspace root /proc/data"]),
        ({"data": "/sys"}, ["workspace root /sys"]),
        ({"runtime": "/nonexistent/root"}, ["runtime root /nonexistent/root"]),
        ({"guest": "/nonexistent/guest"}, ["guest folder /nonexistent/guest"]),
        ({"libexec": "/etc"}, ["/etc/isle-launcher"]),
        ({"hostname": "x" * 64}, ["host name", "63 bytes"]),
        ({"memory": "1"}, ["groups:", "limits of the whole instance"]),
    ],
)
def test_refused(probe, changed, words):
    r = probe("report", **changed)
    assert r.returncode == 125 and r.stdout == "", r
    assert r.stderr.startswith("start_probe: ") and r.stderr.count("\n") == 1, r.stderr
    for word in words:
        assert word in r.stderr, r.stderr


def test_workspace_root_that_was_named_must_exist(probe, tmp_path):
    r = probe("--must-exist", "report", data=tmp_path / "none")
    assert r.returncode == 125 and f"workspace root {tmp_path}/none" in r.stderr, r
    assert not (tmp_path / "none").exists()


def test_programs_must_be_for_all(probe, tmp_path):
    closed = tmp_path / "closed"
    closed.mkdir()
    for name in ("isle-launcher", "isle-shim"):
        (closed / name).write_bytes((tmp_path / "libexec" / name).read_bytes())
        (closed / name).chmod(0o700)
    r = probe("report", libexec=closed)
    assert r.returncode == 125 and "mode 700" in r.stderr and "chmod 755" in r.stderr, r


@pytest.mark.parametrize(
    "prefix, words",
    [
        (["setpriv", "--reuid", "1000", "--clear-groups"], ["/run/isle", "must belong to you"]),
        (["setpriv", "--bounding-set", "-sys_admin"], ["CAP_SYS_ADMIN", "ordinary user"]),
    ],
)
def test_rights(probe, prefix, words):
    with harness.data_folder() as folder:  # the build folder may be closed to ordinary users
        folder.chmod(0o755)
        copy = folder / "start_probe"
        shutil.copy(PROBE, copy)
        command = [str(copy) if word == str(PROBE) else word for word in probe.command("report", prefix=prefix)]
        r = subprocess.run(command, capture_output=True, text=True, timeout=30 * harness.SLOW, check=False)
    assert r.returncode == 125, r
    for word in words:
        assert word in r.stderr, r.stderr


def test_the_service(probe):
    r = probe("report")
    assert r.returncode == 0 and r.stderr == "", r
    f = fields(r.stdout)
    assert f["Uid"].split() == ["1"] * 4 and f["Gid"].split() == ["1"] * 4 and f["Groups"] == ""
    assert [int(f[k], 16) for k in ("CapEff", "CapPrm", "CapBnd")] == [CAPS] * 3
    assert f["NoNewPrivs"] == "1" and f["Seccomp"] == "2"
    assert f["once"] == "1 700"
    targets = dict(line.split(" ", 2)[1:] for line in r.stdout.splitlines() if line.startswith("fd "))
    assert targets["0"] == targets["1"] == "/dev/null"
    # stderr, the front, the lock, the launcher and its pidfd, the workspace root: nothing else
    kinds = sorted(t.split("[")[0].split(":")[0] for fd, t in targets.items() if int(fd) > 2)
    assert len([t for t in targets.values() if t.endswith(".lock")]) == 1, targets
    assert kinds.count("socket") == 2 and len(kinds) <= 6, targets
    assert not [t for t in targets.values() if "cgroup" in t or "isle-launcher" in t], targets


@pytest.mark.parametrize("mask, rung, lost", [(0, 1, 0), (2, 2, 0), (4, 1, 0), (6, 3, 1)])
def test_rungs(probe, mask, rung, lost):
    f = fields(probe("report", refuse=mask).stdout)
    assert int(f["rung"]) == rung and int(f["downgrades"]) & 1 == lost, f


V1 = "cpu cpuacct cpuset memory devices freezer blkio pids systemd cpu,cpuacct net_cls,net_prio"
MODES = [
    # what the host offers, as a change of the real one in a private mount namespace; what is lost then
    ("umount -l /sys/fs/cgroup", NO_MEMORY | NO_PIDS | NO_CPU | NO_CPU_TIME),
    ("umount -l /sys/fs/cgroup; mount -t cgroup2 none /sys/fs/cgroup", None),
    (f"for c in {V1}; do umount /sys/fs/cgroup/$c 2>/dev/null; done; true", None),
    ("umount /sys/fs/cgroup/unified 2>/dev/null; true", 0),
    (
        "for c in $(awk '$3 ~ /^cgroup/ {print $2}' /proc/mounts); do mount -o remount,bind,ro $c || exit 1; done",
        0,  # made writable where only isle sees it
    ),
]


@pytest.mark.parametrize("change, lost", MODES)
def test_groups_of_other_hosts(probe, change, lost):
    r = probe("report", prefix=["unshare", "--mount", "sh", "-c", change + ' && exec "$@"', "sh"])
    assert r.returncode == 0, r
    got = int(fields(r.stdout)["downgrades"])
    if lost is None:  # v2 alone: what this kernel's v2 tree has
        have = next(m for m in leftovers.cgroup_mounts() if (m / "cgroup.controllers").exists())
        names = (have / "cgroup.controllers").read_text().split()
        lost = sum(
            bit for name, bit in (("memory", NO_MEMORY), ("pids", NO_PIDS), ("cpu", NO_CPU)) if name not in names
        )
    assert got == lost, (change, got)


def test_the_whole_instance_has_limits(probe):
    with subprocess.Popen(
        probe.command("soak", memory=1 << 30, pids=200), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as p:
        lines = []
        for line in p.stdout:
            if line == "soaking\n":
                break
            lines.append(line)
        f = fields("".join(lines))
        number, pids = f["instance"], {f["service"], f["launcher"]}
        found = {}
        for mount in leftovers.cgroup_mounts():
            group = mount / "isle" / number
            for name in ("memory.limit_in_bytes", "memory.max", "pids.max"):
                limit = group / name
                if limit.exists() and limit.read_text().strip() in (str(1 << 30), "200"):
                    assert pids <= set((group / "service/cgroup.procs").read_text().split()), group
                    assert limit.stat().st_uid == 0 and group.stat().st_uid != 0, group
                    found[name.split(".")[0]] = limit.read_text().strip()
        p.stdin.close()
    assert found == {"memory": str(1 << 30), "pids": "200"} or int(f["downgrades"]) & (NO_MEMORY | NO_PIDS), found


def test_a_caller_with_odd_habits(probe):
    """Closed standard descriptors, a strict umask, ignored signals, low limits, a stray descriptor."""
    stray, _ = os.pipe()
    os.set_inheritable(stray, True)
    script = 'umask 777; ulimit -S -n 40 -f 1 -u 4; trap "" CHLD INT PIPE; exec "$@" <&- 2>&-'
    r = subprocess.run(
        probe.command("report", prefix=["bash", "-c", script, "bash"]),
        capture_output=True,
        text=True,
        timeout=30 * harness.SLOW,
        check=False,
        pass_fds=[stray],
    )
    assert r.returncode == 0 and "once 1 700" in r.stdout, r
    assert f"fd {stray} pipe" not in r.stdout
    f = fields(r.stdout)
    soft, hard = map(int, f["nofile"].split())
    assert soft == min(8192, hard), f
    mine = int(host.status_of(os.getpid())["CapEff"], 16)
    if mine & 1 << 24:  # CAP_SYS_RESOURCE, which a container's root may lack
        assert hard >= 65536 and f["nproc"] == "-1", f  # a job may have that many


def occupied(folder: pathlib.Path, place: str, pid: int) -> pathlib.Path:
    """A group of the number above all that are there. Whoever starts just now may take it first, or tidy it away."""
    folder.mkdir(exist_ok=True)
    while True:
        group = folder / str(max((int(i.name) for i in folder.glob("*/")), default=-1) + 1)
        with contextlib.suppress(FileExistsError, FileNotFoundError):
            group.mkdir()
            (group / place).mkdir(exist_ok=not place)
            (group / place / "cgroup.procs").write_text(str(pid))
            return group


@pytest.mark.parametrize("place", ["", "service"])
def test_groups_of_a_stranger_are_not_taken(probe, place):
    """A number whose group holds processes is somebody's, whatever its lock file says; all of it stays."""
    mount = next((m for m in leftovers.cgroup_mounts() if (m / "cgroup.controllers").exists()), None)
    if mount is None:
        pytest.skip("no v2 tree")
    sleeper = subprocess.Popen(["sleep", "120"])
    group = occupied(mount / "isle", place, sleeper.pid)
    try:
        if place:
            (group / "j1").mkdir()
        taken = [fields(probe("report").stdout)["instance"] for _ in range(2)]
        assert group.name not in taken and sleeper.poll() is None, taken
        assert not place or (group / "j1").is_dir()
    finally:
        sleeper.kill()
        sleeper.wait()
        for folder in (group / "j1", group / "service", group):
            assert host.until(lambda f=folder: not f.exists() or subprocess.call(["rmdir", f]) == 0, 20) is not None


def test_messages_of_all_processes_are_kept(probe, tmp_path):
    """A file as stderr has one offset for the front, the service and the launcher."""
    libexec = tmp_path / "broken"
    libexec.mkdir()
    (libexec / "isle-launcher").write_text("no program\n")
    (libexec / "isle-launcher").chmod(0o755)
    (libexec / "isle-shim").symlink_to(BUILD / "src/launcher/isle-shim")
    with open(tmp_path / "err", "w+b") as err:
        r = subprocess.run(probe.command("report", libexec=libexec), stderr=err, stdout=subprocess.PIPE, check=False)
    text = (tmp_path / "err").read_text()
    assert r.returncode == 125, r
    first, second = text.splitlines()
    assert first.startswith("isle-launcher cannot be executed: ") and second.startswith("start_probe: ready: "), text
