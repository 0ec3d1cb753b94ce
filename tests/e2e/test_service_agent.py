"""What an agent does in a session: read, write and edit, over HTTP."""

from __future__ import annotations

import pytest
from service import Answer
from session_files import Files


class Agent(Files):
    """The tools of one session."""

    def tool(self, name: str, **arguments) -> Answer:
        return self.c.post(f"{self.base.removesuffix('/files')}/tools/{name}", arguments)

    def ok(self, name: str, **arguments) -> dict:
        d = self.tool(name, **arguments).data
        assert d["success"] is True and d["error"] is None, d
        return d

    def refused(self, name: str, **arguments) -> str:
        d = self.tool(name, **arguments).data
        assert d["success"] is False, d
        return d["error"]


@pytest.fixture
def agent(service):
    return Agent(service)


def test_there_and_back(agent):
    d = agent.ok("write", path="a/b.py", content="def f():\n    return 1\n")
    assert (d["path"], d["created"], d["bytes"], d["total_lines"]) == ("/workspace/a/b.py", True, 22, 2)
    r = agent.ok("read", path="a/b.py")
    assert r["content"] == f"1#{d['tag']}| def f():\n2#{d['tag']}|     return 1\n"
    e = agent.ok("edit", path="a/b.py", edits=[{"op": "replace", "line": f"2#{d['tag']}", "new": "    return 2"}])
    assert agent.get("a/b.py").body == b"def f():\n    return 2\n"
    print(e)
    print(agent.refused("read", path="none"))
    print(agent.tool("read", path="none", x=1).body)
