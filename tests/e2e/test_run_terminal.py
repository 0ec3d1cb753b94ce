"""`isle run` as a person sees it: at a terminal, with Ctrl-C, with streams that are closed, full or left."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import pty
import signal
import subprocess
import time

import harness
import host
import leftovers
import pytest
import results

SLOW = harness.SLOW
pytestmark = pytest.mark.usefixtures("host")


class Terminal:
    """`isle run ARGS` with a terminal as all three streams."""

    def __init__(self, isle: harness.Isle, *args: str, cwd: str | os.PathLike = "/") -> None:
        self.fd, other = pty.openpty()
        self.process = subprocess.Popen(
            [str(harness.ISLE), "run", *args],
            stdin=other,
            stdout=other,
            stderr=other,
            env=isle.environ(),
            cwd=cwd,
            start_new_session=True,
        )
        os.close(other)
        self.text = b""

    def read_until(self, mark: bytes, seconds: float = 10) -> None:
        end = time.monotonic() + seconds * SLOW
        while mark not in self.text:
            assert time.monotonic() < end, self.text
            self.read()

    def read(self) -> bool:
        try:
            data = os.read(self.fd, 4096)
        except OSError:  # EIO: everybody has closed the other end
            return False
        self.text += data
        return bool(data)

    def end(self, seconds: float = 10) -> int:
        status = self.process.wait(timeout=seconds * SLOW)
        with contextlib.suppress(OSError):
            os.set_blocking(self.fd, False)
            while self.read():
                pass
        os.close(self.fd)
        return status


def test_summary_at_a_terminal(isle):
    t = Terminal(isle, "-l", "python", "-c", "print('text'); return 5")
    t.read_until(b"isle: ok")
    assert t.end() == 0
    lines = t.text.decode().split("\r\n")
    assert lines[0] == "text" and lines[1] == "5"
    assert lines[2].startswith("isle: ok (") and "CPU" in lines[2] and "memory" in lines[2]


@pytest.mark.parametrize(
    ("args", "shown"),
    [
        (["-l", "bash", "-c", "printf open"], ["open"]),
        (["-l", "bash", "-c", "echo shut"], ["shut"]),
        (["-l", "python", "-c", "print(1, end='')"], ["1"]),
        (["-l", "python", "-c", "print(1, end=''); return 2"], ["1", "2"]),
    ],
)
def test_summary_has_a_line_of_its_own(isle, args, shown):
    t = Terminal(isle, *args)
    t.read_until(b"isle: ok")
    assert t.end() == 0
    *lines, summary, rest = t.text.decode().split("\r\n")
    assert lines == shown and summary.startswith("isle: ok (") and rest == ""


def test_summary_says_what_isolation_lacks(isle):
    assert "degraded" not in summary_of(isle)
    isle = dataclasses.replace(isle, env=isle.env | {"ISLE_TEST_REFUSE_RUNGS": "6"})
    line = summary_of(isle).split("\r\n")[1]
    assert line.startswith("isle: degraded: no_user_namespace: jobs stay in ") and "to mend it: " in line
    isle = dataclasses.replace(isle, env=isle.env | {"ISLE_TEST_REFUSE_RUNGS": "22"})
    lines = summary_of(isle).split("\r\n")
    assert lines[1].startswith("isle: degraded: no_user_namespace, no_loopback (isle doctor says what each costs")
    assert lines[2:] == [""]


def summary_of(isle) -> str:
    t = Terminal(isle, "--", "true")
    t.read_until(b"isle: ok")
    assert t.end() == 0
    return t.text.decode()


def test_summary_names_the_reason(isle):
    t = Terminal(isle, "--timeout", "1", "--", "sleep", "30")
    t.read_until(b"isle: timeout")
    assert t.end() == 124


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--", "cat", "a.txt"], "--file a.txt puts a copy there"),
        (["--", "./a.txt"], "--file a.txt puts a copy there"),
        (["--", "cat", "sub/b"], "--file sub/b:sub/b puts a copy there"),
        (["--file", "a.txt", "--", "sh", "-c", "exit 1", "a.txt"], None),
        (["--", "cat", "other"], None),
        (["--", "cat", "/etc/shadow"], None),
        (["--", "echo", "a.txt"], None),
    ],
)
def test_file_that_was_left_behind(isle, tmp_path, args, said):
    tmp_path.chmod(0o755)
    (tmp_path / "a.txt").write_text("")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/b").write_text("")
    t = Terminal(isle, *args, cwd=tmp_path)
    t.read_until(b")\r\n")
    t.end()
    told = [line for line in t.text.decode().split("\r\n") if "/workspace:" in line]
    assert len(told) == (said is not None) and (said or "") in "".join(told), t.text


def test_no_summary_with_json(isle):
    t = Terminal(isle, "--json", "--", "true")
    t.read_until(b"}\r\n")
    assert t.end() == 0
    assert t.text.count(b"\r\n") == 1 and t.text.startswith(b"{")


def test_second_signal_does_not_wait(isle):
    """The first Ctrl-C asks the service to end the job, the second one waits for nobody: here the service hangs."""
    p = isle.start("run", "-l", "bash", "-c", "trap '' TERM; echo begun; sleep 30")
    try:
        assert p.stdout.readline() == b"begun\n"
        (service,) = host.children(p.pid)
        os.kill(service, signal.SIGSTOP)
        p.send_signal(signal.SIGINT)
        assert harness.until(lambda: not int(host.status_of(p.pid)["ShdPnd"], 16), 20), "it is not heard"
        assert p.poll() is None
        p.send_signal(signal.SIGINT)
        p.communicate(timeout=20 * SLOW)
        assert p.returncode == 130
    finally:
        p.kill()
        p.communicate()
    assert leftovers.nothing_runs()


def test_hang_up_ends_the_job(isle):
    p = isle.start("run", "-l", "bash", "-c", "echo begun; sleep 30")
    assert p.stdout.readline() == b"begun\n"
    p.send_signal(signal.SIGHUP)
    p.communicate(timeout=10 * SLOW)
    assert p.returncode == 130
    assert leftovers.nothing_runs()


def test_nohup_is_respected(isle):
    p = isle.start("run", "-l", "bash", "-c", "echo begun; sleep 1; echo done", prefix=("nohup",))
    assert p.stdout.readline() == b"begun\n"
    p.send_signal(signal.SIGHUP)
    out, _ = p.communicate(timeout=10 * SLOW)
    assert p.returncode == 0 and out == b"done\n"


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams(isle, tmp_path, closed):
    """A file opened later must not take the number of a closed stream, and with it the job's output."""
    source = tmp_path / "source"
    source.write_text("source")
    out = tmp_path / "out"
    code = "cat source; echo text; echo error >&2; echo A > output/a"
    line = f'exec "$@" {closed}'
    argv = ["run", "-l", "bash", "--file", str(source), "--artifact", "output/a", "--output-dir", str(out), "-c", code]
    done = subprocess.run(
        ["bash", "-c", line, "bash", str(harness.ISLE), *argv],
        env=isle.environ(),
        timeout=20 * SLOW,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done
    assert source.read_text() == "source" and (out / "output/a").read_text() == "A\n"


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_full_disk_is_told(isle, options):
    with open("/dev/full", "wb") as full:
        p = isle.start("run", *options, "--", "echo", "text", stdout=full)
        _, err = p.communicate(timeout=20 * SLOW)
    assert p.returncode == 125
    assert b"No space left on device" in err and err.startswith(b"isle")


def test_reader_that_left_is_no_news(isle):
    p = isle.start("run", "--", "yes")
    p.stdout.read(10)
    p.stdout.close()
    assert p.stderr.read() == b""
    assert p.wait(timeout=10 * SLOW) == 130


def test_slow_reader_gets_everything(isle):
    p = isle.start("run", "--max-stdout-kb", "2048", "--", "head", "-c", "2000000", "/dev/zero")
    time.sleep(0.5 * SLOW)  # the pipe is full by now, and the job waits
    out, _ = p.communicate(timeout=20 * SLOW)
    assert p.returncode == 0 and out == bytes(2000000)


def test_slow_reader_does_not_hold_up_ctrl_c(isle):
    p = isle.start("run", "--", "yes")
    time.sleep(0.5 * SLOW)
    p.send_signal(signal.SIGINT)
    assert p.wait(timeout=20 * SLOW) == 130  # else it would be 124 in the end


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_stdout_that_does_not_block(isle, options):
    """Some parents leave O_NONBLOCK on what they hand down."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    p = isle.start("run", *options, "-l", "python", "-c", "return 'x' * 1000000", stdout=write)
    os.close(write)
    time.sleep(0.5 * SLOW)  # the pipe is full by now
    with os.fdopen(read, "rb") as pipe:
        text = pipe.read()
    assert p.wait(timeout=10 * SLOW) == 0
    assert text.count(b"x" * 1000000) == 1 and text.endswith(b"\n")


def test_plan_shows_the_mounts_a_job_has(isle):
    plan = results.strict_json(isle.run("--show-plan", "--json", "--", "true").out)
    shown = {m["target"] for m in plan["mounts"]} - {"/etc"}  # made inside the root itself
    table = isle.command(["cat", "/proc/self/mounts"]).lines
    found = {line.split()[1] for line in table}
    below = {t for t in found if t.startswith(("/proc/", "/etc/"))}  # covers, and parts of /etc
    assert found - below == shown
    nodes = isle.command(["sh", "-c", "cd /dev; for n in *; do [ -h $n ] || [ ! -c $n ] || echo $n; done"]).lines
    what = next(m["what"] for m in plan["mounts"] if m["target"] == "/dev")
    assert sorted(what.split(";")[0].split(", ")) == sorted(nodes)
