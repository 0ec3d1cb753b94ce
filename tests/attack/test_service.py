"""Attacks on the service: a team that takes the queue, texts that pretend, and what it stands on goes away."""

from __future__ import annotations

import os
import signal
import time

import harness
import pytest
from agent_session import Agent
from service import EXECUTE, JOBS, SESSIONS, Service, serving
from service_faults import fill, on_small_disk, run_until_failed, without_namespaces
from tool_teams import TOOLS, every, save, tool

SLOW = harness.SLOW
SHORT = {"command": ["sleep", "0.2"]}


# ---- F12: queue capture


def fill_queue(c, job: dict, most: int = 300) -> tuple[list[str], object]:
    """Submits until the first refusal: ids, and the refusal."""
    ids = []
    while len(ids) < most:
        a = c.post(JOBS, job)
        if a.status == 429:
            return ids, a
        assert a.status == 202, a.body
        ids.append(a.data["job_id"])
    raise AssertionError("no bound")


@pytest.mark.parametrize(
    "settings",
    [
        {"SANDBOX_QUEUE_LIMIT": "200", "SANDBOX_QUEUE_TEAM_LIMIT": "100"},
        {"SANDBOX_QUEUE_LIMIT": "200", "SANDBOX_QUEUE_TEAM_LIMIT": "100", "SANDBOX_TEAM_CONCURRENCY": "1"},
    ],
    ids=["short jobs", "one of a team at a time"],
)
def test_F12_one_team_takes_the_queue(settings):
    """A's jobs fill its share and wait; B's one begins before them."""
    bounded = "SANDBOX_TEAM_CONCURRENCY" in settings
    job = {"command": ["sleep", "600"], "limits": {"timeout_seconds": 600}} if bounded else SHORT
    with serving(settings | {"SANDBOX_WORKER_CONCURRENCY": "2"}) as s:
        a, b = s.client(s.new_key("greedy")), s.client(s.new_key("modest"))
        # None of the short ones is through before the queue is full: A has one slot, as B has a key.
        bars = [] if bounded else [a.submit({"command": ["sleep", "600"], "limits": {"timeout_seconds": 600}})]
        ids, refused = fill_queue(a, job)
        for bar in bars:
            a.cancel(bar)
        assert 100 <= len(ids) <= 130 and refused.code == 5400, refused
        assert int(refused.headers["Retry-After"]) >= 1 and "100" in refused.msg, refused
        late = b.submit({"command": ["true"]})
        assert b.wait(late)["success"]
        [mine] = [row for row in b.get(JOBS).data["items"] if row["job_id"] == late]
        others = [row["started_at"] for row in a.get(f"{JOBS}?limit=200").data["items"] if row["started_at"]]
        overtook = [at for at in others if mine["submitted_at"] < at < mine["started_at"]]
        assert len(overtook) <= 2, (mine, overtook)
        assert a.get(f"{JOBS}?status=queued&limit=1").data["items"], "the greedy one is through: nothing was shown"
        for ident in ids:
            a.cancel(ident)


def test_F12_at_the_defaults():
    """A's long jobs leave one slot, as B has a key; B's job runs at once. Once B has none, A takes that, too."""
    long = {"command": ["sleep", "600"], "limits": {"timeout_seconds": 600}}
    with serving({} if (os.cpu_count() or 1) > 1 else {"SANDBOX_WORKER_CONCURRENCY": "2"}) as s:
        key = s.new_key("modest")
        a, b = s.client(s.new_key("greedy")), s.client(key)
        slots = int(s.metric("isle_slots"))
        ids = [a.submit(long) for _ in range(slots + 10)]
        assert harness.until(lambda: s.metric("isle_slots_used") == slots - 1, 20)
        assert b.wait(b.submit({"command": ["true"]}))["success"]
        assert harness.until(lambda: s.metric("isle_slots_used") == slots - 1, 20)
        assert s.metric("isle_queue_jobs") == 11
        with s.client(unix=True) as c:
            assert c.call("DELETE", f"/api/v1/keys/{key.split('_')[1]}").status == 200
        ids.append(a.submit(long))
        assert harness.until(lambda: s.metric("isle_slots_used") == slots, 20)
        for ident in ids:
            a.cancel(ident)


# ---- H16: texts that pretend


TEXTS = ("\r\nFLUSHALL\r\n", "*1\r\n$7\r\n", "a:b", "*?[", "'; drop table jobs; --", "\u0000", "x" * (1 << 20))


def test_H16_texts_reach_no_protocol(service: Service):
    """Ids are looked at before use; names are values, whatever they hold; what was stored is there afterwards."""
    kept = service.submit({"command": ["true"]})
    before = service.wait(kept)
    for text in TEXTS:
        quoted = "".join(f"%{b:02X}" for b in text.encode())[:6000]
        a = service.get(f"{JOBS}/{quoted}")
        assert 400 <= a.status < 500, (text[:20], a)
        assert 400 <= service.post(f"{JOBS}/{quoted}/cancel").status < 500
        names = {"conversation_id": text, "agent_id": text, "user_id": text}
        a = service.post(SESSIONS, names)
        assert a.status in (200, 201, 413, 422), (text[:20], a)
        if a.status < 300:
            same = service.post(
                "/api/v1/sandbox/sessions", {"conversation_id": text, "agent_id": text, "user_id": text}
            )
            assert same.data["session_id"] == a.data["session_id"]
            assert service.call("DELETE", f"/api/v1/sandbox/sessions/{a.data['session_id']}").status == 200
        if text.isprintable() and len(text) < 255:
            with_key = service.post(JOBS, {"command": ["true"]}, headers={"Idempotency-Key": text})
            assert with_key.status in (202, 422), with_key
    assert service.job(kept) == before


def test_H16_a_job_does_not_reach_the_service(service: Service):
    code = (
        "import socket\n"
        "def tried(family, address):\n"
        "    s = socket.socket(family)\n"
        "    s.settimeout(1)\n"
        "    try: s.connect(address)\n"
        "    except OSError as e: return e.errno or 'timeout'\n"
        "    return 'reached'\n"
        f"where = [(socket.AF_INET, ('127.0.0.1', {service.port})), (socket.AF_UNIX, {str(service.socket)!r}),\n"
        "         (socket.AF_UNIX, '/run/isle/isle.sock'), (socket.AF_UNIX, '\\0isle')]\n"
        "return [tried(*w) for w in where]\n"
    )
    a = service.python(code)
    assert a["success"] and "reached" not in a["result"], a


# ---- H26: what it stands on goes away


def test_H26_disk_is_full():
    """Nothing is accepted that cannot be kept; nothing that was kept is lost; it recovers by itself."""
    with on_small_disk(64, {}) as (s, filler):
        kept = s.submit({"command": ["echo", "kept"]})
        assert s.wait(kept)["stdout"] == "kept\n"
        save(s, "kept")
        agent = Agent(s)
        tag = agent.ok("write", path="f", content="one\n")["tag"]
        fill(filler)
        refused, accepted = [], []
        for _ in range(200):
            a = s.post(JOBS, {"command": ["echo", "x" * 20000]})
            (accepted if a.status == 202 else refused).append(a)
            if len(refused) > 5:
                break
        assert refused and all(a.status == 503 and a.code != 0 for a in refused), refused[:2]
        assert not s.ready() or harness.until(lambda: not s.ready(), 20)
        for path, body in ((TOOLS, tool("new")), (f"{TOOLS}/import", {"tools": [tool("new")]})):
            a = s.post(path, body)
            assert a.status == 503 and a.code != 0 and a.headers["Retry-After"], a
        assert [t["name"] for t in every(s)] == ["kept"]
        for name, more in (
            ("write", {"content": "two\n"}),
            ("edit", {"edits": [{"op": "replace", "line": f"1#{tag}", "new": "two"}]}),
        ):
            assert "full" in agent.refused(name, path="f", **more)
        assert "full" in agent.refused("write", path="new", content="x")
        assert agent.ok("read", path="f")["content"] == f"1#{tag}| one\n" and "new" not in agent.names()
        assert "No space left" in agent.artifact("f")["error"]
        filler.unlink()
        assert harness.until(s.ready, 30), "there is room again, and yet it is not ready"
        assert s.job(kept)["stdout"] == "kept\n"
        for a in accepted:
            assert s.wait(a.data["job_id"])["success"]
        assert s.python("return 1")["success"]
        assert save(s, "new")["version"] == 1
        agent.edit("f", f"1#{tag}", "two")
        [file] = agent.artifact("f")["files"]
        assert s.get(file["url"]).body == b"two\n"


def test_H26_launcher_stands_still(isle):
    """SIGSTOP: calls end in bounded time, without a result that nobody computed; then it goes on, or is made anew."""
    with serving() as s:
        os.kill(s.launcher_pid, signal.SIGSTOP)
        begin = time.monotonic()
        try:
            a = s.post(EXECUTE, {"language": "python", "code": "print('ran')", "timeout": 1})
            assert time.monotonic() - begin < 15 * SLOW
            assert a.status == 503 or not a.data["success"] or a.data["stdout"] == "ran\n", a
        finally:
            if s.process.poll() is None and s.launcher_pid:
                os.kill(s.launcher_pid, signal.SIGCONT)
        if s.process.poll() is None:
            assert harness.until(s.ready, 30)
            assert s.python("return 1")["success"]


@pytest.mark.parametrize("kind", ["user", "net"])
def test_H26_namespaces_are_taken_away(isle, kind):
    """Never with less isolation: what runs lists what the host has always lacked, and the rest does not run."""
    with serving() as s:
        with without_namespaces(s, kind):
            failed = run_until_failed(s)
            assert failed is None or failed["reason"] in ("isolation_unavailable", "internal"), failed
        assert harness.until(s.ready, 30)
        a = s.python("return 1")
        assert a["success"] and a["isolation"]["downgrades"] == list(harness.variants.NOW.downgrades), a
