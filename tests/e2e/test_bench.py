"""`isle bench`: what it prints, whom it waits for, what it leaves. Whether isle is fast is tests/bench's."""

from __future__ import annotations

import os
import pty
import signal
import subprocess

import harness
import pytest
import results

SLOW = harness.SLOW
pytestmark = pytest.mark.usefixtures("host")

SMALL = ("--rounds", "3", "--jobs", "4", "--in-flight", "2")


def bench(isle: harness.Isle, *args: str, **env: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [str(harness.ISLE), "bench", *args],
        env=isle.environ() | env,
        capture_output=True,
        timeout=120 * SLOW,
        check=False,
    )


def test_every_row_as_json(isle):
    r = bench(isle, *SMALL, "--detail", "--json")
    assert r.returncode == 0 and r.stderr == b"", r
    report = results.strict_json(r.stdout)
    assert (report["rounds"], report["jobs"], report["in_flight"]) == (3, 4, 2)
    rows = {(row["kind"], row["program"]): row for row in report["rows"]}
    kinds = {"bare", "isle", "run"} | ({"bwrap"} if report["bwrap"] else set())
    assert (report["bwrap"] is None) != (report["bwrap_missing"] is None)
    programs = ("true", "python", "node")
    assert set(rows) == {(k, p) for k in kinds for p in programs} | {("launcher", "true"), ("parked", "true")}
    for (kind, _), row in rows.items():
        assert 0 < row["p10_ms"] <= row["p50_ms"] <= row["p90_ms"] <= row["p99_ms"], row
        assert row["rounds"] == 3 and row["to_bare"] > 0
        assert (row["jobs_per_second"] is None) == (kind in ("launcher", "parked")), row
    assert rows["bare", "python"]["to_bare"] == 1
    marks = report["marks_us"]["launcher"]
    assert 0 < marks["cloned"] < marks["exec"] < marks["reaped"]
    assert 50 < report["launcher_pss_kb"] < 4096


def test_table_of_what_was_asked_for(isle):
    r = bench(isle, "--rounds", "3", "--jobs", "0", "--only", "isle", "--only", "bare", "--only", "true")
    assert r.returncode == 0 and r.stderr == b"", r
    text = r.stdout.decode()
    assert "/bin/true" in text and "Python" not in text and "\033" not in text
    for word in ("isle, resident service", "bare: fork", "p10", "p99", "3 rounds"):
        assert word in text, text
    assert "isle run, whole" not in text


def test_without_bwrap_it_says_so(isle, tmp_path):
    r = bench(isle, "--rounds", "3", "--jobs", "0", "--only", "true", PATH=str(tmp_path))
    assert r.returncode == 0 and b"Without bwrap: it is not in PATH" in r.stdout, r
    (tmp_path / "bwrap").write_text("#!/bin/sh\nexit 3\n")
    (tmp_path / "bwrap").chmod(0o755)
    tmp_path.chmod(0o755)
    r = bench(isle, "--rounds", "3", "--jobs", "0", "--only", "true", "--json", PATH=str(tmp_path))
    report = results.strict_json(r.stdout)
    assert "does not run" in report["bwrap_missing"] and report["bwrap"] is None


def test_with_bubblewrap_as_the_launcher(isle):
    words = ("--rounds", "3", "--jobs", "4", "--only", "true", "--only", "isle", "--only", "run", "--json")
    r = bench(isle, *words, SANDBOX_FILESYSTEM_ISOLATION_BINARY="/usr/bin/bwrap")
    assert r.returncode == 0, r
    assert results.strict_json(r.stdout)["launcher"] == "bwrap"
    r = bench(isle, *words, "--launcher", "native", SANDBOX_FILESYSTEM_ISOLATION_BINARY="/usr/bin/bwrap")
    assert results.strict_json(r.stdout)["launcher"] == "native"


@pytest.mark.parametrize(
    "options, words",
    [
        (["--rounds", "2"], ["--rounds", "2", "3", "10000"]),
        (["--rounds", "ten"], ["--rounds", "ten"]),
        (["--in-flight", "65"], ["--in-flight", "65", "64"]),
        (["--jobs", "-1"], ["--jobs", "-1"]),
        (["--only", "ruby"], ["--only", "ruby", "python"]),
        (["--launcher", "docker"], ["--launcher", "docker", "native"]),
        (["--fast"], ["--fast", "--help"]),
        (["python"], ["python", "--help"]),
    ],
)
def test_refusals(isle, options, words):
    r = bench(isle, *options)
    assert r.returncode == 125 and r.stdout == b"" and r.stderr.startswith(b"isle bench: "), r
    for word in words:
        assert word in r.stderr.decode()


def test_cancelled_at_a_terminal(isle):
    fd, other = pty.openpty()
    p = subprocess.Popen(
        [str(harness.ISLE), "bench", "--rounds", "5000"],
        stdin=other,
        stdout=other,
        stderr=other,
        env=isle.environ(),
        start_new_session=True,
    )
    os.close(other)
    text = b""
    while b"round 1 of 5000" not in text:
        text += os.read(fd, 4096)
    os.killpg(p.pid, signal.SIGINT)
    assert p.wait(timeout=20 * SLOW) == 130
    os.close(fd)
