"""Package sets: folders of the operator's that a job names and sees, read-only, and no others."""

from __future__ import annotations

import pathlib
import textwrap

import harness
import leftovers
import pytest
import results


def write(path: pathlib.Path, text: str, mode: int = 0o644) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)


@pytest.fixture(scope="module")
def sets(isle: harness.Isle, tmp_path_factory: pytest.TempPathFactory) -> harness.Isle:
    """An isle with the sets one, two and hidden."""
    root = tmp_path_factory.mktemp("sets")
    root.chmod(0o755)
    for name in ("one", "two", "hidden"):
        write(root / name / "lib/python3.13/site-packages/which.py", f"NAME = {name!r}\n")
        write(root / name / f"lib/python3.13/site-packages/only_{name}/__init__.py", "")
        write(root / name / f"lib/python3.13/site-packages/only_{name}/part.py", "X = 41\n")
        write(root / name / "node_modules/which/index.js", f"module.exports = {name!r};\n")
        write(root / name / f"node_modules/esm-{name}/package.json", '{"type": "module", "exports": "./m.js"}\n')
        write(root / name / f"node_modules/esm-{name}/m.js", f"export const name = {name!r};\n")
        write(root / name / "bin/which-set", f"#!/usr/bin/python3\nimport which; print({name!r}, which.NAME)\n", 0o755)
    write(root / "two/lib/python3.13/site-packages/numpy.py", "HERE = 'two'\n")
    (root / "link").symlink_to("one")
    (root / "file").write_text("")
    return harness.Isle(isle.data, {**isle.env, "SANDBOX_PACKAGES_ROOT": str(root)})


BOTH = ("--package-set", "two", "--package-set", "one")


@pytest.mark.usefixtures("host")
def test_the_first_set_counts_first(sets: harness.Isle) -> None:
    code = "import which, numpy, only_one.part, only_two.part\nreturn [which.NAME, numpy.HERE, which.__file__]"
    where = "/packages/0/lib/python3.13/site-packages/which.py"
    assert sets.python(code, *BOTH).result["result"] == ["two", "two", where]
    code = "return [require('which'), (await import('which')).default, (await import('esm-one')).name]"
    assert sets.js(code, *BOTH).result["result"] == ["two", "two", "one"]
    code = 'import { name } from "esm-two";\nexport default name;'
    assert sets.js(code, *BOTH).result["result"] == "two"
    r = sets.command(["sh", "-c", "which-set; echo $VIRTUAL_ENV; python3 -c 'import numpy; print(numpy.HERE)'"], *BOTH)
    assert r.lines == ["two two", "/packages/0", "two"]


def test_a_child_interpreter_finds_them_too(sets: harness.Isle) -> None:
    code = """
        import multiprocessing, subprocess, sys
        def name(_):
            import which
            return which.NAME
        if __name__ == "__main__":
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                spawned = pool.map(name, [0])
            child = subprocess.run([sys.executable, "-c", "import which; print(which.NAME)"], capture_output=True)
            return [*spawned, child.stdout.decode().strip()]
    """
    assert sets.python(textwrap.dedent(code), "--package-set", "one").result["result"] == ["one", "one"]


def test_other_sets_are_not_there(sets: harness.Isle) -> None:
    r = sets.sh("ls -A /packages /packages/*; cat /proc/self/mountinfo", "--package-set", "one")
    assert "hidden" not in r.stdout
    assert r.stdout.split("/packages/1:")[1].split("\n")[1] == ""
    r = sets.python(
        "import importlib.util as u\nreturn [bool(u.find_spec('which')), '/packages' in str(__import__('sys').path)]"
    )
    assert r.result["result"] == [False, False]


def test_nothing_of_a_set_can_be_changed(sets: harness.Isle) -> None:
    code = """
        import os, only_one
        base = "/packages/0/lib/python3.13/site-packages"
        tries = [lambda: open(base + "/which.py", "a"), lambda: open(base + "/new", "w"),
                 lambda: os.mkdir("/packages/0/d"), lambda: os.chmod(base + "/which.py", 0o777),
                 lambda: os.rename(base, base + "2"),
                 lambda: os.utime(base), lambda: os.unlink(base + "/which.py"), lambda: os.rmdir("/packages/1")]
        done = []
        for i, t in enumerate(tries):
            try:
                t()
                done.append(i)
            except OSError:
                pass
        return [done, os.path.exists(base + "/only_one/__pycache__")]
    """
    assert sets.python(textwrap.dedent(code), "--package-set", "one").result["result"] == [[], False]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("three", "there is no such folder"),
        ("link", "there is no such folder"),
        ("file", "there is no such folder"),
    ],
)
def test_a_set_that_is_none_ends_the_job_before_it_runs(sets: harness.Isle, name: str, says: str) -> None:
    r = sets.python("print('ran')", "--package-set", "one", "--package-set", name)
    assert (r.reason, r.status, r.stdout, r.result["metadata"]["stage"]) == ("install_failed", 125, "", "install")
    assert f"package set {name}: {says}" in r.result["error"]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda p: p.chmod(0o775), "must belong to the owner of SANDBOX_PACKAGES_ROOT"),
        (lambda p: p.chmod(0o757), "must belong to the owner of SANDBOX_PACKAGES_ROOT"),
        (lambda p: p.chmod(0o700), "not readable by all"),
    ],
)
def test_a_set_that_is_not_safe_is_refused(sets: harness.Isle, change, says: str) -> None:
    root = pathlib.Path(sets.env["SANDBOX_PACKAGES_ROOT"])
    write(root / "open/bin/x", "")
    change(root / "open")
    r = sets.python("print('ran')", "--package-set", "open")
    (root / "open").chmod(0o755)
    assert (r.reason, r.stdout) == ("install_failed", "")
    assert says in r.result["error"]


@pytest.mark.parametrize("name", ["", ".", "..", "../sets", "one/", "/one", "-one", "a" * 65, "one\n", "ä"])
def test_names_are_checked_first(sets: harness.Isle, name: str) -> None:
    r = sets.run(f"--package-set={name}", "-l", "python", "-c", "print('ran')")
    assert (r.status, r.out) == (125, b"")
    assert b"--package-set: " in r.err and b"is not a name" in r.err


def test_without_a_root_there_are_none(sets: harness.Isle) -> None:
    r = sets.run("--package-set", "one", "-l", "python", "-c", "1", env={"SANDBOX_PACKAGES_ROOT": ""})
    assert (r.status, r.out) == (125, b"")
    assert b"SANDBOX_PACKAGES_ROOT is not set" in r.err


def test_a_root_that_is_missing_is_told(sets: harness.Isle) -> None:
    r = sets.run("-l", "python", "-c", "1", env={"SANDBOX_PACKAGES_ROOT": "/nowhere/at/all"})
    assert r.status == 125
    assert b"SANDBOX_PACKAGES_ROOT /nowhere/at/all: No such file or directory" in r.err


def test_the_job_may_not_steer_it(sets: harness.Isle) -> None:
    for name in ("PYTHONPATH", "NODE_PATH"):
        r = sets.run("--env", f"{name}=/workspace", *BOTH, "-l", "python", "-c", "1")
        assert r.status == 125, name
        assert b"steers" in r.err


def test_the_plan_tells_them(sets: harness.Isle) -> None:
    r = sets.run("--show-plan", *BOTH, "-l", "python", "-c", "1")
    assert "/packages/1      read-only: package set one" in r.text
    plan = results.strict_json(sets.run("--show-plan", "--json", *BOTH, "-l", "python", "-c", "1").out)
    assert {"target": "/packages/0", "what": "read-only: package set two"} in plan["mounts"]
    assert "VIRTUAL_ENV=/packages/0" in plan["environment"]


def test_nothing_of_a_job_reaches_the_folder(sets: harness.Isle) -> None:
    root = pathlib.Path(sets.env["SANDBOX_PACKAGES_ROOT"])
    before = leftovers.tree_state(str(root))
    sets.python("import which, only_one.part", "--package-set", "one")
    assert leftovers.tree_state(str(root)) == before
