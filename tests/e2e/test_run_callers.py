"""`isle run` from odd places: closed streams, low limits, masks, endless input, callers that go away."""

from __future__ import annotations

import hashlib
import os
import subprocess
import threading
import time

import harness
import pytest
import results

SLOW = harness.SLOW
pytestmark = pytest.mark.usefixtures("host")


def through(shell: str) -> list[str]:
    """A prefix: bash runs these words and becomes isle."""
    return ["bash", "-c", f'{shell}; exec "$0" "$@"']


def test_stdin_is_closed(isle):
    r = isle.sh("read x; echo [$x]", prefix=through("exec <&-"))
    assert r.reason == "ok" and r.lines == ["[]"]
    r = isle.sh("echo fine", "--stdin", "-", prefix=through("exec <&-"))
    assert r.lines == ["fine"]


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&-", "<&- >&- 2>&-"])
def test_streams_are_closed(isle, closed, tmp_path):
    """No descriptor of isle's own may take a closed stream's number and be written to as if it were it."""
    mark = tmp_path / "mark"
    mark.write_text("untouched")
    r = isle.run("--file", str(mark), "-l", "bash", "-c", "echo out; echo err >&2", prefix=through(f"exec {closed}"))
    assert r.status in (0, 125)
    assert mark.read_text() == "untouched"
    if ">&- 2" not in closed and "2>&-" not in closed:
        assert b"err" in r.err or r.status == 125
    if closed == "2>&-":
        assert r.out == b"out\n"


@pytest.mark.parametrize("limit", ["-n 64", "-n 12", "-f 1", "-s 256", "-u 40", "-c unlimited", "-l 0", "-t 1"])
def test_callers_limits_are_not_the_jobs(isle, limit):
    """Soft limits: a hard one cannot be raised where root lacks CAP_SYS_RESOURCE, as in many containers."""
    code = "ulimit -n; ulimit -c; head -c 100000 /dev/zero > f && wc -c < f"
    r = isle.run("--json", "-l", "bash", "-c", code, prefix=through(f"ulimit -S {limit}"))
    if r.status == 125:
        assert r.err != b"" or b"isolation_unavailable" in r.out or b"internal" in r.out
        return
    result = results.strict_json(r.out)
    assert result["stdout"].split() == ["1024", "0", "100000"], (limit, result)


@pytest.mark.parametrize("mask", ["000", "022", "077", "777"])
def test_callers_umask(isle, mask, tmp_path):
    (tmp_path / "in").write_text("in")
    out = tmp_path / "out"
    out.mkdir()
    code = "umask; cat in; echo A > output/a; stat -c %a output/a . input"
    for disk in ("48", "200"):
        r = isle.sh(
            code,
            *("--file", str(tmp_path / "in"), "--disk", disk),
            *("--artifact", "output/a", "--output-dir", str(out)),
            prefix=through(f"umask {mask}"),
        )
        assert r.reason == "ok" and r.lines == ["0022", "in644", "700", "755"], r.result
    assert (out / "output/a").exists() or (out / "a").exists()


def test_callers_folder_is_gone(isle, tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    r = isle.sh("pwd", prefix=through(f"cd {gone} && rmdir {gone}"))
    assert r.lines == ["/workspace"]


def test_callers_environment_stays_outside(isle):
    env = {"LD_PRELOAD": "", "PYTHONPATH": "/x", "NODE_OPTIONS": "--bad", "IFS": "x", "MALICE": "CANARY-ENV-7f3a"}
    r = isle.command(["env"], env=env)
    assert r.reason == "ok"
    assert not [line for line in r.lines if line.split("=")[0] in env]


def test_relative_paths_are_the_callers(isle, tmp_path):
    (tmp_path / "code.py").write_text("print(open('data').read())\nreturn 1")
    (tmp_path / "data").write_text("here")
    (tmp_path / "p.json").write_text("{}")
    r = isle.job("--file", "data", "--params", "@p.json", "code.py", cwd=tmp_path)
    assert r.lines == ["here"] and r.result["result"] == 1


def test_large_input_is_exact(isle):
    data = os.urandom(1 << 20) * 32
    r = isle.command(["sha256sum"], "--stdin", "-", input=data, within=40)
    assert r.lines == [f"{hashlib.sha256(data).hexdigest()}  -"]


def test_input_that_never_ends(isle):
    """The job takes one byte of an endless stream and is over."""
    with subprocess.Popen(["yes"], stdout=subprocess.PIPE) as yes:
        try:
            r = isle.command(["head", "-c", "2"], "--stdin", "-", stdin=yes.stdout, within=10)
            assert r.stdout == "y\n" and r.reason == "ok"
        finally:
            yes.kill()


def test_input_nobody_reads(isle):
    with subprocess.Popen(["yes"], stdout=subprocess.PIPE) as yes:
        try:
            r = isle.command(["sleep", "0.3"], "--stdin", "-", stdin=yes.stdout, within=10)
            assert r.reason == "ok"
        finally:
            yes.kill()


@pytest.mark.parametrize("option", ["--file", "--stdin"])
def test_special_files_as_input(isle, option, tmp_path):
    """A FIFO without a writer does not hang isle; a device is not read for ever."""
    os.mkfifo(tmp_path / "fifo")
    names = [str(tmp_path / "fifo"), "/dev/zero", "/proc/kmsg"] if option == "--file" else [str(tmp_path / "fifo")]
    for name in names:
        try:
            r = isle.run(option, name, "--", "true", within=5)
        except harness.Hang:
            # --stdin of a FIFO may wait for its writer, as `cat FIFO` would
            assert option == "--stdin"
            continue
        assert r.status == 125 or option == "--stdin", r
        assert r.status == 0 or os.path.basename(name).encode() in r.err


def test_slow_reader(isle):
    """A reader that stops for a while loses nothing."""
    p = isle.start("run", "-l", "bash", "-c", "head -c 200000 /dev/zero | tr '\\0' a", stderr=subprocess.DEVNULL)
    time.sleep(1.5)
    out, _ = p.communicate(timeout=10 * SLOW)
    assert out == b"a" * 200000 and p.returncode == 0


def test_full_disk_for_output(isle):
    with open("/dev/full", "wb") as full:
        p = isle.start("run", "-l", "bash", "-c", "echo hello", stdout=full)
        _, err = p.communicate(timeout=10 * SLOW)
    assert p.returncode == 125 and b"No space left" in err


def test_term_reaches_every_process(isle):
    code = """
import os, signal, time
name, (told, tell) = "main", os.pipe()
def heard(*_):
    os.write(1, f"{name} heard\\n".encode())
    if name == "main": os.wait(), os.wait()
    os._exit(0)
if os.fork() == 0: name = "child"
elif os.fork() == 0: name = "session"; os.setsid()
signal.signal(signal.SIGTERM, heard)
if name == "main": os.read(told, 1), os.read(told, 1), print("ready", flush=True)
else: os.write(tell, b"x")
time.sleep(600)
"""

    def had_time(r: harness.Run) -> bool:
        return "ready" in r.lines and r.result["signal"] != 9

    r, _ = harness.in_time(isle.command, ["python3", "-c", code], seconds=3, ready=had_time)
    assert r.reason == "timeout", r.result
    assert sorted(r.lines) == ["child heard", "main heard", "ready", "session heard"], r.result


def test_many_small_files(isle, tmp_path):
    options = []
    for i in range(1000):
        (tmp_path / f"f{i}").write_text(str(i))
        options += ["--file", f"{tmp_path}/f{i}:in/{i % 10}/f{i}"]
    r = isle.sh("find in -type f | wc -l; cat in/7/f997", *options, within=30)
    assert r.lines == ["1000", "997"], (r.result, r.err)


def test_inside_other_namespaces(isle):
    """Started in a mount, pid and network namespace of somebody's own."""
    prefix = ["unshare", "--mount", "--pid", "--fork", "--net", "--mount-proc"]
    r = isle.sh("echo inside; id -u", prefix=prefix)
    assert r.reason == "ok" and r.lines == ["inside", "1000"], r.result


def test_starts_one_after_another_while_others_end(isle):
    """Numbers of instances are taken and given back all the time."""
    wrong: list[object] = []

    def chain() -> None:
        for i in range(6):
            r = isle.sh(f"echo {i}", within=30)
            if r.lines != [str(i)]:
                wrong.append(r)

    threads = [threading.Thread(target=chain) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert wrong == []
