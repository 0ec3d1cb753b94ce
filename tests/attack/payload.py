"""Runs a payload file of tests/attack/payloads as a job."""

from __future__ import annotations

import functools
import pathlib
import tempfile

import canaries
import harness

FOLDER = pathlib.Path(__file__).parent / "payloads"
_BUILT = tempfile.TemporaryDirectory(prefix="isle-payloads-", dir="/var/tmp")
BUILT = pathlib.Path(_BUILT.name)
BUILT.chmod(0o755)  # `isle` may be somebody else


@functools.cache
def _compiled(name: str) -> pathlib.Path:
    return harness.compile_static(FOLDER / f"{name}.c", BUILT / name)


@functools.cache
def compiled_program(name: str) -> pathlib.Path:
    """A program of tests/attack/programs, static."""
    return harness.compile_static(FOLDER.parent / "programs" / f"{name}.c", BUILT / name)


def prepared(file: str, canary: canaries.Canary | None = None) -> tuple[pathlib.Path, list[str]]:
    """The file to stage and the command that runs it inside."""
    name, suffix = file.rsplit(".", 1)
    if suffix == "c":
        return _compiled(name), [f"./{name}"]
    text = (FOLDER / file).read_text()
    if canary:
        text = text.replace("@CANARY@", str(canary.folder))
    assert "@CANARY@" not in text and "@WORK@" not in text, "a placeholder was left"
    path = BUILT / file
    path.write_text(text)
    return path, [{"py": "python3", "sh": "bash", "js": "node"}[suffix], file]


def attack(
    isle: harness.Isle,
    file: str,
    *options: str,
    canary: canaries.Canary | None = None,
    args: tuple[str, ...] = (),
    **kw,
) -> harness.Run:
    path, argv = prepared(file, canary)
    r = isle.command([*argv, *args], "--file", str(path), *options, **kw)
    assert "ESCAPED" not in r.stdout + r.stderr, r.stdout + r.stderr
    return r


def held(r: harness.Run, *lines: str) -> None:
    """The job ended by itself with success and printed exactly these lines."""
    assert r.reason == "ok", (r.result, r.err)
    assert r.lines == list(lines), (r.lines, r.stderr)
