"""Jobs over HTTP: direct execution, the queue, events, idempotency, what outlives a restart. One service for most of
it, one with a single slot and a short queue for the rest."""

from __future__ import annotations

import concurrent.futures
import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import sqlite3
import struct
import subprocess
import threading
import time
import uuid

import harness
import host
import pytest
import service
import service_faults
from agent_session import Agent
from session_files import Files

SLOW = harness.SLOW
SLEEP = {"command": ["sleep", "600"], "limits": {"timeout_seconds": 600}}
TRUE = {"command": ["true"]}


@pytest.fixture(scope="module")
def api():
    with service.serving({"SANDBOX_WORKER_CONCURRENCY": "4"}) as s:
        yield s


@pytest.fixture(scope="module")
def narrow():
    """One slot, a queue of five."""
    with service.serving({"SANDBOX_WORKER_CONCURRENCY": "1", "SANDBOX_QUEUE_LIMIT": "5"}) as s:
        yield s


@pytest.fixture(scope="module")
def teams():
    """Two of them, and one slot."""
    with service.serving({"SANDBOX_WORKER_CONCURRENCY": "1"}) as s:
        yield tuple(s.client(s.new_key(team)) for team in ("one", "two"))


def until_status(c: service.Client, ident: str, *statuses: str) -> dict:
    assert harness.until(lambda: c.job(ident)["status"] in statuses, 20), c.job(ident)
    return c.job(ident)


@contextlib.contextmanager
def busy(c: service.Client):
    """The one slot is taken, for as long as the block."""
    ident = c.submit(SLEEP)
    until_status(c, ident, "running")
    yield ident
    c.cancel(ident)
    until_status(c, ident, "cancelled")


# ---- Direct execution -----------------------------------------------------------------------------------------------


def test_execute_code_answers_all_its_fields(api):
    r = api.python("print(params['a'])\nreturn params['a'] + 1", params={"a": 41})
    assert list(r) == [
        "success",
        "result",
        "error",
        "logs",
        "artifacts",
        "duration_ms",
        "job_id",
        "reason",
        "exit_code",
        "signal",
        "stdout",
        "stderr",
        "truncated",
        "usage",
        "isolation",
    ]
    assert (r["success"], r["result"], r["logs"], r["stdout"], r["reason"]) == (True, 42, "41", "41\n", "ok")


def test_a_job_that_fails_is_no_failed_request(api):
    r = api.js("console.log('x'); throw new Error('boom')")
    assert (r["success"], r["reason"], r["stdout"]) == (False, "error", "x\n")
    assert "boom" in r["error"]
    r = api.python("pass")
    assert (r["success"], r["logs"], r["result"]) == (True, None, None)


def test_a_waiting_call_is_recorded_after_its_answer(api):
    r = api.python("return 1")
    assert harness.until(lambda: any(j["job_id"] == r["job_id"] for j in api.get(service.JOBS).data["items"]), 20)
    assert api.job(r["job_id"])["result"] == 1


def ended_rows(s: service.Service, reason: str) -> list[dict]:
    return [r for r in s.log_rows() if r.get("event") == "job ended" and r["reason"] == reason]


def send_and_leave(s: service.Service, job: dict) -> None:
    """A direct call whose caller closes its connection once the job is there."""
    jobs = len(s.one_shot())
    c = s.connection(10)
    c.request("POST", service.EXECUTE, service.dumps(job), {"Content-Type": "application/json"})
    assert harness.until(lambda: len(s.one_shot()) > jobs, 20)
    c.close()


def test_a_caller_that_goes_away_cancels_its_job(api):
    before = len(ended_rows(api, "cancelled"))
    send_and_leave(api, {"language": "python", "code": "import time; time.sleep(60)", "timeout": 60})
    assert harness.until(lambda: len(ended_rows(api, "cancelled")) > before, 20)
    assert harness.until(lambda: api.one_shot() == [], 20)


def test_a_waiting_call_that_waits_for_a_slot_leaves_the_queue_with_its_caller(narrow):
    before = len(ended_rows(narrow, "cancelled"))
    with busy(narrow):
        c = narrow.connection(10)
        job = {"language": "python", "code": "open('/dev/null')"}
        c.request("POST", service.EXECUTE, service.dumps(job), {"Content-Type": "application/json"})
        assert harness.until(lambda: narrow.metric("isle_queue_jobs") == 1, 20)
        c.close()
        assert harness.until(lambda: len(ended_rows(narrow, "cancelled")) > before, 20)


def test_the_workspace_of_a_direct_call_is_gone_before_its_answer(api):
    for _ in range(5):
        api.python("open('f', 'w').write('x' * 1000)")
        assert api.one_shot() == []


def test_API_01_big_code_and_params(api):
    code = "#" + "x" * 400_000 + "\nreturn [len(params['big']), len(params['one'])]"
    r = api.python(code, params={"big": "y" * 3_000_000, "one": "z" * 200_000})
    assert r["result"] == [3_000_000, 200_000]
    a = api.post(service.EXECUTE, {"language": "python", "code": "#" * ((1 << 20) + 1)})
    assert a.status == 413 and "code" in a.msg and str(1 << 20) in a.msg
    c = api.connection(10)
    c.putrequest("POST", service.EXECUTE)
    c.putheader("Content-Type", "application/json")
    c.putheader("Content-Length", str(25 << 20))
    c.endheaders()
    refused = c.getresponse()  # before any of it is read
    assert refused.status == 413 and str(24 << 20) in refused.read().decode()


def test_API_03_awkward_names_of_params(api):
    params = {"class": 1, "__proto__": {"x": 1}, "a-b": 2, "": 3, "\u540d": 4}
    want = [1, {"x": 1}, 2, 3, 4]
    names = list(params)
    body = f"const names = {json.dumps(names)}; if ({{}}.x) throw 1; return names.map(n => params[n])"
    assert api.js(body, params=params)["result"] == want
    assert api.python(f"return [params[n] for n in {names!r}]", params=params)["result"] == want


@pytest.mark.parametrize("name", ["../x.py", "/etc/passwd", "input/../../x", "a/" * 200 + "b" * 300, "", "a\0b"])
def test_API_04_names_of_files_that_are_refused(api, name):
    files = [{"target_path": name, "content_base64": "aGk="}]
    a = api.post(service.EXECUTE, {"language": "python", "code": "1", "input_files": files})
    assert a.status == 422 and "input_files" in a.msg, a.body


@pytest.mark.parametrize("name", ["main.py (you may rename it)", "a/b.py", "n" * 255])
def test_API_04_names_of_files_that_are_taken_as_they_are(api, name):
    files = [{"target_path": name, "content_base64": "aGk="}]
    assert api.python(f"return open({name!r}).read()", input_files=files)["result"] == "hi"


def test_API_05_delimiters_in_code(api):
    script = "cat <<'EOF'\nEOF 'EOF' isle\nEOF\necho 'EOF'\n"
    ident = api.submit({"language": "bash", "code": script})
    assert api.wait(ident)["stdout"] == "EOF 'EOF' isle\nEOF\n"


def test_API_06_line_ends_of_windows_and_marks(api):
    assert api.python("x = 1\r\nif x:\r\n    x = 2\r\nreturn x\r\n")["result"] == 2
    assert api.js("let x = 1;\r\nx += 1;\r\nreturn x;\r\n")["result"] == 2
    assert api.python("\ufeffreturn 3")["result"] == 3
    assert api.js("\ufeffreturn 3")["result"] == 3


BAD_LIMITS = [
    ("timeout_seconds", 0),
    ("timeout_seconds", -1),
    ("timeout_seconds", 1e99),
    ("timeout_seconds", "5"),
    ("memory_mb", 0),
    ("max_stdout_kb", 0),
    ("pids", 1.5),
    ("nofile", []),
    ("timeout_seconds", None),
    ("memory_mb", None),
]


@pytest.mark.parametrize(("name", "value"), BAD_LIMITS)
def test_API_07_limits_that_make_no_sense(api, name, value):
    a = api.post(service.EXECUTE, {"language": "python", "code": "1", "limits": {name: value}})
    assert a.status == 422 and f"limits.{name}" in a.msg, a.body
    a = api.post(service.JOBS, {"language": "python", "code": "1", "limits": {name: value}})
    assert a.status == 422 and f"limits.{name}" in a.msg, a.body


def test_API_07_not_a_number(api):
    body = b'{"language":"python","code":"1","limits":{"timeout_seconds":NaN}}'
    a = api.call("POST", service.EXECUTE, body=body, headers={"Content-Type": "application/json"})
    assert a.status == 400, a.body


@pytest.mark.parametrize("field", ["timeout", "limits"])
def test_a_direct_call_has_a_minute_at_most(api, field):
    job = {"language": "python", "code": "1"} | (
        {"timeout": 61} if field == "timeout" else {"limits": {"timeout_seconds": 61}}
    )
    a = api.post(service.EXECUTE, job)
    assert a.status == 422 and field in a.msg and "60" in a.msg, a.body


def test_the_limit_of_the_limits_wins_over_timeout(api):
    r = api.python("import time; time.sleep(20)", timeout=30, limits={"timeout_seconds": 1})
    assert (r["reason"], r["error"]) == ("timeout", "Execution timeout (1.0s)")


# ---- Jobs ---------------------------------------------------------------------------------------------------------


def test_a_job_is_accepted_and_found(api):
    a = api.post(service.JOBS, {"command": ["echo", "hi"]})
    ident = a.data["job_id"]
    assert a.status == 202 and a.headers["Location"] == f"{service.JOBS}/{ident}"
    r = api.wait(ident)
    assert (r["status"], r["result"], r["success"]) == ("completed", "hi", True)
    m = r["metadata"]
    assert m["queued_at"] <= m["started_at"] <= m["execute_started_at"] <= m["completed_at"], m


def test_waiting_for_a_job(api):
    a = api.post(f"{service.JOBS}?wait=30", {"command": ["echo", "hi"]})
    assert a.status == 200 and a.data["status"] == "completed" and a.data["result"] == "hi"
    seen: list[str] = []
    while len(seen) < 5 and "running" not in seen:  # on a busy host a second may be too short for a start
        began = time.monotonic()
        a = api.post(f"{service.JOBS}?wait=1", SLEEP)
        assert a.status == 202 and a.data["reason"] is None
        assert 0.9 < time.monotonic() - began < 20 * SLOW
        seen.append(a.data["status"])
        api.cancel(a.data["job_id"])
    assert seen[-1] == "running", seen


def test_a_job_outlives_the_caller_that_waited_for_it(api):
    files = Files(api)
    script = "touch begun; until [ -e go ]; do sleep 0.02; done; echo done"
    c = api.connection(10)
    body = service.dumps({"command": ["sh", "-c", script], "session_id": files.session})
    c.request("POST", f"{service.JOBS}?wait=30", body, {"Content-Type": "application/json"})
    assert harness.until(lambda: files.get("begun").status == 200, 20)
    c.close()
    assert harness.until(lambda: api.metric("isle_http_requests") == 1, 20)  # this question
    files.put("go")
    [job] = [j for j in api.get(service.JOBS).data["items"] if j["session_id"] == files.session]
    assert api.wait(job["job_id"])["result"] == "done"


def test_jobs_are_listed_newest_first_in_pages(api):
    made = [api.submit(TRUE) for _ in range(5)]
    for ident in made:
        api.wait(ident)
    page = api.get(f"{service.JOBS}?limit=2").data
    assert [j["job_id"] for j in page["items"]] == [made[4], made[3]]
    page = api.get(f"{service.JOBS}?limit=2&cursor={page['next_cursor']}").data
    assert [j["job_id"] for j in page["items"]] == [made[2], made[1]]
    assert all(j["status"] == "completed" and j["reason"] == "ok" for j in page["items"])
    assert api.get(f"{service.JOBS}?status=queued").data["items"] == []
    for query, name in (
        ("status=done", "status"),
        ("limit=0", "limit"),
        ("cursor=x", "cursor"),
        ("nonesuch=1", "nonesuch"),
    ):
        a = api.get(f"{service.JOBS}?{query}")
        assert a.status == 422 and name in a.msg, a.body


def test_the_list_and_the_job_say_the_same(narrow):
    """Also while the store has not taken how it ended; and of a status the list has no other."""
    ident = narrow.submit(SLEEP)
    until_status(narrow, ident, "running")
    with contextlib.closing(sqlite3.connect(service_faults.store_file(narrow), isolation_level=None)) as db:
        db.execute("BEGIN IMMEDIATE")
        narrow.cancel(ident)
        r = until_status(narrow, ident, "cancelled")
        (row,) = narrow.get(f"{service.JOBS}?limit=1").data["items"]
        assert row["job_id"] == ident
        assert (row["status"], row["reason"]) == (r["status"], r["reason"]) == ("cancelled", "cancelled")
        assert row["ended_at"] == r["metadata"]["completed_at"] and row["started_at"] == r["metadata"]["started_at"]
        assert narrow.get(f"{service.JOBS}?status=running").data["items"] == []
        db.execute("ROLLBACK")
    assert narrow.wait(ident)["reason"] == "cancelled"
    (stored,) = narrow.get(f"{service.JOBS}?limit=1&status=cancelled").data["items"]
    assert stored == row


def test_no_job_of_that_id(api):
    ident = str(uuid.uuid4())
    for a in (api.get(f"{service.JOBS}/{ident}"), api.cancel(ident), api.get(f"{service.JOBS}/{ident}/events")):
        assert a.status == 404 and a.code == 4000, a.body


def test_another_teams_job_is_not_there(teams):
    one, two = teams
    mine = one.submit(SLEEP)
    for a in (two.get(f"{service.JOBS}/{mine}"), two.cancel(mine), two.get(f"{service.JOBS}/{mine}/events")):
        assert a.status == 404, a.body
    assert two.get(service.JOBS).data["items"] == []
    assert [j["job_id"] for j in one.get(service.JOBS).data["items"]] == [mine]
    assert one.job(mine)["status"] in ("queued", "preparing", "running")
    one.cancel(mine)
    until_status(one, mine, "cancelled")


def test_teams_take_turns(teams):
    """A team that has handed in ten jobs does not keep another one's single job waiting behind them."""
    one, two = teams
    with busy(one) as first:  # until all of them wait
        many = [one.submit({"command": ["sleep", "0.1"]}) for _ in range(10)]
        single = two.submit(TRUE)
    started = two.wait(single)["metadata"]["started_at"]
    order = sorted(one.wait(i)["metadata"]["started_at"] for i in [first, *many])
    assert order[0] < started < order[2], (started, order)


def test_a_key_of_one_team_says_nothing_of_anothers(teams):
    one, two = teams
    key = {"Idempotency-Key": "the-same"}
    a, b = one.submit(TRUE, key), two.submit({"command": ["false"]}, key)
    assert a != b and one.wait(a)["success"] and not two.wait(b)["success"]


def test_the_same_key_and_body_are_the_same_job(api):
    key = {"Idempotency-Key": str(uuid.uuid4())}
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        made = set(pool.map(lambda _: api.client().submit({"command": ["date"]}, key), range(8)))
    assert len(made) == 1
    ident = made.pop()
    first = api.wait(ident)
    a = api.post(service.JOBS, {"command": ["date"]}, headers=key)
    assert a.status == 202 and a.data == {"job_id": ident, "status": "completed"}, a.body
    assert api.job(ident) == first
    a = api.post(f"{service.JOBS}?wait=5", {"command": ["date"]}, headers=key)
    assert a.status == 200 and a.data == first
    a = api.post(service.JOBS, {"command": ["true"]}, headers=key)
    assert a.status == 409 and a.code == 5101, a.body


def test_packages_are_refused_by_name(api):
    for field, value in (("python_packages", ["a==1.0"]), ("js_packages", ["a@1.0.0"])):
        for path in (service.EXECUTE, service.JOBS):
            a = api.post(path, {"language": "python", "code": "1", field: value})
            assert a.status == 422 and a.msg.startswith(f"{field}"), a.body


def test_CON_08_cancel(narrow):
    with busy(narrow) as running:
        queued = narrow.submit({"command": ["sh", "-c", "echo ran"]})
        for _ in range(2):
            assert narrow.cancel(queued).data == {"job_id": queued}
        r = until_status(narrow, queued, "cancelled")
        assert (r["reason"], r["stdout"], r["metadata"]["stage"]) == ("cancelled", "", "queue")
        assert narrow.job(running)["status"] == "running"
    script = "trap '' TERM; echo partial; sleep 600; sleep 600"
    ident = narrow.submit({"language": "bash", "code": script, "limits": {"timeout_seconds": 600}})
    assert harness.until(lambda: narrow.job(ident)["stdout"] == "partial\n", 20)
    for _ in range(2):
        narrow.cancel(ident)
    assert until_status(narrow, ident, "cancelled")["stdout"] == "partial\n"
    done = narrow.submit(TRUE)
    before = narrow.wait(done)
    for _ in range(2):
        assert narrow.cancel(done).status == 200
    assert narrow.job(done) == before and before["status"] == "completed"


def test_TMO_12_queue_time_is_not_the_jobs(narrow):
    with busy(narrow):
        second = narrow.submit({"language": "python", "code": "print(1)", "limits": {"timeout_seconds": 4}})
        assert harness.until(lambda: narrow.job(second)["metadata"]["queue_wait_ms"] >= 4000, 20)
        r = narrow.job(second)
        assert r["status"] == "queued" and r["reason"] is None
    r = narrow.wait(second)
    assert r["success"] and r["metadata"]["queue_wait_ms"] >= 4000, r["metadata"]


def test_TMO_12_the_queue_has_a_limit_of_its_own():
    settings = {"SANDBOX_WORKER_CONCURRENCY": "1", "SANDBOX_QUEUE_TIMEOUT_SECONDS": "3"}
    with service.serving(settings) as s, busy(s):
        began = time.monotonic()
        direct = s.python("return 1", timeout=1)
        took = time.monotonic() - began
        assert direct["reason"] == "queue_timeout" and "No worker was free within 3 s" in direct["error"], direct
        assert 2.9 < took < 20 * SLOW and direct["usage"]["wall_ms"] is None and direct["isolation"]["level"] == "none"


def test_CON_04_a_full_queue(narrow):
    def direct(i: int) -> service.Answer:
        with narrow.client() as c:
            return c.post(service.EXECUTE, {"language": "python", "code": f"return {i}"})

    with busy(narrow):
        accepted = [narrow.submit({"command": ["echo", str(i)]}) for i in range(5)]
        with concurrent.futures.ThreadPoolExecutor(15) as pool:
            refused = list(pool.map(direct, range(15)))
        for a in refused:
            assert a.status == 429 and a.code == 5400 and int(a.headers["Retry-After"]) >= 1, a.body
            assert "5 jobs wait" in a.msg, a.msg
    for i, ident in enumerate(accepted):
        assert narrow.wait(ident)["result"] == str(i)


def test_CON_04_twenty_at_once(narrow):
    def one(i: int) -> service.Answer:
        with narrow.client() as c:
            return c.post(service.JOBS, {"command": ["echo", str(i)]})

    with busy(narrow):
        with concurrent.futures.ThreadPoolExecutor(20) as pool:
            answers = list(pool.map(one, range(20)))
        assert sorted(a.status for a in answers) == [202] * 5 + [429] * 15
    for a in answers:
        if a.status == 202:
            assert narrow.wait(a.data["job_id"])["success"]


def test_CON_02_the_next_job_after_a_limit(narrow):
    r = narrow.python("import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(60)", timeout=1)
    assert r["reason"] == "timeout"
    began = time.monotonic()
    assert narrow.python("print(1)")["stdout"] == "1\n"
    assert time.monotonic() - began < 20 * SLOW


def test_CON_06_the_first_request_after_the_start(tmp_path):
    with service.serving(ready=False) as s:
        s.wait_listening()
        for _ in range(10):
            a = s.post(service.EXECUTE, {"language": "python", "code": "print(1)"})
            assert a.status == 503 or a.data["stdout"] == "1\n", a.body
        s.wait_ready()


ONCE = [
    ("memory_limit", "x = bytearray(1 << 30)"),
    ("timeout", "import time; time.sleep(60)"),
    ("error", "import sys; sys.exit(1)"),
    ("error", "def"),
]


@pytest.mark.parametrize(("reason", "code"), ONCE)
def test_CON_12_a_program_that_fails_runs_once(api, reason, code):
    before = len(ended_rows(api, reason))
    limits = {"memory_mb": 64, "timeout_seconds": 1 if reason == "timeout" else 20}
    r = api.wait(api.submit({"language": "python", "code": code, "limits": limits}))
    assert r["reason"] == reason, r
    assert r["isolation"]["start"] == "cold"
    assert len(ended_rows(api, reason)) == before + 1  # of what is told the log is told before


# ---- Events -------------------------------------------------------------------------------------------------------

SLOWLY = {
    "language": "python",
    "code": "import sys, time\n"
    "for i in range(4): print(i, '\u20ac' * 1000, flush=True); print(i, file=sys.stderr, flush=True); time.sleep(0.2)",
}


def texts(events: list[service.Event], name: str) -> str:
    text = ""
    for e in events:
        if e.name == name:
            piece = e.json()
            assert piece["offset"] == len(text.encode()), (piece["offset"], len(text.encode()))
            text += piece["text"]
    return text


WAITING = {
    "language": "python",
    "code": "import os, sys, time\n"
    "for i in range(4):\n"
    "    print(i, '\u20ac' * 1000, flush=True); print(i, file=sys.stderr, flush=True)\n"
    "    while not os.path.exists(f'seen{i}'): time.sleep(0.02)\n",
}


def test_events_of_a_job(api):
    """Of one that goes on when its reader has seen what it said."""
    files, seen = Files(api), []
    ident = api.submit(WAITING | {"session_id": files.session})
    with api.events(ident) as stream:
        for event in stream:
            seen.append(event)
            if event.name == "stdout":
                files.put(f"seen{texts(seen, 'stdout').count(chr(10)) - 1}")
    assert [e.name for e in seen][-2:] == ["status", "result"]
    statuses = [e.json()["status"] for e in seen if e.name == "status"]
    assert statuses == sorted(statuses, key=service.STATUSES.index) and statuses[-1] == "completed"
    assert "running" in statuses
    r = api.job(ident)
    assert seen[-1].json() == r
    assert texts(seen, "stdout") == r["stdout"] and texts(seen, "stderr") == r["stderr"] == "0\n1\n2\n3\n"
    assert len([e for e in seen if e.name == "stdout"]) >= 4  # as they came, not at the end


def test_events_go_on_where_a_reader_left(api):
    ident = api.submit(SLOWLY)
    head, last = [], None
    for _ in range(50):  # a reader that is cut off after every event
        with api.events(ident, after=last) as stream:
            event = next(stream)
            head.append(event)
            last = event.id
        if event.name == "result":
            break
    r = api.job(ident)
    assert head[-1].json() == r
    assert texts(head, "stdout") == r["stdout"] and texts(head, "stderr") == r["stderr"]
    assert len({e.id for e in head}) == len(head)
    a = api.get(f"{service.JOBS}/{ident}/events", headers={"Last-Event-ID": last})
    assert a.status == 204  # nothing is left: a browser asks no more
    a = api.get(f"{service.JOBS}/{ident}/events", headers={"Last-Event-ID": "x"})
    assert a.status == 422


def test_events_after_the_end_are_those_of_the_result(api):
    ident = api.submit({"command": ["sh", "-c", r"printf 'a\377b\342\202'; printf e >&2"]})
    r = api.wait(ident)
    assert r["stdout"] == "a\ufffdb\ufffd"
    with api.events(ident) as stream:
        seen = list(stream)
    assert texts(seen, "stdout") == r["stdout"] and texts(seen, "stderr") == "e"
    ids = [e.id for e in seen]
    with api.events(ident, after=ids[0]) as stream:
        assert [e.id for e in stream] == ids[1:]


def test_live_events_and_stored_ones_have_the_same_positions(api):
    """What is no UTF-8 is counted as it is told: by three bytes."""
    files = Files(api)
    code = r"printf 'a\377b\n'; until [ -e go ]; do sleep 0.02; done; printf 'c\342\202x\n'"
    ident = api.submit({"language": "bash", "code": code, "session_id": files.session})
    with api.events(ident) as stream:
        first = next(e for e in stream if e.name == "stdout")
    files.put("go")
    assert first.json() == {"offset": 0, "text": "a\ufffdb\n"}
    r = api.wait(ident)
    with api.events(ident, after=first.id) as stream:
        seen = list(stream)
    rest = "".join(e.json()["text"] for e in seen if e.name == "stdout")
    assert first.json()["text"] + rest == r["stdout"] == "a\ufffdb\nc\ufffdx\n"


def test_a_large_result_in_events_and_a_slow_reader(api):
    """Eight megabytes of output reach a reader that takes its time; the job does not wait for it."""
    code = "import sys\nfor _ in range(8): sys.stdout.write(chr(0xe9) * (1 << 19))"
    job = {"language": "python", "code": code, "limits": {"max_stdout_kb": 8192}}
    ident = api.submit(job)
    with api.events(ident) as stream:
        assert api.wait(ident)["success"]
        time.sleep(1)
        seen = list(stream)
    r = api.job(ident)
    assert len(r["stdout"]) == 4 << 20
    assert texts(seen, "stdout") == r["stdout"] and seen[-1].json() == r


# ---- What is short ---------------------------------------------------------------------------------------------------


def together(s: service.Service, n: int, **fields) -> list[dict]:
    def one(_i: int) -> dict:
        with s.client() as c:
            return c.python("import time; time.sleep(0.3)", **fields)

    with concurrent.futures.ThreadPoolExecutor(n) as pool:
        return list(pool.map(one, range(n)))


def test_memory_is_waited_for():
    """Two jobs of 400 MB have no room together in 600 MB; one that asks for more than there is runs alone."""
    with service.serving({"SANDBOX_WORKER_CONCURRENCY": "4", "SANDBOX_INSTANCE_MEMORY_MB": "600"}) as s:
        began = time.monotonic()
        assert all(r["success"] for r in together(s, 4, limits={"memory_mb": 400}))
        assert time.monotonic() - began > 4 * 0.3
        began = time.monotonic()
        assert all(r["success"] for r in together(s, 4, limits={"memory_mb": 64}))
        assert s.python("return 1", limits={"memory_mb": 2000})["result"] == 1


def write_until(file: pathlib.Path, left: int) -> None:
    """Of the file system below it no more than that is free."""
    with file.open("ab", buffering=0) as f, contextlib.suppress(OSError):
        while (more := shutil.disk_usage(file.parent).free - left) > 0:
            f.write(bytes(min(more, 1 << 20)))


def test_a_shortage_lasts_as_long_as_another_job_runs():
    """No sandbox can be made, as often as it is tried, while another job runs that might give back what is short."""
    with service.serving({"SANDBOX_WORKER_CONCURRENCY": "3"}) as s:
        running = s.submit(SLEEP)
        until_status(s, running, "running")
        with service_faults.without_namespaces(s, "user"):
            waiting = s.submit({"command": ["echo", "ran"]})
            for _ in range(8):  # another's end is when it is tried again
                tries = s.metric("isle_jobs_put_back_total")
                s.cancel(s.submit(TRUE))
                assert harness.until(lambda n=tries: s.metric("isle_jobs_put_back_total") > n, 20)
            assert s.job(waiting)["status"] in ("queued", "preparing", "running")
            assert {r["for"] for r in s.log_rows() if r["event"] == "jobs wait"} == {"memory"}
        assert s.wait(waiting)["result"] == "ran"
        assert s.ready()
        s.cancel(running)


@pytest.mark.parametrize("who", ["service", "launcher"])
def test_descriptors_are_waited_for(who):
    """Jobs that meet a process without descriptors begin later; of none anything stays, nor of what was made ahead."""
    with service.serving({"SANDBOX_WORKER_CONCURRENCY": "3"}) as s:
        files = Files(s)
        running = s.submit(SLEEP)  # what is short may be its
        until_status(s, running, "running")
        ids = []
        for extra in (0, 1, 2, 3, 5, 8):
            tries = s.metric("isle_jobs_put_back_total")
            with service_faults.few_descriptors(getattr(s, f"{who}_pid"), extra):
                ids += [
                    s.submit({"language": "python", "code": "return 1"}),
                    s.submit({"command": ["true"], "limits": {"disk_mb": 200}}),  # its workspace is a folder
                    s.submit({"command": ["true"], "session_id": files.session}),
                ]
                mine = ids[-3:]
                harness.until(
                    lambda n=tries, mine=mine: (
                        s.metric("isle_jobs_put_back_total") > n + 3
                        or all(s.job(i)["status"] in service.ENDED for i in mine)
                    ),
                    10,
                )
            ends = [s.wait(i) for i in mine]
            assert [r["reason"] for r in ends] == ["ok"] * 3, [r["error"] for r in ends]
        assert s.metric("isle_jobs_put_back_total") > 0
        assert s.ready()
        s.cancel(running)
        assert s.wait(running)["reason"] == "cancelled"
        assert harness.until(lambda: s.one_shot() == [], 10), s.one_shot()

        def used() -> set[str]:
            groups = host.job_groups({i.number for i in s.instances()})
            return {pathlib.Path(g).name for g in groups if service.members(g)}

        assert harness.until(lambda: len(used()) <= 1, 10), used()  # the sandbox for the next job


def test_a_sandbox_that_was_killed_before_its_job_came():
    """The one that is made ahead is no job's yet: who gets it gets another one."""
    with service.serving({"SANDBOX_WORKER_CONCURRENCY": "1"}) as s:
        for _ in range(5):
            assert s.python("return 1")["result"] == 1
            assert harness.until(lambda: s.figures().groups, 10)
            launcher = s.launcher_pid
            others = (None, "isle-maker", "isle-counter")
            ahead = [p for p in host.below(launcher) if host.status_of(p).get("Name") not in others]
            os.kill(launcher, signal.SIGSTOP)
            for p in ahead:
                host.kill(p)
            ident = s.submit({"command": ["echo", "ran"]})
            until_status(s, ident, "running")  # it was asked for
            os.kill(launcher, signal.SIGCONT)
            r = s.wait(ident)
            assert (r["reason"], r["result"]) == ("ok", "ran"), r
        assert s.metric("isle_sandbox_failures_total") == 0 and s.ready()


def test_no_more_jobs_at_once_than_there_are_descriptors_for():
    """A low limit of open files is a bound of what runs at once, and the log says so: no job fails for it."""
    with service.variants.folder("isle-few-") as folder:
        folder.chmod(0o755)
        s = service.Service(folder, {"SANDBOX_WORKER_CONCURRENCY": "40"})
        s.prefix = ("setpriv", "--bounding-set", "-sys_resource", "prlimit", "--nofile=200:200")
        try:
            s.start()
            assert [r["slots"] for r in s.log_rows() if r["event"] == "fewer jobs run at once than are set"] == [3]
            assert s.metric("isle_slots") == 3
            ends = together(s, 8, limits={"memory_mb": 32})
            assert all(r["success"] for r in ends), [r["error"] for r in ends]
            s.stop()
        finally:
            s.abandon()


def test_a_full_disk_is_waited_for():
    """Jobs wait while the data folder's disk is at its floor, and run when it is not; what cannot be stored is said."""
    with service.variants.folder("isle-disk-") as folder:
        folder.chmod(0o755)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=200m", "isle-test", folder], check=True)
        try:
            wait = str(round(8 * SLOW))  # longer than it takes to make room again
            settings = {"SANDBOX_QUEUE_TIMEOUT_SECONDS": wait, "STREAM_TOOL_TIMEOUT_CODE": "1"}
            s = service.Service(folder, {"SANDBOX_TMPFS_WORKSPACE_MB": "0"} | settings)
            try:
                s.start()
                assert s.python("return 1")["result"] == 1
                agent = Agent(s.client())
                fill = folder / "fill"
                write_until(fill, left=5 << 20)  # half of what is kept free of these 200 MB: the store goes on
                disk = "for room on the disk of the data folder (SANDBOX_WORKSPACE_ROOT), and was never started"
                with concurrent.futures.ThreadPoolExecutor(1) as pool:
                    call = pool.submit(agent.bash, "echo ran")
                    late = s.python("return 1")
                    r = call.result()
                assert (late["reason"], late["error"]) == ("queue_timeout", f"The job waited {wait} s {disk}"), late
                assert (r["reason"], r["error"]) == ("caller_timeout", f"Tool call timeout (1s): it waited {disk}"), r
                assert r["timed_out"] and r["stdout"] == "" and r["exit_code"] is None, r
                said = s.get("/readyz")
                assert said.status == 503 and "no room in the data folder" in said.msg, said
                assert s.metric("isle_ready") == s.metric("isle_data_free_bytes") == 0
                write_until(fill, left=0)
                with concurrent.futures.ThreadPoolExecutor(1) as pool:
                    waiting = pool.submit(lambda: s.client().python("return 2"))
                    a = s.post(service.JOBS, TRUE)
                    assert a.status in (202, 503), a.body  # 503: nor is there room for its row
                    time.sleep(1)
                    assert not waiting.done()
                    fill.unlink()
                    assert waiting.result()["result"] == 2
                assert harness.until(s.ready, 30) and s.metric("isle_data_free_bytes") > 100 << 20
                assert {r["for"] for r in s.log_rows() if r["event"] == "jobs wait"} == {"disk"}
                if a.status == 202:
                    assert s.wait(a.data["job_id"])["success"]
                assert s.submit(TRUE)
                assert harness.until(lambda: any(r["event"] == "jobs wait no more" for r in s.log_rows()), 10)
                s.stop()
            finally:
                s.abandon()
        finally:
            subprocess.run(["umount", "-l", folder], check=True)


def test_files_of_a_session_wait_for_room():
    """A little is left above the floor, and less than the job's files take: it waits, and what they shall replace is
    as it was."""
    settings = {"SANDBOX_WORKER_CONCURRENCY": "1", "SANDBOX_TMPFS_WORKSPACE_MB": "0"}
    with service_faults.on_small_disk(200, settings) as (s, filler):
        files = Files(s)
        files.put("a", "old")
        inputs = [{"target_path": name, "content_base64": "eHh4" * (2 << 20)} for name in ("a", "b")]
        with busy(s):
            ident = s.submit({"command": ["wc", "-c", "a"], "input_files": inputs, "session_id": files.session})
            write_until(filler, left=11 << 20)
        assert harness.until(lambda: s.metric("isle_jobs_put_back_total") >= 2, 20)
        assert s.job(ident)["status"] in ("queued", "preparing")
        assert files.get("a").body == b"old"
        filler.unlink()
        r = s.wait(ident)
        assert (r["reason"], r["result"]) == ("ok", f"{6 << 20} a"), r


def test_a_caller_has_its_answer_when_the_job_cannot_end(narrow):
    """A launcher that does nothing any more: five seconds after the job's own limit its caller is told."""
    launcher = narrow.launcher_pid
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        began = time.monotonic()
        answer = pool.submit(lambda: narrow.client().python("import time; time.sleep(60)", timeout=5))

        def runs() -> bool:
            return any(host.status_of(p).get("Name", "").startswith("python3") for p in narrow.below())

        assert harness.until(lambda: runs() and narrow.sleeps(), 20)  # and all who are to hear of it have
        os.kill(launcher, signal.SIGSTOP)
        try:
            r = answer.result(40 * SLOW)
        finally:
            os.kill(launcher, signal.SIGCONT)
        assert 9.5 < time.monotonic() - began < 30 * SLOW
    # the job's own limit came first, and is what is told
    assert r["reason"] == "timeout", r
    assert narrow.python("return 1")["result"] == 1


def test_a_caller_has_its_answer_when_the_job_cannot_begin(narrow):
    """No program runs, so its own time limit does not yet: the caller's bound ends the waiting, under its name."""
    launcher = narrow.launcher_pid
    assert narrow.python("return 1")["result"] == 1
    os.kill(launcher, signal.SIGSTOP)
    try:
        began = time.monotonic()
        r = narrow.python("return 2", timeout=1)
        took = time.monotonic() - began
    finally:
        os.kill(launcher, signal.SIGCONT)
    assert r["reason"] == "caller_timeout" and not r["success"] and r["result"] is None, r
    assert 5.5 < took < 30 * SLOW, took
    assert narrow.python("return 3")["result"] == 3


# ---- What outlives the service ------------------------------------------------------------------------------------


def test_queued_jobs_run_after_a_restart_and_a_running_one_is_lost():
    settings = {"SANDBOX_WORKER_CONCURRENCY": "1"}
    with service.serving(settings) as s:
        done = s.wait(s.submit({"command": ["echo", "kept"]}))
        running = s.submit(SLEEP)
        until_status(s, running, "running")
        queued = [s.submit({"command": ["echo", str(i)]}) for i in range(3)]
        s.kill("service")
        s.start()
        assert s.job(done["job_id"]) == done
        lost = s.job(running)
        assert (lost["status"], lost["reason"], lost["success"]) == ("failed", "worker_lost", False), lost
        assert lost["metadata"]["started_at"] and lost["metadata"]["completed_at"] and lost["stdout"] == ""
        assert set(lost["usage"].values()) == {None} and lost["truncated"]["stdout"] and lost["truncated"]["stderr"], (
            lost
        )
        assert (lost["isolation"]["level"], lost["isolation"]["launcher"]) == ("none", "unknown"), lost
        assert [s.wait(i)["result"] for i in queued] == ["0", "1", "2"]
        assert s.job(running) == lost  # never begun again
        with s.events(running) as stream:
            assert list(stream)[-1].json() == lost


def test_a_graceful_end_leaves_queued_jobs_for_the_next_start():
    with service.serving({"SANDBOX_WORKER_CONCURRENCY": "1", "SANDBOX_DRAIN_SECONDS": "60"}) as s:
        files = Files(s)
        script = "until [ -e go ]; do sleep 0.02; done; echo short"
        short = s.submit({"command": ["sh", "-c", script], "session_id": files.session})
        until_status(s, short, "running")
        queued = s.submit({"command": ["echo", "later"]})
        s.process.send_signal(signal.SIGTERM)
        assert harness.until(lambda: s.get("/readyz").status == 503, 20)
        files.put("go")
        assert s.wait_gone() == 0
        s.check_nothing_left()
        s.settings["SANDBOX_DRAIN_SECONDS"] = "1"
        s.start()
        assert s.job(short)["result"] == "short"
        assert s.wait(queued)["result"] == "later"
        long = s.submit(SLEEP)
        until_status(s, long, "running")
        s.restart()
        r = s.job(long)
        assert (r["status"], r["reason"]) == ("cancelled", "cancelled") and "stopped" in r["error"], r


def test_a_job_that_was_put_back_waits_for_the_next_start_too():
    """Its turn had come, and there was too little room: that is no begin. Of the disk so much is filled that its files
    do not fit, and it is tried again and again."""
    settings = {"SANDBOX_WORKER_CONCURRENCY": "1", "SANDBOX_TMPFS_WORKSPACE_MB": "0"}
    with service_faults.on_small_disk(200, settings) as (s, filler):
        files = [{"target_path": name, "content_base64": "eHh4" * (2 << 20)} for name in ("a", "b")]
        with busy(s):
            ident = s.submit({"command": ["echo", "ran"], "input_files": files})
            write_until(filler, left=11 << 20)

        assert harness.until(lambda: s.metric("isle_jobs_put_back_total"), 20)
        looks, rows = [], []

        def waits() -> bool:  # again, between two tries
            looks.append(s.job(ident))
            rows.extend(s.get(f"{service.JOBS}?limit=1").data["items"])
            return looks[-1]["status"] == "queued"

        assert harness.until(waits, 20) and looks[-1]["metadata"]["started_at"] is None, looks[-1]
        assert all(row["started_at"] is None for row in rows if row["status"] == "queued"), rows
        s.stop()
        filler.unlink()
        s.start()
        assert s.wait(ident)["result"] == "ran"


def test_CON_03_a_killed_worker_ends_its_jobs():
    with service.serving() as s:
        ident = s.submit(SLEEP)
        until_status(s, ident, "running")
        s.kill("launcher")
        s.start()
        r = s.job(ident)
        assert r["status"] == "failed" and r["reason"] in ("worker_lost", "internal"), r


def test_CON_05_nobody_works_for_a_while():
    """What was accepted waits for as long as no service is there, and runs when one is."""
    with service.serving({"SANDBOX_WORKER_CONCURRENCY": "1"}) as s:
        until_status(s, s.submit(SLEEP), "running")
        waiting = s.submit({"command": ["echo", "late"]})
        r = s.job(waiting)
        time.sleep(0.2)
        again = s.job(waiting)
        assert r["status"] == again["status"] == "queued"
        assert again["metadata"]["queue_wait_ms"] >= r["metadata"]["queue_wait_ms"] + 100  # its age
        s.kill("front", "service")
        s.start()
        assert s.wait(waiting)["result"] == "late"


def test_BIG_03_results_are_kept_for_their_time_only():
    n = 500 if harness.LONG else 60
    with service.serving({"SANDBOX_RESULT_TTL_SECONDS": "5"}) as s:
        code = "return 'x' * (1 << 20)"
        made = []
        for _ in range(n):
            made.append(s.python(code)["job_id"])
            assert len(s.job(made[-1])["result"]) == 1 << 20, "whole, for whoever asks again"
        store = s.data / "serve/store"
        assert harness.until(lambda: s.get(service.JOBS).data["items"] == [], 30)
        a = s.get(f"{service.JOBS}/{made[0]}")
        assert a.status == 404 and "SANDBOX_RESULT_TTL_SECONDS" in a.msg
        assert sum(p.stat().st_size for p in store.iterdir()) < (n + 40) << 20


# ---- Large bodies


def large(last: str = '"z":1') -> bytes:
    """12 MB, a million keys and this one."""
    keys = ",".join(f'"{i:07d}":1' for i in range(1_000_000))
    return f'{{"command":["true"],"metadata":{{{keys},{last}}}}}'.encode()


def send_large(c: service.Client, body: bytes, **headers: str) -> service.Answer:
    return c.call("POST", service.JOBS, body=body, headers={"Content-Type": "application/json"} | headers, timeout=60)


def test_large_bodies_keep_nobody_waiting(teams):
    one, two = teams
    twice, sound = large('"0000007":1'), large()
    over = threading.Event()
    took, statuses = [], []

    def ask() -> None:
        with contextlib.closing(two):
            while not over.is_set():
                took.append(two.service.held_up(lambda: statuses.append(two.get("/healthz").status)))
                time.sleep(0.005)

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        asked, began = pool.submit(ask), time.monotonic()
        try:
            refused = [send_large(one, twice) for _ in range(3)]
            first, again = (send_large(one, sound, **{"Idempotency-Key": "large"}) for _ in range(2))
            other = send_large(one, large('"y":1'), **{"Idempotency-Key": "large"})
        finally:
            over.set()
        asked.result()
        assert set(statuses) == {200}
        elapsed = time.monotonic() - began
    for r in refused:
        assert r.status == 400 and 'duplicate key "0000007"' in r.msg, r.msg
    assert first.data["job_id"] == again.data["job_id"] and other.status == 409
    assert one.wait(first.data["job_id"])["status"] == "completed", "read again at its turn"
    # Of the time, not of the requests: who waits asks seldom.
    waited = [t for t in took if t > 0.15 * SLOW]
    assert sum(waited) < 0.05 * elapsed + 0.3 * SLOW, (sorted(waited), elapsed, len(took))


def test_who_sends_a_large_body_may_leave(teams):
    """While a thread reads it, or while it waits for that."""
    one, two = teams
    body = large()
    connections = []
    for _ in range(4):
        connection = one.connection(60)
        connection.connect()
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {one.key}"}
        connection.request("POST", service.JOBS, body=body, headers=headers)
        connections.append(connection)
    for connection in connections[::2]:
        connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()
    for connection in connections[1::2]:
        with contextlib.closing(connection):
            assert connection.getresponse().status == 202
    assert two.wait(two.submit(TRUE))["status"] == "completed"
