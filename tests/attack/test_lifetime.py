"""Group B: lifetime, signals, time limit, output. The limit is TIME unless a test says otherwise."""

from __future__ import annotations

import subprocess
import threading
import time

import harness
import leftovers
import pytest
from payload import attack, held, prepared

# Variants need not wait as long for the same verdict.
TIME = 3 if harness.variants.NOW.changes else 5
LIMIT = ("--timeout", str(TIME))
PLENTY = ("--timeout", "60")  # for what ends by itself
SLOW = harness.SLOW


def timed_out(r: harness.Run, limit: float, at_most: float) -> None:
    assert r.reason == "timeout", r.result
    assert r.result["success"] is False and r.status == 124
    assert r.result["error"] == f"Execution timeout ({limit:.1f}s)", r.result["error"]
    wall = r.result["usage"]["wall_ms"] / 1000
    assert limit <= wall <= at_most + 5 * SLOW, wall
    assert r.wall <= at_most + 6 * SLOW, r.wall


def ended_by_time(isle, file: str, said: str, grace: float = 1) -> None:
    """It says this and meets its limit, however it ends then."""
    r, limit = harness.in_time(attack, isle, file, seconds=TIME, ready=lambda r: r.lines)
    timed_out(r, limit, limit + grace)
    assert r.lines == [said]


def test_B01(isle):
    r = attack(isle, "B01.py", *PLENTY)
    held(r, "main done")
    assert r.result["usage"]["wall_ms"] < 25000, "it has waited for the others"
    assert leftovers.nothing_runs()


def test_B02(isle):
    r = attack(isle, "B02.sh", *PLENTY)
    held(r, "main done")


def test_B03(isle):
    ended_by_time(isle, "B03.py", "stopping", 3)


def test_B05(isle):
    zombies = leftovers.zombies()
    r = attack(isle, "B05.py", *LIMIT)
    assert r.reason in ("ok", "timeout"), r.result
    if r.reason == "ok":
        assert r.lines[-1] == "spawned 20000" or "unavailable" in r.lines[0], r.lines
    assert harness.SHARED_HOST or harness.until(lambda: leftovers.zombies() <= zombies, 10)


def test_B05_orphans_are_reaped(isle):
    """With pid 1 reaping, far more children than the limit of pids can live one after another."""
    code = """
import os, time
for i in range(300):
    while True:
        try: p = os.fork()
        except BlockingIOError: time.sleep(0.01); continue
        break
    if p == 0:
        if os.fork() == 0: os._exit(0)
        os._exit(0)
    os.waitpid(p, 0)
def few(): return sum(1 for p in os.listdir("/proc") if p.isdigit()) <= 3
end = time.monotonic() + 25
while not few() and time.monotonic() < end: time.sleep(0.05)
print(few())
"""
    held(isle.command(["python3", "-c", code], "--pids", "16"), "True")


def test_B06(isle):
    ended_by_time(isle, "B06.c", "vfork")


def test_B07(isle):
    """The bomb stays inside its limit, and somebody else's job runs in normal time meanwhile."""
    path, argv = prepared("B07.sh")
    alone = min(isle.sh("true").wall for _ in range(3))
    box: list[harness.Run] = []

    def exploded(r: harness.Run) -> bool:
        return "Resource temporarily unavailable" in r.stderr or r.result["truncated"]["stderr"]

    words = (argv, "--file", str(path), "--pids", "64")
    bomb = threading.Thread(
        target=lambda: box.append(harness.in_time(isle.command, *words, seconds=4, ready=exploded)[0])
    )
    bomb.start()
    time.sleep(1.5)
    beside = [isle.sh("echo fine") for _ in range(3)]
    bomb.join()
    assert all(one.reason == "ok" and one.lines == ["fine"] for one in beside)
    assert min(one.wall for one in beside) < alone * 4 + 2 * SLOW, (alone, beside)
    r = box[0]
    assert r.reason in ("timeout", "ok", "error"), r.result
    assert 32 <= r.result["usage"]["pids_peak"] <= 64
    assert exploded(r)


def test_B08(isle):
    r = attack(isle, "B08.py", *PLENTY, "--pids", "64")
    assert r.lines, r.result
    word, n, *_ = r.lines[0].split()
    assert word == "stopped" and 8 <= int(n) < 64, r.lines
    assert r.result["usage"]["pids_peak"] <= 64


def test_B09(isle):
    r = attack(isle, "B09.py", *PLENTY)
    held(r)
    assert r.result["usage"]["wall_ms"] < 25000, "it has waited for the others"
    assert leftovers.nothing_runs()


@pytest.mark.parametrize("word, code", [("137", 137), ("124", 124)])
def test_B10(isle, word, code):
    r = attack(isle, "B10.sh", *PLENTY, args=(word,))
    assert r.reason == "error" and r.status == code
    assert r.result["exit_code"] == code and r.result["signal"] is None


def test_B10_a_real_kill(isle):
    r = attack(isle, "B10.sh", *PLENTY, args=("124s",))
    assert r.reason == "error" and r.status == 137
    assert r.result["exit_code"] is None and r.result["signal"] == 9


def test_B12(isle):
    r = attack(isle, "B12.py", "--timeout", "5")
    timed_out(r, 5, 6)
    assert set(r.stdout) <= {"."} and len(r.stdout) <= 1 + r.result["usage"]["wall_ms"] / 400


def test_B13(isle):
    r = attack(isle, "B13.py", *PLENTY)
    assert r.reason == "ok", r.result
    assert r.stdout == "x" * (256 << 10)
    assert r.result["truncated"]["stdout"] is True
    assert r.result["usage"]["stdout_bytes"] == (64 << 20) + 1


def test_B14(isle):
    ended_by_time(isle, "B14.py", "bye")


def test_B15(isle):
    r = attack(isle, "B15.py", *PLENTY)
    assert r.reason == "ok"
    whole = b"ok \xff\xfe \xed\xa0\x80 \x00 " + "€".encode() * 100000
    assert r.result["usage"]["stdout_bytes"] == len(whole)
    kept = whole[: 256 << 10]
    while kept[-3:] != "€".encode():
        kept = kept[:-1]
    assert r.stdout == kept.decode("utf-8", "replace")
    assert r.result["truncated"]["stdout"] is True


def end_of_input(isle, **kw) -> None:
    r = attack(isle, "B17.py", **kw)  # one that waits for input ends as a timeout
    assert r.reason == "ok" and len(r.lines) == 1 and r.lines[0].startswith("0 "), r.result


def test_B17(isle):
    end_of_input(isle)


def test_B17_never_the_callers(isle):
    end_of_input(isle, input=b"typed at the terminal\n")


def test_B18(isle):
    ended_by_time(isle, "B18.py", "result ready")


def test_B19(isle):
    """All processes together get one CPU, and a short job of somebody else ends in normal time."""
    path, argv = prepared("B19.py")
    alone = min(isle.sh("true").wall for _ in range(3))
    box: list[harness.Run] = []
    hog = threading.Thread(
        target=lambda: box.append(isle.command(argv, "--file", str(path), "--cpus", "1", "--timeout", "5"))
    )
    hog.start()
    time.sleep(1.5)
    beside = [isle.sh("sleep 0.1; echo fine") for _ in range(3)]
    hog.join()
    assert all(one.reason == "ok" and one.lines == ["fine"] for one in beside)
    assert min(one.wall for one in beside) < alone * 3 + 2 * SLOW, (alone, beside)
    r = box[0]
    timed_out(r, 5, 7.5)
    assert r.result["usage"]["cpu_ms"] <= r.result["usage"]["wall_ms"] * 1.15 + 200


@pytest.mark.parametrize(
    "value",
    [
        "0",
        "-1",
        "1e308",
        "NaN",
        "nan",
        "Infinity",
        "inf",
        '"5"',
        "0.0000001",
        "1e-320",
        "9223372036854775807",
        "18446744073709551616",
        "5e9",
        "null",
        "true",
        "[5]",
        "",
        " 5",
        "5 ",
        "0x5",
        "5s",
        "+5",
        "--5",
        "5,0",
        "600.001",
        "601",
        "0.999",
    ],
)
def test_B20(isle, value):
    r = isle.run(f"--timeout={value}", "-l", "python", "-c", "while True: pass")
    assert r.status == 125 and r.out == b"", r
    assert b"timeout" in r.err, r.err


def test_B21(isle):
    ended_by_time(isle, "B21.py", "HELD")


def test_a_start_with_other_locks_leaves_a_running_jobs_files(isle, tmp_path):
    """Lock files may lie elsewhere, or have been cleaned away; whoever empties a folder asks the folder itself."""
    words = ("--timeout", "300", "--disk", "200", "--stdin", "-", "-l", "bash")
    p = isle.start("run", *words, "-c", "echo kept > f; echo up; read x; cat f", stdin=subprocess.PIPE)
    assert p.stdout.readline() == b"up\n"
    assert isle.sh("echo other", "--disk", "200", env={"SANDBOX_RUN_DIR": str(tmp_path / "locks")}).lines == ["other"]
    assert p.communicate(b"go\n", timeout=20 * SLOW)[0] == b"kept\n" and p.returncode == 0
