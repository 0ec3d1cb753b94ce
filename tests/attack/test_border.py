"""Group L: the launcher border. A service that is taken over can start jobs, and nothing else.

The program border (border/*.c) starts exactly as `isle` does and attacks where the service would begin its work. Each
of its checks is a test here; border/names.txt lists them, so that one that is not reached is a failure.
"""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess

import harness
import leftovers
import pytest

HERE = pathlib.Path(__file__).parent
NAMES = (HERE / "border/names.txt").read_text().split()
BUILD = pathlib.Path(os.environ.get("ISLE_BUILD", harness.ISLE.parents[2]))


# What a taken-over service of an account with one id can do and another cannot (docs/security.md, single_uid): it is
# inner root by uid, though without its capabilities, and every workspace is its own.
SINGLE = {"no-uid-0", "no-gid-0", "uid-other", "name-foreign", "name-services"}


@pytest.fixture(scope="module")
def answers(isle, canary, noisy) -> dict[str, tuple[bool, str]]:
    """All checks, from one run; afterwards the host is as it was."""
    program = BUILD / "tests/attack/border"
    if not program.is_file():
        pytest.fail(f"{program} is not built (set ISLE_BUILD)")
    host = leftovers.Host(isle, canary, noisy)
    account = harness.variants.Session.account
    with harness.data_folder() as folder:
        libexec = harness.variants.copy_program(harness.ISLE, folder / "app").parent
        data = folder / "data"
        data.mkdir()
        harness.variants.give(data)
        p = subprocess.run(
            [*harness.variants.prefix(), shutil.copy(program, folder / "border")],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120 * harness.SLOW,
            check=False,
            env=isle.environ()
            | {
                "BORDER_DATA": str(data),
                "BORDER_RUN": str(harness.LOCK_DIR),
                "BORDER_GUEST": str(libexec / "guest"),
                "BORDER_LIBEXEC": str(libexec),
            },
            **(account.popen() if account else {}),
        )
        assert harness.until(lambda: not leftovers.left_folders(data), 20)
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
    held = name not in SINGLE if harness.variants.NOW.user == "bare" else True
    assert answers[name][0] is held, answers[name][1]


def test_L_every_check_is_listed(answers):
    assert sorted(answers) == sorted(NAMES)
