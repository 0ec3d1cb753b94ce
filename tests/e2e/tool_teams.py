"""Two teams with code tools, for tests of a service of their module. conftest.py has the fixtures for all."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from service import API, Client, Service

TOOLS = f"{API}/tools"


def tool(
    name: str,
    code: str = "return 1",
    *parameters: dict,
    language: str = "python",
    config: dict | None = None,
    **fields: object,
) -> dict:
    """A definition; `config` is more of its code_config."""
    takes = {"parameters": list(parameters)} if parameters else {}
    return {"name": name, **takes, "code_config": {"language": language, "code": code, **(config or {})}, **fields}


def save(c: Client, name: str, *words, **fields) -> dict:
    """One of these, made: the tool."""
    a = c.post(TOOLS, tool(name, *words, **fields))
    assert a.status == 201, a
    return a.data


def every(c: Client, **query: object) -> list[dict]:
    """What its team sees, page after page."""
    found, cursor = [], ""
    while cursor is not None:
        words = [f"{k}={v}" for k, v in query.items()] + ([f"cursor={cursor}"] if cursor else [])
        page = c.get(f"{TOOLS}?{'&'.join(words)}" if words else TOOLS).data
        found += page["items"]
        cursor = page["next_cursor"]
    return found


def empty(*clients: Client) -> None:
    """Their teams' own tools go."""
    for c in clients:
        for t in every(c):
            if t["permission"] == "owner":
                assert c.call("DELETE", f"{TOOLS}/{t['id']}").data == {"id": t["id"]}


@pytest.fixture(scope="module")
def red(service: Service) -> Iterator[Client]:
    with service.client(service.new_key("red")) as c:
        yield c


@pytest.fixture(scope="module")
def blue(service: Service) -> Iterator[Client]:
    with service.client(service.new_key("blue")) as c:
        yield c


@pytest.fixture
def emptied(red: Client, blue: Client) -> Iterator[None]:
    """Afterwards neither has any tool."""
    yield
    empty(red, blue)
