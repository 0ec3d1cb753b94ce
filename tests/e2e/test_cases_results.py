"""Cases RES: values that snippets return."""

from __future__ import annotations

import base64

import pytest

pytestmark = pytest.mark.usefixtures("host")

CLEAN = ("ok", "error")


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
    value = isle.python(code).result["result"]
    assert value["d"].startswith("2024-02-29") and value["e"] == "2024-02-29"
    assert str(value["f"]) == "1.10" and value["p"] == "x" and value["u"].endswith("0005")
    value = isle.js("return {d: new Date(0), bad: new Date(NaN)}").result["result"]
    assert value["d"] == "1970-01-01T00:00:00.000Z" and value["bad"] is None


def test_RES_04_sets_and_maps(isle):
    assert sorted(isle.python('return {"s": {3, 1, 2}}').result["result"]["s"]) == [1, 2, 3]
    value = isle.js("return {m: new Map([['1', 2]]), s: new Set([1])}").result["result"]
    assert value == {"m": {"1": 2}, "s": [1]}


def test_RES_05_big_integers(isle):
    r = isle.python("return [2**53 + 1, 3**50, 7**40]")
    for n in (2**53 + 1, 3**50, 7**40):
        assert str(n).encode() in r.out
    r = isle.python("return 10**5000")
    assert r.reason in CLEAN and (r.reason == "error" or b"1" + b"0" * 5000 in r.out)
    r = isle.js("return 9007199254740993n")
    assert b"9007199254740993" in r.out


def test_RES_08_undefined_functions_symbols(isle):
    assert isle.js("return undefined").result["result"] is None
    for code in ("return () => 1", 'return Symbol("s")', "return [undefined, () => 1]"):
        r = isle.js(code)
        assert r.reason in CLEAN, r.result
        assert "TypeError" not in r.stderr


def test_RES_09_errors_as_values(isle):
    for r in (
        isle.js('return {e: new Error("boom")}'),
        isle.python('return {"e": ValueError("boom")}'),
    ):
        assert "boom" in str(r.result["result"]) or r.reason == "error", r.result


def test_RES_10_odd_keys(isle):
    r = isle.python('return {1: "a", "1": "b", None: "c", True: "d"}')
    assert r.reason in CLEAN, r.result
    r = isle.python("return {(1, 2): 3}")
    assert r.reason in CLEAN, r.result


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


def test_RES_13_hostile_hooks(isle):
    failed_cleanly(isle.js('console.log("kept"); return {toJSON() { throw new Error("no") }}'))
    failed_cleanly(isle.js("return new Proxy({}, {ownKeys() { throw new Error('no') }})"))
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
    code = "class E:\n    def __str__(self): raise ValueError('no')\nreturn [1, E()]"
    failed_cleanly(isle.python(code))


def test_RES_14_promises_coroutines_generators(isle):
    code = "return (async () => { await new Promise(r => setTimeout(r, 50)); return 7 })()"
    assert isle.js(code).result["result"] == 7
    r = isle.python("async def f(): return 7\nreturn f()")
    assert r.reason == "error" or r.result["result"] == 7, r.result
    r = isle.python("return (i for i in range(3))")
    assert r.reason == "error" or r.result["result"] == [0, 1, 2], r.result


def test_RES_15_snippet_breaks_the_tools(isle):
    code = "import json, sys; json.dumps = None; print = None; sys.stdout.close()\nreturn 5"
    assert isle.python(code).result["result"] == 5
    assert isle.js('JSON.stringify = () => "!"; return 5').result["result"] == 5
