"""Every attack is followed by the checks on the host and by a second, correct run."""

from __future__ import annotations

import harness
import pytest


@pytest.fixture(autouse=True)
def afterwards(request: pytest.FixtureRequest):
    if request.module.__name__ == "test_border":  # looks at the host itself, once for all its checks
        yield
        return
    isle = request.getfixturevalue("isle")
    request.getfixturevalue("host")
    yield
    r = isle.python("return 6 * 7")
    assert r.reason == "ok" and r.result["result"] == 42, r
    now = harness.variants.NOW
    level = "none" if now.launcher == "none" else "degraded" if now.downgrades else "full"
    assert r.result["isolation"]["level"] == level, r.result["isolation"]
    assert r.stdout == "" and r.stderr == "" and r.err == now.warning, "words that nobody said"
