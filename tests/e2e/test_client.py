"""isle's verbs that speak to a service, with a real one: what they say, and that `isle run --url` is `isle run`."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import pty
import re
import signal
import subprocess
import time
import zipfile

import harness
import host
import pytest
import results

UUID = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
KEY = r"isle_\S{20,}"


def words(service, *args: object, input: bytes | None = None, within: float = 30, cwd: object = "/", **env: str):
    """`isle ARGS` towards the service."""
    base = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", "ISLE_URL": f"http://127.0.0.1:{service.port}"}
    base |= {k: os.environ[k] for k in ("ISLE_LIBEXEC", "ASAN_OPTIONS", "UBSAN_OPTIONS") if k in os.environ}
    return subprocess.run(
        [str(harness.ISLE), *map(str, args)],
        input=input,
        stdin=subprocess.DEVNULL if input is None else None,
        capture_output=True,
        timeout=within * harness.SLOW,
        check=False,
        env=base | env,
        cwd=cwd,
    )


def said(service, *args: object, **kw) -> str:
    r = words(service, *args, **kw)
    assert r.returncode == 0, r
    return r.stdout.decode()


def data(service, *args: object, **kw):
    """With --json: one line of strict JSON."""
    text = said(service, *args, "--json", **kw)
    assert text.count("\n") == 1
    return results.strict_json(text.encode())


# ---- isle run --url

OUT = "open('/workspace/out/a', 'w').write('a' * 100000); open('/workspace/b', 'w').close()"
TABLE = {
    "value": ["-l", "python", "-c", "print('out'); return {'a': 12345678901234567890}"],
    "error": ["-l", "python", "-c", "import sys; print('err', file=sys.stderr); raise ValueError('no')"],
    "javascript": ["-l", "javascript", "-c", "console.log('héllo'); return [1, 1.5, null]"],
    "status": ["-l", "bash", "-c", "echo hi; exit 3"],
    "signal": ["--", "/bin/sh", "-c", "kill -9 $$"],
    "timeout": ["--timeout", "1", "--", "sleep", "20"],
    "missing": ["--", "no-such-program"],
    "memory": ["--memory", "64", "-l", "python", "-c", "x = b'a' * (1 << 30)"],
    "cut": ["--max-stdout-kb", "16", "-l", "python", "-c", "print('é' * 20000)"],
    "open line": ["-l", "bash", "-c", "printf 'no newline'; printf err >&2"],
    "params": ["-l", "python", "-c", "return params", "--params", '{"x": 1.10, "y": 123456789012345678901234567890}'],
    "env": ["--env", "A=1 2", "--env", "B=é", "--", "sh", "-c", "echo $A $B"],
    "cwd": ["--cwd", "sub", "--file", "/etc/os-release:sub/f", "--", "sh", "-c", "pwd; wc -c < f"],
    "stdin": ["--stdin", "/etc/os-release", "--", "md5sum"],
    "json lines": ["-l", "python", "-c", "print('\\u2028 \\x1b[1m \\x00')"],
    "network": ["--network", "host", "-l", "python", "-c", "1"],
    "bad limit": ["--timeout", "601", "-l", "python", "-c", "1"],
    "bad file": ["--file", "/nowhere", "-l", "python", "-c", "1"],
    "artifacts": ["-l", "python", "-c", f"import os; os.mkdir('out'); {OUT}", "--artifact", "out/a", "--artifact", "b"],
    "no artifact": ["-l", "python", "-c", "1", "--artifact", "a", "--artifact", "c?"],
}


def tree(folder: pathlib.Path) -> dict[str, tuple[int, bytes]]:
    return {str(p.relative_to(folder)): (p.stat().st_mode, p.read_bytes()) for p in folder.rglob("*") if p.is_file()}


@pytest.mark.parametrize("name", TABLE)
def test_a_job_is_the_same_here_and_there(isle, service, tmp_path, name):
    args, folders = TABLE[name], (tmp_path / "here", tmp_path / "there")
    take = [["--output-dir", str(f)] if "--artifact" in args else [] for f in folders]
    here = isle.run(*take[0], *args)
    there = words(service, "run", "--url", f"http://127.0.0.1:{service.port}", *take[1], *args)
    assert (there.returncode, there.stdout) == (here.status, here.out)
    assert there.stderr == here.err
    assert tree(folders[1]) == tree(folders[0])
    if name == "artifacts":
        assert set(tree(folders[1])) == {"out/a", "b"}


def test_the_result_as_json_has_the_same_shape(isle, service):
    args = ["-l", "python", "-c", "print(1); return 2"]
    here = isle.job(*args).result
    there = data(service, "run", "--url", f"http://127.0.0.1:{service.port}", *args)
    assert set(here) <= set(there)
    for key in ("success", "status", "reason", "result", "stdout", "stderr", "exit_code", "signal", "truncated"):
        assert here[key] == there[key], key
    assert re.fullmatch(UUID, there["job_id"])


def test_what_a_service_cannot_take_is_said_before_it_is_asked(service, tmp_path):
    url = f"http://127.0.0.1:{service.port}"
    for option in (
        ["--launcher", "native"],
        ["--show-plan"],
        ["--config", "/dev/null"],
        ["--set", "SANDBOX_HOSTNAME=a"],
    ):
        r = words(service, "run", "--url", url, *option, "-l", "python", "-c", "1")
        assert r.returncode == 125 and option[0].encode() in r.stderr, r
    r = words(service, "run", "--session", "0199f3a2-5a9d-7c41-9d7c-3f1b2a4c5d6e", "-l", "python", "-c", "1")
    assert r.returncode == 125 and b"--session: there is no such session" in r.stderr, r
    (tmp_path / "big").write_bytes(bytes(20 << 20))
    r = words(service, "run", "--url", url, "--file", tmp_path / "big", "-l", "python", "-c", "1")
    assert r.returncode == 125 and b"--file: the job is too large" in r.stderr, r


def start(service, *args: str, **kw) -> subprocess.Popen:
    env = {"PATH": "/usr/bin:/bin", "ISLE_URL": f"http://127.0.0.1:{service.port}"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([str(harness.ISLE), *args], env=env, **pipes | kw)


def holds_interrupts(pid: int) -> bool:
    """A client that waits hears them in its own time."""
    status = host.status_of(pid)
    return status.get("Name") == "isle-client" and int(status["SigBlk"], 16) >> (signal.SIGINT - 1) & 1 == 1


def running(service, state: str = "running") -> list[str]:
    return [row["job_id"] for row in data(service, "jobs", "list", "--status", state)["items"]]


@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_cancels_the_job_there(service, sig):
    p = start(service, "run", "--url", f"http://127.0.0.1:{service.port}", "--", "sh", "-c", "echo begun; sleep 60")
    assert p.stdout.readline() == b"begun\n"
    assert harness.until(lambda: len(running(service)) == 1, 20)
    p.send_signal(sig)
    out, err = p.communicate(timeout=20 * harness.SLOW)
    assert (p.returncode, out) == (130, b"") and b"cancelled" in err, err
    assert harness.until(lambda: not running(service), 20)


@pytest.mark.parametrize(
    "args",
    [
        ["run", "--session", "x", "--stdin", "-", "--", "true"],
        ["jobs", "submit", "-"],
        ["files", "put", "-", "SESSION:y"],
    ],
)
def test_input_that_never_ends_holds_no_signal_up(service, args):
    session = said(service, "sessions", "create").strip()
    p = start(service, *(a.replace("SESSION", session) for a in args), stdin=subprocess.PIPE)
    assert harness.until(lambda: host.status_of(p.pid).get("Name") == "isle-client", 20)
    time.sleep(0.3 * harness.SLOW)
    p.send_signal(signal.SIGINT)
    assert p.wait(20 * harness.SLOW) in (-signal.SIGINT, 130)
    p.communicate()


def test_a_reader_that_leaves_cancels_the_job_there(service):
    p = start(
        service,
        "run",
        "--url",
        f"http://127.0.0.1:{service.port}",
        "--",
        "sh",
        "-c",
        "while :; do echo x; sleep 0.01; done",
    )
    assert p.stdout.readline() == b"x\n"
    p.stdout.close()
    assert p.wait(20 * harness.SLOW) == 130
    p.stderr.close()
    assert harness.until(lambda: not running(service), 20)


@pytest.mark.parametrize("action", [("wait",), ("events",), ("events", "--json")])
def test_output_that_cannot_be_written_is_no_cancellation(service, action):
    ident = service.submit({"command": ["sh", "-c", "echo x; sleep 60"]})
    with open("/dev/full", "wb") as full:
        p = start(service, "jobs", *action, ident, stdout=full)
        _, said_so = p.communicate(timeout=20 * harness.SLOW)
    assert (p.returncode, said_so) == (125, b"isle jobs: output: No space left on device\n")
    p = start(service, "jobs", *action, ident)
    p.stdout.close()
    assert (p.wait(20 * harness.SLOW), p.stderr.read()) == (130, b"")
    p.stderr.close()
    assert service.job(ident)["status"] == "running"
    service.cancel(ident)
    assert service.wait(ident)["reason"] == "cancelled"


def test_output_is_live(service):
    code = "import time, sys; print('one'); sys.stdin.read(); time.sleep(30)"
    p = start(service, "run", "--url", f"http://127.0.0.1:{service.port}", "-l", "python", "-c", code)
    assert p.stdout.readline() == b"one\n"
    assert harness.until(lambda: len(running(service)) == 1, 5), "it came at the end"
    p.send_signal(signal.SIGINT)
    p.communicate(timeout=20 * harness.SLOW)


def test_a_service_that_is_started_again_meanwhile(service):
    """The job was running and ends as worker_lost; who waits for it hears that from the next start."""
    url = f"http://127.0.0.1:{service.port}"
    p = start(service, "run", "--url", url, "--", "sh", "-c", "echo begun; sleep 60")
    assert p.stdout.readline() == b"begun\n"
    service.kill("front", "service", "launcher")
    time.sleep(1)
    service.start()
    out, err = p.communicate(timeout=40 * harness.SLOW)
    assert (p.returncode, out) == (125, b"") and err.startswith(b"isle: worker_lost"), (p.returncode, out, err)


# ---- isle jobs


def test_jobs_from_submission_to_end(service, tmp_path):
    job = {"language": "python", "code": "print('out'); return 42"}
    (tmp_path / "job.json").write_text(json.dumps(job))
    ident = said(service, "jobs", "submit", tmp_path / "job.json").strip()
    assert re.fullmatch(UUID, ident)
    r = words(service, "jobs", "wait", ident)
    assert (r.returncode, r.stdout, r.stderr) == (0, b"out\n42\n", b"")
    r = words(service, "jobs", "submit", "-", "--wait", "20", input=json.dumps(job).encode())
    assert (r.returncode, r.stdout, r.stderr) == (0, b"out\n42\n", b"")
    shown = said(service, "jobs", "show", ident)
    assert f"job: {ident}\nstatus: completed\nreason: ok\nexit code: 0\nresult: 42\n" in shown
    assert data(service, "jobs", "show", ident)["result"] == 42
    rows = [line.split("\t") for line in said(service, "jobs").splitlines()]
    assert [row for row in rows if row[0] == ident and row[1:3] == ["completed", "ok"]]
    assert all(len(row) == 7 for row in rows)


def test_a_job_that_fails_fails_its_wait(service):
    r = words(service, "jobs", "submit", "-", "--wait=20", input=b'{"command": ["sh", "-c", "echo a; exit 7"]}')
    assert (r.returncode, r.stdout) == (7, b"a\n"), r
    ident = (
        words(service, "jobs", "submit", "-", input=b'{"command": ["sh", "-c", "echo a; exit 7"]}')
        .stdout.decode()
        .strip()
    )
    r = words(service, "jobs", "wait", ident)
    assert (r.returncode, r.stdout) == (7, b"a\n"), r
    assert data(service, "jobs", "list", "--limit", "1")["items"][0]["reason"] == "error"


def test_events_of_a_job(service):
    ident = said(service, "jobs", "submit", "-", input=b'{"command": ["echo", "a"]}').strip()
    lines = said(service, "jobs", "events", ident).splitlines()
    names = [line.split("\t")[0] for line in lines]
    assert names[-1] == "result" and "stdout" in names and "status" in names
    parsed = [json.loads(line) for line in said(service, "jobs", "events", ident, "--json").splitlines()]
    assert [e["data"]["text"] for e in parsed if e["event"] == "stdout"] == ["a\n"]


def test_cancel_and_a_wait_that_is_given_up(service):
    ident = said(service, "jobs", "submit", "-", input=b'{"command": ["sleep", "60"]}').strip()
    p = start(service, "jobs", "wait", ident)
    assert harness.until(lambda: ident in running(service), 10)
    assert harness.until(lambda: holds_interrupts(p.pid), 10)
    p.send_signal(signal.SIGINT)
    p.communicate(timeout=20 * harness.SLOW)
    assert p.returncode == 130
    assert ident in running(service), "a wait that ends is no cancel"
    assert said(service, "jobs", "cancel", ident) == ""
    assert words(service, "jobs", "wait", ident).returncode == 130
    assert said(service, "jobs", "cancel", ident) == "", "once more is harmless"


def test_the_same_job_twice_is_one(service):
    """Also when it has ended: who does not wait is told its id, who waits its result."""
    again = ("jobs", "submit", "-", "--idempotency-key", "k1")
    job = {"input": b'{"command": ["echo", "once"]}'}
    ident = said(service, *again, **job).strip()
    assert said(service, *again, **job).strip() == ident
    assert said(service, "jobs", "wait", ident) == "once\n"
    assert harness.until(lambda: service.job(ident)["status"] == "completed", 20)
    assert said(service, *again, **job).strip() == ident
    assert said(service, *again, "--wait", "20", **job) == "once\n"
    r = words(service, *again, input=b'{"command": ["false"]}')
    assert r.returncode == 125 and b"Idempotency-Key" in r.stderr


def test_pages(service):
    for _ in range(3):
        said(service, "jobs", "submit", "-", input=b'{"command": ["true"]}')
    r = words(service, "jobs", "list", "--limit", "2")
    cursor = re.fullmatch(rb"isle: there is more: --cursor (\S+)\n", r.stderr)
    assert len(r.stdout.splitlines()) == 2 and cursor, r
    more = said(service, "jobs", "list", "--limit", "1", "--cursor", cursor[1].decode())
    assert more and more.split("\t")[0].encode() not in r.stdout


def test_mistakes_are_told_by_name(service):
    nobody = "0199f3a2-5a9d-7c41-9d7c-3f1b2a4c5d6e"
    rows = {
        ("jobs", "show", nobody): "no such job",
        ("jobs", "show", "../../../keys"): "",
        ("jobs", "wait", nobody): "no such job",
        ("jobs", "events", nobody): "no such job",
        ("jobs", "cancel", nobody): "no such job",
        ("jobs", "list", "--status", "odd"): "status",
        ("jobs", "list", "--limit", "100000"): "limit",
        ("jobs", "submit", "/nowhere"): "/nowhere",
        ("jobs", "submit", "/dev/null"): "",
        ("jobs", "submit", "-", "--wait", "x"): "--wait",
        ("jobs", "submit", "/etc/hostname", "--idempotency-key", ""): "--idempotency-key",
        ("jobs", "cancel", ".."): '".." is not an id',
        ("run", "--session", "12", "--", "true"): '"12"',
        ("tools", "run", "--session", "12", "x"): '"12"',
        ("tools", "show", "x-y"): "x-y",
        ("tools", "share", "x", "_y", "--permission", "read_only"): '"_y"',
        ("tools", "restore", "x", "a"): "a is not a number",
        ("key", "create", "--team", "_x", "--name", "n"): '"_x"',
        ("artifacts", "list", nobody): "no such job",
    }
    for args, word in rows.items():
        r = words(service, *args)
        assert r.returncode == 125 and r.stdout == b"" and r.stderr.count(b"\n") == 1, (args, r)
        assert word in r.stderr.decode(), (args, r)
    # an id that is none is named, with what one looks like
    for args in ("jobs show", "jobs wait", "jobs events", "jobs cancel", "artifacts list",
                 "sessions show", "sessions extend", "sessions delete", "files list", "files get",
                 "files delete", "key revoke"):  # fmt: skip
        r = words(service, *args.split(), "12\n3:x" if "files" in args else "12\n3")
        assert r.returncode == 125 and r.stderr.count(b"\n") == 1 and b'"12\\n3"' in r.stderr, (args, r)
        form = b"16 hexadecimal digits" if "key" in args else b"a UUID in lower case"
        assert form in r.stderr and b" list`" in r.stderr, (args, r)
    r = service.get("/api/v1/sandbox/jobs/12")
    assert r.status == 404 and r.msg == 'path: "12" is not an id: a UUID in lower case'
    closed = words(service, "jobs", ISLE_URL="http://127.0.0.1:9")
    assert closed.returncode == 125 and b"`isle serve` starts one" in closed.stderr
    assert b"ISLE_URL" in words(service, "jobs", "--url", "unix:/nowhere/x").stderr
    tls = words(service, "jobs", ISLE_URL=f"https://127.0.0.1:{service.port}")
    assert tls.returncode == 125 and b"TLS is a proxy's" in tls.stderr
    odd = words(service, "jobs", ISLE_URL="", ISLE_AUDIT_LOG="odd")
    assert b"ISLE_AUDIT_LOG" in odd.stderr and b"is asked" in odd.stderr


def on_terminal(service, *args: str, **more: str) -> tuple[int, str]:
    pid, fd = pty.fork()
    if pid == 0:
        env = {"PATH": "/usr/bin:/bin", "ISLE_URL": f"http://127.0.0.1:{service.port}", "TERM": "xterm"}
        os.execve(harness.ISLE, [str(harness.ISLE), *args], env | more)
    text = b""
    with contextlib.suppress(OSError):
        while piece := os.read(fd, 65536):
            text += piece
    os.close(fd)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), text.decode().replace("\r\n", "\n")


def test_tables_at_a_terminal(service):
    said(service, "jobs", "submit", "-", "--wait", "20", input=b'{"command": ["true"]}')
    status, text = on_terminal(service, "jobs", "list", "--limit", "1")
    head, row = text.splitlines()[:2]
    assert status == 0 and head.split() == ["job", "status", "reason", "session", "submitted", "started", "ended"]
    assert row.index("completed") == head.index("status") and "\t" not in text


# ---- isle artifacts


def test_artifacts_of_a_job(service, tmp_path):
    code = "import os; os.mkdir('d'); open('d/a', 'w').write('abc'); open('b', 'w').write('b' * 300000)"
    job = {"language": "python", "code": code, "artifacts": ["d/a", "b"]}
    r = words(service, "jobs", "submit", "-", "--wait", "20", "--json", input=json.dumps(job).encode())
    ident = results.strict_json(r.stdout)["job_id"]
    rows = [line.split("\t") for line in said(service, "artifacts", "list", ident).splitlines()]
    assert [row[:2] for row in rows] == [["/workspace/d/a", "3"], ["/workspace/b", "300000"]]
    assert [a["path"] for a in data(service, "artifacts", "list", ident)] == ["/workspace/d/a", "/workspace/b"]
    said(service, "artifacts", "get", "--output-dir", tmp_path / "all", ident)
    assert {k: v[1] for k, v in tree(tmp_path / "all").items()} == {"d/a": b"abc", "b": b"b" * 300000}
    said(service, "artifacts", "get", "--output-dir", tmp_path / "one", ident, "d/a")
    assert set(tree(tmp_path / "one")) == {"d/a"}
    r = words(service, "artifacts", "get", "--output-dir", tmp_path / "one", ident, "nothing")
    assert r.returncode == 125 and b"no such artifact" in r.stderr


def test_a_folder_comes_as_an_archive(service, tmp_path):
    run = ("run", "--url", f"http://127.0.0.1:{service.port}", "--artifact", "d", "--output-dir", tmp_path / "run")
    assert said(service, *run, "-l", "bash", "-c", "mkdir d; echo one > d/a") == ""
    assert set(tree(tmp_path / "run")) == {"d.zip"}
    with zipfile.ZipFile(tmp_path / "run/d.zip") as archive:
        assert {n: archive.read(n) for n in archive.namelist() if n.endswith("a")} in (
            {"a": b"one\n"},
            {"d/a": b"one\n"},
        )
    ident = data(service, "jobs", "list", "--limit", "1")["items"][0]["job_id"]
    said(service, "artifacts", "get", "--output-dir", tmp_path / "get", ident, "d")
    assert tree(tmp_path / "get") == tree(tmp_path / "run")


# ---- isle sessions, isle files


def test_a_session_and_its_files(service, tmp_path):
    session = said(service, "sessions", "create", "--ttl", "2", "--conversation", "c é").strip()
    assert re.fullmatch(UUID, session)
    assert said(service, "sessions", "create", "--conversation", "c é").strip() == session
    assert data(service, "sessions", "show", session)["conversation_id"] == "c é"
    assert f"session: {session}\n" in said(service, "sessions", "show", session)
    assert session in said(service, "sessions")
    run = ("run", "--session", session)
    assert said(service, *run, "-l", "bash", "-c", "mkdir d; echo one > d/a; pwd") == "/workspace\n"
    assert said(service, *run, "-l", "bash", "-c", "cat d/a") == "one\n"
    big = os.urandom(3_000_000)
    (tmp_path / "big").write_bytes(big)
    said(service, "files", "put", tmp_path / "big", f"{session}:in/a b%é")
    said(service, "files", "put", "-", f"{session}:piped", input=b"from a pipe")
    listed = {row["path"]: row["size"] for row in data(service, "files", "list", "-r", session)["items"]}
    assert len(big) in listed.values() and 11 in listed.values()
    said(service, "files", "get", f"{session}:in/a b%é", "copy", cwd=tmp_path)
    assert (tmp_path / "copy").read_bytes() == big
    assert said(service, "files", "get", f"{session}:piped", "-") == "from a pipe"
    said(service, "files", "get", f"{session}:/workspace/d/a", cwd=tmp_path)
    assert (tmp_path / "a").read_text() == "one\n"
    (tmp_path / "d").mkdir()
    said(service, "files", "get", f"{session}:d", cwd=tmp_path)
    said(service, "files", "get", f"{session}:d", "named", cwd=tmp_path)
    for name in ("d.zip", "named"):
        assert zipfile.ZipFile(tmp_path / name).namelist() == ["a"], name
    assert words(service, "files", "get", f"{session}:d/a", "d/", cwd=tmp_path).returncode == 0
    said(service, "files", "move", f"{session}:piped", "d/moved")
    assert said(service, "files", "get", f"{session}:d/moved", "-") == "from a pipe"
    said(service, "files", "delete", f"{session}:d/moved")
    other = said(service, "sessions", "create").strip()
    for args in (
        ("get", f"{session}:d/moved"),
        ("delete", f"{session}:../../{other}"),
        ("delete", f"{session}:d/.."),
        ("delete", "..:a"),
        ("put", "--new", "/etc/hostname", f"{session}:d/a"),
        ("put", "--if-match", "0" * 64, "/etc/hostname", f"{session}:d/a"),
        ("put", "/etc", f"{session}:x"),
        ("put", "/etc/hostname", f"{session}:../x"),
        ("get", f"{session}:../../etc/passwd", "-"),
        ("get", session),
    ):
        r = words(service, "files", *args, cwd=tmp_path)
        assert r.returncode == 125 and r.stdout == b"" and r.stderr.count(b"\n") == 1, (args, r)
    assert data(service, "sessions", "show", other)["session_id"] == other
    assert said(service, "files", "get", f"{session}:./d/./a", "-") == "one\n"
    assert data(service, "sessions", "extend", session, "--ttl", "5")["session_id"] == session
    assert said(service, "sessions", "delete", session) == ""
    assert words(service, *run, "-l", "bash", "-c", "1").returncode == 125
    assert words(service, "files", "list", session).returncode == 125


# ---- What is written down for readers

FOLDER = harness.ROOT / "examples/service"


def shell(service, script: str, cwd: object, **env: str) -> str:
    path = f"{harness.ISLE.parent}:/usr/sbin:/usr/bin:/sbin:/bin"
    r = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        env={"PATH": path, "LANG": "C.UTF-8", "ISLE_URL": f"http://127.0.0.1:{service.port}"} | env,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60 * harness.SLOW,
        check=False,
    )
    assert r.returncode == 0 and r.stderr == "", (r.stdout, r.stderr)
    return r.stdout


def test_what_the_guide_shows(service, tmp_path):
    """The blocks of docs/client.md that begin with a variable are whole scripts."""
    blocks = re.findall(r"^```\n((?:id|session)=.*?)^```$", (harness.ROOT / "docs/client.md").read_text(), re.S | re.M)
    assert len(blocks) == 2
    (tmp_path / "data.csv").write_text("a\nb\nc\n")
    said = [shell(service, block, tmp_path) for block in blocks]
    assert "\n42\n" in said[0] and "result\t{" in said[0]
    assert "output/lines" in said[1] and "\n3\n" in said[1]


def test_examples_with_curl(service, tmp_path):
    said = shell(service, str(FOLDER / "curl.sh"), tmp_path)
    lines = [line for line in said.splitlines() if not line.endswith(":")]
    text = [json.loads(line) for line in lines if line.startswith('"')]  # in how many pieces, is the host's business
    assert "".join(text) == "one\ntwo\n"
    assert [line for line in lines if not line.startswith('"')] == ["42", "completed", "completed", "1", "2", "3"]


def test_examples_in_python(service, tmp_path):
    said = shell(service, f"python3 {FOLDER}/client.py", tmp_path).splitlines()
    assert said[0] == "a snippet: [2, 4] in full isolation" or "degraded" in said[0]
    assert said[1].startswith("one that fails: error - ") and "division by zero" in said[1]
    assert said[2].startswith("one that is refused: limits.memory_mb: 1 is below the minimum of 32")
    assert said[3:] == ["HELLO", "it ends: completed /workspace/out.txt 4 bytes", "cancelled: ['cancelled']"]


# ---- isle key: last, as keys end the time in which nobody needs one


def test_keys(service):
    socket = f"unix:{service.socket}"
    r = words(service, "key", "create", "--team", "a", "--name", "n", ISLE_URL=socket)
    assert r.returncode == 0 and re.fullmatch(KEY + "\n", r.stdout.decode()), r
    key, ident = r.stdout.decode().strip(), r.stderr.decode().split()[-1]
    assert key not in r.stderr.decode() and "shown once" in r.stderr.decode()
    try:
        rows = [line.split("\t") for line in said(service, "key", ISLE_URL=socket).splitlines()]
        assert [row[:4] for row in rows] == [[ident, "a", "n", "no"]]
        without = words(service, "jobs")
        assert without.returncode == 125 and b"isle key create" in without.stderr
        assert words(service, "jobs", ISLE_KEY=key).returncode == 0
        assert words(service, "jobs", "--key", key).returncode == 0
        assert said(service, "run", "--session", "x", "--help", ISLE_KEY=key).startswith("Runs one job")
        refused = words(service, "key", "create", "--team", "b", "--name", "n", ISLE_KEY=key)
        assert refused.returncode == 125 and refused.stdout == b"" and b"without ISLE_URL" in refused.stderr
    finally:
        assert said(service, "key", "revoke", ident, ISLE_URL=socket) == ""
    assert words(service, "jobs", ISLE_KEY=key).returncode == 125
    # the host's own socket is found by the settings that the service has
    env = {"ISLE_URL": "", "ISLE_SOCKET": str(service.socket)}
    assert said(service, "key", "list", **env).startswith(ident)
    for some in (("--team", "b"), ("--cursor", ident)):  # that there is none of these says nothing of others
        r = words(service, "key", "list", *some, **env)
        assert (r.returncode, r.stdout, r.stderr) == (0, b"", b""), (some, r)
    r = words(service, "key", "list", "--limit", "1", **env)
    assert r.stdout.decode().startswith(ident) and r.stderr == f"isle: there is more: --cursor {ident}\n".encode()
