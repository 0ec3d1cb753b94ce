"""The four switches of an operator, each value of each, with `isle run`."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess

import agent_session
import harness
import pytest
import service
import variants
from session_files import Files

pytestmark = pytest.mark.usefixtures("host")

OFF = {"SANDBOX_FILESYSTEM_ISOLATION_ENABLED": "false"}
FALLBACK = {"SANDBOX_LEGACY_FALLBACK_ENABLED": "true"}
WARNING = b"isle: warning: this job is not isolated (SANDBOX_FILESYSTEM_ISOLATION_ENABLED=false)\n"
LOST = ["network_host", "no_isolation"]


@pytest.fixture(scope="module")
def no_bwrap(tmp_path_factory):
    """A Bubblewrap that never makes a sandbox."""
    made = pathlib.Path("/var/tmp") / f"isle-no-bwrap-{os.getpid()}"
    source = tmp_path_factory.mktemp("no-bwrap") / "no.c"
    source.write_text('#include <stdio.h>\nint main(void) { fputs("bwrap: out of order\\n", stderr); return 1; }\n')
    subprocess.run(["gcc", "-static", "-o", made, source], check=True, timeout=60)
    made.chmod(0o755)
    yield made
    made.unlink()


def test_runtime_enabled(isle):
    assert isle.python("return 6*7", env={"SANDBOX_RUNTIME_ENABLED": "true"}).result["result"] == 42
    r = isle.run("-l", "python", "-c", "print('ran')", env={"SANDBOX_RUNTIME_ENABLED": "false"})
    assert r.status == 125 and r.out == b"" and b"SANDBOX_RUNTIME_ENABLED is false: every job is refused" in r.err, r


def test_isolation_on_is_the_default(isle):
    for env in ({}, {"SANDBOX_FILESYSTEM_ISOLATION_ENABLED": "true"}):
        r = isle.command(["/bin/readlink", "/proc/self/ns/pid"], env=env)
        assert r.result["isolation"]["level"] == "full" and r.result["isolation"]["launcher"] == "native"
        assert r.lines != [os.readlink("/proc/self/ns/pid")], r.result


def test_isolation_off(isle):
    """Level none, said everywhere; the uid, the limits and the filter stay."""
    kinds = ("pid", "ipc", "uts", "net")
    code = f"""
import os
print(*[os.readlink("/proc/self/ns/" + kind) for kind in {kinds!r}])
status = open("/proc/self/status").read()
wanted = "CapBnd:\\t0000000000000000", "NoNewPrivs:\\t1", "Seccomp:\\t2"
print(os.getuid() >= 20480, *[line in status for line in wanted])
print(os.getcwd(), os.path.exists("/var"), os.path.exists("/proc/1"))
print(open("/workspace/given").read(), file=open("/workspace/output/made", "w"))
return input()
"""
    made = pathlib.Path("/var/tmp") / f"isle-given-{os.getpid()}"
    made.write_text("given")
    words = ("--file", f"{made}:given", "--artifact", "output/made", "--stdin", "-")
    r = isle.run("--json", *words, "-l", "python", "-c", code, env=OFF, input=b"typed\n")
    made.unlink()
    result = json.loads(r.out)
    lines = result["stdout"].splitlines()
    assert result["reason"] == "ok" and result["result"] == "typed", result
    assert lines[0].split() == [os.readlink(f"/proc/self/ns/{kind}") for kind in kinds], lines
    assert lines[1:] == ["True True True True", "/workspace False False"], lines
    assert result["isolation"] == {
        "level": "none",
        "launcher": "none",
        "start": "cold",
        "network": "host",
        "downgrades": LOST,
        "fallback": None,
    }
    assert [a["path"] for a in result["artifacts"]] == ["/workspace/output/made"]
    assert r.err == WARNING, r.err


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("-l", "python", "-c", "raise ValueError"), "error"),
        (("--timeout", "1", "--", "sleep", "20"), "timeout"),
        (("--memory", "48", "-l", "python", "-c", "bytearray(200 << 20)"), "memory_limit"),
        (("--cpu-seconds", "1", "-l", "python", "-c", "while True: pass"), "cpu_limit"),
        (("-l", "javascript", "-c", "return {a: 1}"), "ok"),
        (("-l", "bash", "-c", "echo $0"), "ok"),
    ],
)
def test_isolation_off_keeps_limits_and_verdicts(isle, words, reason):
    r = isle.run("--json", *words, env=OFF)
    assert json.loads(r.out)["reason"] == reason, r.out


def test_isolation_off_leaves_nothing(isle):
    """What a job leaves running in a session of its own ends with it, though no namespace does."""
    code = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0: open("pid", "w").write(str(os.getpid())); time.sleep(600)
    os._exit(0)
while not (os.path.exists("pid") and open("pid").read()): time.sleep(0.01)
print(open("pid").read())
"""
    r = isle.run("-l", "python", "-c", code, env=OFF)
    assert r.status == 0, r
    assert harness.until(lambda: not pathlib.Path(f"/proc/{int(r.out)}").exists(), 10)  # somebody has waited for it


def test_isolation_off_has_no_launcher_to_choose(isle):
    assert isle.run("--launcher", "none", "--", "true", env=OFF).status == 0
    r = isle.run("--launcher", "native", "--", "true", env=OFF)
    assert r.status == 125 and b"there are no sandboxes" in r.err, r
    r = isle.run("--launcher", "none", "--", "true")
    assert r.status == 125 and b"there are native and bwrap" in r.err, r


def test_isolation_off_is_in_the_plan(isle):
    r = isle.run("--show-plan", "--json", "--", "true", env=OFF)
    plan = json.loads(r.out)
    steps = [step["name"] for step in plan["launch"]]
    assert plan["sandbox"]["isolated"] is False and plan["sandbox"]["network"] == "host"
    assert steps[0] == "allowed" and "user_namespace" not in steps and steps[-2:] == ["filter", "exec"]
    assert b"not isolated" in isle.run("--show-plan", "--", "true", env=OFF).out
    plan = json.loads(isle.run("--show-plan", "--json", "--", "true", env=FALLBACK).out)
    assert plan["sandbox"]["isolated"] is True and plan["sandbox"]["fallback"] is True


def test_isolation_off_is_what_doctor_says(isle):
    """Nothing is said to have escaped where nothing isolates; and nobody is told that jobs are isolated."""
    r = isle.start("doctor", "--json", env=OFF)
    out, _ = r.communicate(timeout=120)
    report = json.loads(out)
    assert r.returncode == 1 and report["isolated"] is False and report["level"] == "none", report
    assert report["downgrades"] == LOST
    assert {job["verdict"] for job in report["self_test"]["jobs"]} == {"held", "not enforced"}, report


@pytest.mark.parametrize("env", [OFF, FALLBACK])
def test_what_contradicts_a_required_namespace(isle, env):
    r = isle.run("--", "true", env={"SANDBOX_REQUIRE_USER_NAMESPACE": "true", **env})
    assert r.status == 125 and b"contradicts SANDBOX_REQUIRE_USER_NAMESPACE=true" in r.err, r


def test_binary(isle, no_bwrap):
    for value, launcher in (("", "native"), ("native", "native"), ("bwrap", "bwrap")):
        r = isle.run("--json", "--", "true", env={"SANDBOX_FILESYSTEM_ISOLATION_BINARY": value})
        assert json.loads(r.out)["isolation"]["launcher"] == launcher, r
    r = isle.run("--json", "--", "true", env={"SANDBOX_FILESYSTEM_ISOLATION_BINARY": str(no_bwrap)})
    assert json.loads(r.out)["reason"] == "isolation_unavailable", r.out


def test_fallback_off(isle, no_bwrap):
    env = {"SANDBOX_FILESYSTEM_ISOLATION_BINARY": str(no_bwrap)}
    for more in ({}, {"SANDBOX_LEGACY_FALLBACK_ENABLED": "false"}):
        r = isle.run("--json", "--", "echo", "ran", env=env | more)
        result = json.loads(r.out)
        assert result["reason"] == "isolation_unavailable" and result["stdout"] == "", result
        assert result["isolation"]["level"] == "none" and result["isolation"]["fallback"] is None


def test_fallback_when_the_sandbox_failed(isle, no_bwrap):
    """The program runs once, with all of its input, and the result says which failure was the cause."""
    env = {"SANDBOX_FILESYSTEM_ISOLATION_BINARY": str(no_bwrap), **FALLBACK}
    code = "import sys\nprint(len(sys.stdin.read()))\nopen('n', 'a').write('x')\nreturn [params, open('n').read()]"
    words = ("--params", '{"a": 1}', "--stdin", "-")
    r = isle.run("--json", *words, "-l", "python", "-c", code, env=env, input=b"y" * 300_000)
    result = json.loads(r.out)
    assert result["result"] == [{"a": 1}, "x"] and result["stdout"] == "300000\n", result
    isolation = result["isolation"]
    assert (isolation["level"], isolation["launcher"], isolation["network"]) == ("none", "none", "host")
    assert set(LOST) <= set(isolation["downgrades"])
    assert "out of order" in isolation["fallback"] and "step bubblewrap" in isolation["fallback"]
    assert b"isle: warning: this job ran without isolation, as its sandbox failed: Bubblewrap (" in r.err, r.err


def test_no_fallback_when_the_program_failed(isle):
    for words in (("-l", "python", "-c", "1/0"), ("--", "/none"), ("--cwd", "/workspace/none", "--", "true")):
        r = isle.run("--json", *words, env=FALLBACK)
        result = json.loads(r.out)
        assert result["reason"] == "error" and result["isolation"]["fallback"] is None, result
        assert b"warning" not in r.err, r.err


# ---- The service: the same four, in what it answers, logs, and says of itself


def events_of(s: service.Service, name: str) -> list[dict]:
    return [row for row in s.log_rows() if row.get("event") == name]


def figure(s: service.Service, name: str) -> int:
    with s.client(unix=True) as c:
        return int(c.metric(name))


def refused_start(*options: str, **settings: str) -> str:
    with variants.folder("isle-serve-") as folder:
        folder.chmod(0o755)
        s = service.Service(folder, settings, *options)
        try:
            s.start(wait=False)
            assert s.process.wait(60) == 125
            s.process = None
        finally:
            s.abandon()
        return s.log()


def test_service_refuses_every_job():
    with service.serving({"SANDBOX_RUNTIME_ENABLED": "false"}, ready=False) as s:
        s.wait_listening()
        for path, body in (
            (service.EXECUTE, {"language": "python", "code": "1"}),
            (service.JOBS, {"language": "python", "code": "1"}),
        ):
            a = s.post(path, body)
            assert a.status == 503 and a.msg == "SANDBOX_RUNTIME_ENABLED is false: every job is refused", a
        agent = agent_session.Agent(s)
        for tool, arguments in (("bash", {"command": "true"}), ("artifact", {"paths": ["f"]})):
            a = agent.post(tool, **arguments)
            assert a.status == 503 and a.msg == "SANDBOX_RUNTIME_ENABLED is false: every job is refused", a
        assert agent.call("write", path="f", content="no job\n")["success"]
        assert agent.call("read", path="f")["shown"] == 1
        a = s.get("/readyz")
        assert a.status == 503 and b"SANDBOX_RUNTIME_ENABLED is false" in a.body, a
        assert s.get("/healthz").status == 200
        assert [row["why"] for row in events_of(s, "jobs are refused")] == ["SANDBOX_RUNTIME_ENABLED=false"]


def test_service_refuses_what_waits_when_it_is_told_to():
    """By SIGHUP: what runs goes on, what waits is refused, and it is as easily undone."""
    with variants.folder("isle-conf-") as folder:
        file = folder / "isle.conf"
        folder.chmod(0o755)
        file.write_text("SANDBOX_WORKER_CONCURRENCY=1\n")
        with service.serving(None, "--config", str(file)) as s:
            files = Files(s)
            script = "until [ -e go ]; do sleep 0.02; done"
            first = s.submit({"command": ["sh", "-c", script], "session_id": files.session})
            assert harness.until(lambda: s.job(first)["status"] == "running", 20)
            second = s.submit({"command": ["true"]})
            file.write_text("SANDBOX_WORKER_CONCURRENCY=1\nSANDBOX_RUNTIME_ENABLED=false\n")
            s.process.send_signal(signal.SIGHUP)
            assert harness.until(lambda: s.get("/readyz").status == 503, 20)
            assert s.post(service.JOBS, {"command": ["true"]}).status == 503
            assert files.put("go").status == 201
            assert s.wait(first)["reason"] == "ok"
            r = s.wait(second)
            assert r["reason"] == "policy" and "SANDBOX_RUNTIME_ENABLED is false" in r["error"], r
            file.write_text("SANDBOX_WORKER_CONCURRENCY=1\n")
            s.process.send_signal(signal.SIGHUP)
            assert harness.until(lambda: s.get("/readyz").status == 200, 20)
            assert s.python("return 1")["result"] == 1


def test_service_without_isolation():
    with service.serving(OFF) as s:
        r = s.python("import os\nreturn os.readlink('/proc/self/ns/pid')")
        assert r["result"] == os.readlink("/proc/self/ns/pid"), r
        assert r["isolation"]["level"] == "none" and r["isolation"]["downgrades"] == LOST, r
        accepted = s.wait(s.submit({"command": ["true"]}))
        assert accepted["isolation"]["level"] == "none", accepted
        assert b"no_isolation" in s.get("/readyz").body
        assert figure(s, "isle_unisolated_jobs_total") == 2 and figure(s, "isle_fallback_runs_total") == 0
        assert len(events_of(s, "jobs are not isolated")) == 1
        assert all("no_isolation" in row["downgrades"] for row in events_of(s, "job ended"))


def test_service_without_isolation_is_for_loopback_only():
    """No switch and no key makes it anything else."""
    for where in ("0.0.0.0:0", "[::]:0", "127.0.0.1:0,0.0.0.0:0"):
        for more in ({}, {"SANDBOX_LEGACY_FALLBACK_ENABLED": "true"}):
            said = refused_start("--listen", where, **OFF, **more)
            assert "jobs without isolation are for loopback only" in said, said


def test_service_with_a_bubblewrap():
    with service.serving({"SANDBOX_FILESYSTEM_ISOLATION_BINARY": "bwrap"}) as s:
        assert s.python("return 1")["isolation"]["launcher"] == "bwrap"
        (row,) = events_of(s, "sandboxes by Bubblewrap")
        assert "/bwrap " in row["bwrap"] and row["bwrap"].split()[-1][0].isdigit(), row
        assert "prepared" in row["native_would_add"], row


def test_service_falls_back(no_bwrap):
    settings = {"SANDBOX_FILESYSTEM_ISOLATION_BINARY": str(no_bwrap), **FALLBACK}
    with service.serving(settings) as s:
        r = s.python("return 1")
        assert r["result"] == 1 and r["isolation"]["level"] == "none", r
        assert "out of order" in r["isolation"]["fallback"], r
        (row,) = events_of(s, "job ended")
        assert row["level"] == "warning" and "out of order" in row["fallback"], row
        assert len(events_of(s, "jobs whose sandbox fails run without one")) == 1
        assert b"no_isolation" in s.get("/readyz").body
        assert figure(s, "isle_unisolated_jobs_total") == 1 and figure(s, "isle_fallback_runs_total") == 1
        r = s.python("raise ValueError")  # of a program that fails it says no more than that
        assert r["reason"] == "error", r


def test_service_does_not_fall_back(no_bwrap):
    with service.serving({"SANDBOX_FILESYSTEM_ISOLATION_BINARY": str(no_bwrap)}, ready=False) as s:
        s.wait_listening()
        r = s.python("return 1")
        assert r["reason"] == "isolation_unavailable" and r["isolation"]["fallback"] is None, r
        assert s.get("/readyz").status == 503
