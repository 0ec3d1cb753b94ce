"""`isle doctor`: what it finds, what it says of it, and that its attacks would find an open door."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import pty
import re
import signal
import socket
import subprocess
import sys
import time

import harness
import pytest
import results
import variants

pytestmark = pytest.mark.usefixtures("host")

ATTACKS = ["files", "writes", "identity", "processes", "network", "mounts", "kernel", "devices", "leftovers", "memory"]
PROGRAMS = harness.ROOT / "src/doctor/attacks"
REFUSE_ALL = {"ISLE_TEST_REFUSE_RUNGS": "6"}


def call(isle, *options: str, env: dict[str, str] | None = None, prefix=()) -> tuple[int, bytes, bytes]:
    p = isle.start("doctor", *variants.NOW.options, *options, env=env, prefix=prefix)
    out, err = p.communicate(timeout=60 * harness.SLOW)
    return p.returncode, out, err


def doctor(isle, *options: str, env: dict[str, str] | None = None, prefix=()) -> tuple[int, dict]:
    status, out, err = call(isle, "--json", *options, env=env, prefix=prefix)
    assert out.count(b"\n") == 1, (out, err)
    return status, results.strict_json(out)


def row(report: dict, name: str) -> dict:
    return next(c for c in report["checks"] if c["name"] == name)


def test_doctor_on_this_host(isle):
    status, report = doctor(isle)
    assert status == 0 and report["isolated"] is True, [c for c in report["checks"] if c["state"] == "failed"]
    assert set(report["downgrades"]) == set(variants.NOW.downgrades)
    jobs = report["self_test"]["jobs"]
    assert [j["name"] for j in jobs if j["attack"]] == ATTACKS
    memory = "not enforced" if "no_cgroup_memory" in variants.NOW.downgrades else "held"
    for j in jobs:
        assert j["verdict"] == (memory if j["name"] == "memory" else "held"), j
    assert row(report, "python")["found"] == "Python 3.13.5"
    for check in report["checks"]:
        assert list(check) == ["group", "name", "state", "found", "cost", "fix"]
        assert check["found"], check
        lacking = check["state"] in ("advice", "degraded", "failed")
        assert (check["cost"] is not None) is lacking and (check["fix"] is not None) is lacking, check


def test_doctor_for_people(isle):
    status, out, err = call(isle, "--no-self-test")
    assert status == 0 and err == b"" and b"\033" not in out and b"self-test was left out" in out
    groups = [line for line in out.decode().splitlines() if line and line[0] != " "]
    assert groups[:3] == ["system", "rights", "namespaces"]


def assert_nothing_planted() -> None:
    if not harness.SHARED_HOST:  # else they may be another doctor's
        assert not list(pathlib.Path("/tmp").glob("isle-" + "[0-9a-f]" * 32))
        assert not re.search("@isle-[0-9a-f]{32}", pathlib.Path("/proc/net/unix").read_text())


def test_doctor_leaves_nothing_planted(isle):
    doctor(isle)
    assert_nothing_planted()


@pytest.mark.parametrize("words", [["--nonsense"], ["now"], ["--json=1"]])
def test_doctor_bad_words(isle, words):
    status, out, err = call(isle, *words)
    assert status == 125 and out == b"" and err.startswith(b"isle doctor: "), err


def test_doctor_lists_downgrades_with_their_fix(isle):
    status, report = doctor(isle, env=REFUSE_ALL)
    assert status == 0 and report["level"] == "degraded"
    assert report["downgrades"] == ["no_user_namespace"] and report["self_test"]["rung"] == "none"
    r = row(report, "no_user_namespace")
    assert r["state"] == "degraded" and "user namespace" in r["cost"] and r["fix"]


def test_KER_03_doctor_names_a_missing_loopback(isle):
    status, report = doctor(isle, env={"ISLE_TEST_REFUSE_RUNGS": str(1 << 4)})
    assert status == 0 and report["level"] == "degraded" and report["downgrades"] == ["no_loopback"], report
    assert row(report, "loopback")["state"] == "degraded"
    assert next(j for j in report["self_test"]["jobs"] if j["name"] == "network")["verdict"] == "held"


def test_doctor_with_a_widened_filter(isle):
    """What the operator allows is no escape, but it is told."""
    status, report = doctor(isle, env={"SANDBOX_SECCOMP_ALLOW": "keyctl"})
    assert status == 0 and report["downgrades"] == ["seccomp_allow"]
    kernel = next(c for c in report["checks"] if c["group"] == "self-test" and c["name"] == "kernel")
    assert kernel["state"] == "degraded" and "keyctl" in kernel["found"], kernel


def test_doctor_without_isolation(isle):
    """No job can run: 1, and the row that says why."""
    for env, name in (
        ({"SANDBOX_RUNTIME_ROOT": "/nowhere"}, "runtime root"),
        (REFUSE_ALL | {"SANDBOX_REQUIRE_USER_NAMESPACE": "true"}, "start"),
    ):
        status, report = doctor(isle, env=env)
        assert status == 1 and report["isolated"] is False and report["level"] == "none", report
        assert row(report, name)["state"] == "failed"
        assert report["self_test"]["started"] is False


@pytest.mark.parametrize(
    ("what", "status", "state", "found"),
    [
        ("missing", 1, "failed", "No such file"),
        ("set-uid", 1, "failed", "CVE-2026-41163"),
        ("old", 0, "advice", "version 0.8.0"),
    ],
)
def test_doctor_names_what_is_wrong_with_bubblewrap(isle, what, status, state, found):
    with variants.folder("isle-bwrap-") as folder:
        folder.chmod(0o755)  # it is asked for its version as nobody
        bwrap = folder / "bwrap"
        if what != "missing":
            bwrap.write_text("#!/bin/sh\necho bubblewrap 0.8.0\n")
            bwrap.chmod(0o4755 if what == "set-uid" else 0o755)
        got, report = doctor(isle, "--no-self-test", env={"SANDBOX_FILESYSTEM_ISOLATION_BINARY": str(bwrap)})
    check = row(report, "bubblewrap")
    assert (got, check["state"]) == (status, state) and found in check["found"], check
    assert state != "advice" or "CVE-2026-87766" in check["cost"]


# ---- The attacks are worth something: without a sandbox each finds what it looks for

OUTSIDE = """
import sys, json
def attack(params):
{body}
print(json.dumps(attack(json.loads(sys.argv[1]))))
"""


@pytest.mark.parametrize("name", [a for a in ATTACKS if a != "memory"])
def test_doctor_attacks_find_an_open_door(name, tmp_path):
    body = "\n".join("    " + line for line in (PROGRAMS / f"{name}.py").read_text().splitlines())
    (tmp_path / "secret").write_text("x")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        params = {
            "secret_path": str(tmp_path / "secret"),
            "secret": "open-door",
            "marker": f"isle-open-door-{os.getpid()}",
            "workspace": str(tmp_path),
            "port": listener.getsockname()[1],
            "hostname": os.uname().nodename,
        }
        # mounts of its own, so that what it mounts is gone with it
        r = subprocess.run(
            ["unshare", "-m", "-p", "-f", sys.executable, "-c", OUTSIDE.format(body=body), json.dumps(params)],
            capture_output=True,
            timeout=60 * harness.SLOW,
            env={"PATH": "/usr/bin:/bin", "X": "open-door"},
            check=False,
        )
    for folder in ("/", "/usr", "/usr/bin", "/etc", "/dev"):
        pathlib.Path(folder, params["marker"]).unlink(missing_ok=True)
    assert r.returncode == 0, r.stderr
    found = json.loads(r.stdout)
    assert found and all(type(f) is str for f in found)


# ---- Who refuses user namespaces

INNER_ROOT = ["unshare", "--user", "--map-root-user", "--mount"]


def inside(script: str) -> list[str]:
    """A prefix: root of a user namespace of its own, whose settings `script` changes first."""
    return [*INNER_ROOT, "sh", "-c", f'{script}; exec "$@"', "sh"]


def test_KER_01_doctor_says_what_refuses(isle):
    """The limit is set in a user namespace made for it: the host's own is everybody's."""
    prefix = inside("echo 0 > /proc/sys/user/max_user_namespaces")
    status, report = doctor(isle, "--no-self-test", prefix=prefix)
    r = row(report, "user namespaces")
    assert status == 1 and report["user_namespaces"] == "max_user_namespaces", report
    assert r["state"] == "failed" and r["found"] == "refused: user.max_user_namespaces is 0"
    assert "sysctl -w user.max_user_namespaces=" in r["fix"]
    assert re.search(r"for good: echo .* > /etc/sysctl\.d/\S+\.conf && sysctl --system", r["fix"])


def test_KER_01_run_says_what_refuses(isle):
    """The error and the result name the cause, the fix and isle doctor, and nothing ran."""
    prefix = inside("echo 0 > /proc/sys/user/max_user_namespaces")
    r = isle.job("-l", "bash", "-c", "echo ran", prefix=prefix)
    line = (
        "user namespaces are refused: user.max_user_namespaces is 0 "
        "(to mend it: sysctl -w user.max_user_namespaces=10000); isle doctor says more"
    )
    assert r.status == 125 and line in r.err.decode(), r
    assert r.result["reason"] == "isolation_unavailable" and line in r.result["error"]
    assert r.result["stdout"] == "" and r.result["isolation"]["level"] == "none"


@pytest.mark.parametrize(
    ("home", "root", "found"),
    [
        ("", "/nonexistent/there", "/nonexistent/there: No such file or directory"),
        ("/usr", "", "/usr/.local/share/isle/data: Permission denied"),
        ("", "/usr", "/usr: Permission denied"),
    ],
)
def test_doctor_names_a_data_folder_that_cannot_be(isle, home, root, found):
    """As somebody who may write nowhere; a folder that a setting names is not made."""
    env = {"SANDBOX_WORKSPACE_ROOT": root, "HOME": home or "/", "XDG_DATA_HOME": ""}
    nobody = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
    status, report = doctor(isle, "--no-self-test", env=env, prefix=nobody)
    folder = row(report, "data folder")
    assert (status, folder["state"], folder["found"]) == (1, "failed", found), folder


def test_start_that_fails_names_doctor(isle):
    r = isle.run("-l", "bash", "-c", "echo ran", env={"SANDBOX_RUNTIME_ROOT": "/nowhere"})
    assert r.status == 125 and r.err.endswith(b"; isle doctor says more\n"), r
    assert b"user namespaces" not in r.err


# ---- The program itself


def test_doctor_colors_only_at_a_terminal(isle):
    ours, theirs = pty.openpty()
    p = isle.start("doctor", "--no-self-test", stdout=theirs)
    os.close(theirs)
    shown = b""
    with contextlib.suppress(OSError):  # EIO: the other end is closed
        while chunk := os.read(ours, 65536):
            shown += chunk
    os.close(ours)
    assert p.wait(30 * harness.SLOW) == 0 and b"\033[32mok\033[0m" in shown
    assert b"\033" not in call(isle, "--no-self-test")[1]


@pytest.mark.parametrize("after", [0.0, 0.05, 0.15])
def test_doctor_interrupted(isle, after):
    """Nothing of the self-test stays, planted or started: the host fixture looks as well.

    A quick host has ended the self-test, a matter of 0.3 s, before the last of the signals.
    """
    for _ in range(30):  # a busy host may put us aside for as long
        p = isle.start("doctor")
        time.sleep(after * harness.SLOW)
        p.send_signal(signal.SIGINT)
        out, _ = p.communicate(timeout=60 * harness.SLOW)
        too_late = p.returncode == 0 and b"self-test" in out
        assert too_late or (p.returncode in (130, -signal.SIGINT) and b"self-test" not in out), (p.returncode, out)
        assert_nothing_planted()
        if not too_late:
            break
    assert after > 0.1 or not too_late
