"""What the README shows is what isle prints: its console blocks are run again."""

from __future__ import annotations

import re
import shlex
import subprocess

import harness
import pytest

MARK = "\x1e"


def sessions():
    """Each console block as a list of (command, output)."""
    for name in ("README.md", "README.zh-CN.md"):
        text = (harness.ROOT / name).read_text()
        for number, block in enumerate(re.findall(r"^```console\n(.*?)^```$", text, re.S | re.M), 1):
            steps = re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.M)
            yield pytest.param(steps, id=f"{name}-{number}")


@pytest.mark.parametrize("steps", sessions())
def test_readme(isle: harness.Isle, steps: list[tuple[str, str]]):
    env = isle.environ()
    env["PATH"] = f"{harness.ISLE.parent}:{env['PATH']}"
    # Each command finds the status of the one before it in $?.
    script = "".join(f"printf %s {shlex.quote(MARK)}; (exit $s); {command}\ns=$?\n" for command, _ in steps)
    done = subprocess.run(
        ["bash", "-c", "s=0\n" + script],
        cwd=harness.ROOT,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60 * harness.SLOW,
        check=False,
    )
    shown = done.stdout.split(MARK)[1:]
    assert list(zip([c for c, _ in steps], shown, strict=True)) == steps
