"""Generated programs as snippets and as plain files: the same output, the same errors, the same end.

ISLE_TEST_SEED=python:1-17 runs that one program again (ISLE_TEST_SEED=python:2 all those of another base). ISLE_LONG=1:
thousands. docs/results.md says what differs on purpose; what the tests leave out is in `comparable`."""

from __future__ import annotations

import base64
import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import threading

import guest_driver
import harness
import pytest
import snippets_javascript
import snippets_python

GRAMMARS = {"python": snippets_python, "javascript": snippets_javascript}
SEED = os.environ.get("ISLE_TEST_SEED", "")
PROGRAMS = 10000 if harness.LONG else 300
WORKERS = 2
ROUNDS = 10  # a program may race with its own timers: what a busy machine decides is not so each time
SAMPLE = 400 if harness.LONG else 40
SHOWN = 5  # failures in full


def seeds(language: str, count: int) -> list[str]:
    if SEED.startswith(language + ":"):
        wanted = SEED.partition(":")[2]
        return [wanted] if "-" in wanted else [f"{wanted}-{i}" for i in range(count)]
    return [] if SEED else [f"1-{i}" for i in range(count)]


def job(language: str, seed: str) -> dict:
    made = GRAMMARS[language].program(seed)
    code, bare_name = made if isinstance(made, tuple) else (made, None)
    name = guest_driver.DEFAULT_NAME[language]
    return {
        "seed": seed,
        "language": language,
        "name": name,
        "bare_name": bare_name or name,
        "code": base64.b64encode(code).decode(),
    }


def run_batch(jobs: list[dict], folder: str, outcomes: list[dict]) -> None:
    script = guest_driver.guest_folder() / "batch.py"
    shutil.copy(os.path.join(os.path.dirname(__file__), "differential_batch.py"), script)
    guest = str(guest_driver.guest_folder() / "guest")
    process = subprocess.run(
        [*guest_driver.interpreter("python"), "-I", str(script), guest, folder],
        input="".join(json.dumps(j) + "\n" for j in jobs),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert process.returncode == 0, process.stderr
    outcomes += [json.loads(line) for line in process.stdout.splitlines()]


WORDED_ALIKE = re.compile("SyntaxError: |Warning: Detected unsettled top-level await")

# The frames of Node.js's loader, or of the wrapper in its place, at the end of a stack.
BELOW = re.compile(r"\n(?: +at |\d+: )[^\n]*(?:node:internal|/javascript\.cjs)[^\n]*")
# With an await at top level and no import or export, isle runs the body of a function and Node.js a module.
AWAITING = re.compile(r"\n +at [^\n]*snippet\.m?js[^\n]*")


def comparable(text: str, code: bytes = b"") -> str:
    """Without what is another in each run: addresses, process numbers."""
    text = BELOW.sub("", text)
    if "Require stack:" in text:  # how many frames there are decides which of the snippet are cut off
        text = re.sub(r"\n +at Object\.<anonymous>[^\n]*", "", text)
    text = re.sub(r"\[Symbol\(kURL\)\]: .*", "", text)  # what a resolve hook was asked for
    text = re.sub(r"node:events:\d+:\d+|\.\.\. \d+ lines matching|node:internal/\S+:\d+\n.*\n", "node:", text)
    if re.search(rb"(?:^|\xa8)\W*(const waited = )?await ", code, re.M):
        text = AWAITING.sub("", text).replace("file://", "").replace("snippet.mjs", "snippet.js")
    text = re.sub(r"0x[0-9a-f]{6,}", "0x", text)
    return re.sub(r"\(node:\d+\)|pid=\d+|(?<=Ran 1 test in )[0-9.]+", "", text)


# A snippet is compiled from memory, where the tokenizer words a few errors of a file's outer form differently.
WORDED_DIFFERENTLY = re.compile(
    r"^SyntaxError: (encoding problem: .*|source code cannot contain null bytes|unexpected EOF while parsing)$"
    "|Warning: Detected unsettled top-level await",
    re.M,
)


def frames_fit(outcome: dict, code: bytes) -> bool:
    """A good end has the answer null, a bad one that of the error; none came if the program left by os._exit()."""
    kinds = [kind for kind, _ in outcome["frames"]]
    if outcome["status"] == 0:
        return outcome["frames"] == [[guest_driver.RESULT, "null"]] or (kinds == [] and b"close" in code)
    return len(kinds) <= 1


def difference(outcome: dict, code: bytes) -> str | None:
    bare, guest = outcome["bare"], outcome["guest"]
    if "hangs" in (bare["status"], guest["status"]):
        return "hangs"
    if WORDED_DIFFERENTLY.search(bare["err"]) and WORDED_ALIKE.search(guest["err"]):
        bare = {**bare, "err": guest["err"]}
    for what in ("out", "err"):
        if comparable(bare[what], code) != comparable(guest[what], code):
            return what
    if bare["status"] != guest["status"]:
        return "status"
    return None if frames_fit(guest, code) else "frames"


def report(language: str, found: list[tuple[str, str, dict, bytes]], total: int) -> str:
    lines = [f"{len(found)} of {total} differ: {' '.join(f'{language}:{s}({w})' for s, w, *_ in found)}"]
    for seed, what, outcome, code in found[:SHOWN]:
        lines += [f"==== ISLE_TEST_SEED={language}:{seed}: {what} differs", code.decode("utf-8", "replace")[:6000]]
        for side in ("bare", "guest"):
            shown = {k: v[-2500:] if isinstance(v, str) else v for k, v in outcome[side].items()}
            lines.append(f"---- {side}: status {shown.get('status')} frames {shown.get('frames')}")
            lines += [shown["out"], "-- stderr", shown["err"]]
    return "\n".join(lines)


@pytest.mark.parametrize("language", GRAMMARS)
def test_as_a_file(language, tmp_path):
    """The wrapper alone, without a sandbox."""
    jobs = [job(language, seed) for seed in seeds(language, PROGRAMS)]
    codes = {j["seed"]: base64.b64decode(j["code"]) for j in jobs}
    again, found = jobs, []
    for _ in range(ROUNDS):
        outcomes: list[dict] = []
        threads = [
            threading.Thread(target=run_batch, args=(again[i::WORKERS], str(tmp_path / f"w{i}"), outcomes))
            for i in range(WORKERS)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(outcomes) == len(again)
        found = [(o["seed"], d, o, codes[o["seed"]]) for o in outcomes if (d := difference(o, codes[o["seed"]]))]
        again = [j for j in jobs if j["seed"] in {seed for seed, *_ in found}]
        if not again:
            break
    assert not found, report(language, found, len(jobs))


# The environment is the product's own for both; what they ask of it that a command and a snippet have apart is not run:
# where the file stands and what is imported from there, numbers of processes and descriptors.
OWN_PLACE = re.compile(
    rb"^\xef\xbb\xbf# coding|sys\.path|spec__|__file__|listdir|__dirname|module\.paths|readdirSync|made\."
    rb"|require\(__filename|argv|proc/self/fd|close\(|import\.meta|Worker\(|resolve\('\.'\)|require\.cache"
    rb"|module\.filename|getfile|orig_argv|openSync"
)


@pytest.mark.usefixtures("host")
@pytest.mark.parametrize("language", GRAMMARS)
def test_as_a_file_in_a_sandbox(isle, language, tmp_path):
    """The whole program, a sample: a snippet of /code, and a command whose file is in the workspace."""
    jobs = [
        j
        for seed in seeds(language, 3 * SAMPLE)
        if not OWN_PLACE.search(base64.b64decode((j := job(language, seed))["code"]))
    ]
    place = re.compile(r"/(code|workspace)/(?=snippet)")
    program = {"python": ["python3.13", "-u"], "javascript": ["node"]}[language]

    def compare(j: dict, n: int) -> str | None:
        code = base64.b64decode(j["code"])
        path = tmp_path / f"{j['seed']}-{j['bare_name']}"
        path.write_bytes(code)
        more = ("--env", "PYTHONHASHSEED=0", "--max-stdout-kb", "2048", "--max-stderr-kb", "2048")
        bare = isle.job(*more, "--file", f"{path}:{j['bare_name']}", "--", *program, j["bare_name"])
        named = tmp_path / f"{j['seed']}-{n}" / j["name"]
        named.parent.mkdir()
        named.write_bytes(code)
        snippet = isle.job(*more, str(named))
        sides = {
            name: {
                "out": place.sub("", r.stdout),
                "err": place.sub("", r.stderr),
                "status": r.status,
                "frames": [[guest_driver.RESULT, "null"]] if r.status == 0 else [],
            }
            for name, r in (("bare", bare), ("guest", snippet))
        }
        what = difference(sides, code)
        return what and report(language, [(j["seed"], what, sides, code)], 1)

    again, found = jobs[:SAMPLE], []
    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        for n in range(ROUNDS):
            told = list(pool.map(lambda j, n=n: compare(j, n), again))
            found = [text for text in told if text]
            again = [j for j, text in zip(again, told, strict=True) if text]
    assert not found, "\n".join(found[:SHOWN])
