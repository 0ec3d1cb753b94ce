"""The table of variants is whole, and every result of a variant lists the downgrades that follow from it."""

from __future__ import annotations

import ast
import pathlib

import variants

TESTS = pathlib.Path(__file__).parents[1]


def named_tests() -> set[str]:
    return {
        node.name
        for folder in ("e2e", "attack")
        for path in (TESTS / folder).glob("test_*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


def test_table_has_every_case_and_attack():
    tests = named_tests()
    ids = {i for i in map(variants.id_of, tests) if i}
    assert ids - variants.table().keys() == set(), "a row is missing in variants.TABLE"
    assert variants.table().keys() - ids == set(), "no test"
    assert set(variants.UNISOLATED.split()) - ids == set(), "no test"
    assert set(variants.SINGLE) | set(variants.NEEDS) | set(variants.MORE) <= tests, "no test"


def test_downgrades(isle, host):
    """Those of the variant and nothing else; results.check_result() asks the same of every other result."""
    r = isle.sh("echo fine")
    assert r.reason == "ok" and r.lines == ["fine"]
    assert r.result["isolation"]["downgrades"] == list(variants.NOW.downgrades)
    level = "none" if variants.NOW.launcher == "none" else "degraded" if variants.NOW.downgrades else "full"
    assert r.result["isolation"]["level"] == level
