"""multiprocessing's spawn and forkserver with snippets. Part of the Python guest (python.py).

A child of theirs runs the main module's file again, as `__mp_main__`. It cannot run a file with a
top-level return or await, and it has no params. So the child is given a file of compiled code, which
runpy takes in place of source: the snippet's own code object, and what python.py had prepared.
"""

from marshal import dumps

HEADER = b"\0" * 12  # flags, time and size of a compiled file: not looked at
CO_COROUTINE = 0x80
# The strings stand for the values themselves, which take their places in the compiled code.
PLAIN = """
__file__ = 'isle file'
params = 'isle params'
eval('isle code', (lambda: 0).__globals__)
"""
AWAITING = """
__file__ = 'isle file'
params = 'isle params'
try:
    eval('isle code', (lambda: 0).__globals__).send(None)  # as far as its first wait
except StopIteration:
    pass
"""


class Finder:
    """Stands before the finder of the package multiprocessing, and patches `spawn` as it loads."""

    def __init__(self, finder, patch):
        self.finder, self.patch = finder, patch
        self.invalidate_caches = finder.invalidate_caches

    def find_spec(self, name, target=None):
        spec = self.finder.find_spec(name, target)
        if name == "multiprocessing.spawn" and spec is not None:
            load, patch = spec.loader.exec_module, self.patch

            def exec_module(module):
                load(module)
                patch(module)

            spec.loader.exec_module = exec_module
        return spec


def install(sys, write, child_path, code, path, params):
    """From now on children of spawn find the snippet compiled at child_path; write() puts it there
    when the first one is about to start."""
    package = f"{sys._stdlib_dir}/multiprocessing"
    magic = sys.modules["_frozen_importlib_external"].MAGIC_NUMBER

    def patch(spawn):
        original = spawn.get_preparation_data

        def get_preparation_data(name):
            data = original(name)
            if data.get("init_main_from_path") == path:
                write(magic + HEADER + dumps(child_code(code, path, params)))
                data["init_main_from_path"] = child_path
            return data

        spawn.get_preparation_data = get_preparation_data
        # Children are started as those of a plain program are: -s and -S are for our own start.
        flags = spawn.util._args_from_interpreter_flags
        spawn.util._args_from_interpreter_flags = lambda: [f for f in flags() if f not in ("-s", "-S")]

    for hook in sys.path_hooks:
        try:
            sys.path_importer_cache[package] = Finder(hook(package), patch)
            return
        except ImportError:
            pass


def child_code(code, path, params):
    values = {"isle file": path, "isle params": params, "isle code": code}
    outer = compile(AWAITING if code.co_flags & CO_COROUTINE else PLAIN, path, "exec", 0, True)
    consts = tuple(values.get(c, c) if type(c) is str else c for c in outer.co_consts)
    from opcode import opmap

    # Without RESUME it is not in the child's tracebacks, as in compile-guest.py, and has no globals() either.
    text = bytearray(outer.co_code)
    begin = text.index(opmap["RESUME"])
    text[begin : begin + 2] = opmap["NOP"], 0
    return outer.replace(co_consts=consts, co_code=bytes(text))
