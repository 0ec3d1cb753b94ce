"""The Python guest: runs one snippet as `__main__` inside a sandbox and answers with its value.

Started as `python3.13 -s -S -u /usr/lib/isle/python.pyc` with the frame socket (src/codec/frame.h)
as descriptor 3. -u: output is in order and complete however the process ends. -s: the user site
below HOME=/workspace would run an earlier job's .pth files before this file. -S: a fifth of the
interpreter's start is its module `site`, of which new_site() does what a program can see. All else
is as for `python3.13 snippet.py`: PYTHONPATH holds (package sets), and sys.path begins with the
working directory, as though the snippet stood there.

Nothing is imported here but built-in modules and what the interpreter has loaded by itself: an
import costs more than the sandbox. A snippet can change builtins and modules: the guest works with
copies of its own. docs/results.md is the contract of the values.
"""

import _imp
import builtins
import posix
import sys
from marshal import loads

MAGIC = 0x4C534931
CODE, PARAMS, RUN, RESULT, ERROR = 1, 2, 3, 32, 33
HEADER_BYTES = 20
TOP_LEVEL_AWAIT = 0x2000  # PyCF_ALLOW_TOP_LEVEL_AWAIT
CO_COROUTINE = 0x80
Record = type(sys.implementation)  # any attributes
PLAIN_RUN = b'{"name":"snippet.py","mode":"snippet"}'  # what most jobs send need not be parsed

settrace, setprofile = sys.settrace, sys.setprofile
modules = sys.modules
own_modules = dict(modules)
own_builtins = dict(vars(builtins))
BUILT_IN = frozenset(sys.builtin_module_names)
ENDED_EARLY = "the program ended before main returned: the outputs are what main returns"


def own_import(name, *rest):
    """What was loaded when we began is what we import, and built-in modules as they come from the
    interpreter; for the rest, the usual way."""
    module = own_modules.get(name)
    if module is None and name in BUILT_IN and name != "unicodedata":  # which the compiler wants in sys.modules
        module = _imp.create_builtin(Record(name=name))
        _imp.exec_builtin(module)
        own_modules[name] = module
    return module or usual_import(name, *rest)


# Functions find their builtins through the globals they are made with: from here on, ours.
usual_import = own_builtins["__import__"]
own_builtins["__import__"] = own_import
__builtins__ = own_builtins

# compile-guest.py puts the other files here: {name: marshalled code}. They are no modules of
# sys.modules, where a snippet could have its own of the same name.
BUNDLE = "isle bundle"
HERE = __file__.rpartition("/")[0]


def part(name):
    """The names of another file of the guest."""
    names = {"__name__": name, "__builtins__": own_builtins}
    if type(BUNDLE) is str:  # run from the source folder
        path = f"{HERE}/{name}.py"
        with own_modules["io"].open_code(path) as file:
            code = compile(file.read(), path, "exec", 0, True)
    else:
        code = loads(BUNDLE[name])
    exec(code, names)
    return names


class Channel:
    """Frames to and from the service. One sender: the process that was started, not its forks."""

    def __init__(self):
        # Away from where a snippet's own descriptors begin, and not for its children.
        self.fd = posix.dup2(3, min(posix.sysconf("SC_OPEN_MAX"), 1024) - 1, False)
        posix.close(3)
        self.inode = posix.fstat(self.fd).st_ino
        self.pid = posix.getpid()
        self.data = b""
        self.seq = 0
        # A snippet may change the module's attributes.
        self.write, self.fstat, self.getpid = posix.write, posix.fstat, posix.getpid

    def take(self, size):
        pieces, have = [self.data], len(self.data)
        while have < size:  # megabytes come in a hundred pieces: they are put together once
            more = posix.read(self.fd, 1 << 16)
            if not more:
                raise SystemExit("isle: the service is gone")
            pieces.append(more)
            have += len(more)
        data = b"".join(pieces)
        head, self.data = data[:size], data[size:]
        return head

    def receive(self):
        """(execution, {type: payload}) up to and including RUN."""
        frames = {}
        while RUN not in frames:
            magic, kind, execution, _, length = memoryview(self.take(HEADER_BYTES)).cast("I")
            if magic != MAGIC:
                raise SystemExit("isle: bad frame")
            frames[kind] = self.take(length)
        return execution, frames

    def send(self, kind, execution, payload):
        """One frame, if this is the process that was started and the socket is still there."""
        if self.getpid() != self.pid:
            return
        self.seq += 1
        numbers = (MAGIC, kind, execution, self.seq, len(payload))
        rest = memoryview(b"".join([n.to_bytes(4, "little") for n in numbers]) + payload)
        try:
            if self.fstat(self.fd).st_ino != self.inode:
                return  # closed by the snippet; the number is another file's now
            while rest:
                rest = rest[self.write(self.fd, rest) :]
        except OSError:
            pass  # nobody listens, or closed: the service sees that no result came

    def send_error(self, execution, kind, message, **more):
        encode = part("isle_values")["encode_result"]
        self.send(ERROR, execution, encode({"type": kind, "message": message, **more}))

    def send_failure(self, execution, error):
        """What ended the program."""
        try:
            self.send_error(execution, *part("isle_values")["type_and_text"](error))
        except MemoryError:  # as it may well have been
            self.send(ERROR, execution, b'{"type":"MemoryError","message":""}')


def parse_json(data):
    """A value from text that the service has checked. Integers keep every digit."""
    if data in (b"", b"{}"):
        return {}
    from _json import make_scanner

    context = Record(
        strict=True,
        object_hook=None,
        object_pairs_hook=None,
        parse_float=float,
        parse_int=int,
        parse_constant=float,
        memo={},
    )
    digits = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        return make_scanner(context)(data.decode().strip(), 0)[0]
    finally:
        sys.set_int_max_str_digits(digits)


def write_file(folder, name, data):
    try:
        posix.mkdir(folder, 0o755)
    except FileExistsError:
        pass
    flags = posix.O_WRONLY | posix.O_CREAT | posix.O_TRUNC | posix.O_NOFOLLOW | posix.O_CLOEXEC
    fd = posix.open(f"{folder}/{name}", flags, 0o644)
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[posix.write(fd, rest) :]
    finally:
        posix.close(fd)


def compile_snippet(source, path, end=None):
    """(code, prelude). The usual case is what `python3 FILE` runs, to the letter, and await. With a
    prelude the code's value is `end` unless a return was reached."""
    try:
        return compile(source, path, "exec", TOP_LEVEL_AWAIT, True), None
    except SyntaxError as error:
        if error.msg != "'return' outside function":
            raise
    return part("isle_returning")["compile_returning"](source, path, end)


def new_main(path, params):
    """A `__main__` as the interpreter makes one for a script, and the params."""
    main = type(sys)("__main__")
    loader = modules["_frozen_importlib_external"].SourceFileLoader
    main.__loader__ = loader("__main__", path)
    main.__annotations__ = {}
    main.__builtins__ = modules["builtins"]
    main.__file__ = path
    main.__cached__ = None
    main.params = params
    modules["__main__"] = main
    return vars(main)


def new_site():
    """What `site` does for a program: installed packages, and three builtins."""
    packages = f"{sys.prefix}/lib/python3/dist-packages"
    if packages not in sys.path:
        sys.path.append(packages)
    import _sitebuiltins as given

    builtins.quit = given.Quitter("quit", "Ctrl-D (i.e. EOF)")
    builtins.exit = given.Quitter("exit", "Ctrl-D (i.e. EOF)")
    builtins.help = given._Helper()


async def settled(awaitable):
    return await awaitable


class Snippet:
    def __init__(self, source, params, options):
        self.source, self.params, self.name = source, params, options["name"]
        self.mode, self.refusal = options.get("mode"), None
        # /code is a link to a folder that we make. Tests, which have none, name their own.
        self.folder = options.get("code_dir", "/dev/shm/code")
        self.path = f"{options.get('code_dir', '/code')}/{self.name}"

    def run(self):
        """Its value."""
        write_file(self.folder, self.name, self.source)
        sys.argv, sys.orig_argv = [self.path], [sys.executable, self.path]
        if sys.flags.no_site:
            new_site()
        names = new_main(self.path, self.params)
        code, prelude = compile_snippet(self.source, self.path, self if self.mode == "function" else None)
        if code.co_flags & CO_COROUTINE:
            __import__("asyncio")  # while nothing of the workspace can be in its place
        if b"multiprocessing" in self.source or b"concurrent" in self.source:
            self.prepare_spawn(code)
        if not sys.flags.safe_path:
            sys.path[0] = posix.getcwd()
        if prelude is not None:
            exec(prelude, names)
            del names["<module>"]
        try:
            if self.mode == "function":
                return part("isle_main")["value_of"](self, code, names, prelude and self)
            value = eval(code, names)
            return __import__("asyncio").run(settled(value)) if hasattr(type(value), "__await__") else value
        finally:
            settrace(None)  # a snippet's own, which is not to see what we do
            setprofile(None)

    def check(self):
        """What would be in the way of calling main; nothing of the snippet runs."""
        return part("isle_main")["check"](self.source, self.path, compile_snippet)

    def refuse(self, text):
        """Ends it, with a text that is all there is to say."""
        self.refusal = text
        raise SystemExit(text)

    def prepare_spawn(self, code):
        def write(data):
            write_file(self.folder, f"{self.name}.main", data)

        child_path = f"{self.path}.main"
        part("isle_spawn")["install"](sys, write, child_path, code, self.path, self.params)

    def traceback(self, traceback):
        """The part of a traceback that begins in the snippet, if any does: asyncio runs some, and we
        compile it. The frames of serve() and below add nothing to one (compile-guest.py)."""
        step = traceback
        while step is not None and step.tb_frame.f_code.co_filename != self.path:
            step = step.tb_next
        if step is None:
            while traceback is not None and traceback.tb_frame.f_globals["__builtins__"] is own_builtins:
                traceback = traceback.tb_next
        return step or traceback


def exit_status_is_zero(code):
    return code is None or (isinstance(code, int) and int.__int__(code) & 0xFF == 0)


def answer(channel, execution, value, calls_main):
    """The value as a frame. False if there is none of it."""
    if value is None and not calls_main:
        channel.send(RESULT, execution, b"null")
        return True
    data, error = part("isle_values")["convert"](value)
    if error is not None:
        channel.send_error(execution, **error)
        return False
    if calls_main and not data.startswith(b"{"):
        data = b'{"result":' + data + b"}"
    channel.send(RESULT, execution, data)
    return True


def serve(channel):
    """One execution. A stateful guest would go on with the next one here."""
    execution, frames = channel.receive()
    params, run = parse_json(frames.get(PARAMS, b"")), frames[RUN]
    options = {"name": "snippet.py", "mode": "snippet"} if run == PLAIN_RUN else parse_json(run)
    snippet = Snippet(frames.get(CODE, b""), params, options)
    try:
        value = snippet.check() if snippet.mode == "check" else snippet.run()
    except SystemExit as end:
        zero = exit_status_is_zero(end.code)
        if zero and snippet.mode == "function":
            snippet.refusal = ENDED_EARLY
        if snippet.refusal is not None:
            channel.send_error(execution, "", snippet.refusal)
            raise SystemExit(snippet.refusal) from None
        if zero:
            channel.send(RESULT, execution, b"null")
        else:
            channel.send_failure(execution, end)
        raise
    except BaseException as error:
        channel.send_failure(execution, error)
        error.__traceback__ = snippet.traceback(error.__traceback__)
        raise
    # The result is known when the main code has ended; threads and atexit still have their time.
    if not answer(channel, execution, value, snippet.mode == "function"):
        raise SystemExit(1)


serve(Channel())
