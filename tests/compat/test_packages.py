"""Popular packages as jobs with a package set: `packages/` has the locks and one use of each.

In CI a few that are small; with ISLE_LONG all of them. They come through pip and npm, checked by hash.
"""

from __future__ import annotations

import hashlib
import json
import pathlib
import re
import shutil
import sys

import compat
import harness
import pytest

FOLDER = compat.HERE / "packages"
EXPECTED = compat.Expected(compat.HERE / "packages_expected.txt")
LOCK = FOLDER / ("python.txt" if harness.LONG else "python-ci.txt")
SMOKE = FOLDER / "smoke_python.py"
SMOKE_NODE = FOLDER / "smoke_node.cjs"
PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64", "linux_x86_64")
# What the runtime root has needs no set; a second look at a package has its name in front.
OF_THE_ROOT = ("numpy", "scipy", "pandas", "matplotlib", "seaborn", "pillow")
NODE_LOCK = FOLDER / ("node" if harness.LONG else "node-ci")


def locked() -> set[str]:
    return {re.split("==", row)[0].lower().replace("_", "-") for row in LOCK.read_text().splitlines()}


def uses(source: pathlib.Path, pattern: str) -> list[str]:
    return re.findall(pattern, source.read_text(), re.M)


HELPERS = {"server", "watch", "main"}
PYTHON = [
    name
    for name in uses(SMOKE, r"^def (\w+)\(")
    if name not in HELPERS
    and (name in OF_THE_ROOT or any(p in locked() for p in (name.lower().replace("_", "-"), name.split("_")[0])))
]
NODE_WANTED = json.loads((NODE_LOCK / "package.json").read_text())["dependencies"]
NODE = [name for name in uses(SMOKE_NODE, r"^  '?([\w-]+)'?: (?:async )?\(") if name in NODE_WANTED]


def digest(*files: pathlib.Path) -> str:
    return hashlib.sha256(b"".join(f.read_bytes() for f in files)).hexdigest()[:12]


def fill_python(target: pathlib.Path) -> None:
    """As docs/jobs.md tells it: another Python's pip, and its scripts moved to bin."""
    site = target / "lib/python3.13/site-packages"
    platforms = [word for p in PLATFORMS for word in ("--platform", p)]
    abis = [word for a in ("cp313", "abi3", "none") for word in ("--abi", a)]
    compat.fetch(
        *(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-compile", "--ignore-requires-python"),
        *("--only-binary", ":all:", "--require-hashes", "--python-version", "3.13", "--implementation", "cp"),
        *(*abis, *platforms, "--target", site, "-r", LOCK),
        cwd=compat.HERE,
    )
    shutil.move(site / "bin", target / "bin")
    for script in (target / "bin").iterdir():
        text = script.read_bytes()
        script.write_bytes(re.sub(rb"\A#!.*", b"#!/usr/bin/python3", text))


def fill_node(target: pathlib.Path) -> None:
    for name in ("package.json", "package-lock.json"):
        shutil.copy(NODE_LOCK / name, target)
    compat.fetch("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", cwd=target)


@pytest.fixture(scope="session")
def python_set() -> str:
    return compat.make_set(f"python-{digest(LOCK)}", fill_python)


@pytest.fixture(scope="session")
def node_set() -> str:
    return compat.make_set(f"node-{digest(NODE_LOCK / 'package-lock.json')}", fill_node)


def run_all(isle: harness.Isle, sets: list[str], program: pathlib.Path, start: str, names: list[str]) -> dict:
    """Four jobs at a time, each with a few of them: an import costs more than a job."""
    parts = {str(i): names[i :: compat.WORKERS * 2] for i in range(compat.WORKERS * 2)}
    found: compat.Outcomes = {}

    def one(part: str) -> compat.Verdict:
        argv = [start, program.name, "OUT", *parts[part]]
        found.update(compat.as_job(isle, sets, [program], argv) if parts[part] else {})
        return compat.Verdict()

    compat.side_by_side(parts, one)
    return found


def check(found: compat.Outcomes, name: str, prefix: str) -> None:
    outcome = found.get(name, compat.ABSENT)
    if f"{prefix} {name}" in EXPECTED.must:
        assert outcome.kind == "fail", f"on the list of failures, and {outcome.kind}"
    else:
        assert outcome.kind == "pass", f"{outcome.kind}: {outcome.text}; {found.get('the whole', '')}"


@pytest.fixture(scope="session")
def python_found(packaged: harness.Isle, python_set: str) -> compat.Outcomes:
    return run_all(packaged, [python_set], SMOKE, "python3", PYTHON)


@pytest.fixture(scope="session")
def node_found(packaged: harness.Isle, node_set: str) -> compat.Outcomes:
    return run_all(packaged, [node_set], SMOKE_NODE, "node", NODE)


@pytest.mark.parametrize("name", PYTHON)
def test_python(python_found: compat.Outcomes, name: str) -> None:
    check(python_found, name, "python")


@pytest.mark.parametrize("name", NODE)
def test_node(node_found: compat.Outcomes, name: str) -> None:
    check(node_found, name, "node")


def test_a_snippet_with_both_sets(packaged: harness.Isle, python_set: str, node_set: str) -> None:
    sets = ("--package-set", python_set, "--package-set", node_set)
    code = "import pydantic, numpy\nclass M(pydantic.BaseModel):\n    a: int\nreturn [M(a='1').a, numpy.arange(3)]"
    assert packaged.python(code, *sets).result["result"] == [1, [0, 1, 2]]
    code = "import _ from 'lodash';\nimport { z } from 'zod';\nexport default _.chunk(z.any().parse([1, 2, 3]), 2);"
    assert packaged.js(code, *sets).result["result"] == [[1, 2], [3]]


def test_console_scripts_are_on_the_path(packaged: harness.Isle, python_set: str) -> None:
    r = packaged.command(["sh", "-c", "tqdm --version && httpx --help | head -n 1"], "--package-set", python_set)
    assert r.status == 0, r.stderr
    assert re.match(r"\d+\.", r.lines[0])


def test_every_package_of_the_lock_has_its_hash() -> None:
    for name in ("python.txt", "python-ci.txt"):
        for row in (FOLDER / name).read_text().splitlines():
            assert re.fullmatch(r"[\w.-]+==[\w.]+ --hash=sha256:[0-9a-f]{64}", row), row
    rows = set((FOLDER / "python.txt").read_text().splitlines())
    assert set((FOLDER / "python-ci.txt").read_text().splitlines()) <= rows
    for name in ("node", "node-ci"):
        packages = json.loads((FOLDER / name / "package-lock.json").read_text())["packages"]
        assert [p for p, package in packages.items() if p and not package.get("integrity")] == []
        assert not [p for p, package in packages.items() if "resolved" in package], "the machine's own registry serves"
