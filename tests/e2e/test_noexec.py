"""A data folder that is mounted noexec, as hardened hosts have /var.

Host root's jobs execute there nevertheless: their mounts are isle's own. For an account that attribute is locked by the
kernel: jobs run, cannot execute what they write, and everybody who could wonder is told.
"""

from __future__ import annotations

import os
import pathlib
import subprocess

import harness
import pytest
import results
import variants

SCRIPT = "printf '#!/bin/sh\\necho ran\\n' >run.sh; chmod 755 run.sh; ./run.sh"
USER = 54321  # of no account
MOUNT = 'mount -t tmpfs -o "noexec,mode=711,$0" noexec "$SANDBOX_WORKSPACE_ROOT" && exec "$@"'


def mounted(options: str) -> list[str]:
    return ["unshare", "-m", "sh", "-c", MOUNT, options]


@pytest.fixture(scope="module")
def of_root():
    with variants.folder("isle-noexec-") as folder:
        folder.chmod(0o755)
        yield harness.Isle(folder), mounted("uid=0")


@pytest.fixture(scope="module")
def of_user():
    with variants.folder("isle-noexec-") as folder:
        folder.chmod(0o755)
        for name in ("data", "run"):
            (folder / name).mkdir()
            os.chown(folder / name, USER, USER)
        program = variants.copy_program(harness.ISLE, folder / "app")
        env = {"SANDBOX_RUN_DIR": str(folder / "run"), "ISLE_LIBEXEC": str(program.parent), "HOME": "/nonexistent"}
        drop = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"]
        yield harness.Isle(folder / "data", env, program), [*mounted(f"uid={USER},gid={USER}"), *drop]


def data_row(isle: harness.Isle, prefix: list[str]) -> dict:
    p = isle.start("doctor", "--no-self-test", "--json", prefix=prefix)
    out, err = p.communicate(timeout=60 * harness.SLOW)
    checks = results.strict_json(out)["checks"]
    (row,) = [c for c in checks if c["name"] == "data folder"]
    assert not err and str(isle.data) in row["found"], (row, err)
    return row


def test_root_executes_there(of_root):
    isle, prefix = of_root
    r = isle.run("--disk", "200", "-l", "bash", "-c", SCRIPT, prefix=prefix)
    assert (r.status, r.out, r.err) == (0, b"ran\n", b"")
    assert data_row(isle, prefix)["state"] == "fine"


def test_account_is_told(of_user):
    isle, prefix = of_user
    r = isle.run("--disk", "200", "-l", "bash", "-c", SCRIPT, prefix=prefix)
    assert r.status == 126 and b"Permission denied" in r.err, r
    assert b"mounted noexec" in r.err and b"SANDBOX_WORKSPACE_ROOT" in r.err, r
    # nothing needs to be said where nothing failed, nor where there is no such workspace
    r = isle.run("--disk", "200", "-l", "bash", "-c", "echo fine", prefix=prefix)
    assert (r.status, r.out, r.err) == (0, b"fine\n", b"")
    r = isle.run("--disk", "64", "-l", "bash", "-c", SCRIPT + "; exit 3", prefix=prefix)
    assert (r.status, r.out, r.err) == (3, b"ran\n", b"")
    row = data_row(isle, prefix)
    assert row["state"] == "advice" and "noexec" in row["cost"] and "SANDBOX_WORKSPACE_ROOT" in row["fix"], row


def test_service_of_an_account_warns(of_user):
    isle, prefix = of_user
    words = ("--listen", "127.0.0.1:0", "--log-format", "json")
    with isle.start("serve", *words, prefix=prefix, stderr=subprocess.PIPE) as p:
        try:
            rows = []
            while not rows or rows[-1]["event"] != "serving":
                rows.append(results.strict_json(p.stderr.readline()))
        finally:
            p.terminate()
        assert p.wait(20 * harness.SLOW) == 0
    (row,) = [r for r in rows if r["event"] == "data folder is mounted noexec"]
    assert row["level"] == "warning" and pathlib.Path(row["data"]) == isle.data, row
