"""Run by the runtime root's Python: guest_compare.py FOLDER-OF-THE-GUEST FILE...

Compiles each file as module code and, with a return at its end, as the guest's isle_returning.py does, and prints
what differs in the functions and classes in it. The same operations must come out, in the same places, under the same
names."""

import dis
import importlib
import pathlib
import sys
import types
import warnings

# Only a different distance, or `module.function()` called as a method, which the compiler does for names it does not
# know to be imported.
INVISIBLE = {"CACHE", "NOP", "EXTENDED_ARG"}


def operations(code):
    found = []
    for step in dis.get_instructions(code):
        if step.opname in INVISIBLE or (step.opname == "PUSH_NULL" and found and found[-1][0] == "LOAD_ATTR"):
            continue
        value = step.argval
        if "JUMP" in step.opname or step.opname in ("FOR_ITER", "SEND", "END_ASYNC_FOR"):
            value = None
        elif isinstance(value, types.CodeType):
            value = value.co_qualname
        elif isinstance(value, frozenset):
            value = sorted(map(repr, value))
        found.append((step.opname, repr(value), step.positions.lineno))
    return found


def inner(code):
    found = [c for c in code.co_consts if isinstance(c, types.CodeType)]
    # A star import of the returning form is a piece of module code of its own.
    return sorted((c for c in found if c.co_name != "<module>"), key=lambda c: (c.co_firstlineno, c.co_qualname))


def bound(code):
    names = {"STORE_NAME", "STORE_GLOBAL", "DELETE_NAME", "DELETE_GLOBAL"}
    return {step.argval for step in dis.get_instructions(code) if step.opname in names}


def differences(plain, returning, where):
    left, right = inner(plain), inner(returning)
    if [c.co_qualname for c in left] != [c.co_qualname for c in right]:
        yield f"{where}: {[c.co_qualname for c in left]} {[c.co_qualname for c in right]}"
        return
    for one, other in zip(left, right, strict=True):
        place = f"{where}:{one.co_qualname}"
        ours, theirs = operations(one), operations(other)
        if ours != theirs and "super" not in one.co_names:
            yield f"{place}: {next(pair for pair in zip(ours, theirs, strict=False) if pair[0] != pair[1])}"
        for name in ("co_varnames", "co_freevars", "co_cellvars", "co_argcount", "co_firstlineno"):
            if getattr(one, name) != getattr(other, name):
                yield f"{place}: {name}"
        yield from differences(one, other, place)


def main():
    warnings.simplefilter("ignore")
    sys.path.insert(0, sys.argv[1])
    compile_returning = importlib.import_module("isle_returning").compile_returning
    for path in sys.argv[2:]:
        source = pathlib.Path(path).read_bytes()
        plain = compile(source, path, "exec", 0, True)
        returning, prelude = compile_returning(source + b"\nreturn 1\n", path)
        for text in differences(plain, returning, path):
            print(text)
        missing = bound(plain) - bound(returning) - bound(prelude) - {"__annotations__", "__doc__"}
        if missing:
            print(f"{path}: not bound: {missing}")


main()
