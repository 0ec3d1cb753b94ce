"""Every case and attack of ids.txt is a test or waits with a reason in pending.txt, never both or neither."""

from __future__ import annotations

import ast
import collections
import functools
import pathlib
import re

HERE = pathlib.Path(__file__).parent
NAMED = re.compile(r"test_(?:([A-H]\d\d)|([A-Z]{2,3})_(\d\d))(?:_|$)")


def rows(name: str) -> list[str]:
    text = (HERE / name).read_text()
    return [line for line in text.splitlines() if line.strip() and not line.startswith("#")]


@functools.cache
def ids_tested() -> set[str]:
    found = set()
    for folder in ("e2e", "attack"):
        for path in (HERE.parent / folder).glob("test_*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.FunctionDef) and (m := NAMED.match(node.name)):
                    found.add(m[1] or f"{m[2]}-{m[3]}")
    return found


def ids_pending() -> dict[str, str]:
    return {line.split()[0]: line.split(None, 1)[1] for line in rows("pending.txt")}


def test_names_of_files_are_unique():
    """pytest imports a file by its name alone, and the variants run both folders in one session."""
    folders = (HERE.parent / name for name in ("e2e", "attack"))
    count = collections.Counter(path.name for folder in folders for path in folder.glob("*.py"))
    assert [name for name, n in count.items() if n > 1 and name != "conftest.py"] == []


def test_ids_are_unique():
    for name in ("ids.txt", "pending.txt"):
        count = collections.Counter(line.split()[0] for line in rows(name))
        assert [i for i, n in count.items() if n > 1] == []


def test_every_id_is_tested_or_pending():
    ids = set(rows("ids.txt"))
    assert ids_tested() & ids_pending().keys() == set(), "both"
    assert ids - ids_tested() - ids_pending().keys() == set(), "neither"
    assert (ids_tested() | ids_pending().keys()) - ids == set(), "unknown"


def test_every_reason_is_given():
    assert [i for i, reason in ids_pending().items() if len(reason) < 10] == []


def test_every_payload_is_used():
    """A payload file without a test of its name is one that nobody runs."""
    for path in (HERE.parent / "attack/payloads").iterdir():
        assert path.name[:3] in ids_tested(), path.name
