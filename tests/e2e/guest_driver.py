"""Runs a guest wrapper with a bare interpreter over a socketpair, as the service would, but without a
sandbox.

Interpreters: ISLE_TEST_PYTHON and ISLE_TEST_NODE (command lines), else those of the runtime root
SANDBOX_RUNTIME_ROOT (default: the installed one), as a root of their own, which needs root. A missing interpreter is an
error, not a skip."""

import atexit
import functools
import json
import os
import pathlib
import shlex
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading

SOURCE = pathlib.Path(__file__).resolve().parents[2] / "src" / "guest"
ROOT = pathlib.Path(os.environ.get("SANDBOX_RUNTIME_ROOT", "/var/lib/isle/runtime/current"))
SLOW = float(os.environ.get("ISLE_TEST_SLOW", "1"))  # as in harness.py
MAGIC, CODE, PARAMS, RUN, RESULT, ERROR = 0x4C534931, 1, 2, 3, 32, 33
DEFAULT_NAME = {"python": "snippet.py", "javascript": "snippet.js"}


WRAPPERS = {"python": "python.pyc", "javascript": "javascript.cjs"}
PRODUCT_FLAGS = {"python": ["-s", "-S", "-u"], "javascript": []}


def interpreter(language, work="/", flags=()):
    """The command line of the interpreter, run in `work`."""
    if language == "python":
        return [*_program("ISLE_TEST_PYTHON", "usr/bin/python3.13", work), *flags]
    return [*_program("ISLE_TEST_NODE", "usr/bin/node", work), *flags]


# The root's own file system around the interpreter, so that it and its children find what is theirs.
# exec all the way: the process that is started is the one whose status and signals count.
ENTER = """
root=$1 work=$2 new=/mnt; shift 2
mount -t tmpfs none $new && cd $new && mkdir usr proc dev tmp etc
for name in bin sbin lib lib64; do ln -s usr/$name $name; done
mount --rbind "$root/usr" usr && mount --rbind /proc proc && mount --rbind /dev dev && mount --rbind /tmp tmp
exec /usr/sbin/chroot $new /usr/bin/env -C "$work" "$@"
"""


def _program(variable, path, work="/"):
    if variable in os.environ:
        return shlex.split(os.environ[variable])
    program = ROOT / path
    if not program.exists():
        raise RuntimeError(f"no {program}: run ./bootstrap, or set {variable}")
    enter = ["/bin/sh", "-ec", ENTER, "enter", str(ROOT.resolve()), str(work)]
    return ["unshare", "--mount", "--propagation", "private", *enter, f"/{path}"]


@functools.cache
def guest_folder():
    """The guest's files as the build makes them, and as they are in the source."""
    folder = tempfile.mkdtemp(prefix="guest-", dir="/tmp")
    atexit.register(shutil.rmtree, folder)
    subprocess.run([str(SOURCE / "make-guest"), str(SOURCE), f"{folder}/guest"], check=True)
    shutil.copytree(SOURCE, f"{folder}/source")
    if "ISLE_TEST_PYTHON" in os.environ:
        compiler = [*_program("ISLE_TEST_PYTHON", ""), f"{folder}/source/compile-guest.py"]
        subprocess.run([*compiler, f"{folder}/guest/python.pyc"], check=True)
    return pathlib.Path(folder)


def wrapper(language):
    """The file the interpreter is given."""
    return str(guest_folder() / "guest" / WRAPPERS[language])


def frame(kind, seq, payload):
    return struct.pack("<5I", MAGIC, kind, 1, seq, len(payload)) + payload


class Outcome:
    """What came back: frames [(type, payload)], status (negative: signal), out, err."""

    def __init__(self, frames, status, out, err):
        self.frames, self.status, self.out, self.err = frames, status, out, err

    @property
    def text(self):
        """The one RESULT's JSON text."""
        assert [kind for kind, _ in self.frames] == [RESULT], self.describe()
        return self.frames[0][1].decode()

    @property
    def value(self):
        assert self.status == 0, self.describe()
        return json.loads(self.text)

    @property
    def error(self):
        assert [kind for kind, _ in self.frames] == [ERROR], self.describe()
        return json.loads(self.frames[0][1])

    def describe(self):
        return f"frames {self.frames!r:.500} status {self.status} out {self.out!r:.2000} err {self.err!r:.3000}"


def parse(data):
    frames, seq = [], 1
    while data:
        magic, kind, execution, number, length = struct.unpack("<5I", data[:20])
        assert (magic, execution, number) == (MAGIC, 1, seq), data[:40]
        assert len(data) >= 20 + length, "half a frame"
        frames.append((kind, data[20 : 20 + length]))
        data, seq = data[20 + length :], seq + 1
    return frames


def run_guest(language, folder, code, params=None, *, stdin=b"", timeout=60, env=None, cwd=None, **options):
    """Runs `code` (str or bytes) with `params` (a value, or JSON text as bytes). `folder`: its code
    goes to folder/code, its working directory is folder/work unless `cwd`."""
    folder = pathlib.Path(folder)
    work = pathlib.Path(cwd) if cwd else folder / "work"
    work.mkdir(parents=True, exist_ok=True)
    options = {"name": DEFAULT_NAME[language], "code_dir": str(folder / "code"), **options}
    params = params if isinstance(params, bytes) else json.dumps(params or {}).encode()
    code = code if isinstance(code, bytes) else code.encode()
    service, guest = socket.socketpair()
    kept = guest.fileno()
    argv = [*interpreter(language, work, PRODUCT_FLAGS[language]), wrapper(language)]
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(work), "LANG": "C.UTF-8", **(env or {})}
    # A shell puts the socket on descriptor 3: the interpreter must find it there and nothing above.
    shell = f'exec 3<&{kept} {kept}<&- && exec "$@"' if kept != 3 else 'exec "$@"'
    process = subprocess.Popen(
        ["bash", "-c", shell, "guest", *argv],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        cwd=work, env=environment, pass_fds=[kept],
    )  # fmt: skip
    guest.close()
    received = bytearray()

    def talk():
        service.sendall(frame(CODE, 1, code) + frame(PARAMS, 2, params) + frame(RUN, 3, json.dumps(options).encode()))
        try:
            while piece := service.recv(1 << 16):
                received.extend(piece)
        except OSError:
            pass

    talker = threading.Thread(target=talk, daemon=True)
    talker.start()
    timeout *= SLOW
    try:
        out, err = process.communicate(stdin, timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        raise AssertionError(f"no end within {timeout} s: {out!r:.500} {err!r:.500}") from None
    talker.join(20)
    service.close()
    return Outcome(parse(bytes(received)), process.returncode, out.decode(), err.decode())


def main():
    """guest_driver.py LANGUAGE [PARAMS] <CODE, for a look by hand."""
    params = json.loads(sys.argv[2]) if len(sys.argv) > 2 else None
    with tempfile.TemporaryDirectory() as scratch:
        print(run_guest(sys.argv[1], scratch, sys.stdin.read(), params).describe())


if __name__ == "__main__":
    main()
