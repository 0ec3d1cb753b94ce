"""The result of a snippet travels as a frame; printed text and hostile frames decide nothing."""

from __future__ import annotations

import concurrent.futures

import harness
import leftovers
import pytest

pytestmark = pytest.mark.usefixtures("host")

# Writes frames itself: the wrapper keeps the frame socket at some high number.
FORGE = """
import os, stat, struct
def is_socket(fd):
    try: return stat.S_ISSOCK(os.fstat(fd).st_mode)
    except OSError: return False
[CHANNEL] = [fd for fd in range(3, 1024) if is_socket(fd)]
def frame(kind, payload, seq=1, magic=0x4C534931, execution=1, length=None):
    size = len(payload) if length is None else length
    return struct.pack("<IIIII", magic, kind, execution, seq, size) + payload
def send(data):
    while data: data = data[os.write(CHANNEL, data):]
"""


def test_result_null_and_values(isle):
    assert isle.python("pass").result["result"] is None
    assert isle.js("").result["result"] is None
    value = {"s": "€\n\u0000", "l": [True, None, 1.5], "o": {}}
    assert isle.python(f"return {value!r}").result["result"] == value


def test_second_frame(isle):
    code = FORGE + "send(frame(32, b'1'))\nsend(frame(32, b'2', seq=2))\nreturn 3"
    r = isle.python(code)
    assert r.reason == "error" and r.result["result"] is None, r.result
    assert "malformed result" in r.result["error"]


def test_own_frame_and_exit_0(isle):
    """It is its own value to lie about: one well-formed frame is taken."""
    r = isle.python(FORGE + "send(frame(32, b'{\"own\":1}'))\nos._exit(0)")
    assert r.reason == "ok" and r.result["result"] == {"own": 1}, r.result


@pytest.mark.parametrize(
    "what",
    [
        "b'text that is no frame at all'",
        "frame(32, b'1', magic=0)",
        "frame(32, b'1', seq=2)",
        "frame(32, b'1', execution=2)",
        "frame(1, b'1')",
        "frame(64, b'1')",
        "frame(68, b'{}')",
        "frame(97, b'{}')",
        "frame(99999, b'1')",
        "frame(32, b'1', length=100)",
        "frame(32, b'1')[:10]",
        "frame(32, b'')",
        "frame(32, b'{')",
        "frame(32, b'NaN')",
        "frame(32, b'1 2')",
        "frame(32, b'\\xff')",
        "frame(32, b'\"\\\\ud800\"')",
        'frame(32, b\'{"a":1,"a":2}\')',
        "frame(32, b'[' * 200000 + b']' * 200000)",
        "bytes(65536)",
    ],
)
def test_malformed_frame(isle, what):
    r = isle.python(FORGE + f"try: send({what})\nexcept OSError: pass\nos._exit(0)")
    assert r.reason == "error" and r.status == 1, r.result
    assert r.result["success"] is False and r.result["result"] is None
    assert "result" in r.result["error"]


def test_announced_length_is_bounded_before_anything_is_kept(isle):
    r = isle.python(FORGE + "send(frame(32, b'', length=0xfffffff0))\nos._exit(0)")
    assert r.reason == "result_too_large" and r.status == 1, r.result
    assert r.result["result"] is None and "4294967280" in r.result["error"]


def test_exit_status_wins_over_a_frame(isle):
    r = isle.python(FORGE + "send(frame(32, b'1'))\nos._exit(3)")
    assert r.reason == "error" and r.status == 3 and r.result["result"] is None
    r = isle.python(FORGE + "send(frame(32, b'1'))\nos.kill(os.getpid(), 9)")
    assert r.reason == "error" and r.result["signal"] == 9 and r.result["result"] is None


def test_result_too_large(isle):
    r = isle.python("return 'x' * (9 << 20)", within=30)
    assert r.reason == "result_too_large", r.reason
    assert r.result["result"] is None and r.result["success"] is False
    r = isle.python("return 'x' * (7 << 20)", within=30)
    assert r.reason == "ok" and len(r.result["result"]) == 7 << 20


def test_descriptor_3_is_not_inherited(isle):
    code = "import subprocess; print(subprocess.getoutput('ls /proc/self/fd').split())"
    assert isle.python(code).lines == ["['0', '1', '2', '3']"]  # 3: the folder that ls reads
    code = 'console.log(require("child_process").execSync("ls /proc/self/fd").toString().split("\\n").length)'
    assert int(isle.js(code).stdout) <= 5


def test_ten_side_by_side_over_two_data_folders(isle):
    with harness.data_folder() as other_data:
        other = harness.Isle(other_data, isle.env)

        def one(i: int) -> harness.Run:
            where = isle if i % 2 else other
            code = f"echo {i} > mine; sleep 0.5; cat mine; ls | wc -l; exit {i}"
            return where.sh(code, within=40)

        with concurrent.futures.ThreadPoolExecutor(10) as pool:
            runs = list(pool.map(one, range(10)))
        for i, r in enumerate(runs):
            assert r.lines == [str(i), "5"] and r.status == i, r.result
        assert len({r.result["job_id"] for r in runs}) == 10
        assert harness.until(lambda: not leftovers.left_folders(other_data), 10)


def test_orphans_die_with_the_main_process(isle):
    code = """
import os
for i in range(6):
    if os.fork() == 0:
        if i % 2: os.setsid()
        if i % 3 == 0 and os.fork(): os._exit(0)
        os.execvp("nohup", ["nohup", "sleep", "600"])
print("main")
"""
    r = isle.command(["python3", "-c", code])
    assert r.lines == ["main"] and r.reason == "ok", r.result  # who waits for the others meets the time limit
    assert leftovers.nothing_runs()


def test_metadata(isle):
    m = isle.python("return 1").result["metadata"]
    assert m["status"] == "completed" and m["exit_code"] == 0 and m["stage"] is None
    assert isinstance(m["duration_ms"], int)
