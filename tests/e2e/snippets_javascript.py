"""A grammar of JavaScript programs: program(seed) is always the same program, as bytes, and the name of its plain file.

As snippets_python.py. A program is CommonJS, a module (import, export), or has an `await` at top level and nothing else
of a module: that is a module to Node.js and an async function to isle, so it holds nothing in which these differ."""

from __future__ import annotations

import random
import textwrap
from collections.abc import Callable

ERRORS = ["Error", "TypeError", "RangeError", "SyntaxError", "Own", "AggregateError"]
TEXTS = ["a", "naïve", "数据", "🎉", "tab\\t", "line\\n", "nul\\0", "quote\\'s", "\\ud83d", "\\u2028"]


class Grammar:
    def __init__(self, seed: str) -> None:
        self.random = random.Random(seed)
        self.kind = self.random.choices(["commonjs", "module", "await"], [70, 20, 10])[0]
        self.count = 0
        self.names = ["zero", "text", "items"]

    def choose(self, *what):
        return self.random.choice(what)

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def fresh(self, stem: str) -> str:
        self.count += 1
        return f"{stem}{self.count}"

    def name(self) -> str:
        return self.choose(*self.names)

    def load(self, module: str) -> str:
        """An expression that is a module."""
        return f"process.getBuiltinModule('{module}')" if self.kind != "commonjs" else f"require('{module}')"

    # Expressions --------------------------------------------------------------------------------------------

    def literal(self) -> str:
        return self.choose(
            lambda: str(self.random.randint(0, 10 ** self.random.randint(1, 20))),
            lambda: f"'{self.random.choice(TEXTS)}'",
            lambda: self.choose(
                "null", "undefined", "true", "NaN", "-0", "1e400", "0x_f".replace("_", ""), "10n", "1_000"
            ),
            lambda: self.choose("/a+/gi", "/(?<y>\\d)/u", "/[\\p{L}--a]/v", "/x/dys"),
            lambda: "`one\n  two ${zero} \\\n three`",
            lambda: self.choose("Symbol('s')", "new Date(0)", "[1,,3]", "new Map([[1, {a: 1}]])", "new Set('ab')"),
            lambda: self.choose(
                "new Uint8Array(3)", "Buffer.from('é')", "{}", "new (class K {})()", "Object.create(null)"
            ),
        )()

    def expression(self, depth: int = 3) -> str:
        if depth == 0:
            return self.choose(self.name, self.literal)()
        e = lambda: self.expression(depth - 1)  # noqa: E731
        v = self.fresh("v")
        return self.choose(
            lambda: f"[{e()}, ...[{e()}]]",
            lambda: f"({{k: {e()}, ['c' + 1]: {e()}, get g() {{ return 1 }}, m() {{}}}})",
            lambda: f"({e()} ? {e()} : {e()})",
            lambda: f"(({v}) => [{v}, {self.name()}])({e()})",
            lambda: f"(function {v}() {{ return {'1' if self.kind == 'await' else 'typeof this'} }})()",
            lambda: f"(({e()}) ?? ({e()}))",
            lambda: f"typeof ({e()})",
            lambda: f"String({self.name()})",
            lambda: f"[1, 2].map(({v}) => ({v} + zero))",
            lambda: f"items?.[{self.random.randint(0, 4)}]",
            lambda: f"(({e()}), ({e()}))",
            lambda: f"eval({self.name()!r})",
            lambda: f"JSON.stringify({self.choose('items', 'text', '{a: [undefined]}')})",
            lambda: f"(({e()}) === ({e()}))",
            lambda: f"Object.keys({{a: {e()}}})",
            lambda: f"new Function('a', 'return a')({e()})",
            lambda: self.name(),
        )()

    def error(self) -> str:
        kind = self.choose(*ERRORS)
        if kind == "AggregateError":
            return "new AggregateError([new Error('one'), 2], 'both')"
        cause = self.choose("", "", ", { cause: new Error('because') }", ", { cause: 5 }")
        return f"new {kind}('{self.random.choice(TEXTS[:8])}'{cause})"

    def failing(self) -> str:
        return self.choose(
            f"throw {self.error()};",
            f"throw {self.error()};",
            f"throw {self.literal()};",
            "undefined.x;",
            "null.f();",
            "undefinedName;",
            "zero = 1; new zero();",
            "items.missing();",
            "const c = 1; c = 2;",
            "BigInt(1.5);",
            "[].reduce((a) => a);",
            "new Array(-1);",
            "JSON.parse('{bad');",
            "JSON.parse('');",
            "(function f() { f() })();",
            "'x'.repeat(-1);",
            "decodeURIComponent('%');",
            "Symbol() + '';",
            "1n + 1;",
            "let [a] = null;",
            "eval('1 +');",
            "new Function('return )');",
            "throw { toString() { return 'shown' }, message: 'object' };",
            "throw null;",
            "throw undefined;",
            "throw Object.assign(new Error('with more'), { code: 'CODE', extra: [1] });",
            f"{self.load('fs')}.readFileSync('/no/such/file');",
            "process.chdir('/no/such/folder');",
            "const e = new Error('renamed'); e.name = 'Mine'; throw e;",
            "const e = new Error('no stack'); e.stack = undefined; throw e;",
            "class Priv { #x; static r(o) { return o.#x } } Priv.r({});",
            "late; let late = 1;",
            "if (zero === 0) {\n  items\n    .map((x) => x)\n    .missing\n    .deeper;\n}",
        )

    # Pieces -------------------------------------------------------------------------------------------------

    def piece(self, depth: int) -> str:
        if depth > 0 and self.chance(0.35):
            return self.random.choice(self.nests())(depth - 1)
        if self.chance(0.4):
            return self.simple()
        return self.random.choice(self.scenes())()

    def block(self, depth: int, most: int = 3) -> str:
        # Braces around each piece, so that names may be declared again.
        pieces = [f"{{\n{self.piece(depth)}\n}}" for _ in range(self.random.randint(1, most))]
        return textwrap.indent("\n".join(pieces), "  ")

    def simple(self) -> str:
        n = self.fresh("n")
        made = [
            f"var {n} = {self.expression()};",
            f"let {n} = {self.expression()}; console.log({n});",
            f"const {{ a: {n}, ...rest{n} }} = {{ a: {self.expression(1)}, b: 2 }}; console.log(rest{n});",
            f"console.log({self.expression(2)});",
            f"console.error({self.expression(2)});",
            f"console.log('%s|%d|%i|%f|%j|%o|%O|%c|%%', {self.literal()}, {self.literal()}, 1.5, '2', {{a: 1}}, [1], {{b: 2}}, 'css', 'more');",
            f"for (const {n} of {self.choose('items', 'text', 'new Map([[1, 2]])')}) console.log({n});",
            f"for (var {n} in items) ; console.log({n});",
            f"{n}: for (;;) {{ for (;;) {{ break {n}; }} }} console.log('left');",
            f"switch ({self.expression(1)}) {{ case 1: console.log('one'); default: console.log('fell'); }}",
            f"do {{ console.log('once') }} while ({self.choose('false', 'zero')});",
            f"console.log(typeof {n}, {n}); var {n} = 1;",
            f"console.log({n}()); function {n}() {{ return 'hoisted' }}",
            "; // a comment ü",
            f"if (zero) ; else console.log({self.name()}); /* block\ncomment */",
            f"console.log(String.raw`a\\n${{{self.name()}}}`);",
        ]
        if self.kind == "commonjs":
            made += [
                f"{n} = 5; console.log(globalThis.{n}, delete globalThis.{n});",
                "with ({ w: 1 }) console.log(w);",
                "console.log(010, 0o10, '\\101');",
                f"{{ function {n}() {{}} }} console.log(typeof {n});",
                "<!-- html comment",
                "var let_ = 1, yield = 2, await = 3; console.log(yield);",
            ]
        return self.random.choice(made)

    def nests(self) -> list[Callable[[int], str]]:
        return [
            self.in_function, self.in_class, self.in_try, self.in_loop, self.in_async, self.in_generator, self.in_arrow,
            self.in_timer, self.in_promise,
        ]  # fmt: skip

    def in_function(self, depth: int) -> str:
        f = self.fresh("f")
        strict = self.choose("", "", "'use strict';")
        call = self.choose(
            f"{f}();", f"console.log({f}(1));", f"console.log({f}.name, {f}.length); {f}();", f"new {f}();"
        )
        back = self.choose("", f"return {self.expression(2)};", "return new.target;", "return arguments.length;")
        argument = self.choose("", "a", "a = zero", "{ a } = {}") if not strict else ""
        return f"function {f}({argument}) {{ {strict}\n{self.block(depth)}\n{back} }}\n{call}"

    def in_arrow(self, depth: int) -> str:
        g = self.fresh("g")
        return f"const {g} = () => {{\n{self.block(depth)}\n}}; {g}();"

    def in_class(self, depth: int) -> str:
        c = self.fresh("C")
        base = self.choose("", "extends Base", "extends Array", "extends Own")
        call = self.choose(
            f"new {c}().m();", f"console.log(new {c}(), {c});", f"console.log({c}.s);", f"new {c}().bad;"
        )
        return (
            f"class {c} {base} {{ #p = zero; field = {self.expression(1)}; static s = 's'; static {{ console.log('static') }}\n"
            f"m() {{\n{self.block(depth)}\n}} get bad() {{ throw new Error('in a getter') }} toString() {{ return 'me' }} }}\n{call}"
        )

    def in_try(self, depth: int) -> str:
        handler = self.choose(
            "console.log(e?.name, e?.message);",
            "console.log(String(e));",
            "throw e;",
            "throw new Own('again', { cause: e });",
            "console.error(e);",
            "console.log(e?.stack?.split('\\n').slice(0, 2));",
        )
        failing = self.failing() if self.chance(0.7) else ""
        final = f"finally {{\n{self.block(depth, 1)}\n}}" if self.chance(0.4) else ""
        return f"try {{\n{self.block(depth, 2)}\n{{ {failing} }}\n}} catch (e) {{ {handler} }} {final}"

    def in_loop(self, depth: int) -> str:
        i = self.fresh("i")
        keyword = self.choose("let", "var")
        return f"for ({keyword} {i} = 0; {i} < {self.random.randint(1, 3)}; {i}++) {{\n{self.block(depth)}\n}}"

    def in_async(self, depth: int) -> str:
        f = self.fresh("f")
        wait = self.choose(
            "await null;",
            "await new Promise((r) => setTimeout(r, 1));",
            "for await (const x of agen()) console.log(x);",
            "console.log(await Promise.allSettled([1, Promise.reject(2)]));",
            "console.log(await Promise.all([zero, Promise.resolve(text)]));",
            "await { then(r) { r('thenable') } };",
        )
        call = self.choose(
            f"{f}();", f"{f}().then(console.log);", f"{f}().catch((e) => console.log('caught', String(e)));"
        )
        return f"async function {f}() {{ {wait}\n{self.block(depth)}\n}}\n{call}"

    def in_generator(self, depth: int) -> str:
        g = self.fresh("g")
        use = self.choose(
            f"console.log([...{g}()]);",
            f"{{ const it = {g}(); it.next(); console.log(it.return(5)); }}",
            f"{{ const it = {g}(); it.next(); it.throw(new Error('thrown in')); }}",
            f"const [first{g}] = {g}();",
        )
        return f"function* {g}() {{ try {{ yield zero; yield* items;\n{self.block(depth, 2)}\n}} finally {{ console.log('closing') }} }}\n{use}"

    def in_timer(self, depth: int) -> str:
        how = self.choose("setTimeout(() => {B}, 20);", "setImmediate(() => {B});", "process.nextTick(() => {B});",
                          "queueMicrotask(() => {B});", "const t = setInterval(() => { clearInterval(t); {B} }, 20);",
                          "process.on('exit', () => {B});", "setTimeout(() => {B}, 60000).unref();")  # fmt: skip
        return how.replace("{B}", f"{{\n{self.block(depth, 2)}\n}}")

    def in_promise(self, depth: int) -> str:
        return self.choose(
            f"new Promise((yes, no) => {{\n{self.block(depth, 2)}\n yes(1) }}).then(console.log);",
            f"Promise.resolve().then(() => {{\n{self.block(depth, 2)}\n}}).finally(() => console.log('settled'));",
        )

    # Scenes -------------------------------------------------------------------------------------------------

    def scenes(self) -> list[Callable[[], str]]:
        return [getattr(self, name) for name in sorted(dir(self)) if name.startswith("scene_")]

    def scene_module(self) -> str:
        if self.kind == "await":
            return "console.log(typeof globalThis.zero, process.argv.length);"
        if self.kind == "module":
            return self.choose(
                "console.log(typeof module, typeof exports, typeof __filename, this);",
                "console.log(import.meta.url, import.meta.filename, import.meta.dirname, Object.keys(import.meta));",
                "console.log(import.meta.resolve('node:fs'));",
                "console.log((function () { return this })());",
                "export const exported = 5;",
                "export default function named() {}",
                "import * as ns from 'node:os'; console.log(typeof ns.EOL, ns[Symbol.toStringTag]);",
                "import './no-such-file.mjs';"
                if self.chance(0.2)
                else "import { sep as s1 } from 'path'; console.log(s1);",
                "import { noSuchName } from 'fs';"
                if self.chance(0.2)
                else "import fs1 from 'fs'; console.log(typeof fs1.open);",
            )
        return self.choose(
            "console.log(__filename, __dirname, module.id, module.filename, module.loaded, module.children, module.parent);",
            "console.log(this === module.exports, exports === module.exports, require.main === module, arguments.length);",
            "console.log(Object.keys(require), typeof require.cache, require.resolve('fs'), require.extensions['.js'].length);",
            "console.log(Object.keys(require.cache).length, process.argv, process.argv0, process.execArgv);",
            "console.log(module.paths.slice(0, 2), module instanceof require('module'), process.mainModule === module);",
            "require('./no-such-file');",
            "try { require('no-such-package') } catch (e) { console.log(e.code, e.message) }",
            "module.exports = { a: 1 }; console.log(require.main.exports, require(__filename) === module.exports);",
            "console.log(typeof globalThis.zero, typeof globalThis.module, typeof globalThis.require, typeof globalThis.exports);",
            "console.log(Object.keys(globalThis).filter((k) => k !== 'params'));",
            "console.log(require('fs').readFileSync(__filename, 'utf8').length, require('fs').readdirSync(__dirname));",
            "require('fs').writeFileSync('made.js', 'exports.x = module.parent?.filename === undefined; exports.y = require.main === module'); console.log(require('./made'), require('./made.js') === require('./made'));",
            "require('fs').writeFileSync('made.json', '{\"a\": 1}'); console.log(require('./made.json'));",
            "require('fs').writeFileSync('made.mjs', 'export const x = import.meta.url.slice(-8); export default 5'); console.log(require('./made.mjs').x);",
            "require('fs').writeFileSync('bad.js', 'let x = = 1'); require('./bad');",
            "require('fs').writeFileSync('throws.js', '\\n\\nthrow new Error(\"from a module\")'); require('./throws');",
            "console.log(require('module').builtinModules.length, require('module')._nodeModulePaths('/a/b'), module.isPreloading);",
            "console.log(require('vm').runInThisContext('typeof require + typeof globalThis'), require('vm').runInNewContext('1 + 1'));",
        )

    def scene_process(self) -> str:
        return self.choose(
            "console.log(process.exitCode, process.stdin.isTTY, process.stdout.isTTY, process.stdout.writableLength, process.title.length > 0);",
            "process.stdout.write('no newline');",
            "process.stdout.write('x'.repeat(50000));",
            "process.stdout.write('called\\n', () => console.log('written'));",
            "process.stdout.write('true?\\n'); console.log(process.stdout.writableHighWaterMark, process.stdout.constructor.name);",
            "console.log(process.argv.slice(1).map((a) => a.split('/').pop()), process.execPath, process.version);",
            "console.log(process.listenerCount('exit'), process.listenerCount('beforeExit'), process.eventNames());"
            if self.chance(0.1)
            else "console.log(process.release.name, process.features.inspector);",
            "process.on('exit', (c) => console.log('exit', c, process.exitCode));",
            "let turns = 0; process.on('beforeExit', (c) => { if (turns++ < 2) setTimeout(() => console.log('turn', turns), 1) });",
            f"process.exitCode = {self.choose('0', '3', '256', '-1', 'undefined')};",
            "process.emitWarning('careful');",
            "process.emitWarning('old', 'DeprecationWarning', 'DEP9');",
            "process.on('warning', (w) => console.log('warned', w.message)); process.emitWarning('listened');",
            "process.on('uncaughtException', (e, origin) => console.log('uncaught', String(e), ORIGIN));",
            "process.on('uncaughtExceptionMonitor', (e, origin) => console.log('monitor', String(e), ORIGIN));",
            "process.on('unhandledRejection', (r) => console.log('unhandled', String(r)));",
            "process.on('rejectionHandled', () => console.log('handled later'));",
            "process.setUncaughtExceptionCaptureCallback((e) => console.log('captured', String(e)));",
            "process.stdout.on('error', () => {}); process.stdout.end('ended');",
            "console.log(process.env.TZ, Object.keys(process.env).includes('HOME'), process.cwd() === require('path').resolve('.'));"
            if self.kind == "commonjs"
            else "console.log(process.env.TZ);",
            "process.abort = 5; console.log(process.abort);",
        )

    def scene_promises(self) -> str:
        return self.choose(
            f"Promise.reject({self.error()});",
            f"Promise.reject({self.literal()});",
            "Promise.reject(new Error('handled')).catch((e) => console.log(e.message));",
            "{ const p = Promise.reject(new Error('late')); setTimeout(() => p.catch(() => console.log('too late')), 5); }",
            "(async () => { throw new Error('in async') })();",
            "Promise.any([Promise.reject(1)]).catch((e) => console.log(e.constructor.name, e.errors));",
            "setTimeout(() => console.log('t1'), 1); setTimeout(() => console.log('t0'), 0); setImmediate(() => 0); Promise.resolve().then(() => console.log('p')); process.nextTick(() => console.log('n')); queueMicrotask(() => console.log('m'));",
            "setTimeout(function later() { throw new Error('in a timer') }, 3);",
            "setImmediate(() => { throw new Error('in an immediate') });",
            "process.nextTick(() => { throw new TypeError('in a tick') });",
            "queueMicrotask(() => { throw new Error('in a microtask') });",
            "Promise.resolve(1).then(2).then((x) => { console.log(x); throw new Own('chained') });",
            "new Promise(() => {}); console.log('pending');",
            "Promise.withResolvers().promise.then(console.log);",
            "structuredClone(() => {});" if self.chance(0.3) else "console.log(structuredClone({ a: [1n] }));",
            "new AbortController().signal.throwIfAborted(); console.log(AbortSignal.abort().reason.name);",
        )

    def scene_console(self) -> str:
        return self.choose(
            "console.table([{ a: 1, b: 'x' }, { a: 2 }]);",
            "console.group('g'); console.log('in'); console.groupEnd(); console.info('out'); console.debug('d');",
            "console.count(); console.count('x'); console.countReset('x'); console.count('x');",
            "console.assert(zero === 1, 'asserted %s', text); console.dir({ a: { b: { c: { d: 1 } } } }, { depth: 0 });",
            "console.warn('warned'); console.timeEnd('none');",
            "console.trace('traced');",
            "console.log([undefined, null, -0, 1n, Symbol.iterator, function f() {}, class A {}, new Error('e').message]);",
            "console.log({ get a() { return 1 }, set b(v) {} }, Object.create({ x: 1 }), new Proxy({}, {}), new WeakMap());",
            "console.log('x'.repeat(200), Array(200).fill(0), { a: 'y'.repeat(100) });",
            "console.log(new Map([[{ a: 1 }, new Set([1])]]), [['nested', ['deep', ['deeper', ['deepest']]]]]);",
            "console.log(process.memoryUsage().rss > 0, performance.now() > 0, typeof performance.timeOrigin);",
            "console.error(new Error('shown')); console.log({ e: new RangeError('inside', { cause: 1 }) }.e.message);",
            "console.log(Buffer.from('é'), new Uint16Array([1, 2]), new ArrayBuffer(2), new DataView(new ArrayBuffer(1)));",
            "const circular = { a: 1 }; circular.me = circular; console.log(circular);",
            "console.log(globalThis === global, typeof window, typeof self, typeof navigator, typeof WebSocket, typeof fetch);",
            "console.log(new Error('a').stack.split('\\n')[1]);",
            "console.log(Error.stackTraceLimit, typeof Error.captureStackTrace, Error.prepareStackTrace);",
            "Error.prepareStackTrace = (e, frames) => frames[0].getLineNumber() + ':' + frames[0].getColumnNumber(); console.log(new Error('x').stack); Error.prepareStackTrace = undefined;",
        )

    def scene_language(self) -> str:
        n = self.fresh("l")
        return self.choose(
            f"const {n} = {{ *[Symbol.iterator]() {{ yield 1; yield 2 }}, [Symbol.toPrimitive]: () => 5 }}; console.log([...{n}], +{n});",
            "console.log([3, 1, 2].toSorted(), Object.groupBy([1, 2], (x) => x % 2), [1].at(-1), 'a-b'.replaceAll('-', ''));",
            f"const {n} = new Proxy({{}}, {{ get: (t, k) => k.toString() }}); console.log({n}.hello);",
            "console.log((() => { try { return 1 } finally { console.log('finally') } })());",
            f"{n}: {{ console.log('in'); break {n}; }}",
            "console.log(new Date(0).toString(), new Intl.NumberFormat('de').format(1234.5), (1e21).toLocaleString('en'));",
            "console.log([..'x'.matchAll(/x/g)])".replace("[..", "[...") + ";",
            f"var {n} = 1; var {n} = 2; console.log({n});",
            "console.log(((a, b = a, ...c) => [a, b, c])(1), (function () { return arguments.length })(1, 2));",
            "console.log(0.1 + 0.2, 2 ** 53 + 1, 9007199254740993n * 2n, parseInt('08'), +'0b11', [10, 9, 1].sort());",
            f"const {n} = new WeakRef({{}}); console.log(typeof {n}.deref());",
            "console.log(new Intl.DateTimeFormat('ja', { timeZone: 'Asia/Tokyo', hour: 'numeric' }).format(new Date(0)));",
            f"class {n} {{ static #c = 0; static inc() {{ return ++{n}.#c }} accessor }} console.log({n}.inc(), new {n}());",
            "console.log(new WebAssembly.Memory({ initial: 1 }).buffer.byteLength, typeof SharedArrayBuffer, crypto.randomUUID().length);",
            "console.log(isFinite('1'), [] + {}, [] == false, null ?? 'd', typeof null, void 0);",
        )

    def heavy_scene(self) -> str:
        if self.kind == "await":
            return ";"
        child, worker = self.load("child_process"), self.load("worker_threads")
        name = "import.meta.filename" if self.kind == "module" else "__filename"
        return self.choose(
            f"console.log({child}.execSync('echo child').toString());",
            f"console.log('A'); {child}.spawnSync('echo', ['B'], {{ stdio: 'inherit' }}); console.log('C');",
            f"if (!process.env.AGAIN) {{ const r = {child}.spawnSync(process.execPath, [{name}], {{ env: {{ ...process.env, AGAIN: '1' }} }}); console.log(r.status, r.stdout.length); }}",
            f"console.log({child}.spawnSync(process.execPath, ['-p', 'process.argv.length']).stdout.toString());",
            f"if ({worker}.isMainThread) new {worker}.Worker({name}).on('exit', (c) => console.log('worker', c)); else console.log('in the worker');",
            f"new {worker}.Worker('throw new Error(\"in a worker\")', {{ eval: true }}).on('error', (e) => console.log(e.message));",
            f"new {worker}.Worker('process.exit(5)', {{ eval: true }}).on('exit', (c) => console.log('exit', c));",
            f"new {worker}.Worker('require(\"worker_threads\").parentPort.postMessage([1n])', {{ eval: true }}).on('message', (m) => console.log(m));",
            f"{child}.exec('exit 3', (e) => console.log(e.code));",
            f"{child}.spawn('no-such-program');",
            f"{self.load('fs')}.promises.readFile('/no/such').catch((e) => console.log(e.code));",
            f"{self.load('fs')}.readFile('/etc/hostname', (e, d) => {{ throw new Error('in a callback') }});",
            f"{self.load('net')}.connect(1, '127.0.0.1');",
            f"{self.load('http')}.createServer().listen(0, '127.0.0.1', function () {{ console.log('listens'); this.close() }});",
            "process.stdin.on('data', (d) => console.log('data', d)).on('end', () => console.log('end'));",
            f"{self.load('readline')}.createInterface({{ input: process.stdin }}).on('line', console.log).on('close', () => console.log('closed'));",
            "fetch('http://127.0.0.1:1/').catch((e) => console.log(e.message, e.cause?.code));",
            f"console.log({self.load('fs')}.openSync('/dev/null') > 2);",
            f"new ({self.load('events')})().emit('error', new Error('emitted'));",
            f"{self.load('assert')}.deepStrictEqual({{ a: 1 }}, {{ a: 2 }});",
            "import('node:path').then((m) => console.log(m.sep, Object.keys(m).length));",
            "import('no-such-package').catch((e) => console.log(e.code, e.message));",
            f"{self.load('assert')}(zero === 1);",
            f"{self.load('timers/promises')}.setTimeout(2, 'value').then(console.log);",
            "process.kill(process.pid, 'SIGTERM'); setTimeout(() => {}, 500);",
            "process.on('SIGUSR2', () => console.log('signal')); process.kill(process.pid, 'SIGUSR2'); setTimeout(() => {}, 30);",
            "process.abort();" if self.chance(0.3) else ";",
        )

    # The whole ----------------------------------------------------------------------------------------------

    def ending(self) -> str:
        if self.chance(0.4):
            return ""
        return self.choose(
            self.failing,
            self.failing,
            lambda: f"function last(n) {{ if (n) last(n - 1); else {self.failing()} }} last({self.random.randint(0, 6)});",
            lambda: f"process.exit({self.choose('', '0', '1', '7', '256', '-1', 'undefined')});",
            lambda: f"process.on('exit', () => {{ process.exitCode = {self.choose('4', '9')} }});",
            lambda: "process.on('exit', () => { throw new Error('at exit') });",
            lambda: "process.on('exit', () => { process.exit(6) });",
            lambda: "console.log('now'); process.exit(); console.log('never');",
            lambda: "process.nextTick(() => process.exit(8));",
            lambda: "await new Promise(() => {});" if self.kind != "commonjs" else "process.exit('3');",
            lambda: "await Promise.reject(new Own('awaited'));" if self.kind != "commonjs" else "process.exit(1.5);",
        )()

    def broken(self) -> str:
        return self.choose(
            "let b = = 2;", "if (", "function (", "const c;", "let d; let d;", "'unterminated", "`never closed", "}", "1 = x;",
            "var 1x;", "/[/;", "/(/", "break;", "for (;;", "class { x", "obj = { a: 1, , };", "x ===== y", "new.target", "#p in {}",
            "super.x;", "a => { } ()", "let let = 1;", "yield* 1 2", "return return;", "({ a: 1, a = 2 });", "\x01", "“quotes”",
            "foo bar", "async function* f( { }", "else {}", "continue outer;", "let undefined;", "delete x y", "0b12;", "1n.5;", "\\u{110000}",
        )  # fmt: skip

    def program(self) -> tuple[bytes, str]:
        # A module's names are declared once; braces keep the pieces of a program apart.
        body = []
        # Files, sockets and processes answer when they do: such a program has one of them and nothing else that waits.
        waits = self.kind != "await" and self.chance(0.15)
        made = [self.simple() if waits else self.piece(2) for _ in range(self.random.randint(2, 7))]
        for piece in [*made, self.heavy_scene()] if waits else made:
            plain = self.kind == "module" and (piece.startswith(("import ", "export ", "import '")))
            body.append(piece if plain or self.chance(0.3) else f"{{\n{piece}\n}}")
        body.append("" if waits else self.ending())
        if self.chance(0.12) and self.kind == "commonjs":
            body.insert(self.random.randint(0, len(body)), self.broken())
        head = self.choose("", "", "", "'use strict';\n", '"use strict"\n', "// first\n")
        if self.kind == "module":
            head += self.choose(
                "import { sep } from 'node:path';\n", "export {};\n", "import fs, * as all from 'fs';\n"
            )
        if self.kind == "await":
            head += self.choose("await null;\n", "const waited = await 5;\n", "await Promise.resolve();\n")
        body = [piece.replace("ORIGIN", "1" if self.kind == "await" else "origin") for piece in body]
        text = self.spoiled(head + PRELUDE + "\n".join(body) + "\n")
        name = "snippet.js" if self.kind == "commonjs" else "snippet.mjs"
        return text.encode("utf-8", "surrogatepass"), name

    def spoiled(self, text: str) -> str:
        roll = self.random.random()
        if roll < 0.04:
            return text.replace("\n", "\r\n")
        if roll < 0.07:
            return "\ufeff" + text
        if roll < 0.10:
            return "#!/usr/bin/env node\n" + text
        if roll < 0.12:
            return text.rstrip("\n")
        if roll < 0.14:
            return text + "// " + "x" * 100000 + "\nconsole.log('after a long line');"
        if roll < 0.15 and self.kind == "commonjs":
            return text.replace("const zero", "const ze\0ro", 1)
        if roll < 0.17:
            return text.replace("\n", "\u2028", 3)
        if roll < 0.19:
            return text + "//# sourceMappingURL=data:application/json;base64,e30=\n"
        if roll < 0.20:
            return text + "// no newline at the end"
        if roll < 0.21:
            return text.replace("  ", "\t")
        return text


PRELUDE = """var zero = 0;
const text = 'té', items = [1, 2, 3];
class Own extends Error { get name() { return 'Own' } }
class Base { m() { return 'base' } }
async function* agen() { yield 1; yield 2 }
"""


def program(seed: str) -> tuple[bytes, str]:
    return Grammar(seed).program()
