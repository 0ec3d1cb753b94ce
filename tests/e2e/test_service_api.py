"""The API's core: envelope, routes, who may call and from where, what is described, and the cases of bad requests."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import http.client
import json
import os
import pathlib
import re
import socket

import harness
import pytest
import results
import service as services
from service import EXECUTE, JOBS, SESSIONS, Client, Service

KEYS = "/api/v1/keys"
DOCS = pathlib.Path(__file__).parents[2] / "docs"
NOBODY = "00000000-0000-7000-8000-000000000000"
SERVICE_SETTINGS = {
    "ISLE_ALLOWED_HOSTS": "isle.example",
    "ISLE_ALLOWED_ORIGINS": "https://console.example",
    "ISLE_TRUSTED_PROXIES": "127.0.0.2",
}


def make_key(service: Service, team: str, admin: bool = False) -> dict:
    """By the Unix socket, as `isle key create` on the host."""
    with service.client(unix=True) as c:
        a = c.post(KEYS, {"team": team, "name": f"of {team}", "admin": admin})
    assert a.status == 201, a
    return a.data


@pytest.fixture(scope="module")
def keyed(service: Service) -> dict[str, dict]:
    """From here on a key is needed."""
    assert service.get(JOBS).status == 200, "without any key, whoever calls by loopback is served"
    return {team: make_key(service, team, team == "admin") for team in ("a", "b", "admin")}


@pytest.fixture(scope="module")
def a(service: Service, keyed) -> Client:
    with service.client(keyed["a"]["key"]) as c:
        yield c


@pytest.fixture(scope="module")
def b(service: Service, keyed) -> Client:
    with service.client(keyed["b"]["key"]) as c:
        yield c


@pytest.fixture(scope="module")
def admin(service: Service, keyed) -> Client:
    with service.client(keyed["admin"]["key"]) as c:
        yield c


def exchange(service: Service, data: bytes, seconds: float = 10) -> bytes:
    """What comes back for these bytes, until the service closes or answers whole."""
    with socket.create_connection(("127.0.0.1", service.port), timeout=seconds * harness.SLOW) as s:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            s.sendall(data)
        got = b""
        with contextlib.suppress(TimeoutError, ConnectionResetError):
            while piece := s.recv(65536):
                got += piece
        return got


def refused(data: bytes) -> tuple[int, dict]:
    """Status and envelope of a raw answer."""
    head, _, body = data.partition(b"\r\n\r\n")
    status = int(head.split()[1])
    value = results.strict_json(body)
    assert set(value) == {"code", "data", "msg"} and value["code"] and value["data"] is None
    return status, value


# ---- Without a key


def test_first_words(service: Service):
    assert service.get("/healthz").data == {"status": "ok"}
    ready = service.get("/readyz").data
    assert ready["ready"] is True and isinstance(ready["downgrades"], list)
    head = service.call("HEAD", "/healthz")
    assert head.status == 200 and head.body == b"" and int(head.headers["Content-Length"]) > 0


def test_keys_are_not_made_over_tcp_without_one(service: Service):
    r = service.post(KEYS, {"team": "x", "name": "x"})
    assert r.status == 403 and r.code == 1004


def test_a_proxy_without_a_key_is_not_loopback(service: Service):
    """Behind a proxy on this host everybody would come by loopback."""
    for name in ("X-Forwarded-For", "Forwarded", "X-Real-IP", "Via"):
        assert service.get(JOBS, headers={name: "198.51.100.1"}).status == 401


# ---- Keys


def test_a_key_opens_its_teams_door_only(service: Service, a: Client, b: Client, admin: Client, keyed):
    assert service.get(JOBS).status == 401, "once there is a key, one is needed"
    ident = a.submit({"language": "python", "code": "return 1"})
    assert a.wait(ident)["result"] == 1
    assert [j["job_id"] for j in a.get(JOBS).data["items"]] == [ident]
    assert b.get(JOBS).data["items"] == []
    missing, foreign = b.get(f"{JOBS}/{NOBODY}"), b.get(f"{JOBS}/{ident}")
    assert foreign.status == 404 and foreign.body == missing.body
    listed = {k["id"]: k for k in admin.get(KEYS).data["items"]}
    assert listed[keyed["a"]["id"]]["team"] == "a" and listed[keyed["a"]["id"]]["last_used_at"]
    assert not any("key" in k for k in listed.values()), "a key is shown once"
    assert b.get(KEYS).status == 403
    assert service.client(unix=True).get(JOBS, headers={"X-Isle-Team": "a"}).data["items"], "the operator's socket"


def test_keys_are_listed_page_by_page(admin: Client, keyed):
    every = [k["id"] for k in admin.get(KEYS).data["items"]]
    assert {k["id"] for k in keyed.values()} <= set(every)
    pages, cursor = [], ""
    while cursor is not None:
        page = admin.get(f"{KEYS}?limit=1" + (f"&cursor={cursor}" if cursor else "")).data
        pages += [k["id"] for k in page["items"]]
        cursor = page["next_cursor"]
    assert pages == every
    of_a = admin.get(f"{KEYS}?team=a&limit=1&cursor={every[-1]}").data
    assert of_a == {"items": [], "next_cursor": None}, "a cursor may be another team's"
    for bad in ("x", "0" * 16):
        refused = admin.get(f"{KEYS}?cursor={bad}")
        assert refused.status == 422 and refused.msg.startswith("cursor: ")


def test_a_revoked_key_opens_nothing(service: Service, admin: Client):
    key = make_key(service, "c")
    with service.client(key["key"]) as c:
        assert c.get(JOBS).status == 200
        assert admin.call("DELETE", f"{KEYS}/{key['id']}").data == {"id": key["id"]}
        assert c.get(JOBS).status == 401
    assert admin.call("DELETE", f"{KEYS}/{key['id']}").status == 200, "idempotent"
    assert admin.call("DELETE", f"{KEYS}/{'0' * 16}").status == 404
    rows = [r["event"] for r in service.log_rows() if r.get("key") == key["id"] and r.get("audit")]
    assert rows == ["key created", "key revoked", "key revoked"]


def ask(service: Service, key: str, line: str, body: bytes = b"", length: int = 0) -> socket.socket:
    """The connection on which this has been asked, with the first bytes of a body; nothing of the answer is read."""
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    s.settimeout(20 * harness.SLOW)
    s.connect(("127.0.0.1", service.port))
    head = f"{line} HTTP/1.1\r\nHost: localhost\r\nX-Api-Key: {key}\r\nContent-Type: application/json\r\n"
    s.sendall(f"{head}Content-Length: {length or len(body)}\r\n\r\n".encode() + body)
    return s


def is_cut(s: socket.socket) -> bool:
    """It ends by a reset, behind whatever was sent before; not as a whole answer does."""
    try:
        while s.recv(1 << 20):
            pass
    except ConnectionResetError:
        return True
    return False


def test_a_revoked_key_has_its_calls_cut(service: Service, admin: Client):
    """Events, calls that wait, an upload and a download in the middle. What another key of the team has goes on."""
    key, other = make_key(service, "d"), make_key(service, "d")
    sleep = {"language": "python", "code": "import time; time.sleep(60)"}
    with service.client(key["key"]) as c, service.client(other["key"]) as o, contextlib.ExitStack() as open_:
        files = f"{SESSIONS}/{c.post(SESSIONS, {}).data['session_id']}/files"
        assert c.call("PUT", f"{files}/big", body=bytes(16 << 20)).status == 201
        ident = c.submit(sleep)
        events = open_.enter_context(o.events(ident))
        calls = {
            line: open_.enter_context(ask(service, key["key"], line, *body))
            for line, *body in (
                (f"GET {JOBS}/{ident}/events",),
                (f"GET {files}/big",),
                (f"PUT {files}/half", b"half", 100),
                (f"POST {JOBS}?wait=60", services.dumps(sleep)),
                (f"POST {EXECUTE}", services.dumps(sleep)),
            )
        }
        under_way = f"isle_http_requests {len(calls) + 2}\n"  # with the other's events, and this question
        assert harness.until(lambda: under_way in admin.get("/metrics").body.decode(), 20)
        assert admin.call("DELETE", f"{KEYS}/{key['id']}").status == 200
        assert {line: is_cut(s) for line, s in calls.items()} == dict.fromkeys(calls, True)
        assert o.get(f"{files}/half").status == 404
        live = [j["job_id"] for j in o.get(JOBS).data["items"] if j["status"] in ("queued", "preparing", "running")]
        assert len(live) == 2 and ident in live, "what was accepted goes on"
        for accepted in live:
            assert o.cancel(accepted).status == 200
        assert [e.name for e in events][-1] == "result"

    def ends() -> list[str]:
        rows = service.log_rows()
        return [r["reason"] for r in rows if r.get("team") == "d" and r.get("entry") == "execute-code"]

    assert harness.until(lambda: ends() == ["cancelled"], 20), ends()
    (row,) = [r for r in service.log_rows() if r.get("key") == key["id"] and r["event"] == "key revoked"]
    assert row["calls_cut"] == len(calls)


def test_a_key_that_revokes_itself_is_answered(service: Service):
    key = make_key(service, "e", admin=True)
    with service.client(key["key"]) as c:
        assert c.call("DELETE", f"{KEYS}/{key['id']}").data == {"id": key["id"]}
        assert c.get(JOBS).status == 401


def test_a_key_by_either_header(service: Service, keyed):
    key, other = keyed["a"]["key"], keyed["b"]["key"]
    with service.client() as c:
        assert c.get(JOBS, headers={"X-Api-Key": key}).status == 200
        assert c.get(JOBS, headers={"Authorization": f"bearer {key}"}).status == 200
        assert c.get(JOBS, headers={"Authorization": f"Bearer {key}", "X-Api-Key": key}).status == 200
        r = c.get(JOBS, headers={"Authorization": f"Bearer {key}", "X-Api-Key": other})
        assert r.status == 401 and r.headers["WWW-Authenticate"].startswith("Bearer")
        assert c.get(JOBS, headers={"X-Api-Key": key, "X-Isle-Team": "b"}).status == 403


@pytest.mark.parametrize("body", [{}, {"team": "a b", "name": "n"}, {"team": "t", "name": "a\nb"}, {"team": "t" * 129}])
def test_keys_that_cannot_be(admin: Client, body):
    r = admin.post(KEYS, body)
    assert r.status == 422 and r.code == 1001 and ("team" in r.msg or "name" in r.msg)


# ---- Routes


def test_what_is_no_route(a: Client):
    assert a.get("/api/v1/nonesuch").status == 404
    assert a.get("/API/V1/SANDBOX/JOBS").status == 404
    r = a.call("DELETE", JOBS)
    assert r.status == 405 and r.code == 1009 and r.headers["Allow"] == "GET, HEAD, POST, OPTIONS"
    r = a.call("OPTIONS", JOBS)
    assert r.status == 204 and r.headers["Allow"] == "GET, HEAD, POST, OPTIONS"


def test_queries(a: Client):
    assert a.get(f"{JOBS}?nonesuch=1").msg == "nonesuch: unknown query parameter; this takes status limit cursor"
    assert a.get(f"{JOBS}?limit=0").status == 422
    assert a.get(f"{JOBS}?limit=1&limit=2").status == 422
    assert a.get(f"{JOBS}?status=done").status == 422


def test_types_of_bodies(a: Client):
    body = services.dumps({"language": "python", "code": "return 1"})
    for kind in ("text/plain", "application/x-www-form-urlencoded", "application/json; charset=utf-16", ""):
        r = a.call("POST", EXECUTE, body=body, headers={"Content-Type": kind})
        assert r.status == 415 and r.code == 1007, kind
    for kind in ("application/json", "Application/JSON;charset=UTF-8"):
        assert a.call("POST", EXECUTE, body=body, headers={"Content-Type": kind}).status == 200


def test_every_fault_is_named(a: Client):
    r = a.post(EXECUTE, {"code": 1, "timeout": 61, "limits": {"memory_mb": 1}, "tiemout": 3})
    assert r.status == 422
    for what in (
        "language: is missing",
        "code: must be a string",
        "timeout: 61 is above the maximum of 60",
        "limits.memory_mb: 1 is below the minimum of 32 MB",
        "tiemout: unknown field",
    ):
        assert what in r.msg


def test_idempotency_keys_are_looked_at(a: Client):
    for key in ("", "a b", "x" * 256):
        r = a.post(JOBS, {"language": "python", "code": "1"}, headers={"Idempotency-Key": key})
        assert r.status == 422 and "Idempotency-Key" in r.msg


def test_trace_ids(service: Service, a: Client):
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    r = a.get(f"{JOBS}/{NOBODY}", headers={"traceparent": f"00-{trace}-00f067aa0ba902b7-01"})
    assert r.status == 404 and r.headers["X-Trace-Id"] == trace
    assert [row["path"] for row in service.log_rows() if row.get("trace") == trace] == [f"{JOBS}/{NOBODY}"]
    for bad in (
        f"00-{'0' * 32}-00f067aa0ba902b7-01",
        "x",
        f"00-{trace}-00f067aa0ba902b7-01-x",
        f"ff-{trace}-00f067aa0ba902b7-01",
    ):
        made = a.get("/healthz", headers={"traceparent": bad}).headers["X-Trace-Id"]
        assert re.fullmatch(r"[0-9a-f]{32}", made) and made != trace


# ---- From where


def test_hosts(service: Service, a: Client):
    for good in ("localhost", "localhost:4753", "127.0.0.1", "[::1]:80", "isle.example", "ISLE.example:443"):
        assert a.get("/healthz", headers={"Host": good}).status == 200, good
    for bad in ("evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "isle.example.evil.example"):
        for path in ("/healthz", JOBS, "/docs", f"{JOBS}/{NOBODY}/events", "/nonesuch"):
            r = a.get(path, headers={"Host": bad})
            assert r.status == 403 and r.code == 1004, (bad, path)


def test_pages_of_other_sites(a: Client):
    """Not even what needs no answer to do its work: links, pictures and forms of other pages."""
    for site in ("cross-site", "same-site"):
        assert a.get(JOBS, headers={"Sec-Fetch-Site": site}).status == 403
        assert a.get("/docs", headers={"Sec-Fetch-Site": site}).status == 200
    assert a.get(JOBS, headers={"Sec-Fetch-Site": "same-origin"}).status == 200


def test_forwarded_for_is_believed_of_trusted_proxies_only(service: Service, keyed):
    def from_address(source: str, forwarded: str) -> str:
        c = http.client.HTTPConnection("127.0.0.1", service.port, timeout=10, source_address=(source, 0))
        with contextlib.closing(c):
            c.request("GET", f"{JOBS}/{NOBODY}", headers={"X-Api-Key": keyed["a"]["key"], "X-Forwarded-For": forwarded})
            r = c.getresponse()
            assert r.status == 404
        [row] = [row for row in service.log_rows() if row.get("trace") == r.headers["X-Trace-Id"]]
        return row["client"]

    assert from_address("127.0.0.2", "203.0.113.9, 198.51.100.7") == "198.51.100.7"
    assert from_address("127.0.0.3", "198.51.100.8") == "127.0.0.3"


# ---- Described


def test_openapi(service: Service, a: Client):
    r = service.get("/openapi.json")
    document = r.json()
    assert r.headers.get_content_type() == "application/json" and document["openapi"].startswith("3.1")
    assert {EXECUTE, JOBS, f"{JOBS}/{{id}}", SESSIONS, KEYS, "/metrics"} <= set(document["paths"])
    limits = document["components"]["schemas"]["JobLimits"]["properties"]
    assert limits["timeout_seconds"]["maximum"] == 600 and limits["memory_mb"]["minimum"] == 32
    for path in (EXECUTE, JOBS, SESSIONS):
        body = document["paths"][path]["post"]["requestBody"]["content"]["application/json"]["example"]
        assert a.post(path, body).status in (200, 201, 202), body


def test_docs_page(service: Service):
    r = service.get("/docs")
    policy = r.headers["Content-Security-Policy"]
    assert r.headers.get_content_type() == "text/html" and "default-src 'none'" in policy
    style = re.search(r"<style>(.*?)</style>", r.body.decode(), re.S)[1]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"style-src 'sha256-{digest}'" in policy and "unsafe" not in policy
    assert b"<script" not in r.body and not re.search(rb'(?:src|href)="(?!#|openapi\.json)', r.body)
    page = r.body.decode()
    ids = re.findall(r' id="([^"]*)"', page)
    assert len(ids) == len(set(ids)) and not any(re.search(r"\s", i) for i in ids)
    assert set(re.findall(r'href="#([^"]*)"', page)) <= set(ids)
    assert len(re.findall(r"[.?] Needs ", page)) == page.count(" Needs ")  # each summary is a sentence
    assert "nowrap" not in style  # what cannot wrap makes a narrow window scroll sideways


def test_codes_of_the_documentation(service: Service):
    """docs/api.md has the same table as the service itself."""
    page = service.get("/docs").body.decode()
    served = {(int(c), int(s)) for c, s in re.findall(r"<tr><td>(\d+)</td><td>(\d+)</td>", page)}
    written = re.findall(r"^\| (\d{4}) \| (\d{3}) \|", (DOCS / "api.md").read_text(), re.M)
    assert served - {(0, 200)} == {(int(c), int(s)) for c, s in written}


def check_exposition(text: str) -> None:
    """What promtool would say of it: each family once, with HELP and TYPE before its rows, counters by their name."""
    assert text.endswith("\n")
    seen: dict[str, str] = {}
    lines = iter(text.splitlines())
    for line in lines:
        if line.startswith("# HELP "):
            _, _, name, what = line.split(" ", 3)
            assert name not in seen and len(what) > 5 and what.endswith("."), line
            kind = re.fullmatch(rf"# TYPE {name} (counter|gauge|histogram)", next(lines))
            assert kind and (kind[1] == "counter") == name.endswith("_total"), line
            seen[name] = kind[1]
            continue
        row = re.fullmatch(r'([a-z_]+)(\{[a-z_]+="[^"]*"(?:,[a-z_]+="[^"]*")*\})? (\d+(?:\.\d+)?)', line)
        assert row, line
        last = next(reversed(seen))
        ends = ("_bucket", "_sum", "_count") if seen[last] == "histogram" else ("",)
        assert row[1] in {last + end for end in ends}, (line, last)


def test_metrics(service: Service, a: Client, admin: Client):
    a.python("return 1")
    assert a.get(f"{JOBS}/none").status == 404
    text = admin.get("/metrics").body.decode()
    rows = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert int(rows['isle_jobs_ended_total{language="python",status="completed",reason="ok"}']) >= 1
    assert int(rows['isle_job_stage_seconds_count{stage="execute"}']) >= 1
    assert rows["isle_ready"] == "1" and int(rows["isle_http_connections"]) >= 1
    assert int(rows['isle_http_requests_total{status="4xx"}']) >= 1
    names = {re.match(r"[a-z_]+", row)[0] for row in rows}
    typed = set(re.findall(r"^# TYPE (\S+)", text, re.M))
    assert {re.sub(r"_(?:bucket|sum|count)$", "", n) if n not in typed else n for n in names} <= typed
    check_exposition(text)
    assert int(rows["isle_warm_hits_total"]) + int(rows["isle_warm_misses_total"]) >= 1
    assert int(rows["isle_data_free_bytes"]) > 0 and int(rows["isle_store_disk_bytes"]) > 0
    assert "team" not in text
    told = (DOCS / "observability.md").read_text()
    assert [n for n in typed if f"`{n}" not in told and f", `{n}" not in told] == [], (
        "docs/observability.md lists them all"
    )
    forwarded = {"X-Forwarded-For": "198.51.100.1"}
    assert service.get("/metrics").status == 200, "by loopback"
    assert service.get("/metrics", headers=forwarded).status == 401
    assert a.get("/metrics", headers=forwarded).status == 403
    assert admin.get("/metrics", headers=forwarded).status == 200


# ---- Cases


def test_API_09_body_too_large(service: Service, a: Client, keyed):
    key = keyed["a"]["key"].encode()
    head = b"POST %s HTTP/1.1\r\nHost: localhost\r\nX-Api-Key: %s\r\nContent-Type: application/json\r\n" % (
        KEYS.encode(),
        keyed["admin"]["key"].encode(),
    )
    before = service.figures().private_kb
    limit = 64 << 10
    over = b'{"team":"t","name":"' + b"x" * limit + b'"}'
    assert refused(exchange(service, head + b"Content-Length: %d\r\n\r\n" % len(over) + over))[0] == 413
    assert refused(exchange(service, head + b"Content-Length: 9000000000\r\n\r\n"))[0] == 413, "before it is read"
    chunks = b"%x\r\n%s\r\n" % (len(over), over)
    status, value = refused(exchange(service, head + b"Transfer-Encoding: chunked\r\n\r\n" + chunks))
    assert status == 413 and value["code"] == 1006
    head = head.replace(KEYS.encode(), EXECUTE.encode())
    huge = exchange(service, head + b"Content-Length: %d\r\n\r\n" % (26 << 20) + b" " * (26 << 20))
    assert refused(huge)[0] == 413
    assert key not in service.log_file.read_bytes()
    assert service.figures().private_kb < before + (40 << 10), "a body that was refused is not kept"


@pytest.mark.long
def test_API_09_slow_body(service: Service, keyed):
    """Less than 4 KiB in a window of 20 s: 408."""
    with socket.create_connection(("127.0.0.1", service.port), timeout=40) as s:
        s.sendall(
            b"POST %s HTTP/1.1\r\nHost: localhost\r\nX-Api-Key: %s\r\nContent-Type: application/json\r\n"
            b"Content-Length: 1000\r\n\r\n{" % (EXECUTE.encode(), keyed["a"]["key"].encode())
        )
        answer = b""
        while piece := s.recv(65536):
            answer += piece
    status, value = refused(answer)
    assert status == 408 and value["code"] == 1005


IDS = ["../x", "%2e%2e%2f", "a%2fb", "x" * 7000, "a%00", "01A22990-78F4-70EF-813B-3A4625E4CFC8", "..%5cx", "%c0%ae"]


@pytest.mark.parametrize("ident", IDS, ids=lambda i: i[:12])
def test_SAF_05_identifiers_as_paths(a: Client, ident):
    for path in (
        f"{JOBS}/{ident}",
        f"{JOBS}/{ident}/events",
        f"{JOBS}/{NOBODY}/artifacts/{ident}",
        f"{SESSIONS}/{ident}",
        f"{SESSIONS}/{ident}/files",
        f"{KEYS}/{ident}",
    ):
        r = a.get(path)
        assert 400 <= r.status < 500 and r.code, (path[:60], r.status)
    for value in ("../x", "", "x" * 10000, "a\0b", "a/b", 7):
        r = a.post(EXECUTE, {"language": "python", "code": "1", "session_id": value})
        assert r.status == 422 and "session_id" in r.msg


def test_SAF_05_no_file_is_touched_for_an_id(service: Service, a: Client):
    """What an id that is well-formed and unknown leads to is a look into the store, never a path."""

    def opened() -> set[str]:
        return {os.path.join(at, name) for at, dirs, files in os.walk(service.data) for name in dirs + files}

    before = opened()
    for path in (
        f"{JOBS}/{NOBODY}",
        f"{SESSIONS}/{NOBODY}",
        f"{SESSIONS}/{NOBODY}/files",
        f"{JOBS}/{NOBODY}/artifacts/x",
    ):
        assert a.get(path).status == 404
    assert harness.until(lambda: opened() <= before, 5), "what is there for a moment is another's"


def test_SAF_04_json_only(service: Service, a: Client):
    """What crosses is JSON, and what is kept as well: an object of Python is its text, never a pickle."""
    r = a.python("import os\nclass P:\n  def __reduce__(self): return (os.system, ('touch /tmp/pickled',))\nreturn P()")
    assert r["success"] and r["result"].startswith("<") and "P object" in r["result"]
    secret = "marked-" + os.urandom(8).hex()
    ident = a.submit(
        {"language": "python", "code": "return {'v': params['v'], 'n': 12345678901234567890}", "params": {"v": secret}}
    )
    assert a.wait(ident)["result"] == {"v": secret, "n": 12345678901234567890}
    kept = b"".join(p.read_bytes() for p in (service.data / "serve/store").iterdir() if p.is_file())
    assert secret.encode() in kept, "this is where results are kept"
    assert b"\x80\x04\x95" not in kept and b"csubprocess" not in kept and b"posix\nsystem" not in kept


def test_OUT_15_lone_surrogates(a: Client):
    r = a.python('print("\\ud83d")')
    assert r["success"] is False and r["exit_code"] == 1 and "surrogates not allowed" in r["stderr"]
    for language, code in (("python", 'return "\\ud83d"'), ("javascript", 'return "\\uD83D"')):
        r = a.execute(language, code)
        assert r["success"] is False or r["result"] == "\ufffd", r
    raw = b'{"language":"python","code":"return \'\\ud83d\'"}'
    r = a.call("POST", EXECUTE, body=raw, headers={"Content-Type": "application/json"})
    assert r.status == 400 and r.code == 1002
    json.loads(raw)  # Python's own reader would have taken it
