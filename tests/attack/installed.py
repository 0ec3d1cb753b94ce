"""Reads the seccomp filters that a process really has, and says what they answer.

Needs host root (ptrace(2), PTRACE_SECCOMP_GET_FILTER; the kernel has it with CONFIG_CHECKPOINT_RESTORE).
"""

from __future__ import annotations

import ctypes
import os
import struct

SEIZE, INTERRUPT, DETACH, GET_FILTER = 0x4206, 0x4207, 17, 0x420C
WALL = 0x40000000
KILL_PROCESS, TRAP, ERRNO, USER_NOTIF, TRACE, LOG, ALLOW = (
    0x80000000,
    0x00030000,
    0x00050000,
    0x7FC00000,
    0x7FF00000,
    0x7FFC0000,
    0x7FFF0000,
)
X86_64, I386 = 0xC000003E, 0x40000003

Program = list[tuple[int, int, int, int]]  # code, jt, jf, k

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long


def _ptrace(request: int, pid: int, addr: int = 0, data: object = None) -> int:
    r = libc.ptrace(request, pid, addr, data)
    if r < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), f"ptrace {request:#x}")
    return r


def filters_of(pid: int) -> list[Program]:
    """The newest first."""
    _ptrace(SEIZE, pid)
    _ptrace(INTERRUPT, pid)
    os.waitpid(pid, WALL)
    try:
        found = []
        while True:
            try:
                count = _ptrace(GET_FILTER, pid, len(found), None)
            except OSError as e:
                if e.errno == 2:  # no filter of that number
                    return found
                raise
            buffer = ctypes.create_string_buffer(8 * count)
            _ptrace(GET_FILTER, pid, len(found), buffer)
            found.append(list(struct.iter_unpack("<HBBI", buffer.raw)))
    finally:
        _ptrace(DETACH, pid)


def run(program: Program, number: int, arch: int, args: tuple[int, ...] = ()) -> int:
    """What one filter returns for a call: classic BPF as seccomp(2) allows it."""
    args = (*args, *[0] * (6 - len(args)))
    data = struct.pack("<IIQ6Q", number & 0xFFFFFFFF, arch, 0, *args)
    a = x = 0
    memory = [0] * 16
    at = 0
    while True:
        code, jt, jf, k = program[at]
        at += 1
        kind, low = code & 7, code & 0xF8
        if code == 0x20:  # ld [k]
            (a,) = struct.unpack_from("<I", data, k)
        elif kind == 0 and code & 0xE0 == 0:  # ld #k
            a = k
        elif code == 0x60:
            a = memory[k]
        elif code == 0x01:
            x = k
        elif code == 0x61:
            x = memory[k]
        elif code == 0x02:
            memory[k] = a
        elif code == 0x03:
            memory[k] = x
        elif kind == 7:
            a, x = (x, x) if low else (a, a)
        elif kind == 4:
            operand = x if code & 8 else k
            a = {
                0x00: a + operand,
                0x10: a - operand,
                0x40: a | operand,
                0x50: a & operand,
                0x60: a << (operand & 31),
                0x70: a >> (operand & 31),
                0xA0: a ^ operand,
            }[code & 0xF0] & 0xFFFFFFFF
        elif kind == 5:
            operand = x if code & 8 else k
            test = code & 0xF0
            if test == 0:
                at += k
                continue
            taken = {0x10: a == operand, 0x20: a > operand, 0x30: a >= operand, 0x40: bool(a & operand)}[test]
            at += jt if taken else jf
        elif kind == 6:
            return a if code & 0x18 == 0x10 else k
        else:
            raise ValueError(f"instruction {code:#x}")


def answer(programs: list[Program], number: int, arch: int = X86_64, args: tuple[int, ...] = ()) -> int:
    """What all filters together answer: the most restrictive action wins, the newest among equals."""

    def rank(value: int) -> int:
        action = value & 0xFFFF0000
        return action - (1 << 32) if action & 0x80000000 else action

    return min((run(p, number, arch, args) for p in programs), key=rank)
