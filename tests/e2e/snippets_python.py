"""A grammar of Python programs: program(seed) is always the same program, as bytes.

A program is a list of pieces, each a statement or a small scene of one feature, put inside one another (a piece in a
function, a class, a `try`, a loop ...), and it may end by an error, an exit or a thread's doing. Everything it prints is
the same in each run, but for addresses."""

from __future__ import annotations

import random
import textwrap
from collections.abc import Callable

ERRORS = ["ValueError", "KeyError", "TypeError", "RuntimeError", "OSError", "StopIteration", "AssertionError", "Own"]
TEXTS = ["a", "naïve", "数据", "🎉", "tab\\t", "line\\n", "nul\\0", "é", "quote's", "\\ud83d"]


class Grammar:
    def __init__(self, seed: str) -> None:
        self.random = random.Random(seed)
        self.count = 0
        self.names = ["zero", "text", "items"]
        self.imports: set[str] = set()
        self.heavy = 0
        self.spawning = self.chance(0.04)

    # Small parts --------------------------------------------------------------------------------------------

    def choose(self, *what):
        return self.random.choice(what)

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def fresh(self, stem: str) -> str:
        self.count += 1
        return f"{stem}{self.count}"

    def need(self, *modules: str) -> None:
        self.imports.update(modules)

    def name(self) -> str:
        return self.choose(*self.names)

    def literal(self) -> str:
        return self.choose(
            lambda: str(self.random.randint(-5, 10 ** self.random.randint(1, 20))),
            lambda: repr(self.random.choice(TEXTS[:8])),
            lambda: f"b'{self.choose('x', chr(92) + 'xff', '')}'",
            lambda: self.choose("None", "True", "...", "1.5", "1e400", "2j", "0x_ff", "0b1"),
            lambda: f"r'{self.choose('a', chr(92) + 'd')}'",
            lambda: "'''one\n  two\n\\\nthree'''",
        )()

    def expression(self, depth: int = 3) -> str:
        if depth == 0:
            return self.choose(self.name, self.literal)()
        e = lambda: self.expression(depth - 1)  # noqa: E731
        v = self.fresh("v")
        return self.choose(
            lambda: f"({e()}, {e()})",
            lambda: f"[{e()}, *[{e()}]]",
            lambda: f"{{'k': {e()}, **{{'l': {e()}}}}}",
            lambda: f"[{v} for {v} in range({self.random.randint(0, 4)})]",
            lambda: f"[({v}, {e()}) for {v} in [1, 2] if {v} != {self.random.randint(0, 2)}]",
            lambda: f"{{{v}: {e()} for {v} in 'ab'}}",
            lambda: f"list(({v}, {self.name()}) for {v} in range(2))",
            lambda: f"({e()} if {e()} else {e()})",
            lambda: f"(lambda {v}={e()}: ({v}, {self.name()}))()",
            lambda: f"f'{{{self.name()}!r:>{self.random.randint(1, 9)}}} {{ {self.name()} = }}'",
            lambda: f"({v} := {e()})",
            lambda: f"({e()} or {e()})",
            lambda: f"str({e()})",
            lambda: f"type({e()}).__name__",
            lambda: f"eval({self.name()!r})",
            lambda: f"({e()} == {e()})",
            lambda: self.name(),
        )()

    def error(self) -> str:
        """An expression that is an exception."""
        kind = self.choose(*ERRORS)
        if kind == "Own":
            return f"Own({self.literal()})"
        return f"{kind}({self.choose('', self.literal(), repr(self.random.choice(TEXTS[:8])))})"

    def failing(self) -> str:
        """A statement that raises, in most cases."""
        return self.choose(
            f"raise {self.error()}",
            f"raise {self.error()} from {self.error()}",
            f"raise {self.error()} from None",
            f"{self.name()}.missing_attribute",
            "undefined_name",
            "1 / zero",
            "items[99]",
            "{}['no such key']",
            "int('twelve')",
            "assert zero, 'zero ' + str(zero)",
            "import no_such_module",
            "from os import no_such_name",
            "(lambda a, /, *, b: a)(1)",
            "text + zero",
            "a, b = items",
            "open('no such file')",
            "'\\ud83d'.encode()",
            "raise ExceptionGroup('g', [ValueError(1), ExceptionGroup('h', [KeyError('x')])])",
            "print(zero,\n      items[\n          99],\n      text)",
            "(zero\n + 1) / (zero\n   * 2)",
            "raise 'no exception'",
            "exec('1 / 0')",
            "eval('zero +')",
            "exec('def f():\\n    return zero / zero\\nf()')",
            "exec(compile('\\n\\n1 / 0', 'other.py', 'exec'))",
        )

    # Pieces -------------------------------------------------------------------------------------------------

    def piece(self, depth: int) -> str:
        if depth > 0 and self.chance(0.35):
            return self.random.choice(self.nests())(depth - 1)
        light, heavy = self.scenes()
        if self.heavy < 1 and self.chance(0.08):
            self.heavy += 1
            return textwrap.dedent(self.random.choice(heavy)()).strip("\n")
        if self.chance(0.4):
            return self.simple()
        return textwrap.dedent(self.random.choice(light)()).strip("\n")

    def block(self, depth: int, most: int = 3) -> str:
        pieces = [self.piece(depth) for _ in range(self.random.randint(1, most))]
        return indent("\n".join(pieces))

    def simple(self) -> str:
        n = self.fresh("n")
        made = self.choose(
            f"{n} = {self.expression()}",
            f"{n}: int = {self.expression(2)}",
            f"{n}: 'undefined[later]' = {self.expression(1)}",
            f"{n} = text; print({n!r}, {n})",
            f"{n}, *{n}s = {self.literal()}, 2, 3",
            f"print({self.expression()})",
            f"print({self.expression(2)}, file=sys.stderr)",
            f"print(repr({self.expression(2)}))",
            f"for {n} in {self.choose('items', '()', 'range(2)')}: pass\nelse: print('else')",
            f"{n} = 1\ndel {n}",
            f"exec({f'{n} = zero + 1; print({n})'!r})",
            f"globals()[{n!r}] = 5",
            f"with open('/dev/null') as {n}: pass",
            f"type {n} = list[{n}]",
            f"print({n}) if {n!r} in globals() else None",
            f"print({self.name()},\\\n  sep='')",
            "x = y = z = 0; print(x, y, z)",
            "pass  # a comment ü",
            "...",
            f"{n} = '''\n  kept\n\ttab\n'''; print(repr({n}))",
            f"zero: {self.choose('int', 'str')}",
        )
        return made

    def nests(self) -> list[Callable[[int], str]]:
        return [
            self.in_function, self.in_class, self.in_try, self.in_loop, self.in_with, self.in_async, self.in_generator,
            self.in_match, self.in_if,
        ]  # fmt: skip

    def in_function(self, depth: int) -> str:
        f, extra = self.fresh("f"), ""
        if self.chance(0.3):
            extra = f"    global {self.choose('zero', 'items', 'made')}\n"
        decorated = self.choose("", "", "", "@traced\n", "@functools.wraps(print)\n", "@functools.cache\n")
        self.need("functools")
        end = self.choose("", f"\n    return {self.expression(2)}", "\n    return locals().keys()")
        body = self.block(depth)
        call = self.choose(f"{f}()", f"print({f}())", f"print({f}.__name__, {f}.__qualname__); {f}()", f"del {f}")
        argument = self.choose("", "", "zero=zero", "*rest, key=1", "a: 'later' = 1, /, b=2")
        result = self.choose("", "", " -> 'later'")
        return f"{decorated}def {f}({argument}){result}:\n{extra}{body}{end}\n{call}"

    def in_class(self, depth: int) -> str:
        c = self.fresh("C")
        base = self.choose("", "", "(Base)", "(dict)", "(metaclass=Meta)")
        body = self.block(depth, 2)
        method = f"    def m(self):\n{indent(self.block(depth, 1))}\n        return __class__.__qualname__"
        doc = self.choose("", '    "doc"\n')
        tail = self.choose(f"print({c}().m())", f"print(sorted(vars({c})))", f"print({c}.__doc__, {c}.__module__)")
        return f"class {c}{base}:\n{doc}    attribute = zero\n{body}\n{method}\n{tail}"

    def in_try(self, depth: int) -> str:
        body = self.block(depth, 2)
        failing = indent(self.failing()) if self.chance(0.7) else indent("pass")
        caught = self.choose("Exception", "(ValueError, KeyError)", "BaseException", "Own", "ZeroDivisionError")
        star = "*" if self.chance(0.1) and caught != "BaseException" else ""
        handler = self.choose(
            "print(type(e), e)",
            "traceback.print_exc()",
            "raise",
            "raise Own('again') from e",
            "print(traceback.format_exc())",
            "print(e.__traceback__.tb_lineno)",
            "e.add_note('a note'); raise",
            "print(sys.exc_info()[0])",
        )
        self.need("traceback")
        final = "finally:\n" + self.block(depth, 1) if self.chance(0.4) else ""
        return f"try:\n{body}\n{failing}\nexcept{star} {caught} as e:\n    {handler}\n{final}"

    def in_loop(self, depth: int) -> str:
        i = self.fresh("i")
        self.names.append(i)
        return f"{i} = 0\nfor {i} in range({self.random.randint(1, 3)}):\n{self.block(depth)}"

    def in_if(self, depth: int) -> str:
        return f"if {self.expression(1)}:\n{self.block(depth)}\nelse:\n{self.block(depth)}"

    def in_with(self, depth: int) -> str:
        what = self.choose("contextlib.suppress(Exception)", "manager()", "contextlib.redirect_stdout(sys.stderr)")
        self.need("contextlib")
        return f"with {what} as {self.fresh('w')}:\n{self.block(depth)}"

    def in_async(self, depth: int) -> str:
        f = self.fresh("co")
        self.need("asyncio")
        inside = self.choose(
            "await asyncio.sleep(0)",
            "print([x async for x in agen()])",
            "async with asyncio.timeout(30): pass",
            f"print(await asyncio.gather(*(asyncio.sleep(0, {self.name()}) for _ in range(2))))",
            "async with asyncio.TaskGroup() as g: g.create_task(asyncio.sleep(0))",
        )
        return f"async def {f}():\n{indent(inside)}\n{self.block(depth)}\nasyncio.run({f}())"

    def in_generator(self, depth: int) -> str:
        g = self.fresh("g")
        use = self.choose(
            f"print(list({g}()))",
            f"it = {g}(); print(next(it)); it.close()",
            f"it = {g}(); next(it); print(it.send(5))",
            f"it = {g}(); next(it); it.throw(ValueError('thrown'))",
        )
        return f"def {g}():\n    try:\n        got = yield zero\n        print('got', got)\n    finally:\n        print('closing')\n{self.block(depth, 2)}\n    yield from items\n{use}"

    def in_match(self, depth: int) -> str:
        subject = self.choose("items", "{'k': [1, 2], 'z': 0}", "text", "zero", "Point(1, 2)")
        return (
            f"match {subject}:\n    case {{'k': [a, *b], **c}}:\n        print(a, b, c)\n    case Point(x, y=yy):\n"
            f"        print(x, yy)\n    case [first, *_] if first:\n{indent(self.block(depth, 2))}\n"
            f"    case str() | int() as whole:\n{indent(self.block(depth, 2))}\n    case _:\n        print('none')"
        )

    # Scenes: one feature each -------------------------------------------------------------------------------

    # A child of `spawn` runs compiled code: its __loader__ is another, it lies beside the file, the compiler warns once.
    NOT_SPAWNED = ("scene_main_names", "scene_warnings", "scene_source")

    def scenes(self) -> tuple[list[Callable[[], str]], list[Callable[[], str]]]:
        light, heavy = [], []
        for name in sorted(dir(self)):
            if self.spawning and name in self.NOT_SPAWNED:
                continue
            if name.startswith("scene_"):
                light.append(getattr(self, name))
            elif name.startswith("heavy_"):
                heavy.append(getattr(self, name))
        return light, heavy

    def scene_main_names(self) -> str:
        return self.choose(
            "print(__name__, __file__, __package__, __spec__, __cached__ if '__cached__' in globals() else 0)",
            "print(__doc__, __annotations__)",
            "print(type(__loader__).__name__, __loader__.name, __loader__.path)",
            "print(type(__builtins__))",
            "print(sorted(n for n in globals() if n != 'params'))",
            "print(sorted(n for n in dir() if n != 'params'))",
            "print(locals() is globals(), vars() is globals())",
            "print(sys.modules['__main__'].__dict__ is globals(), sys.modules['__main__'])",
            "print(sys.argv, sys.orig_argv[-1:], sys.path[0])",
            "print(sys.path)",
            "print(sys.flags.dev_mode, sys.flags.optimize, sys.flags.utf8_mode, sys.flags.isolated, sys.flags.interactive)",
            "print(__import__('__main__').__name__, __debug__)",
            "import __main__; print(__main__.zero, [n for n in vars(__main__) if n.startswith('__')])",
            "print(sys.stdin.read(), sys.stdin.name, sys.stdout.encoding, sys.stderr.errors, sys.stdout.line_buffering)",
            "print(sys.getrecursionlimit(), sys.getswitchinterval(), sys.gettrace(), sys.getprofile())",
            "print(sys.warnoptions, sys._xoptions, sys.dont_write_bytecode)",
            "print([n for n in ('exit', 'quit', 'help') if hasattr(__builtins__, n)], exit)",
        )

    def scene_frames(self) -> str:
        self.need("inspect", "traceback", "logging")
        return self.choose(
            "print(sys._getframe().f_code.co_name, inspect.currentframe().f_lineno)",
            "print(inspect.stack()[0].function, inspect.stack()[0].code_context)",
            "logging.warning('without a stack')",
            "def where(): return sys._getframe(1).f_code.co_name, sys._getframe(1).f_lineno\nprint(where())",
            "print(sys._getframe().f_globals is globals(), sys._getframe().f_builtins is vars(__import__('builtins')))",
            "def deep(n): return deep(n + 1)\ntry: deep(0)\nexcept RecursionError as e: print(e)",
            "print(sys._getframemodulename(0))",
        )

    def scene_warnings(self) -> str:
        self.need("warnings")
        return self.choose(
            "warnings.warn('careful')",
            "def old(): warnings.warn('old', DeprecationWarning, stacklevel=2)\nold()",
            "warnings.warn('deprecated here', DeprecationWarning)",
            "warnings.simplefilter('error'); warnings.warn('now an error')",
            "print(zero is 1, 1 is 1)",
            "print('\\d', '\\8')",
            "with warnings.catch_warnings(record=True) as w:\n    warnings.simplefilter('always'); warnings.warn('kept')\nprint(len(w), w[0].filename, w[0].lineno)",
            "print(warnings.filters)",
            "import imp_or_not" if self.chance(0.1) else "assert (zero, 'always true')",
        )

    def scene_unraisable(self) -> str:
        return self.choose(
            "class D:\n    def __del__(self): raise ValueError('in del')\nD()",
            "class D:\n    def __del__(self): print('deleted')\nkept = D()",
            "class D:\n    def __del__(self): 1 / 0\nkept = D()",
            "sys.unraisablehook = lambda u: print('unraisable', u.exc_type)\nclass D:\n    def __del__(self): 1 / 0\nD()",
            "import weakref\nclass W: pass\nw = W(); weakref.finalize(w, print, 'finalized')",
            "import gc\nclass Cycle:\n    def __init__(self): self.me = self\n    def __del__(self): print('cycle')\nCycle(); print(gc.collect() > 0)",
        )

    def scene_atexit(self) -> str:
        self.need("atexit")
        return self.choose(
            f"atexit.register(print, 'at exit', {self.literal()})",
            "@atexit.register\ndef late():\n    print('late', zero)",
            "atexit.register(lambda: 1 / 0)",
            "atexit.register(sys.exit, 5)",
            "atexit.register(lambda: print(sorted(n for n in globals() if n in ('zero', '__name__'))))",
        )

    def scene_threads(self, late: bool = False) -> str:
        """Late: it goes on when the main code has ended. One of them in a program, or their order is unknown."""
        self.need("threading")
        work = self.choose(
            "print('in a thread')",
            "sys.exit(3)",
            "raise ValueError('in a thread')",
            "print(threading.current_thread().name, threading.main_thread().name)",
            "raise SystemExit('text')",
            "print(sys._getframe().f_back is not None)",
        )
        how = "" if late else self.choose("t.join()", "t.join(); print('joined')")
        wait = "threading.main_thread().join(); " if late else ""
        hook = self.choose("", "", "threading.excepthook = lambda a: print('hook', a.exc_type)\n")
        return f"{hook}def work():\n    {wait}{work}\nt = threading.Thread(target=work, name='T')\nt.start()\n{how}"

    def scene_hooks(self) -> str:
        return self.choose(
            "sys.excepthook = lambda t, e, tb: print('hook', t.__name__, e, tb and tb.tb_lineno)",
            "def hook(*a):\n    sys.__excepthook__(*a); print('after')\nsys.excepthook = hook",
            "sys.excepthook = 5",
            "def hook(*a): raise ValueError('in the hook')\nsys.excepthook = hook",
            "sys.tracebacklimit = 1",
            "del sys.excepthook",
            "sys.settrace(lambda *a: None)",
            "calls = []\nsys.setprofile(lambda f, e, a: calls.append(e)); len(''); sys.setprofile(None); print(calls)",
            "lines = []\ndef tr(f, e, a): lines.append((e, f.f_code.co_name)); return tr\nsys.settrace(tr)\ndef g(): pass\ng()\nsys.settrace(None); print(lines)",
            "sys.displayhook(5); print(sys.displayhook.__name__)",
            "print(sys.excepthook is sys.__excepthook__)",
        )

    def scene_classes(self) -> str:
        self.need("dataclasses", "pickle", "typing", "enum", "copy")
        c = self.fresh("K")
        return self.choose(
            f"@dataclasses.dataclass(frozen={self.chance(0.5)}, order=True)\nclass {c}:\n    x: int\n    y: 'list[{c}]' = dataclasses.field(default_factory=list)\nprint({c}(1), {c}.__module__, {c}(1) < {c}(2))",
            f"class {c}: pass\nprint(pickle.loads(pickle.dumps({c}())).__class__ is {c}, {c}.__module__, {c})",
            f"class {c}(enum.Enum):\n    A = 1\n    B = enum.auto()\nprint(list({c}), pickle.loads(pickle.dumps({c}.A)))",
            f"class {c}(typing.NamedTuple):\n    a: int\n    b: str = 'x'\nprint({c}(1), pickle.loads(pickle.dumps({c}(1))))",
            f"@dataclasses.dataclass\nclass {c}:\n    x: 'Point'\nprint(typing.get_type_hints({c}))",
            f"def outer():\n    class {c}: pass\n    return pickle.dumps({c}())\nouter()",
            f"class {c}[T]:\n    def m[U](self, a: T, b: U) -> T: return a\nprint({c}[int]().m(1, 2), {c}.__type_params__)",
            f"class {c}:\n    __slots__ = ('a', 'b')\n    @property\n    def p(self): return self.a\nprint({c}.p); {c}().p",
            f"class {c}(Base):\n    def __init_subclass__(cls, **kw): print('sub', cls.__name__, kw)\nclass {c}s({c}, a=1): pass",
            f"{c} = typing.NamedTuple('{c}', [('a', int)]); print({c}.__module__, {c}(1))",
            f"{c} = enum.Enum('{c}', 'A B'); print({c}.__module__, {c}.A)",
            "import collections\nP = collections.namedtuple('P', 'x y'); print(P.__module__, pickle.loads(pickle.dumps(P(1, 2))))",
            f"T{c} = typing.TypeVar('T{c}'); print(T{c}.__module__, T{c})",
        )

    def scene_scopes(self) -> str:
        n = self.fresh("s")
        return self.choose(
            f"def {n}():\n    x = 1\n    def inner():\n        nonlocal x\n        x += 1\n        return x, zero\n    return inner(), x\nprint({n}())",
            f"{n} = 1\nclass {n}C:\n    {n} = 2\n    seen = [{n} for _ in range(2)]\n    lam = lambda: {n}\nprint({n}C.seen, {n}C.lam())",
            f"print([(lambda: {n})() for {n} in range(2)], [f() for f in [lambda: {n} for {n} in range(2)]])",
            f"[{n} := j for j in range(3)]; print({n})",
            f"def {n}():\n    print(zero)\n    zero = 1\n{n}()",
            f"def {n}():\n    global {n}_made\n    {n}_made = 5\n{n}(); print({n}_made)",
            f"exec('{n} = 5', globals()); print({n})",
            f"def {n}():\n    exec('hidden = 1'); return 'hidden' in locals()\nprint({n}())",
            "from os.path import *\nprint(join('a', 'b'), basename(__file__))",
            "from math import *; print(floor(2.5), 'pi' in globals())",
            f"for {n} in range(2): pass\nprint({n}); del {n}\ntry: {n}\nexcept NameError as e: print(e)",
            f"def {n}(a=[]): a.append(1); return a\n{n}(); print({n}())",
            "def f():\n    try:\n        return 1\n    finally:\n        print('finally')\nprint(f())",
            "def f():\n    while True:\n        try:\n            raise ValueError\n        finally:\n            break\n    return 'left'\nprint(f())",
            "print({**{'a': 1}, 'b': 2}, [*'ab'], (*(), 1))",
        )

    def scene_source(self) -> str:
        self.need("inspect", "linecache")
        n = self.fresh("src")
        return self.choose(
            f"def {n}(a,\n   b=2):\n    # kept\n    return a\nprint(inspect.getsource({n}), inspect.getsourcelines({n})[1])",
            f"class {n}:\n    def m(self): pass\nprint(inspect.getsource({n}), inspect.getfile({n}))",
            f"{n} = lambda: 1\nprint(inspect.getsource({n}), {n}.__code__.co_filename, {n}.__code__.co_firstlineno)",
            "print(linecache.getline(__file__, 1), inspect.getmodule(inspect.currentframe()))",
            "print(len(open(__file__, 'rb').read()), repr(open(__file__, 'rb').read()[:20]))",
            "import hashlib, ast\nprint(hashlib.sha256(open(__file__, 'rb').read()).hexdigest())",
            "import os\nprint(sorted(os.listdir(os.path.dirname(__file__))))",
            "def f(): '''Documented.'''\nhelp(f)",
            "import doctest\ndef f():\n    '''\n    >>> f()\n    1\n    '''\n    return 2\nprint(doctest.testmod())",
            "import unittest\nclass T(unittest.TestCase):\n    def test_a(self): self.assertEqual(1, zero)\nprint(unittest.main(exit=False, argv=['t']).result.testsRun)"
            if self.chance(0.2)
            else "print(inspect.signature(lambda a, *, b: 0))",
        )

    def scene_output(self) -> str:
        return self.choose(
            "sys.stdout.write('no newline')",
            "sys.stderr.write('to stderr')",
            "sys.stdout.buffer.write(b'\\xff bytes\\n')",
            f"print({self.random.choice(TEXTS)!r}.replace('\\\\\\\\', '\\\\'))",
            f"print('{self.random.choice(TEXTS)}')",
            "print('a\\r\\nb\\0c\\x1b[1m')",
            "import os; os.write(1, b'raw\\n'); print('after')",
            "sys.stdout.reconfigure(newline='\\r\\n'); print('crlf')",
            "print('x' * 70000)",
            "sys.stdout.flush(); sys.stdout = sys.stderr; print('moved')",
            "print(*range(5), sep='', end='|')",
            "import json; print(json.dumps({'é': [1, None]}), json.loads('{\"a\": 1e3}'))",
            "sys.stdout.close()",
            "import os; os.close(1)",
        )

    def scene_async(self) -> str:
        self.need("asyncio")
        return self.choose(
            "async def never(): pass\nnever()",
            "async def boom(): raise ValueError('in a task')\nasync def m():\n    t = asyncio.create_task(boom()); await asyncio.sleep(0)\nasyncio.run(m())",
            "async def m():\n    try: await asyncio.sleep(60)\n    finally: print('cancelled')\nasync def n():\n    t = asyncio.create_task(m()); await asyncio.sleep(0); t.cancel()\n    try: await t\n    except asyncio.CancelledError: print('yes')\nasyncio.run(n())",
            "async def m():\n    async with asyncio.TaskGroup() as g:\n        g.create_task(boomer())\nasyncio.run(m())",
            "async def m(): sys.exit(4)\nasyncio.run(m())",
            "async def m(): print(asyncio.current_task().get_coro().__name__)\nasyncio.run(m())",
            "try: asyncio.get_running_loop()\nexcept RuntimeError as e: print(e)",
            "async def m():\n    r, w = await asyncio.open_connection('127.0.0.1', 1)\nasyncio.run(m())",
        )

    def heavy_processes(self) -> str:
        self.need("subprocess", "os")
        return self.choose(
            "print(subprocess.run(['echo', 'child'], capture_output=True, text=True).stdout)",
            "print('A'); subprocess.run(['echo', 'B']); print('C')",
            "pid = os.fork()\nif pid == 0:\n    print('child'); os._exit(3)\nprint(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))",
            "if 'again' not in os.environ:\n    r = subprocess.run([sys.executable, __file__], env={**os.environ, 'again': '1'}, capture_output=True, text=True)\n    print(r.returncode, len(r.stdout))",
            "print(subprocess.run([sys.executable, '-c', 'import sys; print(sys.argv, sys.flags.no_site, sys.flags.no_user_site)'], capture_output=True, text=True))",
            "import multiprocessing\nif __name__ == '__main__':\n    with multiprocessing.get_context('fork').Pool(1) as p: print(p.map(str, [1, 2]))",
            "if os.fork() == 0:\n    sys.exit(7)\nprint(os.waitstatus_to_exitcode(os.wait()[1]))",
            "if os.fork() == 0:\n    raise ValueError('in the child')\nprint(os.waitstatus_to_exitcode(os.wait()[1]))",
            "print(os.listdir('/proc/self/fd')[:3], os.open('/dev/null', 0))",
        )

    def spawn(self) -> str:
        method = self.choose("spawn", "forkserver")
        return f"""
import multiprocessing
def double(n): print(2 * n, __name__, sys.argv, __file__)
if __name__ == '__main__':
    p = multiprocessing.get_context({method!r}).Process(target=double, args=(2,)); p.start(); p.join(); print(p.exitcode)
"""

    def heavy_signals(self) -> str:
        self.need("signal", "os")
        return self.choose(
            "os.kill(os.getpid(), signal.SIGTERM)",
            "os.kill(os.getpid(), signal.SIGINT)",
            "signal.signal(signal.SIGUSR1, lambda s, f: print('signal', s, f.f_code.co_name))\nos.kill(os.getpid(), signal.SIGUSR1)\nprint('on')",
            "print(signal.getsignal(signal.SIGINT).__name__, signal.getsignal(signal.SIGPIPE), signal.getsignal(signal.SIGTERM))",
            "signal.raise_signal(signal.SIGABRT)",
            "os.abort()",
            "signal.signal(signal.SIGALRM, lambda s, f: 1 / 0)\nsignal.setitimer(signal.ITIMER_REAL, 0.01)\nfor _ in range(10**8): pass",
        )

    # The whole ----------------------------------------------------------------------------------------------

    def ending(self) -> str:
        if self.chance(0.35):
            return ""
        value = self.choose("", "0", "1", "None", "256", "-1", "'why'", "3.5", "[1]", "True", "2**40", "'naïve'")
        return self.choose(
            self.failing,
            self.failing,
            lambda: f"def last(n):\n    if n: last(n - 1)\n    else: {self.choose('1 / 0', 'raise Own(5)')}\nlast({self.random.randint(0, 6)})",
            lambda: f"sys.exit({value})",
            lambda: f"raise SystemExit({value})",
            lambda: "raise KeyboardInterrupt",
            lambda: "import os; os._exit(3)",
            lambda: "raise SystemExit(1, 2)",
            lambda: "exit(3)",
            lambda: "class E(BaseException):\n    def __str__(self): raise ValueError('no text')\nraise E",
            lambda: "class X(SystemExit): pass\nraise X(6)",
            lambda: "try: 1 / 0\nexcept Exception as e: raise e.with_traceback(None)",
            lambda: "try: 1 / 0\nfinally: undefined_in_finally",
            lambda: "raise BaseExceptionGroup('b', [SystemExit(3), ValueError('v')])",
            lambda: "sys.last_exc = 5; raise Own('x' * 3000)",
        )()

    def broken(self) -> str:
        """A line that is no Python."""
        return self.choose(
            "y = = 2", "print 'old'", "if True", "def f(:\n  pass", "x = (1,\n", "'unterminated", "  indented = 1",
            "return_ = yield", "yield 1", "break", "class A:\n    def f(self):\n  pass", "é = 1 +", "a b", "f'{x'",
            "x = '''never closed", "0777", "1 = x", "del f()", "nonlocal q", "import", "from __future__ import braces",
            "def f():\n\tif 1:\n        pass", "lambda: (yield)\n$", "x = \\ 1", "print(“quotes”)",
            "for x in range(3) print(x)", "def f(a, a): pass", "global zero", "assert", "else:\n    pass", "raise from x",
            "try:\n    pass\nx = 1", "f(a=1, a=2)", "{**a for a in b}", "match x:\n    case a: pass\n    case b: pass",
            "def g():\n    from os import *", "continue", "(a, b): int = 1", "x = 5 if 1", "\x01", "with open('x') as 1: pass",
        )  # fmt: skip

    def program(self) -> bytes:
        body = [self.piece(2) for _ in range(self.random.randint(2, 7))]
        if self.chance(0.05) and not self.spawning:
            body.append(self.scene_threads(late=True))
        body.append(self.ending())
        if self.spawning:
            body.insert(self.random.randint(0, len(body) - 1), self.spawn())
        elif self.chance(0.12):
            body.insert(self.random.randint(0, len(body)), self.broken())
        head = []
        if self.chance(0.2):
            head.append(self.choose('"""The doc."""', "'doc' ' in two'", '"""doc\nlines\n"""', "f'no doc'"))
        if self.chance(0.2):
            head.append("from __future__ import " + self.choose("annotations", "annotations, division", "(generators)"))
        head.append("import sys" + "".join(f", {m}" for m in sorted(self.imports)))
        text = "\n".join([*head, PRELUDE, *body]) + "\n"
        return self.spoiled(text)

    def spoiled(self, text: str) -> bytes:
        """The text as bytes: encodings, line ends and other outer forms."""
        roll = self.random.random()
        if roll < 0.04:
            text = text.replace("\n", "\r\n")
        elif roll < 0.07:
            text = "\ufeff" + text
        elif roll < 0.10:
            text = text.replace("    ", "\t")
        elif roll < 0.13:
            text = self.choose("# coding: utf-8\n", "# -*- coding: latin-1 -*-\n", "# coding: nonsense\n") + text
        elif roll < 0.15:
            text = "#!/usr/bin/env python3\n# vim: set fileencoding=utf-8 :\n" + text
        elif roll < 0.17:
            text = text.rstrip("\n")
        elif roll < 0.185:
            text += "# " + "x" * 100000 + "\nprint('after a long line')\nundefined  # " + "y" * 5000
        elif roll < 0.20:
            text = text.replace("zero = 0", "zero = 0\0", 1)
        elif roll < 0.21:
            text = text.replace("\n\n", "\n\f\n")
        elif roll < 0.22:
            text += "\\"
        elif roll < 0.23:
            text = "\ufeff# coding: latin-1\n" + text
        elif roll < 0.24:
            text = text.replace("\n", "\r")
        elif roll < 0.25:
            text = "print(" + "[" * self.choose(50, 150, 250) + "]" * 150 + ")\n" + text
        return text.encode("utf-8", "surrogatepass" if self.chance(0.5) else "replace")


PRELUDE = """
zero = 0
text = 'té'
items = [1, 2, 3]
class Own(Exception): pass
class Base:
    def m(self): return 'base'
class Meta(type):
    def __new__(mcs, name, bases, space): return super().__new__(mcs, name, bases, space)
class Point:
    __match_args__ = ('x', 'y')
    def __init__(self, x, y): self.x, self.y = x, y
def traced(f):
    def inner(*a, **k):
        print('call', f.__name__)
        return f(*a, **k)
    return inner
class manager:
    def __enter__(self): print('enter'); return self
    def __exit__(self, *e): print('exit', e[0]); return zero == 1
async def agen():
    yield 1
    yield 2
"""


def indent(text: str) -> str:
    """One level in, also inside of strings: that is then what they say."""
    return textwrap.indent(text, "    ")


def program(seed: str) -> bytes:
    return Grammar(seed).program()
