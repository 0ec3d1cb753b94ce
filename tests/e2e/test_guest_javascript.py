"""The JavaScript guest with a bare interpreter, no sandbox: how snippets run."""

from __future__ import annotations

import re
import subprocess
import textwrap

import guest_driver
import pytest


@pytest.fixture
def run(tmp_path):
    def run(code, params=None, **more):
        return guest_driver.run_guest("javascript", tmp_path, textwrap.dedent(code), params, **more)

    return run


def bare(tmp_path, code, name="snippet.js"):
    """(stdout, stderr, status) of `node FILE`, with the file's folder written as the guest's is."""
    file = tmp_path / "bare" / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(code)
    done = subprocess.run(
        [*guest_driver.interpreter("javascript"), str(file)], capture_output=True, check=False, stdin=subprocess.DEVNULL
    )
    text = done.stderr.decode().replace(str(file.parent), str(tmp_path / "code"))
    return done.stdout.decode(), text, done.returncode


def without_frames(text):
    """Stack traces without the loader's and the wrapper's frames, which follow the snippet's own."""
    return re.sub(r"\n    at (?!f |g )[^\n]*", "", text)


def test_value_params_and_output(run):
    r = run("console.log('hi'); return {a: params.a, n: null}", {"a": [1, 2.5, "x", True]})
    assert r.value == {"a": [1, 2.5, "x", True], "n": None} and r.out == "hi\n" and r.err == ""


def test_runs_from_the_source_folder(run, monkeypatch):
    monkeypatch.setattr(guest_driver, "wrapper", lambda _: str(guest_driver.guest_folder() / "source/javascript.cjs"))
    assert run("return [params]", {"a": 1}).value == [{"a": 1}]


def test_no_return_is_null(run):
    for code in ("const x = 1", "", "// nothing", "return", "return undefined"):
        assert run(code).text == "null"


SCRIPTS = {
    "uncaught": "function f() {\n  throw new TypeError('bad')\n}\nf()\n",
    "syntax": "const a = 1;\nlet b = = 2;\n",
    "leave the wrapper": "} ; process.stdout.write('x'); process.exit(0); function x(){",
    "await is no name here": "const x = 1;\nconst await = 2;\nconsole.log(await)\n",
    "throw text": "throw 'text'\n",
    "rejected": "console.log('a'); Promise.reject(new Error('boom'))\n",
    "rejected later": "setTimeout(() => Promise.reject(new Error('boom')), 5)\n",
    "timer": "setTimeout(function f() { throw new Error('late') }, 5)\n",
    "exit": "console.log(1); process.exit(7)\n",
    "exit code": "process.exitCode = 5\n",
    "exit listener": "process.on('exit', (c) => console.log('exit', c)); console.log(1)\n",
    "handled": "process.on('uncaughtException', (e) => console.log(e.message)); throw new Error('x')\n",
    "unhandled listener": "process.on('unhandledRejection', (e) => console.log(e.message)); Promise.reject(new Error('x'))\n",
    "abort": "process.kill(process.pid, 'SIGTERM'); setTimeout(() => {}, 1000)\n",
    "order": (
        "process.nextTick(() => console.log('tick')); Promise.resolve().then(() => console.log('micro'));\n"
        "setImmediate(() => console.log('immediate')); console.log('main')\n"
    ),
    "warnings": "console.warn('careful'); console.log('fine'); process.emitWarning('w'); console.error('e')\n",
    "scope": (
        "var v = 1; function f() {}\nconsole.log(typeof globalThis.v, typeof globalThis.f, this === module.exports,\n"
        "require.main === module, module.id, __filename.slice(-11), process.argv.length, arguments.length)\n"
    ),
    "shebang": "#!/usr/bin/env node\nconsole.log(1)\n",
    "bom": "\ufeffconsole.log(1)\n",
    "strict": "'use strict';\nundeclared = 1\n",
    "sloppy": "undeclared = 1; console.log(undeclared, (function () { return this === globalThis })())\n",
    "exit 256": "process.exitCode = 256\n",
    "require itself": "module.exports = { a: 1 }; console.log(require(__filename), Object.keys(require.cache).length)\n",
    "loaded": "setImmediate(() => console.log(module.loaded)); console.log(module.loaded)\n",
    "thrown into": "function* g() { try { yield 1 } finally { } }\nconst i = g(); i.next()\ni.throw(new Error('x'))\n",
    "await inside": (
        "async function f() { for await (const x of [1]) console.log(x); await (2) }\nf()\n"
        "Promise.resolve().then(() => console.log('never')); throw new Error('first')\n"
    ),
    "captured": "process.setUncaughtExceptionCaptureCallback((e) => console.log(e.message)); throw new Error('x')\n",
    "html comment": "<!-- x\nconsole.log(1)\n",
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_as_bare_node(run, tmp_path, name):
    r = run(SCRIPTS[name])
    out, err, status = bare(tmp_path, SCRIPTS[name])
    pid = re.compile(r"\(node:\d+\)")
    assert r.out == out and r.status == status
    assert pid.sub("", without_frames(r.err)) == pid.sub("", without_frames(err))


def test_stack_begins_in_the_snippet(run, tmp_path):
    r = run("const x = 1;\nfunction f() { return new Error('e').stack }\nreturn f()")
    first, second = r.value.split("\n")[1:3]
    path = tmp_path / "code/snippet.js"
    assert first == f"    at f ({path}:2:23)" and second == f"    at Object.<anonymous> ({path}:3:8)"
    r = run("function f() { return new Error('e').stack }\nawait (1); return f()")
    assert r.value.split("\n")[1:3] == [f"    at f ({path}:1:23)", f"    at Object.<anonymous> ({path}:2:19)"]


def test_NOD_03_module(run, tmp_path):
    code = 'import { sep } from "node:path"; const v = await Promise.resolve(sep); console.log(v); export default [v]'
    r = run(code)
    assert r.out == "/\n" and r.value == ["/"]
    r = run("console.log(import.meta.filename); export const x = 1")
    assert r.out == f"{tmp_path}/code/snippet.mjs\n" and r.text == "null"
    assert run("export default import.meta.main").value is True
    r = run("import 'fs'; process.on('unhandledRejection', () => console.log('no')); throw 5")
    assert r.out == "" and r.status == 1 and r.error["message"] == "5"
    r = run("import 'fs'; process.on('uncaughtException', (e, o) => console.log(e, o)); throw 5")
    assert r.out == "5 unhandledRejection\n" and r.text == "null"
    assert run("export default async () => 1; export const y = await 2").text == "null"
    assert run("export default 1; require('node:path').sep; params.x = 2").value == 1
    assert run("return 1", name="explicit.mjs").status == 1
    assert run("export default typeof module", name="explicit.mjs").value == "undefined"


def test_NOD_04_require_and_await(run):
    assert run('const p = require("path"); console.log(await p.sep)').out == "/\n"
    assert run('const { sep } = await import("node:path"); return sep').value == "/"
    r = run("await (0); await import('node:path'); process.emitWarning('mine'); await import('node:os')")
    assert "mine" in r.err and "xperimental" not in r.err
    assert run('return import("node:path").then((p) => p.sep)').value == "/"
    assert run("for await (const x of [1, 2]) console.log(x)").out == "1\n2\n"
    assert run("await (async () => console.log(1))(); return 2").value == 2
    assert run("const f = async () => { await 1; return 5 }; return f()").value == 5
    assert run("#!/usr/bin/env node\nreturn await 5").value == 5
    r = run('"use strict"; await 1; undeclared = 1')
    assert r.status == 1 and "undeclared is not defined" in r.err


@pytest.mark.parametrize("code", ["import fs from 'fs';\nreturn 5", "export const x = 1;\nif (x) { return 5 }"])
def test_import_with_return_is_refused(run, code):
    r = run(code)
    assert r.status == 1 and r.error["type"] == "SyntaxError"
    assert "await import()" in r.error["message"] and "await import()" in r.err


@pytest.mark.parametrize(
    "code, line",
    [
        ("const a = 1;\nconst b = await f(;\n", 2),
        ("import fs from 'fs';\nconst = 5\n", 2),
        ("await (1);\n} ; evil(); (async function () {\n", 2),
        ("await (1); });\nprocess.exit(0); (async function () {\n", 1),
    ],
)
def test_syntax_errors_have_their_place(run, code, line):
    r = run(code)
    assert r.status == 1 and re.search(rf"snippet\.m?js:{line}\n", r.err), r.describe()
    assert r.error["type"] == "SyntaxError"


def test_NOD_06_never_settles(run):
    for code in (
        "await new Promise(() => {})",
        "return new Promise(() => {})",
        "import 'fs'; await new Promise(() => {})",
    ):
        r = run(code)
        assert r.status == 13 and "unsettled" in r.err and r.error["type"] == "UnsettledAwait"
    assert run("setTimeout(() => process.exit(0), 5); await new Promise(() => {})").value is None


def test_timers_after_the_result(run):
    r = run("setTimeout(() => console.log('late'), 50); return 1")
    assert r.value == 1 and r.out == "late\n"


def test_C18_late_error(run):
    code = """
    process.on('exit', () => { process.exitCode = 0 }); process.stdout.write = () => true; process.abort = () => {};
    setTimeout(() => { throw new Error('late') }, 10); return undefined;
    """
    r = run(code)
    assert r.status == 1 and "late" in r.err
    r = run("process.on('exit', () => { process.exitCode = 0 }); throw new Error('x')")
    assert r.status == 1 and r.error["message"] == "x"


def test_NOD_01_rejection_is_the_answer(run):
    r = run("Promise.reject(new Error('boom')); return 5")
    assert r.status == 1 and r.error == {"type": "Error", "message": "boom"}


def test_handled_errors(run):
    # The main code's own error is an uncaught one, whatever it waited for, as that of a module is to Node.js.
    r = run("process.on('unhandledRejection', (e) => console.log('no')); await (0); throw new Error('x')")
    assert r.out == "" and r.status == 1
    r = run("process.on('uncaughtException', (e) => console.log(e.message)); await (0); throw new Error('x')")
    assert r.out == "x\n" and r.value is None
    r = run("process.setUncaughtExceptionCaptureCallback((e) => console.log(e.message)); throw new Error('x')")
    assert r.out == "x\n" and r.value is None
    r = run("process.on('uncaughtException', (e) => console.log(e.message)); throw new Error('x')")
    assert r.out == "x\n" and r.value is None


def test_exit(run):
    assert run("process.exit(0)").text == "null"
    assert run("process.exit()").text == "null"
    r = run("process.exit(7)")
    assert r.status == 7 and r.error["message"] == "exit status 7"
    r = run("process.exitCode = 3; return 5")
    assert r.status == 3 and r.text == "5"
    assert run("process.reallyExit(0)").frames == []
    assert run("process.kill(process.pid, 'SIGKILL')").status == -9


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_output_is_complete(run, stream):
    r = run(f"process.{stream}.write('é'.repeat(1_500_000)); process.exit(0)")
    assert getattr(r, stream[3:]) == "é" * 1_500_000 and r.text == "null"
    r = run(f"for (let i = 0; i < 20000; i++) process.{stream}.write(i + '\\n'); throw new Error('end')")
    lines = getattr(r, stream[3:]).split("\n")
    assert lines[:20000] == [str(i) for i in range(20000)]


def test_order_of_parent_and_child_output(run):
    code = (
        "console.log('A'); require('child_process').execFileSync('echo', ['B'], {stdio: 'inherit'}); console.log('C')"
    )
    assert run(code).out == "A\nB\nC\n"


def test_descriptors_of_children(run):
    code = """
    const { execFileSync } = require('child_process');
    return execFileSync('ls', ['/proc/self/fd'], {encoding: 'utf8'}).trim().split('\\n').map(Number)
    """
    assert run(code).value == [0, 1, 2, 3]  # ls has its own folder open


def test_workers_and_children(run):
    code = """
    const { Worker, isMainThread, parentPort } = require('node:worker_threads');
    const { fork } = require('node:child_process');
    if (!isMainThread) { parentPort.postMessage('worker'); return }
    if (process.send) { process.send('child'); process.disconnect(); return }
    const got = [];
    await new Promise((done) => new Worker(__filename).on('message', (m) => got.push(m)).on('exit', done));
    await new Promise((done) => fork(__filename).on('message', (m) => got.push(m)).on('exit', done));
    return got
    """
    r = run("const run = async () => {" + code.replace("return }", "process.exit(0) }") + "}; return run()")
    assert r.value == ["worker", "child"], r.describe()


def test_modules_of_the_working_directory(run, tmp_path):
    work, sets = tmp_path / "work", tmp_path / "set/node_modules"
    for folder, value in ((work / "node_modules/here", "here"), (sets / "there", "there")):
        folder.mkdir(parents=True)
        (folder / "index.js").write_text(f"module.exports = '{value}'")
    (work / "local.js").write_text("module.exports = 'local'")
    (work / "local.mjs").write_text("export { default as sep } from 'path'; export default 'module'")
    env = {"NODE_PATH": str(sets)}
    assert run("return [require('here'), require('there'), require('./local')]", env=env).value == [
        "here",
        "there",
        "local",
    ]
    assert (
        run("return (await import('here')).default + (await import('./local.mjs')).default", env=env).value
        == "heremodule"
    )
    code = "import a from 'here'; import b from 'there'; import c from './local.mjs'; export default [a, b, c, require('./local')]"
    assert run(code, env=env).value == ["here", "there", "module", "local"]
    assert run("import 'nowhere'", env=env).status == 1


@pytest.mark.parametrize("text", ['{"type":"module"}', "{"])
def test_FS_18_package_json(run, tmp_path, text):
    (tmp_path / "work").mkdir()
    (tmp_path / "work/package.json").write_text(text)
    assert run('const p = require("path"); console.log(p.sep)').out == "/\n"
    assert run('import p from "path"; console.log(p.sep)').out == "/\n"
    assert run('const p = require("path"); console.log(await p.sep)').out == "/\n"


def test_params(run):
    text = b'{"big": 12345678901234567890123, "neg": -9007199254740993, "ok": 9007199254740991, "__proto__": {"x": 1}, "f": 1.5}'
    r = run("return [typeof params.big, typeof params.ok, params.x, Object.keys(params), params]", text)
    assert r.text == (
        '["bigint","number",null,["big","neg","ok","__proto__","f"],'
        '{"big":12345678901234567890123,"neg":-9007199254740993,"ok":9007199254740991,"__proto__":{"x":1},"f":1.5}]'
    )
    assert run("const params = 5; return params").value == 5
    assert run("export default params.a", {"a": "\u2028</script>"}).value == "\u2028</script>"


def test_RES_15_and_C16_tampering(run):
    assert run('JSON.stringify = () => "!"; return 5').value == 5
    code = """
    const fs = require('fs');
    JSON.stringify = JSON.parse = Object.keys = Array.isArray = Reflect.apply = () => '!';
    Array.prototype.join = Array.prototype.push = () => 'forged';
    for (const name of ['toString', 'slice', 'toWellFormed', 'replace']) String.prototype[name] = () => 'forged';
    Map.prototype.forEach = Set.prototype.forEach = Buffer.from = Buffer.alloc = null;
    fs.writeSync = fs.fstatSync = () => 0;
    globalThis.setImmediate = globalThis.Promise = undefined;
    Object.defineProperty(Object.prototype, 'success', { get: () => true, set() {} });
    const map = new Map([['k', new Set([1])]]);
    Array.prototype[Symbol.iterator] = null;
    return { a: [1, 'x', 2.5, null], map, b: new Uint8Array(2) }
    """
    assert run(code).text == '{"a":[1,"x",2.5,null],"map":{"k":[1]},"b":{"$bytes":"AAA="}}'
    code = """
    Object.prototype.toJSON = function () { return { success: true, result: 'forged' } };
    Array.prototype.join = () => 'forged'; JSON.stringify = () => '"forged"';
    throw new Error('boom');
    """
    r = run(code)
    assert r.status == 1 and r.error == {"type": "Error", "message": "boom"}


def test_closed_channel(run):
    r = run("require('fs').closeSync(3); return 1")
    assert r.frames == [] and r.status == 0


MAIN = {"mode": "function"}
NO_MAIN = "the code defines no function main: the outputs are what main(inputs) returns"
RETURNED = "a top-level return was reached: the outputs are what main returns"


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("'use strict'; function main(inputs) { return { sum: inputs.a + 1 } } // last", {"sum": 2}),
        ("const main = (p) => p.b", {"result": 10**30}),
        ("const x = await Promise.resolve(5); async function main() { return [x] }", {"result": [5]}),
        ("import p from 'path';\nfunction main() { return { s: p.sep, here: typeof $isle_main } }", {"s": "/", "here": "undefined"}),
        ("import p from 'path'; const f = () => p.sep; export { f as main }", {"result": "/"}),
        ("export default async ({ a }) => ({ a })", {"a": 1}),
        ("import 'fs'; export function main() { return 1 } export default 5", {"result": 1}),
        ("module.exports = { main: () => require('path').sep }", {"result": "/"}),
        ("if (params.a) main = () => this === module.exports", {"result": True}),
        ("#!/usr/bin/env node\nlet main = () => ({ then: (f) => f(6) })", {"result": 6}),
        ("const { main } = { main() { return arguments.length } }", {"result": 1}),
        ("params = 5; function main({ a }) { return a }", {"result": 1}),
    ],
)  # fmt: skip
def test_main_is_called(run, code, value):
    assert run(code, b'{"a": 1, "b": 1%030d}' % 0, **MAIN).value == value
    assert run(code, mode="check").value == {"errors": []}


def test_main_fails_in_its_own_place(run):
    for head, name in (("", "snippet.js"), ("await 1;", "snippet.js"), ("import 'fs';", "snippet.mjs")):
        r = run(f"{head}\nfunction main(p) {{\n  throw new TypeError('bad')\n}}", **MAIN)
        assert r.error == {"type": "TypeError", "message": "bad"} and f"/{name}:3:9)\n" in r.err, r.err
    r = run("async function main(p) {\n  await 1; p.a.b\n}", **MAIN)
    assert r.error["type"] == "TypeError" and "/snippet.js:2:16)" in r.err
    r = run("async function main(p) { await new Promise(() => {}) }", **MAIN)
    assert r.error["type"] == "UnsettledAwait" and r.status == 13
    r = run("function main(p) { return 1 }\nif (params.a) return", {"a": 1}, **MAIN)
    assert (r.status, r.err, r.error) == (1, RETURNED + "\n", {"type": "", "message": RETURNED})
    assert run("await 1; function main(p) { return 1 }\nreturn 5", **MAIN).error["message"] == RETURNED
    r = run("process.on('exit', () => { process.exitCode = 0 }); const main = 1", **MAIN)
    assert r.error["message"] == "main is no function: it is of type number"


ENDED_EARLY = "the program ended before main returned: the outputs are what main returns"


@pytest.mark.parametrize(
    "code",
    [
        "function main() { process.exit(0) }",
        "process.exit(); function main() { return 1 }",
        "const main = () => new Promise(() => setTimeout(() => process.exit(0), 5))",
        "import p from 'process'; export function main() { p.exit(256) }",
        "process.on('exit', () => { process.exitCode = 0 }); function main() { process.exit(0) }",
    ],
)
def test_main_that_does_not_return(run, code):
    """What ends well without main's value has no outputs: that is no success with null ones."""
    r = run(code, **MAIN)
    assert r.error == {"type": "", "message": ENDED_EARLY} and r.err.endswith(ENDED_EARLY + "\n"), r


@pytest.mark.parametrize(
    "code",
    [
        "const x = 1",
        "// main\nlet a = b.main; main()",
        "class A { main() {} }",
        "console.log('ran'); await 1",
        "console.log('ran');\nimport './not-there.js'; const x = main",
        pytest.param("// " + "function " * 100_000, id="long"),
        "import { other } from 'fs'; console.log(import.meta.main)",
    ],
)
def test_no_main(run, code):
    r = run(code, mode="check")
    assert (r.value, r.out, r.err) == ({"errors": [{"message": NO_MAIN, "line": None}]}, "", "")


def test_no_main_when_run(run):
    for code in ("const x = 1", "await 1", "import 'fs'"):
        r = run(code, **MAIN)
        assert (r.status, r.err, r.error) == (1, NO_MAIN + "\n", {"type": "", "message": NO_MAIN}), code


@pytest.mark.parametrize(
    "code",
    [
        "if (params) { function main() {} }",
        "[main] = [() => 1]",
        "main ??= () => 1",
        "Object.assign(exports, { ['ma' + 'in']: () => 1 })",
        "eval('var main = () => 1')",
        "globalThis['ma' + 'in'] = () => 1",
        "const m = module; m['exp' + 'orts'] = { ['ma' + 'in']: () => 1 }",
        "arguments[0]['ma' + 'in'] = () => 1",
        "[].constructor.constructor(`this['ma' + 'in'] = () => 1`)()",
        "require.main['exp' + 'orts'] = { ['ma' + 'in']: () => 1 }",
        "m\\u0061in = () => 1",
        "export * from './other.js'",
        "import { main } from './other.js'",
        "console.log('ran'); export const main = () => 1",
        "console.log('ran'); const x = await 1; async function main() {}",
    ],
)
def test_nothing_is_said_against(run, code):
    r = run(code, mode="check")
    assert (r.value, r.out, r.err) == ({"errors": []}, "", "")


@pytest.mark.parametrize(
    ("code", "message", "line"),
    [
        ("\nfunction main( {", "Unexpected end of input", 2),
        ("await 1;\nfunction main() { return 1 + ; }", "Unexpected token ';'", 2),
        ("\n\nimport 'fs'; let a; let a;", "Identifier 'a' has already been declared", 3),
        ("function main() {}\nimport 'fs'; return 1", "Illegal return statement", 2),
        ("if (1)", "Unexpected end of input", 1),
        ("import 'fs';\nif (1)", "Unexpected end of input", 2),
    ],
)
def test_syntax_is_told(run, code, message, line):
    assert run(code, mode="check").value == {"errors": [{"message": f"SyntaxError: {message}", "line": line}]}


def test_code_that_is_too_deep(run):
    """The engine names a place of its own, which is no line of the code."""
    for code in ("[" * 200_000, "await (" * 30_000):
        text = "RangeError: Maximum call stack size exceeded"
        assert run(code, mode="check").value == {"errors": [{"message": text, "line": None}]}
