"""`isle run` on hosts that lack something, and the bounds of a whole instance."""

from __future__ import annotations

import harness
import leftovers
import pytest
import results

SLOW = harness.SLOW
pytestmark = pytest.mark.usefixtures("host")

PARENT, SELF = 1 << 1, 1 << 2  # enum plan_rung, as bits
IDENTITY = """
import os
print(os.getuid(), os.getgid(), os.getgroups())
print(sorted({l.split()[1] for l in open("/proc/self/status") if l.startswith("Cap")}))
print(open("/proc/self/uid_map").read().split()[::2])
with open("f", "w") as f: f.write("x")
os.unlink("f")
"""


def refusing(mask: int, **more: str) -> dict[str, str]:
    return {"ISLE_TEST_REFUSE_RUNGS": str(mask), **more}


@pytest.mark.parametrize("mask", [0, PARENT])
def test_user_namespace_by_either_way(isle, mask):
    r = isle.command(["python3", "-c", IDENTITY], env=refusing(mask))
    assert r.reason == "ok", r.result
    assert r.lines == ["1000 1000 []", "['0000000000000000']", "['1000', '1']"]
    assert r.result["isolation"]["level"] == "full" and r.result["isolation"]["downgrades"] == []


def test_without_user_namespaces_it_says_so(isle):
    r = isle.command(["python3", "-c", IDENTITY], env=refusing(PARENT | SELF))
    assert r.reason == "ok", r.result
    assert r.lines[0] not in ("0 0 []", "1000 1000 []") and r.lines[1] == "['0000000000000000']"
    assert r.result["isolation"]["level"] == "degraded"
    assert r.result["isolation"]["downgrades"] == ["no_user_namespace"]


def test_without_user_namespaces_and_without_a_disk(isle):
    """The job's line in /etc/passwd needs no room of the job's."""
    r = isle.command(["id", "-un"], "--disk", "0", env=refusing(PARENT | SELF))
    assert r.reason == "ok" and r.lines == ["sandbox"], r.result


def test_without_user_namespaces_and_required(isle):
    env = refusing(PARENT | SELF, SANDBOX_REQUIRE_USER_NAMESPACE="true")
    r = isle.run("-l", "bash", "-c", "echo ran", env=env)
    assert r.status == 125 and r.out == b"" and b"user namespace" in r.err, r
    assert b"SANDBOX_REQUIRE_USER_NAMESPACE=true may ask for more than this host has" in r.err, r


def test_identity_without_user_namespaces_resists(isle):
    code = "import ctypes, os\nfor n in (105, 106, 117, 119):\n    print(ctypes.CDLL(None).syscall(n, 0, 0, 0) == -1)"
    r = isle.command(["python3", "-c", code], env=refusing(PARENT | SELF))
    assert r.lines == ["True"] * 4, r.result


def test_instance_bounds_its_jobs(isle):
    """A job may ask for more than the whole instance has: the instance's own limit holds."""
    code = """
import os, time
n = 0
try:
    while n < 1000:
        if os.fork() == 0: time.sleep(20); os._exit(0)
        n += 1
except OSError as e: print(e.errno)
print(n)
"""
    r = isle.python(code, "--pids", "2000", env={"SANDBOX_INSTANCE_PIDS": "150"})
    assert r.lines[0] == "11" and int(r.lines[1]) < 150, r.result
    code = "b = bytearray(600 << 20)\nfor i in range(0, len(b), 4096): b[i] = 1\nprint('touched')"
    r = isle.python(code, "--memory", "2000", env={"SANDBOX_INSTANCE_MEMORY_MB": "300"})
    assert "touched" not in r.stdout and r.result["success"] is False, r.result


def test_set_id_bits(isle):
    code = """
import os
open("f", "w").close()
for mode in (0o4755, 0o2755, 0o6755):
    try: os.chmod("f", mode); print("set", oct(mode))
    except OSError as e: print(e.errno)
os.chmod("f", 0o1755)
print(oct(os.stat("f").st_mode))
try: os.mkdir("d", 0o2777); print("made")
except OSError as e: print(e.errno)
"""
    assert isle.command(["python3", "-c", code]).lines == ["1", "1", "1", "0o101755", "1"]


def test_nothing_in_the_results_names_the_host(isle):
    r = isle.sh("cat /proc/self/cgroup /etc/passwd /etc/hosts; env; hostname; ls -la / /etc")
    assert r.reason == "ok"
    for word in (str(isle.data), str(harness.RUNTIME_ROOT), "/var/lib/isle"):
        assert word not in r.stdout, word


# Other hosts, made by a mount namespace of the caller's own around isle.

NOTHING = ["no_cgroup_memory", "no_cgroup_pids", "no_cgroup_cpu", "no_cpu_time"]
V1 = sorted({line.split()[1] for line in open("/proc/mounts") if line.split()[2] == "cgroup"})
WITHOUT = {name: path for path in V1 for name in path.rsplit("/", 1)[1].split(",") if name in ("memory", "pids")}


def elsewhere(shell: str) -> list[str]:
    return ["unshare", "--mount", "bash", "-e", "-c", f'{shell}\nexec "$0" "$@"']


ORPHAN = "import os, time\nif os.fork() == 0:\n    os.setsid(); time.sleep(30)\nprint('main')"


def test_KER_06_read_only(isle):
    """A container's view: made writable where nobody else sees it. Where that is refused: test_remapped_container."""
    shell = "for m in $(awk '$3 ~ /^cgroup/ {print $2}' /proc/mounts); do mount -o remount,bind,ro $m; done"
    code = "b = bytearray(300 << 20)\nfor i in range(0, len(b), 4096): b[i] = 1"
    r = isle.python(code, "--memory", "128", prefix=elsewhere(shell))
    assert r.reason == "memory_limit" and r.result["isolation"]["level"] == "full", r.result


def test_KER_06_no_control_groups(isle):
    """There are none: what is lost is listed, what cannot be measured is null, the end still is one."""
    r = isle.command(["python3", "-c", ORPHAN], prefix=elsewhere("umount -R /sys/fs/cgroup"))
    assert r.reason == "ok" and r.lines == ["main"], r.result
    assert r.result["isolation"]["level"] == "degraded"
    assert r.result["isolation"]["downgrades"] == NOTHING
    usage = r.result["usage"]
    assert usage["cpu_ms"] is None and usage["memory_peak_bytes"] is None and usage["pids_peak"] is None
    assert leftovers.nothing_runs()


def test_KER_06_the_second_lines_hold(isle):
    """Without groups the number of processes is bounded by the job's own uid, and time by the clock."""
    bomb = ["bash", "-c", "f(){ f | f & }; f; sleep 200"]
    shell = "umount -R /sys/fs/cgroup"
    told = "Resource temporarily unavailable"
    r, _ = harness.in_time(
        isle.command, bomb, "--pids", "32", seconds=4, ready=lambda r: told in r.stderr, prefix=elsewhere(shell)
    )
    assert r.reason in ("timeout", "error"), r.result
    assert told in r.stderr
    assert leftovers.nothing_runs()


@pytest.mark.parametrize("missing", sorted(WITHOUT))
def test_KER_05_one_hierarchy_is_missing(isle, missing):
    r = isle.command(["python3", "-c", ORPHAN], prefix=elsewhere(f"umount {WITHOUT[missing]}"))
    assert r.reason == "ok" and r.lines == ["main"], r.result
    assert r.result["isolation"]["downgrades"] == [f"no_cgroup_{missing}"]
    measured = {"memory": "pids_peak", "pids": "memory_peak_bytes"}[missing]
    assert r.result["usage"][measured] > 0


def test_KER_05_detected_by_what_it_can(isle):
    """A folder that only has the name of a hierarchy is none."""
    shell = """
umount -R /sys/fs/cgroup; mount -t tmpfs none /sys/fs/cgroup
mkdir -p /sys/fs/cgroup/{memory,pids,cpu,unified}
"""
    r = isle.sh("echo hi", prefix=elsewhere(shell))
    assert r.lines == ["hi"] and r.result["isolation"]["downgrades"] == NOTHING


def test_KER_04_masked_proc(isle):
    """As a container shows it: parts of /proc covered or read-only."""
    shell = """
mount --bind /dev/null /proc/keys
mount --bind /proc/sys /proc/sys; mount -o remount,bind,ro /proc/sys
mount -t tmpfs -o ro none /proc/irq
"""
    r = isle.sh("echo hi; cat /proc/self/comm", prefix=elsewhere(shell))
    assert r.lines == ["hi", "cat"] and r.result["isolation"]["level"] == "full", r.result


def test_KER_04_no_proc(isle):
    """No /proc at all: refused with what is missing, or made without it; never run with less and silent."""
    env = {"ISLE_LIBEXEC": str(harness.ISLE.parent)}  # else it is found through /proc
    r = isle.run("--json", "-l", "bash", "-c", "echo hi", prefix=elsewhere("umount -l /proc"), env=env)
    if r.status == 0:
        assert results.strict_json(r.out)["isolation"]["level"] == "full"
    else:
        assert r.status == 125 and b"/proc" in r.err + r.out, r
