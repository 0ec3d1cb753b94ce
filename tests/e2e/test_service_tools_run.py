"""Code tools that are called, and what a model is told of them."""

from __future__ import annotations

import concurrent.futures
import contextlib
import json
import os
import re
import signal
import socket
import time
import uuid
from collections.abc import Iterator

import harness
import jsonschema_rs
import pytest
from service import JOBS, SESSIONS, Answer, Client, Service, dumps, serving
from tool_teams import TOOLS, save

SLOW = harness.SLOW
RUN = f"{TOOLS}/execute"
SCHEMAS = f"{TOOLS}/schemas"
BOUND = 5  # seconds of STREAM_TOOL_TIMEOUT_CODE, where calls are bounded
BUILT_IN = ["bash", "read", "write", "edit", "artifact", "run_python", "run_javascript"]
SERVICE_SETTINGS = {"SANDBOX_WORKER_CONCURRENCY": "2"}
pytestmark = pytest.mark.usefixtures("emptied")


@pytest.fixture(scope="module")
def bounded() -> Iterator[Client]:
    """A team of another one, where calls have little time."""
    with serving({"STREAM_TOOL_TIMEOUT_CODE": str(BOUND), "SANDBOX_WORKER_CONCURRENCY": "2"}) as s:
        with s.client(s.new_key("red")) as c:
            yield c


def run(c: Client, name: str, arguments: object = None, **fields: object) -> dict:
    given = {} if arguments is None else {"arguments": arguments}
    return c.post(RUN, {"name": name, **given, **fields}).data


def parameter(name: str, kind: str, **fields: object) -> dict:
    return {"name": name, "type": kind, **fields}


# ---- Calls


def test_a_call_answers_as_execute_code_and_names_the_tool(red: Client):
    tool = save(
        red,
        "add",
        "print('adds'); return params['a'] + params['b']",
        parameter("a", "integer", required=True),
        parameter("b", "integer", default=5),
    )
    r = run(red, "add", {"a": 2})
    plain = red.python("return 1")
    assert set(r) == set(plain) | {"tool"}
    assert (r["success"], r["result"], r["logs"]) == (True, 7, "adds")
    assert r["tool"] == {"id": tool["id"], "name": "add", "version": 1}
    assert red.post(RUN, {"tool_id": tool["id"], "arguments": {"a": 1, "b": None}}).data["result"] == 6
    assert red.job(r["job_id"])["result"] == 7
    failed = save(red, "fails", "raise ValueError('no')")
    r = red.post(RUN, {"tool_id": failed["id"]}).data
    assert (r["success"], r["reason"]) == (False, "error") and "ValueError" in r["error"]
    assert "fails.py" in r["stderr"]  # a traceback names the tool


def test_a_javascript_tool_leaves_artifacts_in_a_session(red: Client):
    save(
        red,
        "leave",
        "require('fs').writeFileSync('a.txt', params.text); return process.env.MODE",
        parameter("text", "string", required=True, enum=["x", "y"]),
        language="javascript",
        config={"artifacts": ["a.txt"], "env": {"MODE": "tool"}},
    )
    session = red.post(SESSIONS, {}).data["session_id"]
    r = run(red, "leave", {"text": "y"}, session_id=session)
    assert r["result"] == "tool" and r["artifacts"][0]["filename"] == "a.txt"
    assert red.get(r["artifacts"][0]["url"]).body == b"y"
    assert red.get(f"{SESSIONS}/{session}/files/a.txt").body == b"y"
    a = red.post(RUN, {"name": "leave", "arguments": {"text": "x"}, "session_id": str(uuid.uuid4())})
    assert a.status == 404, a
    assert red.call("DELETE", f"{SESSIONS}/{session}").status == 200


def test_API_03_awkward_parameter_names(red: Client):
    names = ["class", "user-id", "with space", "__proto__", "名", 'a"b', "x" * 64]
    for language in ("python", "javascript"):
        code = {"python": "return params", "javascript": "return Object.fromEntries(Object.entries(params))"}[language]
        save(red, f"awkward_{language}", code, *(parameter(n, "object") for n in names), language=language)
        given = {n: {"i": i} for i, n in enumerate(names)}
        assert run(red, f"awkward_{language}", given)["result"] == given, language


def test_digits_pass_through_unchanged(red: Client):
    save(
        red,
        "digits",
        "return [repr(params['i']), repr(params['n']), len(str(params['big']))]",
        parameter("i", "integer"),
        parameter("n", "number"),
        parameter("big", "integer", default=10**400),
    )
    body = b'{"name":"digits","arguments":{"i":123456789012345678901234567890,"n":0.10}}'
    r = red.call("POST", RUN, body=body, headers={"Content-Type": "application/json"}).data
    assert r["result"] == ["123456789012345678901234567890", "0.1", 401]


def test_every_fault_of_the_arguments_is_named(red: Client):
    save(
        red,
        "strict",
        "return 1",
        parameter("n", "integer", required=True),
        parameter("how", "string", enum=["up", "down"]),
        parameter("list", "array", items={"type": "number"}),
    )
    a = red.post(RUN, {"name": "strict", "arguments": {"n": 1.5, "how": "left", "list": [1, "2"], "m": 1}})
    assert (a.status, a.code) == (422, 1001)
    assert a.msg == (
        "arguments.n: must be an integer, written without fraction and exponent, not 1.5; "
        'arguments.how: "left" is none of "up", "down"; arguments.list[1]: must be a number, not "2"; '
        "arguments.m: the tool has no such parameter (value 1); is n meant?"
    )
    assert red.post(RUN, {"name": "strict"}).msg == "arguments.n: is missing"
    assert red.post(RUN, {"name": "strict", "arguments": []}).status == 422
    assert red.post(RUN, {}).msg == "name: is missing: this or tool_id"
    assert red.post(RUN, {"name": "strict", "tool_id": str(uuid.uuid4())}).status == 422
    assert red.post(RUN, {"name": "strict", "timeout": 0}).status == 422


def test_arguments_of_megabytes(red: Client):
    save(red, "long", "return len(params['text'])", parameter("text", "string", required=True))
    assert run(red, "long", {"text": "x" * (3 * 2**20)})["result"] == 3 * 2**20
    a = red.post(RUN, {"name": "long", "arguments": {"text": "x" * (8 * 2**20)}})
    assert (a.status, a.msg) == (413, f"arguments: above the maximum of {8 * 2**20} bytes")


def test_what_may_not_be_run_is_refused_by_name(red: Client, blue: Client):
    tool = save(red, "mine", "return 1")
    for wanted in ({"name": "mine"}, {"tool_id": tool["id"]}, {"name": "none"}):
        assert (blue.post(RUN, wanted).status, blue.post(RUN, wanted).code) == (404, 4000)
    assert "sessions/{id}/tools/bash" in blue.post(RUN, {"name": "bash"}).msg  # and not there
    assert "execute-code" in blue.post(RUN, {"name": "run_python"}).msg
    share = f"{TOOLS}/{tool['id']}/share"
    assert red.post(share, {"team_id": "blue", "permission": "read_only"}).status in (200, 201)
    a = blue.post(RUN, {"name": "mine"})
    assert a.status == 403 and "read_execute" in a.msg, a
    assert red.post(share, {"team_id": "blue", "permission": "read_execute"}).status in (200, 201)
    assert run(blue, "mine")["result"] == 1
    assert run(blue, "mine")["tool"]["id"] == tool["id"]
    own = save(blue, "mine", "return 2")  # a team's own comes first
    assert run(blue, "mine")["tool"]["id"] == own["id"]
    assert blue.post(RUN, {"tool_id": tool["id"]}).data["result"] == 1
    assert red.post(f"{TOOLS}/{tool['id']}/toggle").data["is_enabled"] is False
    for c, wanted in ((red, {"name": "mine"}), (blue, {"tool_id": tool["id"]})):
        a = c.post(RUN, wanted)
        assert a.status == 403 and "disabled" in a.msg, a


def test_packages_are_stored_and_refused_when_run(red: Client):
    save(red, "old", "return 1", config={"dependencies": [{"name": "numpy", "version": "2.1.0"}]})
    a = red.post(RUN, {"name": "old"})
    told = 'tool old: code_config.python_packages: "numpy==2.1.0": this version installs no packages'
    assert a.status == 422 and a.msg.startswith(told), a
    save(red, "pads", "return 1", language="javascript", config={"js_packages": ["left-pad@1.3.0"]})
    a = red.post(RUN, {"name": "pads"})
    told = 'tool pads: code_config.js_packages: "left-pad@1.3.0": this version installs no packages'
    assert a.status == 422 and a.msg.startswith(told), a


def test_what_this_host_does_not_give_a_tool(red: Client):
    """It is told as the tool's, whose caller has sent none of it; a limit above the host's is the host's."""
    for name, config in (("sets", {"package_sets": ["science"]}), ("online", {"network": "host"})):
        save(red, name, "return 1", parameter("n", "integer"), config=config)
        a = red.post(RUN, {"name": name})
        assert a.status == 422 and a.msg.startswith(f"tool {name}: code_config.{next(iter(config))}: "), a
        a = red.post(RUN, {"name": name, "arguments": {"n": "x"}})
        assert a.status == 422 and a.msg.startswith("arguments.n: "), a
    save(red, "wide", "return 1", config={"limits": {"cpus": 1024}})
    assert run(red, "wide")["result"] == 1


def test_a_new_version_is_what_runs(red: Client):
    tool = save(red, "grows", "return 1")
    assert red.call("PUT", f"{TOOLS}/{tool['id']}", {"code_config": {"language": "python", "code": "return 2"}}).data
    r = run(red, "grows")
    assert (r["result"], r["tool"]["version"]) == (2, 2)


# ---- Time


def is_timeout(r: dict, took: float, why: str = "") -> bool:
    text = f"Tool call timeout ({BOUND}s){why}"
    assert (r["success"], r["reason"], r["error"]) == (False, "caller_timeout", text), r
    assert BOUND - 0.05 <= took < BOUND + 20 * SLOW, took
    return True


def test_a_call_ends_at_the_bound(bounded: Client):
    save(bounded, "slow", "import time; time.sleep(60)")
    began = time.monotonic()
    r = run(bounded, "slow", timeout=50)
    assert is_timeout(r, time.monotonic() - began)
    assert bounded.job(r["job_id"])["reason"] == "caller_timeout"


def test_the_wait_in_the_queue_is_part_of_it(bounded: Client):
    """Both workers are busy, and stay so: the call ends unstarted."""
    save(bounded, "quick", "return 1")
    busy = [bounded.submit({"command": ["sleep", "600"], "limits": {"timeout_seconds": 600}}) for _ in range(2)]
    assert harness.until(lambda: all(bounded.job(j)["status"] == "running" for j in busy), 20)
    began = time.monotonic()
    r = run(bounded, "quick")
    why = ": it waited for a free worker (SANDBOX_WORKER_CONCURRENCY), and was never started"
    assert is_timeout(r, time.monotonic() - began, why)
    metadata = bounded.job(r["job_id"])["metadata"]
    assert r["exit_code"] is None and (metadata["started_at"], metadata["stage"]) == (None, "queue"), metadata
    for j in busy:
        bounded.cancel(j)
        bounded.wait(j)
    assert run(bounded, "quick")["result"] == 1


def test_who_leaves_while_a_long_call_is_read(service: Service, red: Client):
    """It does not begin, or is cancelled at once: that its caller is gone may be heard of when it has been read."""
    save(
        red,
        "left_early",
        "import time; time.sleep(float(params['s']))",
        parameter("s", "string"),
        parameter("text", "string"),
    )
    arguments = {"s": "25", "text": "x" * (4 << 20)}
    body = json.dumps({"name": "left_early", "arguments": arguments}).encode()
    head = f"POST {RUN} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {red.key}\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", service.port), timeout=20 * SLOW) as s:
        s.sendall(head.encode() + body)
    stays = run(red, "left_early", arguments | {"s": "0"})  # bodies are read one after another
    assert stays["success"]

    def rows(event: str) -> dict[str, dict]:
        return {r["job"]: r for r in service.log_rows() if r["event"] == event}

    called = {job for job, r in rows("tool called").items() if r["name"] == "left_early"}
    assert stays["job_id"] in called and len(called) <= 2
    for left in called - {stays["job_id"]}:
        assert harness.until(lambda job=left: job in rows("job ended"), 20)
        assert rows("job ended")[left]["reason"] == "cancelled"


def test_a_call_is_answered_though_its_sandbox_hangs(bounded: Client):
    save(bounded, "hangs", "import time; time.sleep(60)")
    launcher = bounded.service.launcher_pid
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        began = time.monotonic()
        answer = pool.submit(run, bounded, "hangs")
        assert harness.until(bounded.service.one_shot, BOUND)
        os.kill(launcher, signal.SIGSTOP)
        try:
            r = answer.result(20 * SLOW)
        finally:
            os.kill(launcher, signal.SIGCONT)
        assert is_timeout(r, time.monotonic() - began)
    assert run(bounded, "hangs", timeout=1)["reason"] == "timeout"


def test_a_saved_time_limit_wins_over_the_callers(red: Client):
    save(red, "short", "import time; time.sleep(60)", config={"limits": {"timeout_seconds": 1}})
    r = run(red, "short", timeout=2)
    assert (r["reason"], r["error"]) == ("timeout", "Execution timeout (1.0s)"), r
    save(red, "long", "import time; time.sleep(1.5); return 'whole'", config={"limits": {"timeout_seconds": 600}})
    assert run(red, "long", timeout=1)["result"] == "whole"


def test_a_caller_that_leaves_ends_the_job(service: Service, red: Client):
    save(red, "waits", "import time; time.sleep(60)", parameter("text", "string"))
    before = len(red.get(f"{JOBS}?status=cancelled").data["items"])
    for size in (1, 1 << 20):  # a long one is read on a thread
        body = dumps({"name": "waits", "arguments": {"text": "x" * size}})
        head = f"POST {RUN} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {red.key}\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        with contextlib.closing(socket.create_connection(("127.0.0.1", service.port))) as s:
            s.sendall(head.encode() + body)
            assert harness.until(service.one_shot, 20)
        before += 1
        assert harness.until(lambda n=before: len(red.get(f"{JOBS}?status=cancelled").data["items"]) == n, 20), size


def test_many_calls_at_once(service: Service, red: Client):
    save(red, "echo", "return params['n']", parameter("n", "integer", required=True))

    def call(n: int) -> bool:
        with service.client(red.key) as c:
            return run(c, "echo", {"n": n})["result"] == n

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert all(pool.map(call, range(12)))


# ---- What models are told


def functions(c: Client, form: str, **query: object) -> dict[str, dict]:
    """By name: {name, description, schema, ...}, whatever the form calls them."""
    words = "".join(f"&{k}={v}" for k, v in query.items())
    data = c.get(f"{SCHEMAS}?format={form}{words}").data
    assert data["format"] == form
    found = []
    for t in data["tools"]:
        if form == "openai":
            assert set(t) == {"type", "function"} and t["type"] == "function"
            f = t["function"]
            assert set(f) == {"name", "description", "parameters"}
            found.append(f | {"schema": f["parameters"]})
        elif form == "anthropic":
            assert set(t) == {"name", "description", "input_schema"}
            found.append(t | {"schema": t["input_schema"]})
        else:
            assert set(t) - {"title"} == {"name", "description", "inputSchema"}
            found.append(t | {"schema": t["inputSchema"]})
    names = [f["name"] for f in found]
    assert names[: len(BUILT_IN)] == BUILT_IN and len(set(names)) == len(names)
    return {f["name"]: f for f in found}


def every_object(schema: object) -> Iterator[dict]:
    if isinstance(schema, dict):
        yield schema
        for v in schema.values():
            yield from every_object(v)
    elif isinstance(schema, list):
        for v in schema:
            yield from every_object(v)


@pytest.mark.parametrize("form", ["openai", "anthropic", "mcp"])
def test_schemas_are_what_each_consumer_takes(red: Client, form: str):
    save(
        red,
        "lookup",
        "return params",
        parameter("user_id", "integer", required=True, description="whose"),
        parameter("tags", "array", default=[]),
        parameter("how", "string", enum=["a", "b"], default="a", required=True),
        description="Looks up.",
        display_name="Look up",
    )
    found = functions(red, form)
    assert set(found) == {*BUILT_IN, "lookup"}
    for name, f in found.items():
        schema = f["schema"]
        assert jsonschema_rs.meta.is_valid(schema), schema
        assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name)
        assert f["description"] and (form != "openai" or len(f["description"]) <= 1024)
        assert (schema["type"], schema["additionalProperties"]) == ("object", False)
        assert set(schema["required"]) <= set(schema["properties"])
        assert all(re.fullmatch(r"[a-zA-Z0-9_.-]{1,64}", p) for p in schema["properties"])
        for part in every_object(schema):
            assert "$ref" not in part
            assert part.get("type") != "array" or "items" in part, part
    lookup = found["lookup"]
    assert lookup["description"] == "Looks up." and lookup.get("title", "Look up") == "Look up"
    assert lookup["schema"] == {
        "type": "object",
        "properties": {
            "user_id": {"type": "integer", "description": "whose"},
            "tags": {"type": "array", "default": [], "items": {}},
            "how": {"type": "string", "enum": ["a", "b"], "default": "a"},
        },
        "required": ["user_id"],
        "additionalProperties": False,
    }
    # what the service takes, the schema takes, and the other way round
    check = jsonschema_rs.Draft202012Validator(found["edit"]["schema"])
    assert check.is_valid({"path": "a", "edits": [{"op": "replace", "line": "1#ab3f", "new": "x"}]})
    assert not check.is_valid({"path": "a", "edits": [{"op": "cut", "lines": 1}]})
    assert not check.is_valid({"edits": []})
    code = jsonschema_rs.Draft202012Validator(found["run_python"]["schema"])
    assert code.is_valid({"code": "return 1", "params": {"a": 1}, "timeout": 5}) and not code.is_valid({"timeout": 5})


def test_what_is_among_the_schemas(red: Client, blue: Client):
    shared = save(red, "shared", "return 1")
    only_read = save(red, "only_read", "return 1")
    off = save(red, "off", "return 1", is_enabled=False)
    both = [save(c, "both", "return 1") for c in (red, blue)]
    for tool, permission in ((shared, "read_execute"), (only_read, "read_only"), (both[0], "read_execute")):
        body = {"team_id": "blue", "permission": permission}
        assert red.post(f"{TOOLS}/{tool['id']}/share", body).status in (200, 201)
    assert off["is_enabled"] is False
    assert set(functions(red, "openai")) == {*BUILT_IN, "shared", "only_read", "both"}
    assert set(functions(blue, "mcp")) == {*BUILT_IN, "both"}
    assert set(functions(blue, "mcp", shared="true")) == {*BUILT_IN, "both", "shared"}
    assert red.get(f"{SCHEMAS}?format=other").status == 422
    assert red.get(SCHEMAS).data["format"] == "openai"


def left_out(a: Answer) -> dict[str, str]:
    return {row["name"]: row["why"] for row in a.data["left_out"]}


def test_what_a_format_does_not_take_is_left_out_and_told(red: Client):
    """One name that its API refuses would refuse the whole request."""
    save(red, "n" * 65, "return 1", description="d" * 2000)
    save(red, "spaces", "return 1", parameter("with space", "string"), description="é" * 2000)
    assert set(left_out(red.get(f"{SCHEMAS}?format=openai"))) == {"n" * 65}
    assert set(left_out(red.get(f"{SCHEMAS}?format=anthropic"))) == {"spaces"}
    assert left_out(red.get(f"{SCHEMAS}?format=mcp")) == {}
    assert functions(red, "openai")["spaces"]["description"] == "é" * 1024
    assert functions(red, "anthropic")["n" * 65]["description"] == "d" * 2000


def test_many_and_long_tools(red: Client):
    """More than a page, and more than the loop reads itself."""
    names = [f"t{i:02}" for i in range(40)]
    for name in names:
        save(red, name, "#" * 20000 + "\nreturn 1")
    assert list(functions(red, "mcp"))[len(BUILT_IN) :] == names
    assert json.loads(json.dumps(functions(red, "openai")["t39"]))["schema"]["properties"] == {}
