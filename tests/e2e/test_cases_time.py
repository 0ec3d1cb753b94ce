"""Cases TMO and SIG: time limits, what is left behind, signals."""

from __future__ import annotations

import harness
import leftovers
import pytest

SLOW = harness.SLOW
pytestmark = pytest.mark.usefixtures("host")


def test_TMO_01_partial_output_is_kept(isle):
    code = 'print("before"); import time; time.sleep(600)'
    r, limit = harness.in_time(isle.python, code, seconds=3, ready=lambda r: r.stdout)
    assert r.reason == "timeout" and r.status == 124, r.result
    assert r.stdout == "before\n"
    assert r.result["error"] == f"Execution timeout ({limit}.0s)"
    assert limit <= r.result["usage"]["wall_ms"] / 1000 <= limit + 5 * SLOW


def test_TMO_01_node(isle):
    code = 'console.log("before"); setInterval(() => {}, 1000); await new Promise(() => {})'
    r, _ = harness.in_time(isle.js, code, seconds=4, ready=lambda r: r.stdout)
    assert r.reason == "timeout" and r.stdout == "before\n", r.result


IGNORING = """
import os, signal, sys, time
if sys.argv[1] == "both": signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.setsid()
    if os.fork() == 0: time.sleep(600)
    os._exit(0)
os.wait()
print("ready", flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("who", ["both", "grandchild"])
def test_TMO_02_term_ignored(isle, who):
    def had_time(r: harness.Run) -> bool:
        return r.lines == ["ready"] and (who == "both" or r.result["signal"] != 9)

    r, limit = harness.in_time(isle.command, ["python3", "-c", IGNORING, who], seconds=3, ready=had_time)
    assert r.reason == "timeout" and r.status == 124 and r.lines == ["ready"], r.result
    assert r.wall <= limit + 2 + 5 * SLOW
    assert leftovers.nothing_runs()
    assert r.result["signal"] == (9 if who == "both" else 15), r.result


def test_TMO_02_exit_0_after_term_is_a_timeout(isle):
    code = "trap 'echo bye; exit 0' TERM; while :; do sleep 0.05; done"
    r, _ = harness.in_time(isle.sh, code, seconds=2, ready=lambda r: r.lines)
    assert r.reason == "timeout" and r.status == 124, r.result
    assert r.lines == ["bye"] and r.result["exit_code"] == 0


def test_TMO_02_kill_comes_two_seconds_later(isle):
    code = "trap '' TERM; echo ready; while :; do sleep 0.05; done"
    r, limit = harness.in_time(isle.sh, code, seconds=2, ready=lambda r: r.lines)
    assert r.reason == "timeout" and r.result["signal"] == 9, r.result
    assert limit + 1.9 <= r.result["usage"]["wall_ms"] / 1000 <= limit + 2 + 5 * SLOW


def test_TMO_05_late_bytes_are_not_cut(isle):
    flood = "(sleep 300 &) ; head -c 1500000 /dev/zero | tr '\\0' z"
    r = isle.sh(flood, "--max-stdout-kb", "2048")
    assert r.reason == "ok" and r.stdout == "z" * 1500000  # a job that waits for the sleeper meets its limit
    r = isle.sh(flood)
    assert r.reason == "ok", r.result
    assert r.result["usage"]["stdout_bytes"] == 1500000
    assert r.stdout == "z" * (256 << 10) and r.result["truncated"]["stdout"]
    r = isle.sh("(sleep 300 &) ; head -c 200000 /dev/zero | tr '\\0' z")
    assert r.reason == "ok" and r.stdout == "z" * 200000


def test_TMO_06_input_that_never_comes(isle):
    r = isle.sh('read x; echo "[$x]"')
    assert r.lines == ["[]"] and r.reason == "ok"
    r = isle.sh("cat")
    assert r.stdout == "" and r.reason == "ok"
    r = isle.python('input("name? ")')
    assert r.reason == "error" and r.status == 1, r.result
    assert "EOFError" in r.stderr
    code = "process.stdin.on('data', () => console.log('data')).on('end', () => console.log('end'))"
    assert isle.js(code).lines == ["end"]


def test_TMO_10_no_zombies(isle):
    before = leftovers.zombies()
    for _ in range(200 if harness.LONG else 10):
        assert isle.sh("(sleep 0.01 &); true").reason == "ok"
    assert harness.SHARED_HOST or harness.until(lambda: leftovers.zombies() <= before, 10)


def test_TMO_14_trees_that_resist_deletion(isle):
    r = isle.sh("mkdir -p a/b && chmod 000 a; mkdir d && touch d/f && chmod 555 d; echo ok", "--disk", "200")
    assert r.lines == ["ok"]  # the fixture looks that the data folder is empty


@pytest.mark.parametrize("ignored", ["", "PIPE HUP INT TERM CHLD USR1 RTMIN"])
def test_SIG_02_clean_signal_state(isle, ignored):
    """Whatever the caller of isle ignores does not reach the job."""
    shell = f'trap \'\' {ignored}; exec "$0" "$@"' if ignored else 'exec "$0" "$@"'
    r = isle.command(["grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"], prefix=["bash", "-c", shell])
    assert r.lines == ["SigBlk:\t0000000000000000", "SigIgn:\t0000000000000000"], r.lines


@pytest.mark.parametrize(
    "how, code, number",
    [
        ("sh", "kill -SEGV $$", 11),
        ("python", "import ctypes; ctypes.string_at(0)", 11),
        ("js", "process.abort()", 6),
    ],
)
def test_SIG_03_death_by_signal(isle, how, code, number):
    r = getattr(isle, how)(code)
    assert r.reason == "error", r.result
    assert r.result["signal"] == number and r.result["exit_code"] is None
    assert r.status == 128 + number


def test_SIG_04_not_pid_1(isle):
    r = isle.python('import os, signal; os.kill(os.getpid(), signal.SIGTERM); print("alive")')
    assert r.reason == "error" and r.result["signal"] == 15, r.result
    assert r.stdout == "" and r.status == 143
    r = isle.js('process.kill(process.pid, "SIGTERM"); setTimeout(() => console.log("alive"), 500)')
    assert r.reason == "error" and r.result["signal"] == 15 and r.stdout == "", r.result
    assert isle.sh("echo $$").lines == ["2"]


@pytest.mark.parametrize("code", ["kill -9 -1; sleep 5", "kill -TERM 0; sleep 5"])
def test_SIG_05_kill_everything(isle, code):
    r = isle.sh(code, "--timeout", "4")
    assert r.reason in ("error", "timeout", "ok")
    assert r.reason != "internal"
    if "TERM" in code:
        assert r.result["signal"] == 15, r.result
    assert isle.sh("echo next").lines == ["next"]


def test_SIG_05_minus_one_from_a_child(isle):
    r = isle.command(["bash", "-c", "python3 -c 'import os; os.kill(-1, 9)'; echo survived"])
    assert r.reason == "error" and r.result["signal"] == 9, r.result
    assert r.stdout == ""
