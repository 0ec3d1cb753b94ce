"""Sessions: made once, kept between jobs and starts, ended by time or by hand, and then gone."""

from __future__ import annotations

import concurrent.futures
import datetime
import os
import pathlib
import shutil
import time

import harness
import pytest
from agent_session import Agent
from service import API, JOBS, SESSIONS, Client, Service, serving
from service_faults import backdate, fill, on_small_disk
from session_files import Files

SLEEP = {"command": ["sleep", "600"], "limits": {"timeout_seconds": 600}}
NO_SESSION = "0190c3f0-0000-7000-8000-000000000001"


def new(c: Client, **fields) -> str:
    return c.post(SESSIONS, fields).data["session_id"]


def sh(c: Client, ident: str, script: str, **fields) -> dict:
    """A command in the session; its result."""
    return c.wait(c.submit({"command": ["bash", "-c", script], "session_id": ident, **fields}))


def kept(s: Service, ident: str) -> pathlib.Path:
    return s.data / "serve/kept" / ident


def gone(s: Service, ident: str, within: float = 30) -> bool:
    """Its folder, and whatever else is being removed."""
    trash = s.data / "serve/trash"
    return harness.until(lambda: not kept(s, ident).exists() and not any(trash.iterdir()), within)


def until_said(c: Client, job: str, word: str) -> None:
    """The job runs, and has printed that."""
    with c.events(job) as stream:
        assert any(e.name == "stdout" and word in e.json()["text"] for e in stream), c.job(job)


def when(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text)


def test_made_and_found(service):
    now = datetime.datetime.now(datetime.UTC)
    a = service.post(SESSIONS, {"conversation_id": "c1", "agent_id": "a", "user_id": "u", "ttl_hours": 2})
    assert a.status == 201
    d = a.data
    assert (d["conversation_id"], d["agent_id"], d["user_id"]) == ("c1", "a", "u")
    assert abs(when(d["expires_at"]) - now - datetime.timedelta(hours=2)) < datetime.timedelta(seconds=10)
    again = service.post(SESSIONS, {"conversation_id": "c1", "agent_id": "a", "user_id": "u"})
    assert again.status == 200 and again.data["session_id"] == d["session_id"]
    assert again.data["expires_at"] == d["expires_at"]
    other = service.post(SESSIONS, {"conversation_id": "c1", "agent_id": "b", "user_id": "u"})
    assert other.status == 201 and other.data["session_id"] != d["session_id"]
    assert new(service) != new(service)  # without a conversation each is its own


@pytest.mark.parametrize(
    "fields",
    [
        {"ttl_hours": 0},
        {"ttl_hours": 721},
        {"ttl_hours": -1},
        {"ttl_hours": 1.5},
        {"ttl_hours": "1"},
        {"conversation_id": ""},
        {"conversation_id": "x" * 257},
        {"conversation_id": "a\nb"},
        {"ttl": 3},
    ],
)
def test_bad_fields(service, fields):
    a = service.post(SESSIONS, fields)
    assert a.status in (413, 422) and next(iter(fields)) in a.msg, a


def test_listed(service):
    ids = [new(service) for _ in range(5)]
    page = service.get(f"{SESSIONS}?limit=2").data
    assert [s["session_id"] for s in page["items"]] == ids[:-3:-1]
    found = []
    cursor = ""
    while cursor is not None:
        page = service.get(f"{SESSIONS}?limit=2" + (f"&cursor={cursor}" if cursor else "")).data
        found += [s["session_id"] for s in page["items"]]
        cursor = page["next_cursor"]
    assert [i for i in found if i in ids] == ids[::-1] and len(set(found)) == len(found)
    for bad in ("limit=0", "limit=1001", "limit=x", "cursor=x", f"cursor={NO_SESSION}", "page=2"):
        assert service.get(f"{SESSIONS}?{bad}").status == 422, bad


def test_SES_02_exec(service):
    ident = new(service)
    r = sh(service, ident, "exec /bin/true")
    assert r["exit_code"] == 0
    assert sh(service, ident, "echo ok")["stdout"] == "ok\n"


def test_SES_03_killed_from_inside(service):
    ident = new(service)
    sh(service, ident, "kill -9 -1")
    assert sh(service, ident, "echo ok")["stdout"] == "ok\n"


def test_SES_04_what_persists(service):
    ident = new(service)
    service.python('x=1; open("f","w").write("1"); open("/tmp/g","w").write("2")', session_id=ident)
    r = service.python('print(open("f").read(), open("/tmp/g").read())\nprint(x)', session_id=ident)
    assert r["stdout"] == "1 2\n" and not r["success"] and "NameError" in r["stderr"]
    r = service.python("import os\nreturn sorted(os.listdir('/tmp'))", session_id=new(service))
    assert r["result"] == []


def test_above_its_bound_it_can_be_emptied_from_inside(service):
    files = Files(service, new(service))
    small = {"limits": {"disk_mb": 1}}
    for name in ("a", "b", "d/c"):
        assert files.put(name, b"x" * (2 << 20)).status == 201
    assert sh(service, files.session, "cat a b | wc -c", **small)["stdout"] == f"{4 << 20}\n"
    grown = sh(service, files.session, "echo x > more", **small)
    assert grown["reason"] == "disk_limit" and "when the job began" in grown["error"]
    replaced = sh(service, files.session, "rm a && head -c 1M /dev/zero > a2", **small)
    assert replaced["success"], replaced  # it has less than it had
    assert sh(service, files.session, "rm -r a2 b d more", **small)["success"]
    left = service.get(f"{SESSIONS}/{files.session}").data["disk_usage_bytes"]
    assert left < 1 << 20
    again = sh(service, files.session, "head -c 2M /dev/zero > a", **small)
    assert again["reason"] in ("disk_limit", "error"), again  # its bound is as ever


@pytest.mark.parametrize(
    "much",
    ["for i in {1..40}; do head -c 1M /dev/zero > d/$i; done; sleep 60", "mkdir d/{1..9000}; sleep 60"],
    ids=["bytes", "entries"],
)
def test_what_one_job_filled_another_removes(service, much):
    agent, small = Agent(service), {"limits": {"disk_mb": 20}}
    full = sh(service, agent.session, f"mkdir d; {much}", **small)
    assert full["reason"] == "disk_limit", full
    assert sh(service, agent.session, "rm -r d", **small)["success"]
    assert "d" not in sh(service, agent.session, "ls", **small)["stdout"].split()


def test_what_an_agent_filled_it_removes(isle):
    with serving({"SANDBOX_MAX_DISK_MB": "20"}) as s:
        agent = Agent(s)
        full = agent.bash("mkdir d; for i in {1..40}; do head -c 1M /dev/zero > d/$i; done; sleep 60")
        assert full["reason"] == "disk_limit", full
        assert agent.bash("rm -r d")["success"]
        assert agent.bash("head -c 10M /dev/zero > a")["success"]


def test_SES_05_expired(service):
    ident = new(service)
    service.call("DELETE", f"{SESSIONS}/{ident}")
    for path in (f"{SESSIONS}/{{}}", f"{SESSIONS}/{{}}/files", f"{SESSIONS}/{{}}/files/x"):
        a, b = service.get(path.format(ident)), service.get(path.format(NO_SESSION))
        assert (a.status, a.code, b.status, b.code) == (410, 4001, 404, 4000), path
    for call in (
        lambda i: service.call("PUT", f"{SESSIONS}/{i}/files/x", body=b"1"),
        lambda i: service.call("DELETE", f"{SESSIONS}/{i}"),
        lambda i: service.post(f"{SESSIONS}/{i}/extend", {}),
        lambda i: service.post(JOBS, {"language": "python", "code": "1", "session_id": i}),
        lambda i: service.post(f"{API}/tools/execute-code", {"language": "python", "code": "1", "session_id": i}),
    ):
        a, b = call(ident), call(NO_SESSION)
        assert (a.status, b.status) == (410, 404), (a, b)
    assert gone(service, ident)
    assert service.get(f"{SESSIONS}/{ident}").status == 410


def test_SES_05_tools_after_its_time(service):
    """The time is over, not only told to be: no tool makes a fresh session of it, or says anything else."""
    ours, other = Agent(service), Agent(service)
    for a in (ours, other):
        a.ok("write", path="f", content="one\n")
    service.stop()
    backdate(service, [ours.session], int(time.time() * 1000) - 1)
    service.start()
    for tool, arguments in (
        ("read", {"path": "f"}),
        ("write", {"path": "f", "content": ""}),
        ("edit", {"path": "f", "edits": [{"op": "insert_head", "new": "x"}]}),
        ("bash", {"command": "true"}),
        ("artifact", {"paths": ["f"]}),
    ):
        a = ours.post(tool, **arguments)
        assert (a.status, a.code) == (410, 4001), (tool, a)
        assert other.ok(tool, **arguments)


def test_SES_07_looking_changes_nothing(service):
    ident = new(service, ttl_hours=1)
    first = service.get(f"{SESSIONS}/{ident}").data
    service.get(SESSIONS)
    service.get(f"{SESSIONS}/{ident}/files")
    service.python("return 1", session_id=ident)
    assert service.get(f"{SESSIONS}/{ident}").data["expires_at"] == first["expires_at"]
    longer = service.post(f"{SESSIONS}/{ident}/extend", {"ttl_hours": 5}).data["expires_at"]
    assert when(longer) > when(first["expires_at"])
    assert service.post(f"{SESSIONS}/{ident}/extend", {"ttl_hours": 1}).data["expires_at"] == longer


def test_SES_08_missing_folder(service):
    ident = new(service)
    r = service.wait(service.submit({"command": ["true"], "cwd": "/workspace/none", "session_id": ident}))
    assert not r["success"] and "/workspace/none" in r["error"], r


def test_SES_09_not_found(service):
    ident = new(service)
    r = sh(service, ident, "nonesuch --x")
    assert r["exit_code"] == 127 and "nonesuch" in r["stderr"]
    r = service.wait(service.submit({"command": ["nonesuch"], "session_id": ident}))
    assert r["exit_code"] == 127 and "nonesuch" in r["stderr"], r


def test_SES_10_same_port(service):
    """Both listen at the same time: neither asks for its page before the other does, too."""
    code = """
import http.server, os, threading, time, urllib.request
s = http.server.ThreadingHTTPServer(("127.0.0.1", 8888), http.server.SimpleHTTPRequestHandler)
threading.Thread(target=s.serve_forever, daemon=True).start()
print("listens", flush=True)
while not os.path.exists(params["go"]): time.sleep(0.02)
return urllib.request.urlopen("http://127.0.0.1:8888/page").read().decode()
"""
    ids = [new(service), new(service)]
    for i, ident in enumerate(ids):
        service.call("PUT", f"{SESSIONS}/{ident}/files/page", body=b"%d" % i)
    for n in range(2):  # the port is free again
        job = {"language": "python", "code": code, "params": {"go": f"go{n}"}}
        jobs = [service.submit(job | {"session_id": ident}) for ident in ids]
        for j in jobs:
            until_said(service, j, "listens")
        for ident in ids:
            service.call("PUT", f"{SESSIONS}/{ident}/files/go{n}", body=b"")
        assert [service.wait(j)["result"] for j in jobs] == ["0", "1"]


def test_CON_10_one_at_a_time(service):
    def create(_: int) -> str:
        with service.client() as c:
            return new(c, conversation_id="con-10")

    with concurrent.futures.ThreadPoolExecutor(10) as pool:
        ids = set(pool.map(create, range(10)))
    assert len(ids) == 1
    ident = ids.pop()
    step = "set -e; test ! -e busy; touch busy; sleep 0.3; rm busy; echo {} >> order"
    jobs = [service.submit({"command": ["bash", "-c", step.format(i)], "session_id": ident}) for i in range(4)]
    failing = service.submit({"command": ["false"], "session_id": ident})
    assert all(service.wait(j)["success"] for j in jobs)
    assert not service.wait(failing)["success"]
    assert sh(service, ident, "cat order")["stdout"] == "0\n1\n2\n3\n"


def test_CON_10_others_beside_it(service):
    """Jobs of two sessions run at the same time: neither ends before both have begun. A second one of the first
    session waits meanwhile."""
    step = {"command": ["bash", "-c", "echo begun; until test -e go; do sleep 0.02; done"]}
    ids = [new(service), new(service)]
    jobs = [service.submit(step | {"session_id": ident}) for ident in ids]
    waiting = service.submit({"command": ["true"], "session_id": ids[0]})
    for j in jobs:
        until_said(service, j, "begun")
    # what a job says may come before the word that it runs
    assert harness.until(lambda: [service.job(j)["status"] for j in jobs] == ["running", "running"], 20)
    assert service.job(waiting)["status"] == "queued"
    for ident in ids:
        assert service.call("PUT", f"{SESSIONS}/{ident}/files/go", body=b"").status == 201
    assert all(service.wait(j)["success"] for j in (*jobs, waiting))


def test_TMO_14_trees_that_lock(service):
    ident = new(service)
    sh(service, ident, "mkdir -p a/b && touch a/b/f && chmod 000 a; mkdir d && touch d/f && chmod 555 d; mkdir /tmp/x")
    assert service.call("DELETE", f"{SESSIONS}/{ident}").status == 200
    assert service.get(f"{SESSIONS}/{ident}").status == 410
    assert gone(service, ident)


def test_a_running_job_ends_with_its_session(service):
    ident = new(service)
    job = service.submit(SLEEP | {"session_id": ident})
    assert harness.until(lambda: service.job(job)["status"] == "running", 20)
    assert service.call("DELETE", f"{SESSIONS}/{ident}").status == 200
    assert service.wait(job)["reason"] == "cancelled"
    assert gone(service, ident)


def test_TMO_18_folder_vanished(service):
    ident = new(service)
    sh(service, ident, "mkdir /workspace/t; cd /workspace/t; rmdir ../t")
    r = service.wait(service.submit({"command": ["true"], "cwd": "/workspace/t", "session_id": ident}))
    assert not r["success"] and "/workspace/t" in r["error"], r
    assert sh(service, ident, "pwd")["stdout"] == "/workspace\n"


def test_a_session_whose_folder_is_gone_says_so(service):
    """Nobody of isle's removes it; its jobs end with that for a reason, and do not wait for it to come back."""
    ident = new(service)
    shutil.rmtree(kept(service, ident) / "w")
    r = service.wait(service.submit({"command": ["true"], "session_id": ident}))
    assert r["reason"] == "internal" and "session's folder" in r["error"], r
    assert service.call("DELETE", f"{SESSIONS}/{ident}").status == 200
    assert gone(service, ident)


def test_a_job_ends_with_its_session_though_a_folder_is_gone(service):
    ident = new(service)
    job = service.submit(SLEEP | {"session_id": ident})
    assert harness.until(lambda: service.job(job)["status"] == "running", 20)
    (kept(service, ident) / "t").rename(kept(service, ident) / "moved")
    assert service.get(f"{SESSIONS}/{ident}/files").status == 500, "nothing new can work in it"
    assert service.call("DELETE", f"{SESSIONS}/{ident}").status == 200
    assert service.wait(job)["reason"] == "cancelled"
    assert gone(service, ident)


def test_huge_trees_hold_up_nobody(service):
    """10^5 files, and a depth that no path can name: others are served meanwhile, and all of it goes."""
    wide, deep = new(service), new(service)
    code = "import os\nfor i in range(100):\n os.mkdir(f'm{i}')\n"
    code += " for j in range(%d): os.close(os.open(f'm{i}/{j}',os.O_CREAT))"
    n = 1000 if os.environ.get("ISLE_LONG") else 100
    assert service.python(code % n, session_id=wide, timeout=60)["success"]
    code = "import os\nfor i in range(%d):\n os.mkdir('d'); os.chdir('d')"
    assert service.python(code % (20 * n), session_id=deep, timeout=60)["success"]
    listed = service.get(f"{SESSIONS}/{deep}/files?recursive=true").data
    assert listed["truncated"] and len(listed["items"]) < 100
    for ident in (wide, deep):
        assert service.call("DELETE", f"{SESSIONS}/{ident}").status == 200
    began = time.monotonic()
    assert service.python("return 1")["result"] == 1
    assert time.monotonic() - began < 15 * harness.SLOW
    assert gone(service, wide, 60) and gone(service, deep, 60)


def test_TMO_16_old_ones_go(isle):
    assert isle
    with serving({"SANDBOX_SESSION_CLEANUP_BATCH_SIZE": "20"}) as s:
        ids = [new(s) for _ in range(100)]
        s.call("PUT", f"{SESSIONS}/{ids[0]}/files/keep", body=b"x")
        s.stop()
        backdate(s, ids[1:], int(time.time() * 1000) + 1500)
        s.start()
        kept_folder = s.data / "serve/kept"
        assert harness.until(lambda: len(list(kept_folder.iterdir())) == 1, 30)
        assert s.get(f"{SESSIONS}/{ids[5]}").status == 410
        assert s.get(f"{SESSIONS}/{ids[0]}/files/keep").body == b"x"
        assert gone(s, ids[1])


def test_TMO_16_on_a_full_disk(isle):
    """What needs room is refused in words. A session that is over goes all the same, and so does one that is deleted:
    their room is back, and they are told as gone."""
    assert isle

    def room(s: Service) -> int:
        left = os.statvfs(s.data)
        return left.f_bavail * left.f_frsize

    with on_small_disk(100, {"SANDBOX_TMPFS_WORKSPACE_MB": "0"}) as (s, filler):
        over, deleted, stays = (new(s) for _ in range(3))
        for ident in (over, deleted):
            assert s.call("PUT", f"{SESSIONS}/{ident}/files/big", body=bytes(16 << 20)).status == 201
        s.stop()
        backdate(s, [over], int(time.time() * 1000) - 1000)
        fill(filler)
        os.truncate(filler, filler.stat().st_size - (2 << 20))  # for a start: the store's files
        s.start(wait=False)
        s.wait_listening()
        for ident in (over, deleted):
            assert gone(s, ident) and s.get(f"{SESSIONS}/{ident}").status == 410
            assert room(s) > 15 << 20, "but for the little that the service has written meanwhile"
            fill(filler)
            assert harness.until(lambda: "no room in the data folder" in s.get("/readyz").msg, 20), s.get("/readyz")
            refused = s.call("PUT", f"{SESSIONS}/{stays}/files/more", body=bytes(1 << 20))
            assert refused.status == 503 and "the disk is full" in refused.msg, refused
            assert s.call("DELETE", f"{SESSIONS}/{deleted}").status in (200, 410)
        filler.unlink()
        assert harness.until(s.ready, 30)
        assert sh(s, stays, "echo ok")["stdout"] == "ok\n"


def test_a_job_that_waits_when_its_session_expires(isle):
    """It ends when its turn comes, unstarted, and says why."""
    assert isle
    with serving({"SANDBOX_WORKER_CONCURRENCY": "1"}) as s:
        ident = new(s)
        running = s.submit(SLEEP)
        assert harness.until(lambda: s.job(running)["status"] == "running", 20)
        queued = s.submit({"command": ["true"], "session_id": ident})
        s.kill("service")
        backdate(s, [ident], int(time.time() * 1000) - 1000)
        s.start()
        r = s.wait(queued)
        assert (r["reason"], r["exit_code"]) == ("policy", None) and "session has expired" in r["error"], r
        assert s.get(f"{SESSIONS}/{ident}").status == 410


def test_survives_a_kill(isle):
    """Files and owner stay; what was half uploaded, thrown away or nobody's is gone after the next start."""
    assert isle
    with serving() as s:
        ident = new(s, conversation_id="kill")
        s.call("PUT", f"{SESSIONS}/{ident}/files/f", body=b"data")
        assert sh(s, ident, "echo more >> f; mkdir -p x; touch x/y")["success"]
        s.kill("service")
        serve = s.data / "serve"
        owner = (serve / "kept").stat()
        (serve / "trash/.isle-half.part").write_bytes(b"half")
        (serve / "kept/nobody").mkdir()
        for made in (serve / "trash/.isle-half.part", serve / "kept/nobody"):
            os.chown(made, owner.st_uid, owner.st_gid)
        (serve / "kept/foreign").mkdir()  # of an owner that the service does not know: stays, and stops nothing
        s.start()
        assert s.post(SESSIONS, {"conversation_id": "kill"}).data["session_id"] == ident
        assert s.get(f"{SESSIONS}/{ident}/files/f").body == b"datamore\n"
        assert sh(s, ident, "echo again >> f; rm -r x; cat f")["stdout"] == "datamore\nagain\n"
        assert harness.until(
            lambda: sorted(p.name for p in (serve / "kept").iterdir()) == sorted([ident, "foreign"]), 20
        )
        assert harness.until(lambda: not any((serve / "trash").iterdir()), 20)
        assert s.call("DELETE", f"{SESSIONS}/{ident}").status == 200
        assert gone(s, ident)
        (serve / "kept/foreign").rmdir()


def test_another_team(service):
    """With keys: a foreign session is none."""
    with service.client(unix=True) as admin:
        keys = [admin.post(f"{API}/keys", {"team": t, "name": "k", "admin": False}).data for t in ("red", "blue")]
    try:
        red, blue = (service.client(k["key"]) for k in keys)
        with red, blue:
            ident = new(red, conversation_id="same")
            assert new(blue, conversation_id="same") != ident
            for a in (
                blue.get(f"{SESSIONS}/{ident}"),
                blue.call("DELETE", f"{SESSIONS}/{ident}"),
                blue.get(f"{SESSIONS}/{ident}/files"),
                blue.call("PUT", f"{SESSIONS}/{ident}/files/x", body=b"1"),
                blue.post(JOBS, {"language": "python", "code": "1", "session_id": ident}),
            ):
                assert (a.status, a.code) == (404, 4000), a
            assert ident not in [i["session_id"] for i in blue.get(SESSIONS).data["items"]]
            assert red.get(f"{SESSIONS}/{ident}").status == 200
    finally:
        with service.client(unix=True) as admin:
            for k in keys:
                admin.call("DELETE", f"{API}/keys/{k['id']}")
