"""Group C: attacks on the result of a snippet."""

from __future__ import annotations

import pytest
from payload import FOLDER, attack

# A whole frame with the value 1, and how to send another.
FORGED = """
let seq = 0;
function send(text) {
  const frame = Buffer.alloc(20 + text.length);
  [0x4c534931, 32, 1, ++seq, text.length].forEach((n, i) => frame.writeUInt32LE(n, 4 * i));
  frame.write(text, 20);
  require("fs").writeSync(3, frame);
}
send("1");
"""
LANGUAGE = {"py": "python", "js": "javascript"}


def snippet(isle, name, *options, **kw):
    path = FOLDER / name
    return isle.job("-l", LANGUAGE[path.suffix[1:]], *options, str(path), **kw)


def test_C01(isle):
    r = snippet(isle, "C01.snippet.py")
    assert r.reason == "error" and r.result["exit_code"] == 3 and r.result["result"] is None
    assert r.lines == ['__RESULT__{"success": true, "result": "forged", "logs": []}__END__']


def test_C03(isle):
    """The frame socket is not among the numbers that it tries."""
    r = snippet(isle, "C03.snippet.py")
    assert r.reason == "ok" and r.result["result"] == "real", r.result


def test_C03_with_the_right_number(isle, tmp_path):
    text = (FOLDER / "C03.snippet.py").read_text()
    path = tmp_path / "c03.py"
    path.write_text(text.replace("range(3,64)", "range(3,1024)"))
    r = isle.job(str(path))
    assert r.reason == "error", r.result
    assert r.result["result"] is None and "malformed result" in r.result["error"]


def test_C03_javascript(isle):
    """There the number is known: a value may be forged, which is the job's own, and nothing else."""
    garbage = "for (const b of ['forged', '\\0'.repeat(65536), 'A'.repeat(3000000)]) require('fs').writeSync(3, b)"
    r = isle.js(f"{garbage}; return 'real'")
    assert r.reason == "error" and r.result["result"] is None and "malformed result" in r.result["error"], r.result
    r = isle.js(FORGED + "process.exitCode = 3")
    assert r.reason == "error" and r.result["exit_code"] == 3 and r.result["result"] is None, r.result
    r = isle.js(FORGED + "send('2'); return 'real'")
    assert r.reason == "error" and r.result["result"] is None and "malformed result" in r.result["error"], r.result


def test_C04(isle):
    r = snippet(isle, "C04.snippet.py")
    assert r.reason == "error" and r.result["signal"] == 9 and r.result["result"] is None
    r = isle.js(FORGED + "process.kill(process.pid, 'SIGKILL')")
    assert r.reason == "error" and r.result["signal"] == 9 and r.result["result"] is None


def test_C05(isle):
    def value(n):
        return snippet(isle, "C05.snippet.py", "--env", f"N={n}")

    assert value(0).result["result"] == "[" * 200000 + "]" * 200000
    assert value(1).result["result"] == {"a": {"b": None, "c": None}}
    assert value(2).result["result"] == 10**5000
    assert value(3).result["result"] == "\ufffd"
    assert value(4).result["result"] == {"__proto__": {"isAdmin": True}, "constructor": 1}
    assert value(5).result["result"] == "\u2028</script><script>alert(1)</script>"


def test_C05_javascript(isle):
    code = """
return ["[".repeat(200000) + "]".repeat(200000), {a: {b: Infinity, c: NaN}}, 10n ** 5000n, "\\ud800",
        JSON.parse('{"__proto__":{"isAdmin":true},"constructor":1}'), "\\u2028</script><script>alert(1)</script>"]
"""
    assert isle.js(code).result["result"] == [
        "[" * 200000 + "]" * 200000,
        {"a": {"b": None, "c": None}},
        10**5000,
        "\ufffd",
        {"__proto__": {"isAdmin": True}, "constructor": 1},
        "\u2028</script><script>alert(1)</script>",
    ]


def test_C06(isle):
    for r in (
        snippet(isle, "C06.snippet.py"),
        isle.js("let v = []; for (let i = 0; i < 100000; i++) v = [v]; return v"),
    ):
        assert r.reason == "error" and r.status == 1 and r.result["result"] is None, r.result
        assert "64 levels" in r.result["error"], r.result


def test_C07(isle):
    r = snippet(isle, "C07.snippet.py", within=40)
    assert r.reason in ("result_too_large", "memory_limit", "error"), r.reason
    assert r.result["result"] is None and r.result["success"] is False


def test_C07_within_the_jobs_memory(isle):
    r = snippet(isle, "C07.snippet.py", "--memory", "2048", within=60)
    assert r.reason == "result_too_large", r.result
    r = isle.js('return "x".repeat(300 << 20)', "--memory", "2048", within=60)
    assert r.reason == "result_too_large", r.result


def test_C08(isle):
    r = snippet(isle, "C08.snippet.py")
    assert r.reason == "error" and r.status == 1 and r.result["result"] is None
    assert "boom" in r.result["error"]


def test_C09(isle):
    r = snippet(isle, "C09.snippet.py", "--timeout", "5")
    assert r.reason in ("error", "timeout"), r.result
    assert r.result["result"] is None and "unpickled" not in r.stdout


def test_C10(isle):
    """The file itself has carriage returns as line ends; so has the snippet."""
    r = snippet(isle, "C10.snippet.py")
    assert r.reason == "error" and r.result["result"] is None, r.result


def test_C11(isle):
    r = snippet(isle, "C11.snippet.js")
    assert r.reason == "error" and "SyntaxError" in r.stderr, r.result
    assert r.stdout == ""


def test_C12(isle):
    text = (
        '{"a":"\'\'\'\\"\\"\\"","b":"\\u2028\\u2029","c":"</script>","e":"$(id) `id`",'
        '"f":"\\u0000","__proto__":{"x":1},"g":"{{7*7}}"}'
    )
    want = {
        "a": "'''\"\"\"",
        "b": "\u2028\u2029",
        "c": "</script>",
        "e": "$(id) `id`",
        "f": "\x00",
        "__proto__": {"x": 1},
        "g": "{{7*7}}",
    }
    for run in (isle.python, isle.js):
        r = run("return params", "--params", text)
        assert r.result["result"] == want, r.result
    r = isle.run("-l", "javascript", "-c", "return params", "--params", '{"d":"\\ud83d"}')
    assert r.status == 125 and b"surrogate" in r.err, r.err


def test_C16(isle):
    r = snippet(isle, "C16.snippet.js")
    assert r.reason == "error" and r.status == 1 and r.result["result"] is None
    assert "boom" in r.result["error"] + r.stderr


def test_C17(isle):
    r = snippet(isle, "C17.snippet.js", "--timeout", "2")
    assert r.reason == "timeout", r.result


def test_C18(isle):
    r = snippet(isle, "C18.snippet.js")
    assert r.result["result"] is None and r.reason == "error" and r.status == 1, r.result
    assert r.result["exit_code"] == 1 and "Error: late" in r.stderr, r.result


def test_C19(isle):
    """The product never counts on limits inside the language: whatever works here is harmless."""
    r = attack(isle, "C19.js")
    assert r.reason == "ok" and r.lines[-1].startswith(("[", "  ", "]")), r.result


@pytest.mark.parametrize("name", ["C08.snippet.py", "C16.snippet.js"])
def test_the_error_is_kept_without_json(isle, name):
    path = FOLDER / name
    r = isle.run("-l", LANGUAGE[path.suffix[1:]], str(path))
    assert r.status == 1 and b"boom" in r.err and b"forged" not in r.out
