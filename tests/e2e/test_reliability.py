"""kill -9 of front, service, launcher or several of them, at random moments under load."""

from __future__ import annotations

import random

import harness
import reliability


def test_kills_lose_no_job(isle):
    seed = random.randrange(1_000_000)
    outcome = reliability.run(1000 if harness.LONG else 20, seed)
    print(f"seed {seed}\n{outcome.text()}")
    assert outcome.wrong == [], f"seed {seed}\n{outcome.text()}"
    assert outcome.accepted > outcome.kills and outcome.states["ok"] > 0, outcome.text()
