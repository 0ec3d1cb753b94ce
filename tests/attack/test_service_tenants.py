"""Tenants of one service, against each other and against it; and jobs against the service that runs them."""

from __future__ import annotations

import concurrent.futures
import contextlib
import os
import select
import socket
import subprocess
import threading
from collections.abc import Iterator

import harness
import pytest
import variants
from service import JOBS, SESSIONS, Client, Service, serving

KEYS = "/api/v1/keys"


def test_a_job_with_the_hosts_network_is_not_its_caller():
    """Without a key whoever calls by loopback is the team "default": jobs that reach it must not be."""
    ask = """
import urllib.request, urllib.error
for path in params["paths"]:
    try:
        urllib.request.urlopen("http://127.0.0.1:%d%s" % (params["port"], path))
    except urllib.error.HTTPError as e:
        print(path, e.code)
    else:
        print(path, "ESCAPED")
"""
    paths = [JOBS, SESSIONS, KEYS, "/metrics"]
    with (
        serving({"SANDBOX_NETWORK_ALLOW_HOST": "true"}, ready=False) as s,
        s.client() as nobody,
        s.client(unix=True) as admin,
    ):
        s.wait_listening()
        assert harness.until(s.ready, 20)
        r = nobody.get(SESSIONS)
        assert r.status == 401 and "isle key create" in r.msg, r
        r = admin.python(ask, params={"port": s.port, "paths": paths}, network="host")
        assert r["stdout"] == "".join(f"{path} 401\n" for path in paths), r
        assert nobody.get("/metrics").status == 401
        assert admin.get("/metrics").status == 200


@pytest.fixture(scope="module")
def both() -> Iterator[tuple[Service, Client, Client]]:
    with serving({"SANDBOX_WORKER_CONCURRENCY": "2"}) as s, s.client() as a, s.client() as b:
        a.key, b.key = s.new_key("a"), s.new_key("b")
        yield s, a, b


@contextlib.contextmanager
def asking(s: Service, client: Client, paths: list[str]) -> Iterator[list[socket.socket]]:
    """Calls whose answers nobody reads, meanwhile."""
    calls = []
    with contextlib.ExitStack() as open_:
        for path in paths:
            c = open_.enter_context(socket.socket())
            c.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            c.connect(("127.0.0.1", s.port))
            head = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {client.key}\r\n\r\n"
            c.sendall(head.encode())
            calls.append(c)
        yield calls


def test_readers_of_large_results_who_do_not_read(both):
    """They hold no more of the service's memory than is left for others, who get theirs."""
    s, a, b = both
    code = "head -c 8388608 /dev/zero | tr '\\0' '\\1'"
    job = {"language": "bash", "code": code, "limits": {"max_stdout_kb": 8192}}
    mine, others = a.submit(job), b.submit(job)
    size, others_size = (c.wait(i) and len(c.get(f"{JOBS}/{i}").body) for c, i in ((a, mine), (b, others)))
    assert size > 4 << 20
    for what in ("", "/events"):
        before = s.figures().private_kb
        with asking(s, a, [f"{JOBS}/{mine}{what}"] * 40) as calls:
            answers = [c.recv(12, socket.MSG_PEEK | socket.MSG_WAITALL) for c in calls]
            assert set(answers) == {b"HTTP/1.1 200", b"HTTP/1.1 503"}, answers
            assert len(b.get(f"{JOBS}/{others}").body) == others_size
            grown = s.figures().private_kb - before
            assert grown < (160 << 10) + 2 * (size >> 10), (what, grown, [x[9:12] for x in answers].count(b"200"))
        assert harness.until(lambda: len(a.get(f"{JOBS}/{mine}").body) == size, 20)


def test_who_has_much_hashed_keeps_nobody_waiting(both):
    """A hundred large files, whose hashes take seconds each, before a small one and a job's artifacts."""
    s, a, b = both
    mine, others = (c.post(SESSIONS, {}).data["session_id"] for c in (a, b))
    made = a.python("for n in range(100): open(str(n), 'w').truncate(10**9)", session_id=mine)
    assert made["success"], made
    with asking(s, a, [f"{SESSIONS}/{mine}/files/{n}" for n in range(100)]) as calls:
        assert b.call("PUT", f"{SESSIONS}/{others}/files/x", body=b"x").status == 201
        assert b.get(f"{SESSIONS}/{others}/files/x").body == b"x"
        r = b.python("open('x', 'w').write('x')", artifacts=["x"])
        assert r["success"] and len(r["artifacts"]) == 1, r
        answered = select.select(calls, [], [], 0)[0]
        assert len(answered) < 50, "it has waited for them"
    assert a.call("DELETE", f"{SESSIONS}/{mine}").status == 200
    left = ("kept/" + mine, "trash/*")
    assert harness.until(lambda: not [p for name in left for p in s.data.glob("serve/" + name)], 20)


@contextlib.contextmanager
def small_disk(megabytes: int, inodes: int):
    """A service whose data folder is a disk of its own."""
    if variants.Session.account:
        pytest.skip("mounts a disk")
    with variants.folder("isle-disk-") as folder:
        folder.chmod(0o755)
        options = f"size={megabytes}m,nr_inodes={inodes},mode=755"
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "isle-test", folder], check=True)
        s = Service(folder, {"SANDBOX_WORKER_CONCURRENCY": "2"})
        try:
            s.start()
            yield s
            s.stop()
        finally:
            s.abandon()
            subprocess.run(["umount", "-l", folder], check=True)


def test_what_one_keeps_leaves_the_last_of_the_disk_to_the_store():
    """Files without content use up the inodes, artifacts the bytes; jobs run and are recorded all the same."""
    with small_disk(64, 800) as s, s.client(s.new_key("a")) as a, s.client(s.new_key("b")) as b:
        session = a.post(SESSIONS, {}).data["session_id"]
        for n in range(800):
            r = a.call("PUT", f"{SESSIONS}/{session}/files/{n}", body=b"")
            if r.status != 201:
                break
        assert r.status == 503 and "full" in r.msg, (n, r)
        assert os.statvfs(s.data).f_ffree >= 800 // 20 - 5
        assert b.wait(b.submit({"language": "python", "code": "return 1"}))["result"] == 1
        assert a.call("DELETE", f"{SESSIONS}/{session}").status == 200
        assert harness.until(lambda: os.statvfs(s.data).f_ffree > 500, 20)
        assert harness.until(lambda: s.metric("isle_largest_share_bytes") == 0, 20)  # its last file has gone, too
        big = {"language": "bash", "code": "head -c 8000000 /dev/zero > x", "artifacts": ["x"]}
        ends = [a.wait(a.submit(big)) for _ in range(9)]
        assert ends[0]["success"] and not ends[-1]["success"], ends[-1]
        assert "No space left" in ends[-1]["error"], ends[-1]
        disk = os.statvfs(s.data)
        assert disk.f_bavail * 20 >= disk.f_blocks, disk
        assert b.wait(b.submit({"language": "python", "code": "return 1"}))["result"] == 1


def test_archives_leave_the_last_of_the_disk_to_the_store():
    """What is made of a folder before anybody keeps it, by a job and by an agent's tool."""
    with small_disk(64, 800) as s, s.client(s.new_key("a")) as a:
        session = a.post(SESSIONS, {}).data["session_id"]
        code = "mkdir d; head -c 9000000 /dev/urandom > d/x"
        assert a.wait(a.submit({"language": "bash", "code": code, "session_id": session}))["success"]
        disk = os.statvfs(s.data)
        (s.data / "filler").write_bytes(bytes((disk.f_bavail - disk.f_blocks // 20) * disk.f_bsize - (4 << 20)))
        free, over = [], threading.Event()

        def look() -> None:
            while not over.is_set():
                free.append(os.statvfs(s.data).f_bavail)

        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            looking = pool.submit(look)
            job = a.wait(a.submit({"command": ["true"], "artifacts": ["d"], "session_id": session}))
            tool = a.post(f"{SESSIONS}/{session}/tools/artifact", {"paths": ["d"]}).data
            over.set()
            looking.result()
        assert job["reason"] == "artifact" and "No space left" in job["error"], job
        assert not tool["success"] and "No space left" in tool["error"], tool
        assert min(free) >= disk.f_blocks // 20 - (1 << 20) // disk.f_bsize, (min(free), disk)


def put(c, session: str, name: str, megabytes: float):
    return c.call("PUT", f"{SESSIONS}/{session}/files/{name}", body=bytes(int(megabytes * (1 << 20))))


def test_what_one_team_keeps_is_bounded():
    """Uploads, artifacts and what jobs write: who has had its share is told so, whatever it tries; the other works on,
    before and after a restart. As long as there is no bound, nobody has more than is left for all."""
    with small_disk(400, 20000) as s:
        a, b = (s.client(s.new_key(team)) for team in ("a", "b"))
        mine, others = (c.post(SESSIONS, {}).data["session_id"] for c in (a, b))
        head = {"Content-Length": str(200 << 20)}  # more than half of what is left of 400 MB; refused before it is sent
        r = a.call("PUT", f"{SESSIONS}/{mine}/files/half", body=iter([b""]), headers=head)
        assert r.status == 429 and "SANDBOX_TEAM_DISK_MB 0" in r.msg and "Retry-After" in r.headers, r
        assert put(a, mine, "small", 1).status == 201
        s.stop()
        s.settings["SANDBOX_TEAM_DISK_MB"] = "5"
        s.start()
        assert put(a, mine, "x", 2).status == 201
        refused = put(a, mine, "y", 3)
        assert refused.status == 429 and "of the 5 MB that it may have (SANDBOX_TEAM_DISK_MB)" in refused.msg, refused
        script = {"language": "bash", "code": "head -c 3000000 /dev/zero > x", "artifacts": ["x"]}
        r = a.wait(a.submit(script))
        assert r["reason"] == "artifact" and "(SANDBOX_TEAM_DISK_MB)" in r["error"] and not r["artifacts"], r
        code = "until [ -e go ]; do sleep 0.05; done; head -c 3000000 /dev/urandom > more"
        more = a.submit({"language": "bash", "code": code, "session_id": mine})
        late = a.submit({"command": ["touch", "late"], "session_id": mine})
        assert put(a, mine, "go", 0).status == 201
        assert a.wait(more)["success"]  # a job may write what its own limit is; then it is too much, also for who waits
        r = a.wait(late)
        assert r["reason"] == "policy" and "5 MB that it may have (SANDBOX_TEAM_DISK_MB)" in r["error"], r
        assert a.get(f"{SESSIONS}/{mine}/files/late").status == 404
        assert harness.until(lambda: a.post(JOBS, {"command": ["true"]}).status == 429, 10)
        for again in (False, True):
            if again:
                s.restart()
            assert a.post(SESSIONS, {}).status == put(a, mine, "z", 0.1).status == 429
            r = a.post("/api/v1/tools/execute-code", {"language": "python", "code": "return 1"})
            assert r.status == 429 and "delete sessions or files" in r.msg, r
            assert put(b, others, "x", 2).status in (200, 201)
            assert b.python("open('x', 'w').write('x')", artifacts=["x"])["artifacts"]
        assert s.metric("isle_largest_share_bytes") > 5 << 20
        assert harness.until(lambda: s.metric("isle_artifacts_disk_bytes") == 2 * 4096, 10)
        assert a.get(f"{SESSIONS}/{mine}/files/x").status == 200
        assert a.call("DELETE", f"{SESSIONS}/{mine}/files/more").status == 200
        assert harness.until(lambda: a.post(JOBS, {"command": ["true"]}).status == 202, 10)
        assert a.call("DELETE", f"{SESSIONS}/{mine}").status == 200
        assert harness.until(lambda: s.metric("isle_largest_share_bytes") < 3 << 20, 10)
        assert a.wait(a.submit(script))["artifacts"]


def test_definitions_leave_the_last_of_the_disk_to_the_store():
    """Tools, imports and long requests are refused where there is no room; jobs run and are recorded all the same."""
    with small_disk(96, 4000) as s, s.client(s.new_key("a")) as a, s.client(s.new_key("b")) as b:

        def tool(n: int) -> dict:
            code = f"#{n:08}" * 90_000 + "\nreturn 1"
            return {"name": f"t{n % 40}", "code_config": {"language": "python", "code": code}}

        for n in range(200):
            r = a.post("/api/v1/tools/import", {"tools": [tool(n)], "on_conflict": "replace"})
            if r.status != 200:
                break
        assert r.status == 503 and "No space left" in r.msg, (n, r)
        assert a.post("/api/v1/tools", tool(39)).status in (409, 503)
        long = {"language": "python", "code": "return 1", "params": {"x": "y" * (7 << 20)}}
        ends = [a.post(JOBS, long) for _ in range(12)]
        assert ends[-1].status == 503 and "No space left" in ends[-1].msg, ends[-1]
        assert s.ready()
        assert b.wait(b.submit({"language": "python", "code": "return 1"}))["result"] == 1
