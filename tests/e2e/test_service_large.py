"""Answers of many megabytes, trees of many folders and files that are large keep nobody waiting: what they cost is done
beside the loop."""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import subprocess
import time
from collections.abc import Callable, Iterator

import harness
import pytest
from service import API, EXECUTE, JOBS, SESSIONS, Service, dumps, serving

LIMITS = {"max_stdout_kb": 8192, "max_stderr_kb": 8192, "memory_mb": 1024}
FULL = (
    "import sys; sys.stdout.write('x' * (8 << 20)); sys.stderr.write('y' * (8 << 20)); return 'v' * (params['v'] << 20)"
)
MANY = "return {str(i): 1 for i in range(300000)}"
HELD_MS = 20 * harness.SLOW


@pytest.fixture(scope="module")
def probe(service: Service) -> Iterator[Callable[[], float]]:
    """Milliseconds of the loop's own time that go by before the smallest answer comes."""
    with socket.create_connection(("127.0.0.1", service.port)) as c:

        def ask() -> None:
            c.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert c.recv(4096).startswith(b"HTTP/1.1 200")

        yield lambda: service.held_up(ask) * 1000


def held(
    service: Service, probe: Callable[[], float], path: str, body: object = None, least_bytes: int = 1 << 20
) -> float:
    """The longest that somebody else waits for the loop while this is answered."""
    words = ["curl", "-sS", "-o", "/dev/null", "-w", "%{http_code} %{size_download}"]
    words += ["-H", f"Authorization: Bearer {service.key}"] if service.key else []
    words += ["-H", "Content-Type: application/json", "--data-binary", "@-"] if body else []
    longest = 0.0
    with subprocess.Popen(
        [*words, f"http://127.0.0.1:{service.port}{path}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as p:
        p.stdin.write(dumps(body).decode() if body else "")
        p.stdin.close()
        while p.poll() is None:
            longest = max(longest, probe())
            time.sleep(0.001)
        said = p.stdout.read().split()
    assert said[0] == "200" and (int(said[1]) > least_bytes or "artifacts" in path), (said, path)
    print(path, f"{longest:.1f} ms")
    return longest


def asked(service: Service, path: str) -> socket.socket:
    """A GET whose answer has begun, and is not read."""
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    s.connect(("127.0.0.1", service.port))
    key = f"Authorization: Bearer {service.key}\r\n" if service.key else ""
    s.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{key}\r\n".encode())
    assert s.recv(12, socket.MSG_PEEK | socket.MSG_WAITALL) == b"HTTP/1.1 200"
    return s


def test_who_does_not_read_a_file_holds_nothing_of_the_result(service: Service):
    """The result, in which the file is looked up, may be long."""
    code = "open('a', 'wb').truncate(8 << 20)\n" + FULL
    job = {"language": "python", "code": code, "params": {"v": 7}, "limits": LIMITS, "artifacts": ["a"]}
    ident = service.submit(job)
    service.wait(ident)
    before = service.figures().private_kb
    with contextlib.ExitStack() as readers:
        for _ in range(6):
            readers.enter_context(asked(service, f"{JOBS}/{ident}/artifacts/a"))
        most = before + 2 * (22 << 10)  # of one that was read last, until it is given back
        assert harness.until(lambda: service.figures().private_kb < most, 10), (before, service.figures())


def test_who_does_not_read_a_long_result_holds_it_once(service: Service):
    """Its text alone, and not what that was made of as well."""
    job = {"language": "python", "code": FULL, "params": {"v": 7}, "limits": LIMITS}
    answer_kb = len(service.post(EXECUTE, job).body) >> 10
    assert answer_kb > 22 << 10
    before = service.figures().private_kb
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s.connect(("127.0.0.1", service.port))
        body = dumps(job)
        head = f"POST {EXECUTE} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        head += f"Authorization: Bearer {service.key}\r\n" if service.key else ""
        s.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        assert s.recv(12, socket.MSG_PEEK | socket.MSG_WAITALL) == b"HTTP/1.1 200"
        most = before + answer_kb * 5 // 4
        assert harness.until(lambda: service.figures().private_kb < most, 10), (before, answer_kb, service.figures())


def test_archives_that_nobody_reads_take_so_much_memory_and_no_more(service: Service):
    session = service.post(SESSIONS, {}).data["session_id"]
    for name in ("a", "b"):
        put = service.call("PUT", f"{SESSIONS}/{session}/files/d/{name}", body=os.urandom(3 << 20))
        assert put.status == 201
    before, statuses = service.figures().private_kb, []
    key = f"Authorization: Bearer {service.key}\r\n" if service.key else ""
    with contextlib.ExitStack() as readers:
        for _ in range(260):
            s = readers.enter_context(socket.socket())
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            s.connect(("127.0.0.1", service.port))
            s.sendall(f"GET {SESSIONS}/{session}/files/d HTTP/1.1\r\nHost: localhost\r\n{key}\r\n".encode())
            statuses.append(s.recv(12, socket.MSG_WAITALL)[-3:].decode())
            if statuses[-1] != "200":
                break  # before the first ones are cut off for reading nothing
        assert statuses[-1] == "503" and statuses.count("200") > 100, statuses
        assert service.figures().private_kb < before + (200 << 10)
    assert harness.until(lambda: service.get(f"{SESSIONS}/{session}/files/d").status == 200, 10)


@pytest.mark.parametrize("code", [FULL, MANY], ids=["text", "values"])
def test_a_long_result_when_it_comes(service: Service, probe, code):
    job = {"language": "python", "code": code, "params": {"v": 7}, "limits": LIMITS}
    assert held(service, probe, EXECUTE, job) < HELD_MS


def test_a_long_result_that_is_fetched(service: Service, probe):
    """The result, its events, a file of the same job, and the job while it runs."""
    code = "open('a', 'w').write('1')\n" + FULL
    job = {"language": "python", "code": code, "params": {"v": 7}, "limits": LIMITS, "artifacts": ["a"]}
    ident = service.submit(job)
    service.wait(ident)
    for path in ("", "/events", "/artifacts/a"):
        assert held(service, probe, f"{JOBS}/{ident}{path}") < HELD_MS, path
    command = "head -c 8388608 /dev/zero | tr '\\0' x; sleep 600"
    ident = service.submit({"command": ["bash", "-c", command], "limits": LIMITS | {"timeout_seconds": 600}})
    assert harness.until(lambda: len(service.get(f"{JOBS}/{ident}").data["stdout"]) == 8 << 20, 20)
    assert held(service, probe, f"{JOBS}/{ident}") < HELD_MS
    service.cancel(ident)


def test_many_that_follow_one_job(service: Service, probe):
    """What it prints at once is told to all of them, a few at a time, and so is its result."""
    code = "import os, time\nprint('x' * 200000, flush=True)\nwhile not os.path.exists('go'): time.sleep(0.05)"
    session = service.post(SESSIONS, {}).data["session_id"]
    job = {"language": "python", "code": code, "limits": LIMITS, "session_id": session}
    ident = service.submit(job)
    with contextlib.ExitStack() as stack, selectors.DefaultSelector() as open_ones:
        for _ in range(250):
            s = stack.enter_context(asked(service, f"{JOBS}/{ident}/events"))
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
            s.setblocking(False)
            open_ones.register(s, selectors.EVENT_READ, [0, b""])
        longest, told = 0.0, False
        while open_ones.get_map():
            longest = max(longest, probe())
            for found, _ in open_ones.select(1):
                data = found.fileobj.recv(1 << 20)
                found.data[0] += len(data)
                found.data[1] = (found.data[1] + data)[-64:]
                assert data
                if found.data[1].endswith(b"\n\n\r\n0\r\n\r\n"):
                    assert found.data[0] > 400_000
                    open_ones.unregister(found.fileobj)
            if not told and all(k.data[0] > 200_000 for k in open_ones.get_map().values()):
                told = True
                assert service.call("PUT", f"{SESSIONS}/{session}/files/go", body=b"").status == 201
    print(f"{longest:.1f} ms")
    assert longest < HELD_MS


def test_a_long_result_of_a_tool_and_of_a_node(service: Service, probe):
    tool = {
        "name": "long",
        "parameters": [{"name": "v", "type": "integer"}],
        "code_config": {"language": "python", "code": FULL, "limits": LIMITS},
    }
    t = service.post(f"{API}/tools", tool).data
    assert held(service, probe, f"{API}/tools/execute", {"name": "long", "arguments": {"v": 7}}) < HELD_MS
    service.call("DELETE", f"{API}/tools/{t['id']}")
    code = f"def main(i):\n    def f(params):\n        {FULL}\n    return {{'o': f({{'v': 7}}), 'p': [1] * 200000}}"
    outputs = [{"name": "o", "type": "string"}, {"name": "p", "type": "array"}]
    node = {"language": "python", "code": code, "outputs": outputs}
    assert held(service, probe, f"{API}/workflow/code-node", node) < HELD_MS


def test_a_node_whose_values_are_held_against_many(service: Service, probe):
    """A short answer that costs much: each element against each value that is allowed."""
    spec = {"type": "array", "items": {"type": "number", "enum": [*range(100, 199), 1]}}
    outputs = [{"name": "o", "type": "array", "typeSpec": spec}]
    code = "def main(i):\n    return {'o': [1] * 60000}"
    node = {"language": "python", "code": code, "outputs": outputs}
    assert held(service, probe, f"{API}/workflow/code-node", node, 100000) < HELD_MS


def test_a_job_that_leaves_many_folders(service: Service, probe):
    """They are counted while it runs and when it has ended, and gone before it is answered."""
    code = "import os, time\nfor i in range(1000): os.mkdir(str(i))\ntime.sleep(1.1); os.mkdir('x'); time.sleep(0.1)"
    job = {"language": "python", "code": code, "limits": {"disk_mb": 1024}, "timeout": 60}
    assert held(service, probe, EXECUTE, job, 100) < HELD_MS
    assert service.one_shot() == []


def test_files_in_many_folders(service: Service, probe):
    files = [{"target_path": f"{i}/" + "a/" * 60 + "f", "content_base64": ""} for i in range(60)]
    code = "import os; return sum(len(folders) for _, folders, _ in os.walk('.'))"
    job = {"language": "python", "code": code, "input_files": files, "limits": {"disk_mb": 64}}
    assert held(service, probe, EXECUTE, job, 100) < HELD_MS
    assert service.post(EXECUTE, job).data["result"] == 60 * 61 + 4


def test_a_large_file_of_a_session(service: Service, probe):
    """Read by somebody who is as fast as the loop, replaced and removed."""
    ident = service.post(SESSIONS, {}).data["session_id"]
    code = "for name in 'ab':\n  with open(name, 'wb') as f:\n    for i in range(24): f.write(bytes(1 << 20))"
    assert service.python(code, session_id=ident)["success"]
    files = f"{SESSIONS}/{ident}/files"
    for _ in range(2):  # its hash is known by then
        assert held(service, probe, f"{files}/a") < HELD_MS
    moved = service.post(f"{files}:move", {"from": "b", "to": "a", "overwrite": True})
    assert moved.status == 200 and service.call("DELETE", f"{files}/a").status == 200
    assert service.get(f"{files}/a").status == 404
    service.call("DELETE", f"{SESSIONS}/{ident}")


def test_what_a_thousand_tools_are(service: Service, probe):
    """The schemas of many small ones, and of some long ones; what is exported."""
    takes = [{"name": f"p{n}", "type": "string", "description": "d" * 200} for n in range(20)]
    long = [{"name": f"p{n}", "type": "string", "description": "d" * 8000} for n in range(64)]
    config = {"language": "python", "code": "return 1"}
    for name, parameters, count in (("small", takes, 400), ("long", long, 12)):
        tools = [{"name": f"{name}{n}", "parameters": parameters, "code_config": config} for n in range(count)]
        assert service.post(f"{API}/tools/import", {"tools": tools, "on_conflict": "refuse"}).status == 200
    for path in ("schemas", "schemas?format=anthropic&shared=true", "export"):
        assert held(service, probe, f"{API}/tools/{path}") < HELD_MS, path


def test_many_that_wait_do_not_hold_the_start(service: Service):
    """Jobs of an older start keep their order and their needs, long requests and all, and one may be cancelled."""
    with serving({"SANDBOX_WORKER_CONCURRENCY": "1"}) as s:
        sleep = {"command": ["sleep", "600"], "limits": {"timeout_seconds": 600}}
        first, bar = s.submit(sleep), s.submit(sleep)
        long = {"language": "python", "code": "return len(params['x'])", "params": {"x": "z" * (7 << 20)}}
        ids = [s.submit(long) for _ in range(2)] + [s.submit({"command": ["echo", str(n)]}) for n in range(8)]
        gone = s.submit({"command": ["echo", "gone"]})
        s.kill("front", "service", "launcher")
        s.start()
        assert s.cancel(gone).status == s.cancel(bar).status == 200  # before anything behind the bar has run
        results_of = [s.wait(i) for i in ids]
        assert [r["result"] for r in results_of] == [7 << 20] * 2 + [str(n) for n in range(8)]
        begun = [r["metadata"]["started_at"] for r in results_of]
        assert begun == sorted(begun)
        assert s.job(gone)["status"] == "cancelled" and s.job(first)["reason"] == "worker_lost"
