"""The calls on the files of one session."""

from __future__ import annotations

import urllib.parse

from service import SESSIONS, Answer, Client


class Files:
    """The calls on one session's files."""

    def __init__(self, c: Client, session: str | None = None):
        """Of a new session, where none is named."""
        self.c = c
        self.session = session or c.post(SESSIONS, {}).data["session_id"]
        self.base = f"{SESSIONS}/{self.session}/files"

    def at(self, path: str, **query) -> str:
        text = f"{self.base}/{urllib.parse.quote(path)}"
        return text + ("?" + urllib.parse.urlencode(query) if query else "")

    def put(self, path: str, data: bytes = b"data", headers: dict | None = None, **query) -> Answer:
        return self.c.call("PUT", self.at(path, **query), body=data, headers=headers)

    def get(self, path: str, headers: dict | None = None, **query) -> Answer:
        return self.c.get(self.at(path, **query), headers=headers)

    def delete(self, path: str, headers: dict | None = None, **query) -> Answer:
        return self.c.call("DELETE", self.at(path, **query), headers=headers)

    def move(self, old: str, new: str, **more) -> Answer:
        return self.c.post(self.base + ":move", {"from": old, "to": new, **more})

    def list(self, path: str = ".", **query) -> Answer:
        return self.c.get(f"{self.base}?" + urllib.parse.urlencode({"path": path, **query}))

    def names(self, path: str = ".", **query) -> list[str]:
        return sorted(i["path"].removeprefix("/workspace/") for i in self.list(path, **query).data["items"])

    def sh(self, script: str) -> dict:
        return self.c.wait(self.c.submit({"command": ["bash", "-c", script], "session_id": self.session}))

    def python(self, code: str) -> dict:
        return self.c.python(code, session_id=self.session)
