"""Fixtures of the end-to-end and attack tests: one data folder, one set of canaries, a picture of the host.

ISLE_VARIANT chooses whose `isle` it is, and which tests run (e2e/variants.py).
"""

from __future__ import annotations

import os
import pathlib
import signal
import sys
from collections.abc import Iterator

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent / "e2e"))

import canaries
import harness
import leftovers
import variants
from service import Service, serving
from tool_teams import blue, emptied, red  # noqa: F401 (fixtures)

# Started in the background or by nohup(1), a shell's children ignore these, and so would every isle of a test.
for ignored in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM):
    if signal.getsignal(ignored) == signal.SIG_IGN:
        signal.signal(ignored, signal.default_int_handler if ignored == signal.SIGINT else signal.SIG_DFL)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "long: minutes; runs with ISLE_LONG=1")


def of_part(item: pytest.Item) -> bool:
    """ISLE_TESTS=host: what is compared with the whole host, so that nothing may run beside it; apart: the rest."""
    part = os.environ.get("ISLE_TESTS", "")
    return not part or (part == "host") == ("host" in item.fixturenames)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = [item for item in items if variants.runs(item.name.partition("[")[0]) and of_part(item)]
    items[:] = here  # not "skipped": what does not belong to a variant is no test that could not run
    for item in items:
        if item.get_closest_marker("long") and not harness.LONG:
            item.add_marker(pytest.mark.skip(reason="ISLE_LONG=1 runs this"))


@pytest.fixture(scope="session")
def alone():
    """The canaries have fixed addresses: one test session at a time on a host."""
    with harness.only_session("isle-tests"):
        yield


@pytest.fixture(scope="session")
def isle(alone) -> harness.Isle:
    if os.geteuid() != 0:
        pytest.fail("these tests need host root")
    if not harness.ISLE.is_file():
        pytest.fail(f"{harness.ISLE} is not built (set ISLE)")
    if not harness.RUNTIME_ROOT.is_dir():
        pytest.fail(f"{harness.RUNTIME_ROOT} is missing (set SANDBOX_RUNTIME_ROOT)")
    with variants.account(harness.ISLE), variants.container(), harness.data_folder() as data:
        yield harness.Isle(data, dict(canaries.Canary.ENV))


if variants.NOW.user or variants.NOW.container:

    @pytest.fixture(scope="session", autouse=True)
    def whose(isle: harness.Isle) -> harness.Isle:
        """Also for tests that start services of their own: without account and container they would be root's."""
        return isle


if variants.NOW.user:

    @pytest.fixture
    def tmp_path():
        """As pytest's, where the account can work in it."""
        with variants.folder("isle-tmp-") as made:
            yield made


@pytest.fixture(scope="module")
def service(isle: harness.Isle, request: pytest.FixtureRequest) -> Iterator[Service]:
    """One for all tests of a module, which may name its SERVICE_SETTINGS."""
    assert isle
    with serving(getattr(request.module, "SERVICE_SETTINGS", {})) as s:
        yield s


@pytest.fixture(scope="session")
def canary(alone) -> canaries.Canary:
    with canaries.Canary.planted() as c:
        yield c


@pytest.fixture(scope="session")
def noisy() -> frozenset[str]:
    return leftovers.noisy_sysctls()


@pytest.fixture
def host(isle: harness.Isle, canary: canaries.Canary, noisy: frozenset[str]):
    """The host before; after the test everything must be as it was."""
    h = leftovers.Host(isle, canary, noisy)
    yield h
    h.check()
