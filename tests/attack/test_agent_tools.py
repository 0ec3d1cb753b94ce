"""Agents' tools attacked: by who calls them, and by jobs of the session that set traps for them."""

from __future__ import annotations

import concurrent.futures
import contextlib
import json
import os
import pathlib
import re
import tempfile
import threading
import time
from collections.abc import Callable, Iterator

import harness
import pytest
from agent_session import Agent, links
from service import JOBS, SESSIONS, Answer, Service, serving

SERVICE_SETTINGS = {"SANDBOX_WORKER_CONCURRENCY": "4"}
SECRET = "CANARY-7b1f"
SOON = 5 * harness.SLOW  # seconds


@pytest.fixture(scope="module", autouse=True)
def a_team(service: Service) -> None:
    """There are several here, and nobody without a key."""
    service.key = service.new_key("a")


@pytest.fixture
def agent(service: Service) -> Iterator[Agent]:
    a = Agent(service)
    yield a
    assert service.call("DELETE", f"{SESSIONS}/{a.session}").status == 200


@pytest.fixture(autouse=True)
def no_500(service: Service) -> Iterator[None]:
    yield
    assert service.process.poll() is None
    assert [r for r in service.log_rows() if r.get("status") == 500] == []


@contextlib.contextmanager
def within(seconds: float) -> Iterator[None]:
    begin = time.monotonic()
    yield
    assert time.monotonic() - begin < seconds


def quick(call: Callable[[], Answer], seconds: float = 0.1) -> Answer:
    """Its answer, which comes within this time; one of a few does, where others have the machine now and then."""
    for _ in range(10):
        begin = time.monotonic()
        answer = call()
        took = time.monotonic() - begin
        if took < seconds * harness.SLOW:
            return answer
    raise AssertionError(f"{took} s, and never within {seconds * harness.SLOW} s")


def refused(agent: Agent, tool: str, /, **arguments) -> str:
    """What the call is told: by the tool (200), or as no call at all (422)."""
    a = agent.post(tool, **arguments)
    if a.status != 200:
        assert a.status in (413, 422), (a.status, a.body)
        return a.msg
    assert a.data["success"] is False and a.data["error"], a.data
    return a.data["error"]


def all_refuse(agent: Agent, path: str) -> None:
    """Each of the tools, the same way of naming a file."""
    line = [{"op": "replace", "line": 1, "new": "x"}]
    for tool, arguments in (
        ("read", {"path": path}),
        ("write", {"path": path, "content": "x"}),
        ("edit", {"path": path, "tag": "0000", "edits": line}),
        ("artifact", {"paths": [path]}),
        ("bash", {"command": "true", "cwd": path}),
    ):
        with within(SOON):
            why = refused(agent, tool, **arguments)
        assert SECRET not in why and "root:" not in why, (tool, path, why)


# ---- D25


def test_D25_patterns_burn_no_cpu(agent):
    agent.call("write", path="a", content="a" * 40 + "!\n")
    with within(SOON):
        r = agent.call("read", path="a", search="(a+)+$")
        assert r["success"] and r["shown"] == 0, r
    agent.says("mkdir -p d/d/d/d/d/d/d/d; head -c 100000000 /dev/zero | tr '\\0' a > line", timeout=60)
    edit = {"path": "line", "tag": "0000", "edits": [{"op": "replace_block", "line": 1, "new": "x"}]}
    for tool, arguments in (("read", {"path": "line", "search": "(a+)+$"}), ("edit", edit)):
        with within(SOON):
            a = agent.post(tool, **arguments)
            assert a.status == 200 and len(a.body) < 1 << 20, a.body[:300]
    for pattern in ("**/**/**/**/*", "*" * 200 + "b", "{a,b}{a,b}{a,b}{a,b}" * 9, "[" * 100):
        with within(SOON):
            assert refused(agent, "read", path=pattern)
            assert refused(agent, "artifact", paths=[pattern])
            assert agent.list(pattern, recursive="true").status in (404, 422)
    agent.put("long", b"x" * 9999 + b"\n" + b"(a+)+$\n" * 9999)
    with within(SOON):  # a search that almost matches everywhere
        assert agent.call("read", path="long", search="(a+)+" * 200)["shown"] == 0


MUCH = 60_000_000  # just below the bound of a file, so that the line is looked at
LONG_LINES = {
    # a file: what stands before its long line, of what that is, what stands behind; and the block of its first line
    "a string": ("f.py", b"def f():\n    x = '", b"a", b"'\n", 2),
    "behind the block": ("f.py", b"def f():\n    return 1\ny = [", b"[],", b"]\n", 2),
    "braces": ("f.c", b"int f(void) {\n", b"{}", b"\n}\n", 3),
}


@pytest.mark.parametrize("what", LONG_LINES)
def test_D25_lines_as_long_as_a_file(service, agent, what):
    """Where a block ends, and where the first line is in a file that has changed."""
    name, before, piece, after, block = LONG_LINES[what]
    text = before + piece * (MUCH // len(piece)) + after
    agent.put(name, text)
    with service.grows_at_most(3 * MUCH >> 10):
        with within(5 * SOON):
            tag = agent.ok("read", path=name, end_line=1)["tag"]
        with within(5 * SOON):
            [change] = agent.edit(name, f"1#{tag}", "pass", "replace_block")["changes"]
        assert change["removed"] == block
        agent.put(name, b"first\n" + text)
        with within(5 * SOON):
            [change] = agent.edit(name, f"1#{tag}", "pass")["changes"]
        assert change["first_line"] == 2


# ---- F07: what takes no bytes


def test_F07_empty_files_and_folders(a_team):
    """They are bounded, too: by the room that they take, or by their number, where they take none."""
    with serving({"SANDBOX_MAX_DISK_MB": "15"}) as s:
        a = Agent(s)
        deep = [f"{i}{'/q' * 63}" for i in range(120)]
        a.ok("write", path=deep[0], content="")
        begin = iter(deep[1:])
        why = harness.until(lambda: a.call("write", path=next(begin), content="")["error"], 10 * SOON)
        assert "the disk is full" in why, why
        assert a.put("new", b"").status == a.put("new/folder/f", b"").status == 413
        assert a.call("write", path="new", content="")["success"] is False
        assert a.move(deep[0], "new/folder/f").status == 404
        a.ok("write", path=deep[0], content="")  # what is there can be made smaller
        # On a busy host the job is seen to be over its disk's limit before it has removed enough: then once more.
        assert harness.until(lambda: a.sh("rm -r /workspace/*")["success"], 20)
        assert harness.until(lambda: s.metric("isle_sessions_disk_bytes") < 1 << 20, 20)
        r = a.call("write", path="new", content="")
        assert r["success"], r


# ---- FS-12, FS-05: one rule for all tools


OUTSIDE = ("/etc/hostname", "/proc/self/environ", "/workspaceX/a", "//etc/passwd", "/workspace/../etc/x", "../../x")
ODD = ("a\0b", "", "/", ".", "..", "a/../../x", "/workspace", "x" * 256, "a/" * 3000 + "a", "/workspace/./../w")


def test_FS_12_the_five_tools(agent):
    for path in OUTSIDE + ODD:
        if path in (".", "/workspace"):  # a folder, of which one may run commands
            continue
        all_refuse(agent, path)
    assert not os.path.exists("/etc/x")
    for tool in ("read", "write"):
        assert refused(agent, tool, path="/workspace", **({"content": ""} if tool == "write" else {}))


def test_FS_05_links(agent):
    agent.says("ln -s /etc/passwd p; ln -s / root; ln -s /proc/self/root r; ln -s loop loop; ln -s . here")
    for path in ("p", "root/etc/hostname", "r/etc/passwd", "loop", "loop/x", "here/p"):
        for tool, more in (("read", {}), ("write", {"content": "x"}), ("artifact", None)):
            arguments = {"paths": [path]} if more is None else {"path": path, **more}
            assert "root:" not in refused(agent, tool, **arguments), (tool, path)
    assert agent.says("readlink p root loop") == "/etc/passwd\n/\nloop", "no link was written through, or replaced"


def test_what_is_no_file(agent):
    """FIFO, socket, folder, hard links, and a sparse file of 1 GB: nobody waits, nobody reads it whole."""
    agent.says(
        "mkfifo fifo; mkdir folder; echo one > one; ln one two; truncate -s 1G huge\n"
        "python3 -c \"import socket; socket.socket(socket.AF_UNIX).bind('sock')\"\n"
        "mkdir dark; echo x > dark/f; chmod 0 dark"
    )
    for path in ("fifo", "sock", "folder", "huge"):
        with within(SOON):
            assert refused(agent, "read", path=path)
            assert refused(agent, "edit", path=path, tag="0000", edits=[{"op": "replace", "line": 1, "new": "x"}])
            assert path == "folder" or refused(agent, "artifact", paths=[path])
    for path in ("fifo", "sock", "folder"):
        with within(SOON):
            assert refused(agent, "write", path=path, content="x")
    r = agent.call("write", path="two", content="two\n")
    assert r["success"] and agent.says("cat one") == "one", "the other name keeps its content"
    with within(SOON):
        agent.call("read", path="dark/f")


# ---- A link that comes and goes


FLIP = """
import os, shutil, time
outside, end, n = params["outside"], time.time() + params["seconds"], 0
def clean(path):
    if os.path.islink(path) or os.path.isfile(path):
        os.unlink(path)
    else:
        shutil.rmtree(path, ignore_errors=True)
while n < 100 or time.time() < end or not os.path.exists("stop"):
    try:
        for path in ("d", "real"):
            clean(path)
        os.mkdir("real")
        open("real/file", "w").write("mine\\n")
        for _ in range(200):
            os.rename("real", "d"); os.rename("d", "real")
            os.symlink(outside, "d"); os.unlink("d")
            os.rename("real", "d")
            os.rename("d/file", "d/kept"); os.symlink(outside + "/file", "d/file")
            os.unlink("d/file"); os.link("d/kept", "d/file"); os.unlink("d/kept")
            os.rename("d", "real")
            n += 1
    except OSError:
        pass
return n
"""


def test_links_that_are_swapped_in(service, agent):
    """A job of the session swaps folder and file with links to a file outside, which stays unread and unwritten."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as outside:
        os.chmod(outside, 0o777)
        canary = pathlib.Path(outside, "file")
        canary.write_text(SECRET + "\n")
        canary.chmod(0o666)
        seconds = 20 if harness.LONG else 2  # at least
        seen: dict[str, int] = {}

        def attack(tool: str) -> None:
            with service.client(service.key) as c:
                mine = Agent(c, agent.session)
                while not over.is_set():
                    arguments = {
                        "read": {"path": "d/file"},
                        "write": {"path": "d/file", "content": "written\n"},
                        "edit": {"path": "d/file", "tag": "0000", "edits": [{"op": "insert_head", "new": "edited"}]},
                        "artifact": {"paths": ["d/file"]},
                    }[tool]
                    a = mine.post(tool, **arguments)
                    assert a.status == 200 and SECRET.encode() not in a.body, a.body[:500]
                    key = f"{tool} {a.data['success']}"
                    seen[key] = seen.get(key, 0) + 1
                    if tool == "artifact" and a.data["success"]:
                        data = c.get(f"{JOBS}/{a.data['job_id']}/artifacts/file").body
                        assert SECRET.encode() not in data

        over = threading.Event()
        with concurrent.futures.ThreadPoolExecutor(5) as pool:
            flips = pool.submit(
                lambda: service.client(service.key).python(
                    FLIP, params={"seconds": seconds, "outside": outside}, session_id=agent.session, timeout=60
                )
            )
            tools = [pool.submit(attack, t) for t in ("read", "write", "edit", "artifact")]
            met = ("read True", "write True")
            try:
                assert harness.until(lambda: all(map(seen.get, met)) or flips.done(), 40), seen
            finally:
                agent.put("stop")
            job = flips.result()
            over.set()
            for t in tools:
                t.result()
        assert canary.read_text() == SECRET + "\n" and os.listdir(outside) == ["file"]
        assert job["result"] > 50 and seen.get("read True", 0) and seen.get("write True", 0), (seen, job)


# ---- What the service keeps of a session


def test_memory_is_out_of_reach(service, agent):
    """Jobs do not see what read has shown; what somebody else puts in its place does no harm."""
    agent.call("write", path="a", content="one\ntwo\n")
    tag = agent.call("read", path="a")["tag"]
    kept = service.data / f"serve/kept/{agent.session}/m"
    assert harness.until(kept.exists, 10)
    found = agent.says("ls -aR /tmp; ls -a / ..; cat /workspace/../m ../m /proc/1/cwd/../m 2>&1; echo m > ../m; true")
    assert "kept" not in found and tag not in found
    assert agent.call("edit", path="a", edits=[{"op": "replace", "line": f"1#{tag}", "new": "1"}])["success"]


BROKEN = {
    "garbage": lambda p: p.write_bytes(os.urandom(1000)),
    "huge": lambda p: (p.touch(), os.truncate(p, 1 << 36)),
    "link": lambda p: p.symlink_to("/etc/passwd"),
    "folder": lambda p: p.mkdir(),
    "fifo": lambda p: os.mkfifo(p),
}


def test_a_broken_memory_is_an_empty_one(service):
    agents = {what: Agent(service) for what in BROKEN}
    kept = {what: service.data / f"serve/kept/{a.session}/m" for what, a in agents.items()}
    tags = {}
    for what, a in agents.items():
        a.call("write", path="a", content="one\n")
        tags[what] = a.call("read", path="a")["tag"]
        assert harness.until(kept[what].exists, 10)
    service.stop()
    for what, spoil in BROKEN.items():
        owner = kept[what].stat()
        kept[what].unlink()
        spoil(kept[what])
        os.chown(kept[what], owner.st_uid, owner.st_gid, follow_symlinks=False)
    service.start()
    for what, a in agents.items():
        with within(SOON):
            edit = {"op": "replace", "line": f"1#{tags[what]}", "new": "1"}
            assert "read" in refused(a, "edit", path="a", edits=[edit]), what
            assert a.call("read", path="a")["success"]
            assert service.call("DELETE", f"{SESSIONS}/{a.session}").status == 200


def test_full_memories(service):
    """Of sessions whose registers are full the service holds 64 MiB at once, and no more for their number."""
    sessions = 200 if harness.LONG else 30
    before = service.figures().private_kb
    line = "x" * 999_990 + "\n"
    agents = [Agent(service) for _ in range(sessions)]
    for a in agents:
        for n in range(4):
            tag = a.call("write", path="f", content=line)["tag"]
            edit = {"op": "cut", "line": f"1#{tag}", "register": f"r{n}"}
            assert a.call("edit", path="f", edits=[edit])["success"]
    grown = service.figures().private_kb - before
    assert grown < 128 << 10 or harness.SLOW > 1, grown  # a sanitizer keeps what was freed
    tag = agents[0].call("write", path="g", content="\n")["tag"]  # what was put away is there again
    paste = {"op": "paste_after", "line": f"1#{tag}", "register": "r0"}
    assert agents[0].call("edit", path="g", edits=[paste])["success"]
    assert agents[0].says("wc -c < g") == str(len(line) + 1)
    for a in agents:
        assert service.call("DELETE", f"{SESSIONS}/{a.session}").status == 200


# ---- The call's time


def test_a_command_that_takes_no_hint(a_team):
    """It ignores TERM, forks and stops itself: the call ends by its time, and nothing of it lives."""
    command = "trap '' TERM INT HUP; (trap '' TERM; setsid sleep 600) & sleep 601 & sleep 600"
    with serving({"STREAM_TOOL_TIMEOUT_CODE": "3"}) as s:
        agent = Agent(s)
        begin = time.monotonic()
        r = agent.bash(command, timeout=60)
        took = time.monotonic() - begin
        assert r["reason"] == "caller_timeout" and r["error"] == "Tool call timeout (3s)" and r["timed_out"], r
        assert 3 <= took < 3 + 10 * harness.SLOW, took
        assert harness.until(lambda: s.job(r["job_id"])["status"] == "failed", 20)
        left = agent.sh("ls /proc | grep -c '^[0-9]'")  # as a job, which may take longer
        assert left["stdout"] < "9", "of the former call something is left"


# ---- H02, H04, H10, H14, H20


NOBODY = "00000000-0000-7000-8000-000000000000"
CALLS = (
    ("bash", {"command": "echo was here > f"}),
    ("read", {"path": "f"}),
    ("write", {"path": "f", "content": "x"}),
    ("edit", {"path": "f", "tag": "0000", "edits": [{"op": "insert_head", "new": "x"}]}),
    ("artifact", {"paths": ["f"]}),
)


def test_H02_another_teams_session(service, agent):
    agent.call("write", path="f", content=f"{SECRET}\n")
    given = agent.artifact("f")
    with service.client(service.new_key("other")) as b:
        for tool, arguments in CALLS:
            answers = [b.post(f"{SESSIONS}/{s}/tools/{tool}", arguments) for s in (agent.session, NOBODY)]
            assert [a.status for a in answers] == [404, 404], (tool, answers)
            assert answers[0].body == answers[1].body and answers[0].headers.keys() == answers[1].headers.keys()
        assert b.get(f"{JOBS}/{given['job_id']}/artifacts/f").status == 404
        assert b.get(f"{JOBS}/{given['job_id']}").status == 404
    assert agent.says("cat f") == SECRET
    assert agent.names().count("f") == 1


BODY_BYTES = 12_000_000  # of write and edit, the longest


def test_H04_large_and_deep(service, agent):
    """Refused soon, and without the memory that the text asks for."""
    deep = b'{"path":"f","edits":' + b'[{"op":' * 5000 + b"1" + b"}]" * 5000 + b"}"
    many = json.dumps({"path": "f", "tag": "0000", "edits": [{"op": "cut", "line": 1}] * 100_000}).encode()
    for tool, body in (
        ("edit", deep),
        ("edit", b'{"path":"f","tag":"0000","edits":[{"op":"cut","line":' + b"9" * 100_000 + b"}]}"),
        ("edit", many),
        ("read", b'{"path":"f","start_line":1e400}'),
        ("read", b'{"path":"f","path":"g"}'),
        ("read", b'{"path":"\\ud800"}'),
        ("artifact", json.dumps({"paths": ["f"] * 100_000}).encode()),
        ("bash", json.dumps({"command": "x" * (3 << 20)}).encode()),
        ("write", json.dumps({"path": "f", "content": "x" * (20 << 20)}).encode()),
    ):
        path = f"{SESSIONS}/{agent.session}/tools/{tool}"

        def post(path: str = path, body: bytes = body) -> Answer:
            return service.call("POST", path, body=body, headers={"Content-Type": "application/json"})

        with service.grows_at_most(2 * BODY_BYTES >> 10):
            a = quick(post)
        said = a.status in (400, 413, 422) or not a.data["success"]
        assert said, (tool, body[:40], a.status, a.body[:300])
        assert len(a.body) < 20_000


@pytest.mark.parametrize("number", ["-1", "0", "4294967297", "9223372036854775808", "1e18", "1.5", '"5"', "1e400"])
def test_H14_numbers(service, agent, number):
    agent.put("f", b"1\n2\n")
    for tool, body in (
        ("read", '{"path":"f","start_line":%s}'),
        ("read", '{"path":"f","end_line":%s}'),
        ("read", '{"path":"f","max_chars":%s}'),
        ("bash", '{"command":"true","timeout":%s}'),
        ("artifact", '{"paths":["f"],"max_size_mb":%s}'),
        ("artifact", '{"paths":["f"],"max_total_size_mb":%s}'),
        ("edit", '{"path":"f","tag":"0000","edits":[{"op":"cut","line":%s}]}'),
        ("edit", '{"path":"f","tag":"0000","edits":[{"op":"cut","line":1,"end_line":%s}]}'),
    ):
        path = f"{SESSIONS}/{agent.session}/tools/{tool}"
        a = service.call("POST", path, body=(body % number).encode(), headers={"Content-Type": "application/json"})
        said = a.status in (400, 422) or (a.status == 200 and not a.data["success"])
        assert said, (tool, body, number, a.status, a.body[:300])
    assert agent.says("cat f") == "1\n2"


NAMES = (
    'a"; filename="b.html',
    "x\r\nSet-Cookie: s=1",
    "\u202egpj.exe",
    "](javascript:alert(1)) [x",
    "<img src=x onerror=alert(1)>.md",
    "=cmd|' C'!A1",
    "e" * 250,
    "CON",
    "%0d%0a",
)


DISPOSITION = re.compile(
    r'attachment; filename="[^"\\\x00-\x1f\x7f-\uffff]*"' r"(; filename\*=UTF-8''[A-Za-z0-9%._~!#$&+^`|-]*)?"
)


def test_H20_names_of_artifacts(service, agent):
    """One line of the header, escaped; in the Markdown text of a link, and nothing else."""
    agent.c.execute(
        "python", "for n in params['n']: open(n, 'w').write(n)", params={"n": NAMES}, session_id=agent.session
    )
    for name in NAMES:
        r = agent.artifact(name)
        if not r["success"]:
            assert "\n" not in r["error"] and "\r" not in r["error"]
            continue
        [file] = r["files"]
        a = service.get(file["url"])
        assert a.status == 200 and a.body == name.encode()
        head = a.headers["Content-Disposition"]
        assert DISPOSITION.fullmatch(head), head
        assert a.headers.get_all("Set-Cookie") is None and a.headers["X-Content-Type-Options"] == "nosniff"
        assert [i[2] for i in links(r["markdown"])] == [file["url"]]


# ---- SES


def test_SES_07_tools_do_not_shorten_a_session(service, agent):
    before = service.get(f"{SESSIONS}/{agent.session}").data["expires_at"]
    for tool, arguments in CALLS:
        agent.post(tool, **arguments)
        assert service.get(f"{SESSIONS}/{agent.session}").data["expires_at"] >= before, tool


def test_API_05_delimiters(agent):
    """Nothing is put together as text: what a command holds arrives byte for byte."""
    text = "EOF\n'EOF'\n\"EOF\"\nisle\n\\EOF\n$(id)\n`id`\n--\n%s%n\n"
    agent.call("write", path="t", content=text)
    assert agent.get("t").body == text.encode()
    assert agent.says("cat <<'END-OF-IT'\n" + text + "END-OF-IT") == text.rstrip("\n")


def test_API_06_crlf(agent):
    agent.call("write", path="run.sh", content="#!/bin/bash\r\necho hi\r\n")
    r = agent.bash("chmod +x run.sh; ./run.sh")
    assert r["exit_code"] in (126, 127) and "run.sh" in r["stderr"], r
    assert agent.says("echo ok") == "ok"
