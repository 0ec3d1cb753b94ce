"""What the README shows is what isle prints: its console blocks are run again."""

from __future__ import annotations

import re
import shlex
import subprocess

import harness
import pytest
import service

MARK = "\x1e"


def sessions(kind: str):
    """Each block of that kind as a list of (command, output)."""
    for name in ("README.md", "README.zh-CN.md"):
        text = (harness.ROOT / name).read_text()
        for number, block in enumerate(re.findall(rf"^```{kind}\n(.*?)^```$", text, re.S | re.M), 1):
            steps = re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.M)
            yield pytest.param(steps, id=f"{name}-{number}")


def follow(steps: list[tuple[str, str]], env: dict[str, str]) -> None:
    env = env | {"PATH": f"{harness.ISLE.parent}:{env['PATH']}"}
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


@pytest.mark.parametrize("steps", sessions("console"))
def test_readme(isle: harness.Isle, steps: list[tuple[str, str]]):
    follow(steps, isle.environ())


@pytest.fixture(scope="module")
def served():
    with service.serving() as s:
        yield s


@pytest.mark.parametrize("steps", sessions("console service"))
def test_readme_with_a_service(isle: harness.Isle, served: service.Service, steps: list[tuple[str, str]]):
    follow(steps, isle.environ() | {"ISLE_URL": f"http://127.0.0.1:{served.port}"})


def test_readme_from_python(served: service.Service):
    for name in ("README.md", "README.zh-CN.md"):
        (text,) = re.findall(r"^```python\n(.*?)^```$", (harness.ROOT / name).read_text(), re.S | re.M)
        said = subprocess.check_output(["python3", "-c", text.replace("127.0.0.1:4753", f"127.0.0.1:{served.port}")])
        assert said.decode() == text.rstrip().rpartition("# ")[2] + "\n"
