"""What no compiler says: banned functions, files that grew too long, notes of what is left to do."""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Files are about 600 lines at most; what is past this has surely more than one idea in it.
MAX_FILE_LINES = 600

# What to use instead is part of the message.
BANNED = {
    "gets": "fgets or read",
    "strcpy": "a bounded copy",
    "strcat": "struct buf",
    "strncpy": "memcpy with a checked length",
    "strncat": "struct buf",
    "sprintf": "snprintf",
    "vsprintf": "vsnprintf",
    "atoi": "strtol with its checks",
    "atol": "strtol with its checks",
    "atoll": "strtoll with its checks",
    "strtok": "strcspn",
    "alloca": "a bounded array or the heap",
    "setjmp": "a return value",
    "longjmp": "a return value",
    "system": "posix_spawn or execve with an argv",
    "popen": "posix_spawn with an argv",
    "tmpnam": "mkostemp or O_TMPFILE",
    "tempnam": "mkostemp or O_TMPFILE",
    "mktemp": "mkostemp or O_TMPFILE",
    "rand": "getrandom",
    "random": "getrandom",
    "readdir_r": "readdir",
    "usleep": "clock_nanosleep",
}
CALL = re.compile(r"(?<![\w.>])(" + "|".join(BANNED) + r")\s*\(")
# What is left to do belongs where it is tracked; a note in the text is seen by nobody.
LEFTOVER = re.compile(r"\b(TODO|FIXME|XXX)\b")
COMMENT = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)


def blanked(match: re.Match[str]) -> str:
    """Comments and literals become blanks, line for line."""
    return re.sub(r"[^\n]", " ", match.group())


def main() -> int:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "src/*.c", "src/*.h"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    wrong = []
    for name in sorted(listed.split()):
        path = ROOT / name
        if not path.is_file():
            continue
        text = path.read_text()
        lines = text.count("\n")
        if lines > MAX_FILE_LINES:
            wrong.append(f"{name}: {lines} lines; split it by idea (at most {MAX_FILE_LINES})")
        for number, line in enumerate(text.split("\n"), 1):
            wrong += [f"{name}:{number}: {word} was left" for word in LEFTOVER.findall(line)]
        for number, line in enumerate(COMMENT.sub(blanked, text).split("\n"), 1):
            wrong += [f"{name}:{number}: {word}() is banned: use {BANNED[word]}" for word in CALL.findall(line)]
    print("\n".join(wrong) or "nothing banned")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
