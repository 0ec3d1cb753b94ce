"""Runs the real `isle run` and looks at the host afterwards.

Nothing here believes what a job prints about itself: a test asks for the exit status, the SandboxResult
(results.py: read by a parser that is stricter than json.loads) and the state of the host, which is
compared with a picture taken before (leftovers.py).
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import pathlib
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence

import variants
from results import check_result, exit_status, strict_json

ROOT = pathlib.Path(__file__).resolve().parents[2]
ISLE = pathlib.Path(os.environ.get("ISLE", ROOT / "build/src/app/isle"))
# A sanitizer build is several times slower: every time bound of the tests is multiplied.
SLOW = float(os.environ.get("ISLE_TEST_SLOW", "1"))
SANITIZED = "ASAN_OPTIONS" in os.environ
# On a machine that does other things meanwhile, what those change (mounts, /etc, inodes) is not compared.
SHARED_HOST = os.environ.get("ISLE_TEST_SHARED_HOST", "") == "1"
LONG = os.environ.get("ISLE_LONG", "") == "1"
RUNTIME_ROOT = pathlib.Path(os.environ.get("SANDBOX_RUNTIME_ROOT", "/var/lib/isle/runtime/current"))
LOCK_DIR = variants.RUN_DIR
HOSTNAME = "clouisle-sandbox"

# All tests together: a bomb that gets out of its job stops here. The settings reach the instance's own group.
BOUND_MEMORY_MB = 2560
BOUND_PIDS = 1500


@dataclasses.dataclass
class Run:
    status: int
    out: bytes
    err: bytes
    wall: float
    result: dict | None = None

    @property
    def text(self) -> str:
        return self.out.decode("utf-8", "replace")

    @property
    def stdout(self) -> str:
        return self.result["stdout"]

    @property
    def stderr(self) -> str:
        return self.result["stderr"]

    @property
    def reason(self) -> str:
        return self.result["reason"]

    @property
    def lines(self) -> list[str]:
        return self.result["stdout"].splitlines()


class Hang(AssertionError):
    """`isle run` did not end within its time."""


@dataclasses.dataclass
class Isle:
    """One data folder and the settings that go with it."""

    data: pathlib.Path
    env: dict[str, str] = dataclasses.field(default_factory=dict)
    program: pathlib.Path = ISLE

    def environ(self, extra: dict[str, str] | None = None) -> dict[str, str]:
        account = variants.Session.account
        base = {
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": "/root",
            "LANG": "C.UTF-8",
            "SANDBOX_WORKSPACE_ROOT": str(self.data),
            "SANDBOX_RUNTIME_ROOT": str(RUNTIME_ROOT),
            "SANDBOX_INSTANCE_MEMORY_MB": str(BOUND_MEMORY_MB),
            "SANDBOX_INSTANCE_PIDS": str(BOUND_PIDS),
        }
        if account:
            base |= account.environ()
        for name in (
            "ASAN_OPTIONS",
            "UBSAN_OPTIONS",
            "LSAN_OPTIONS",
            "ISLE_LIBEXEC",
        ):
            if name in os.environ and name not in base:
                base[name] = os.environ[name]
        return base | dict(variants.NOW.settings) | self.env | (extra or {})

    def start(
        self,
        *args: str | os.PathLike,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env: dict[str, str] | None = None,
        cwd: str | os.PathLike | None = None,
        prefix: Sequence[str] = (),
    ) -> subprocess.Popen:
        """`PREFIX isle ARGS` in its own session, as the variant says; the caller waits."""
        account = variants.Session.account
        program = account.program if account else self.program
        words = [os.fspath(a) for a in args]
        if words[:1] == ["run"]:
            words[1:1] = variants.NOW.options
        return subprocess.Popen(
            [*variants.prefix(), *prefix, str(program), *words],
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            env=self.environ(env),
            cwd=cwd or "/",
            start_new_session=True,
            bufsize=0,  # what readline() has read beyond the line would be lost for communicate()
            **(account.popen() if account else {}),
        )

    def run(
        self,
        *args: str | os.PathLike,
        input: bytes | None = None,
        stdin=subprocess.DEVNULL,
        within: float = 20,
        env: dict[str, str] | None = None,
        cwd: str | os.PathLike | None = None,
        prefix: Sequence[str] = (),
    ) -> Run:
        """`isle run ARGS`, both streams collected; kills and fails past `within` seconds."""
        begin = time.monotonic()
        p = self.start(
            "run",
            *args,
            stdin=subprocess.PIPE if input is not None else stdin,
            env=env,
            cwd=cwd,
            prefix=prefix,
        )
        try:
            out, err = p.communicate(input, timeout=within * SLOW)
        except subprocess.TimeoutExpired:
            p.kill()
            out, err = p.communicate()
            raise Hang(
                f"isle run {args!r}: not over after {within * SLOW:.0f} s; {out[-300:]!r} {err[-300:]!r}"
            ) from None
        return Run(p.returncode, out, err, time.monotonic() - begin)

    def job(self, *args: str | os.PathLike, **kw) -> Run:
        """`isle run --json ARGS`: one line of strict JSON of the right shape, and the status that fits it."""
        r = self.run("--json", *args, **kw)
        assert r.out.endswith(b"\n") and r.out.count(b"\n") == 1, (
            r.status,
            r.out[:500],
            r.err[-1500:],
        )
        value = strict_json(r.out)
        assert isinstance(value, dict)
        r.result = value
        check_result(value)
        assert r.status == exit_status(value), (r.status, value)
        return r

    def python(self, code: str, *args: str | os.PathLike, **kw) -> Run:
        return self.job("-l", "python", *args, "-c", code, **kw)

    def js(self, code: str, *args: str | os.PathLike, **kw) -> Run:
        return self.job("-l", "javascript", *args, "-c", code, **kw)

    def sh(self, code: str, *args: str | os.PathLike, **kw) -> Run:
        return self.job("-l", "bash", *args, "-c", code, **kw)

    def command(self, argv: Sequence[str], *args: str | os.PathLike, **kw) -> Run:
        return self.job(*args, "--", *argv, **kw)


def kill_later(p: subprocess.Popen, seconds: float, sig: int = signal.SIGKILL) -> None:
    def act() -> None:
        time.sleep(seconds)
        with contextlib.suppress(ProcessLookupError):
            p.send_signal(sig)

    threading.Thread(target=act, daemon=True).start()


def until(what: Callable[[], object], seconds: float, step: float = 0.02) -> object:
    """The first true answer of what(), or its last one when the time is over."""
    end = time.monotonic() + seconds * SLOW
    while True:
        late = time.monotonic() > end  # before the look: one that was set aside too long looks once more
        answer = what()
        if answer or late:
            return answer
        time.sleep(step)


def in_time(run: Callable[..., Run], *args, seconds: int, ready: Callable[[Run], object], **kw) -> tuple[Run, int]:
    """A job that its time limit ends, once it has come as far as it should before; and that limit.

    A slow host may not have let it come there: then it gets more time.
    """
    for limit in (seconds, 3 * seconds, 10 * seconds):
        r = run(*args, "--timeout", str(limit), within=limit + 20, **kw)
        if ready(r):
            break
    return r, limit


@contextlib.contextmanager
def data_folder() -> Iterator[pathlib.Path]:
    """A fresh SANDBOX_WORKSPACE_ROOT."""
    with variants.folder("isle-e2e-") as made:
        yield made


def compile_static(source: pathlib.Path, target: pathlib.Path) -> pathlib.Path:
    """A payload in C, linked statically: it must run in a root that has no compiler and another libc."""
    subprocess.run(
        ["gcc", "-O1", "-static", "-w", "-o", str(target), str(source), "-lpthread"],
        check=True,
        timeout=120,
    )
    return target


def kernel_log_lines() -> int | None:
    """Lines in the kernel's ring buffer, None where it may not be read."""
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        p = subprocess.run(["dmesg"], check=False, capture_output=True, timeout=10)
        if p.returncode == 0:
            return p.stdout.count(b"\n")
    return None


@contextlib.contextmanager
def only_session(name: str) -> Iterator[None]:
    """One holder of this name on the host at a time; waits. An abstract socket: nothing to leave or to remove."""
    s = socket.socket(socket.AF_UNIX)
    try:
        while True:
            try:
                s.bind(f"\0{name}")
                break
            except OSError:
                time.sleep(0.5)
        yield
    finally:
        s.close()
