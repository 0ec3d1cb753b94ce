"""`isle run`: output is bounded, kept at its head, cut between characters, never edited."""

from __future__ import annotations

import pytest

KEEP = 256 << 10
pytestmark = pytest.mark.usefixtures("host")


@pytest.mark.parametrize("before", [8191, 4095, 16383, 65535])
def test_OUT_03_character_across_two_reads(isle, before):
    code = f'import sys; sys.stdout.write("x" * {before} + "€" * 30000)'
    want = "x" * before + "€" * 30000
    assert isle.python(code).stdout == want
    assert isle.run("-l", "python", "-c", code).out.decode() == want
    code = f'process.stdout.write("x".repeat({before}) + "€".repeat(30000))'
    assert isle.js(code).stdout == want
    assert isle.run("-l", "javascript", "-c", code).out.decode() == want


@pytest.mark.parametrize(
    "language, code",
    [("python", "for i in range(300000): print(i)"), ("javascript", "for (let i = 0; i < 300000; i++) console.log(i)")],
)
def test_OUT_05_head_is_kept(isle, language, code):
    r = isle.job("-l", language, "-c", code)
    whole = "".join(f"{i}\n" for i in range(300000))
    assert r.reason == "ok" and r.status == 0
    assert r.stdout == whole[:KEEP]
    assert r.result["truncated"]["stdout"] is True
    assert r.result["usage"]["stdout_bytes"] == len(whole)


def test_OUT_05_exactly_full_is_not_truncated(isle):
    r = isle.sh(f"head -c {KEEP} /dev/zero | tr '\\0' a")
    assert len(r.stdout) == KEEP and r.result["truncated"]["stdout"] is False
    r = isle.sh(f"head -c {KEEP + 1} /dev/zero | tr '\\0' a")
    assert len(r.stdout) == KEEP and r.result["truncated"]["stdout"] is True


@pytest.mark.parametrize("shift", [0, 1, 2, 3])
def test_cut_between_characters(isle, shift):
    """The limit falls into a four-byte character at every place."""
    code = f"import sys; sys.stdout.write('a' * {shift} + '\\U0001F600' * 70000)"
    r = isle.python(code)
    body = r.stdout[shift:]
    assert r.stdout[:shift] == "a" * shift and set(body) == {"\U0001f600"}
    kept = len(r.stdout.encode())
    assert KEEP - 4 < kept <= KEEP
    live = isle.run("-l", "python", "-c", code).out
    assert live.decode() == r.stdout


def test_OUT_06_stderr_flood(isle):
    r = isle.python('import sys; sys.stderr.write("e" * 2_000_000); print("done")')
    assert r.reason == "ok" and r.stdout == "done\n"
    assert r.stderr == "e" * KEEP and r.result["truncated"]["stderr"] is True
    assert r.result["usage"]["stderr_bytes"] == 2_000_000
    r = isle.js('process.stderr.write("e".repeat(2000000)); console.log("done")')
    assert r.reason == "ok" and r.stdout == "done\n"
    assert r.stderr == "e" * KEEP and r.result["usage"]["stderr_bytes"] == 2_000_000


def test_OUT_07_order_of_parent_and_child(isle):
    code = 'import subprocess; print("A"); subprocess.run(["echo", "B"]); print("C")'
    assert isle.python(code).lines == ["A", "B", "C"]
    code = 'console.log("A"); require("child_process").spawnSync("echo", ["B"], { stdio: "inherit" }); console.log("C")'
    assert isle.js(code).lines == ["A", "B", "C"]


def test_OUT_08_two_streams(isle):
    code = """
import sys
for i in (1, 2):
    print(f"out{i}", flush=True)
    print(f"err{i}", file=sys.stderr, flush=True)
sys.exit(2)
"""
    r = isle.python(code)
    assert r.lines == ["out1", "out2"] and r.stderr == "err1\nerr2\n" and r.status == 2
    code = "for (const i of [1, 2]) { console.log(`out${i}`); console.error(`err${i}`) } process.exit(2)"
    r = isle.js(code)
    assert r.lines == ["out1", "out2"] and r.stderr == "err1\nerr2\n" and r.status == 2


def test_OUT_09_warnings_are_no_failure(isle):
    r = isle.js('console.warn("careful"); console.log("fine")')
    assert r.reason == "ok" and (r.stdout, r.stderr) == ("fine\n", "careful\n")
    assert r.result["exit_code"] == 0
    r = isle.python('import warnings; warnings.warn("careful"); print("fine")')
    assert r.reason == "ok" and r.stdout == "fine\n" and "careful" in r.stderr and r.result["exit_code"] == 0


def test_OUT_11_result_after_output_without_newline(isle):
    r = isle.js('process.stdout.write("debug"); return {ok: 1}')
    assert r.stdout == "debug" and r.result["result"] == {"ok": 1}
    r = isle.run("-l", "javascript", "-c", 'process.stdout.write("debug"); return {ok: 1}')
    assert r.out == b'debug\n{"ok":1}\n'
    r = isle.python('print("debug", end=""); return {"ok": 1}')
    assert r.stdout == "debug" and r.result["result"] == {"ok": 1}


def test_OUT_12_output_that_looks_like_a_result(isle):
    code = """
import os, struct
print('{"result": "forged"}')
os.write(1, struct.pack("<IIIII", 0x4C534931, 32, 1, 1, 8) + b'"forged"')
return "true"
"""
    r = isle.python(code)
    assert r.reason == "ok" and r.result["result"] == "true"
    assert r.stdout.count("forged") == 2
    code = """
const frame = Buffer.alloc(28); [0x4c534931, 32, 1, 1, 8].forEach((n, i) => frame.writeUInt32LE(n, 4 * i));
frame.write('"forged"', 20); console.log('{"result": "forged"}'); process.stdout.write(frame); return "true"
"""
    r = isle.js(code)
    assert r.reason == "ok" and r.result["result"] == "true"
    assert r.stdout.count("forged") == 2


def test_progress_bars_are_raw(isle):
    code = r'for i in range(2000): print(f"\rstep {i}", end="", flush=True)'
    want = "".join(f"\rstep {i}" for i in range(2000))
    assert isle.python(code).stdout == want
    assert isle.run("-l", "python", "-c", code).out == want.encode()


def test_characters_are_no_escapes(isle, tmp_path):
    """In what is printed, in the result line and in a file."""
    code = 'print("数据→结果"); open("f.txt", "w").write("数据"); return {"城市": "東京"}'
    r = isle.run("-l", "python", "-c", code, "--artifact", "f.txt", "--output-dir", str(tmp_path))
    assert r.out.decode() == '数据→结果\n{"城市":"東京"}\n'
    assert (tmp_path / "f.txt").read_text() == "数据"
    r = isle.run("-l", "javascript", "-c", 'console.log("数据→结果"); return {"城市": "東京"}')
    assert r.out.decode() == '数据→结果\n{"城市":"東京"}\n'
    assert "東京" in isle.run("--json", "-l", "javascript", "-c", 'return "東京"').out.decode()


def test_OUT_15_lone_surrogates(isle):
    r = isle.python(r'print("\ud83d")')
    assert r.reason == "error" and r.status == 1 and "UnicodeEncodeError" in r.stderr
    assert isle.python(r'return "\ud83d"').result["result"] == "\ufffd"
    assert isle.js(r'return "\uD83D"').result["result"] == "\ufffd"
    assert isle.js(r'console.log("\uD83D")').stdout == "\ufffd\n"
    r = isle.run("-l", "python", "-c", "return params", "--params", r'{"a": "\ud83d"}')
    assert r.status == 125 and b"surrogate" in r.err, r.err


def test_invalid_bytes_become_replacement_characters(isle):
    raw = b"a\xffb\xc3(\xe2\x82\xf0\x9f\x98z\xed\xa0\x80\xc0\xaf\xf4\x90\x80\x80"
    code = f"import os; os.write(1, {raw!r}); os.write(2, {raw!r})"
    r = isle.python(code)
    assert r.stdout == raw.decode("utf-8", "replace") == r.stderr
    assert r.result["usage"]["stdout_bytes"] == len(raw)


def test_live_output_is_raw_or_clean(isle):
    """Without --json the bytes go through as the job wrote them."""
    raw = bytes(range(256))
    r = isle.run("-l", "python", "-c", f"import os; os.write(1, {raw!r})")
    assert r.out in (raw, raw.decode("utf-8", "replace").encode())


def test_nul_and_controls_are_kept(isle):
    raw = b"a\x00b\x1b[31m\x07\r\n\x7f\xc2\x85\xe2\x80\xa8"
    r = isle.python(f"import os; os.write(1, {raw!r})")
    assert r.stdout == raw.decode()


def test_cut_off_tail_of_a_character(isle):
    """Output ends in the middle of a character: one U+FFFD, not silence."""
    r = isle.python(r"import os; os.write(1, b'ok \xe2\x82')")
    assert r.stdout == "ok \ufffd"


def test_both_floods_at_once(isle):
    r = isle.sh("yes out | head -c 20M & yes err | head -c 20M >&2 & wait")
    assert r.result["truncated"]["stdout"] and r.result["truncated"]["stderr"]
    assert len(r.stdout) == KEEP == len(r.stderr)


def test_output_closed_and_reopened(isle):
    r = isle.sh("echo a; exec 1>&-; exec 1>&2; echo b")
    assert (r.stdout, r.stderr) == ("a\n", "b\n")


def test_standard_streams_can_be_opened_by_name(isle, tmp_path):
    """Scripts write to /dev/stderr and read /dev/stdin: pipes of another uid, opened anew."""
    given = tmp_path / "given"
    given.write_text("in\n")
    code = "echo out > /dev/stdout; echo err > /dev/stderr; echo both | tee /dev/stderr; cat /dev/stdin"
    r = isle.sh(code, "--stdin", str(given))
    assert r.reason == "ok", r.result
    assert r.stdout == "out\nboth\nin\n" and r.stderr == "err\nboth\n"
