"""Cases LIM: what a limit does when a job meets it."""

from __future__ import annotations

import concurrent.futures
import os

import harness
import pytest

SLOW = harness.SLOW
pytestmark = pytest.mark.usefixtures("host")

LOOP = "while True: pass"
BUSY = """
import time
begin = time.process_time()
while time.process_time() - begin < 1: pass
"""


def test_LIM_01_node_under_a_small_memory_limit(isle):
    # port 9 itself is among those that fetch() refuses by name, before any connection
    code = """
await fetch("http://127.0.0.1:45999/").catch(e => console.log(e.cause?.code));
const m = new WebAssembly.Memory({initial: 1});
console.log(m.buffer.byteLength);
"""
    r = isle.js(code, "--memory", "256")
    assert r.reason == "ok", r.result
    assert r.lines == ["ECONNREFUSED", "65536"]


def test_LIM_04_memory_is_the_jobs(isle):
    code = """
import multiprocessing, time
def hold():
    b = bytearray(150 << 20)
    for i in range(0, len(b), 4096): b[i] = 1
    time.sleep(100)
if __name__ == "__main__":
    ps = [multiprocessing.get_context("fork").Process(target=hold) for _ in range(4)]
    for p in ps: p.start()
    for p in ps: p.join()
"""
    r = isle.python(code, "--memory", "256", "--timeout", "90", within=100)
    assert r.reason == "memory_limit" and r.status == 137, r.result
    assert r.result["usage"]["memory_peak_bytes"] >= 200 << 20
    assert r.result["usage"]["wall_ms"] < 80000


@pytest.mark.parametrize("folder", ["/tmp", "/dev/shm"])
def test_LIM_04_memory_files_count(isle, folder):
    code = f"""
import time
b = bytearray(40 << 20)
for i in range(0, len(b), 4096): b[i] = 1
with open("{folder}/x", "wb") as f:
    for _ in range(60): f.write(b"x" * (1 << 20)); f.flush()
print("all written")
"""
    r = isle.python(code, "--memory", "64", "--disk", "200")
    # a size limit of the file system may come first; what may not happen is that all of it fits
    assert "all written" not in r.stdout
    assert r.reason == "memory_limit" or "No space left" in r.stderr, r.result


def test_LIM_05_too_little_memory_is_refused(isle):
    r = isle.run("--memory", "1", "-c", "1", "-l", "python")
    assert r.status == 125 and r.out == b""
    assert b"memory" in r.err and b"32" in r.err, r.err


def test_LIM_05_the_least_memory_starts(isle):
    r = isle.command(["/bin/true"], "--memory", "32")
    assert r.reason in ("ok", "memory_limit"), r.result
    r = isle.js("return 1", "--memory", "32")
    assert r.reason in ("ok", "memory_limit"), r.result


def test_LIM_06_cpu_time_starts_at_zero(isle):
    for _ in range(3):  # more than the limit only together
        r = isle.python(BUSY, "--cpu-seconds", "2")
        assert r.reason == "ok", r.result
        assert 900 <= r.result["usage"]["cpu_ms"] <= 2000


def test_LIM_07_sleeping_past_the_cpu_limit(isle):
    r = isle.python("import time; time.sleep(60)", "--cpu-seconds", "1", "--timeout", "3")
    assert r.reason == "timeout" and r.status == 124, r.result
    assert 3000 <= r.result["usage"]["wall_ms"] <= 30000
    assert r.result["usage"]["cpu_ms"] < 500 * SLOW


@pytest.mark.parametrize("before", ["", "import signal; signal.signal(signal.SIGXCPU, signal.SIG_IGN)\n"])
def test_LIM_08_cpu_limit(isle, before):
    r = isle.python(before + LOOP, "--cpu-seconds", "1", "--timeout", "60", within=80)
    assert r.reason == "cpu_limit" and r.status == 124, r.result
    assert 1000 <= r.result["usage"]["cpu_ms"] <= 5000 * SLOW


def test_LIM_08_cpu_limit_of_node(isle):
    r = isle.js("for (;;);", "--cpu-seconds", "1", "--timeout", "60", within=80)
    assert r.reason == "cpu_limit" and r.status == 124, r.result


def test_LIM_08_cpu_of_all_processes(isle):
    """Four processes that each stay below the limit use it up together."""
    code = "import os\nfor _ in range(3):\n    if os.fork() == 0: break\n" + LOOP
    r = isle.python(code, "--cpu-seconds", "1", "--cpus", "2", "--timeout", "60", within=80)
    assert r.reason == "cpu_limit", r.result
    assert r.result["usage"]["cpu_ms"] <= 5000 * SLOW


def test_LIM_08_cpu_of_children_that_ended(isle):
    code = "while :; do head -c 20000000 /dev/zero | sha256sum > /dev/null; done"
    r = isle.sh(code, "--cpu-seconds", "1", "--timeout", "60", within=80)
    assert r.reason == "cpu_limit", r.result


def test_LIM_10_pids_are_counted_per_job(isle):
    code = "for i in $(seq 20); do sleep 2 & done; sleep 1; echo fine"
    with concurrent.futures.ThreadPoolExecutor(5) as pool:
        runs = list(pool.map(lambda _: isle.sh(code, "--pids", "32"), range(5)))
    for r in runs:
        assert r.reason == "ok" and r.lines == ["fine"] and r.stderr == "", r.result


def test_LIM_11_numpy_under_a_pid_limit(isle):
    code = """
import os
import numpy
print((numpy.eye(2) @ numpy.eye(2)).tolist())
print(*sorted({os.environ[n] for n in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS",
                                        "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")}))
"""
    r = isle.python(code, "--pids", "32", "--cpus", "1")
    assert r.reason == "ok" and r.stderr == "", r.result
    assert r.lines == ["[[1.0, 0.0], [0.0, 1.0]]", "1"]
    r = isle.python(code, "--env", "OPENBLAS_NUM_THREADS=2", "--cpus", "1")
    assert r.lines[1] == "1 2", "the user's own value stays"


def test_LIM_12_cpu_count(isle):
    assert isle.python("import os; print(os.process_cpu_count())", "--cpus", "1").lines == ["1"]
    assert isle.python("import os; print(os.process_cpu_count())", "--cpus", "0.5").lines == ["1"]
    r = isle.js('console.log(require("os").availableParallelism())', "--cpus", "1")
    # Node.js counts the processors that it may run on, of which a share of time takes none away (docs/jobs.md)
    assert r.reason == "ok" and int(r.lines[0]) == len(os.sched_getaffinity(0))


@pytest.mark.parametrize("disk", ["48", "96"])  # a memory file system; a folder that is watched
@pytest.mark.parametrize(
    "code",
    [
        "head -c 2G /dev/zero > big || echo full",
        "fallocate -l 50G f || echo full",
        "head -c 2G /dev/zero > /tmp/big || echo full",
        "head -c 2G /dev/zero > /dev/shm/big || echo full",
        'for i in 1 2 3 4; do head -c 200M /dev/zero > "$HOME/b$i" || echo full; done',
    ],
)
def test_LIM_13_disk(isle, disk, code):
    r = isle.sh(code, "--disk", disk, "--memory", "512", within=30)
    if r.reason == "ok":
        assert "full" in r.stdout, r.result
    else:
        assert r.reason in ("disk_limit", "error"), r.result


@pytest.mark.parametrize("disk", ["48", "96"])
def test_LIM_13_sparse_file(isle, disk, tmp_path):
    code = "truncate -s 1T sparse 2>/dev/null; truncate -s 20M small; stat -c '%n %s' small"
    r = isle.sh(code, "--disk", disk, "--artifact", "sparse?", "--output-dir", str(tmp_path))
    assert r.lines == ["small 20971520"], r.result
    assert r.reason in ("ok", "artifact"), r.result
    assert [p.stat().st_size for p in tmp_path.iterdir()] in ([], [0])


def test_LIM_13_disk_zero(isle, tmp_path):
    staged = tmp_path / "in.txt"
    staged.write_text("given\n")
    code = "cat in.txt; (echo x > more) 2>/dev/null && head -c 5M /dev/zero > more || echo full"
    r = isle.sh(code, "--disk", "0", "--file", str(staged))
    assert r.lines == ["given", "full"] or r.reason == "disk_limit", r.result


def test_LIM_14_disk_is_not_a_counter(isle):
    code = """
import os
for _ in range(50):
    with open("f", "wb") as f: f.write(b"x" * (10 << 20))
os.unlink("f")
with open("g", "wb") as f: f.write(b"x" * (40 << 20))
print("fine")
"""
    r = isle.python(code, "--disk", "64")
    assert r.reason == "ok" and r.lines == ["fine"], r.result


def test_LIM_16_file_descriptors(isle):
    code = """
import errno
held = []
try:
    while True: held.append(open("/dev/null"))
except OSError as e: number, count = e.errno, len(held) + 4
held.clear()
print(number == errno.EMFILE, count)  # with the three streams and what the result goes through
"""
    for _ in range(3):
        r = isle.python(code)
        assert r.reason == "ok" and r.lines == ["True 1024"], r.result
    code = """
const fs = require("fs"); let n = 0;
try { for (;;) { fs.openSync("/dev/null"); n++ } } catch (e) { console.log(e.code, n > 900 && n < 1024) }
return n
"""
    r = isle.js(code)
    assert r.reason == "ok" and r.lines == ["EMFILE true"], r.result


def test_LIM_17_v8_heap(isle):
    r = isle.js("const a = []; for (;;) a.push(new Array(1000).fill([1]));", "--memory", "256")
    assert r.reason == "memory_limit" and r.status == 137, r.result
    # V8 gives up by itself, below the limit of the job, and says so.
    assert "JavaScript heap" in r.result["error"] and "heap" in r.stderr, r.result


def test_LIM_18_limits_bite_alone(isle):
    for code, size in (
        ('return "x" * 31', 31),
        ("return list(range(31))", 31),
        ('return "y" * 81000', 81000),
    ):
        r = isle.python(code)
        assert r.reason == "ok" and len(r.result["result"]) == size, r.reason
    for code, size in (('return "x".repeat(81000)', 81000), ("return Array(31).fill(1)", 31)):
        assert len(isle.js(code).result["result"]) == size
    r = isle.sh("head -c 300000 /dev/zero | tr '\\0' a; head -c 10 /dev/zero | tr '\\0' b >&2")
    assert r.reason == "ok"
    assert r.result["truncated"] == {"stdout": True, "stderr": False, "artifacts": False}
    assert len(r.stdout) == 256 << 10 and r.stderr == "b" * 10


def test_MemoryError_and_137_are_the_programs_own(isle):
    r = isle.sh("echo MemoryError >&2; exit 137")
    assert r.reason == "error" and r.status == 137 and r.result["exit_code"] == 137
    r = isle.python("raise MemoryError")
    assert r.reason == "error" and r.status == 1


def test_one_oom_kill_ends_the_job(isle):
    """The kernel kills a child; the parent, which would sleep on, goes with it."""
    code = "python3 -c 'b = bytearray(300 << 20)'; echo survived; sleep 100"
    r = isle.sh(code, "--memory", "64", "--timeout", "90", within=100)
    assert r.reason == "memory_limit" and r.status == 137, r.result
    assert r.result["usage"]["wall_ms"] < 80000


def test_share_of_the_processors(isle):
    r = isle.sh("while :; do :; done", "--cpus", "0.2", "--timeout", "3")
    assert r.reason == "timeout"
    assert r.result["usage"]["cpu_ms"] <= 0.2 * r.result["usage"]["wall_ms"] * 1.3 + 100, r.result["usage"]


@pytest.mark.parametrize("pids", [8, 16, 100])
def test_pids_are_exact(isle, pids):
    code = """
import os, time
n = 1
try:
    while n < 1000:
        if os.fork() == 0: time.sleep(5); os._exit(0)
        n += 1
except BlockingIOError: pass
print(n)
"""
    r = isle.command(["python3", "-c", code], "--pids", str(pids))
    assert r.lines == [str(pids)], r.result
    assert r.result["usage"]["pids_peak"] == pids


def test_nofile_is_exact(isle):
    assert isle.sh("ulimit -n; ulimit -Hn", "--nofile", "100").lines == ["100", "100"]


@pytest.mark.parametrize("kb", [16, 2048])
def test_output_limit_is_exact(isle, kb):
    r = isle.sh(f"head -c {kb * 1024 + 1} /dev/zero | tr '\\0' a", "--max-stdout-kb", str(kb))
    assert r.stdout == "a" * (kb * 1024) and r.result["truncated"]["stdout"] is True


def test_tmp_has_a_size(isle):
    for options, megabytes in ((("--disk", "20", "--memory", "512"), 20), (("--disk", "1024", "--memory", "64"), 32)):
        r = isle.sh("df -k --output=size /tmp | tail -1; head -c 100M /dev/zero > /tmp/x", *options)
        assert r.lines[0].strip() == str(megabytes * 1024), r.result
        assert "No space left" in r.stderr
