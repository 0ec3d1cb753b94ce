"""Values of snippets as results, in both languages: docs/results.md, case by case."""

from __future__ import annotations

import json
import textwrap

import guest_driver
import pytest


@pytest.fixture
def py(tmp_path):
    return lambda code, params=None, **more: guest_driver.run_guest(
        "python", tmp_path, textwrap.dedent(code), params, **more
    )


@pytest.fixture
def js(tmp_path):
    return lambda code, params=None, **more: guest_driver.run_guest(
        "javascript", tmp_path, textwrap.dedent(code), params, **more
    )


def table(prelude, rows):
    """One program for many values: it returns a list, and each is compared by its text."""
    return prelude + "\nreturn [" + ",\n".join(code for code, _ in rows) + "]", "[" + ",".join(t for _, t in rows) + "]"


PYTHON_PRELUDE = """
import array, collections, dataclasses, datetime, decimal, enum, fractions, io, itertools, pathlib, types, typing, uuid

class Plain:
    def __str__(self): return "plain"

class Number(int): pass
class Text(str):
    def __str__(self): return "changed"
class Real(float):
    def __repr__(self): return "changed"
class Table(dict): pass
class Color(enum.Enum): RED = 1; BOTH = {"a": 1}
class Level(enum.IntEnum): LOW = 3
class Word(enum.StrEnum): A = "a"
Point = collections.namedtuple("Point", "x y")
@dataclasses.dataclass
class Data:
    a: int
    b: list
    c: typing.ClassVar[int] = 5
    _hidden: int = 1
@dataclasses.dataclass(slots=True)
class Slots:
    x: int = 1
class View(collections.abc.Mapping):
    def __getitem__(self, key): return key * 2
    def __iter__(self): return iter(["a"])
    def __len__(self): return 1
T = typing.TypeVar
tz = datetime.timezone.utc
"""

PYTHON_VALUES = [
    ("None, True, False", "null,true,false"),
    ("0, -1, 1.5, -0.0, 1e100, 1e-7", "0,-1,1.5,-0.0,1e+100,1e-07"),
    ("float('nan'), float('inf'), -float('inf')", "null,null,null"),
    ("2**53 + 1, -3**50", f"{2**53 + 1},{-(3**50)}"),
    ("'', 'a\"\\\\\\n\\x00\\x7f\\u2028é😀'", '"","a\\"\\\\\\n\\u0000\x7f\u2028é😀"'),
    ("'\\ud800', '\\ud83d\\ude00', 'a\\udc00b'", '"\ufffd","😀","a\ufffdb"'),
    ("Number(5), Text('t'), Real(2.5), Table(a=1)", '5,"t",2.5,{"a":1}'),
    ("(1, (2,)), [], {}, ()", "[1,[2]],[],{},[]"),
    ("{3, 1, 2, 1.5}, frozenset('ba'), {('b', 1), ('a', 2)}, set()", '[1,1.5,2,3],["a","b"],[["a",2],["b",1]],[]'),
    ("Point(1, [2])", '{"x":1,"y":[2]}'),
    ("Data(1, [Data(2, [])]), Slots()", '{"a":1,"b":[{"a":2,"b":[],"_hidden":1}],"_hidden":1},{"x":1}'),
    ("Color.RED, Color.BOTH, Level.LOW, Word.A", '1,{"a":1},3,"a"'),
    ("datetime.datetime(2024, 2, 29, tzinfo=tz), datetime.datetime(2024, 2, 29, 1, 2, 3, 4)",
     '"2024-02-29T00:00:00+00:00","2024-02-29T01:02:03.000004"'),
    ("datetime.date(2024, 2, 29), datetime.time(1, 2), datetime.timedelta(days=1, seconds=1)",
     '"2024-02-29","01:02:00","1 day, 0:00:01"'),
    ("decimal.Decimal('1.10'), fractions.Fraction(1, 3), 1 + 2j", '"1.10","1/3","(1+2j)"'),
    ("uuid.UUID(int=5), pathlib.Path('x/y')", '"00000000-0000-0000-0000-000000000005","x/y"'),
    ("b'\\x00\\xffhi', bytearray(b'a'), memoryview(b'b')", '{"$bytes":"AP9oaQ=="},{"$bytes":"YQ=="},{"$bytes":"Yg=="}'),
    ("array.array('d', [1, float('nan')]), range(3), collections.deque([1])", "[1.0,null],[0,1,2],[1]"),
    ("collections.OrderedDict(b=1, a=2), collections.Counter('aab'), collections.defaultdict(list)",
     '{"b":1,"a":2},{"a":2,"b":1},{}'),
    ("collections.ChainMap({'a': 1}), types.MappingProxyType({'b': 2}), View(), collections.UserDict(x=1)",
     '{"a":1},{"b":2},{"a":"aa"},{"x":1}'),
    ("{'a': 1}.keys(), {'a': 1}.values(), {'a': 1}.items(), collections.UserList([1]), collections.UserString('us')",
     '["a"],[1],[["a",1]],[1],"us"'),
    ("(i for i in range(3)), map(str, [1]), zip([1], [2]), itertools.islice(itertools.count(), 2), iter([1])",
     '[0,1,2],["1"],[[1,2]],[0,1],[1]'),
    ("ValueError('boom'), KeyError('k')", '{"name":"ValueError","message":"boom"},{"name":"KeyError","message":"\'k\'"}'),
    ("Plain(), Plain, len, types.SimpleNamespace(a=1)",
     '"plain","<class \'__main__.Plain\'>","<built-in function len>","namespace(a=1)"'),
    ("{1: 'a', 1.5: 'b', None: 'c', False: 'd', float('nan') : 'e'} if 0 else {1: 'a', 1.5: 'b', None: 'c', False: 'd'}",
     '{"1":"a","1.5":"b","null":"c","false":"d"}'),
    ("{Color.RED: 1, Word.A: 2, Text('t'): 3, datetime.date(2024, 1, 2): 4, pathlib.Path('p'): 5, 10**30: 6}",
     '{"1":1,"a":2,"t":3,"2024-01-02":4,"p":5,"1000000000000000000000000000000":6}'),
    ("{'__proto__': {'isAdmin': True}, 'constructor': 1}", '{"__proto__":{"isAdmin":true},"constructor":1}'),
]  # fmt: skip


def test_python_values(py):
    code, text = table(PYTHON_PRELUDE, PYTHON_VALUES)
    r = py(code)
    assert r.status == 0, r.describe()
    assert r.text == text


NUMPY_VALUES = [
    ("np.int64(5), np.float32(1.5), np.float64('nan'), np.bool_(True), np.str_('s'), np.uint8(255)", '5,1.5,null,true,"s",255'),
    ("np.arange(4).reshape(2, 2), np.array([1.0, np.nan, np.inf]), np.array(7), np.array([])", "[[0,1],[2,3]],[1.0,null,null],7,[]"),
    ("np.array(['a']), np.array([True]), np.array([1, 'x', None], dtype=object)", '["a"],[true],[1,"x",null]'),
    ("np.datetime64('2024-01-02'), np.array(['2024-01-02', 'NaT'], dtype='M8[ns]')",
     '"2024-01-02",["2024-01-02T00:00:00.000000000",null]'),
    ("np.ma.array([1, 2], mask=[0, 1]), {np.int64(1): np.int64(2)}, np.array([1 + 2j])", '[1,null],{"1":2},["(1+2j)"]'),
    ("pd.DataFrame({'a': [1, 2], 'b': ['x', None], 'c': [1.5, np.nan]})", '[{"a":1,"b":"x","c":1.5},{"a":2,"b":null,"c":null}]'),
    ("pd.DataFrame({'a': [1, 2, 3]}).query('a > 1'), pd.DataFrame({'a': []}), pd.DataFrame()", '[{"a":2},{"a":3}],[],[]'),
    ("pd.DataFrame({'k': ['x', 'y'], 'v': [1, 2]}).groupby('k').sum()", '[{"k":"x","v":1},{"k":"y","v":2}]'),
    ("pd.DataFrame({'v': [1]}, index=['row'])", '[{"index":"row","v":1}]'),
    ("pd.Series([1, 2]), pd.Series(['x', 'x', 'y']).value_counts(), pd.Series([1.5, None])", '[1,2],{"x":2,"y":1},[1.5,null]'),
    ("pd.Timestamp('2024-01-02'), pd.NaT, pd.NA, pd.Timedelta(days=1), pd.Index(['a'])", '"2024-01-02T00:00:00",null,null,"1 days 00:00:00",["a"]'),
    ("pd.Categorical(['a', 'b']), pd.Series(pd.Categorical(['a'])), pd.array([1, None], dtype='Int64')", '["a","b"],["a"],[1,null]'),
    ("pd.DataFrame({'t': pd.to_datetime(['2024-01-02', None])})", '[{"t":"2024-01-02T00:00:00"},{"t":null}]'),
    ("pd.DataFrame({'v': [1]}, index=pd.MultiIndex.from_tuples([('a', 'b')]))", '[{"level_0":"a","level_1":"b","v":1}]'),
]  # fmt: skip


def test_numpy_and_pandas_values(py):
    code, text = table("import numpy as np, pandas as pd", NUMPY_VALUES)
    r = py(code)
    assert r.status == 0, r.describe()
    assert r.text == text


JAVASCRIPT_VALUES = [
    ("null, true, false, undefined", "null,true,false,null"),
    ("0, -1, 1.5, -0, 1e100, 1e-7, NaN, Infinity", "0,-1,1.5,0,1e+100,1e-7,null,null"),
    ("9007199254740993n, -(3n ** 50n), Object(1n)", f"9007199254740993,{-(3**50)},1"),
    ("'', 'a\"\\\\\\n\\x00\\x7f\\u2028é😀'", '"","a\\"\\\\\\n\\u0000\x7f\u2028é😀"'),
    ("'\\ud800', '\\ud83d\\ude00', 'a\\udc00b'", '"\ufffd","😀","a\ufffdb"'),
    ("new Number(5), new String('t'), new Boolean(false), Object(Symbol('s'))", '5,"t",false,null'),
    ("[], {}, [[]], [undefined, () => 1, Symbol('s')], [, 1], Object.create(null)", "[],{},[[]],[null,null,null],[null,1],{}"),
    ("{a: undefined, b: () => 1, c: Symbol('s'), d: 1, [Symbol('k')]: 1}", '{"d":1}'),
    ("new Set([3, 1, {a: 1}]), new Set()", '[3,1,{"a":1}],[]'),
    ("new Map([['b', 1], ['a', {x: 1}]]), new Map([[1, 'a'], [1.5, 'b'], [null, 'c'], [false, 'd'], [2n, 'e']])",
     '{"b":1,"a":{"x":1}},{"1":"a","1.5":"b","null":"c","false":"d","2":"e"}'),
    ("new Date(0), new Date(NaN), {d: new Date(86400000)}", '"1970-01-01T00:00:00.000Z",null,{"d":"1970-01-02T00:00:00.000Z"}'),
    ("Buffer.from([0, 255]), new Uint8Array([1, 2]), new Uint8Array([1, 2, 3]).subarray(1), new ArrayBuffer(1), new DataView(new ArrayBuffer(2), 1)",
     '{"$bytes":"AP8="},{"$bytes":"AQI="},{"$bytes":"AgM="},{"$bytes":"AA=="},{"$bytes":"AA=="}'),
    ("new Float64Array([1, NaN]), new BigInt64Array([-1n]), new Uint8ClampedArray([300])", "[1,null],[-1],[255]"),
    ("new Error('boom'), new TypeError('t'), new (class Own extends Error { name = 'Own' })('o')",
     '{"name":"Error","message":"boom"},{"name":"TypeError","message":"t"},{"name":"Own","message":"o"}'),
    ("new (class P { x = 1; #y = 2; get z() { return 3 } })(), new (class Q { toString() { return 'q' } })()", '{"x":1},"q"'),
    ("{toJSON: (k) => ({k})}, {a: {toJSON: () => 5n}}, {toJSON: () => undefined}, {toJSON: 1}", '{"k":""},{"a":5},null,{"toJSON":1}'),
    ("/a+/g, new URL('http://a/b?c'), new URLSearchParams('a=1')", '"/a+/g","http://a/b?c","a=1"'),
    ("(function* () { yield 1; yield 2 })(), new Map([[1, 2]]).entries(), [5].values(), [1, 2].values().map((x) => x * 2)",
     "[1,2],[[1,2]],[5],[2,4]"),
    ("new Proxy({a: 1}, {}), new Proxy([1], {}), Object.freeze({f: 1})", '{"a":1},[1],{"f":1}'),
    ("JSON.parse('{\"__proto__\": {\"x\": 1}}'), new WeakMap(), globalThis.Intl", '{"__proto__":{"x":1}},"[object WeakMap]",{}'),
    ("require('vm').runInNewContext('[new Map([[1, [2]]]), new Date(0), new Error(`x`)]')",
     '[{"1":[2]},"1970-01-01T00:00:00.000Z",{"name":"Error","message":"x"}]'),
]  # fmt: skip


def test_javascript_values(js):
    code, text = table("", JAVASCRIPT_VALUES)
    r = js(code.lstrip())
    assert r.status == 0, r.describe()
    assert r.text == text


SHARED = "a = [1]; v = {'x': a, 'y': a, 'z': [a, a]}"


def test_shared_is_not_circular(py, js):
    assert (
        py(f"{SHARED}\nreturn v").value == js(f"var {SHARED}\nreturn v").value == {"x": [1], "y": [1], "z": [[1], [1]]}
    )


# What cannot be sent: (code, path, words of the reason).
PYTHON_ERRORS = [
    ("l = []; l.append(l); return {'a': [1, {'b': l}]}", "result.a[1].b[0]", "circular"),
    ("d = {}; d['me'] = {'x': d}; return d", "result.me.x", "circular"),
    ("import collections\nd = collections.UserDict(); d['d'] = d\nreturn d", "result.d", "circular"),
    ("v = 1\nfor _ in range(65): v = [v]\nreturn {'k': v}", "result.k" + "[0]" * 7, "64 levels"),
    ("return {'a': {(1, 2): 3}}", "result.a[tuple]", "key of type tuple"),
    ("return {1: 'a', '1': 'b'}", 'result["1"]', "more than one key"),
    ("return {'\\ud800': 1, '\\ufffd': 2}", 'result["\ufffd"]', "more than one key"),
    ("return {b'x': 1}", "result[bytes]", "key of type bytes"),
    ("class E: pass\nreturn {E(): 1}", "result[E]", "key of type E"),
    ("class E:\n    def __str__(self): raise ValueError('no')\nreturn [1, {'e e': E()}]", 'result[1]["e e"]', "ValueError: no"),
    ("class E:\n    def __str__(self): raise SystemExit(0)\nreturn {'v': E()}", "result.v", "SystemExit"),
    ("class E:\n    def __str__(self): raise KeyboardInterrupt\nreturn E()", "result", "KeyboardInterrupt"),
    ("class E:\n    def __str__(self): return 5\nreturn E()", "result", "TypeError"),
    ("class E(Exception):\n    def __str__(self): raise E\nclass F:\n    def __str__(self): raise E\nreturn F()", "result", "F cannot be converted: E"),
    ("def g():\n    yield 1\n    raise KeyError('g')\nreturn {'g': g()}", "result.g", "KeyError"),
    ("async def f(): pass\nreturn [f()]", "result[0]", "not awaited"),
    ("async def f(): yield 1\nreturn {'a': f()}", "result.a", "async"),
    ("import enum\nclass E(enum.Enum):\n    @property\n    def value(self): return self\n    A = 1\nreturn E.A", "result", "RecursionError"),
    ("class L(list):\n    def __iter__(self): raise OSError('i')\nreturn L([1])", "result", "OSError: i"),
    ("class E:\n    __class__ = property(lambda s: 1 / 0)\nreturn E()", "result", "ZeroDivisionError"),
    ("import pandas as pd\nreturn pd.DataFrame([[1, 2]], columns=['a', 'a'])", "result[0].a", "more than one key"),
]  # fmt: skip


@pytest.mark.parametrize("code, path, words", PYTHON_ERRORS, ids=range(len(PYTHON_ERRORS)))
def test_python_errors(py, code, path, words):
    r = py("print('kept')\n" + code)
    assert r.status == 1 and r.out == "kept\n", r.describe()
    assert r.error["type"] == "ResultError" and r.error["path"] == path and words in r.error["message"], r.describe()


JAVASCRIPT_ERRORS = [
    ("const l = []; l.push(l); return {a: [1, {b: l}]}", "result.a[1].b[0]", "circular"),
    ("const m = new Map(); m.set('me', {x: m}); return m", "result.me.x", "circular"),
    ("let v = 1; for (let i = 0; i < 65; i++) v = [v]; return {k: v}", "result.k" + "[0]" * 7, "64 levels"),
    ("return {a: new Map([[{}, 3]])}", "result.a.object", "key of type object"),
    ("return new Map([[1, 'a'], ['1', 'b']])", 'result["1"]', "more than one key"),
    ("return {toJSON() { throw new Error('no') }}", "result", "Error: no"),
    ("return {'e e': {get x() { throw new Error('no') }}}", 'result["e e"].x', "Error: no"),
    ("return [new Proxy({}, {ownKeys() { throw new Error('no') }})]", "result[0]", "Error: no"),
    ("return new Proxy({}, {get() { throw 5 }})", "result", "5"),
    ("return new Proxy({}, {get() { throw {get name() { throw 1 }, toString() { throw 2 }} }})", "result", "cannot be had"),
    ("return {p: Promise.resolve(1)}", "result.p", "not awaited"),
    ("return {g: (async function* () {})()}", "result.g", "async"),
    ("return [{toString() { throw new Error('s') }, __proto__: {toString: 1}}, {__proto__: {toString() { throw new Error('t') }}}]", "result[1]", "Error: t"),
    ("const f = () => ({get a() { return f() }}); return f()", "result.a", "levels"),
]  # fmt: skip


@pytest.mark.parametrize("code, path, words", JAVASCRIPT_ERRORS, ids=range(len(JAVASCRIPT_ERRORS)))
def test_javascript_errors(js, code, path, words):
    r = js("console.log('kept');\n" + code)
    assert r.status == 1 and r.out == "kept\n", r.describe()
    assert r.error["type"] == "ResultError" and words in r.error["message"], r.describe()
    assert r.error["path"].startswith(path), r.describe()


def test_depth_64_is_allowed(py, js):
    text = "[" * 64 + "1" + "]" * 64
    assert py("v = 1\nfor _ in range(64): v = [v]\nreturn v").text == text
    assert js("let v = 1; for (let i = 0; i < 64; i++) v = [v]; return v").text == text


def test_big_integer(py, js):
    assert py("return 10**5000").text == "1" + "0" * 5000
    assert (
        py("import sys; sys.set_int_max_str_digits(700); return [10**5000, sys.get_int_max_str_digits()]").status == 0
    )
    assert js("return 10n ** 5000n").text == "1" + "0" * 5000


LIMIT = 8 << 20


@pytest.mark.parametrize("size", [65_000, 66_000, LIMIT - 2])
def test_RES_11_large(py, js, size):
    assert py("return 'x' * params['n']", {"n": size}).text == '"' + "x" * size + '"'
    assert js("return 'x'.repeat(params.n)", {"n": size}).text == '"' + "x" * size + '"'


TOO_LARGE = [
    ("return 'x' * ((8 << 20) - 1)", "return 'x'.repeat((8 << 20) - 1)"),
    ("return 'x' * (300 << 20)", "return 'x'.repeat(300 << 20)"),
    ("return ['x' * (1 << 20)] * 9", "return Array(9).fill('x'.repeat(1 << 20))"),
    ("return '\u20ac' * (3 << 20)", "return '\u20ac'.repeat(3 << 20)"),
    ("return bytes(7 << 20)", "return Buffer.alloc(7 << 20)"),
    ("import itertools; return itertools.count()", "return (function* () { for (;;) yield 1 })()"),
    ("return range(10**12)", "return new Array(2 ** 32 - 1)"),
    ("v = ['x'] * 1000\nfor _ in range(5): v = [v] * 1000\nreturn v", "let v = Array(1000).fill('x'); for (let i = 0; i < 5; i++) v = Array(1000).fill(v); return v"),
    ("return 10**9_000_000", "return '1'.repeat(9e6)"),
]  # fmt: skip


@pytest.mark.parametrize("codes", TOO_LARGE, ids=range(len(TOO_LARGE)))
def test_too_large(py, js, codes):
    for r in (py("print('kept')\n" + codes[0]), js("console.log('kept')\n" + codes[1])):
        assert r.status == 1 and r.out == "kept\n" and r.error["type"] == "ResultTooLarge", r.describe()
        assert r.error["size"] > r.error["limit"] == LIMIT and str(LIMIT) in r.error["message"]


def test_hooks_that_end_the_process(py, js):
    code = "import os\nprint('kept')\nclass E:\n    def __str__(self): os._exit(0)\nreturn {'v': E()}"
    r = py(code)
    assert r.frames == [] and r.status == 0 and r.out == "kept\n"
    r = js("console.log('kept'); return {toJSON() { process.reallyExit(0) }}")
    assert r.frames == [] and r.status == 0 and r.out == "kept\n"
    for code, status in (("process.exit(3)", 3), ("process.exit(0)", 1)):
        r = js(f"return {{toJSON() {{ {code} }}}}")
        assert r.status == status and "while its result" in r.error["message"], r.describe()


def test_speed_of_a_long_list(py, js):
    rows = [{"id": n, "name": f"row {n}", "value": n / 7} for n in range(50_000)]
    assert py("return [{'id': n, 'name': f'row {n}', 'value': n / 7} for n in range(50_000)]", timeout=20).value == rows
    code = "return Array.from({length: 50000}, (_, n) => ({id: n, name: `row ${n}`, value: n / 7}))"
    assert js(code, timeout=20).value == json.loads(json.dumps(rows))
