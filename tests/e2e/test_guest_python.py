"""The Python guest with a bare interpreter, no sandbox: how snippets run."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import textwrap

import guest_driver
import pytest

ENDS = pytest.mark.parametrize("end", ["", "\nreturn None"])


@pytest.fixture
def run(tmp_path):
    def run(code, params=None, **more):
        return guest_driver.run_guest("python", tmp_path, textwrap.dedent(code), params, **more)

    return run


def bare(tmp_path, code):
    """(stdout, stderr, status) of `python3 FILE`, with the file's folder written as the guest's is."""
    file = tmp_path / "bare" / "snippet.py"
    file.parent.mkdir(exist_ok=True)
    file.write_text(code)
    done = subprocess.run(
        [*guest_driver.interpreter("python", flags=["-u"]), str(file)],
        capture_output=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    text = done.stderr.decode().replace(str(file.parent), str(tmp_path / "code"))
    return done.stdout.decode(), without_addresses(text), done.returncode


def without_addresses(text):
    return re.sub("0x[0-9a-f]+", "0x", text)


def test_value_params_and_output(run):
    r = run("print('hi'); return {'a': params['a'], 'n': None}", {"a": [1, 2.5, "x", True]})
    assert r.value == {"a": [1, 2.5, "x", True], "n": None} and r.out == "hi\n" and r.err == ""


def test_no_return_is_null(run):
    assert run("x = 1").text == "null"
    assert run("").text == "null"
    assert run("# nothing").text == "null"


SCRIPTS = {
    "uncaught": "def f():\n    x = {}\n    return x['a']\n\nf()\n",
    "chained": "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise ValueError('no') from e\n",
    "syntax": "x = 1\ny = = 2\n",
    "indent": "if True:\nx = 1\n",
    "yield": "yield 1\n",
    "group": "raise ExceptionGroup('g', [ValueError(1), TypeError(2)])\n",
    "exit text": "import sys; sys.exit('why')\n",
    "exit none": "import sys; sys.exit(None)\n",
    "exit 256": "import sys; sys.exit(256)\n",
    "exit -1": "import sys; sys.exit(-1)\n",
    "exit 7": "raise SystemExit(7)\n",
    "exit in the middle": "print('a')\nraise SystemExit\nprint('b')\n",
    "thread": "import threading\nt = threading.Thread(target=lambda: 1 / 0, name='T')\nt.start(); t.join()\nprint('on')\n",
    "hook": "import sys\nsys.excepthook = lambda t, e, tb: print('hook', t.__name__, tb.tb_lineno)\n1 / 0\n",
    "atexit": "import atexit\natexit.register(print, 'bye')\nprint('hi')\nraise KeyError('x')\n",
    "interrupt": "raise KeyboardInterrupt\n",
    "names": "print(sorted(n for n in dir() if n != 'params'), __name__, __package__, __spec__, __doc__)\n",
    "doc": "'''doc'''\nfrom __future__ import annotations\nprint(__doc__, annotations)\n",
    "surrogate": "print('\\ud83d')\n",
    "stack": "import sys\nprint(sys.argv[0][-10:], len(sys.argv), sys._getframe().f_code.co_name)\n",
    "warning": "x = 1\nif x is 1: pass\ny = '\\d'\n",
    "unraisable": "class A:\n    def __del__(self): 1 / 0\na = A()\ndel a\nprint('on')\n",
    "identifiers": "é = 1\nprint(é)\n",
    "no hook": "import sys\ndel sys.excepthook\n1 / 0\n",
    "bad hook": "import sys\nsys.excepthook = 5\n1 / 0\n",
    "hook fails": "import sys\ndef hook(*a): raise ValueError('in the hook')\nsys.excepthook = hook\n1 / 0\n",
    "traced": "import sys\nsys.settrace(lambda *a: None)\nsys.setprofile(lambda *a: None)\ndef f(): 1 / 0\nf()\n",
    "lines": "s = '''one\n  two\n\nthree\\\nfour'''\nprint(repr(s))\nif True:\n\tprint(f'''{s}\n\ttab''')\n",
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_as_the_bare_interpreter(run, tmp_path, name):
    r = run(SCRIPTS[name])
    assert (r.out, without_addresses(r.err), r.status) == bare(tmp_path, SCRIPTS[name])


def test_PY_02_future_and_docstring(run):
    r = run(
        '"""doc"""\nfrom __future__ import annotations\nx: undefined = 1\nprint(__doc__, __annotations__)\nreturn 1'
    )
    assert r.out == "doc {'x': 'undefined'}\n" and r.value == 1


@ENDS
def test_PY_03_names(run, end):
    code = """
    import math, os.path as osp
    from os import path as p2
    k = 2
    def area(r): return k * math.pi * r
    print(round(area(1), 2), [k for _ in range(1)], {k: k for k in range(2)}, k)
    """
    assert run(textwrap.dedent(code) + end).out == "6.28 [2] {0: 0, 1: 1} 2\n"


@ENDS
def test_PY_04_pickle_dataclasses_spawn(run, end):
    code = """
    import dataclasses, multiprocessing, pickle, typing
    class A: pass
    @dataclasses.dataclass
    class B:
        x: "A"
    def double(n): return 2 * n
    if __name__ == "__main__":
        print(type(pickle.loads(pickle.dumps(A()))).__name__, typing.get_type_hints(B)["x"].__name__)
        for method in "spawn", "forkserver", "fork":
            with multiprocessing.get_context(method).Pool(1) as p: print(p.map(double, params["xs"]))
    """
    r = run(textwrap.dedent(code) + end, {"xs": [1, 2]})
    assert r.out == "A A\n[2, 4]\n[2, 4]\n[2, 4]\n", r.describe()


def test_spawn_with_params_and_await_at_top_level(run):
    code = """
    import asyncio, multiprocessing
    factor = params["factor"]
    def times(n): return factor * n
    await asyncio.sleep(0)
    with_main = __name__ == "__main__"
    if with_main:
        with multiprocessing.get_context("spawn").Pool(1) as p: return p.map(times, [1, 2])
    """
    assert run(code, {"factor": 3}).value == [3, 6]


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_children_are_started_as_those_of_a_file(run, tmp_path, method):
    """With site (exit is one of its names), and without the wrapper in their tracebacks."""
    code = f"""
import multiprocessing
if __name__ == "__main__":
    p = multiprocessing.get_context("{method}").Process(target=print); p.start(); p.join(); print(p.exitcode)
def f(): exit(3) if __name__ == "__main__" else 1 / 0
f()
"""
    r = run(code)
    assert (r.out, without_addresses(r.err), r.status) == bare(tmp_path, code)


EVERY_WAY_TO_BIND = """
import dataclasses
from math import *
from os import (path as chemin, sep)
a = b = 1
(c, [d, *e]) = 1, [2, 3, 4]
f: int = 5
g: "later"
class H:
    h = a
    def m(self): return H, __class__
def fn(x: int = (i := 9)) -> None: return j
j = fn
for k in range(2): pass
else: kk = 1
with open("/dev/null") as l: pass
try: 1 / 0
except ZeroDivisionError as gone: n = str(gone)
match {"x": [1, 2], "y": 3}:
    case {"x": [o, *p], **q}: pass
r = [s for s in range(3) if (t := s)]
u = sum(v for v in range(3) if (w := v))
def change():
    global a, fresh
    a, fresh = 2, 3
change()
del b
type X = list[X]
def generic[T](x: T) -> T: return x
lam = lambda: (a, lam.__qualname__)
exec("by_exec = 1")
locals()["by_locals"] = 1
vars()["by_vars"] = 1
while True:
    y = 1
    break
async def co(): return 1
xs = [lambda: z for z in range(2)]
class Y:
    listed = [a for _ in range(2)]
f += 1
print(sorted(set(globals()) - {"params", "__builtins__"}))
print(a, f, fresh, by_exec, by_locals, by_vars, H.h, Y.listed, lam(), fn.__qualname__, H.m.__qualname__, i, t, w)
print(__annotations__, [x() for x in xs], locals() is globals(), floor(2.5), X.__value__)
print(generic.__type_params__, generic.__qualname__, dir() == sorted(globals()))
print(eval("[a, n]"), o, p, q, c, d, e, chemin.__name__, sep)
"""


NEWER_SYNTAX = r"""
import typing, dataclasses
k = 1
class A[T: (int, str)]:
    x: T
    y = [T for _ in range(1)]
    def m[U](self, u: U) -> "A[U]": return (T, U, k)
class B[*Ts, **P](A[int]): pass
type L[T] = list[T] | A[T]
type Rec = dict[str, Rec]
def f[T](x: T = k) -> T:
    def g(y: T) -> L[T]: return y
    return g(x)
@dataclasses.dataclass
class D[T]:
    a: T
    b: int = k
@typing.no_type_check
def deco(x: undefined_name if False else int): pass
match {"k": (1, 2)}:
    case {"k": (a, b)} if (c := a + b): pass
try:
    raise ExceptionGroup("g", [ValueError(1), KeyError(2)])
except* ValueError as eg: n1 = len(eg.exceptions)
except* KeyError as eg: n2 = eg
with open("/dev/null") as fh, open("/dev/null") as (fh2): pass
(p, *q), r = [[1, 2, 3], 4]
x: list[int]
if True:
    z: "fwd" = 3
    (w): int = 4
for i in range(3):
    if i == 1: continue
    j = i
else: done = True
A.attr: int = 5
d = {}
d["k"]: int = 6
lst = [(lambda v: v + k + i)(v) for v in range(2) if (last := v) >= 0]
gen = list((yy := v2) for v2 in range(2))
nested = [[o for o in range(ii)] for ii in range(3)]
k += 1
s = f"{k!r:>{4}} {[t for t in 'ab']}"
print(A.__type_params__, B.__type_params__, L.__value__, Rec.__value__, f(), f.__annotations__, D(1), D.__annotations__)
print(A[int]().m(1), __annotations__, c, n1, p, q, r, z, w, j, done, A.attr, d, lst, last, gen, yy, nested, s, f.__qualname__, A.m.__qualname__, D.__init__.__qualname__)
print(sorted(n for n in globals() if not n.startswith("__")), sorted(locals()) == sorted(globals()))
def outer():
    global made
    made = [cls.__qualname__ for cls in (A, D)]
    class In: pass
    return In.__qualname__, (lambda: 0).__qualname__
print(outer(), made, (lambda: 0).__qualname__, [x for x in (y for y in "a")], (y for y in "a").__qualname__)
"""


@pytest.mark.parametrize("program", [EVERY_WAY_TO_BIND, NEWER_SYNTAX], ids=["ways to bind", "newer syntax"])
def test_return_changes_nothing_else(run, program):
    """The same program with a return at its end does all that it does without."""
    plain, returning = run(program), run(program + "return 1\n")
    assert plain.status == 0 and returning.value == 1, returning.describe()
    assert without_addresses(returning.out) == without_addresses(plain.out) and returning.err == plain.err
    awaiting = run(program + "import asyncio\nawait asyncio.sleep(0)\nreturn 1\n")
    assert awaiting.value == 1 and without_addresses(awaiting.out) == without_addresses(plain.out)


def test_return_compiles_to_the_same(run):
    """Half the standard library, each file with a return at its end."""
    library = guest_driver.ROOT / "usr/lib/python3.13"
    files = [f"/{path.relative_to(guest_driver.ROOT)}" for path in sorted(library.glob("*.py")) if path.stem != "this"]
    folder = str(guest_driver.guest_folder() / "source")
    shutil.copy(os.path.join(os.path.dirname(__file__), "guest_compare.py"), folder)
    done = subprocess.run(
        [*guest_driver.interpreter("python"), f"{folder}/guest_compare.py", folder, *files],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0) and len(files) > 100


@pytest.mark.parametrize(
    "code, line",
    [
        ("x = 1\nif x:\n    1 / 0\nreturn 2\n", 3),
        ("class A:\n    return 1\n", 2),
        ("return 1\nyield 2\n", 2),
        ("return 1\nx = = 2\n", 2),
        ("def f():\n    raise ValueError\n\nf()\nreturn 1", 2),
        ("import asyncio\nasync def f():\n    raise ValueError\nawait asyncio.sleep(0)\nawait f()\nreturn 1", 3),
        ("return 1\nfrom __future__ import annotations\n", 2),
    ],
)
def test_tracebacks_with_return(run, code, line):
    r = run(code)
    assert r.status == 1 and f'snippet.py", line {line}' in r.err, r.describe()
    assert "isle" not in r.err and ("Traceback" in r.err) == ("SyntaxError" not in r.err), r.err


def test_PY_06_await(run):
    code = "import asyncio\nawait asyncio.sleep(0.01)\nprint('top')\n"
    assert run(code).out == "top\n"
    assert run(code + "return await asyncio.sleep(0, 5)").value == 5
    assert run("async def f(): return 7\nreturn f()").value == 7
    assert run("import asyncio\nreturn asyncio.run(asyncio.sleep(0, 5))").value == 5
    assert run("import asyncio\nasync with asyncio.timeout(5): pass\nreturn [x async for x in aiter_of()]").status == 1


def test_PY_08_exit_and_fork(run):
    r = run('import os; print("keep", end=""); os._exit(3)')
    assert (r.out, r.status, r.frames) == ("keep", 3, [])
    r = run('import os; print("once", end=""); os.fork()')
    assert r.out == "once" and r.text == "null"
    r = run("import os\npid = os.fork()\nif pid: os.waitpid(pid, 0)\nreturn 1")
    assert r.value == 1
    assert run("import os; os._exit(0)").frames == []


def test_PY_09_stdin(run):
    assert run("a = input(); b = int(input()); print(a * b)", stdin="α\n2\n".encode()).out == "αα\n"
    assert run("input('name? ')").status == 1


def test_PY_10_threads_and_atexit(run):
    code = """
    import atexit, threading, time
    atexit.register(print, "atexit")
    def late(): time.sleep(0.3); print("late")
    threading.Thread(target=late).start()
    return 1
    """
    r = run(code)
    assert r.value == 1 and r.out == "late\natexit\n"


@pytest.mark.parametrize("number, status", [("SIGTERM", -signal.SIGTERM), ("SIGINT", -signal.SIGINT)])
def test_signals_have_their_default(run, number, status):
    r = run(f"import os, signal\nos.kill(os.getpid(), signal.{number})\nfor _ in range(10**9): pass")
    assert r.status == status
    assert ("KeyboardInterrupt" in r.err) == (number == "SIGINT")


def test_descriptors(run):
    code = """
    import os, subprocess
    first = os.open("/dev/null", 0)
    print(first, subprocess.run(["ls", "/proc/self/fd"], capture_output=True, text=True, close_fds=False).stdout.split())
    """
    r = run(code)
    assert r.out.startswith("3 "), r.describe()
    assert len(r.out.split()) == 5, r.out  # ls: 0 1 2 and its own folder


def test_closed_channel(run):
    r = run("import os\nos.closerange(3, 1 << 16)\nreturn 1")
    assert r.frames == [] and r.status == 0
    r = run("import os\nfor n in range(3, 2000):\n    try: os.dup2(1, n)\n    except OSError: pass\nreturn 1")
    assert r.frames == [] and r.out == ""


def test_workspace_modules(run, tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    (work / "helper.py").write_text("x = 1")
    for name in (
        "isle_values",
        "isle_returning",
        "_json",
        "asyncio",
        "posix",
        "marshal",
        "sitecustomize",
        "usercustomize",
    ):
        (work / f"{name}.py").write_text("print('taken from the workspace')")
    site = work / ".local/lib/python3.13/site-packages"
    site.mkdir(parents=True)
    (site / "evil.pth").write_text("import sys; print('from a pth file')")
    r = run("import helper\nawait helper_later()\nreturn helper.x")
    assert r.status == 1 and "NameError" in r.err and r.out == ""
    assert run("import helper\nreturn helper.x").value == 1


def test_source_is_kept(run, tmp_path):
    code = "# ü\ns = 'a\\\n  b'\r\nimport inspect\ndef f():\n\treturn 1\nprint(inspect.getsource(f))\n"
    r = run(code)
    assert r.out == "def f():\n\treturn 1\n\n", r.describe()
    data = (tmp_path / "code/snippet.py").read_bytes()
    assert hashlib.sha256(data).digest() == hashlib.sha256(code.encode()).digest()


def test_C10_carriage_return(run):
    code = 'pass\rimport os,sys\rprint("outside",flush=True)\ros._exit(0)'
    r = run(code)
    assert r.frames == [] and r.out == "outside\n"


def test_C12_params(run):
    params = {
        "a": "'''\"\"\"",
        "b": "\u2028\u2029",
        "e": "$(id) `id`",
        "f": "\0",
        "__proto__": {"x": 1},
        "g": "{{7*7}}",
    }
    assert run("return params", params).value == params
    digits = "9" * 6000
    r = run("return params", f' {{"n": {digits}, "s": "\\ud83d\\ude00", "x": 1e400, "z": -0.5e-3}} '.encode())
    assert r.text == f'{{"n":{digits},"s":"😀","x":null,"z":-0.0005}}'


def test_RES_15_tampering(run):
    code = "import json, sys; json.dumps = None; print = None; sys.stdout.close()\nreturn 5"
    assert run(code).value == 5
    code = """
    import builtins, posix, sys
    change = setattr
    for name in [*vars(builtins)]: change(builtins, name, None)
    sys.modules.clear()
    posix.write = posix.getpid = posix.fstat = None
    return {"a": [1, "x", 2.5, None]}
    """
    assert run(code).text == '{"a":[1,"x",2.5,null]}'


def test_C08_error_survives_tampering(run):
    code = """
    import json, sys, builtins
    json.dumps = lambda *a, **k: '"forged"'
    builtins.print = lambda *a, **k: None
    sys.excepthook = lambda *a: None
    raise RuntimeError("boom")
    """
    r = run(code)
    assert r.status == 1 and r.error == {"type": "RuntimeError", "message": "boom"}


def test_no_memory_left(run):
    code = """
    import resource
    hoard = []
    resource.setrlimit(resource.RLIMIT_AS, (200 << 20, 200 << 20))
    while True: hoard.append(bytes(1 << 16))
    """
    r = run(code)
    assert r.status == 1 and r.error["type"] == "MemoryError" and "MemoryError" in r.err


MAIN = {"mode": "function"}


def test_main_is_called(run):
    assert run("def main(inputs): return {'sum': inputs['a'] + 1}", {"a": 1}, **MAIN).value == {"sum": 2}
    assert run("def main(): return [1]", **MAIN).value == {"result": [1]}
    assert run("main = lambda *a: len(a)", **MAIN).value == {"result": 1}
    assert run("from functools import partial\nmain = partial(lambda x, p: x, 7)", **MAIN).value == {"result": 7}
    for code in (
        "import sys\ndef main(p): sys.exit(0)",
        "def main(p): return 1\nraise SystemExit",
        "import asyncio\nasync def main(p): await asyncio.sleep(0); exit()",
        "class M:\n    def __call__(self, p): return 1\n    @property\n    def __signature__(self): quit(False)\nmain = M()",
    ):
        r = run(code, **MAIN)  # what ends well without main's value has no outputs: that is no success with null ones
        text = "the program ended before main returned: the outputs are what main returns"
        assert (r.status, r.err, r.error) == (1, text + "\n", {"type": "", "message": text})
    # a decorator that passes on what it is given; one that takes the inputs apart
    decorator = """
    import functools
    def plain(f):
        @functools.wraps(f)
        def wrapper(*args, **kw): return f(*args, **kw)
        return wrapper
    def apart(f):
        @functools.wraps(f)
        def wrapper(inputs): return f(**inputs)
        return wrapper
    """
    assert run(decorator + "@plain\n    def main(): return 4", **MAIN).value == {"result": 4}
    assert run(decorator + "@apart\n    def main(a, b): return a + b", {"a": 1, "b": 2}, **MAIN).value == {"result": 3}


def test_main_awaits_where_the_top_level_did(run):
    assert run("async def main(p): return {'x': p['x']}", {"x": 10**30}, **MAIN).value == {"x": 10**30}
    code = """
    import asyncio
    queue = asyncio.Queue()
    task = asyncio.create_task(queue.put(3))
    await asyncio.sleep(0)
    async def main(): return await queue.get()
    """
    assert run(code, **MAIN).value == {"result": 3}
    code = "import asyncio\nawait asyncio.sleep(0)\ndef main(p): return asyncio.run(asyncio.sleep(0, 7))"
    assert run(code, **MAIN).value == {"result": 7}


def test_main_fails_in_its_own_place(run):
    r = run("def main(p):\n    x = 1\n    raise ValueError('no')", **MAIN)
    assert r.error == {"type": "ValueError", "message": "no"}
    assert re.fullmatch(
        r"Traceback .*:\n  File \".*/snippet.py\", line 3, in main\n    raise ValueError\('no'\)\nValueError: no\n",
        r.err,
    )
    r = run("import asyncio\nasync def main(p):\n    await asyncio.sleep(0)\n    1 / 0", **MAIN)
    assert r.err.startswith('Traceback (most recent call last):\n  File "') and 'snippet.py", line 4, in main' in r.err
    assert "isle_main" not in r.err and "asyncio" not in r.err


NO_MAIN = "the code defines no function main: the outputs are what main(inputs) returns"
RETURNED = "a top-level return was reached: the outputs are what main returns"


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("x = 1", NO_MAIN),
        ("class A:\n    def main(self): pass", NO_MAIN),
        pytest.param("x = 1\n" * 40_000, NO_MAIN, id="large"),
        ("main = 5", "main is no function: it is of type int"),
        ("def main(a, b, c=1): pass", "main needs a, b: it is called with one argument, the inputs"),
        ("def main(p, *, k): pass", "main needs k: it is called with one argument, the inputs"),
        ("return 5\ndef main(): pass", RETURNED),
    ],
)
def test_main_that_cannot_be_called(run, code, message):
    r = run(code, **MAIN)
    assert (r.status, r.err, r.error) == (1, message + "\n", {"type": "", "message": message})
    [fault] = run(code, mode="check").value["errors"]
    assert fault["message"] == message


def test_return_beside_main(run):
    code = "def main(p): return 1\nif params:\n    return"
    assert run(code, **MAIN).value == {"result": 1}
    assert run(code, {"a": 1}, **MAIN).error["message"] == RETURNED
    code = "import asyncio\nif params: return None\nawait asyncio.sleep(0)\nasync def main(p): return 2"
    assert run(code, **MAIN).value == {"result": 2}
    assert run(code, {"a": 1}, **MAIN).error["message"] == RETURNED


@pytest.mark.parametrize(
    "code",
    [
        "if params:\n    def main(): pass",
        "def f():\n    global main\n    main = print",
        "[main := x for x in [print]]",
        "from os import *",
        "exec('def main(): pass')",
        "import builtins\nbuiltins.exec('def main(): pass')",
        "globals()['main'] = print",
        "f = lambda: 0\ngetattr(f, '__glo' + 'bals__')['ma' + 'in'] = f",
        "import sys\nsys.modules['__main__'].main = print",
        "from os import system as main",
        "def main(a, b): pass\nmain = print",
        "def d(f): return f\n@d\ndef main(a, b): pass",
        "raise SystemExit('it ran')\ndef main(): pass",
        pytest.param("def main(): return " + "+".join(["1"] * 3000), id="deep"),
        pytest.param("x = 1\n" * 40_000 + "def main(a, b): pass", id="large"),
        pytest.param("x = 1\n" * 40_000 + "from os import \\\n  *", id="large import"),
        "await x\nasync def main(): pass",
    ],
)
def test_nothing_is_said_against(run, code):
    r = run(code, mode="check")
    assert (r.value, r.out, r.err) == ({"errors": []}, "", "")


def test_syntax_is_told(run):
    assert run("def main(:", mode="check").value == {"errors": [{"message": "SyntaxError: invalid syntax", "line": 1}]}
    for code in (
        "\0",
        "(" * 500,
        "-" * 100_000 + "1",
        "# -*- coding: ascii -*-\n'é'",
        "def main():\n\tx\n        y",
        "continue",
    ):
        [fault] = run(code, mode="check").value["errors"]
        assert re.match(r"(Syntax|Indentation|Tab|Recursion|Memory|Value)Error: .", fault["message"]), fault


def test_what_site_does(run, tmp_path):
    program = "import sys\nprint(sys.path[1:], exit, quit, help, sys.prefix, sys.exec_prefix)\nimport numpy\nexit(3)\n"
    r = run(program)
    assert (r.out, r.err, r.status) == bare(tmp_path, program)
    assert r.status == 3 and r.error == {"type": "SystemExit", "message": "3"}


def test_runs_from_the_source_folder(run, monkeypatch):
    monkeypatch.setattr(guest_driver, "wrapper", lambda _: str(guest_driver.guest_folder() / "source/python.py"))
    assert run("from math import *\nreturn [params, floor(2.5)]", {"a": 1}).value == [{"a": 1}, 2]


def test_json_is_not_imported(run):
    r = run(
        "import sys\nreturn sorted(set(sys.modules) & {'json', 'ast', 're', 'isle_values', 'asyncio', 'dataclasses'})"
    )
    assert r.value == []
    assert json.loads(r.text) == []
