"""Settings of a running service: each has its effect, and SIGHUP changes what it says it changes."""

from __future__ import annotations

import contextlib
import datetime
import pathlib
import re
import signal
import socket
import urllib.parse

import harness
import pytest
import results
import variants
from service import API, JOBS, SESSIONS, Answer, Service, rows_of, serving
from service_faults import backdate

SECRET = "geheim-7f3a"
QUICK = {"language": "bash", "code": "true"}
SLEEP = {"language": "bash", "code": "sleep 600", "limits": {"timeout_seconds": 600}}


@pytest.fixture(scope="module")
def file():
    with variants.folder("isle-conf-") as folder:
        folder.chmod(0o755)
        yield folder / "isle.conf"


BEGIN = {"ISLE_ALLOWED_HOSTS": "isle.test", "ISLE_ALLOWED_ORIGINS": "https://console.test", "ISLE_LOG_FORMAT": "json"}


def write(file: pathlib.Path, **settings: object) -> None:
    file.write_text("".join(f"{name}={value}\n" for name, value in (BEGIN | settings).items()))
    file.chmod(0o644)


@pytest.fixture(scope="module")
def service(isle, file):
    write(file)
    environ = {
        "ISLE_AUDIT_LOG": str(file.parent / "audit"),
        "ISLE_LOG_FORMAT": "",  # empty: the file says
        "SANDBOX_PRESET": "platform",
        "SANDBOX_FILESYSTEM_ISOLATION_ENABLED": "true",
        "SANDBOX_LEGACY_FALLBACK_ENABLED": "false",
        "SANDBOX_FILESYSTEM_ISOLATION_BINARY": "native",
        "SANDBOX_NETWORK_DEFAULT": "none",
        "REDIS_PASSWORD": SECRET,
    }
    with serving(environ, "--config", str(file)) as s:
        yield s


def hang_up(service: Service) -> None:
    """SIGHUP, and the service has done what it does then."""

    def count() -> int:  # in both formats
        return len(re.findall(r"settings read again|settings refused", service.log()))

    before = count()
    service.process.send_signal(signal.SIGHUP)
    assert harness.until(lambda: count() == before + 1, 20), service.log()[-1000:]
    assert service.get("/healthz").status == 200  # asked after it was at that


@pytest.fixture
def change(service, file):
    """Writes the file anew and has it read; at the end it is as it was."""

    def change(**settings: object) -> None:
        write(file, **settings)
        hang_up(service)

    yield change
    change()


def last_refused(service: Service) -> dict:
    """What was said of the file that was refused last."""
    return [row for row in service.log_rows() if row["event"] == "settings refused"][-1]


def refused(a: Answer, status: int, *words: str) -> None:
    assert a.status == status, (a.status, a.body[:500])
    for word in words:
        assert word in a.msg, a.msg


def test_the_start_tells_of_the_preset_and_of_what_it_does_not_use(service):
    row = service.log_rows()[0]
    assert row["event"] == "settings" and row["level"] == "warning"
    assert row["SANDBOX_PRESET"] == "platform" and row["preset_changes"] == "SANDBOX_NETWORK_ALLOW_HOST=true"
    assert row["not_used_yet"] == "REDIS_PASSWORD"
    for pid in service.below():  # nor does it travel
        environ = b""
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            environ = pathlib.Path(f"/proc/{pid}/environ").read_bytes()
        assert SECRET.encode() not in environ
    assert SECRET not in service.log()
    assert service.python("return 1")["isolation"]["network"] == "none"


def test_hosts_and_origins(service):
    def status(**headers: str) -> int:
        return service.get(f"{JOBS}?limit=1", headers=headers).status

    port = service.port
    assert status(Host=f"127.0.0.1:{port}") == 200
    assert status(Host=f"isle.test:{port}") == 200
    assert status(Host=f"evil.test:{port}") in (400, 403, 421)
    assert status(Origin="https://console.test") == 200
    assert status(Origin="https://evil.test") == 403


def test_largest_disk(service, change):
    job = {"language": "bash", "code": "true", "limits": {"disk_mb": 200}}
    assert service.wait(service.submit(job))["status"] == "completed"
    change(SANDBOX_MAX_DISK_MB=100)
    refused(service.post(JOBS, job), 422, "disk_mb", "100")


def test_largest_artifact(service, change):
    job = {"language": "bash", "code": "head -c 2000000 /dev/zero > a", "artifacts": [{"path": "a"}]}
    assert service.wait(service.submit(job))["reason"] == "ok"
    change(SANDBOX_ARTIFACT_MAX_FILE_SIZE_MB=1)
    r = service.wait(service.submit(job))
    assert r["reason"] == "artifact" and "SANDBOX_ARTIFACT_MAX_FILE_SIZE_MB" in r["error"]
    change(SANDBOX_ARTIFACT_MAX_TOTAL_SIZE_MB=1)
    r = service.wait(service.submit(job))
    assert r["reason"] == "artifact" and "SANDBOX_ARTIFACT_MAX_TOTAL_SIZE_MB" in r["error"]


@contextlib.contextmanager
def jobs(service: Service, n: int, **fields: str):
    """So many that sleep; cancelled at the end."""
    ids = []
    try:
        for _ in range(n):
            ids.append(service.submit(SLEEP | fields))
        yield ids
    finally:
        for ident in ids:
            service.cancel(ident)
        for ident in ids:
            service.wait(ident)


def test_slots_and_bounds_of_the_queue(service, change):
    change(SANDBOX_WORKER_CONCURRENCY=1, SANDBOX_QUEUE_LIMIT=1)
    with jobs(service, 2) as (first, second):
        assert harness.until(lambda: service.job(first)["status"] == "running", 20)
        a = service.post(JOBS, SLEEP)
        refused(a, 429)
        assert int(a.headers["Retry-After"]) >= 1
        assert service.job(second)["status"] == "queued"
        change(SANDBOX_WORKER_CONCURRENCY=2, SANDBOX_QUEUE_LIMIT=5, SANDBOX_QUEUE_TEAM_LIMIT=1)
        assert harness.until(lambda: service.job(second)["status"] == "running", 20)  # a slot more
        with jobs(service, 1):
            refused(service.post(JOBS, SLEEP), 429)  # of one team
    change(SANDBOX_WORKER_CONCURRENCY=2, SANDBOX_TEAM_CONCURRENCY=1)
    with jobs(service, 2) as (first, second):
        assert harness.until(lambda: service.job(first)["status"] == "running", 20)
        assert service.job(second)["status"] == "queued"


def test_wait_in_the_queue(service, change):
    session = service.post(f"{API}/sandbox/sessions", {}).data["session_id"]
    for slots, fields, why in (
        ({"SANDBOX_WORKER_CONCURRENCY": 1}, {}, "No worker was free within 1 s: the job waited, and was never started"),
        (
            {"SANDBOX_WORKER_CONCURRENCY": 2},
            {"session_id": session},
            "The job waited 1 s for an earlier job of its session, and was never started",
        ),
        (
            {"SANDBOX_WORKER_CONCURRENCY": 2, "SANDBOX_TEAM_CONCURRENCY": 1},
            {},
            "The job waited 1 s for another job of its team to end",
        ),
    ):
        change(**slots)
        with jobs(service, 1, **fields) as (first,):
            assert harness.until(lambda ident=first: service.job(ident)["status"] == "running", 20)
            change(**slots, SANDBOX_QUEUE_TIMEOUT_SECONDS=1)
            with jobs(service, 1, **fields) as (second,):
                r = service.wait(second)
                assert (r["reason"], r["metadata"]["stage"]) == ("queue_timeout", "queue"), r
                assert r["error"].startswith(why), r


def test_longest_call_of_a_tool(service, change):
    tool = {"name": "slow", "code_config": {"language": "python", "code": "import time; time.sleep(60)"}}
    made = service.post(f"{API}/tools", tool).data["id"]
    change(STREAM_TOOL_TIMEOUT_CODE=1)
    r = service.post(f"{API}/tools/execute", {"tool_id": made}).data
    assert (r["reason"], r["error"]) == ("caller_timeout", "Tool call timeout (1s)"), r
    assert service.call("DELETE", f"{API}/tools/{made}").status == 200


def test_time_to_live_of_sessions(service, change):
    def lives() -> datetime.timedelta:
        s = service.post(SESSIONS, {}).data
        service.call("DELETE", f"{SESSIONS}/{s['session_id']}")
        return datetime.datetime.fromisoformat(s["expires_at"]) - datetime.datetime.fromisoformat(s["created_at"])

    assert lives() == datetime.timedelta(hours=24)
    change(SANDBOX_SESSION_TTL_HOURS=2)
    assert lives() == datetime.timedelta(hours=2)


def test_level_of_the_log(service, change):
    change(ISLE_LOG_LEVEL="error")
    before = service.log_rows()
    assert service.wait(service.submit(QUICK))["reason"] == "ok"
    assert service.log_rows() == before
    change(ISLE_LOG_LEVEL="info")
    ident = service.submit(QUICK)
    service.wait(ident)
    assert harness.until(lambda: [r for r in service.log_rows() if r.get("job") == ident], 20)


def test_what_needs_a_restart_is_told_and_waits(service, change):
    before = len(service.log_rows())
    change(SANDBOX_HOSTNAME="other", SANDBOX_DRAIN_SECONDS=9)
    told = {row["setting"]: row["event"] for row in service.log_rows()[before:] if "setting" in row}
    assert told == {"SANDBOX_HOSTNAME": "setting needs a restart", "SANDBOX_DRAIN_SECONDS": "setting changed"}
    assert service.python("import socket; return socket.gethostname()")["result"] == harness.HOSTNAME


@pytest.mark.parametrize(
    "bad, why",
    [
        ("SANDBOX_MAX_DISK_MB=many\n", ":2: SANDBOX_MAX_DISK_MB: many is not a whole number"),
        ("SANDBOX_MAX_DISK=1\n", ":2: SANDBOX_MAX_DISK is no setting; did you mean SANDBOX_MAX_DISK_MB?"),
        ("SECRET_KEY=geheim-7f3a\n", ":2: SECRET_KEY is a secret, and others can read the file"),
        ("\x1b[2J\n", ":2: ?[2J: a line is NAME=VALUE"),
    ],
)
def test_a_bad_file_changes_nothing(service, file, change, bad, why):
    change()
    file.write_text("ISLE_LOG_LEVEL=error\n" + bad)
    hang_up(service)
    row = last_refused(service)
    assert row["level"] == "error"
    assert row["error"].startswith(f"{file}{why}"), row
    assert "geheim" not in service.log()
    ident = service.submit(QUICK)  # the level is what it was, too
    service.wait(ident)
    assert harness.until(lambda: [r for r in service.log_rows() if r.get("job") == ident], 20)


def test_a_file_that_cannot_be_read(service, file, change):
    file.rename(file.with_suffix(".away"))
    file.mkdir()
    hang_up(service)
    assert "is not a file" in last_refused(service)["error"]
    file.rmdir()
    hang_up(service)
    assert last_refused(service)["error"] == "No such file or directory"
    file.with_suffix(".away").rename(file)
    assert service.post(JOBS, QUICK).status == 202


def test_H25_log_and_audit(service, file):
    """What a caller names stands in one line, as text; ids of requests are the service's own."""
    audit = file.parent / "audit"
    before = len(service.log_rows())
    odd = 'a\r\n{"event":"forged"}\x1b[2J\u2028\u202e\x9b level=error event=forged '
    headers = {"User-Agent": odd[:1] + "b" * 20000, "X-Request-Id": "forged", "Traceparent": "forged"}
    for name in (odd, odd + "x" * 1_000_000):
        path = urllib.parse.quote(name[:5000])
        for a in (
            service.get(f"{JOBS}/{path}", headers=headers),
            service.get(f"/{path}", headers=headers),
            service.get(f"{JOBS}?status={path}", headers=headers),
            service.post(JOBS, QUICK | {"language": name}, headers=headers),
            service.post(JOBS, QUICK | {name: 1}, headers=headers),
            service.post(SESSIONS, {"conversation_id": name}, headers=headers),
        ):
            assert 400 <= a.status < 500, (a.status, a.body[:200])
            assert "forged" not in "".join(v for k, v in a.headers.items() if k.lower() != "content-type")
        with service.client(unix=True) as admin:
            assert admin.post(f"{API}/keys", {"team": "a", "name": name}).status in (201, 400, 413, 422)
            assert admin.post(f"{API}/keys", {"team": name, "name": "b"}).status in (400, 413, 422)
    assert service.get("/", headers={"User-Agent": "b" * 65536}).status == 431
    for field in (b"X-Request-Id: a\nforged: 1", b"X-Request-Id: a\rforged: 1", b"X-Request-Id: a\r\n forged"):
        with socket.create_connection(("127.0.0.1", service.port), 10) as s:
            s.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n" + field + b"\r\n\r\n")
            assert b" 400 " in s.recv(1000)
    service.wait(service.submit(QUICK | {"code": "echo secret-code >&2; exit 3", "env": {"A": "secret-env"}}))
    rows = service.log_rows()[before:]  # each line is strict JSON
    assert len(rows) > 12 and all("forged" not in row["event"] for row in rows)
    for text in (service.log(), audit.read_text()):
        assert all(len(line.encode()) < 4096 for line in text.split("\n"))
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u202e]", text)
        assert "secret-" not in text


def test_audit_log(service, file, change):
    """One line for each change of keys, in a file that may be moved away. From here on callers need a key."""
    audit = file.parent / "audit"

    def made() -> str:
        key = service.new_key("audited")
        text = audit.read_text()
        assert key not in text and key not in service.log()
        return text

    assert audit.stat().st_mode & 0o7777 == 0o640
    row = results.strict_json(made().splitlines()[-1].encode())
    assert row["event"] == "key created" and row["audit"] is True and row["team"] == "audited"
    assert row in service.log_rows()
    audit.rename(file.parent / "audit.1")
    hang_up(service)
    assert len(made().splitlines()) == 1
    assert (file.parent / "audit.1").read_text().count('"team":"audited"') == 1
    audit.unlink()
    audit.mkdir()
    hang_up(service)
    told = [row for row in service.log_rows() if row["event"] == "audit log not opened again"]
    assert len(told) == 1 and told[0]["error"] == "Is a directory"
    audit.rmdir()


def test_sessions_in_the_audit_log(service, file):
    """Made, given more time, deleted, and ended by time, each once; what changes nothing is none of it."""
    audit = file.parent / "audit"

    def of(ident: str) -> list[dict]:
        return [row for row in rows_of(audit) if row.get("session") == ident]

    hang_up(service)  # the audit log is a file again
    team = {"X-Isle-Team": "audited"}
    with service.client(unix=True) as c:
        fields = {"conversation_id": "audited", "ttl_hours": 1}
        a = c.post(SESSIONS, fields, headers=team)
        assert c.post(SESSIONS, fields, headers=team).status == 200
        ident, other = (x.data["session_id"] for x in (a, c.post(SESSIONS, {}, headers=team)))
        for hours in (5, 1):
            assert c.post(f"{SESSIONS}/{ident}/extend", {"ttl_hours": hours}, headers=team).status == 200
        assert c.call("DELETE", f"{SESSIONS}/{ident}", headers=team).status == 200
    rows = of(ident)
    assert [row["event"] for row in rows] == ["session created", "session extended", "session deleted"]
    assert all(row["audit"] is True and row["team"] == "audited" and row["trace"] for row in rows), rows
    assert rows[0]["trace"] == a.headers["X-Trace-Id"]
    service.stop()
    backdate(service, [other], 1000)
    service.start()
    assert harness.until(lambda: len(of(other)) == 2, 20), of(other)
    assert [row["event"] for row in of(other)] == ["session created", "session expired"]
    assert of(other)[1]["team"] == "audited"
    assert all(row in service.log_rows() for row in rows + of(other))


def test_text_log(service, change):
    """The last one: what is no JSON stays in the log."""
    change(ISLE_LOG_FORMAT="text")
    assert service.log().splitlines()[-1].startswith("time=")
