"""Jobs of ordinary users, with subordinate ids and without, against the user's own programs and other users."""

from __future__ import annotations

import pathlib
import signal
import subprocess

import harness
import pytest
import variants


@pytest.fixture(scope="module", params=["native-user", "native-bare"])
def account(request, alone):
    with variants.account(harness.ISLE, variants.VARIANTS[request.param]) as made:
        yield made


@pytest.fixture
def isle(account) -> harness.Isle:
    return harness.Isle(pathlib.Path("/nonexistent"), {"SANDBOX_WORKSPACE_ROOT": ""})


@pytest.fixture(autouse=True)
def afterwards(isle):
    yield
    assert isle.sh("echo fine").lines == ["fine"]


def as_account(account: variants.Account, *command: str) -> str:
    return subprocess.run(
        command,
        user=account.uid,
        group=account.gid,
        extra_groups=[],
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    ).stdout


# Says how many of each it can have, at most 999 (message queues: 9).
TAKE = """
import ctypes, os, signal, sys, time
libc = ctypes.CDLL(None)
n = [0, 0, 0]
while n[0] < 999 and libc.inotify_init1(0) >= 0:
    n[0] += 1
for i in range(9):  # one that may not be opened is made all the same
    n[1] += libc.mq_open(b"/isle-test-%d-%d" % (os.getpid(), i), 0o302, 0o600, None) >= 0
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGRTMIN})
while n[2] < 999 and libc.sigqueue(os.getpid(), signal.SIGRTMIN, None) == 0:
    n[2] += 1
print(*n, flush=True)
time.sleep(float(sys.argv[1]))
for i in range(9):
    libc.mq_unlink(b"/isle-test-%d-%d" % (os.getpid(), i))
"""


def test_a_job_leaves_the_users_programs_their_share(isle, account):
    """inotify, POSIX message queues and queued signals are counted per user, across all namespaces of the user's."""
    limit = ["prlimit", "--sigpending=200"]
    p = isle.start("run", "--", "python3", "-c", TAKE, "30", prefix=limit)
    theirs = p.stdout.readline().split()
    ours = as_account(account, *limit, "python3", "-c", TAKE, "0").split()
    p.send_signal(signal.SIGINT)
    p.communicate(timeout=20)
    assert int(theirs[0]) >= 20 and int(theirs[2]) >= 20, theirs  # a job has some
    assert int(ours[0]) >= 20 and int(ours[1]) >= 2 and int(ours[2]) >= 20, ours
