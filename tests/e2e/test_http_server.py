"""The HTTP server under real clients, and under peers that are none: its test program serves one route per behaviour.

Programs behind it are not isle's: tests/unit/http/routes.c. No job runs, so these tests need neither root nor runtime.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import http.client
import itertools
import json
import os
import pathlib
import resource
import select
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Iterator

import harness
import pytest

# Of the same build as isle.
PROGRAM = harness.ISLE.parents[2] / "tests/unit/http/http-routes"
HELLO = b"GET /hello HTTP/1.1\r\nHost: a\r\n\r\n"


class Server:
    def __init__(self, folder: pathlib.Path, *numbers: int):
        self.unix = folder / "socket"
        file = folder / "file"
        file.write_bytes(bytes(range(256)) * 4096)
        ports = folder / "port"
        self.process = subprocess.Popen([PROGRAM, ports, self.unix, file, *map(str, numbers)])
        assert harness.until(lambda: ports.exists() or self.process.poll() is not None, 30), "the server did not start"
        self.port = int(ports.read_text())

    def dial(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=10 * harness.SLOW)

    def state(self) -> dict:
        """By the Unix socket: whatever is done to the port, this way stays open."""
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(str(self.unix))
            s.settimeout(20 * harness.SLOW)
            s.sendall(b"GET /state HTTP/1.0\r\n\r\n")
            return json.loads(everything(s).split(b"\r\n\r\n", 1)[1])

    def get(self, path: str = "/hello") -> bytes:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20 * harness.SLOW)
        with contextlib.closing(connection):
            connection.request("GET", path)
            return connection.getresponse().read()

    def answers(self) -> bool:
        """Now: a peer that was set aside between two steps may have been told that it was too slow."""
        with contextlib.suppress(OSError, http.client.HTTPException):
            return self.get() == b"hello\n"
        return False


def everything(s: socket.socket) -> bytes:
    got = bytearray()
    with contextlib.suppress(ConnectionResetError):
        while piece := s.recv(65536):
            got += piece
    return bytes(got)


@contextlib.contextmanager
def serving(folder: pathlib.Path, *numbers: int) -> Iterator[Server]:
    server = Server(folder, *numbers)
    try:
        yield server
        assert server.process.poll() is None, "the server died"
        until(server.answers, 20)
    finally:
        server.process.terminate()
        status = server.process.wait(20 * harness.SLOW)
    assert status == 0


@pytest.fixture
def server(tmp_path: pathlib.Path) -> Iterator[Server]:
    with serving(tmp_path) as s:
        yield s


def until(what, seconds: float = 10) -> None:
    assert harness.until(what, seconds, 0.01)


def curl(*arguments: str, data: bytes = b"") -> bytes:
    words = ["curl", "-sS", "--noproxy", "*", "--max-time", str(20 * harness.SLOW), *arguments]
    done = subprocess.run(words, input=data, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def test_curl(server: Server, tmp_path: pathlib.Path):
    url = f"http://127.0.0.1:{server.port}"
    big = os.urandom(60000)
    assert curl(f"{url}/hello", f"{url}/hello") == b"hello\nhello\n"
    assert curl("--http2", f"{url}/hello") == b"hello\n"  # an upgrade that is offered and not taken
    assert curl("-T-", "-H", "Expect: 100-continue", "-X", "POST", f"{url}/echo", data=big) == big  # chunked
    assert curl("--data-binary", "@-", f"{url}/echo", data=big) == big
    assert curl("-r", "256-511", f"{url}/file") == bytes(range(256))
    assert curl("-o", "/dev/null", "-w", "%{http_code}", "-H", 'If-None-Match: "v1"', f"{url}/file") == b"304"
    assert curl(f"{url}/stream?n=3000000") == bytes(3000000)
    assert b"Content-Length: 1048576\r\n" in curl("-I", f"{url}/file")
    assert curl("-w", "%{http_code}", "-d", "x" * 70000, "-o", "/dev/null", f"{url}/echo") == b"413"
    assert curl("--http1.0", f"{url}/stream?n=100000") == bytes(100000)
    assert curl("--unix-socket", str(server.unix), "http://x/hello") == b"hello\n"
    upload = tmp_path / "upload"
    upload.write_bytes(bytes(20 << 20))
    assert curl("-T", str(upload), f"{url}/count") == b"20971520\n"


def test_one_connection_for_many_requests(server: Server):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20 * harness.SLOW)
    for i in range(500):
        body = os.urandom(i * 7)
        connection.request("POST", "/echo", body if i % 2 else iter([body, b"x"]), encode_chunked=not i % 2)
        answer = connection.getresponse()
        assert answer.read() == body + (b"" if i % 2 else b"x")
    connection.close()
    until(lambda: server.state()["ends"][0] >= 500)


def test_clients_side_by_side(server: Server):
    def client(n: int) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20 * harness.SLOW)
        for i in range(20):
            connection.request("GET", f"/sized?n={n * 1000 + i}")
            assert len(connection.getresponse().read()) == n * 1000 + i
        connection.close()
        return 20

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        assert sum(pool.map(client, range(64))) == 1280


# What smuggles a second request past a front that reads the first one otherwise. After each of them the server must
# have refused, closed, and never begun the request that hides behind.
HIDDEN = b"GET /wait HTTP/1.1\r\nHost: a\r\n\r\n"
POST = b"POST /echo HTTP/1.1\r\nHost: a\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n"
SMUGGLING = {
    "CL.TE": POST + b"Content-Length: 6\r\n" + CHUNKED + b"\r\n0\r\n\r\n" + HIDDEN,
    "TE.CL": POST + CHUNKED + b"Content-Length: 4\r\n\r\n5c\r\n" + HIDDEN + b"\r\n0\r\n\r\n",
    "CL.CL": POST + b"Content-Length: 0\r\nContent-Length: 5\r\n\r\n" + HIDDEN,
    "CL list": POST + b"Content-Length: 0, 5\r\n\r\n" + HIDDEN,
    "CL with sign": POST + b"Content-Length: +0\r\n\r\n" + HIDDEN,
    "CL and space": POST + b"Content-Length : 0\r\n\r\n" + HIDDEN,
    "CL of another base": POST + b"Content-Length: 0x0\r\n\r\n" + HIDDEN,
    "CL behind a bare CR": POST + b"X: a\rContent-Length: 5\r\n\r\n" + HIDDEN,
    "CL folded": POST + b"Content-Length:\r\n 0\r\n\r\n" + HIDDEN,
    "TE twice": POST + CHUNKED + b"Transfer-Encoding: cow\r\n\r\n0\r\n\r\n" + HIDDEN,
    "TE list": POST + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n" + HIDDEN,
    "TE identity": POST + b"Transfer-Encoding: identity\r\n\r\n" + HIDDEN,
    "TE x": POST + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + HIDDEN,
    "TE vertical tab": POST + b"Transfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n" + HIDDEN,
    "TE space before colon": POST + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n" + HIDDEN,
    "TE with NUL": POST + b"Transfer-Encoding: chunked\0\r\n\r\n0\r\n\r\n" + HIDDEN,
    "TE in quotes": POST + b'Transfer-Encoding: "chunked"\r\n\r\n0\r\n\r\n' + HIDDEN,
    "TE behind LF": POST + b"X: y\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + HIDDEN,
    "TE in 1.0": b"POST /echo HTTP/1.0\r\n" + CHUNKED + b"\r\n0\r\n\r\n" + HIDDEN,
    "chunk size with sign": POST + CHUNKED + b"\r\n-1\r\n\r\n" + HIDDEN,
    "chunk size too large": POST + CHUNKED + b"\r\n100000000000000000\r\n\r\n" + HIDDEN,
    "chunk size and LF": POST + CHUNKED + b"\r\n0\n\r\n" + HIDDEN,
    "chunk without CRLF": POST + CHUNKED + b"\r\n1\r\naa0\r\n\r\n" + HIDDEN,
    "chunk extension with LF": POST + CHUNKED + b"\r\n0;\nx\r\n\r\n" + HIDDEN,
    "two Hosts": b"GET /hello HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n" + HIDDEN,
    "another host in the line": b"GET http://b/hello HTTP/1.1\r\nHost: a\r\n\r\n" + HIDDEN,
    "first line with LF": b"GET /hello HTTP/1.1\nHost: a\r\n\r\n" + HIDDEN,
    "space before the first field": b"GET /hello HTTP/1.1\r\n X: y\r\nHost: a\r\n\r\n" + HIDDEN,
    "HTTP/0.9": b"GET /hello\r\n" + HIDDEN,
    "CONNECT": b"CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n" + HIDDEN,
    "close, then more": b"GET /hello HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n" + HIDDEN,
}


@pytest.mark.parametrize("name", SMUGGLING)
def test_nothing_hides_behind_a_request(server: Server, name: str):
    before = server.state()
    with server.dial() as s:
        s.sendall(SMUGGLING[name])
        answer = everything(s)
    assert answer.startswith(b"HTTP/1.1 200" if name.startswith("close") else b"HTTP/1.1 4") or (
        answer[:12] in (b"HTTP/1.1 501", b"HTTP/1.1 505")
    )
    assert answer.count(b"HTTP/1.1 ") == 1
    after = server.state()
    # Itself, when its head was sound, and the question for the state: never the hidden one.
    assert after["begun"] - before["begun"] <= 2
    assert sum(after["ends"]) == after["begun"] - 1


def test_a_trailer_says_nothing(server: Server):
    with server.dial() as s:
        s.sendall(POST + CHUNKED + b"\r\n1\r\na\r\n0\r\nHost: b\r\nConnection: close\r\n\r\n" + HELLO)
        s.shutdown(socket.SHUT_WR)
        assert everything(s).endswith(b"hello\n")


def test_garbage_leaves_nothing(server: Server):
    for i in range(200):
        with server.dial() as s, contextlib.suppress(ConnectionError):
            s.sendall(os.urandom(1 + i * 37 % 3000))
            s.shutdown(socket.SHUT_WR)
            everything(s)

    def all_over() -> bool:
        state = server.state()
        return sum(state["ends"]) == state["begun"] - 1

    until(all_over)  # whose peer has gone may still be noticed
    until(lambda: len(os.listdir(f"/proc/{server.process.pid}/fd")) < 16)


SLOW_STARTS = (
    b"GET / HT",
    b"",
    POST + b"Content-Length: 60000\r\n\r\n",
    b"GET /sized?n=9999999 HTTP/1.1\r\n",
)


@contextlib.contextmanager
def slow_peers(server: Server, n: int) -> Iterator[list[socket.socket]]:
    with contextlib.ExitStack() as stack:
        slow = [stack.enter_context(server.dial()) for _ in range(n)]
        for i, s in enumerate(slow):
            s.sendall(SLOW_STARTS[i % len(SLOW_STARTS)])
        yield slow
    until(lambda: len(os.listdir(f"/proc/{server.process.pid}/fd")) < 16)


def test_many_slow_peers_and_one_that_is_not(tmp_path: pathlib.Path):
    with serving(tmp_path, 600000, 600000, 600000, 200) as server, slow_peers(server, 190) as slow:
        assert server.get() == b"hello\n"
        assert select.select(slow, [], [], 0)[0] == [], "nobody has been told anything"


def test_who_never_ends_a_head_is_told(tmp_path: pathlib.Path):
    with serving(tmp_path, 1000, 5000, 20000, 200) as server, slow_peers(server, 40) as slow:
        for s in slow[::4]:
            assert everything(s).startswith(b"HTTP/1.1 408 ")


def test_more_connections_than_may_be(tmp_path: pathlib.Path):
    with serving(tmp_path, 10000, 10000, 10000, 20) as server:
        held = [server.dial() for _ in range(20)]
        for s in held:
            s.sendall(b"GET /wait HTTP/1.1\r\nHost: a\r\n\r\n")
        asked = itertools.count(20 + 1)
        until(lambda: server.state()["begun"] >= next(asked))  # which counts the question itself
        with server.dial() as s:
            assert everything(s).startswith(b"HTTP/1.1 503 ")
        assert server.state()["ends"][2] == 0  # the other listener has its own room
        for s in held:
            s.close()
        until(lambda: server.state()["gone"] == 20)


def test_no_descriptor_left_is_no_busy_loop(tmp_path: pathlib.Path):
    server = Server(tmp_path)
    try:
        resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (12, 12))
        held = [server.dial() for _ in range(20)]
        time.sleep(0.3)
        spent = cpu_seconds(server.process.pid)
        time.sleep(1)
        assert cpu_seconds(server.process.pid) - spent < 0.3
        for s in held:
            s.close()
        until(server.answers, 20)
    finally:
        server.process.terminate()
        assert server.process.wait(20 * harness.SLOW) == 0


def cpu_seconds(pid: int) -> float:
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_kb(pid: int) -> int:
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0])


def test_streams_in_constant_memory(server: Server):
    before = resident_kb(server.process.pid)
    total = 64 << 20
    most = 0
    for path in ("/sized", "/stream"):
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20 * harness.SLOW)
        connection.request("GET", f"{path}?n={total}")
        answer, got = connection.getresponse(), 0
        while piece := answer.read(1 << 20):
            got += len(piece)
            most = max(most, resident_kb(server.process.pid))
        assert got == total
    connection.request(
        "PUT", "/count", iter([bytes(1 << 20)] * 64), {"Transfer-Encoding": "chunked"}, encode_chunked=True
    )
    assert connection.getresponse().read() == f"{total}\n".encode()
    connection.close()
    assert max(most, resident_kb(server.process.pid)) - before < 4096 * harness.SLOW


def test_a_peer_that_goes_is_noticed(server: Server):
    with server.dial() as s:
        s.sendall(b"GET /wait HTTP/1.1\r\nHost: a\r\n\r\n")
        until(lambda: server.state()["begun"] >= 1)
        assert server.state()["gone"] == 0
    until(lambda: server.state()["gone"] == 1)
    with server.dial() as s:
        first = server.state()
        before, asked = first["ends"][2], itertools.count(first["begun"] + 1)
        s.sendall(b"GET /wait HTTP/1.1\r\nHost: a\r\n\r\n")
        until(lambda: server.state()["begun"] > next(asked))  # which counts the question itself
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    until(lambda: server.state()["ends"][2] == before + 1)


def test_an_idle_server_sleeps(server: Server):
    assert server.get() == b"hello\n"

    def switches() -> int:
        status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text()
        return int(status.split("\nvoluntary_ctxt_switches:")[1].split()[0])

    def sleeps() -> bool:
        before = switches()
        time.sleep(2)
        return switches() == before

    until(sleeps, 20)  # at first the end of the connection is seen


def test_a_stop_lets_what_runs_end(tmp_path: pathlib.Path):
    server = Server(tmp_path)
    with server.dial() as s:
        s.sendall(b"GET /stream?n=30000000 HTTP/1.1\r\nHost: a\r\n\r\n")
        s.recv(1000, socket.MSG_WAITALL)
        server.process.send_signal(signal.SIGTERM)
        with pytest.raises(OSError):
            until(lambda: server.dial().close() and False)
        assert server.process.poll() is None
        assert everything(s).endswith(b"0\r\n\r\n")
    assert server.process.wait(20 * harness.SLOW) == 0
