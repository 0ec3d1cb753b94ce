"""Attacks by somebody who had not built it: each test is named by what it shows."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal

import harness
import pytest
from payload import compiled_program


def test_no_ioctl_allocates_what_fallocate_may_not(isle):
    """A folder workspace is measured by looks: what takes gigabytes between two of them is refused."""
    r = isle.command(["./allocate"], "--file", str(compiled_program("allocate")), "--disk", "200")
    assert r.reason == "ok", r.result
    assert r.lines == ["fallocate 0 MB", "RESVSP 0 MB", "RESVSP64 0 MB", "ZERO_RANGE 0 MB"]


@pytest.mark.parametrize("_", range(5))
def test_output_in_packets_is_read_to_its_end(isle, _):
    r = isle.command(["./packets"], "--file", str(compiled_program("packets")))
    assert r.reason == "ok" and r.stdout == "x\n" * 256, (r.result["usage"], len(r.stdout))
    assert r.result["truncated"]["stdout"] is False


def test_control_characters_do_not_cost_a_command_its_result(isle):
    """Six bytes of JSON each, and a command's output is in its result once more."""
    r = isle.sh("head -c 3145728 /dev/zero | tr '\\0' '\\001'", "--max-stdout-kb", "3072")
    assert r.reason == "ok", (r.reason, r.result["error"])
    assert r.stdout == r.result["result"] == "\x01" * 3145728


def test_moving_files_is_no_use_of_disk(isle):
    """A walk that meets a file in its old and its new place counts it twice; it does not decide alone."""
    code = """
import os, time
os.mkdir("a"); os.mkdir("b")
with open("a/f", "wb") as f:
    f.write(bytes(120 << 20))
end = time.monotonic() + 3
while time.monotonic() < end:
    os.rename("a/f", "b/f")
    time.sleep(0.05)
    os.rename("b/f", "a/f")
    open(f"n{time.monotonic()}", "w").write("x")
"""
    r = isle.command(["python3", "-c", code], "--disk", "200")
    assert r.reason == "ok", r.result


def test_the_core_limit_stays_1(isle):
    """At 0 a host's piped core handler is run, by host root, for every crash; at 1 it is not (fs/coredump.c)."""
    code = """
import ctypes, resource
libc = ctypes.CDLL(None)
high = ctypes.CDLL(None).mmap
high.restype, high.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
page = high(1 << 32, 4096, 3, 0x100032, -1, 0)  # the pointer's lower half is 0
assert page == 1 << 32, page
ctypes.memset(page, 0, 4096)
assert libc.syscall(302, 0, 4, ctypes.c_void_p(page), None) == 0
assert libc.syscall(160, 4, ctypes.c_void_p(page)) == 0
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
print(resource.getrlimit(resource.RLIMIT_CORE))
"""
    r = isle.command(["python3", "-c", code])
    assert r.reason == "ok" and r.lines == ["(1, 1)"], (r.result, r.stderr)


@pytest.mark.parametrize("text", ["\x1b[31m", "\x9b31m"])
def test_messages_of_the_front_send_nothing_to_a_terminal(isle, text):
    for args in (("run", "--timeout", text, "--", "true"), ("run", f"--{text}"), (text,)):
        p = isle.start(*args)
        out, err = p.communicate(timeout=20 * harness.SLOW)
        assert p.returncode == 125 and out == b""
        assert text.encode() not in err and b"\x1b" not in err, err


def test_a_socket_that_lingers_does_not_stop_the_clock(isle):
    """Whoever is sent a socket closes it, and its SO_LINGER says how long that takes: the service, with the clock.
    linger.c says longer than the test has patience."""
    code = """
import os, subprocess, time
for n in os.listdir("/proc/self/fd"):
    try:
        if os.readlink(f"/proc/self/fd/{n}").startswith("socket:"):
            subprocess.run(["./linger", n], pass_fds=[int(n)])
    except FileNotFoundError:
        pass
time.sleep(600)
"""
    program = ("--file", str(compiled_program("linger")))
    r, _ = harness.in_time(isle.python, code, *program, seconds=4, ready=lambda r: len(r.lines) > 1)
    assert r.reason == "timeout", r.result
    assert r.lines[0] == "setsockopt 0, lingers 0 s"  # what an older kernel, which lets it be sent, depends on


def test_dev_stdout_and_its_relatives_can_be_opened(isle, tmp_path):
    """And give nothing that the job has not: its output cannot be read back."""
    (tmp_path / "in").write_text("given\n")
    script = "echo one > /dev/stdout; echo two > /dev/stderr; cat /dev/stdin; cat /dev/stdout 2> /dev/null || echo no"
    r = isle.sh(script, "--stdin", str(tmp_path / "in"))
    assert r.reason == "ok" and r.stdout == "one\ngiven\nno\n" and r.stderr == "two\n", r.result


def test_a_terminal_gets_no_control_characters_of_a_job(isle):
    """It would obey them: move, hide, rewrite, set the clipboard, answer as if somebody had typed."""
    code = r"""
import sys
print("\x1b[31mred\x1b]52;c;eA==\x07")
print("\x9b6n", file=sys.stderr)
return "\x9b2J\x1b[H"
"""
    master, slave = os.openpty()
    p = isle.start("run", "-l", "python", "-c", code, stdout=slave, stderr=slave)
    os.close(slave)
    got = b""
    with contextlib.suppress(OSError):  # EIO: the last copy of the other end is closed
        while data := os.read(master, 4096):
            got += data
    os.close(master)
    assert p.wait(20 * harness.SLOW) == 0, got
    assert b"red" in got and b"6n" in got and b"2J" in got, got
    assert b"\x1b" not in got and b"\x07" not in got and "\x9b".encode() not in got, got


def test_inotify_instances_are_not_host_roots(isle):
    """A user namespace's maker pays for what is in it, up to 128 instances: an id of the instance, not host root."""
    code = """
import ctypes, sys, time
libc = ctypes.CDLL(None)
n = 0
while n < 900 and libc.inotify_init1(0) >= 0:
    n += 1
print(n, flush=True)
time.sleep(300)
"""
    p = isle.start("run", "--timeout", "300", "--", "python3", "-c", code)
    assert p.stdout.readline().strip().isdigit()
    libc = ctypes.CDLL(None)
    mine = [libc.inotify_init1(os.O_CLOEXEC) for _ in range(5)]
    theirs = isle.python("import ctypes; return [ctypes.CDLL(None).inotify_init1(0) >= 0 for _ in range(5)]")
    for fd in mine:
        if fd >= 0:
            os.close(fd)
    p.send_signal(signal.SIGINT)
    p.communicate(timeout=20 * harness.SLOW)
    assert min(mine) >= 0, "host root is refused"
    assert theirs.result["result"] == [True] * 5, "another job is refused"


def test_what_sockets_hold_is_bounded(isle):
    """Control groups of version 1 do not count it, unless they have a limit for it."""
    code = """
import socket, time
l = socket.socket(); l.bind(("127.0.0.1", 0)); l.listen(200)
kept, held = [l], 0
for _ in range(40):
    a = socket.socket(); a.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 22)
    a.connect(l.getsockname()); a.setblocking(False); kept += [a, l.accept()[0]]
    try:
        while held < 100 << 20:
            held += a.send(bytes(1 << 18))
    except BlockingIOError:
        pass
print(held >> 20)
"""
    r = isle.command(["python3", "-c", code], "--memory", "64")
    assert r.reason == "memory_limit" or int(r.lines[0]) < 64, r.result


def test_nobody_watches_what_others_open(isle):
    """The runtime's files are shared by all jobs: inotify(7) there would tell who starts what."""
    code = """
import ctypes, fcntl, os
libc = ctypes.CDLL(None, use_errno=True)
fd = libc.inotify_init1(os.O_NONBLOCK)
print([libc.inotify_add_watch(fd, b"/usr/bin", 1 << i) >= 0 for i in range(12)])
try:
    fcntl.fcntl(os.open("/usr/bin", os.O_RDONLY), fcntl.F_NOTIFY, 1)
    print("dnotify")
except PermissionError:
    print("no dnotify")
"""
    r = isle.command(["python3", "-c", code])
    reading = {0, 4, 5}  # IN_ACCESS, IN_CLOSE_NOWRITE, IN_OPEN
    assert r.lines == [str([i not in reading for i in range(12)]), "no dnotify"], r.result


def test_a_file_in_the_place_of_a_folder_is_its_owners_mistake(isle):
    r = isle.job("--file", "/etc/hostname:tmp", "--", "true")
    assert r.reason == "error" and "tmp" in r.result["error"], r.result
