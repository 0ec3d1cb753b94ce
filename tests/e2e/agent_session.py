"""A session as an agent has it: its tools, called over HTTP, their answers checked."""

from __future__ import annotations

import re

from service import SESSIONS, Answer
from session_files import Files

BASH_KEYS = [
    "success",
    "error",
    "stdout",
    "stderr",
    "exit_code",
    "signal",
    "timed_out",
    "reason",
    "truncated",
    "duration_ms",
    "job_id",
    "command",
]
ARTIFACT_KEYS = ["success", "error", "files", "markdown", "missing", "job_id"]
FILE_KEYS = ["path", "name", "url", "size_bytes", "content_type", "sha256", "description"]


class Agent(Files):
    """The tools of one session, a new one where none is named, and its files."""

    def post(self, tool: str, /, **arguments) -> Answer:
        return self.c.post(f"{SESSIONS}/{self.session}/tools/{tool}", arguments)

    def call(self, tool: str, /, **arguments) -> dict:
        """A call that is answered, whatever the tool says."""
        a = self.post(tool, **arguments)
        assert a.status == 200, (a.status, a.body[:1000])
        assert (a.data["error"] is None) is a.data["success"], a.data
        return a.data

    def ok(self, tool: str, /, **arguments) -> dict:
        r = self.call(tool, **arguments)
        assert r["success"], r
        return r

    def refused(self, tool: str, /, **arguments) -> str:
        """Why read, write or edit did nothing."""
        r = self.call(tool, **arguments)
        assert not r["success"] and r["error"] and set(r) <= {"success", "error", "path"}, r
        return r["error"]

    def edit(self, path: str, line: str, new: str, op: str = "replace") -> dict:
        return self.ok("edit", path=path, edits=[{"op": op, "line": line, "new": new}])

    def body(self, path: str) -> bytes:
        return self.get(path).body

    def bash(self, command: str, **arguments) -> dict:
        r = self.call("bash", command=command, **arguments)
        assert list(r) == BASH_KEYS, list(r)
        assert r["success"] is (r["reason"] == "ok")
        assert (r["job_id"] is None) is (r["reason"] is None)
        assert r["exit_code"] is None or r["signal"] is None
        assert r["timed_out"] is (r["reason"] in ("timeout", "caller_timeout"))
        return r

    def says(self, command: str, **arguments) -> str:
        """The output of a command that goes well, without the last line's end."""
        r = self.bash(command, **arguments)
        assert r["success"] and r["exit_code"] == 0, r
        return r["stdout"].removesuffix("\n")

    def artifact(self, *paths: str | dict, **arguments) -> dict:
        r = self.call("artifact", paths=list(paths), **arguments)
        assert list(r) == ARTIFACT_KEYS, list(r)
        assert all(list(f) == FILE_KEYS for f in r["files"])
        assert r["success"] or (r["files"], r["markdown"], r["missing"], r["job_id"]) == ([], "", [], None)
        return r


LINK = re.compile(r"(!?)\[((?:\\[!-/:-@\[-`{-~]|[^\\\[\]<>`*_&])*)\]\(([A-Za-z0-9:/%._~-]+)\)")


def links(markdown: str) -> list[tuple[bool, str, str]]:
    """(picture, text, address) of Markdown that is links and nothing else, a paragraph each."""
    found = []
    for part in markdown.split("\n\n") if markdown else []:
        m = LINK.fullmatch(part)
        assert m, part
        found.append((m[1] == "!", re.sub(r"\\(.)", r"\1", m[2]), m[3]))
    return found
