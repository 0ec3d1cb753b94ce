"""Keeps the tables of docs/ as the program has them: docs.py write|check REFERENCE.

REFERENCE is the build's isle-reference. A page that holds

    <!-- table: NAME (made by `ninja -C build docs`) -->
    ...
    <!-- end of table -->

has between these lines what `REFERENCE NAME` prints; the table `seccomp` is made here, from the policy. `write` puts it
there, `check` says what differs.
"""

from __future__ import annotations

import dataclasses
import difflib
import pathlib
import re
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent
POLICY = TOP / "src/guest/policy/job.policy"
TABLE = re.compile(r"(<!-- table: (\w+) \(made by `ninja -C build docs`\) -->\n).*?(<!-- end of table -->\n)", re.S)


@dataclasses.dataclass(frozen=True)
class Rule:
    section: str
    verdict: str
    calls: str
    condition: str
    why: str


def rules() -> list[Rule]:
    """The lines of the policy (mkpolicy.c is the judge of their form), with their sections and comments."""
    found: list[Rule] = []
    section, why = "", ""
    for line in POLICY.read_text().splitlines():
        if line.startswith("# ---- "):
            section = line.removeprefix("# ---- ")
        text, _, comment = line.partition("#")
        if not text.strip():
            continue
        # "the same" refers to the line above; so does "the same: with a new limit", but it says more
        comment = comment.strip()
        why = why if comment == "the same" else re.sub(r"^the same: ", f"{why}: ", comment)
        words, _, condition = text.strip().partition(" if ")
        verdict, *calls = words.split()
        if verdict in ("setup", "folder"):
            verdict += " " + calls.pop(0)
        found.append(Rule(section, verdict, " ".join(calls), condition.strip(), why))
    return found


def verdict_text(verdict: str) -> str:
    kind, _, answer = verdict.rpartition(" ")
    if kind == "setup":
        return f"{answer}; set-up may use it"
    if kind == "folder":
        return f"{answer} with a folder workspace, else allowed"
    return {"allow": "allowed", "NOTHING": "does nothing, answers 0"}.get(answer, answer)


def seccomp() -> str:
    """A table for each section of the policy."""
    lines: list[str] = []
    section = ""
    for rule in rules():
        if rule.section != section:
            section = rule.section
            lines += ["", f"### {section[0].upper()}{section[1:]}", ""]
            lines += ["| calls | answer | only if | why |", "|---|---|---|---|"]
        calls = " ".join(f"`{call}`" for call in rule.calls.split())
        condition = f"`{rule.condition}`" if rule.condition else ""
        lines.append(f"| {calls} | {verdict_text(rule.verdict)} | {condition} | {rule.why} |")
    return "\n".join(lines[1:]) + "\n"


def table(reference: str, name: str) -> str:
    if name == "seccomp":
        return seccomp()
    return subprocess.run([reference, name], stdout=subprocess.PIPE, text=True, check=True).stdout


def main() -> int:
    verb, reference = sys.argv[1:]
    tables = wrong = 0
    for page in sorted((TOP / "docs").glob("*.md")):
        old = page.read_text()
        new = TABLE.sub(lambda m: m[1] + table(reference, m[2]) + m[3], old)
        tables += len(TABLE.findall(old))
        if old == new:
            continue
        wrong += 1
        if verb == "write":
            page.write_text(new)
            print(f"wrote {page.relative_to(TOP)}")
        else:
            name = str(page.relative_to(TOP))
            sys.stdout.writelines(
                difflib.unified_diff(old.splitlines(True), new.splitlines(True), name, "as it should be")
            )
            print(f"{name} is not what the program says: ninja -C build docs")
    if not tables:
        print("no page has a table: the marks are wrong")
        return 1
    return 1 if verb != "write" and wrong else 0


if __name__ == "__main__":
    sys.exit(main())
