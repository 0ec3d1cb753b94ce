"""A running job, seen from the host: its groups, namespaces, identity. Nothing here asks the job."""

from __future__ import annotations

import contextlib
import os
import pathlib
from collections.abc import Iterator

import harness
import leftovers
import pytest

pytestmark = pytest.mark.usefixtures("host")

NAMES = ("isle-service", "isle-launcher", "memfd:shim", "sleep")
OPTIONS = ("--memory", "100", "--pids", "20", "--cpus", "0.5", "--disk", "200", "--timeout", "300")


@contextlib.contextmanager
def running(isle: harness.Isle, *options: str) -> Iterator[dict[str, int]]:
    """Pids by name (service, launcher, shim, job) of one instance with a running job."""
    p = isle.start("run", *("--timeout", "300") * ("--timeout" not in options), *options, "--", "sleep", "300")
    try:

        def below() -> dict[str, int] | None:
            table = leftovers.processes()
            found = {}
            for q in table.values():
                up = q
                while up.ppid in table and up.ppid != p.pid:
                    up = table[up.ppid]
                if up.ppid == p.pid and q.name in NAMES:  # isle-counter comes and goes
                    found[q.name] = q.pid
            return found if "sleep" in found else None

        found = harness.until(below, 20)
        assert found, "no job is running"
        yield found
    finally:
        p.terminate()
        p.communicate(timeout=10 * harness.SLOW)


def status(pid: int) -> dict[str, str]:
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return {k: v.strip() for k, v in (line.split(":", 1) for line in text.splitlines() if ":" in line)}


def groups_of(pid: int) -> dict[str, pathlib.Path]:
    """Controller (or "" for the v2 tree) -> its folder on this host."""
    mounted = {}
    for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines():
        head, tail = line.split(" - ")
        kind, _, options = tail.split()
        if kind == "cgroup2":
            mounted[""] = head.split()[4]
        elif kind == "cgroup":
            for word in options.split(","):
                mounted[word] = head.split()[4]
    found = {}
    for line in pathlib.Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        for c in controllers.split(","):
            if c in mounted:
                found[c] = pathlib.Path(mounted[c] + path)
    return found


def test_limits_are_the_kernels(isle):
    with running(isle, *OPTIONS) as pids:
        groups = groups_of(pids["sleep"])
        v2 = groups.get("")

        def read(controller: str, v1_name: str, v2_name: str) -> str:
            if controller in groups:
                return (groups[controller] / v1_name).read_text().strip()
            return (v2 / v2_name).read_text().strip()

        assert read("memory", "memory.limit_in_bytes", "memory.max") == str(100 << 20)
        assert int(read("pids", "pids.max", "pids.max")) == 21, "twenty and the shim"
        if "cpu" in groups:
            quota, period = (int((groups["cpu"] / f"cpu.cfs_{n}_us").read_text()) for n in ("quota", "period"))
        else:
            quota, period = map(int, read("cpu", "", "cpu.max").split())
        assert quota * 2 == period
        memsw = groups.get("memory", pathlib.Path("/none")) / "memory.memsw.limit_in_bytes"
        if memsw.exists():
            assert int(memsw.read_text()) == 100 << 20, "swap is memory"
        # shim and job are in the job's groups, launcher and service are not
        for name, pid in pids.items():
            inside = groups_of(pid) == groups
            assert inside is (name in ("sleep", "memfd:shim")), (name, groups_of(pid))
    for group in groups.values():
        assert harness.until(lambda g=group: not g.exists() or "isle" not in str(g), 10), group


def test_memory_of_a_memory_workspace_is_added(isle):
    with running(isle, "--memory", "100", "--disk", "40") as pids:
        groups = groups_of(pids["sleep"])
        if "memory" in groups:
            limit = (groups["memory"] / "memory.limit_in_bytes").read_text()
        else:
            limit = (groups[""] / "memory.max").read_text()
        assert int(limit) == 140 << 20


def test_every_namespace_is_its_own(isle):
    with running(isle) as first, running(isle) as second:
        kinds = ("pid", "mnt", "ipc", "uts", "net", "cgroup", "user")
        for kind in kinds:
            here, one, two, launcher = (
                os.readlink(f"/proc/{p}/ns/{kind}")
                for p in ("self", first["sleep"], second["sleep"], first["isle-launcher"])
            )
            assert len({here, one, two}) == 3, kind
            assert one != launcher, kind


def test_identity(isle):
    with running(isle) as first, running(isle) as second:
        uids = []
        for pids in (first, second):
            job, shim = status(pids["sleep"]), status(pids["memfd:shim"])
            for s in (job, shim):
                assert s["NoNewPrivs"] == "1" and s["Seccomp"] == "2" and s["Groups"] == ""
                assert {s[c] for c in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {"0" * 16}
                assert len(set(s["Uid"].split())) == 1 and len(set(s["Gid"].split())) == 1
                uids.append(int(s["Uid"].split()[0]))
            assert pathlib.Path(f"/proc/{pids['sleep']}/oom_score_adj").read_text().strip() == "500"
            launcher = pathlib.Path(f"/proc/{pids['isle-launcher']}/oom_score_adj").read_text()
            assert int(launcher) < 500
        assert len(set(uids)) == 4, "no uid twice: job, shim, of either instance"
        assert min(uids) >= leftovers.UID_FLOOR


def test_the_service_is_small(isle):
    with running(isle) as pids:
        s = status(pids["isle-service"])
        assert int(s["CapEff"], 16) == 0b1011 == int(s["CapBnd"], 16)
        assert s["NoNewPrivs"] == "1" and s["Seccomp"] == "2"
        info = pathlib.Path(f"/proc/{pids['isle-service']}/mountinfo").read_text()
        assert "cgroup" not in info and " /usr " not in info and " /etc " not in info


def test_the_launcher_links_nothing(isle):
    with running(isle) as pids:
        maps = pathlib.Path(f"/proc/{pids['isle-launcher']}/maps").read_text()
        assert "asan" in maps or ".so" not in maps
        rollup = pathlib.Path(f"/proc/{pids['isle-launcher']}/smaps_rollup").read_text()
        pss = next(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:"))
        assert pss < 1024 or "asan" in maps, f"{pss} kB"


def test_only_the_listed_mounts(isle):
    with running(isle) as pids:
        places = {line.split()[4] for line in pathlib.Path(f"/proc/{pids['sleep']}/mountinfo").read_text().splitlines()}
        fixed = {"/", "/usr", "/usr/lib/isle", "/dev", "/dev/shm", "/proc", "/tmp", "/workspace"}
        assert fixed <= places, places
        others = places - fixed
        assert not [m for m in others if not m.startswith(("/proc/", "/dev/", "/etc"))], others


def test_open_descriptors_of_a_job(isle):
    with running(isle) as pids:
        assert sorted(os.listdir(f"/proc/{pids['sleep']}/fd")) == ["0", "1", "2"]
        assert os.readlink(f"/proc/{pids['sleep']}/fd/0") == "/dev/null"
        for fd in (1, 2):
            assert os.readlink(f"/proc/{pids['sleep']}/fd/{fd}").startswith("pipe:")


def test_environment_is_built(isle):
    with running(isle, "--env", "MINE=1") as pids:
        text = pathlib.Path(f"/proc/{pids['sleep']}/environ").read_text()
        names = {entry.split("=", 1)[0] for entry in text.split("\0") if entry}
        assert "MINE" in names and "CANARY_ENV" not in names
        assert not [n for n in names if n.startswith(("SANDBOX_", "ISLE_"))], names
        for name in ("isle-service", "isle-launcher", "memfd:shim"):
            assert "CANARY" not in pathlib.Path(f"/proc/{pids[name]}/environ").read_text(), name
