"""Attacks by somebody who had not built it: each test is named by what it shows."""

from __future__ import annotations

import pytest
from payload import compiled_program


def test_no_ioctl_allocates_what_fallocate_may_not(isle):
    """A folder workspace is measured by looks: what takes gigabytes between two of them is refused."""
    r = isle.command(["./allocate"], "--file", str(compiled_program("allocate")), "--disk", "200")
    assert r.reason == "ok", r.result
    assert r.lines == ["fallocate 0 MB", "RESVSP 0 MB", "RESVSP64 0 MB", "ZERO_RANGE 0 MB"]


@pytest.mark.parametrize("_", range(5))
def test_output_in_packets_is_read_to_its_end(isle, _):
    r = isle.command(["./packets"], "--file", str(compiled_program("packets")))
    assert r.reason == "ok" and r.stdout == "x\n" * 256, (r.result["usage"], len(r.stdout))
    assert r.result["truncated"]["stdout"] is False


def test_control_characters_do_not_cost_a_command_its_result(isle):
    """Six bytes of JSON each, and a command's output is in its result once more."""
    r = isle.sh("head -c 3145728 /dev/zero | tr '\\0' '\\001'", "--max-stdout-kb", "3072")
    assert r.reason == "ok", (r.reason, r.result["error"])
    assert r.stdout == r.result["result"] == "\x01" * 3145728


def test_moving_files_is_no_use_of_disk(isle):
    """A walk that meets a file in its old and its new place counts it twice; it does not decide alone."""
    code = """
import os, time
os.mkdir("a"); os.mkdir("b")
with open("a/f", "wb") as f:
    f.write(bytes(120 << 20))
end = time.monotonic() + 3
while time.monotonic() < end:
    os.rename("a/f", "b/f")
    time.sleep(0.05)
    os.rename("b/f", "a/f")
    open(f"n{time.monotonic()}", "w").write("x")
"""
    r = isle.command(["python3", "-c", code], "--disk", "200")
    assert r.reason == "ok", r.result
