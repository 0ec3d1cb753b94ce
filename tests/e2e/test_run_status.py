"""`isle run`: exit status and what the result says about the end."""

from __future__ import annotations

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


def test_success(isle):
    r = isle.sh("echo hello")
    assert r.status == 0 and r.reason == "ok" and r.stdout == "hello\n"
    assert r.result["exit_code"] == 0 and r.result["signal"] is None
    assert r.result["result"] == "hello", "a command's result is its stripped output"
    assert r.result["isolation"] == {
        "level": "full",
        "launcher": "native",
        "start": "cold",
        "network": "none",
        "downgrades": [],
        "fallback": None,
    }


@pytest.mark.parametrize("code", [1, 2, 7, 99, 124, 125, 126, 127, 128, 130, 137, 255])
def test_own_exit_code(isle, code):
    r = isle.sh(f"exit {code}")
    assert r.status == code and r.reason == "error"
    assert r.result["exit_code"] == code and r.result["signal"] is None


@pytest.mark.parametrize("number", [1, 2, 3, 6, 9, 11, 13, 14, 15, 24, 25, 31])
def test_signal_is_128_plus_n(isle, number):
    # dash: bash ignores SIGQUIT
    r = isle.command(["dash", "-c", f"kill -{number} $$; sleep 2"])
    assert r.status == 128 + number and r.reason == "error"
    assert r.result["signal"] == number and r.result["exit_code"] is None


def test_without_json_the_status_is_the_same(isle):
    assert isle.run("-l", "bash", "-c", "exit 7").status == 7
    assert isle.run("-l", "bash", "-c", "kill -9 $$").status == 137
    assert isle.run("--timeout", "1", "--", "sleep", "30").status == 124
    r = isle.run("--memory", "64", "--", "python3", "-c", "b = bytearray(300 << 20)")
    assert r.status == 137
    r = isle.run("--cpu-seconds", "1", "-l", "bash", "-c", "while :; do :; done")
    assert r.status == 124


def test_snippet_that_exits_0_without_a_result_is_an_error(isle):
    r = isle.python("import os; os._exit(0)")
    assert r.status == 1 and r.reason == "error" and r.result["exit_code"] == 0
    r = isle.js("process.reallyExit(0)")
    assert r.status == 1 and r.reason == "error" and r.result["exit_code"] == 0


def test_command_not_found(isle):
    r = isle.command(["nonesuch", "--x"])
    assert r.status == 127 and r.reason == "error", r.result
    assert "nonesuch" in (r.result["error"] or "") + r.stderr
    r = isle.sh("nonesuch --x")
    assert r.status == 127 and "nonesuch" in r.stderr


def test_command_not_executable(isle, tmp_path):
    text = tmp_path / "plain.txt"
    text.write_text("no program\n")
    r = isle.command(["./plain.txt"], "--file", str(text))
    assert r.status == 126 and r.reason == "error", r.result


@pytest.mark.parametrize("how", ["SIGINT", "SIGTERM"])
def test_cancelled(isle, how):
    p = isle.start("run", "--json", "-l", "bash", "-c", "echo begun; sleep 30")
    assert harness.until(lambda: host.runs_below(p.pid, "sleep"), 20)
    p.send_signal(getattr(signal, how))
    out, err = p.communicate(timeout=20 * SLOW)
    assert p.returncode == 130, (p.returncode, out, err)
    r = results.strict_json(out)
    results.check_result(r)
    assert r["reason"] == "cancelled" and r["stdout"] == "begun\n"


def test_cancelled_job_ignores_term(isle):
    p = isle.start("run", "--json", "-l", "bash", "-c", "trap '' TERM; sleep 30")
    assert harness.until(lambda: host.runs_below(p.pid, "sleep"), 20)
    begin = time.monotonic()
    p.send_signal(signal.SIGINT)
    out, _ = p.communicate(timeout=20 * SLOW)
    assert p.returncode == 130 and results.strict_json(out)["signal"] == 9
    assert time.monotonic() - begin >= 0.5, "it has that long to end by itself"


def test_cancelled_at_once(isle):
    """Ctrl-C during the start: nothing is left, whatever stage it met."""
    for delay in (0, 0.002, 0.005, 0.01, 0.02):
        p = isle.start("run", "--json", "-l", "bash", "-c", "sleep 20")
        time.sleep(delay)
        p.send_signal(signal.SIGINT)
        p.communicate(timeout=20 * SLOW)
        assert p.returncode in (130, -2), p.returncode


def test_stdout_may_end_before_the_job(isle):
    r = isle.sh("exec >&- 2>&-; sleep 1; exit 3")
    assert r.status == 3 and r.result["usage"]["wall_ms"] >= 1000


def test_reader_goes_away(isle):
    """`isle run ... | head -c 1` ends and leaves nothing."""
    p = isle.start("run", "--timeout", "5", "-l", "bash", "-c", "yes")
    p.stdout.read(10)
    p.stdout.close()
    p.stderr.read()
    p.wait(timeout=20 * SLOW)
    assert p.returncode != 0


def test_usage_figures(isle):
    code = """
import os, time
b = bytearray(60 << 20)
for i in range(0, len(b), 4096): b[i] = 1
all_there, told = os.pipe()
for _ in range(5):
    if os.fork() == 0:
        os.close(told); os.read(all_there, 1); time.sleep(0.5); os._exit(0)
os.close(told)
begin = time.process_time()
while time.process_time() - begin < 0.3: pass
open("f", "wb").write(b"x" * (3 << 20))
for _ in range(5): os.wait()
"""
    u = isle.python(code).result["usage"]
    assert 500 <= u["wall_ms"] < 20000 * SLOW
    assert 300 <= u["cpu_ms"] < 1500 * SLOW
    assert 60 << 20 <= u["memory_peak_bytes"] < 160 << 20
    assert 6 <= u["pids_peak"] <= 8
    # a file system that is just writing it back may count some blocks neither as reserved nor as taken
    assert u["disk_bytes"] is None or 2.9 * (1 << 20) <= u["disk_bytes"] < 5 << 20


def test_killed_front_leaves_nothing(isle):
    """kill -9 of `isle run` at several moments; the fixture looks at the host afterwards."""
    for delay in (0.01, 0.03, 0.06, 0.3, 1.0):
        p = isle.start("run", "-l", "bash", "-c", "sleep 20 & sleep 20", stdout=subprocess.DEVNULL)
        time.sleep(delay)
        p.kill()
        p.communicate()
        assert leftovers.nothing_runs(5), delay
    # the next start cleans what a killed front could not
    assert isle.sh("echo next").lines == ["next"]
