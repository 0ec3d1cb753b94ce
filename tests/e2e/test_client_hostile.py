"""What a service that is none, or that was taken over, can do to whoever speaks to it with isle: nothing.

The server here says whatever a test has it say, byte for byte; isle is the real one.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import pty
import shutil
import signal
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator

import harness
import pytest

JOB = "0199f3a2-5a9d-7c41-9d7c-3f1b2a4c5d6e"
ESCAPES = "\x1b]52;c;aGk=\x07\x1b[2J\x9b31m\r\n\t\x7f"
RESULT = {
    "job_id": JOB,
    "success": True,
    "status": "completed",
    "reason": "ok",
    "result": 7,
    "error": None,
    "exit_code": 0,
    "signal": None,
    "stdout": "",
    "stderr": "",
    "artifacts": [],
    "usage": {},
    "isolation": {},
}


def answer(body: bytes, status: str = "200 OK", *headers: str, length: int | None = None) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body) if length is None else length}", *headers, "", ""]
    return "\r\n".join(lines).encode("utf-8") + body


def envelope(data: object, **kw) -> bytes:
    return answer(json.dumps({"code": 0, "data": data, "msg": "success"}).encode(), **kw)


def refusal(status: str, msg: str, *headers: str) -> bytes:
    return answer(json.dumps({"code": 1000, "data": None, "msg": msg}).encode(), status, *headers)


def stream(*events: tuple[str, object] | bytes) -> bytes:
    """A whole answer of server-sent events."""
    said = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
    for i, event in enumerate(events):
        if isinstance(event, bytes):
            said += event
        else:
            said += f"id: {i}\nevent: {event[0]}\ndata: {json.dumps(event[1])}\n\n".encode()
    return said


class Server:
    """Answers each request with what `said` has for "METHOD PATH" or for "*": bytes, or a function of the socket."""

    def __init__(self, context: ssl.SSLContext | None = None):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.url = f"http{'s' if context else ''}://127.0.0.1:{self.port}"
        self.context = context
        self.said: dict[str, bytes | list[bytes] | Callable] = {}
        self.heard: list[bytes] = []
        self.thread = threading.Thread(target=self.accept, daemon=True)
        self.thread.start()

    def close(self) -> None:
        """The thread first: the number of what it listens on may be the next server's at once."""
        self.listener.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        self.listener.close()

    def accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError):
            if self.context:
                connection = self.context.wrap_socket(connection, server_side=True)
            connection.settimeout(20 * harness.SLOW)
            head = b""
            while b"\r\n\r\n" not in head:
                head += connection.recv(65536)
            head, _, body = head.partition(b"\r\n\r\n")
            wanted = next((int(f[15:]) for f in head.split(b"\r\n") if f.lower().startswith(b"content-length:")), 0)
            while len(body) < wanted:
                body += connection.recv(65536)
            self.heard.append(head + b"\r\n\r\n" + body)
            asked = " ".join(head.decode().split(" ")[:2]).split("?")[0]
            say = self.said.get(asked, self.said.get("*", refusal("404 Not Found", "no")))
            if isinstance(say, list):
                say = say.pop(0) if len(say) > 1 else say[0]
            if callable(say):
                say(connection)
            else:
                connection.sendall(say)
            connection.shutdown(socket.SHUT_WR)
            connection.recv(65536)
        connection.close()


@pytest.fixture
def server() -> Iterator[Server]:
    s = Server()
    yield s
    s.close()


def isle(url: str, *words: object, within: float = 20, cwd: object = "/", **env: str) -> subprocess.CompletedProcess:
    """`isle WORDS`, which may take 512 MB."""
    base = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "ISLE_URL": url}
    base |= {k: os.environ[k] for k in ("ISLE_LIBEXEC", "ASAN_OPTIONS", "UBSAN_OPTIONS") if k in os.environ}
    limit = [] if "ASAN_OPTIONS" in os.environ else ["prlimit", f"--as={512 << 20}"]
    return subprocess.run(
        [*limit, str(harness.ISLE), *map(str, words)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=within * harness.SLOW,
        check=False,
        env=base | env,
        cwd=cwd,
    )


def refused(r: subprocess.CompletedProcess, *words: str) -> None:
    """Status 125 and one clean line on stderr with these words."""
    assert r.returncode == 125, r
    assert r.stdout == b"", r
    clean(r.stderr)
    assert r.stderr.count(b"\n") == 1, r.stderr
    for word in words:
        assert word in r.stderr.decode(), (word, r.stderr)


def clean(said: bytes, *beside: str) -> None:
    text = said.decode("utf-8")
    assert [c for c in text if (ord(c) < 0x20 or 0x7F <= ord(c) < 0xA0) and c not in ("\n", *beside)] == [], said


JOBS, EVENTS = "GET /api/v1/sandbox/jobs", f"GET /api/v1/sandbox/jobs/{JOB}/events"
SUBMIT, SHOW = "POST /api/v1/sandbox/jobs", f"GET /api/v1/sandbox/jobs/{JOB}"


def forever(piece: bytes) -> Callable:
    def say(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            connection.sendall(piece)

    return say


def endless_head(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\n")
    for i in range(1 << 30):
        connection.sendall(b"X-%d: %s\r\n" % (i, b"a" * 1000))


@pytest.mark.parametrize(
    "said, word",
    [
        (b"", "Empty reply"),
        (b"220 mail.example ESMTP\r\n", ""),
        (answer(b'{"code": 0, "data": [', length=1000), ""),
        (answer(b""), "not what isle's service says"),
        (answer(b"[]"), "no code 0"),
        (answer(b'{"code": 5, "data": []}'), "no code 0"),
        (answer(b'{"code": 0, "data": [], "data": []}'), "duplicate key"),
        (answer(b'{"code": 0, "data": ' + b"[" * 100000 + b"]" * 100000 + b"}"), "not what isle's service says"),
        (answer(b'{"code": 0, "data": "\xff\xfe"}'), "not what isle's service says"),
        (forever(b"x" * 65536), "longer than isle believes"),
        (forever(b"[" * 65536), "longer than isle believes"),
        (endless_head, "head is longer"),
        (refusal("500 Oops", ESCAPES + "broken"), "broken"),
        (answer(b"<html>" * 100000, "500 Oops"), ""),
        (answer(b"<html>", "404 Not Found"), "does not speak as isle does"),
        (refusal("401 Unauthorized", "no key"), "isle key create"),
        (refusal("429 Too Many Requests", "full", "Retry-After: 7"), "try again in 7 s"),
        (refusal("503 No", "later", "Retry-After: -1"), "later"),
    ],
    ids=range(18),
)
def test_answers_that_are_none(server, said, word):
    server.said[JOBS] = said
    refused(isle(server.url, "jobs"), word)


@pytest.mark.parametrize("data", [b"null", b"7", b'"text"', b"{}", b'{"job_id":7,"key":{},"session_id":"","id":null}'])
def test_answers_without_what_was_asked_for(server, tmp_path, data):
    """Nothing is printed that a script could take for an id, a key or a list without entries."""
    server.said["*"] = answer(b'{"code": 0, "data": ' + data + b"}")
    job, code = tmp_path / "job.json", tmp_path / "tool.py"
    job.write_text('{"command": ["true"]}')
    code.write_text("return 1")
    tool = ("tools", "create", code)
    created = [("jobs", "submit", job), ("sessions", "create"), ("key", "create", "--team", "t", "--name", "n"), tool]
    lists = [("jobs", "list"), ("sessions", "list"), ("key", "list"), ("tools", "list"), ("files", "list", JOB)]
    for words in [*created, *lists, ("artifacts", "list", JOB), ("artifacts", "list", "--json", JOB)]:
        refused(isle(server.url, *words), "not what isle's service says")


def test_many_small_values_cost_no_more_than_their_bytes_allow(server):
    """15 MB of empty arrays: within the bound of an answer, and within 512 MB of memory."""
    server.said[SHOW] = answer(b'{"code": 0, "data": {"job_id": "x", "more": [' + b"[]," * 5_000_000 + b"[]]}}")
    r = isle(server.url, "jobs", "show", JOB, within=40)
    assert (r.returncode, r.stdout) == (0, b"job: x\n"), r.stderr


def test_nothing_said_steers_a_terminal(server):
    """Whatever is text in an answer, on a terminal and off it."""
    row = {"job_id": ESCAPES + "id", "status": "\u202efailed" + ESCAPES, "reason": {"x": ESCAPES}}
    server.said[JOBS] = envelope({"items": [row], "next_cursor": ESCAPES})
    server.said[SHOW] = envelope({**RESULT, "error": ESCAPES, "status": ESCAPES})
    server.said[EVENTS] = stream(
        ("status", {"status": ESCAPES}),
        (ESCAPES.replace("\r", "").replace("\n", ""), {ESCAPES: 1}),
        ("stdout", {"offset": 0, "text": "out" + ESCAPES}),
        ("result", {**RESULT, "reason": "error", "error": ESCAPES, "success": False, "exit_code": 1}),
    )
    for words in (("jobs",), ("jobs", "show", JOB), ("jobs", "events", JOB), ("jobs", "wait", JOB)):
        for json_too in ((), ("--json",)):
            status, said = on_terminal(server.url, *words, *json_too)
            assert status in (0, 1), (words, said)
            clean(said, "\r", "\t", "\b")
            r = isle(server.url, *words, *json_too)
            clean(r.stderr)
            if words[1:2] != ("wait",) and not json_too:
                clean(r.stdout, "\t")
                assert r.stdout.count(b"\n") <= 20


TOOLS = "/api/v1/tools"
CALL = f"POST {TOOLS}/execute"


def test_nothing_that_a_tool_is_steers_a_terminal(server):
    """A tool may be another team's, and the service anybody's."""
    tool = {
        **dict.fromkeys(
            ("id", "name", "description", "permission", "team_id", "shared_by", "is_enabled", "updated_at"), ESCAPES
        ),
        "version": ESCAPES,
        "outcome": ESCAPES,
        "parameters": [
            dict.fromkeys(("name", "type", "default", "description"), ESCAPES),
            ESCAPES,
            {"enum": [ESCAPES]},
        ],
        "code_config": {"code": "return 1" + ESCAPES, "language": ESCAPES, "limits": {ESCAPES: 1}},
    }
    server.said[f"GET {TOOLS}"] = envelope({"items": [tool], "next_cursor": ESCAPES})
    for path in ("", "/versions/2"):
        server.said[f"GET {TOOLS}/{JOB}{path}"] = envelope(tool)
    for path in ("/versions", "/shares"):
        server.said[f"GET {TOOLS}/{JOB}{path}"] = envelope({"items": [tool]})
    for way, path in (("POST", "toggle"), ("POST", "share"), ("DELETE", "share/a"), ("POST", "restore")):
        server.said[f"{way} {TOOLS}/{JOB}/{path}"] = envelope(tool)
    server.said[f"PUT {TOOLS}/{JOB}"] = server.said[f"DELETE {TOOLS}/{JOB}"] = envelope(tool)
    server.said[CALL] = envelope({**RESULT, "stdout": "out" + ESCAPES, "error": ESCAPES, "result": ESCAPES})
    for words in (
        ["list"],
        ["show", JOB],
        ["versions", JOB],
        ["versions", JOB, "2"],
        ["shares", JOB],
        ["enable", JOB],
        ["share", JOB, "a", "--permission", "read_only"],
        ["unshare", JOB, "a"],
        ["restore", JOB, "2"],
        ["update", JOB, "--name", "n"],
        ["delete", JOB],
        ["run", JOB, "a=1"],
    ):
        for json_too in ((), ("--json",)):
            status, said = on_terminal(server.url, "tools", *words, *json_too)
            assert status == 0, (words, said)
            clean(said, "\r", "\t", "\b")
            clean(isle(server.url, "tools", *words, *json_too).stderr)


def test_a_search_for_a_tool_ends(server):
    """Pages without end, names without an id, ids that are none."""
    items = [{"name": "a", "id": "../../keys"}, {"name": "a"}, {"name": ["a"], "id": JOB}]
    server.said[f"GET {TOOLS}"] = envelope({"items": items, "next_cursor": "again"})
    refused(isle(server.url, "tools", "show", "a"), "the list of tools has no end")
    assert len(server.heard) <= 4000 and not [h for h in server.heard if b"keys" in h]
    server.said[f"GET {TOOLS}"] = envelope([])
    refused(isle(server.url, "tools", "delete", "a"), "no such tool")


def test_a_search_for_a_tool_looks_through_all_pages(server):
    """Of large tools a page has few, and a tool may be on any."""
    rows = [{"name": f"t{n:03}", "id": f"{JOB[:-3]}{n:03}", "permission": "owner"} for n in range(120)]
    page = [envelope({"items": rows[n : n + 2], "next_cursor": "more" if n < 118 else None}) for n in range(0, 120, 2)]
    server.said[f"DELETE {TOOLS}/{JOB[:-3]}101"] = envelope({})
    server.said[f"GET {TOOLS}"] = list(page)
    assert isle(server.url, "tools", "delete", "t101").returncode == 0
    assert len(server.heard) == 52
    server.heard.clear()
    server.said[f"GET {TOOLS}"] = list(page)
    refused(isle(server.url, "tools", "show", "t050x"), "no such tool")
    assert len(server.heard) == 60


def test_code_is_shown_as_it_is(server):
    """Whoever looks at another team's tool sees all of its code, in its order, and not what a terminal makes of it."""
    code = "return 1; //\0\nhidden()\r\n\rseen\b\b\u202eabc\u2066d"
    server.said[f"GET {TOOLS}/{JOB}"] = envelope({"name": "a\u202eb", "code_config": {"code": code}})
    raw = isle(server.url, "tools", "show", JOB).stdout
    assert raw.endswith(code.encode() + b"\n"), raw
    status, said = on_terminal(server.url, "tools", "show", JOB)
    assert status == 0 and b"tool: a???b\r\n" in said, said
    assert said.replace(b"\r\r\n", b"\r\n").endswith(b"return 1; //?\r\nhidden()\r\n?seen?????abc???d\r\n"), said


def test_a_tools_result_is_told_whatever_it_printed(server):
    server.said[f"GET {TOOLS}/{JOB}"] = envelope({"name": "a"})
    server.said[CALL] = envelope({**RESULT, "stdout": "a\0b", "stderr": "c\0d\n", "result": "b"})
    r = isle(server.url, "tools", "run", JOB)
    assert r.stdout == b'a\0b\n"b"\n' and b"c\0d\n" in r.stderr, r


def on_terminal(url: str, *words: str) -> tuple[int, bytes]:
    pid, fd = pty.fork()
    if pid == 0:
        env = {"PATH": "/usr/bin:/bin", "ISLE_URL": url, "TERM": "xterm"}
        os.execve(harness.ISLE, [str(harness.ISLE), *words], env)
    said = b""
    with contextlib.suppress(OSError):
        while piece := os.read(fd, 65536):
            said += piece
    os.close(fd)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), said


def test_redirects_are_not_followed(server):
    """Neither elsewhere, where the key would go, nor to a file."""
    other = Server()
    for target in (other.url + "/steal", "file:///etc/passwd", server.url + "/again", ESCAPES):
        server.said[JOBS] = answer(b"", "302 Found", "Location: " + target.replace("\r\n", ""))
        refused(isle(server.url, "jobs", ISLE_KEY="isle_secret"), "does not follow")
    assert other.heard == [] and len(server.heard) == 4
    other.close()


def test_the_key_goes_where_it_belongs_and_nowhere_else(server):
    seen = []

    def say(connection: socket.socket) -> None:
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                seen.append((pathlib.Path("/proc") / pid / "cmdline").read_bytes())
        connection.sendall(envelope([]))

    server.said[JOBS] = say
    r = isle(server.url, "jobs", "--key", "isle_on_the_line")
    assert r.returncode == 0, r
    assert b"Authorization: Bearer isle_on_the_line" in server.heard[0]
    assert any(b"isle-client" in line or b"jobs" in line for line in seen)
    # pytest's own line has this file's name only; the client's has lost the key
    assert [line for line in seen if b"isle_on_the_line" in line] == []
    refused(isle(server.url, "jobs", ISLE_KEY="a\r\nX-Evil: 1"), "ISLE_KEY")
    refused(isle(server.url, "jobs", ISLE_KEY="a" * 5000), "ISLE_KEY")
    assert len(server.heard) == 1
    server.said[JOBS] = refusal("403 No", "not you")
    r = isle(server.url, "jobs", ISLE_KEY="isle_secret")
    refused(r, "not you")
    assert b"secret" not in r.stderr


def test_no_proxy_towards_this_host(server):
    server.said[JOBS] = envelope([])
    proxies = {"http_proxy": "http://127.0.0.1:9", "all_proxy": "socks5://127.0.0.1:9"}
    assert isle(server.url, "jobs", **proxies).returncode == 0


def test_certificates_are_checked(tmp_path):
    key, cert = tmp_path / "key.pem", tmp_path / "cert.pem"
    openssl = shutil.which("openssl")
    words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=x".split()
    extra = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", cert]
    subprocess.run([openssl, *words, *extra], check=True, capture_output=True, timeout=30)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    s = Server(context)
    s.said[JOBS] = envelope([])
    refused(isle(s.url, "jobs", ISLE_KEY="isle_secret"), "certificate is not trusted", "SSL_CERT_FILE")
    assert s.heard == []
    assert isle(s.url, "jobs", SSL_CERT_FILE=str(cert)).returncode == 0
    s.close()


# ---- Files that are written here


GET, PLACE = f"GET /api/v1/sandbox/sessions/{JOB}/files/x", f"{JOB}:x"


@pytest.mark.parametrize(
    "said, word",
    [
        (answer(b"abc", "200 OK", f'ETag: "{"0" * 64}"'), "checksum"),
        (answer(b"abc", length=100), ""),
        (refusal("404 Not Found", ESCAPES + "no such file"), "no such file"),
        (answer(b"", "302 Found", "Location: /api/v1/other"), "does not follow"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc", ""),
    ],
    ids=["checksum", "short", "missing", "redirect", "chunks"],
)
def test_a_file_comes_whole_or_not_at_all(server, tmp_path, said, word):
    server.said[GET] = said
    (tmp_path / "x").write_text("old")
    refused(isle(server.url, "files", "get", PLACE, cwd=tmp_path), word)
    assert [p.name for p in tmp_path.iterdir()] == ["x"] and (tmp_path / "x").read_text() == "old"


def test_a_download_that_is_interrupted_leaves_nothing(server, tmp_path):
    begun, over = threading.Event(), threading.Event()

    def say(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nabc")
        begun.set()
        over.wait(200)

    server.said[GET] = say
    env = {"PATH": "/usr/bin:/bin", "ISLE_URL": server.url}
    p = subprocess.Popen([harness.ISLE, "files", "get", PLACE], cwd=tmp_path, env=env, stderr=subprocess.PIPE)
    assert begun.wait(20 * harness.SLOW)
    assert harness.until(lambda: list(tmp_path.iterdir()), 20)
    p.send_signal(signal.SIGINT)
    _, said = p.communicate(timeout=20 * harness.SLOW)
    over.set()
    assert p.returncode == 130 and said == b"isle files: cancelled\n"
    assert list(tmp_path.iterdir()) == []


def artifact(path: str, size: int, **more) -> dict:
    return {"path": path, "filename": path.rpartition("/")[2], "size": size, "checksum": None, "url": None} | more


ONE = f"GET /api/v1/sandbox/jobs/{JOB}/artifacts/a"


@pytest.mark.parametrize(
    "path",
    [
        "/workspace/../a",
        "/etc/a",
        "a",
        "/workspace/",
        "/workspace/x/../../a",
        "/workspace//a",
        "/workspace/\x1b[2J",
        "",
    ],
)
def test_artifacts_with_names_that_lead_elsewhere(server, tmp_path, path):
    out = tmp_path / "out"
    server.said[SHOW] = envelope({**RESULT, "artifacts": [artifact(path, 3, filename="a")]})
    server.said[ONE] = answer(b"abc")
    refused(isle(server.url, "artifacts", "get", "--output-dir", out, JOB), "does not write")
    assert [p for p in tmp_path.rglob("*") if p != out] == []


@pytest.mark.parametrize(
    "said, size, more, word",
    [
        (answer(b"abc"), 4, {}, "another length"),
        (answer(b"abc"), 2, {}, "not what the service said"),
        (answer(b"abc"), 3, {"checksum": "0" * 64}, "another length or checksum"),
        (forever(b"x" * 65536), 3, {}, ""),
        (answer(b"abc"), -1, {}, "how long"),
        (answer(b"abc"), 1 << 62, {}, ""),
        (refusal("410 Gone", "gone" + ESCAPES), 3, {}, "gone"),
    ],
    ids=range(7),
)
def test_artifacts_come_whole_or_not_at_all(server, tmp_path, said, size, more, word):
    server.said[SHOW] = envelope({**RESULT, "artifacts": [artifact("/workspace/a", size, **more)]})
    server.said[ONE] = said
    refused(isle(server.url, "artifacts", "get", "--output-dir", tmp_path, JOB), word)
    assert list(tmp_path.iterdir()) == []


def test_artifacts_follow_no_link_and_no_url(server, tmp_path):
    """What the service calls the place of an artifact is asked only where that is a path of the job's own."""
    out, outside = tmp_path / "out", tmp_path / "outside"
    out.mkdir(), outside.mkdir()
    (out / "d").symlink_to(outside)
    (out / "a").symlink_to(outside / "a")
    here = artifact("/workspace/a", 3, url="http://127.0.0.1:9/a")
    server.said[SHOW] = envelope({**RESULT, "artifacts": [here, artifact("/workspace/d/a", 3)]})
    server.said[ONE] = answer(b"abc")
    refused(isle(server.url, "artifacts", "get", "--output-dir", out, JOB), "a link or a file stands")
    assert not (out / "a").is_symlink() and (out / "a").read_bytes() == b"abc"
    assert list(outside.iterdir()) == []


def test_a_job_gets_no_file_that_was_not_asked_for(server, tmp_path):
    server.said[SUBMIT] = envelope({"job_id": JOB}, status="202 Accepted")
    both = [artifact("/workspace/a", 3), artifact("/workspace/.bashrc", 3, filename="a")]
    server.said[EVENTS] = stream(("result", {**RESULT, "artifacts": both}))
    server.said[ONE] = answer(b"abc")
    words = ("run", "--url", server.url, "--artifact", "a", "--output-dir", tmp_path, "-l", "python", "-c", "1")
    r = isle(server.url, *words)
    assert r.returncode == 0 and r.stdout == b"7\n", r
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


# ---- Events


def run(server: Server, *words: str, **kw) -> subprocess.CompletedProcess:
    server.said.setdefault(SUBMIT, envelope({"job_id": JOB}, status="202 Accepted"))
    return isle(server.url, "run", "--url", server.url, *words, "-l", "python", "-c", "1", **kw)


def test_output_that_comes_again_is_written_once(server):
    """Over connections that break, with pieces that overlap; it is asked for from where it ended."""
    text = "héllo wörld\n"
    raw = text.encode()
    pieces = [(0, "héllo"), (0, "héllo"), (3, "llo wör"), (len(raw), "")]
    server.said[EVENTS] = [
        stream(("stdout", {"offset": 0, "text": "hé"})),
        stream(*(("stdout", {"offset": o, "text": t}) for o, t in pieces), b"id: 9\nevent: stdout\ndata: {"),
        stream(("stdout", {"offset": 0, "text": text}), ("result", RESULT)),
    ]
    r = run(server)
    assert (r.returncode, r.stdout.decode(), r.stderr) == (0, text + "7\n", b""), r
    asked = [h for h in server.heard if b"/events" in h]
    assert [b"Last-Event-ID" in h for h in asked] == [False, True, True]
    assert b"Last-Event-ID: 0\r\n" in asked[1] and b"Last-Event-ID: 3\r\n" in asked[2]


@pytest.mark.parametrize(
    "said",
    [
        stream(("stdout", {"offset": -1, "text": "x"})),
        stream(("stdout", {"offset": 1e300, "text": "x"})),
        stream(("stdout", ["x"])),
        stream(b"event: stdout\ndata: {{{\n\n"),
        stream(("result", RESULT), ("result", RESULT)),
        stream(b"event: result\ndata: no result\n\n"),
        stream(("result", {**RESULT, "reason": "invented"})),
        stream(b"data: " + b"x" * (40 << 20) + b"\n\n"),
        forever(b"data: " + b"x" * 65536),
        forever(b"data: x\n" * 8192),
        answer(b"{}"),
        refusal("404 Not Found", "no such job"),
    ],
    ids=range(12),
)
def test_events_that_are_none(server, said):
    server.said[EVENTS] = said
    r = run(server, "--max-stdout-kb", "16", "--max-stderr-kb", "16", within=30)
    if said == server.said[EVENTS] and r.returncode == 0:  # a second result says nothing new
        assert r.stdout == b"7\n"
    else:
        refused(r)


def test_submissions_that_are_none(server):
    for said in (envelope({}), envelope({"job_id": 7}), envelope({"job_id": "x" * 100}), envelope([])):
        server.said[SUBMIT] = said
        refused(run(server), "job id")


def test_a_second_signal_does_not_wait_for_the_service(server):
    """The first one asks the service to cancel; a service that says nothing about it holds nobody up."""
    begun, over = threading.Event(), threading.Event()

    def silent(connection: socket.socket) -> None:
        begun.set()
        over.wait(200)

    server.said[SUBMIT] = envelope({"job_id": JOB}, status="202 Accepted")
    server.said[EVENTS] = silent
    server.said[f"POST /api/v1/sandbox/jobs/{JOB}/cancel"] = silent
    env = {"PATH": "/usr/bin:/bin"}
    words = [harness.ISLE, "run", "--url", server.url, "-l", "python", "-c", "1"]
    p = subprocess.Popen(words, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert begun.wait(20 * harness.SLOW)
    begun.clear()
    p.send_signal(signal.SIGINT)
    assert begun.wait(20 * harness.SLOW), "no request to cancel"
    p.send_signal(signal.SIGINT)
    out, err = p.communicate(timeout=20 * harness.SLOW)
    over.set()
    assert (p.returncode, out) == (130, b"") and b"cancelled" in err
