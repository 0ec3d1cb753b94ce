"""How much of isle's C code the tests have run: `./bootstrap test --only coverage` ends here.

coverage.py BUILD reset     forgets what was counted; the programs of BUILD (-Dcoverage=true) count from now on
coverage.py BUILD report    prints a table, writes BUILD/coverage/uncovered.txt, fails below the floors
coverage.py BUILD off       the programs count no longer

The counters are files below /run (tests/coverage/counters.c). In the files of COMPLETE every way out of every branch
must have been taken, too: an error that no test provokes is code that nobody has seen work. What cannot be reached is
listed in UNREACHED, with the reason; a listed line of which every way was taken fails as well.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import dataclasses
import fnmatch
import json
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FLOOR = 90.0

# The parts of the launcher with Bubblewrap, one of which runs inside it: a row of their own.
BWRAP = ("src/launcher/bwrap.c", "src/launcher/bwrap_child.c", "src/launcher/inside.c")
# What the table shows: name, files, how many lines of a hundred must have been run.
GROUPS = (
    ("launcher", ("src/launcher/*.c", *(f"!{name}" for name in BWRAP)), FLOOR),
    ("bwrap", BWRAP, FLOOR),
    ("plan", ("src/plan/*.c",), FLOOR),
    ("frames", ("src/codec/frame.c",), FLOOR),
    ("codec", ("src/codec/*.c",), 0.0),
    ("limits", ("src/model/limits.c", "src/model/job_limits.c", "src/model/lower.c"), FLOOR),
    ("model", ("src/model/*.c",), 0.0),
    ("policy", ("src/guest/policy/mkpolicy.c", "src/kernel/seccomp.c"), FLOOR),
    ("kernel", ("src/kernel/*.c",), 0.0),
    ("start", ("src/start/*.c",), 85.0),  # the rest is what only other kinds of account lead to
    ("base", ("src/base/*",), 0.0),
    ("all", ("src/*",), 0.0),
)
COMPLETE = ("src/launcher/*",)
UNREACHED = ROOT / "tests/coverage/unreached.txt"
RACE = "race: "  # begins the reason of what is taken sometimes
NOT_COUNTED = ("src/launcher/inject.c", "src/launcher/inject_request.c")  # part of the tests


@dataclasses.dataclass
class Line:
    count: int = 0
    functions: set[str] = dataclasses.field(default_factory=set)
    branches: list[int] = dataclasses.field(default_factory=list)


Source = dict[int, Line]


def matches(name: str, patterns: tuple[str, ...]) -> bool:
    """One of the patterns, and none of those with a "!" before them."""
    return any(fnmatch.fnmatch(name, p) for p in patterns) and f"!{name}" not in patterns


def folder_of(build: pathlib.Path) -> pathlib.Path:
    return pathlib.Path("/run/isle-coverage") / str(build).replace("/", "_")


def reset(build: pathlib.Path) -> None:
    folder = folder_of(build)
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(exist_ok=True)
    folder.mkdir()
    folder.chmod(0o1777)  # the first process of a program that makes its file may have any id
    for path in build.rglob("*.gcda"):  # but what the build itself has run stays: the generator of the policy
        if path.parent.name == "mkpolicy.p":
            continue
        path.unlink()


def programs(build: pathlib.Path) -> dict[str, pathlib.Path]:
    """By name. Those beside isle are hard links of the same programs."""
    found = {}
    for folder, folders, names in os.walk(build):
        folders[:] = [f for f in folders if not f.endswith(".p") and f != "coverage"]
        for name in names:
            path = pathlib.Path(folder, name)
            if not path.suffix and os.access(path, os.X_OK) and not path.is_symlink():
                found[name] = path
    return found


def dump(build: pathlib.Path) -> None:
    """Counters become gcov's files. One program after the other: they have objects in common."""
    known = programs(build)
    for path in sorted(folder_of(build).iterdir()):
        name = path.name.rpartition("-")[0]
        if name in known:
            environment = {"ISLE_COVERAGE_DUMP": str(path), "PATH": os.environ["PATH"]}
            subprocess.run([known[name]], env=environment, check=True, stdin=subprocess.DEVNULL)


def gcov(notes: pathlib.Path) -> list[dict]:
    done = subprocess.run(
        ["gcov", "--json-format", "--stdout", "--branch-probabilities", notes.name],
        cwd=notes.parent,
        capture_output=True,
        text=True,
        check=True,
    )
    files = []
    for text in done.stdout.splitlines():
        if text.startswith("{"):
            whole = json.loads(text)
            files += [file | {"cwd": whole["current_working_directory"]} for file in whole["files"]]
    return files


def collect(build: pathlib.Path) -> dict[str, Source]:
    sources: dict[str, Source] = collections.defaultdict(dict)
    plan = (build / "build.ninja").read_text()  # else notes of sources that are gone would count
    notes = [p for p in build.rglob("src/**/*.gcno") if f"{p.relative_to(build).with_suffix('.o')}" in plan]
    with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
        for files in pool.map(gcov, notes):
            for file in files:
                path = pathlib.Path(file["cwd"], file["file"]).resolve()
                if not path.is_relative_to(ROOT / "src") or not path.is_file():
                    continue  # a header of the system, or notes of a source that is gone
                source = sources[str(path.relative_to(ROOT))]
                for entry in file["lines"]:
                    add(source.setdefault(entry["line_number"], Line()), entry)
    return {name: source for name, source in sources.items() if name not in NOT_COUNTED}


def add(line: Line, entry: dict) -> None:
    """What one object says of a line. An inline function's branches are those of all objects together."""
    counts = [branch["count"] for branch in entry["branches"]]
    if entry.get("function_name"):
        line.functions.add(entry["function_name"])
    line.count += entry["count"]
    if len(counts) == len(line.branches):
        line.branches = [a + b for a, b in zip(line.branches, counts, strict=True)]
    else:
        line.branches += counts


def listed() -> dict[str, str]:
    """UNREACHED: "FILE FUNCTION: TEXT OF THE LINE" -> reason."""
    found: dict[str, str] = {}
    key = ""
    for line in UNREACHED.read_text().splitlines():
        if line.startswith("#") or not line.strip():
            continue
        if not line.startswith(" "):
            key = line
            found[key] = ""
        else:
            found[key] = f"{found[key]} {line.strip()}".strip()
    return found


def compare(missing: dict[str, list[tuple[int, str]]], sources: dict[str, Source]) -> list[str]:
    """What is wrong with the list, or with the tests."""
    allowed = listed()
    wrong = [f"{UNREACHED.name}: no reason: {key}" for key, reason in allowed.items() if not reason]
    seen = set()
    for name in (n for n in missing if matches(n, COMPLETE)):
        for number, what in missing[name]:
            function = ", ".join(sorted(sources[name][number].functions))
            key = f"{name} {function}: {what.partition(': ')[2]}"
            seen.add(key)
            if key not in allowed:
                wrong.append(f"{name}:{number} {function}: {what}")
    wrong += [
        f"{UNREACHED.name}: every way was taken, so it goes: {key}"
        for key, reason in allowed.items()
        if key not in seen and not reason.startswith(RACE)
    ]
    return wrong


def incomplete(name: str, source: Source) -> list[tuple[int, str]]:
    """Lines of a file that were not run, and branches with a way out that was never taken."""
    text = (ROOT / name).read_text().splitlines()
    text += [""] * (max(source, default=0) - len(text))  # shorter by now than when it was built
    found = []
    for number, line in sorted(source.items()):
        missed = sum(count == 0 for count in line.branches)
        if line.count == 0:
            found.append((number, "never run"))
        elif missed:
            found.append((number, f"{missed} of {len(line.branches)} ways not taken"))
    return [(number, f"{what}: {text[number - 1].strip()}") for number, what in found]


def table(sources: dict[str, Source]) -> tuple[list[str], int]:
    """The table, and how many of its rows are below their floor."""
    low = 0
    rows = [f"{'':<10} {'lines':>6} {'run':>6} {'':>8} {'branches':>9}"]
    for title, patterns, floor in GROUPS:
        names = [n for n in sources if matches(n, patterns)]
        lines = [line for n in names for line in sources[n].values()]
        ways = [count for line in lines for count in line.branches]
        run, taken = sum(line.count > 0 for line in lines), sum(count > 0 for count in ways)
        percent = 100 * run / max(len(lines), 1)
        bad = percent < floor
        low += bad
        row = f"{title:<10} {len(lines):>6} {run:>6} {percent:>6.1f} % {100 * taken / max(len(ways), 1):>7.1f} %"
        rows.append(row + (f"  below {floor:.0f} %" if bad else ""))
    return rows, low


def report(build: pathlib.Path) -> int:
    folder = build / "coverage"
    folder.mkdir(exist_ok=True)
    dump(build)
    sources = collect(build)
    rows, bad = table(sources)
    missing = {name: incomplete(name, sources[name]) for name in sorted(sources)}
    with (folder / "uncovered.txt").open("w") as out:
        out.writelines(f"{name}:{number}: {what}\n" for name in missing for number, what in missing[name])
    wrong = compare(missing, sources)
    bad += bool(wrong)
    rows.append(f"lines of the launcher that no test can finish: {len(listed())}; beside that list: {len(wrong)}")
    rows += wrong
    (folder / "table.txt").write_text("\n".join(rows) + "\n")
    print("\n".join(rows))
    print(f"all that was not run: {folder / 'uncovered.txt'}")
    return 1 if bad else 0


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("action", choices=("reset", "report", "off"))
    options = parser.parse_args()
    build = options.build.resolve()
    if options.action == "report":
        return report(build)
    if options.action == "reset":
        reset(build)
    else:
        shutil.rmtree(folder_of(build), ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
