"""CPython's own tests as jobs: `cpython_modules.txt` says which, `cpython_expected.txt` what differs and why."""

from __future__ import annotations

import pathlib
import shutil
import subprocess
import tempfile

import compat
import harness
import pytest

PACKAGE = "libpython3.13-testsuite"
RUNNER = compat.HERE / "run_unittest.py"
EXPECTED = compat.Expected(compat.HERE / "cpython_expected.txt")
NONE = compat.Expected(pathlib.Path("/dev/null"))
REPORT = compat.CACHE / f"cpython-{'long' if harness.LONG else 'ci'}.txt"
TOOL = harness.ROOT / "tools/trixie-apt"


def modules() -> dict[str, set[str]]:
    """{module: marks}: `ci`, also without ISLE_LONG; `snippet`, also through the snippets' wrapper."""
    rows = (compat.HERE / "cpython_modules.txt").read_text().splitlines()
    return {words[0]: set(words[1:]) for row in rows if (words := row.split("#")[0].split())}


MODULES = modules()
CHOSEN = [name for name, marks in MODULES.items() if harness.LONG or "ci" in marks]
SNIPPETS = [name for name, marks in MODULES.items() if "snippet" in marks]


def version_of_the_root() -> str:
    """Of the runtime root's Python, as its list of packages has it."""
    for line in (harness.RUNTIME_ROOT / "usr/share/isle/packages").read_text().splitlines():
        words = line.split()
        if words[0] == "libpython3.13-stdlib":
            return words[1]
    raise AssertionError("the runtime root does not say which Python it has")


def fill(target: pathlib.Path) -> None:
    """The package `test`: the root's own part of it, and Debian's package of the rest."""
    arch = subprocess.run(["dpkg", "--print-architecture"], capture_output=True, text=True, check=True).stdout.strip()
    apt = compat.CACHE.parent / f"apt-{arch}"
    with tempfile.TemporaryDirectory(dir=compat.CACHE) as folder:
        compat.fetch(TOOL, apt, arch, "update", cwd=compat.HERE)
        download = ("apt-get", "-c", apt / "apt.conf", "-qq", "download")
        try:
            compat.fetch(*download, f"{PACKAGE}={version_of_the_root()}", cwd=pathlib.Path(folder))
        except AssertionError:  # a mirror may have dropped it: then the newest of this release
            compat.fetch(TOOL, apt, arch, "update", "--force", cwd=compat.HERE)
            compat.fetch(*download, PACKAGE, cwd=pathlib.Path(folder))
        (package,) = pathlib.Path(folder).glob("*.deb")
        compat.fetch("dpkg-deb", "-x", package, folder, cwd=compat.HERE)
        package_of_tests = target / "lib/python3.13/site-packages/test"
        shutil.copytree(harness.RUNTIME_ROOT / "usr/lib/python3.13/test", package_of_tests, symlinks=True)
        tests = pathlib.Path(folder) / "usr/lib/python3.13/test"
        shutil.copytree(tests, package_of_tests, symlinks=True, dirs_exist_ok=True)


@pytest.fixture(scope="session")
def suite() -> str:
    version = "".join(c if c.isalnum() or c in "._-" else "_" for c in version_of_the_root())
    return compat.make_set(f"cpython-{version}", fill)


@pytest.fixture(scope="session")
def verdicts(
    request: pytest.FixtureRequest, packaged: harness.Isle, bare: compat.Bare, suite: str
) -> dict[str, compat.Verdict]:
    """Of the modules that this session has tests of (pytest -k), four side by side."""
    tests = [item for item in request.session.items if getattr(item, "originalname", "") == "test_module"]
    REPORT.write_text("")

    def one(name: str) -> compat.Verdict:
        argv = ["python3", RUNNER.name, "OUT", f"test.{name}"]

        def run(job: bool) -> compat.Outcomes:
            return compat.as_job(packaged, [suite], [RUNNER], argv) if job else bare.run([suite], [RUNNER], argv)

        def mine(test: str) -> bool:
            # "test.test_os.X.y", and "setUpClass (test.test_os.X)"
            return f"test.{name}." in f"{test}."

        verdict = compat.compare(run, EXPECTED, mine)
        with REPORT.open("a") as report:  # what a look at a long run wants to see: module, tests, what differs
            report.write(f"{name} {verdict.ran} {len(verdict.differ)}\n")
            report.writelines(f"  {test}: {what!r:.300}\n" for test, what in sorted(verdict.unexpected.items()))
            report.writelines(f"  {test}: does not differ\n" for test in sorted(verdict.missing))
        return verdict

    return compat.side_by_side([item.callspec.params["name"] for item in tests], one)


@pytest.mark.parametrize("name", CHOSEN)
def test_module(verdicts: dict[str, compat.Verdict], name: str) -> None:
    verdicts[name].check()


@pytest.mark.parametrize("name", SNIPPETS)
def test_module_in_a_snippet(packaged: harness.Isle, bare: compat.Bare, suite: str, name: str) -> None:
    """The wrapper is no difference either: the runner itself is the snippet."""
    code = RUNNER.read_text().replace('if __name__ == "__main__":', "if True:")
    code = code.replace("main(sys.argv[1], sys.argv[2], sys.argv[3:])", 'main("/workspace/o", params["module"], [])')
    assert 'params["module"]' in code

    def run(job: bool) -> compat.Outcomes:
        if not job:
            return bare.run([suite], [RUNNER], ["python3", RUNNER.name, "OUT", f"test.{name}"])
        with tempfile.TemporaryDirectory(prefix="compat-") as out:
            r = packaged.python(
                code,
                *compat.LIMITS,
                *("--params", f'{{"module": "test.{name}"}}', "--package-set", suite, "--timeout", "300"),
                *("--artifact", "o", "--output-dir", out),
                within=360,
            )
            assert r.reason == "ok", (r.result["error"], r.stderr[-500:])
            return compat.read_log((pathlib.Path(out) / "o").read_text())

    verdict = compat.compare(run, NONE, lambda _test: False)
    assert verdict.unexpected == {}
    assert verdict.ran > 5


def test_the_list_names_modules_that_are_run() -> None:
    for test in [*EXPECTED.must, *EXPECTED.may]:
        assert any(f"test.{name}." in f"{test}." for name in MODULES), test


def test_every_test_of_the_list_runs(suite: str) -> None:
    """A module that is not in the package is a name that went wrong."""
    folder = compat.SETS / suite / "lib/python3.13/site-packages/test"
    assert [
        n for n in MODULES if not (folder / f"{n.replace('.', '/')}.py").exists() and not (folder / n).is_dir()
    ] == []
