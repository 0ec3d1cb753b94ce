"""The same program as a job and bare, and what differs.

Bare is the same interpreter of the same runtime root, started by an ordinary user under Bubblewrap with nothing but
namespaces: no filter, no Landlock, no limits of memory, processes or file size. What fails on both sides says nothing
about isle; what differs must be on a list of expectations with its reason, and what is on the list must differ.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable

import harness
import results

HERE = pathlib.Path(__file__).parent
CACHE = pathlib.Path(os.environ.get("ISLE_DATA", "/var/lib/isle")) / "cache" / "compat"
SETS = CACHE / "sets"
BARE_UID = 64000
TIMEOUT_S = 600
TRIES = 6
WORKERS = 4
# Mostly waits and sleeps: more than a CPU's worth of them go side by side.
LIMITS = ("--memory", "1024", "--cpus", str(min(2, len(os.sched_getaffinity(0)))))


def make_set(name: str, fill: Callable[[pathlib.Path], None]) -> str:
    """The name of a package set that `fill` makes, once; half of one is never seen."""
    SETS.mkdir(parents=True, exist_ok=True)
    if not (SETS / name).is_dir():
        with tempfile.TemporaryDirectory(prefix="making-", dir=CACHE) as folder:
            made = pathlib.Path(folder) / "set"
            made.mkdir()
            fill(made)
            made.chmod(0o755)
            made.rename(SETS / name)
    return name


def fetch(*command: str | os.PathLike, cwd: pathlib.Path, env: dict[str, str] | None = None) -> None:
    """Runs what downloads; without the network the test fails, and says so. A mirror may fail once."""
    for pause_s in (3, 15, None):
        done = subprocess.run(
            command, cwd=cwd, capture_output=True, text=True, env=os.environ | (env or {}), check=False
        )
        if done.returncode == 0:
            return
        if pause_s:
            time.sleep(pause_s)
    said = (done.stdout + done.stderr)[-1500:]
    raise AssertionError(f"what the test runs could not be fetched: {' '.join(map(str, command))}\n{said}")


# ---------------------------------------------------------------------------------------------------------
# The two sides


@dataclasses.dataclass(frozen=True)
class Outcome:
    kind: str  # pass, skip, fail; lost: it began and took its interpreter with it; absent
    text: str = ""
    ms: int = 0


ABSENT = Outcome("absent")
Outcomes = dict[str, Outcome]


def read_log(text: str) -> Outcomes:
    found: Outcomes = {}
    ended = False
    for line in text.splitlines():
        row = json.loads(line)
        if "begin" in row:
            found.setdefault(row["begin"], Outcome("lost"))
        elif "end" in row:
            ended = True
        else:
            found[row["id"]] = Outcome(row["outcome"], row.get("text", ""), row.get("ms", 0))
    if not ended:
        found["the whole"] = Outcome("lost", "it did not come to its end")
    return found


def as_job(isle: harness.Isle, sets: Iterable[str], files: Iterable[pathlib.Path], argv: list[str]) -> Outcomes:
    """Runs argv, which writes its log to the file that stands for OUT in it."""
    options = [word for name in sets for word in ("--package-set", name)]
    options += [word for file in files for word in ("--file", str(file))]
    with tempfile.TemporaryDirectory(prefix="compat-") as out:
        r = isle.job(
            *LIMITS,
            *options,
            *("--timeout", str(TIMEOUT_S), "--artifact", "out.jsonl?", "--output-dir", out, "--"),
            *[word.replace("OUT", "/workspace/out.jsonl") for word in argv],
            within=TIMEOUT_S + 60,
        )
        log = pathlib.Path(out) / "out.jsonl"
        if not log.is_file():
            return {"the whole": Outcome("lost", f"{r.reason}: {r.result['error']}; {r.stderr[-500:]}")}
        return read_log(log.read_text())


class Bare:
    """The runtime root under Bubblewrap, with the files of /etc and the environment that a job has."""

    def __init__(self, isle: harness.Isle, folder: pathlib.Path):
        self.isle, self.folder = isle, folder
        self.etc = folder / "etc"
        code = "cd /; exec tar --dereference --exclude=etc/ssl/private -cf /workspace/etc.tar etc"
        r = isle.sh(code, "--artifact", "etc.tar", "--output-dir", folder)
        assert r.status == 0, r.result
        subprocess.run(["tar", "-xf", folder / "etc.tar", "-C", folder], check=True)
        folder.chmod(0o755)

    def environment(self, sets: Iterable[str]) -> dict[str, str]:
        options = [word for name in sets for word in ("--package-set", name)]
        plan = results.strict_json(self.isle.run("--show-plan", "--json", *LIMITS, *options, "--", "true").out)
        return dict(word.split("=", 1) for word in plan["environment"])

    def run(self, sets: Iterable[str], files: Iterable[pathlib.Path], argv: list[str]) -> Outcomes:
        work = pathlib.Path(tempfile.mkdtemp(prefix="bare-", dir=self.folder))
        try:
            for file in files:
                shutil.copy(file, work)
            for path in (work, *work.iterdir()):
                os.chown(path, BARE_UID, BARE_UID)
            command = [word.replace("OUT", "/workspace/out.jsonl") for word in argv]
            done = subprocess.run(
                [*self.command(work, sets), "timeout", "-k", "5", str(TIMEOUT_S), *command],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
            )
            log = work / "out.jsonl"
            if not log.is_file():
                said = done.stderr[-500:].decode(errors="replace")
                return {"the whole": Outcome("lost", f"status {done.returncode}; {said}")}
            return read_log(log.read_text())
        finally:
            shutil.rmtree(work, ignore_errors=True)

    def command(self, work: pathlib.Path, sets: Iterable[str]) -> list[str]:
        root = harness.RUNTIME_ROOT.resolve()
        user = ["setpriv", "--reuid", str(BARE_UID), "--regid", str(BARE_UID), "--clear-groups"]
        box = ["bwrap", "--unshare-all", "--uid", "1000", "--gid", "1000", "--hostname", harness.HOSTNAME, "--clearenv"]
        box += ["--die-with-parent", "--tmpfs", "/", "--ro-bind", f"{root}/usr", "/usr", "--ro-bind", self.etc, "/etc"]
        for link in ("bin", "sbin", "lib", "lib64"):
            box += ["--symlink", f"usr/{link}", f"/{link}"]
        for i, name in enumerate(sets):
            box += ["--ro-bind", SETS / name, f"/packages/{i}"]
        box += ["--tmpfs", "/tmp", "--dev", "/dev", "--proc", "/proc", "--bind", work, "/workspace"]
        for name, value in self.environment(sets).items():
            box += ["--setenv", name, value]
        box += ["--remount-ro", "/", "--chdir", "/workspace"]
        return [*user, "prlimit", "--nofile=1024:1024", *map(str, box)]


# ---------------------------------------------------------------------------------------------------------
# What is expected to differ


class Expected:
    """A file of groups: a line `= reason`, below it the ids of tests. `~ id`: it may differ or not."""

    def __init__(self, path: pathlib.Path):
        self.must: dict[str, str] = {}
        self.may: dict[str, str] = {}
        reason = ""
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if line.startswith("= "):
                reason = line[2:].strip()
            elif line.strip() and not line.startswith("#"):
                name = line.removeprefix("~ ").strip()
                assert reason, f"{path.name}:{number}: no reason above"
                assert name not in self.must and name not in self.may, f"{path.name}:{number}: twice"
                (self.may if line.startswith("~ ") else self.must)[name] = reason


def differences(job: Outcomes, bare: Outcomes) -> dict[str, str]:
    found = {}
    for name in job.keys() | bare.keys():
        j, b = job.get(name, ABSENT), bare.get(name, ABSENT)
        if j.kind != b.kind:
            found[name] = f"bare: {b.kind} {b.text}; as a job: {j.kind} {j.text}"
    return found


@dataclasses.dataclass
class Verdict:
    """One program: what nobody expects, and what is expected and does not come."""

    ran: int = 0
    differ: dict[str, str] = dataclasses.field(default_factory=dict)
    unexpected: dict[str, str] = dataclasses.field(default_factory=dict)
    missing: set[str] = dataclasses.field(default_factory=set)

    def check(self) -> None:
        wrong = [f"{name}: {what}" for name, what in sorted(self.unexpected.items())]
        wrong += [f"{name}: on the list of differences, and is none" for name in sorted(self.missing)]
        assert not wrong, "\n".join(wrong)
        assert self.ran > 0, "nothing ran"


def compare(run: Callable[[bool], Outcomes], expected: Expected, mine: Callable[[str], bool]) -> Verdict:
    """run(True) is the job, run(False) bare; `mine` says which ids of the list belong to it.

    A test that waits for a moment fails now and then on a busy machine: what looks odd must look odd again.
    """
    must = {name for name in expected.must if mine(name)}
    verdict = Verdict()
    for attempt in range(TRIES):
        job, bare = run(True), run(False)
        found = differences(job, bare)
        unexpected = {n: w for n, w in found.items() if n not in must and n not in expected.may}
        missing = must - found.keys()
        if attempt:
            unexpected = {n: w for n, w in unexpected.items() if n in verdict.unexpected}
            missing &= verdict.missing
        verdict = Verdict(len(job), found, unexpected, missing)
        if not unexpected and not missing:
            break
    return verdict


def side_by_side(names: Iterable[str], one: Callable[[str], Verdict]) -> dict[str, Verdict]:
    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        futures = {name: pool.submit(one, name) for name in names}
    return {name: future.result() for name, future in futures.items()}
