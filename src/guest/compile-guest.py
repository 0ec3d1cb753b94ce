"""Compiles the Python guest into one file: compile-guest.py DESTINATION, run by the runtime root's
own interpreter, since only that one can load it."""

import marshal
import opcode
import pathlib
import sys
import types
from importlib.util import MAGIC_NUMBER

PARTS = ("isle_main", "isle_returning", "isle_spawn", "isle_values")
# What a snippet's error passes through when it has left the wrapper's hands. To the interpreter a frame has begun with
# the instruction RESUME; where there is none, no traceback has it, and sys.excepthook is given the snippet's own.
UNSEEN = ("<module>", "serve")
UNCHECKED_HASH = b"\1\0\0\0" + b"\0" * 8  # never compared with a source, which is not there


def code_of(folder, name):
    source = (folder / f"{name}.py").read_bytes()
    return compile(source, f"/usr/lib/isle/{name}.py", "exec", 0, True, 2)  # no docstrings


def without_resume(code):
    consts = tuple(without_resume(c) if isinstance(c, types.CodeType) else c for c in code.co_consts)
    text = bytearray(code.co_code)
    if code.co_qualname in UNSEEN:
        at = [i for i in range(0, len(text), 2) if text[i] == opcode.opmap["RESUME"]]
        if len(at) != 1:
            sys.exit(f"{code.co_qualname} begins in {len(at)} places")
        text[at[0] : at[0] + 2] = opcode.opmap["NOP"], 0
    return code.replace(co_consts=consts, co_code=bytes(text))


def main():
    folder, destination = pathlib.Path(__file__).parent, pathlib.Path(sys.argv[1])
    bundle = {name: marshal.dumps(code_of(folder, name)) for name in PARTS}
    code = without_resume(code_of(folder, "python"))
    if code.co_consts.count("isle bundle") != 1:
        sys.exit("python.py has no place for its parts")
    consts = tuple(bundle if c == "isle bundle" else c for c in code.co_consts)
    data = MAGIC_NUMBER + UNCHECKED_HASH + marshal.dumps(code.replace(co_consts=consts))
    fresh = destination.with_suffix(".new")
    fresh.write_bytes(data)
    fresh.rename(destination)


main()
