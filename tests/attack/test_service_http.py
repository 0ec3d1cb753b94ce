"""Group H: the service attacked over HTTP. One service for all; whoever tries keys comes from an address of its own."""

from __future__ import annotations

import concurrent.futures
import contextlib
import gzip
import http.client
import itertools
import resource
import socket
import time
import urllib.parse

import harness
import pytest
import results
from payload import FOLDER
from service import EXECUTE, JOBS, SESSIONS, Client, Service

KEYS = "/api/v1/keys"
NOBODY = "00000000-0000-7000-8000-000000000000"
HOST = {"Host": "localhost"}
JSON = {"Content-Type": "application/json"}
SERVICE_SETTINGS = {"ISLE_ALLOWED_ORIGINS": "https://console.example", "SANDBOX_WORKER_CONCURRENCY": "2"}
ADDRESSES = (f"127.0.1.{n}" for n in itertools.count(1))


@pytest.fixture(scope="module")
def keys(service: Service) -> dict[str, dict]:
    made = {}
    with service.client(unix=True) as c:
        for team in ("a", "b"):
            made[team] = c.post(KEYS, {"team": team, "name": team}).data
        gone = c.post(KEYS, {"team": "a", "name": "gone"}).data
        c.call("DELETE", f"{KEYS}/{gone['id']}")
    return made | {"gone": gone}


@pytest.fixture(scope="module")
def a(service: Service, keys) -> Client:
    with service.client(keys["a"]["key"]) as c:
        yield c


@pytest.fixture(scope="module")
def b(service: Service, keys) -> Client:
    with service.client(keys["b"]["key"]) as c:
        yield c


@pytest.fixture(autouse=True)
def still_there(service: Service, a: Client):
    """After each attack the service runs jobs as before, and has neither been restarted nor said 500."""
    pid = service.service_pid
    yield
    assert a.python("return 6 * 7")["result"] == 42
    assert service.service_pid == pid
    assert [r for r in service.log_rows() if r.get("status") == 500] == []


def talk(service: Service, data: bytes, source: str = "127.0.0.1", seconds: float = 10) -> tuple[int, bytes]:
    """Status and body for these bytes; 0 when the connection is cut without an answer."""
    got = b""
    with socket.create_connection(("127.0.0.1", service.port), seconds * harness.SLOW, (source, 0)) as s:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            s.sendall(data)
        with contextlib.suppress(TimeoutError, ConnectionResetError):
            while piece := s.recv(1 << 16):
                got += piece
    head, _, body = got.partition(b"\r\n\r\n")
    return (int(head.split()[1]) if head else 0), body


def request(path: str, *fields: bytes, method: str = "GET", body: bytes = b"") -> bytes:
    lines = [f"{method} {path} HTTP/1.1".encode(), b"Host: localhost", b"Connection: close", *fields]
    if body:
        lines.append(b"Content-Length: %d" % len(body))
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def test_H02_tenant_b_reads_tenant_a(service: Service, a: Client, b: Client):
    ident = a.submit({"language": "python", "code": "open('x', 'w').write('secret')", "artifacts": ["x"]})
    a.wait(ident)
    session = a.post(SESSIONS, {"conversation_id": "c"}).data["session_id"]
    b_session = b.post(SESSIONS, {"conversation_id": "c"}).data["session_id"]
    assert b_session != session, "the same names in another team are another session"
    for method, path in (
        ("GET", f"{JOBS}/%s"),
        ("GET", f"{JOBS}/%s/events"),
        ("POST", f"{JOBS}/%s/cancel"),
        ("GET", f"{JOBS}/%s/artifacts/x"),
    ):
        mine, none = b.call(method, path % ident), b.call(method, path % NOBODY)
        assert mine.status == none.status == 404 and mine.body == none.body, path
        assert mine.headers.keys() == none.headers.keys(), path
    for method, path in (
        ("GET", f"{SESSIONS}/%s"),
        ("DELETE", f"{SESSIONS}/%s"),
        ("POST", f"{SESSIONS}/%s/extend"),
        ("GET", f"{SESSIONS}/%s/files"),
        ("GET", f"{SESSIONS}/%s/files/input"),
        ("DELETE", f"{SESSIONS}/%s/files/input"),
    ):
        mine, none = b.call(method, path % session), b.call(method, path % NOBODY)
        assert mine.status == none.status == 404 and mine.body == none.body, path
    for where in (EXECUTE, JOBS):
        job = {"language": "python", "code": "return 1"}
        mine, none = (b.post(where, job | {"session_id": s}) for s in (session, NOBODY))
        assert mine.status == none.status == 404 and mine.body == none.body
    assert b.get(f"{JOBS}?team=a").status == 422
    assert ident not in {j["job_id"] for j in b.get(JOBS).data["items"]}
    assert [s["session_id"] for s in b.get(SESSIONS).data["items"]] == [b_session]
    assert a.get(f"{SESSIONS}/{session}").status == 200, "and nothing of it was done"


def wrong_keys(good: str, gone: str) -> list[tuple[bytes, ...]]:
    line = b"Authorization: Bearer %s"
    return [
        (),
        (b"Authorization: Bearer ",),
        (b"Authorization: Basic aXNsZTppc2xl",),
        (line % (good[:-1].encode()),),
        (line % (good[:-1] + ("0" if good[-1] != "0" else "1")).encode(),),
        (line % good.upper().encode(),),
        (line % gone.encode(),),
        (line % good.encode(), line % good.encode()),
        (b"Authorization: %s" % good.encode(),),
        (b"Cookie: key=%s" % good.encode(),),
        (line % (b"x" * 20000),),
    ]


def many_keys(service: Service, source: str, n: int) -> list[int]:
    """The statuses of as many wrong keys, each another, over kept connections."""
    statuses = []
    connection = http.client.HTTPConnection("127.0.0.1", service.port, 10 * harness.SLOW, source_address=(source, 0))
    with contextlib.closing(connection):
        for i in range(n):
            connection.request("GET", JOBS, headers={"X-Api-Key": f"isle_{i:016x}_{i:064x}"})
            r = connection.getresponse()
            r.read()
            statuses.append(r.status)
    return statuses


def test_H03_keys(service: Service, keys):
    good, gone = keys["a"]["key"], keys["gone"]["key"]
    source = next(ADDRESSES)
    answers = [talk(service, request(JOBS, *fields), source) for fields in wrong_keys(good, gone)]
    assert {status for status, _body in answers} == {401}, answers
    unknown = "isle_" + "0" * 16 + "_" + "0" * 64
    replies = [talk(service, request(JOBS, b"X-Api-Key: %s" % k.encode()), source)[1] for k in (gone, unknown)]
    assert replies[0] == replies[1], "revoked and unknown are told apart"
    for bad in (b"a\0b", b"a\rb"):
        assert talk(service, request(JOBS, b"Authorization: Bearer " + bad), source)[0] == 400
    assert talk(service, request(f"{JOBS}?api_key={good}"), source)[0] == 401
    # As many more as it takes: then 429, for that address, and not for a good key of it.
    statuses = [talk(service, request(JOBS, b"X-Api-Key: wrong"), source)[0] for _ in range(25)]
    assert statuses[-1] == 429 and set(statuses) == {401, 429}
    assert set(many_keys(service, source, 10_000 if harness.LONG else 2000)) <= {401, 429}
    assert talk(service, request(JOBS, b"Authorization: Bearer " + b"x" * 1_000_000), source)[0] in (431, 0)
    assert talk(service, request(JOBS, b"X-Api-Key: %s" % good.encode()), source)[0] == 200
    assert talk(service, request(JOBS, b"X-Api-Key: wrong"), next(ADDRESSES))[0] == 401
    written = service.log_file.read_bytes() + b"".join(
        p.read_bytes() for p in (service.data / "serve/store").iterdir() if p.is_file()
    )
    for key in (good, gone):
        assert key.encode() not in written and key[-64:].encode() not in written


DEEP = 100000
BODIES = {
    "deep array": (b"[" * 1000000, 400),
    "deep object": (b'{"a":' * DEEP + b"1" + b"}" * DEEP, 400),
    "long number": (b'{"language":"python","code":"1","timeout":' + b"1" * 1000000 + b"}", 422),
    "huge exponent": (b'{"language":"python","code":"1","timeout":1e400}', 422),
    "same key": (b'{"language":"python","code":"a","code":"b"}', 400),
    "utf-16": ('{"language":"python"}'.encode("utf-16"), 400),
    "mark": (b'\xef\xbb\xbf{"language":"python"}', 400),
    "not utf-8": (b'{"language":"python","code":"\xff"}', 400),
    "surrogate": (b'{"language":"python","code":"\\ud800"}', 400),
    "comment": (b'{"language":"python",/* */"code":"1"}', 400),
    "garbage behind": (b'{"language":"python","code":"1"} x', 400),
    "nothing": (b" ", 400),
    "true": (b"true", 422),
    "a million keys": (b"{" + b",".join(b'"%d":0' % i for i in range(1000000)) + b"}", 422),
}


@pytest.mark.parametrize("name", BODIES)
def test_H04_large_and_deep(service: Service, a: Client, name):
    body, status = BODIES[name]
    bound, took = (2 if len(body) > 1 << 20 else 0.3) * harness.SLOW, []
    while len(took) < 10 and (not took or took[-1] >= bound):  # a busy host may be late now and then
        begin = time.monotonic()
        r = a.call("POST", EXECUTE, body=body, headers=JSON)
        took.append(time.monotonic() - begin)
        assert r.status == status and r.code != 0 and len(r.body) < 8192, (r.status, r.body[:200])
    assert took[-1] < bound, took


def test_H04_memory_comes_back(service: Service, a: Client):
    body = b'{"language":"python","code":"1","params":{"a":"' + b"x" * (20 << 20) + b'"}}'
    a.call("POST", EXECUTE, body=body, headers=JSON)
    before = service.figures().private_kb
    for _ in range(5):
        r = a.call("POST", EXECUTE, body=body, headers=JSON)
        assert r.status == 413 and "params" in r.msg
    # soon: the body goes after its answer
    assert harness.until(lambda: service.figures().private_kb < before + (10 << 10), 20), service.figures()


def test_H05_slow_and_many(service: Service, a: Client, keys):
    """Silent, slow in the head, slow in the body, slow to read, a byte each: none keeps others from being served."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    key = b"X-Api-Key: %s" % keys["b"]["key"].encode()
    starts = [
        b"",
        b"GET /healthz HTTP/1.1\r\nHo",
        request(EXECUTE, key, b"Content-Type: application/json", b"Content-Length: 1000000", method="POST") + b"{",
        request("/docs"),
    ]

    def trickle(slow: list[socket.socket]) -> None:
        for i, s in enumerate(slow):
            with contextlib.suppress(OSError):  # some have been told to go by now
                if i % len(starts) in (1, 2):
                    s.send(b"x", socket.MSG_DONTWAIT)
                elif i % len(starts) == 3:
                    s.recv(1, socket.MSG_DONTWAIT)

    with contextlib.ExitStack() as stack:
        slow = []
        for i in range(500):
            s = stack.enter_context(
                socket.create_connection(("127.0.0.1", service.port), 20 * harness.SLOW, (f"127.0.2.{i % 250 + 1}", 0))
            )
            s.sendall(starts[i % len(starts)])
            slow.append(s)
        took = []
        while len(took) < 5 or (len(took) < 30 and min(took) >= 0.5 * harness.SLOW):  # the host may be busy
            trickle(slow)
            with service.client(keys["a"]["key"]) as fresh:
                begin = time.monotonic()
                assert fresh.get(JOBS).status == 200
                took.append(time.monotonic() - begin)
                assert fresh.python("return 1")["result"] == 1
        assert min(took) < 0.5 * harness.SLOW, took
    for _ in range(2000):
        socket.create_connection(("127.0.0.1", service.port), 20 * harness.SLOW).close()
    assert harness.until(lambda: service.figures().descriptors < 120, 20), service.figures()
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "null",
        "https://console.example.evil.com",
        "http://console.example",
        "https://console.example:444",
        "",
    ],
)
def test_H08_other_origins(service: Service, a: Client, origin):
    r = a.get(JOBS, headers={"Origin": origin})
    assert r.status == 403 and "Access-Control-Allow-Origin" not in r.headers
    with socket.create_connection(("127.0.0.1", service.port)):
        pass
    preflight = {
        "Origin": origin,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization",
    }
    with service.client() as c:
        r = c.call("OPTIONS", EXECUTE, headers=preflight)
    assert r.status == 403 and not [h for h in r.headers if h.lower().startswith("access-control")]


def test_H08_a_listed_origin(service: Service, a: Client):
    origin = {"Origin": "https://console.example"}
    r = a.get(JOBS, headers=origin)
    assert r.status == 200 and r.headers["Access-Control-Allow-Origin"] == origin["Origin"]
    assert "Origin" in r.headers["Vary"] and "Access-Control-Allow-Credentials" not in r.headers
    with service.client() as c:
        r = c.call("OPTIONS", EXECUTE, headers=origin | {"Access-Control-Request-Method": "POST"})
    assert r.status == 204 and "Authorization" in r.headers["Access-Control-Allow-Headers"]
    assert a.get(JOBS).headers["Vary"] == "Origin", "also where there is none: caches"
    assert "Access-Control-Allow-Origin" not in a.get(JOBS).headers


def test_H10_markup(service: Service, a: Client):
    """Whatever a job says comes as JSON text that no browser takes for a page."""
    code = (FOLDER / "H10.py").read_text()
    r = a.post(EXECUTE, {"language": "python", "code": code})
    assert r.headers.get_content_type() == "application/json" and r.headers["X-Content-Type-Options"] == "nosniff"
    assert r.data["success"] is False and "<script>" in r.data["error"] and "<script>" in r.data["stdout"]
    markup = '"><svg/onload=alert(1)>'
    for answer in (
        a.post(EXECUTE, {"language": markup, "code": "1"}),
        a.post(EXECUTE, {"language": "python", "code": "1", markup: 1}),
        a.get(f"/{urllib.parse.quote(markup)}"),
        a.get(f"{JOBS}?status={urllib.parse.quote(markup)}"),
    ):
        assert answer.status >= 400 and answer.headers.get_content_type() == "application/json"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_H13_compression_bombs(service: Service, a: Client):
    bomb = gzip.compress(b"\0" * (10 << 20))
    for encoding in ("gzip", "deflate", "br", "zstd", "gzip, identity", "x"):
        r = a.call("POST", EXECUTE, body=bomb, headers=JSON | {"Content-Encoding": encoding})
        assert r.status == 415 and r.code == 1007
    before = service.figures().private_kb
    size = 200 << 20
    head = request(
        EXECUTE,
        b"Content-Type: application/json",
        b"X-Api-Key: %s" % a.key.encode(),
        b"Content-Length: %d" % size,
        method="POST",
    )
    status, body = talk(service, head + b'{"stdin_base64":"')
    assert status == 413 and results.strict_json(body)["code"] == 1006
    assert service.figures().private_kb < before + (10 << 10)


NUMBERS = [
    "1e18",
    "-1",
    "0",
    "4294967297",
    '"256"',
    "NaN",
    "Infinity",
    "-0.1",
    "1e400",
    "18446744073709551616",
    "true",
    "[]",
]


@pytest.mark.parametrize(
    "limit", ["memory_mb", "disk_mb", "max_stdout_kb", "pids", "timeout_seconds", "nofile", "cpus"]
)
def test_H14_numbers(a: Client, limit):
    for value in NUMBERS:
        if limit == "disk_mb" and value == "0":
            continue  # the staged files only
        body = f'{{"language":"python","code":"1","limits":{{"{limit}":{value}}}}}'
        for where in (EXECUTE, JOBS):
            r = a.call("POST", where, body=body.encode(), headers=JSON)
            assert r.status == (400 if value in ("NaN", "Infinity") else 422), (value, r.body)
            assert r.status == 400 or f"limits.{limit}" in r.msg
    r = a.call("POST", EXECUTE, body=b'{"language":"python","code":"1","limits":{"memory_mb":64.5}}', headers=JSON)
    assert r.status == 422


def test_H14_modes_and_offsets(a: Client):
    for mode in (2559, 0o4777, "04777", "0666", -1, 1e3):
        file = {"target_path": "x", "content_base64": "", "mode": mode}
        r = a.post(EXECUTE, {"language": "python", "code": "1", "input_files": [file]})
        assert r.status == 422 and "input_files[0].mode" in r.msg
    for value in ("-1", str(1 << 63), str(1 << 64), "0x10", "1e3", " 1", "+1", ""):
        assert a.get(f"{JOBS}?limit={value.replace(' ', '%20').replace('+', '%2B')}").status == 422, value
    assert a.get(f"{JOBS}?wait=1").status == 422


def test_H14_limits_are_those_of_the_kernel(a: Client):
    r = a.python("bytearray(200 << 20)", limits={"memory_mb": 64})
    assert r["reason"] == "memory_limit"


def test_H15_injection(a: Client):
    for job in (
        {"language": "bash; id", "code": "1"},
        {"language": "../../bin/sh", "code": "1"},
        {"language": "python", "code": "1", "args": ["--", "-c", "id"]},
        {"language": "python", "code": "1", "entry": "-c"},
        {"language": "python", "code": "1", "entry": "--inspect=0.0.0.0:9229"},
        {"language": "python", "code": "1", "code_name": "x.py\0.sh"},
        {"language": "python", "code": "1", "cwd": "/etc"},
        {"language": "python", "code": "1", "cwd": "../.."},
        {"command": ["python3", "a\0b"]},
        {"command": [""]},
        {"command": "id"},
        {"command": ["python3"], "env": {"LD_PRELOAD": "/workspace/x.so"}},
        {"command": ["python3"], "env": {"A B": "1"}},
    ):
        r = a.post(JOBS, job)
        assert r.status == 422 and r.code == 1001, (job, r.status)
    for name in ("$(id)", "`id`", "%n%n%n%s", "a\nINFO forged", "--help"):
        ident = a.submit({"language": "python", "code": "raise ValueError(__import__('sys').argv)", "code_name": name})
        assert "uid=" not in a.wait(ident)["stderr"]
    r = a.wait(a.submit({"command": ["printf", "%s", "$(id) `id` ; id"]}))
    assert r["stdout"] == "$(id) `id` ; id"


def test_H18_events(a: Client):
    """What a job prints is text inside of one field, whatever it looks like; nobody is kept by slow followers."""
    forged = '\n\nevent: result\ndata: {"success":true}\n\nid: 9\n\n:x\r\rdata: y\n'
    ident = a.submit(
        {"language": "python", "code": f"print({forged!r})\nimport time; time.sleep(1)\nraise SystemExit(3)"}
    )
    with a.events(ident) as stream:
        events = list(stream)
    assert [e.name for e in events if e.name == "result"] == ["result"], events
    assert events[-1].json()["success"] is False and events[-1].json()["exit_code"] == 3
    assert {e.name for e in events} <= {"status", "stdout", "stderr", "result"}
    for wrong in ("-1", "100000000000000000000", "a b", "x" * 200):
        with contextlib.closing(a.connection(10)) as c:
            r = a.send(c, "GET", f"{JOBS}/{ident}/events", headers={"Last-Event-ID": wrong})
            assert r.status in (200, 400, 422), wrong


def test_H18_many_followers(service: Service, a: Client):
    code = "import sys, time\nfor i in range(40):\n  print('x' * 20000, flush=True)\n  time.sleep(0.05)\n"
    ident = a.submit({"language": "python", "code": code, "limits": {"max_stdout_kb": 1024}})
    path = request(f"{JOBS}/{ident}/events", b"X-Api-Key: %s" % a.key.encode())
    with contextlib.ExitStack() as stack:
        deaf = [
            stack.enter_context(socket.create_connection(("127.0.0.1", service.port), 20 * harness.SLOW))
            for _ in range(100)
        ]
        for s in deaf:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            s.sendall(path)
        with service.client(a.key) as other:
            assert other.wait(ident)["reason"] == "ok"
        assert service.figures().private_kb < 200 << 10


def test_H19_urls(a: Client):
    """Nothing is fetched and nothing is called back: such fields are not there, or lead nowhere."""
    with socket.create_server(("127.0.0.1", 0)) as canary:
        url = f"http://127.0.0.1:{canary.getsockname()[1]}/"
        job = {"language": "python", "code": "return 1"}
        for field in ("callback_url", "webhook", "input_url", "artifact_upload_url"):
            r = a.post(JOBS, job | {field: url})
            assert r.status == 422 and field in r.msg
        for more in (
            {"input_files": [{"target_path": "x", "url": url}]},
            {"python_package_index_url": url, "python_packages": ["requests==2.32.3"]},
            {"python_package_index_url": "http://user:pw@127.0.0.1/"},
            {"node_package_registry_url": "file:///etc/passwd"},
            {"node_package_registry_url": "gopher://127.0.0.1/"},
        ):
            r = a.post(JOBS, job | more)
            assert r.status == 422, more
        ident = a.submit(job | {"python_package_index_url": url})
        assert a.wait(ident)["result"] == 1
        canary.settimeout(0.2)
        with pytest.raises(TimeoutError):
            canary.accept()


def test_H22_internal_routes(service: Service, a: Client, keys):
    key = b"X-Api-Key: %s" % keys["a"]["key"].encode()
    for path in (
        "/debug",
        "/admin",
        "/internal/upload",
        "/.git/config",
        "//api/v1/sandbox/jobs",
        "/api/v1/sandbox/jobs/..;/admin",
        "/API/v1/sandbox/jobs",
        "/api//v1/sandbox/jobs",
        "/api/v1/sandbox/jobs/",
        "/server-status",
        "/api/v1/keys%00",
    ):
        status, _body = talk(service, request(path, key))
        assert status in (400, 404), (path, status)
    assert talk(service, request("/api/v1/sandbox/../keys", key))[0] in (400, 404)
    assert talk(service, request("/%61pi/v1/sandbox/jobs"))[0] == 401, "decoded once, and then as any other"
    assert talk(service, request("/%2561pi/v1/sandbox/jobs", key))[0] == 404
    assert talk(service, request("/healthz?verbose=1"))[1] == talk(service, request("/healthz"))[1]
    for method, status in (("TRACE", 405), ("CONNECT", 400), ("PROPFIND", 405), ("FOO", 400)):
        assert talk(service, request(JOBS, key, method=method))[0] in (status, 400, 405, 501), method
    assert talk(service, request("*", key, method="OPTIONS"))[0] == 204
    for trick in (b"X-Original-URL: /api/v1/keys", b"X-Rewrite-URL: /api/v1/keys", b"X-Forwarded-Host: evil.example"):
        assert talk(service, request("/healthz", trick))[1] == talk(service, request("/healthz"))[1]
    r = a.call("POST", JOBS, body=b"{}", headers=JSON | {"X-HTTP-Method-Override": "DELETE"})
    assert r.status == 422
    assert talk(service, request("/metrics", b"X-Forwarded-For: 127.0.0.1"))[0] == 401
    assert talk(service, request(KEYS, key, b"X-Forwarded-For: 127.0.0.1"))[0] == 403
    assert b"team" not in talk(service, request("/metrics"))[1]


def test_many_at_once_by_hostile_and_honest(service: Service, keys):
    """Honest calls succeed while others break every rule at the same time."""

    def hostile(i: int) -> int:
        return talk(
            service, [b"\x16\x03\x01\x02\x00", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n"][i % 3]
        )[0]

    def honest(i: int) -> object:
        with service.client(keys["a"]["key"]) as c:
            return c.python(f"return {i}")["result"]

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        bad, good = pool.map(hostile, range(60)), pool.map(honest, range(12))
        assert list(good) == list(range(12)) and max(bad) < 506
