"""What an agent does with the files of a session: read, write and edit, over HTTP."""

from __future__ import annotations

import concurrent.futures
import os
import stat
import threading

import harness
import pytest
import variants
from agent_session import Agent
from service import SESSIONS, Client

LONG = bool(os.environ.get("ISLE_LONG"))
MAX_MB = 256
SERVICE_SETTINGS = {"SANDBOX_MAX_DISK_MB": str(MAX_MB)}


@pytest.fixture
def agent(service):
    service.key = service.key or service.new_key("default")
    return Agent(service)


def test_there_and_back(agent):
    w = agent.ok("write", path="a/b.py", content="def f():\n    return 1\n")
    assert {k: w[k] for k in ("path", "created", "bytes", "total_lines")} == {
        "path": "/workspace/a/b.py",
        "created": True,
        "bytes": 22,
        "total_lines": 2,
    }
    r = agent.ok("read", path="/workspace/a/b.py")
    assert r["content"] == f"1#{w['tag']}| def f():\n2#{w['tag']}|     return 1\n" and r["path"] == w["path"]
    assert (r["tag"], r["total_lines"], r["shown"], r["next_line"], r["truncated"]) == (w["tag"], 2, 2, None, False)
    e = agent.edit("a/b.py", f"2#{w['tag']}", "    x = 2\n    return x")
    assert agent.body("a/b.py") == b"def f():\n    x = 2\n    return x\n"
    assert e["changes"] == [{"edit": 1, "first_line": 2, "lines": 2, "removed": 1}]
    assert (e["lines_added"], e["lines_removed"], e["total_lines"], e["bytes"]) == (2, 1, 3, 32)
    assert f"tag {e['tag']}" in e["message"] and "new lines 2-3" in e["message"]
    # what was written may be edited under the new tag, what was shown before, too
    agent.edit("a/b.py", f"1#{e['tag']}", "def g():")
    again = agent.ok("write", path="a/b.py", content="")
    assert not again["created"] and again["total_lines"] == 0
    assert agent.ok("read", path="a/b.py")["content"] == "[the file has no lines]\n"


def test_parts_of_a_file(agent):
    agent.put("f", "".join(f"line {n}\n" for n in range(1, 501)).encode())
    r = agent.ok("read", path="f", start_line=10, end_line=12)
    assert (r["first_line"], r["last_line"], r["shown"], r["truncated"]) == (10, 12, 3, False)
    r = agent.ok("read", path="f", search="line 49", max_chars=60)
    assert (r["shown"], r["matched"], r["next_line"], r["truncated"]) == (3, 11, 492, True)
    assert "go on with start_line=492" in r["content"]
    assert "start_line 600: the file has 500 lines" in agent.refused("read", path="f", start_line=600)
    message = agent.refused("edit", path="f", edits=[{"op": "cut", "line": f"100#{r['tag']}"}])
    assert "line 100 was not shown whole by read. Read it first" in message
    assert agent.post("read", path="f", max_chars=0).status == 422
    assert "is start_line meant?" in agent.post("read", path="f", start_lin=3).msg


def test_what_cannot_be_accepted(service, agent):
    agent.ok("write", path="f", content="a\n")
    for arguments in ({}, {"path": "f"}, {"path": "f", "edits": []}, {"path": "f", "edits": [{"op": "x"}]}):
        assert agent.post("edit", **arguments).status == 422, arguments
    assert agent.post("write", path="f").status == 422
    assert agent.post("glob", path="f").status == 404
    none = Agent(service, agent.session[:-1] + ("0" if agent.session[-1] != "0" else "1"))
    assert none.post("read", path="f").status == 404
    with Client(service, service.new_key("stranger")) as stranger:
        assert Agent(stranger, agent.session).post("read", path="f").status == 404
    agent.ok("read", path="f")
    assert service.call("DELETE", f"{SESSIONS}/{agent.session}").status == 200
    assert agent.post("read", path="f").status == 410


# ---- bytes that no edit is about


def test_FS_01_line_endings(agent):
    agent.put("f", b"a\r\nb\r\nc\r\n")
    tag = agent.ok("read", path="f")["tag"]
    tag = agent.edit("f", f"2#{tag}", "B")["tag"]
    assert agent.body("f") == b"a\r\nB\r\nc\r\n"
    tag = agent.edit("f", f"2#{tag}", "x\ny\n", "insert_after")["tag"]
    assert agent.body("f") == b"a\r\nB\r\nx\r\ny\r\nc\r\n"
    assert agent.ok("read", path="f")["content"] == "".join(f"{n}#{tag}| {t}\n" for n, t in enumerate("aBxyc", 1))


@pytest.mark.parametrize(
    ("before", "line", "new", "after"),
    [
        (b"one\r\ntwo\nthr\ree\n", 2, "2", b"one\r\n2\nthr\ree\n"),
        (b"one\r\ntwo\nthr\ree\n", 1, "1", b"1\r\ntwo\nthr\ree\n"),
        (b"one\r\ntwo\nthr\ree\n", 3, "3", b"one\r\ntwo\n3\n"),
        (b"a\rb\rc", 2, "B", b"a\rB\rc"),  # CR alone ends lines where there is no LF
        (b"a\nb", 2, "B", b"a\nB"),  # no final line break
        (b"a\nb", 1, "A", b"A\nb"),
        (b"a\xff\nb\n\xfe\n", 2, "B", b"a\xff\nB\n\xfe\n"),  # what is not UTF-8
    ],
)
def test_FS_02_other_bytes_stay(agent, before, line, new, after):
    agent.put("f", before)
    agent.edit("f", f"{line}#{agent.ok('read', path='f')['tag']}", new)
    assert agent.body("f") == after


def test_FS_03_byte_order_mark(agent):
    agent.put("f.py", b"\xef\xbb\xbfx=1\n")
    r = agent.ok("read", path="f.py")
    assert r["content"] == f"1#{r['tag']}| x=1\n"
    agent.ok("edit", path="f.py", tag=r["tag"], edits=[{"op": "replace", "line": 1, "new": "x=2"}])
    assert agent.body("f.py") == b"\xef\xbb\xbfx=2\n"
    agent.ok("edit", path="f.py", edits=[{"op": "insert_head", "new": "#"}])
    assert agent.body("f.py") == b"\xef\xbb\xbf#\nx=2\n"


# ---- where the files are, and whose


def test_FS_05_links_are_not_read(agent):
    agent.sh("ln -s /etc/passwd p; ln -s / root; echo in > in; ln -s in here; ln -s loop loop")
    for path in ("p", "root/etc/hostname", "here", "loop"):
        for name, more in (("read", {}), ("edit", {"edits": [{"op": "insert_head", "new": "x"}]})):
            message = agent.refused(name, path=path, **more)
            assert "link" in message and "root:" not in message and f"/workspace/{path}" in message, message
    assert agent.body("in") == b"in\n"


def test_FS_06_links_are_not_written_through(agent):
    agent.sh("ln -s /tmp out; echo old > real; ln -s real link; ln real hard")
    for path in ("out/x", "out/a/b", "link"):
        assert "link" in agent.refused("write", path=path, content="x"), path
    assert agent.body("real") == b"old\n" and agent.sh("ls /tmp")["stdout"] == ""
    agent.edit("hard", f"1#{agent.ok('read', path='hard')['tag']}", "new")
    assert (agent.body("hard"), agent.body("real")) == (b"new\n", b"old\n")  # another name keeps what it had


@pytest.mark.parametrize("path", ["/etc/hostname", "../../x", "/proc/self/environ", "/workspace/../etc/x", "a\0b", "."])
def test_FS_12_nothing_outside(agent, path):
    head = [{"op": "insert_head", "new": "x"}]
    for name, more in (("read", {}), ("write", {"content": "x"}), ("edit", {"edits": head})):
        a = agent.post(name, path=path, **more)
        assert a.data["success"] is False, (name, a)
    assert not os.path.exists("/etc/x") and agent.names() == ["input", "logs", "output", "tmp"]


def test_FS_13_mode(agent):
    agent.sh("printf '#!/bin/sh\\necho hi\\n' > r.sh; chmod 755 r.sh; echo s > secret; chmod 600 secret")
    agent.edit("r.sh", f"2#{agent.ok('read', path='r.sh')['tag']}", "echo ho")
    agent.edit("secret", f"1#{agent.ok('read', path='secret')['tag']}", "t")
    assert agent.sh("./r.sh; stat -c %a r.sh secret")["stdout"] == "ho\n755\n600\n"
    agent.ok("write", path="r.sh", content="#!/bin/sh\necho hu\n")
    agent.ok("write", path="plain", content="")
    assert agent.sh("./r.sh; stat -c %a r.sh plain")["stdout"] == "hu\n755\n644\n"


def test_FS_14_owners(agent):
    agent.ok("write", path="a", content="1\n")
    agent.ok("write", path="d/e", content="")
    agent.edit("a", f"1#{agent.ok('read', path='a')['tag']}", "2")
    r = agent.python(
        "import os\nopen('a','a').write('3'); open('d/x','w').write('4'); s=os.stat('a')\n"
        "assert s.st_uid == os.getuid()\ndata=open('a').read(); os.remove('a'); os.remove('d/e'); return data"
    )
    assert r["result"] == "2\n3", r
    agent.python("import os\nos.mkdir('g', 0o700); open('g/y','w').write('5\\n'); os.chmod('g/y', 0o600)")
    agent.edit("g/y", f"1#{agent.ok('read', path='g/y')['tag']}", "6")
    agent.ok("write", path="g/h/z", content="7")
    assert agent.sh("cat g/y g/h/z; rm -r g; ls -d g")["stdout"] == "6\n7"


# ---- what is no file of text


def test_no_text(agent):
    agent.python(
        "import os\nopen('bin','wb').write(b'a\\0b'*9); os.mkfifo('fifo'); os.mkdir('folder')\n"
        "open(b'r\\x80','w').write('x')\n"
        "for name, mb in (('big', 65), ('huge', 200)):\n"
        " with open(name,'wb') as f: f.write(b'a\\n'); f.truncate(mb<<20)\n"
    )
    head = [{"op": "insert_head", "new": "x"}]
    expected = {
        "bin": "the file is binary (it has a NUL byte, 27 bytes in all): use bash",
        "fifo": "is not a regular file. Use bash",
        "folder": "is a folder. Name a file in it",
        "big": f"the file has {65 << 20} bytes, and this tool takes {64 << 20}: use bash",
        "huge": f"the file has {200 << 20} bytes",
        "none": "does not exist",
        "bin/x": "is not a folder",
        "r\ufffd": "does not exist",
    }
    for path, text in expected.items():
        for name, more in (("read", {}), ("edit", {"edits": head})):
            message = agent.refused(name, path=path, **more)
            assert message.startswith(f"/workspace/{path}: ") and text in message, message
    for path in ("fifo", "folder", "bin/x"):
        agent.refused("write", path=path, content="x")
    assert agent.ok("write", path="bin", content="a\0b")["total_lines"] is None  # as it was asked for
    assert agent.body("bin") == b"a\0b" and "binary" in agent.refused("read", path="bin")


def test_devices(service, agent):
    """Nobody in the sandbox can make one; who operates the host can."""
    if variants.NOW.name != "native-root":
        pytest.skip("only host root makes devices")
    os.mknod(service.data / f"serve/kept/{agent.session}/w/null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
    assert "is not a regular file" in agent.refused("read", path="null")
    assert "is not a regular file" in agent.refused("write", path="null", content="x")


def test_one_long_line(agent):
    size = 50 << 20
    agent.put("line", b"x" * size)
    r = agent.ok("read", path="line")
    assert f"[line 1 is cut: 199991 of its {size} bytes are shown" in r["content"] and r["truncated"]
    assert len(r["content"]) < 201_000
    assert "was not shown whole" in agent.refused("edit", path="line", edits=[{"op": "cut", "line": f"1#{r['tag']}"}])
    # the session is nearly full
    agent.sh("head -c 205M /dev/zero > more")
    assert "the disk is full" in agent.refused("write", path="new", content="€" * 1_000_000)
    assert "new" not in agent.names()
    agent.delete("more")
    e = agent.ok("edit", path="line", edits=[{"op": "insert_head", "new": "first"}])
    assert e["bytes"] == size + 6 and agent.get("line", {"Range": "bytes=0-7"}).body == b"first\nxx"


def test_write_counts_characters(agent):
    agent.ok("write", path="f", content="€" * 1_000_000)
    assert len(agent.body("f")) == 3_000_000
    message = agent.refused("write", path="f", content="a" * 1_000_001)
    assert "content has 1000001 characters, and one call takes 1000000" in message
    assert len(agent.body("f")) == 3_000_000
    assert agent.post("write", path="f", content="€" * 1_400_000).status == 413


# ---- anchors that do not hold


def test_refused_whole(agent):
    w = agent.ok("write", path="f", content="a\nb\nc\nd\n")
    tag = w["tag"]
    cases = {
        "edit 2 (replace): it is about lines that edit 1 takes (lines 1-2)": [
            {"op": "cut", "line": f"1#{tag}", "end_line": f"2#{tag}"},
            {"op": "replace", "line": f"2#{tag}", "new": "x"},
        ],
        "edit 1 (replace): no version 0000 of this file was read in this session. Read line 1 first": [
            {"op": "replace", "line": "1#0000", "new": "x"}
        ],
        "edit 2 (replace): its tag 0000 is not that of the other anchors": [
            {"op": "replace", "line": f"1#{tag}", "new": "x"},
            {"op": "replace", "line": "2#0000", "new": "x"},
        ],
        "edit 1 (cut): line 9: version": [{"op": "cut", "line": f"9#{tag}"}],
        "edit 1: replace takes no register": [{"op": "replace", "line": f"1#{tag}", "new": "", "register": "r"}],
        "edit 1 (paste_head): the register default is empty": [{"op": "paste_head"}],
    }
    for text, edits in cases.items():
        message = agent.refused("edit", path="f", edits=edits)
        assert message.startswith("/workspace/f: ") and text in message and "Nothing was changed" in message, message
    assert agent.body("f") == b"a\nb\nc\nd\n"
    agent.edit("f", f"1#{tag}", "A")  # and the tag still holds


def test_a_changed_file(agent):
    lines = [f"line number {n}" for n in range(20)]
    tag = agent.ok("write", path="f", content="\n".join(lines) + "\n")["tag"]
    agent.sh("sed -i '1i first' f")
    d = agent.edit("f", f"11#{tag}", "changed")
    assert "the file had changed since it was read; the lines were found again" in d["message"]
    assert agent.body("f").decode().splitlines() == ["first", *lines[:10], "changed", *lines[11:]]
    agent.sh("sed -i 's/number 15/is another/' f")
    message = agent.refused("edit", path="f", edits=[{"op": "replace", "line": f"16#{tag}", "new": "x"}])
    assert "cannot be found again" in message and "Read again: start_line 6, end_line 26" in message


# ---- a file that is written to at the same time


def test_open_for_writing(agent):
    tag = agent.ok("write", path="log", content="one\ntwo\n")["tag"]
    script = "exec 3>>log; touch started; until test -e stop; do sleep .02; done; echo three >&3"
    job = agent.c.submit({"command": ["bash", "-c", script], "session_id": agent.session})
    assert harness.until(lambda: "started" in agent.names(), 10)
    edits = [{"op": "replace", "line": f"1#{tag}", "new": "ONE"}]
    message = agent.refused("edit", path="log", edits=edits)
    assert "is open for writing in a program that runs. Nothing was changed: wait" in message
    assert agent.body("log") == b"one\ntwo\n"
    agent.put("stop", b"")
    agent.c.wait(job)
    assert agent.body("log") == b"one\ntwo\nthree\n"  # in the file that is there, as its owner
    agent.edit("log", f"1#{agent.ok('read', path='log')['tag']}", "ONE")
    assert agent.sh("stat -c %u log; id -u; cat log")["stdout"].split()[2:] == ["ONE", "two", "three"]


APPENDS = """
import time
n = 0
while True:
    try:
        open("stop").close()
        break
    except OSError:
        pass
    with open("f", "a") as f:
        f.write(f"appended line {n}\\n")
    n += 1
    time.sleep(0.0007)
print(n)
"""

REWRITES = """
import os
n = 0
while not os.path.exists("stop"):
    text = f"version {n}\\n" * 2000
    with open("new", "w") as f:
        f.write(text)
    os.rename("new", "f")
    n += 1
"""


def edits_beside(agent: Agent, job: str, least: int) -> tuple[int, int]:
    """How many edits were made, so many at least, and how many refused, while a job writes to f."""
    begun = agent.body("f")
    limits = {"timeout_seconds": 300}
    ident = agent.c.submit({"command": ["python3", "-c", job], "session_id": agent.session, "limits": limits})
    assert harness.until(lambda: agent.body("f") != begun, 20)
    made = refused = 0

    def go_on() -> bool:
        nonlocal made, refused
        d = agent.post("edit", path="f", edits=[{"op": "insert_head", "new": f"edited {made}"}]).data
        made += d["success"]
        refused += not d["success"]
        assert d["success"] or "meanwhile" in d["error"] or "open for writing" in d["error"], d
        return made >= least and made + refused > (3000 if LONG else 150)

    assert harness.until(go_on, 120, 0), (made, refused)
    agent.put("stop", b"")
    agent.stdout = agent.c.wait(ident)["stdout"]
    return made, refused


def test_no_lost_update(agent):
    agent.put("f", b"first line\n")
    made, _refused = edits_beside(agent, APPENDS, 20)
    lines = agent.body("f").decode().splitlines()
    assert [x for x in lines if x.startswith("edited")] == [f"edited {n}" for n in range(made)][::-1]
    assert [x for x in lines if x.startswith("app")] == [f"appended line {n}" for n in range(int(agent.stdout))]


def test_no_torn_file(agent):
    agent.put("f", b"first line\n")
    edits_beside(agent, REWRITES, 0)
    lines = agent.body("f").decode().splitlines()
    while lines[0].startswith("edited"):
        lines.pop(0)
    assert len(lines) == 2000 and len(set(lines)) == 1


# ---- what a session remembers


def test_calls_take_turns(service, agent):
    """Of one session, and beside another one's; registers and tags of each are whole."""
    others = [agent, Agent(service)]
    for a in others:
        a.ok("write", path="f", content="0\n")

    def call(n: int) -> bool:
        with Client(service, service.key) as c:
            a = Agent(c, others[n % 2].session)
            return a.ok("edit", path="f", edits=[{"op": "insert_tail", "new": f"{n}"}])["success"]

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        assert all(pool.map(call, range(120)))
    for k, a in enumerate(others):
        lines = a.body("f").decode().split()
        assert lines[0] == "0" and sorted(map(int, lines[1:])) == list(range(k, 120, 2))


def test_deleted_meanwhile(service, agent):
    agent.put("f", b"x\n" * 500_000)
    statuses: list[int] = []

    def read() -> None:
        with Client(service, service.key) as c:
            while not statuses or statuses[-1] == 200:
                statuses.append(Agent(c, agent.session).post("read", path="f", max_chars=4_000_000).status)

    threads = [threading.Thread(target=read) for _ in range(4)]
    for t in threads:
        t.start()
    assert harness.until(lambda: len(statuses) > 4, 20)
    assert service.call("DELETE", f"{SESSIONS}/{agent.session}").status == 200
    for t in threads:
        t.join(60)
    assert set(statuses) == {200, 410}
    assert harness.until(lambda: agent.session not in os.listdir(service.data / "serve/kept"), 10)


def kept(service, a: Agent):
    return service.data / f"serve/kept/{a.session}/m"


def test_restart(service, agent):
    """Tags and registers hold after it, where the service was killed; a broken memory is an empty one."""
    broken, gone = Agent(service), Agent(service)
    tags = {a: a.ok("write", path="f", content="one\ntwo\nthree\n")["tag"] for a in (agent, broken, gone)}
    cut = [{"op": "cut", "line": f"2#{tags[agent]}", "register": "moved"}]
    tag = agent.ok("edit", path="f", edits=cut)["tag"]
    assert harness.until(lambda: all(kept(service, a).exists() for a in tags), 10)
    assert harness.until(lambda: b"moved" in kept(service, agent).read_bytes(), 10)  # written after that call
    assert kept(service, agent).stat().st_mode == stat.S_IFREG | 0o600
    assert agent.sh("ls -a / /workspace /tmp | grep -x m")["stdout"] == ""
    service.call("DELETE", f"{SESSIONS}/{gone.session}")
    service.kill("service")
    kept(service, broken).write_bytes(b"isle?" * 100)
    service.start()
    assert not kept(service, gone).exists()
    agent.ok("edit", path="f", edits=[{"op": "paste_before", "line": f"1#{tag}", "register": "moved"}])
    assert agent.body("f") == b"two\none\nthree\n"
    edits = [{"op": "cut", "line": f"1#{tags[broken]}"}]
    assert "no version" in broken.refused("edit", path="f", edits=edits)
    broken.ok("read", path="f")
    lost = [e for e in service.log_rows() if e["event"] == "what agents remembered was lost"]
    assert [(e["session"], e["error"]) for e in lost] == [(broken.session, "it is damaged")]
