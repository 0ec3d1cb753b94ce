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
        timeout=20 * harness.SLOW,
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
    p = isle.start("run", "--timeout", "300", "--", "python3", "-c", TAKE, "300", prefix=limit)
    theirs = p.stdout.readline().split()
    ours = as_account(account, *limit, "python3", "-c", TAKE, "0").split()
    p.send_signal(signal.SIGINT)
    p.communicate(timeout=20 * harness.SLOW)
    assert int(theirs[0]) >= 20 and int(theirs[2]) >= 20, theirs  # a job has some
    assert int(ours[0]) >= 20 and int(ours[1]) >= 2 and int(ours[2]) >= 20, ours


def test_a_link_in_place_of_the_folder_of_locks_is_not_followed(isle, account):
    """Without XDG_RUNTIME_DIR it lies in /tmp; where fs.protected_symlinks is off, others could choose it."""
    folder = variants.HOME / "home/.mine"
    folder.mkdir(exist_ok=True)
    account.give(folder)
    run = variants.HOME / "linked"
    run.mkdir(exist_ok=True)
    (run / "isle").symlink_to(folder)
    r = isle.run("-l", "bash", "-c", "echo ran", env={"XDG_RUNTIME_DIR": str(run)})
    (run / "isle").unlink()
    assert r.status == 125 and b"ran" not in r.out and str(run / "isle").encode() in r.err
    assert list(folder.iterdir()) == []


def test_package_sets_that_others_may_put_there_are_refused(isle, account):
    """From inside, the owners of the host's files look alike: the launcher could not tell whose a set is."""
    with variants.folder("isle-sets-") as root:
        account.give(root)
        (root / "one").mkdir()
        account.give(root / "one")
        for mode, status in ((0o755, 0), (0o1777, 125), (0o775, 125)):
            root.chmod(mode)
            r = isle.run("--package-set", "one", "--", "echo", "ran", env={"SANDBOX_PACKAGES_ROOT": str(root)})
            assert r.status == status and (b"ran" in r.out) is (status == 0), (mode, r)
            assert not status or b"nobody but its owner" in r.err


def test_another_folder_of_locks_does_not_take_a_running_jobs_files(isle, account):
    """A cron job's isle has no XDG_RUNTIME_DIR, a session's has one, and logging out removes it."""
    code = "echo kept > f; echo up; read x; cat f"
    words = ("--timeout", "300", "--disk", "200", "--stdin", "-", "-l", "bash", "-c", code)
    p = isle.start("run", *words, stdin=subprocess.PIPE)
    try:
        assert p.stdout.readline() == b"up\n"
        run = variants.HOME / "other"
        run.mkdir(mode=0o700, exist_ok=True)
        account.give(run)
        assert isle.sh("echo other", "--disk", "200", env={"XDG_RUNTIME_DIR": str(run)}).lines == ["other"]
        assert p.communicate(b"go\n", timeout=20 * harness.SLOW)[0] == b"kept\n" and p.returncode == 0
    finally:
        p.kill()
        p.communicate()
    assert isle.sh("echo next", "--disk", "200").lines == ["next"]
    assert not list((variants.HOME / "home/.local/share/isle/data").rglob("f"))
