"""Cases RES: values that snippets return."""

from __future__ import annotations

import base64
import re

import pytest

pytestmark = pytest.mark.usefixtures("host")


def failed_cleanly(r, *words):
    assert r.reason == "error" and r.status == 1 and r.result["result"] is None, r.result
    for word in words:
        assert word in r.result["error"], r.result["error"]


def test_RES_02_bytes(isle):
    data = base64.b64encode(b"\x00\xffhi").decode()
    assert isle.python(r'return b"\x00\xffhi"').result["result"] == {"$bytes": data}
    assert isle.js("return Buffer.from([0, 255])").result["result"] == {"$bytes": "AP8="}
    assert isle.js("return new Uint8Array([1, 2])").result["result"] == {"$bytes": "AQI="}


def test_RES_03_dates_and_the_like(isle):
    code = """
import datetime, decimal, uuid, pathlib
return {"d": datetime.datetime(2024, 2, 29, tzinfo=datetime.timezone.utc),
        "e": datetime.date(2024, 2, 29), "f": decimal.Decimal("1.10"),
        "u": uuid.UUID(int=5), "p": pathlib.Path("x")}
"""
    assert isle.python(code).result["result"] == {
        "d": "2024-02-29T00:00:00+00:00",
        "e": "2024-02-29",
        "f": "1.10",
        "u": "00000000-0000-0000-0000-000000000005",
        "p": "x",
    }
    value = isle.js("return {d: new Date(0), bad: new Date(NaN)}").result["result"]
    assert value["d"] == "1970-01-01T00:00:00.000Z" and value["bad"] is None


def test_RES_04_sets_and_maps(isle):
    assert isle.python('return {"s": {3, 1, 2}}').result["result"] == {"s": [1, 2, 3]}
    assert isle.python("return [{'b', 'a'}, {10, 9}, {2.5, -1}]").result["result"] == [["a", "b"], [9, 10], [-1, 2.5]]
    value = isle.js("return {m: new Map([[1, 2]]), s: new Set([3, 1])}").result["result"]
    assert value == {"m": {"1": 2}, "s": [3, 1]}


def test_RES_05_big_integers(isle):
    r = isle.python("return [2**53 + 1, 3**50, 7**40]")
    for n in (2**53 + 1, 3**50, 7**40):
        assert str(n).encode() in r.out
    assert isle.python("return 10**5000").result["result"] == 10**5000
    assert isle.js("return [9007199254740993n, 10n ** 5000n]").result["result"] == [2**53 + 1, 10**5000]
    assert isle.run("-l", "javascript", "-c", "return 9007199254740993n").out == b"9007199254740993\n"


def test_RES_08_undefined_functions_symbols(isle):
    for code, value in (
        ("return undefined", None),
        ("return () => 1", None),
        ('return Symbol("s")', None),
        ("return [undefined, () => 1, Symbol()]", [None, None, None]),
        ("return {u: undefined, f() {}, s: Symbol(), a: 1}", {"a": 1}),
    ):
        r = isle.js(code)
        assert r.reason == "ok" and r.result["result"] == value and r.stderr == "", r.result


def test_RES_09_errors_as_values(isle):
    r = isle.js('class Mine extends RangeError { name = "Mine" }; return {e: new Error("boom"), m: new Mine("x")}')
    assert r.result["result"] == {"e": {"name": "Error", "message": "boom"}, "m": {"name": "Mine", "message": "x"}}
    r = isle.python('return {"e": ValueError("boom")}')
    assert r.result["result"] == {"e": {"name": "ValueError", "message": "boom"}}


def test_RES_10_odd_keys(isle):
    failed_cleanly(isle.python('return {1: "a", "1": "b", None: "c", True: "d"}'), 'more than one key becomes "1"')
    failed_cleanly(isle.python("return {(1, 2): 3}"), "key of type tuple")
    failed_cleanly(isle.js("return new Map([[1, 'a'], ['1', 'b']])"), 'more than one key becomes "1"')
    failed_cleanly(isle.js("return new Map([[[1, 2], 3]])"), "key of type object")
    want = {"1": "a", "null": "c", "2.5": "e"}
    assert isle.python('return {1: "a", None: "c", 2.5: "e"}').result["result"] == want
    assert isle.js("return new Map([[1, 'a'], [null, 'c'], [2.5, 'e']])").result["result"] == want
    assert isle.python('return {True: "d"}').result["result"] == {"true": "d"}


@pytest.mark.parametrize("size", [65000, 66000, 300000, 2000000])
def test_RES_11_large_results(isle, size):
    assert isle.python(f'return "x" * {size}').result["result"] == "x" * size
    assert isle.js(f'return "x".repeat({size})').result["result"] == "x" * size


def test_RES_11_too_large(isle):
    for r in (
        isle.python('return "x" * (9 << 20)', within=30),
        isle.js('return "x".repeat(9 << 20)', within=30),
    ):
        assert r.reason == "result_too_large" and r.result["result"] is None, r.reason
        has, most = map(int, re.findall(r"\d+", r.result["error"]))
        assert has > most == 8 << 20, r.result["error"]


def test_RES_11_the_largest(isle):
    size = (8 << 20) - 2  # and the quotes
    assert isle.python(f'return "x" * {size}').result["result"] == "x" * size
    assert isle.js(f'return "x".repeat({size})').result["result"] == "x" * size
    assert isle.python(f'return "x" * {size + 1}').reason == "result_too_large"
    assert isle.js(f'return "x".repeat({size + 1})').reason == "result_too_large"


def test_RES_13_hostile_hooks(isle):
    for value in (
        '{toJSON() { throw new Error("no") }}',
        "new Proxy({}, {ownKeys() { throw new Error('no') }})",
        "{get a() { throw new Error('no') }}",
        "{toJSON() { process.exit(0) }}",
    ):
        r = isle.js(f'console.log("kept"); return {value}')
        failed_cleanly(r)
        assert r.stdout == "kept\n" and ("no" in r.result["error"] or "exited" in r.result["error"]), r.result
    code = """
import os
print("kept")
class E:
    def __str__(self): os._exit(0)
    __repr__ = __iter__ = __str__
return {"v": E()}
"""
    r = isle.python(code)
    failed_cleanly(r)
    assert r.stdout == "kept\n"
    code = "class E:\n    def __str__(self): raise ValueError('no')\nprint('kept')\nreturn [1, E()]"
    r = isle.python(code)
    failed_cleanly(r, "ValueError: no", "result[1]")
    assert r.stdout == "kept\n"
    code = "class L(list):\n    def __iter__(self): raise ValueError('no')\n    __len__ = __iter__\nreturn [L([1])]"
    r = isle.python(code)
    assert r.result["result"] == [[1]] or (r.reason == "error" and "no" in r.result["error"]), r.result


def test_RES_14_promises_coroutines_generators(isle):
    code = "return (async () => { await new Promise(r => setTimeout(r, 50)); return 7 })()"
    assert isle.js(code).result["result"] == 7
    assert isle.python("async def f(): return 7\nreturn f()").result["result"] == 7
    assert isle.python("return (i for i in range(3))").result["result"] == [0, 1, 2]
    assert isle.js("return (function* () { yield* [0, 1, 2] })()").result["result"] == [0, 1, 2]
    failed_cleanly(isle.js("return [Promise.resolve(1)]"), "result[0]")
    failed_cleanly(isle.python("async def f(): return 7\nreturn [f()]"), "result[0]")


def test_RES_15_snippet_breaks_the_tools(isle):
    code = "import json, sys; json.dumps = None; print = None; sys.stdout.close()\nreturn 5"
    assert isle.python(code).result["result"] == 5
    assert isle.js('JSON.stringify = () => "!"; return 5').result["result"] == 5
