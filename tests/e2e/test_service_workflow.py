"""The workflow's code node: main is called, what it returns is held against what is declared, digits are untouched."""

from __future__ import annotations

import json
import os
import re
import subprocess

import harness
import pytest
from service import API, JOBS

NODE = f"{API}/workflow/code-node"
CHECK = f"{NODE}:validate"
MEMBERS = {"outputs", "error", "logs", "success", "reason", "job_id", "duration_ms", "undeclared", "stderr"}
ECHO = {"python": "def main(inputs): return inputs", "javascript": "function main(inputs) { return inputs }"}
LANGUAGES = tuple(ECHO)


def run(service, code: str, inputs=None, outputs=None, language: str = "python", **fields) -> dict:
    node = {"language": language, "code": code, "inputs": inputs, "outputs": outputs, **fields}
    r = service.post(NODE, {k: v for k, v in node.items() if v is not None}).data
    assert set(r) == MEMBERS and r["success"] == (r["error"] is None) == (r["reason"] == "ok"), r
    assert (r["outputs"] is not None) == r["success"] and type(r["duration_ms"]) is int, r
    return r


def named(**types) -> list:
    return [{"name": name, "type": type_} for name, type_ in types.items()]


def check(service, code="def main(): return 1", language="python", **fields) -> list:
    r = service.post(CHECK, {"language": language, "code": code, **fields}).data
    assert set(r) == {"valid", "errors"} and r["valid"] == (not r["errors"]), r
    assert all(set(e) == {"field", "message", "line"} for e in r["errors"]), r
    return [(e["field"], e["message"]) for e in r["errors"]]


def test_main_is_called(service):
    code = "print('here')\ndef main(inputs):\n    print('there')\n    return {'sum': sum(inputs['xs']), 'more': 1}"
    r = run(service, code, {"xs": [1, 2, 4]}, named(sum="integer"))
    assert (r["outputs"], r["undeclared"], r["logs"]) == ({"sum": 7}, ["more"], "here\nthere")
    job = service.job(r["job_id"])
    assert job["result"] == {"sum": 7, "more": 1} and job["success"]
    # a list of inputs is the same; nothing declared: all is passed on
    r = run(service, code, [{"name": "xs", "value": [1]}])
    assert (r["outputs"], r["undeclared"]) == ({"sum": 1, "more": 1}, [])
    code = "import path from 'node:path';\nexport default async ({ p }) => path.dirname(p)"
    r = run(service, code, {"p": "/a/b"}, named(result="string"), "javascript")
    assert (r["outputs"], r["logs"]) == ({"result": "/a"}, None)


def test_digits_as_they_came(service):
    for language in LANGUAGES:
        code = ECHO[language].replace("'", '"')
        body = '{"language": "%s", "code": "%s", "inputs": {"n": 12345678901234567890, "f": 1.5, "s": "1.10"}}'
        a = service.post(NODE, body=(body % (language, code)).encode(), headers={"Content-Type": "application/json"})
        assert b'"outputs":{"n":12345678901234567890,"f":1.5,"s":"1.10"}' in a.body, a.body
    r = run(service, "def main(): return {'n': 10**40}", outputs=named(n="integer"))
    assert r["outputs"] == {"n": 10**40}


def test_mismatches_are_named(service):
    code = "def main(p): return p"
    spec = {"items": {"properties": {"price": "number", "n": "integer"}, "required": ["price"]}}
    declared = [
        {"name": "rows", "type": "array[object]", "typeSpec": spec},
        *named(t="string", flag="boolean", gone="any"),
    ]
    rows = [{"price": 1}, {"price": 2.5, "n": 1.5}, {}, {"price": "x"}]
    r = run(service, code, {"rows": rows, "t": None, "flag": 1, "more": 2}, declared)
    assert r["reason"] == "error" and r["error"].split("; ") == [
        "outputs.rows[1].n: integer expected, got number 1.5",
        "outputs.rows[2].price: is missing",
        "outputs.rows[3].price: number expected, got string",
        "outputs.t: string expected, got null",
        "outputs.flag: boolean expected, got number",
        "outputs.gone: is missing",
    ]
    assert service.job(r["job_id"])["success"], "the job itself did what it should"
    r = run(service, code, {"xs": ["a"] * 30}, named(xs="array[number]"))
    assert r["error"].count("number expected") == 20 and r["error"].endswith("; and more")


def test_how_it_fails(service):
    r = run(service, "x = 1")
    assert r["reason"] == "error" and r["error"].startswith("the code defines no function main"), r
    r = run(service, "def main(p):\n    print('so far')\n    return 1 / p['n']", {"n": 0})
    assert (r["error"], r["logs"]) == ("ZeroDivisionError: division by zero", "so far")
    assert "File \"/code/snippet.py\", line 3, in main\n    return 1 / p['n']" in r["stderr"]
    r = run(service, "function main() {\n  throw new TypeError('bad')\n}", language="javascript")
    assert r["error"] == "TypeError: bad" and "at main (/code/snippet.js:2:9)" in r["stderr"]
    r = run(service, "def main():\n    while True: pass", timeout=1)
    assert r["reason"] == "timeout" and "(1.0s)" in r["error"], r


def test_a_large_value(service):
    r = run(service, "def main(p): return {'t': p['t'], 'n': [1] * 100000}", {"t": "x" * 300000}, named(t="string"))
    assert len(r["outputs"]["t"]) == 300000 and r["undeclared"] == ["n"]
    r = run(service, "def main(p): return ['x' * 1000] * 1000", outputs=named(result="array[number]"))
    assert r["error"].startswith("outputs.result[0]: number expected, got string; ")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"inputs": 5}, "inputs: must be an object or a list of {name, value}, not 5"),
        ({"inputs": [{"name": "a", "value": 1}, {"name": "a", "value": 2}]}, 'inputs[1].name: "a" is there twice'),
        ({"inputs": [{"name": "a"}]}, "inputs[0].value: is missing"),
        ({"outputs": named(a="text")}, 'outputs[0].type: must be string, number'),
        ({"outputs": named(a="any") * 2}, 'outputs[1].name: "a" is declared twice'),
        ({"outputs": [{"name": "a", "type": "array[string]", "typeSpec": {"items": "number"}}]},
         'outputs[0].typeSpec.items: must be string, as is said around it, not "number"'),
        ({"limits": {"timeout_seconds": 61}}, "limits.timeout_seconds: above the maximum of 60 s"),
        ({"timeout": 0}, "timeout: 0 is below the minimum of 1"),
        ({"entry": "main"}, "entry: unknown field"),
    ],
)  # fmt: skip
def test_refused(service, fields, said):
    node = {"language": "python", "code": ECHO["python"], **fields}
    a = service.post(NODE, node)
    assert (a.status, a.code) == (422, 1001) and said in a.msg, a.msg
    if fields != {"inputs": [{"name": "a"}]}:  # a workflow that is drawn has no values yet
        field, _, message = said.partition(": ")
        found = check(service, **node)
        assert len(found) == 1 and found[0][0] == field and message in found[0][1], found


def test_entry_is_not_a_jobs(service):
    a = service.post(JOBS, {"language": "python", "code": "def main(): return 1", "entry": "main"})
    assert a.status == 422 and "entry: unknown field" in a.msg
    for path in (NODE, CHECK):
        a = service.post(path, [])
        assert a.status == 422 and "body: must be an object" in a.msg
    assert service.get(NODE).status == 405 and service.post(f"{NODE}:other", {}).status == 404


def test_checked_without_running(service):
    for language in LANGUAGES:
        assert check(service, ECHO[language], language) == []
        [(field, message)] = check(service, "x = 1", language)
        assert field == "code" and message.startswith("the code defines no function main")
    ran = "raise SystemExit('ran')\ndef main(): return 1"
    assert check(service, ran) == []
    r = service.post(CHECK, {"language": "python", "code": "def main():\n    return (1"}).data
    assert r["errors"] == [{"field": "code", "message": "SyntaxError: '(' was never closed", "line": 2}]
    r = service.post(CHECK, {"language": "javascript", "code": "\nfunction main() { return 1 +; }"}).data
    assert r["errors"] == [{"field": "code", "message": "SyntaxError: Unexpected token ';'", "line": 2}]
    # everything at once; what stands beside the code is no reason not to read it
    two = [{"name": "a"}, {"name": "a"}]
    found = check(service, "x = 1", inputs=two, outputs=named(a="text"), timeout=90, more=1)
    assert [field for field, _ in found] == ["timeout", "more", "inputs[1].name", "outputs[0].type", "code"]
    found = check(service, 5, "ruby")
    assert [field for field, _ in found] == ["language", "code"]
    found = check(service, "", "python")
    assert [field for field, _ in found] == ["code"]
    # a path may have names in quotes, and any text in them
    spec = {"properties": {'a: "b': "text", "a\\": "text"}}
    found = check(service, outputs=[{"name": "o", "type": "object", "typeSpec": spec}])
    at = "outputs[0].typeSpec.properties"
    assert [field for field, _ in found] == [f'{at}["a: \\"b"]', f'{at}["a\\\\"]'], found
    assert [field for field, _ in check(service, **{'a"b': 1})] == ['a\\"b']
    assert [field for field, _ in check(service, **{"a: b": 1})] == ["a: b"]
    assert [field for field, _ in check(service, limits={"a: b": 1})] == ["limits.a: b"]
    long = 'a: "' * 100  # a name that is cut
    spec = {"properties": {long: "text"}}
    [(field, message)] = check(service, outputs=[{"name": "o", "type": "object", "typeSpec": spec}])
    assert field.startswith(f'{at}["a: \\"a: ') and message.startswith("must be string"), (field, message)
    # what only this host refuses
    more = {"cpus": os.cpu_count() + 1}
    [(field, message)] = check(service, limits=more)
    a = service.post(NODE, {"language": "python", "code": ECHO["python"], "limits": more})
    assert a.status == 422 and a.msg == f"{field}: {message}" and field == "limits.cpus"
    assert service.post(CHECK, {}).data["errors"][0] == {"field": "language", "message": "is missing", "line": None}


# ---- What is written down for readers


def shell(service, script: str, cwd) -> str:
    env = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "ISLE_URL": f"http://127.0.0.1:{service.port}"}
    words = ["bash", "-euo", "pipefail", "-c", script]
    r = subprocess.run(words, env=env, cwd=cwd, capture_output=True, text=True, timeout=60 * harness.SLOW, check=False)
    assert (r.returncode, r.stderr) == (0, ""), (r.stdout, r.stderr)
    return r.stdout


def test_what_the_guide_shows(service, tmp_path):
    text = (harness.ROOT / "docs/workflow.md").read_text()
    pairs = re.findall(r"^```sh\n(.*?)^```\n(?:\n```json\n(.*?)^```\n)?", text, re.S | re.M)
    assert len(pairs) == 6
    for script, shown in pairs:
        said = shell(service, script, tmp_path)
        if shown:
            changing = {"job_id": "", "duration_ms": 0}
            got, expected = json.loads(said)["data"], json.loads(shown)
            assert list(got) == list(expected)
            assert got | changing == expected | changing


def test_the_example(service, tmp_path):
    said = shell(service, f"python3 {harness.ROOT}/examples/service/workflow.py", tmp_path)
    assert said == "parse says: 2 rows\n11.50 in all, most of it for melon\n"
