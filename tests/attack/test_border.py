"""Group L: the launcher border. A service that is taken over can start jobs, and nothing else.

The program border (border/*.c) starts exactly as `isle` does and attacks where the service would begin its work. Each
of its checks is a test here; border/names.txt lists them, so that one that is not reached is a failure.
"""

from __future__ import annotations

import os
import pathlib
import subprocess

import harness
import pytest

HERE = pathlib.Path(__file__).parent
NAMES = (HERE / "border/names.txt").read_text().split()
BUILD = pathlib.Path(os.environ.get("ISLE_BUILD", harness.ISLE.parents[2]))


@pytest.fixture(scope="module")
def answers(isle, canary, noisy) -> dict[str, tuple[bool, str]]:
    """All checks, from one run; afterwards the host is as it was."""
    program = BUILD / "tests/attack/border"
    if not program.is_file():
        pytest.fail(f"{program} is not built (set ISLE_BUILD)")
    host = harness.Host(isle, canary, noisy)
    with harness.data_folder() as data:
        libexec = data / "libexec"
        libexec.mkdir()
        for name in ("isle-launcher", "isle-shim"):
            (libexec / name).symlink_to(next(BUILD.glob(f"src/*/{name}")))
        (data / "data").mkdir()
        p = subprocess.run(
            [str(program)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120 * harness.SLOW,
            check=False,
            env=isle.environ()
            | {
                "BORDER_DATA": str(data / "data"),
                "BORDER_GUEST": str(harness.ROOT / "src/guest"),
                "BORDER_LIBEXEC": str(libexec),
            },
        )
        assert harness.until(lambda: not harness.left_folders(data / "data"), 5)
    assert p.returncode == 0, (p.stdout[-500:], p.stderr[-2000:])
    host.check()
    found = {}
    for line in p.stdout.splitlines():
        verdict, _, rest = line.partition(" ")
        name, _, detail = rest.partition(": ")
        assert verdict in ("PASS", "FAIL"), line
        found[name] = (verdict == "PASS" and found.get(name, (True, ""))[0], detail)
    return found


@pytest.mark.parametrize("name", NAMES)
def test_L(answers, name):
    assert name in answers, "this check was not reached"
    assert answers[name][0], answers[name][1]


def test_L_every_check_is_listed(answers):
    assert sorted(answers) == sorted(NAMES)
