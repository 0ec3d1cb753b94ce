"""Code tools attacked: by another team, by what is shared, by races, and by what definitions and arguments may hold."""

from __future__ import annotations

import concurrent.futures
import itertools
import json
import threading
import time
from collections.abc import Iterator

import harness
import pytest
from service import API, JOBS, Answer, Client, Service
from tool_teams import TOOLS, empty, save, tool

SERVICE_SETTINGS = {"SANDBOX_WORKER_CONCURRENCY": "2"}
RUN = f"{TOOLS}/execute"
NODE = f"{API}/workflow/code-node"
NO_TOOL = "0190c3f0-0000-7000-8000-000000000001"
SECRET = "CANARY-5c2e"
SOON = 5 * harness.SLOW  # seconds
JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def a(service: Service) -> Iterator[Client]:
    with service.client(service.new_key("a")) as c:
        yield c


@pytest.fixture(scope="module")
def b(service: Service, a: Client) -> Iterator[Client]:
    with service.client(service.new_key("b")) as c:
        yield c


@pytest.fixture(autouse=True)
def afterwards(service: Service, a: Client, b: Client) -> Iterator[None]:
    """The service runs on, has said no 500, and both teams are without tools again."""
    pid = service.service_pid
    yield
    assert service.service_pid == pid
    assert [r for r in service.log_rows() if r.get("status") == 500] == []
    empty(a, b)
    assert a.python("return 6 * 7")["result"] == 42


def run(c: Client, name: str, /, **arguments: object) -> Answer:
    return c.post(RUN, {"name": name, "arguments": arguments})


def raw(c: Client, method: str, path: str, body: bytes) -> Answer:
    return c.call(method, path, body=body, headers=JSON)


ANY = {"name": "x", "type": "object", "required": True}


# ---- H02: another team's


def test_H02_another_teams_tool(a, b):
    """Each way to a tool: the same answer as for one that does not exist, and nothing was done."""
    mine = save(a, "secret", f"return '{SECRET}'")
    a.call("PUT", f"{TOOLS}/{mine['id']}", {"description": "second"})
    ways = (
        ("GET", "", None),
        ("PUT", "", {"description": "mine now"}),
        ("DELETE", "", None),
        ("POST", "/toggle", {}),
        ("POST", "/share", {"team_id": "b", "permission": "read_execute"}),
        ("POST", "/share", {"team_id": "a", "permission": "read_execute"}),
        ("DELETE", "/share/a", None),
        ("DELETE", "/share/b", None),
        ("GET", "/shares", None),
        ("GET", "/versions", None),
        ("GET", "/versions/1", None),
        ("POST", "/restore", {"version": 1}),
    )
    for method, path, body in ways:
        theirs, none = (b.call(method, f"{TOOLS}/{i}{path}", body) for i in (mine["id"], NO_TOOL))
        if path == "/share" and body["team_id"] == "b":
            assert theirs.status in (404, 422), theirs
        else:
            assert theirs.status == 404, (method, path, theirs)
        assert (theirs.status, theirs.body) == (none.status, none.body), (method, path)
        assert theirs.headers.keys() == none.headers.keys()
    for body in ({"tool_id": mine["id"]}, {"tool_id": NO_TOOL}, {"name": "secret"}):
        assert b.post(RUN, {**body, "arguments": {}}).status == 404
    theirs, none = (b.get(f"{TOOLS}/export?id={i}") for i in (mine["id"], NO_TOOL))
    assert theirs.status == none.status == 404 and theirs.body == none.body
    for path in (TOOLS, f"{TOOLS}/export", f"{TOOLS}/schemas", f"{TOOLS}/schemas?shared=true"):
        assert b"secret" not in b.get(path).body and SECRET.encode() not in b.get(path).body
    now = a.get(f"{TOOLS}/{mine['id']}").data
    assert now["description"] == "second" and now["version"] == 2 and now["is_enabled"]


def test_H02_a_tools_job_is_its_callers(a, b):
    """Who is lent a tool runs it as the own team: the owner sees nothing of the call."""
    lent = save(a, "lent", "import os; open('x','w').write('of b'); return sorted(os.listdir('.'))")
    assert a.post(f"{TOOLS}/{lent['id']}/share", {"team_id": "b", "permission": "read_execute"}).status == 200
    session = b.post(f"{API}/sandbox/sessions", {}).data["session_id"]
    call = {"tool_id": lent["id"], "arguments": {}, "session_id": session}
    job = b.post(RUN, call).data
    assert job["success"], job
    assert a.get(f"{JOBS}/{job['job_id']}").status == 404
    assert a.post(RUN, call).status == 404, "b's session"
    assert job["job_id"] not in {j["job_id"] for j in a.get(JOBS).data["items"]}


def test_shares_give_what_they_say(a, b):
    """read_only: read, and nothing else by any way. read_execute: run, and not changed or shared on."""
    lent = save(a, "lent", "return 1")
    path = f"{TOOLS}/{lent['id']}"
    for permission in ("read_only", "read_execute"):
        assert a.post(f"{path}/share", {"team_id": "b", "permission": permission}).status == 200
        seen = b.get(path).data
        assert seen["permission"] == permission and seen["shared_by"] == "a"
        may_run = permission == "read_execute"
        for call in ({"name": "lent"}, {"tool_id": lent["id"]}):
            r = b.post(RUN, {**call, "arguments": {}})
            assert (r.status == 200) if may_run else (r.status == 403 and "read_only" in r.msg), r
        assert (b'"lent"' in b.get(f"{TOOLS}/schemas?shared=true").body) == may_run
        assert b'"lent"' not in b.get(f"{TOOLS}/schemas").body
        for method, way, body in (
            ("PUT", "", {"code_config": {"language": "python", "code": "return 2"}}),
            ("DELETE", "", None),
            ("POST", "/toggle", {}),
            ("POST", "/restore", {"version": 1}),
            ("POST", "/share", {"team_id": "a", "permission": "read_execute"}),
            ("DELETE", "/share/a", None),
        ):
            assert b.call(method, path + way, body).status in (403, 404), (permission, method, way)
        # what it may read it may keep a copy of: its own, which runs as its own
        a.post(f"{path}/toggle", {"is_enabled": False})
        assert b.post(RUN, {"tool_id": lent["id"], "arguments": {}}).status == 403
        a.post(f"{path}/toggle", {"is_enabled": True})
    assert a.call("DELETE", f"{path}/share/b").status == 200
    assert b.get(path).status == 404 and b.post(RUN, {"tool_id": lent["id"], "arguments": {}}).status == 404
    assert a.get(path).data["version"] == 1
    for team in ("a", "nobody-has-a-key", "", "x" * 300, "a\n", "*"):
        r = a.post(f"{path}/share", {"team_id": team, "permission": "read_execute"})
        assert r.status in (404, 413, 422), (team, r)
    assert a.get(f"{path}/shares").data["items"] == []


def test_names_are_not_squatted(a, b, service):
    """What others share under a name never runs, or is shown, in the place of the team's own tool or a built-in one."""
    with service.client(service.new_key("c")) as c:
        for other in (b, c):
            theirs = save(other, "pay", f"return '{SECRET}'")  # the last one is c's
            other.post(f"{TOOLS}/{theirs['id']}/share", {"team_id": "a", "permission": "read_execute"})
        r = run(a, "pay")
        assert r.status == 422 and "tool_id" in r.msg, "two of them: neither is meant"
        save(a, "pay", "return 'own'")
        assert run(a, "pay").data["result"] == "own"
        for form in ("openai", "anthropic", "mcp"):
            shown = a.get(f"{TOOLS}/schemas?shared=true&format={form}").data["tools"]
            names = [(t.get("function") or t)["name"] for t in shown]
            assert len(names) == len(set(names)), names
        for name in ("bash", "read", "write", "edit", "artifact", "run_python", "run_javascript"):
            r = b.post(TOOLS, tool(name))
            assert r.status == 422 and name in r.msg, r
            r = b.post(f"{TOOLS}/import", {"tools": [tool(name)], "on_conflict": "replace"})
            assert r.status == 422, r
        assert c.call("DELETE", f"{TOOLS}/{theirs['id']}").status == 200


def test_H12_H13_what_is_imported(a):
    """An import is definitions and nothing else: names are no paths, and one that is wrong spoils all."""
    for name in ("../../etc/x", "a/b", "a\0", "", "x" * 101, "$(id)", "%n%n"):
        r = a.post(f"{TOOLS}/import", {"tools": [tool("good"), tool(name)], "on_conflict": "replace"})
        assert r.status in (413, 422), (name, r)
    for body, headers in (
        (b"PK\x03\x04" + bytes(100), {"Content-Type": "application/zip"}),
        (b"\x1f\x8b\x08" + bytes(100), {"Content-Type": "application/json", "Content-Encoding": "gzip"}),
    ):
        assert a.call("POST", f"{TOOLS}/import", body=body, headers=headers).status == 415
    many = {"tools": [tool(f"t{n}") for n in range(1001)], "on_conflict": "replace"}
    begin = time.monotonic()
    assert a.post(f"{TOOLS}/import", many).status in (413, 422)
    assert time.monotonic() - begin < SOON
    assert a.get(TOOLS).data["items"] == []


# ---- H04, H14, H15: what definitions and arguments may hold


def deep(n: int) -> bytes:
    return b'{"a":' * n + b"1" + b"}" * n


def test_H04_large_and_deep(service, a):
    save(a, "echo", "return 1", ANY)
    small = b'{"name":"t","code_config":{"language":"python","code":"1"}'
    node = (
        b'{"language":"python","code":"def main(i): return {}","outputs":[{"name":"o","type":"object","typeSpec":%s}]}'
    )
    bodies = [
        (RUN, b'{"name":"echo","arguments":{"x":' + deep(100_000) + b"}}"),
        (RUN, b'{"name":"echo","arguments":{"x":{"n":' + b"[" * 1_000_000),
        (RUN, b'{"name":"echo","arguments":{"x":1e400}}'),
        (RUN, b'{"name":"echo","arguments":{"x":{},"x":{}}}'),
        (RUN, b'{"name":"echo","arguments":{"x":{"k":"\\ud800"}}}'),
        (RUN, json.dumps({"name": "echo", "arguments": {f"k{n}": 1 for n in range(300_000)}}).encode()),
        (RUN, b'{"name":"echo","arguments":{"x":{},"y":"' + b"z" * (30 << 20) + b'"}}'),
        (TOOLS, small + b',"parameters":[{"name":"p","type":"object","default":' + deep(100_000) + b"}]}"),
        (TOOLS, small + b',"parameters":[{"name":"p","type":"array","items":' + deep(60) + b"}]}"),
        (TOOLS, small + b',"parameters":[{"name":"p","type":"string","default":"' + b"x" * (1 << 20) + b'"}]}'),
        (
            TOOLS,
            small + b',"parameters":[' + b'{"name":"p","type":"string"},' * 5000 + b'{"name":"q","type":"string"}]}',
        ),
        (TOOLS, small + b',"description":"' + b"x" * (3 << 20) + b'"}'),
        (NODE, node % deep(100_000)),
        (NODE, node % (b'{"type":"array","items":' * 5000 + b"{}" + b"}" * 5000)),
        (NODE, node % (b"[" * 100 + b"]" * 100)),
    ]
    before = service.figures().private_kb
    for path, body in bodies:
        begin = time.monotonic()
        r = raw(a, "POST", path, body)
        assert r.status in (400, 413, 422), (path, body[:80], r.status, r.body[:300])
        assert time.monotonic() - begin < SOON and len(r.body) < 64 << 10, (path, body[:80])
    grown = service.figures().private_kb - before
    assert grown < 200 << 10 or harness.SLOW > 1, grown  # a sanitizer keeps what was freed
    # as deep as may be, and as long: it arrives
    x = json.loads(deep(55))
    r = run(a, "echo", x=x)
    assert r.status in (200, 400, 422), r


def test_names_and_ids_are_taken_whole(a, b):
    """What is behind a NUL is of the name, too, and no id is read in another case."""
    t = save(a, "whole", "return 1")
    at = f"{TOOLS}/{t['id']}"
    for path, body in (
        (RUN, {"name": "whole\0"}),
        (RUN, {"name": "whole\0other"}),
        (RUN, {"tool_id": t["id"] + "\0"}),
        (RUN, {"tool_id": t["id"].upper()}),
        (RUN, {"name": "whole", "session_id": t["id"] + "\0"}),
        (TOOLS, tool("whole\0")),
        (TOOLS, tool("t", language="python\0")),
        (f"{TOOLS}/import", {"tools": [tool("whole\0")], "on_conflict": "replace"}),
        (f"{TOOLS}/import", {"tools": [], "on_conflict": "skip\0"}),
        (f"{at}/share", {"team_id": "b\0", "permission": "read_only"}),
        (f"{at}/share", {"team_id": "b", "permission": "read_execute\0"}),
    ):
        assert a.post(path, body).status == 422, body
    assert b.get(TOOLS).data["items"] == [] and len(a.get(TOOLS).data["items"]) == 1


NUMBERS = ("-1", "0", "4294967297", "9223372036854775808", "1e18", "0.5", '"5"', "1e400", "null", "[]")


def test_H14_numbers(a):
    """Outside of its range, or no number: 422 or 400, wherever one may stand."""
    t = save(a, "one", "return 1")
    config = b'{"name":"two","code_config":{"language":"python","code":"1","limits":{"%s":%s}}}'
    for number in NUMBERS:
        n = number.encode()
        for key in (b"timeout_seconds", b"memory_mb", b"pids", b"disk_mb", b"max_stdout_kb"):
            if number == "0" and key == b"disk_mb":  # room for staged files alone
                continue
            r = raw(a, "POST", TOOLS, config % (key, n))
            assert r.status in (400, 422) or (number == "null" and r.status == 201), (key, number, r)
            if r.status == 201:
                a.call("DELETE", f"{TOOLS}/{r.data['id']}")
        for path, body in (
            (f"{TOOLS}/{t['id']}/restore", b'{"version":%s}'),
            (RUN, b'{"name":"one","arguments":{},"timeout":%s}'),
        ):
            r = raw(a, "POST", path, body % n)
            assert r.status in (400, 404, 422) or number == "null", (path, number, r)
        r = raw(a, "PUT", f"{TOOLS}/{t['id']}", b'{"description":"x","version":%s}' % n)
        assert r.status in (400, 412, 422) or number == "null", (number, r)
        quoted = number.replace('"', "%22").replace("[]", "%5B%5D")
        assert a.get(f"{TOOLS}/{t['id']}/versions/{quoted}").status in (404, 422)
        assert a.get(f"{TOOLS}?limit={quoted}").status == 422
    # as arguments they are values, where a number can hold them
    save(a, "add", "return params['n']", {"name": "n", "type": "number", "required": True})
    huge = raw(a, "POST", RUN, b'{"name":"add","arguments":{"n":1e400}}')
    assert huge.status == 422 and b"arguments.n: 1e400" in huge.body, huge
    big = b'{"name":"add","arguments":{"n":123456789012345678901234567890}}'
    assert b'"result":123456789012345678901234567890' in raw(a, "POST", RUN, big).body


EVIL = (
    "$(id)",
    "`id`",
    "; id",
    "--inspect=0.0.0.0:9229",
    "-c",
    "%n%n%n%s",
    "a\nINFO forged",
    "';import os;os._exit(7)#",
    "\u0000",
    "LD_PRELOAD=/workspace/x.so",
    "__proto__",
    "</script>",
)


def test_H15_injection(service, a):
    """Names are held against a grammar; arguments arrive as the values that they are, in no argv and no environment."""
    for text in EVIL:
        for body in (tool(text), tool("t", language=text), tool("t") | {"code_config": {"command": [text]}}):
            assert a.post(TOOLS, body).status == 422, body
        assert run(a, text).status in (404, 422)
    code = (
        "import os\nseen = open('/proc/self/cmdline').read() + str(dict(os.environ))\n"
        "return [params, [v for v in params.values() if len(v) > 2 and v in seen]]"
    )
    takes = [{"name": f"p{n}", "type": "string"} for n in range(len(EVIL))]
    save(a, "py", code, *takes)
    save(a, "js", "return [params, process.argv.concat(Object.values(process.env))]", *takes, language="javascript")
    given = {f"p{n}": text for n, text in enumerate(EVIL)}
    assert run(a, "py", **given).data["result"] == [given, []]
    r = run(a, "js", **given).data["result"]
    assert r[0] == given and not [v for v in EVIL if len(v) > 2 and v in r[1]]
    names = [{"name": text, "type": "string"} for text in ("__proto__", "constructor", "a b", "-c", "$(id)")]
    save(a, "odd", "return Object.keys(params)", *names, language="javascript")
    r = run(a, "odd", **{n["name"]: "v" for n in names}).data
    assert r["success"] and sorted(r["result"]) == sorted(n["name"] for n in names), r
    assert not [row for row in service.log_rows() if row.get("message") == "forged"]
    assert all(line.startswith("{") for line in service.log().splitlines() if line.strip())


MARKUP = '"><img src=x onerror=alert(1)>{{7*7}}</textarea><script>alert(2)</script>'


def test_H10_markup_is_data(a):
    """In JSON, of a type that no browser shows as a page; pages of the service hold nothing of it."""
    for field in ("display_name", "description", "icon", "category"):
        t = save(a, "t", "raise RuntimeError(params['x'])", {"name": "x", "type": "string"}, **{field: MARKUP})
        for path in (
            f"{TOOLS}/{t['id']}",
            TOOLS,
            f"{TOOLS}/schemas",
            f"{TOOLS}/export",
            f"{TOOLS}/{t['id']}/versions/1",
        ):
            r = a.get(path)
            assert r.status == 200 and r.headers.get_content_type() == "application/json", path
            assert r.headers["X-Content-Type-Options"] == "nosniff", path
        assert a.get(f"{TOOLS}/{t['id']}").data[field] == MARKUP
        r = a.post(RUN, {"name": "t", "arguments": {"x": MARKUP}}).data
        assert MARKUP in r["error"]
        assert MARKUP.encode() not in a.get("/docs").body and MARKUP.encode() not in a.get("/openapi.json").body
        a.call("DELETE", f"{TOOLS}/{t['id']}")
    r = a.post(TOOLS, tool(MARKUP))
    assert r.status == 422 and "\n" not in r.msg


# ---- Races


def at_once(service: Service, key: str, calls: list) -> list[Answer]:
    start = threading.Barrier(len(calls))

    def one(call) -> Answer:
        with service.client(key) as c:
            c.get("/healthz")
            start.wait()
            return call(c)

    with concurrent.futures.ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(one, calls))


def test_changes_of_one_version_at_once(service, a):
    """One is made, the others hear of it."""
    t = save(a, "t", "return 0")
    path = f"{TOOLS}/{t['id']}"
    for version in range(1, 4):
        body = [
            {"version": version, "code_config": {"language": "python", "code": f"return {version}{n}"}}
            for n in range(8)
        ]
        answers = at_once(service, a.key, [lambda c, b=b: c.call("PUT", path, b) for b in body])
        assert sorted(r.status for r in answers) == [200] + [412] * 7, [r.status for r in answers]
        [done] = [n for n, r in enumerate(answers) if r.status == 200]
        now = a.get(path).data
        assert now["version"] == version + 1 and now["code_config"]["code"] == f"return {version}{done}"
    names = at_once(service, a.key, [lambda c: c.post(TOOLS, tool("same"))] * 8)
    assert sorted(r.status for r in names) == [201] + [409] * 7


def test_a_tool_that_goes_or_changes_while_it_runs(service, a):
    """A call is of the version that it began with, whatever becomes of the tool meanwhile."""
    code = "import time; time.sleep(2); return 'old'"
    for change in (
        lambda c, path: c.call("PUT", path, {"code_config": {"language": "python", "code": "return 'new'"}}),
        lambda c, path: c.post(f"{path}/toggle", {"is_enabled": False}),
        lambda c, path: c.call("DELETE", path),
    ):
        t = save(a, f"t{time.monotonic_ns()}", code)

        def called(name: str = t["name"]) -> bool:
            return any(r["event"] == "tool called" and r["name"] == name for r in service.log_rows())

        def late(c: Client, change=change, t=t, called=called) -> Answer:
            assert harness.until(called, 20)
            return change(c, f"{TOOLS}/{t['id']}")

        ran, changed = at_once(service, a.key, [lambda c, t=t: run(c, t["name"]), late])
        assert changed.status == 200 and ran.data["result"] == "old", (ran, changed)
        assert ran.data["tool"] == {"id": t["id"], "name": t["name"], "version": 1}
    t = save(a, "flip", "return 1")
    stop = time.monotonic() + 1.5

    def toggle(c: Client) -> Answer:
        while True:
            r = c.post(f"{TOOLS}/{t['id']}/toggle", {})
            if time.monotonic() > stop:
                return r

    def call(c: Client) -> Answer:
        while True:
            r = run(c, "flip")
            assert r.status in (200, 403), r
            assert r.status == 403 or r.data["result"] == 1
            if time.monotonic() > stop:
                return r

    at_once(service, a.key, [toggle, toggle, call, call])


# ---- A thousand tools


def test_the_schemas_of_a_thousand_tools(service, a):
    """Bounded in size and time, and others are served meanwhile."""
    count = 993 if harness.LONG else 300
    long = [{"name": f"p{n}", "type": "string", "description": "d" * 500} for n in range(20)]
    for first in range(0, count, 100):
        batch = [tool(f"t{n}", "return 1", *long) for n in range(first, min(first + 100, count))]
        assert a.post(f"{TOOLS}/import", {"tools": batch, "on_conflict": "refuse"}).status == 200
    over = threading.Event()
    waits = []

    def others() -> None:
        with service.client() as c:
            while not over.is_set():
                begin = time.monotonic()
                assert c.get("/healthz").status == 200
                waits.append(time.monotonic() - begin)

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        beside = pool.submit(others)
        for path, most in itertools.product(
            (f"{TOOLS}/schemas", f"{TOOLS}/export", f"{TOOLS}?limit=1000"), (64 << 20,)
        ):
            begin = time.monotonic()
            r = a.get(path)
            assert r.status == 200 and len(r.body) < most
            assert time.monotonic() - begin < 2 * SOON, path
        over.set()
        beside.result()
    waits.sort()
    assert waits[int(len(waits) * 0.9)] < 0.1 * harness.SLOW, waits[-20:]


# ---- Cases


def test_schemas_while_others_unshare(service, a, b):
    """A shared tool that goes away between two pages is left out, and stops nobody from seeing the rest."""
    code = "#" * 100_000 + "\nreturn 1"
    lent = [save(b, f"lent_{i:02}", code) for i in range(12)]
    paths = [f"{TOOLS}/{t['id']}/share" for t in lent]
    share = {"team_id": "a", "permission": "read_execute"}
    for path in paths:
        assert b.post(path, share).status == 200
    stop = threading.Event()

    def come_and_go() -> int:
        rounds = 0
        with service.client(b.key) as c:
            while not stop.is_set() or rounds == 0:
                for path in paths:
                    assert c.call("DELETE", f"{path}/a").status == 200
                    assert c.post(path, share).status == 200
                rounds += 1
        return rounds

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        going = pool.submit(come_and_go)
        try:
            for _ in range(150):
                r = a.get(f"{TOOLS}/schemas?shared=true")
                assert r.status == 200, r
                names = [t["function"]["name"] for t in r.data["tools"]]
                assert "bash" in names and len(names) == len(set(names))
        finally:
            stop.set()
        assert going.result() > 0
    for t in lent:
        assert b.call("DELETE", f"{TOOLS}/{t['id']}").status == 200


def test_API_01_large_code_and_arguments(a):
    save(a, "big", "# " + "x" * 400_000 + "\nreturn len(params['x'])", {"name": "x", "type": "string"})
    assert run(a, "big", x="y" * 200_000).data["result"] == 200_000
    assert run(a, "big", x="y" * 3_000_000).data["result"] == 3_000_000
    r = run(a, "big", x="y" * (9 << 20))
    assert r.status == 413, r.status
    r = a.post(TOOLS, tool("bigger", "#" * ((1 << 20) + 1)))
    assert r.status == 413 and "1048576" in r.msg.replace(",", ""), r


def test_API_05_06_delimiters_and_line_ends(a):
    text = "EOF\n'EOF'\n\"EOF\"\n$(id)\n--\n"
    save(a, "py", f"x = {text!r}\r\nif True:\r\n    y = 1\r\nreturn [x, y]\r\n")
    assert run(a, "py").data["result"] == [text, 1]
    save(a, "js", f"const x = {json.dumps(text)};\r\nreturn x;\r\n", language="javascript")
    assert run(a, "js").data["result"] == text
    save(a, "bom", "\ufeffreturn 1")
    assert run(a, "bom").data["result"] == 1


def test_what_fails_says_so(a):
    """HTTP 200 with success false; error, reason and exit code are there, and the errors' text."""
    save(a, "fails", "import sys; print('said', file=sys.stderr); raise ValueError('why')")
    save(a, "exits", "import sys; sys.stderr.write('bye'); sys.exit(3)")
    save(a, "slow", "import time; time.sleep(60)")
    r = run(a, "fails").data
    assert not r["success"] and r["reason"] == "error" and "why" in r["error"] and "said" in r["stderr"], r
    r = run(a, "exits").data
    assert not r["success"] and r["exit_code"] == 3 and r["stderr"] == "bye", r
    r = a.post(RUN, {"name": "slow", "arguments": {}, "timeout": 1}).data
    assert not r["success"] and r["reason"] == "timeout" and r["result"] is None, r
    save(a, "dies", "import os; os.kill(os.getpid(), 9)")
    r = run(a, "dies").data
    assert not r["success"] and r["signal"] == 9 and r["error"], r
