"""What people get wrong with `isle run`, and what they are told: what it is, and what to do next."""

from __future__ import annotations

import os
import subprocess

import harness
import pytest

pytestmark = pytest.mark.usefixtures("host")


@pytest.mark.parametrize(
    "options, said",
    [
        (
            ["--time", "3", "-l", "bash", "-c", ":"],
            "--time: unknown option; did you mean --timeout? See isle run --help",
        ),
        (["--artefact=x", "-l", "bash", "-c", ":"], "--artefact=x: unknown option; did you mean --artifact? See"),
        (["--xyz", "-l", "bash", "-c", ":"], "--xyz: unknown option; see isle run --help"),
        (["-l", "node", "-c", "1"], "-l: unknown language node; it is called javascript here"),
        (["-l", "Python", "-c", "1"], "-l: unknown language Python; it is called python here"),
        (["-l", "ruby", "-c", "1"], "-l: unknown language ruby; python, javascript or bash"),
        (["-l", "python", "-c", "1", "--params", "{a:1}"], "did the shell take the quotes?"),
        (["-l", "python", "-c", "1", "--params", "p.json"], "a file is @FILE"),
        (
            ["-l", "bash", "-c", ":", "--timeout", "5s"],
            "--timeout: 5s is not a number: digits, at most one point (unit: s)",
        ),
        (
            ["-l", "bash", "-c", ":", "--output-dir", "/nonex/x"],
            "No such file or directory; only its last part is made",
        ),
        (["python3", "job.py"], "words of a command go behind --"),
    ],
)
def test_advice(isle, options, said):
    r = isle.run(*options)
    assert r.status == 125 and r.out == b"" and r.err.startswith(b"isle run: "), r
    assert said in r.err.decode() and r.err.count(b"\n") == 1, r.err


def test_option_without_a_verb(isle):
    r = subprocess.run([harness.ISLE, "-l"], env=isle.environ(), capture_output=True, check=False)
    assert r.returncode == 125 and b"isle run -l ..." in r.stderr, r


def test_file_that_is_not_utf8(isle, tmp_path):
    (tmp_path / "a.py").write_bytes(b"print('\xe9')\n")
    r = isle.run(tmp_path / "a.py")
    assert r.status == 125 and b"not valid UTF-8 at byte 7; save it as UTF-8" in r.err, r.err


@pytest.mark.parametrize(
    "name, text", [("a.py", "print(7)"), ("a.js", "console.log(7)"), ("a.sh", "echo 7"), ("a", "#!/bin/sh\necho 7")]
)
def test_byte_order_mark_of_code_is_no_code(isle, tmp_path, name, text):
    (tmp_path / name).write_text("\ufeff" + text)
    assert isle.job(tmp_path / name).stdout == "7\n"
    r = isle.run("-l", "bash", "-", input=b"\xef\xbb\xbfecho 7")
    assert r.out == b"7\n", r


def test_byte_order_mark_of_params(isle, tmp_path):
    (tmp_path / "p.json").write_text('\ufeff{"a": 1.50}')
    r = isle.run("-l", "python", "-c", "return params['a']", "--params", f"@{tmp_path}/p.json")
    assert r.status == 0 and r.out == b"1.5\n", r
    (tmp_path / "p.json").write_text('\ufeff\ufeff{"a": 1}')
    r = isle.run("-l", "python", "-c", "return 1", "--params", f"@{tmp_path}/p.json")
    assert r.status == 125 and b"not valid JSON" in r.err, r


def test_disk_of_the_workspaces_is_full(isle, tmp_path):
    """--disk alone would not help."""
    (tmp_path / "a.bin").write_bytes(bytes(200_000))
    mount = ["unshare", "-m", "sh", "-c", f'mount -t tmpfs -o size=128k t {isle.data}; exec "$@"', "sh"]
    r = isle.run("--file", tmp_path / "a.bin", "--", "true", prefix=mount)
    assert r.status == 125 and b"on the disk of the workspaces" in r.err, r.err


def test_import_with_return_shows_the_place(isle):
    r = isle.js('import fs from "node:fs"\nreturn 1')
    assert r.reason == "error" and r.result["error"].startswith("SyntaxError: a top-level return cannot be"), r.result
    assert "export default" in r.result["error"]
    assert "snippet.mjs:2\nreturn 1\n^^^^^^\n" in r.stderr and "triggerUncaught" not in r.stderr, r.stderr


def test_small_stack(isle):
    def shell(limit: str) -> subprocess.CompletedProcess:
        command = f'ulimit {limit} && exec "$0" run -l python -c "return 7"'
        return subprocess.run(
            ["bash", "-c", command, harness.ISLE], env=isle.environ(), capture_output=True, text=True, check=False
        )

    r = shell("-Ss 256")
    assert r.returncode == 0 and r.stdout == "7\n", r
    r = shell("-s 256")  # for good, but for a root that may raise it
    assert (r.returncode == 0 and r.stdout == "7\n") or (r.returncode == 125 and "ulimit -Hs" in r.stderr), r


def test_without_proc(isle):
    command = 'umount -l /proc && exec "$0" run -l bash -c "echo ran"'
    r = subprocess.run(
        ["unshare", "-m", "sh", "-c", command, harness.ISLE],
        env=isle.environ() | {"ISLE_LIBEXEC": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert r.returncode == 125 and r.stdout == "" and "mount -t proc proc /proc" in r.stderr, r
    assert os.path.exists("/proc/self")
