"""Run by the runtime root's Python: differential_batch.py GUEST-FOLDER SCRATCH <JOBS >OUTCOMES.

Runs each program twice: by the bare interpreter, as a file, and by the guest's wrapper, as a snippet of the same name
in the same place. Jobs and outcomes are lines of JSON. One long process inside the root: entering it costs more than
a program's two runs."""

import base64
import json
import os
import select
import shutil
import signal
import socket
import struct
import sys
import time

MAGIC, CODE, PARAMS, RUN = 0x4C534931, 1, 2, 3
INTERPRETERS = {"python": "/usr/bin/python3.13", "javascript": "/usr/bin/node"}
WRAPPERS = {"python": "python.pyc", "javascript": "javascript.cjs"}
GUEST_FLAGS = {"python": ["-s", "-S", "-u"], "javascript": []}
BARE_FLAGS = {"python": ["-u"], "javascript": []}
ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "PYTHONHASHSEED": "0",
    "TZ": "UTC",
    "PYTHONDONTWRITEBYTECODE": "1",
}
PROGRAM_SECONDS = 20 * float(os.environ.get("ISLE_TEST_SLOW", "1"))


def spawn(argv, folder, channel=None):
    """(pid, [reading ends of stdout and stderr])."""
    out, err = os.pipe(), os.pipe()
    nothing = os.open("/dev/null", os.O_RDONLY)
    pairs = [(nothing, 0), (out[1], 1), (err[1], 2)] + ([(channel, 3)] if channel is not None else [])
    # What is to become 0 to 3 has numbers above: nothing is overwritten before it is used.
    actions = [(os.POSIX_SPAWN_DUP2, old, new) for old, new in pairs]
    pid = os.posix_spawn(
        argv[0], argv, {**ENVIRONMENT, "HOME": folder}, file_actions=actions, setsid=True, setsigdef=[signal.SIGINT]
    )
    for fd in (nothing, out[1], err[1]):
        os.close(fd)
    return pid, [out[0], err[0]]


def collect(pid, pipes, channel=None):
    """Reads everything until nobody can write any more."""
    data = {fd: bytearray() for fd in (*pipes, *([channel.fileno()] if channel else []))}
    poll = select.poll()
    for fd in data:
        poll.register(fd, select.POLLIN)
    end, open_fds = time.monotonic() + PROGRAM_SECONDS, set(data)
    while open_fds:
        for fd, _ in poll.poll(1000):
            try:
                piece = os.read(fd, 1 << 16)
            except ConnectionResetError:
                piece = b""
            data[fd] += piece
            if not piece:
                poll.unregister(fd)
                open_fds.discard(fd)
        if time.monotonic() > end:
            os.killpg(pid, signal.SIGKILL)
            break
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    for fd in pipes:
        os.close(fd)
    out, err = (data[fd].decode("utf-8", "replace") for fd in pipes)
    return {"out": out, "err": err, "status": "hangs" if open_fds else status}, data


def fresh(folder):
    os.chdir("/")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    os.chdir(folder)


def run_bare(job, code, folder):
    fresh(folder)
    path = f"{folder}/{job['bare_name']}"
    with open(path, "wb") as file:
        file.write(code)
    language = job["language"]
    return collect(*spawn([INTERPRETERS[language], *BARE_FLAGS[language], path], folder))[0]


def run_guest(job, code, folder, guest):
    fresh(folder)
    ours, theirs = socket.socketpair()
    language = job["language"]
    wrapper = f"{guest}/{WRAPPERS[language]}"
    pid, pipes = spawn([INTERPRETERS[language], *GUEST_FLAGS[language], wrapper], folder, theirs.fileno())
    theirs.close()
    run = json.dumps({"name": job["name"], "code_dir": folder}).encode()
    ours.sendall(b"".join(frame(*f) for f in ((CODE, 1, code), (PARAMS, 2, b"{}"), (RUN, 3, run))))
    outcome, data = collect(pid, pipes, ours)
    received = bytes(data[ours.fileno()])
    ours.close()
    frames = []
    while received:
        _, kind, _, _, length = struct.unpack("<5I", received[:20])
        frames.append((kind, received[20 : 20 + length].decode()))
        received = received[20 + length :]
    return {**outcome, "frames": frames}


def frame(kind, seq, payload):
    return struct.pack("<5I", MAGIC, kind, 1, seq, len(payload)) + payload


def main():
    guest, scratch = sys.argv[1:]
    os.umask(0o22)
    # The number of the first descriptor of a pipe is above 3 from here on.
    while os.open("/dev/null", os.O_RDONLY) < 10:
        pass
    for line in sys.stdin:
        job = json.loads(line)
        code = base64.b64decode(job["code"])
        bare = run_bare(job, code, scratch)
        print(
            json.dumps({"seed": job["seed"], "bare": bare, "guest": run_guest(job, code, scratch, guest)}), flush=True
        )


main()
