"""Runs every test of isle and says how many passed: `./bootstrap test` ends here.

A part is one kind of test. Its output goes to build/test-logs/PART and is shown only when something fails there. The
last line is the sum: `N passed, N failed, N skipped`. Where CI is set, a test that was skipped has failed, but for
those that only --long asks for.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import dataclasses
import os
import pathlib
import re
import subprocess
import sys
import time
from collections.abc import Callable
from xml.etree import ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
LOGS = BUILD / "test-logs"
VENV = BUILD / "venv" / "bin"
RUNTIME = pathlib.Path(os.environ.get("ISLE_DATA", "/var/lib/isle")) / "runtime" / "current"
CI = os.environ.get("CI", "") not in ("", "0", "false")
LONG_REASON = "ISLE_LONG"
SHOWN_LINES = 40

COLOUR = sys.stdout.isatty() and "NO_COLOR" not in os.environ


def paint(code: str, text: str) -> str:
    return f"\x1b[{code}m{text}\x1b[0m" if COLOUR else text


@dataclasses.dataclass
class Count:
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    notes: list[str] = dataclasses.field(default_factory=list)

    def add(self, other: Count) -> None:
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped


class Part:
    """What one part may use: commands whose output lands in its log."""

    def __init__(self, name: str, options: argparse.Namespace):
        self.name = name
        self.options = options
        self.log = LOGS / name
        self.log.write_bytes(b"")

    def run(self, *command: str | os.PathLike, env: dict[str, str] | None = None) -> int:
        with self.log.open("ab") as log:
            log.write(f"$ {' '.join(map(str, command))}\n".encode())
            log.flush()
            done = subprocess.run(
                [str(c) for c in command],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=os.environ | (env or {}),
                check=False,
            )
            return done.returncode

    def check(self, *command: str | os.PathLike, env: dict[str, str] | None = None) -> Count:
        """A command that is one test."""
        return Count(passed=1) if self.run(*command, env=env) == 0 else Count(failed=1)

    def setup(self, folder: str, *options: str, env: dict[str, str] | None = None) -> bool:
        """A second build folder with other options."""
        # Named inside build/, so that one folder holds all that can be thrown away.
        if not (BUILD / folder / "build.ninja").exists() and self.run(
            "meson", "setup", BUILD / folder, *options, env=env
        ):
            return False
        return self.run("ninja", "-k", "0", "-C", BUILD / folder) == 0

    def meson(self, folder: pathlib.Path, *options: str, env: dict[str, str] | None = None) -> Count:
        status = self.run("meson", "test", "-C", folder, "--no-rebuild", "--print-errorlogs", *options, env=env)
        return self.junit(folder / "meson-logs" / "testlog.junit.xml", status)

    def pytest(self, *arguments: str, env: dict[str, str] | None = None) -> Count:
        xml = LOGS / f"{self.name}.xml"
        xml.unlink(missing_ok=True)
        long = {"ISLE_LONG": "1"} if self.options.long else {}
        status = self.run(
            VENV / "pytest",
            "-q",
            "-rs",
            "-p",
            "no:cacheprovider",
            f"--junitxml={xml}",
            *arguments,
            env={"SANDBOX_RUNTIME_ROOT": str(RUNTIME), "PYTHONDONTWRITEBYTECODE": "1"} | long | (env or {}),
        )
        return self.junit(xml, status)

    def junit(self, path: pathlib.Path, status: int) -> Count:
        """The counts of a JUnit file; a runner that failed without naming a test is a failure of its own."""
        count = Count()
        try:
            cases = list(ElementTree.parse(path).iter("testcase"))
        except (OSError, ElementTree.ParseError):
            return Count(failed=1, notes=[f"no result file {path.name}"])
        for case in cases:
            name = f"{case.get('classname', '')}::{case.get('name', '')}"
            skipped = case.find("skipped")
            if case.find("failure") is not None or case.find("error") is not None:
                count.failed += 1
                count.notes.append(f"failed: {name}")
                said = "\n".join(case.findtext(kind) or "" for kind in ("system-out", "system-err"))
                count.notes += [f"    {line}" for line in said.splitlines() if re.search(r"\b(ERROR|FAIL)", line)][:8]
            elif skipped is not None:
                reason = skipped.get("message") or ""
                if CI and not reason.startswith(LONG_REASON):
                    count.failed += 1
                    count.notes.append(f"could not run: {name}: {reason}")
                else:
                    count.skipped += 1
            else:
                count.passed += 1
        if status != 0 and count.failed == 0:
            count.failed += 1
            count.notes.append(f"the runner ended with status {status}")
        if not cases:
            count.failed += 1
            count.notes.append("no test was run")
        return count


# ---------------------------------------------------------------------------------------------------------
# The parts


def sources(*patterns: str) -> list[str]:
    """Files that git knows or would take."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *patterns],
        cwd=ROOT,
        capture_output=True,
        check=True,
    ).stdout
    return sorted(name for name in listed.decode().split("\0") if name and (ROOT / name).is_file())


def shell_scripts() -> list[str]:
    """Scripts are known by their first line; what a sandbox runs in tests is not ours to lint."""
    found = []
    for name in sources():
        if name.startswith(("tests/attack/payloads/", "tests/fuzz/corpus/")):
            continue
        with (ROOT / name).open("rb") as file:
            first = file.readline(80)
        if name.endswith(".sh") or (first.startswith(b"#!") and (b"bash" in first or first.rstrip().endswith(b"/sh"))):
            found.append(name)
    return found


def part_unit(part: Part) -> Count:
    # A machine that does other things meanwhile is no failure: the limits are for tests that hang.
    return part.meson(BUILD, "-t", "4")


def part_format(part: Part) -> Count:
    return part.check(VENV / "clang-format", "--dry-run", "-Werror", *sources("*.c", "*.h"))


def part_layers(part: Part) -> Count:
    return part.check(sys.executable, "tools/check_layers.py")


def part_style(part: Part) -> Count:
    return part.check(sys.executable, "tools/check_style.py")


def part_tidy(part: Part) -> Count:
    return part.check(sys.executable, "tools/tidy.py", BUILD)


def part_analyzer(part: Part) -> Count:
    # -O1 keeps the analyzer's paths few enough to finish; warnings are errors in every build. Leaks are the
    # sanitizers' business: the analyzer sees some where a pointer is put into a table.
    flags = "-fanalyzer -Wno-analyzer-malloc-leak -Wno-analyzer-fd-leak"
    done = part.setup("analyzer", "-Dtests=false", "-Doptimization=1", f"-Dc_args={flags}")
    return Count(passed=1) if done else Count(failed=1)


def part_shellcheck(part: Part) -> Count:
    return part.check("shellcheck", "-x", "-P", "SCRIPTDIR/..", *shell_scripts())


def part_ruff(part: Part) -> Count:
    count = part.check(VENV / "ruff", "check", "--no-cache", ".")
    count.add(part.check(VENV / "ruff", "format", "--no-cache", "--check", "."))
    return count


def part_cross(part: Part) -> Count:
    return part.check("tools/cross-aarch64", "build/aarch64")


SANITIZERS = {
    "ASAN_OPTIONS": "detect_stack_use_after_return=1:strict_string_checks=1:abort_on_error=1",
    "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1:abort_on_error=1",
}


def part_sanitize(part: Part) -> Count:
    options = ["-Db_sanitize=address,undefined", "-Db_lundef=false", "-Dbuildtype=debug", "-Doptimization=1"]
    if not part.setup("asan", *options):
        return Count(failed=1, notes=["the sanitizer build failed"])
    return part.meson(BUILD / "asan", "-t", "4", env=SANITIZERS)


def part_sanitized(part: Part) -> Count:
    # What a user can say and what a job can print: the paths that read foreign bytes.
    names = ("options", "status", "result", "output")
    env = {"ISLE": str(BUILD / "asan/src/app/isle"), "ISLE_TEST_SLOW": "4"}
    return part.pytest(*(f"tests/e2e/test_run_{name}.py" for name in names), env=SANITIZERS | env)


# One build for both: calls fail on purpose, and lines are counted.
COUNTED = BUILD / "counted"
COUNTED_OPTIONS = ("-Dinject=true", "-Dcoverage=true", "-Dbuildtype=debug")
# Of the tests of the real programs those that lead where no unit test does: ranges, claims, what other starts left.
COUNTED_TESTS = ("e2e/test_start",)


def part_inject(part: Part) -> Count:
    if not part.setup(COUNTED.name, *COUNTED_OPTIONS):
        return Count(failed=1, notes=["the build with failure injection failed"])
    # Only the tests that make calls fail; the others are as in the ordinary build.
    listed = subprocess.run(
        ["meson", "test", "-C", COUNTED, "--no-rebuild", "--list"], capture_output=True, text=True, check=False
    ).stdout
    names = [line.split(" / ")[-1] for line in listed.splitlines() if "inject" in line and " / " in line]
    tool = (sys.executable, "tools/coverage.py", COUNTED)
    part.run(*tool, "reset")  # else each program tries to write its counters when it ends
    count = part.meson(COUNTED, "-t", "4", *names)
    part.run(*tool, "off")
    return count


def part_coverage(part: Part) -> Count:
    if not part.setup(COUNTED.name, *COUNTED_OPTIONS):
        return Count(failed=1, notes=["the build that counts lines failed"])
    tool = (sys.executable, "tools/coverage.py", COUNTED)
    count = part.check(*tool, "reset")
    try:
        count.add(part.meson(COUNTED, "-t", "4"))
        tests = (f"tests/{name}.py" for name in COUNTED_TESTS)
        env = {"ISLE": str(COUNTED / "src/app/isle"), "ISLE_TEST_SLOW": "2"}
        count.add(part.pytest(*tests, env=env))
        count.add(part.check(*tool, "report"))
    finally:
        part.run(*tool, "off")
    table = (COUNTED / "coverage/table.txt").read_text().splitlines()
    count.notes += table
    return count


def part_fuzz(part: Part) -> Count:
    # The corpora are replayed by the unit tests; here libFuzzer goes on from them for a moment, with --long for long.
    options = ["-Dfuzz=true", "-Dtests=false", "-Db_sanitize=address,undefined", "-Db_lundef=false"]
    if not part.setup("fuzz", *options, "-Dbuildtype=debugoptimized", env={"CC": "clang"}):
        return Count(failed=1, notes=["the fuzz build failed"])
    part.run("meson", "configure", BUILD / "fuzz", f"-Dfuzz_seconds={300 if part.options.long else 5}")
    if part.run("ninja", "-C", BUILD / "fuzz"):
        return Count(failed=1, notes=["the fuzz build failed"])
    return part.meson(BUILD / "fuzz")


def part_root(part: Part) -> Count:
    return part.pytest("tests/root")


def part_examples(part: Part) -> Count:
    return part.check("examples/run", env={"NO_COLOR": "1"})


def part_pending(part: Part) -> Count:
    return part.pytest("tests/pending")


def part_e2e(part: Part) -> Count:
    return part.pytest("tests/e2e", env={"ISLE": str(BUILD / "src/app/isle")})


def part_attack(part: Part) -> Count:
    return part.pytest("tests/attack", env={"ISLE": str(BUILD / "src/app/isle")})


def part_variant(part: Part) -> Count:
    """Tests whose verdict depends on the launcher or the user, again as tests/e2e/variants.py says."""
    env = {"ISLE": str(BUILD / "src/app/isle"), "ISLE_VARIANT": part.name}
    if part.name in BESIDE:
        env["ISLE_TEST_SHARED_HOST"] = "1"
    return part.pytest("tests/e2e", "tests/attack", env=env)


def part_compat(part: Part) -> Count:
    return part.pytest("tests/compat", env={"ISLE": str(BUILD / "src/app/isle")})


def exists(path: str) -> Callable[[], bool]:
    return lambda: (ROOT / path).exists()


@dataclasses.dataclass(frozen=True)
class Kind:
    name: str
    function: Callable[[Part], Count]
    what: str
    fast: bool = False
    # Only when asked for: another part does the same and more.
    alone: bool = False
    # Parts of one stage run side by side; those of the last stages measure time and run alone.
    stage: int = 0
    present: Callable[[], bool] = lambda: True


# Variants that run beside a part which starts processes and installs files: what is looked for on the whole host would
# be that part's.
BESIDE = ("native-user", "bwrap-root")

KINDS = (
    Kind("unit", part_unit, "unit tests", fast=True),
    Kind("format", part_format, "layout of the C sources (clang-format)", fast=True),
    Kind("layers", part_layers, "direction of includes", fast=True),
    Kind("style", part_style, "banned functions, sizes, leftovers", fast=True),
    Kind("ruff", part_ruff, "Python: lint and layout", fast=True),
    Kind("pending", part_pending, "every case and attack: tested or waiting", fast=True),
    Kind("shellcheck", part_shellcheck, "shell scripts", fast=True),
    Kind("analyzer", part_analyzer, "gcc -fanalyzer", stage=1),
    Kind("cross", part_cross, "build for aarch64", stage=1),
    Kind("tidy", part_tidy, "clang-tidy", stage=1),
    Kind("sanitize", part_sanitize, "unit tests under ASan and UBSan", stage=2),
    Kind("inject", part_inject, "every call that can fail, failed once", stage=2, alone=True),
    Kind(
        "fuzz", part_fuzz, "fuzzing for a moment (clang, libFuzzer)", stage=2, present=exists("tests/fuzz/meson.build")
    ),
    Kind("root", part_root, "the runtime root: fonts, locales, rights", stage=3, present=exists("tests/root")),
    Kind("examples", part_examples, "the examples", stage=4, present=exists("examples/run")),
    Kind("e2e", part_e2e, "behaviour of the real program", stage=5, present=exists("tests/e2e")),
    Kind("sanitized", part_sanitized, "the real program under ASan and UBSan", stage=6, present=exists("tests/e2e")),
    Kind("attack", part_attack, "attacks", stage=7, present=exists("tests/attack")),
    Kind("coverage", part_coverage, "lines run, calls failed on purpose", stage=8, present=exists("tests/e2e")),
    Kind("compat", part_compat, "other people's programs as jobs", stage=9, present=exists("tests/compat")),
    # Variants (part_variant): two beside parts that mostly compute, none beside another. Tests that share the
    # canaries' addresses wait for each other (tests/conftest.py).
    Kind("native-user", part_variant, "user with subordinate ids and groups", stage=8),
    Kind("bwrap-root", part_variant, "Bubblewrap makes the sandboxes", stage=9),
    Kind("bwrap-user", part_variant, "the same, as that user", stage=10),
    Kind("native-bare", part_variant, "user with neither: the listed downgrades", stage=12),
    Kind("native-container", part_variant, "root of a container", stage=13),
)


def run_kind(kind: Kind, options: argparse.Namespace) -> Count:
    begin = time.monotonic()
    if COLOUR:  # at a terminal
        print(paint("2", f"    ...    {kind.name:<11} {kind.what}"), flush=True)
    part = Part(kind.name, options)
    try:
        count = kind.function(part)
    except Exception as error:
        count = Count(failed=1, notes=[f"{type(error).__name__}: {error}"])
    spent = time.monotonic() - begin
    state = paint("32", "ok    ") if count.failed == 0 else paint("31", "FAILED")
    numbers = f"{count.passed} passed" + (f", {count.failed} failed" if count.failed else "")
    numbers += f", {count.skipped} skipped" if count.skipped else ""
    print(f"    {state} {kind.name:<11} {kind.what:<42} {spent:5.0f} s  {numbers}", flush=True)
    for note in count.notes[:40]:
        print(f"           {note}")
    if count.failed:
        lines = part.log.read_text(errors="replace").splitlines()
        errors = [line for line in lines[:-SHOWN_LINES] if ": error: " in line][:SHOWN_LINES]
        tail = [*errors, *lines[-SHOWN_LINES:]]
        print("\n".join("           | " + line for line in tail))
        print(f"           whole output: {part.log.relative_to(ROOT)}", flush=True)
    return count


def main() -> int:
    parser = argparse.ArgumentParser(prog="./bootstrap test", description="Runs the tests of isle.")
    parser.add_argument("--fast", action="store_true", help="only what takes a minute")
    parser.add_argument("--long", action="store_true", help="also what takes very long")
    parser.add_argument("--only", action="append", metavar="NAME", help="only this part (again for more)")
    parser.add_argument("--list", action="store_true", help="print the parts")
    options = parser.parse_args()
    names = {kind.name for kind in KINDS}
    for name in options.only or ():
        if name not in names:
            parser.error(f"no part {name!r}: one of {', '.join(sorted(names))}")
    if options.list:
        for kind in KINDS:
            print(f"{kind.name:<11} {kind.what}")
        return 0

    chosen = [k for k in KINDS if k.present()]
    if options.only:
        chosen = [k for k in chosen if k.name in options.only]
    elif options.fast:
        chosen = [k for k in chosen if k.fast]
    else:
        chosen = [k for k in chosen if not k.alone]
    LOGS.mkdir(parents=True, exist_ok=True)
    print(paint("1", "==> tests"), flush=True)
    total = Count()
    for stage in sorted({k.stage for k in chosen}):
        with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
            for count in pool.map(lambda k: run_kind(k, options), [k for k in chosen if k.stage == stage]):
                total.add(count)
    print(f"{total.passed} passed, {total.failed} failed, {total.skipped} skipped", flush=True)
    return 1 if total.failed or not total.passed else 0


if __name__ == "__main__":
    sys.exit(main())
