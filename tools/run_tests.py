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
from collections.abc import Callable, Iterator
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


@dataclasses.dataclass(frozen=True)
class Build:
    """A second build folder with other options."""

    folder: str
    options: tuple[str, ...]
    env: dict[str, str] | None = None
    targets: tuple[str, ...] = ()  # all

    @property
    def path(self) -> pathlib.Path:
        return BUILD / self.folder


SANITIZED = ("-Db_sanitize=address,undefined", "-Db_lundef=false")
ASAN = Build("asan", (*SANITIZED, "-Dbuildtype=debug", "-Doptimization=1"))
# One for both: calls fail on purpose, and lines are counted.
COUNTED = Build("counted", ("-Dinject=true", "-Dcoverage=true", "-Dbuildtype=debug"))
FUZZ = Build(
    "fuzz",
    ("-Dfuzz=true", "-Dtests=false", *SANITIZED, "-Dbuildtype=debugoptimized"),
    env={"CC": "clang"},
    targets=("fuzzers",),
)
# -O1 keeps the analyzer's paths few enough to finish; warnings are errors in every build. Leaks are the sanitizers'
# business: the analyzer sees some where a pointer is put into a table.
ANALYZER_FLAGS = "-fanalyzer -Wno-analyzer-malloc-leak -Wno-analyzer-fd-leak"
ANALYZER = Build("analyzer", ("-Dtests=false", "-Doptimization=1", f"-Dc_args={ANALYZER_FLAGS}"))

# For a part that shares the CPUs with others.
# For a part beside what compiles: a time bound is for what hangs, and no load of the machine may reach it.
COMPILING = {"ISLE_TEST_SLOW": "3"}
BESIDE = COMPILING | {"ISLE_TEST_SHARED_HOST": "1"}


class Part:
    """What one part may use: commands whose output lands in its log."""

    def __init__(self, name: str, options: argparse.Namespace, nice: bool = False):
        self.name = name
        self.options = options
        self.nice = nice
        self.long = {"ISLE_LONG": "1"} if options.long else {}
        self.cpu_seconds = 0.0
        self.log = LOGS / name
        self.log.write_bytes(b"")

    def run(self, *command: str | os.PathLike, env: dict[str, str] | None = None) -> int:
        command = (*("nice", "-n", "15") * self.nice, *command)
        with self.log.open("ab") as log:
            log.write(f"$ {' '.join(map(str, command))}\n".encode())
            log.flush()
            child = subprocess.Popen(
                [str(c) for c in command],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=os.environ | (env or {}),
            )
            _, status, used = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)  # else it would be waited for again
            self.cpu_seconds += used.ru_utime + used.ru_stime
            return child.returncode

    def check(self, *command: str | os.PathLike, env: dict[str, str] | None = None) -> Count:
        """A command that is one test."""
        return Count(passed=1) if self.run(*command, env=env) == 0 else Count(failed=1)

    def setup(self, build: Build) -> bool:
        # Named inside build/, so that one folder holds all that can be thrown away.
        if not (build.path / "build.ninja").exists() and self.run(
            "meson", "setup", build.path, *build.options, env=build.env
        ):
            return False
        return self.run("ninja", "-k", "0", "-C", build.path, *build.targets) == 0

    def meson(self, folder: pathlib.Path, *options: str, env: dict[str, str] | None = None) -> Count:
        status = self.run("meson", "test", "-C", folder, "--no-rebuild", "--print-errorlogs", *options, env=env)
        return self.junit(folder / "meson-logs" / "testlog.junit.xml", status)

    def pytest(self, *arguments: str, env: dict[str, str] | None = None, apart: bool = False) -> Count:
        """apart: beside another part, so with a network and files of its own, and without a look at the whole host."""
        xml = LOGS / f"{self.name}.xml"
        xml.unlink(missing_ok=True)
        env = (BESIDE if apart else {}) | (env or {})
        status = self.run(
            *((sys.executable, "tools/apart.py") if apart else ()),
            VENV / "pytest",
            "-q",
            "-rs",
            "-p",
            "no:cacheprovider",
            f"--junitxml={xml}",
            *arguments,
            env={"SANDBOX_RUNTIME_ROOT": str(RUNTIME), "PYTHONDONTWRITEBYTECODE": "1"} | self.long | env,
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
    return part.check(sys.executable, "tools/tidy.py", BUILD, env=part.long)


def part_analyzer(part: Part) -> Count:
    return Count(passed=1) if part.setup(ANALYZER) else Count(failed=1)


def part_shellcheck(part: Part) -> Count:
    return part.check("shellcheck", "-x", "-P", "SCRIPTDIR/..", *shell_scripts())


def part_ruff(part: Part) -> Count:
    count = part.check(VENV / "ruff", "check", "--no-cache", ".")
    count.add(part.check(VENV / "ruff", "format", "--no-cache", "--check", "."))
    return count


def part_builds(part: Part) -> Count:
    """What later parts run, so that they only run it."""
    done = [part.setup(build) for build in (ASAN, COUNTED, FUZZ)]
    return Count(passed=done.count(True), failed=done.count(False))


def part_cross(part: Part) -> Count:
    return part.check("tools/cross-aarch64", "build/aarch64")


SANITIZERS = {
    "ASAN_OPTIONS": "detect_stack_use_after_return=1:strict_string_checks=1:abort_on_error=1",
    "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1:abort_on_error=1",
}


def part_sanitize(part: Part) -> Count:
    if not part.setup(ASAN):
        return Count(failed=1, notes=["the sanitizer build failed"])
    return part.meson(ASAN.path, "-t", "4", env=SANITIZERS)


def part_sanitized(part: Part) -> Count:
    # What users and callers can say and what a job can print: the paths that read foreign bytes.
    names = ("run_options", "run_status", "run_result", "run_output", "service_api")
    names += ("service_agent", "service_workflow", "service_tools_run")
    env = {"ISLE": str(ASAN.path / "src/app/isle"), "ISLE_TEST_SLOW": "8"}
    return part.pytest(*(f"tests/e2e/test_{name}.py" for name in names), env=SANITIZERS | env, apart=True)


# Of the tests of the real programs those that lead where no unit test does: ranges, claims, what other starts left.
COUNTED_TESTS = ("e2e/test_start",)


def part_inject(part: Part) -> Count:
    if not part.setup(COUNTED):
        return Count(failed=1, notes=["the build with failure injection failed"])
    # Only the tests that make calls fail; the others are as in the ordinary build.
    listed = subprocess.run(
        ["meson", "test", "-C", COUNTED.path, "--no-rebuild", "--list"], capture_output=True, text=True, check=False
    ).stdout
    names = [line.split(" / ")[-1] for line in listed.splitlines() if "inject" in line and " / " in line]
    tool = (sys.executable, "tools/coverage.py", COUNTED.path)
    part.run(*tool, "reset")  # else each program tries to write its counters when it ends
    count = part.meson(COUNTED.path, "-t", "4", *names)
    part.run(*tool, "off")
    return count


def part_coverage(part: Part) -> Count:
    if not part.setup(COUNTED):
        return Count(failed=1, notes=["the build that counts lines failed"])
    tool = (sys.executable, "tools/coverage.py", COUNTED.path)
    count = part.check(*tool, "reset")
    try:
        count.add(part.meson(COUNTED.path, "-t", "4"))
        tests = (f"tests/{name}.py" for name in COUNTED_TESTS)
        env = {"ISLE": str(COUNTED.path / "src/app/isle"), "ISLE_TEST_SLOW": "4"}
        count.add(part.pytest(*tests, env=env, apart=True))
        count.add(part.check(*tool, "report"))
    finally:
        part.run(*tool, "off")
    table = (COUNTED.path / "coverage/table.txt").read_text().splitlines()
    count.notes += table
    return count


def part_fuzz(part: Part) -> Count:
    # The corpora are replayed by the unit tests; here libFuzzer goes on from them for a moment, with --long for long.
    if not part.setup(FUZZ):
        return Count(failed=1, notes=["the fuzz build failed"])
    part.run("meson", "configure", FUZZ.path, f"-Dfuzz_seconds={300 if part.options.long else 5}")
    if not part.setup(FUZZ):
        return Count(failed=1, notes=["the fuzz build failed"])
    return part.meson(FUZZ.path)


def part_root(part: Part) -> Count:
    return part.pytest("tests/root")


def part_examples(part: Part) -> Count:
    return part.check("examples/run", env={"NO_COLOR": "1", "ISLE_EXAMPLES_ALL": "1"})


def part_pending(part: Part) -> Count:
    return part.pytest("tests/pending")


IDLE = "tests/e2e/test_serve_idle.py"


def part_e2e_host(part: Part) -> Count:
    env = {"ISLE": str(BUILD / "src/app/isle"), "ISLE_TESTS": "host"}
    return part.pytest("tests/e2e", f"--ignore={IDLE}", env=env | COMPILING)


# Of what need not see the whole host about a half: two parts, as each of them mostly waits.
SERVICE = "tests/e2e/test_serv*.py"


def part_e2e(part: Part) -> Count:
    env = {"ISLE": str(BUILD / "src/app/isle"), "ISLE_TESTS": "apart"}
    return part.pytest("tests/e2e", f"--ignore-glob={SERVICE}", env=env, apart=True)


def part_service(part: Part) -> Count:
    env = {"ISLE": str(BUILD / "src/app/isle"), "ISLE_TESTS": "apart"}
    files = sorted(str(path.relative_to(ROOT)) for path in ROOT.glob(SERVICE))
    return part.pytest(*(name for name in files if name != IDLE), env=env, apart=True)


def part_idle(part: Part) -> Count:
    return part.pytest(IDLE, env={"ISLE": str(BUILD / "src/app/isle")}, apart=True)


def part_attack(part: Part) -> Count:
    return part.pytest("tests/attack", env={"ISLE": str(BUILD / "src/app/isle")} | COMPILING)


def part_variant(part: Part) -> Count:
    """Tests whose verdict depends on the launcher or the user, again as tests/e2e/variants.py says."""
    env = {"ISLE": str(BUILD / "src/app/isle"), "ISLE_VARIANT": part.name}
    return part.pytest("tests/e2e", "tests/attack", env=env, apart=True)


def part_bench(part: Part) -> Count:
    return part.check(VENV / "python", "tests/bench/http", env={"ISLE": str(BUILD / "src/app/isle")})


def part_compat(part: Part) -> Count:
    # Not apart: what it compares comes from package registries.
    return part.pytest("tests/compat", env={"ISLE": str(BUILD / "src/app/isle")} | BESIDE)


@dataclasses.dataclass(frozen=True)
class Kind:
    name: str
    function: Callable[[Part], Count]
    what: str
    fast: bool = False
    # Only when asked for: another part does the same and more.
    alone: bool = False
    # Only when asked for, or with --long.
    long: bool = False
    # Parts of one stage run side by side (WORKERS); those of one lane one after another. A lane that lasts has a worker
    # of its own and goes on beside later stages, the one of this number included.
    stage: int = 0
    lasts: int = 0
    lane: str = ""
    # Gives way to what measures time beside it.
    nice: bool = False


KINDS = (
    Kind("unit", part_unit, "unit tests", fast=True),
    Kind("format", part_format, "layout of the C sources (clang-format)", fast=True),
    Kind("layers", part_layers, "direction of includes", fast=True),
    Kind("style", part_style, "banned functions, sizes, leftovers", fast=True),
    Kind("ruff", part_ruff, "Python: lint and layout", fast=True),
    Kind("pending", part_pending, "every case and attack: tested or waiting", fast=True),
    Kind("shellcheck", part_shellcheck, "shell scripts", fast=True),
    # This only compiles: it starts no process which could be a job's, and writes nothing outside of build/.
    Kind("builds", part_builds, "builds: sanitizers, counters, fuzzers", lane="compile", lasts=1, nice=True),
    Kind("tidy", part_tidy, "clang-tidy", lane="compile", lasts=1, nice=True),
    Kind("analyzer", part_analyzer, "gcc -fanalyzer", lane="compile", lasts=1, nice=True),
    Kind("cross", part_cross, "build for aarch64", lane="compile", lasts=1, nice=True),
    # What looks at the whole host: no other tests beside it.
    Kind("root", part_root, "the runtime root: fonts, locales, rights", stage=1, lane="host"),
    Kind("examples", part_examples, "the examples", stage=1, lane="host"),
    Kind("e2e-host", part_e2e_host, "the real program and its host", stage=1, lane="host"),
    Kind("attack", part_attack, "attacks", stage=1, lane="host"),
    # It needs a minute and no processor.
    Kind("idle", part_idle, "an idle service sleeps", stage=2),
    # The rest, the longest first. Unit tests of two builds would meet in their folders.
    Kind("service", part_service, "behaviour of the service", stage=2),
    Kind("e2e", part_e2e, "behaviour of the real program", stage=2),
    Kind("coverage", part_coverage, "lines run, calls failed on purpose", stage=2, lane="units"),
    Kind("sanitize", part_sanitize, "unit tests under ASan and UBSan", stage=2, lane="units"),
    Kind("inject", part_inject, "every call that can fail, failed once", stage=2, lane="units", alone=True),
    Kind("fuzz", part_fuzz, "fuzzing for a moment (clang, libFuzzer)", stage=2, lane="units"),
    Kind("bwrap-user", part_variant, "user with subordinate ids, Bubblewrap", stage=2),
    Kind("bwrap-root", part_variant, "Bubblewrap makes the sandboxes", stage=2),
    Kind("compat", part_compat, "other people's programs as jobs", stage=2),
    Kind("native-container", part_variant, "root of a container", stage=2),
    Kind("native-user", part_variant, "user with subordinate ids and groups", stage=2),
    Kind("native-bare", part_variant, "user with neither: the listed downgrades", stage=2),
    Kind("sanitized", part_sanitized, "the real program under ASan and UBSan", stage=2),
    # Its bounds are those of a host that does nothing else.
    Kind("bench", part_bench, "speed: what HTTP and stored jobs cost", stage=3, long=True),
)


# By stage. Most of the time of a part of the third one is waiting.
WORKERS = (2, 1, 4, 1)


def lanes(kinds: list[Kind]) -> list[list[Kind]]:
    """Those of one lane together, where its first one stands."""
    found: dict[str, list[Kind]] = {}
    for kind in kinds:
        found.setdefault(kind.lane or kind.name, []).append(kind)
    return list(found.values())


def run_kind(kind: Kind, options: argparse.Namespace) -> Count:
    begin = time.monotonic()
    if COLOUR:  # at a terminal
        print(paint("2", f"    ...    {kind.name:<11} {kind.what}"), flush=True)
    part = Part(kind.name, options, kind.nice)
    try:
        count = kind.function(part)
    except Exception as error:
        count = Count(failed=1, notes=[f"{type(error).__name__}: {error}"])
    spent = time.monotonic() - begin
    state = paint("32", "ok    ") if count.failed == 0 else paint("31", "FAILED")
    numbers = f"{count.passed} passed" + (f", {count.failed} failed" if count.failed else "")
    numbers += f", {count.skipped} skipped" if count.skipped else ""
    print(
        f"    {state} {kind.name:<11} {kind.what:<42} {spent:5.0f} s {part.cpu_seconds:5.0f} cpu-s  {numbers}",
        flush=True,
    )
    for note in count.notes[:40]:
        print(f"           {note}")
    if count.failed:
        lines = part.log.read_text(errors="replace").splitlines()
        errors = [line for line in lines[:-SHOWN_LINES] if ": error: " in line][:SHOWN_LINES]
        tail = [*errors, *lines[-SHOWN_LINES:]]
        print("\n".join("           | " + line for line in tail))
        print(f"           whole output: {part.log.relative_to(ROOT)}", flush=True)
    return count


def run_stages(chosen: list[Kind], options: argparse.Namespace) -> Iterator[Count]:
    def run_lane(lane: list[Kind]) -> list[Count]:
        return [run_kind(kind, options) for kind in lane]

    with concurrent.futures.ThreadPoolExecutor() as beside:
        lasting = [(lane[0].lasts, beside.submit(run_lane, lane)) for lane in lanes([k for k in chosen if k.lasts])]
        for stage in range(len(WORKERS)):
            for until, lane in lasting:
                if until < stage:
                    lane.result()
            with concurrent.futures.ThreadPoolExecutor(WORKERS[stage]) as pool:
                here = lanes([k for k in chosen if k.stage == stage and not k.lasts])
                for counts in pool.map(run_lane, here):
                    yield from counts
        for _, lane in lasting:
            yield from lane.result()


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

    chosen = list(KINDS)
    if options.only:
        chosen = [k for k in chosen if k.name in options.only]
    elif options.fast:
        chosen = [k for k in chosen if k.fast]
    else:
        chosen = [k for k in chosen if not k.alone and (options.long or not k.long)]
    LOGS.mkdir(parents=True, exist_ok=True)
    print(paint("1", "==> tests"), flush=True)
    total = Count()
    for count in run_stages(chosen, options):
        total.add(count)
    print(f"{total.passed} passed, {total.failed} failed, {total.skipped} skipped", flush=True)
    return 1 if total.failed or not total.passed else 0


if __name__ == "__main__":
    sys.exit(main())
