"""Fixtures of the tests that run other people's programs."""

from __future__ import annotations

import pathlib
import tempfile
from collections.abc import Iterator

import compat
import harness
import pytest


@pytest.fixture(scope="session")
def packaged(isle: harness.Isle) -> harness.Isle:
    """An isle whose jobs may name the sets that these tests make."""
    compat.SETS.mkdir(parents=True, exist_ok=True)
    return harness.Isle(isle.data, {**isle.env, "SANDBOX_PACKAGES_ROOT": str(compat.SETS)})


@pytest.fixture(scope="session")
def bare(packaged: harness.Isle) -> Iterator[compat.Bare]:
    # pytest's own folders are closed to others; this one is for an ordinary user
    with tempfile.TemporaryDirectory(prefix="bare-", dir="/var/tmp") as folder:
        yield compat.Bare(packaged, pathlib.Path(folder))
