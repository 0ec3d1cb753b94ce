"""`isle run` by ordinary users: their folders, several at once, what a killed one leaves, what they lack."""

from __future__ import annotations

import concurrent.futures
import contextlib
import os
import pathlib
import shutil
import signal

import harness
import leftovers
import pytest
import variants

SLEEP = ("--timeout", "300", "--disk", "200", "-l", "bash", "-c", "echo x > f; chmod 000 .; echo up; sleep 300")


def made_for(kind: str):
    with variants.account(harness.ISLE, variants.VARIANTS[kind]) as account:
        yield account
        # nobody but isle ran as it
        assert harness.until(lambda: not running(account), 20), running(account)


@pytest.fixture(scope="module", params=["native-user", "native-bare"])
def account(request, alone):
    yield from made_for(request.param)


@pytest.fixture
def isle(account) -> harness.Isle:
    """With no setting that names a folder."""
    there = harness.Isle(pathlib.Path("/nonexistent"), {"SANDBOX_WORKSPACE_ROOT": ""})
    return there


def running(account: variants.Account) -> list[leftovers.Process]:
    """Processes of the account and of its subordinate ids."""
    last = max(account.uid, subordinate(account) + 65535)
    first = subordinate(account) or account.uid
    return [
        p for p in leftovers.processes().values() if p.state != "Z" and (p.uid == account.uid or first <= p.uid <= last)
    ]


def subordinate(account: variants.Account) -> int:
    for line in pathlib.Path("/etc/subuid").read_text().splitlines():
        if line.startswith(account.name + ":"):
            return int(line.split(":")[1])
    return 0


def data_of(account: variants.Account) -> pathlib.Path:
    return variants.HOME / "home/.local/share/isle/data"


def left(account: variants.Account) -> list[str]:
    return [
        str(p) for p in data_of(account).rglob("*") if p.name not in ("once", "kept") and p.parent != data_of(account)
    ]


def test_folders(isle, account):
    r = isle.sh("echo fine", "--disk", "200")
    assert r.lines == ["fine"] and left(account) == []
    assert data_of(account).stat().st_uid == account.uid
    locks = variants.HOME / "run/isle"
    assert locks.stat().st_uid == account.uid and (locks / "0.lock").read_text() == ""


def test_folder_of_locks_without_xdg(isle, account):
    """In /tmp under a name that others could take first: taken, it is refused."""
    place = pathlib.Path(f"/tmp/isle-{account.uid}")
    env = {"XDG_RUNTIME_DIR": ""}
    try:
        assert isle.sh("echo fine", env=env).lines == ["fine"]
        assert place.stat().st_uid == account.uid
        os.chown(place, 0, 0)
        r = isle.run("-l", "bash", "-c", "echo ran", env=env)
        assert r.status == 125 and b"must belong to you" in r.err and b"ran" not in r.out
        os.chown(place, account.uid, account.gid)
        place.chmod(0o777)
        r = isle.run("-l", "bash", "-c", "echo ran", env=env)
        assert r.status == 125 and b"writable by nobody else" in r.err
    finally:
        shutil.rmtree(place, ignore_errors=True)


def test_side_by_side(isle, account):
    """They share the account's ids, not workspaces or processes."""
    code = "echo $$ > f; sleep 0.3; cat f; ls; ps -A -o pid= > f; wc -l < f"
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        runs = list(pool.map(lambda _: isle.sh(code, "--disk", "200"), range(4)))
    assert all(r.reason == "ok" for r in runs)
    assert len({r.stdout for r in runs}) == 1, [r.stdout for r in runs]
    assert left(account) == []


@contextlib.contextmanager
def started(isle: harness.Isle):
    p = isle.start("run", *SLEEP)
    try:
        assert p.stdout.readline() == b"up\n", p.stderr.read()
        yield p
    finally:
        p.kill()
        p.communicate()


def named(account: variants.Account, *names: str) -> list[int]:
    return [p.pid for p in running(account) if p.name in names]


@pytest.mark.parametrize(
    "names",
    [["isle"], ["isle-service"], ["isle-launcher"], ["isle-service", "isle-launcher"], ["isle", "isle-service"]],
)
def test_killed(isle, account, names):
    """Whoever is killed: no process stays, and no file after the next start at the latest."""
    with started(isle) as p:
        for pid in named(account, *names):
            with contextlib.suppress(ProcessLookupError):  # it ended with the one before
                os.kill(pid, signal.SIGKILL)
        p.wait(20 * harness.SLOW)
        assert harness.until(lambda: not running(account), 10), running(account)
    assert isle.sh("echo next").lines == ["next"]
    assert left(account) == []
    assert [p for p in (variants.HOME / "run/isle").iterdir() if p.read_text()] == []


def test_interrupted(isle, account):
    with started(isle) as p:
        p.send_signal(signal.SIGINT)
        assert p.wait(20 * harness.SLOW) == 130
    assert harness.until(lambda: not running(account), 10)
    assert left(account) == []


def test_no_new_privs(isle, account):
    """newuidmap(1) has no power then: one id, and the result says so."""
    r = isle.sh("cat /proc/self/uid_map", prefix=["setpriv", "--no-new-privs"])
    assert r.lines[0].split() == ["1000", "0", "1"]
    assert "single_uid" in r.result["isolation"]["downgrades"]


def test_every_rung(isle, account):
    """The job's own user namespace by each way of making one, and without."""
    for refused, lost in ((2, []), (6, ["no_user_namespace"])):
        r = isle.sh(
            "id -u; grep CapEff /proc/self/status; unshare -U true", env={"ISLE_TEST_REFUSE_RUNGS": str(refused)}
        )
        assert r.reason == "error" and r.lines[1].split()[1] == "0" * 16, r.result
        assert [d for d in r.result["isolation"]["downgrades"] if d == "no_user_namespace"] == lost
    r = isle.run(
        "-l", "bash", "-c", "echo ran", env={"ISLE_TEST_REFUSE_RUNGS": "6", "SANDBOX_REQUIRE_USER_NAMESPACE": "true"}
    )
    assert r.status == 125 and b"SANDBOX_REQUIRE_USER_NAMESPACE" in r.err and b"ran" not in r.out


def test_limits_without_groups(isle, account):
    """Each process has what the job as a whole cannot be held to; the count of processes is the job's."""
    if account.groups:
        return  # those hold
    r = isle.python("b = bytearray(300 << 20)", "--memory", "128")
    assert r.reason == "error" and "MemoryError" in r.result["error"], r.result
    assert isle.js("return Buffer.alloc(40 << 20).length", "--memory", "256").result["result"] == 40 << 20
    r = isle.sh("while :; do :; done", "--cpu-seconds", "1", "--timeout", "60", within=80)
    assert r.reason == "error" and r.result["signal"] == signal.SIGXCPU, r.result
    bomb, told = "f(){ f | f & }; f; sleep 200", "Resource temporarily unavailable"
    words = (["bash", "-c", bomb], "--pids", "32")
    r, _ = harness.in_time(isle.command, *words, seconds=4, ready=lambda r: told in r.stderr)
    assert r.reason in ("timeout", "error") and told in r.stderr, r.result
    assert harness.until(lambda: not running(account), 10)


def test_output_dir_of_somebody_else(isle):
    """Told before the job runs; an artifact below a folder of the user's in it would be written."""
    words = ("--output-dir", "/usr", "-l", "bash", "-c", "echo ran; echo x > a; mkdir b; echo x > b/a")
    r = isle.run("--artifact", "a", *words)
    assert r.status == 125 and r.out == b"" and b"--output-dir: /usr: Permission denied" in r.err, r
    assert isle.run("--artifact", "b/a", *words).out == b"ran\n"


def test_package_set_for_its_owner_alone(isle, account, tmp_path):
    """isle, who is that owner, could open it, and jobs could not."""
    for place in (tmp_path, *tmp_path.parents[:2]):
        place.chmod(0o755)
    (tmp_path / "one").mkdir(0o700)
    for place in (tmp_path, tmp_path / "one"):
        os.chown(place, account.uid, account.gid)
    env = {"SANDBOX_PACKAGES_ROOT": str(tmp_path)}
    r = isle.sh("echo ran", "--package-set", "one", env=env)
    assert r.reason == "install_failed" and "not readable by all" in r.result["error"]
    (tmp_path / "one").chmod(0o755)
    assert isle.sh("echo ran", "--package-set", "one", env=env).lines == ["ran"]


def test_root_is_not_needed_for_the_plan(isle):
    r = isle.run("--show-plan", "--", "true")
    assert r.status == 0 and b"own-mounts" in r.out and (b"newuidmap" in r.out or b"single-map" in r.out)


def test_files_are_the_users(isle, account):
    """What is read and written outside is so with the user's rights alone."""
    with variants.folder("isle-users-") as folder:
        closed = folder / "closed"
        closed.write_text("secret")
        closed.chmod(0o600)
        os.chown(closed, 0, 0)
        r = isle.run("--file", str(closed), "--", "cat", "closed")
        assert r.status == 125 and b"Permission denied" in r.err and b"secret" not in r.out
        out = folder / "out"
        out.mkdir()
        wanted = ("--artifact", "f", "--output-dir", str(out))
        r = isle.run(*wanted, "--", "touch", "f")
        assert r.status == 125 and b"Permission denied" in r.err  # the folder is root's
        variants.give(out)
        isle.sh("echo made > f", *wanted)
        (made,) = [p for p in out.rglob("f") if p.is_file()]
        assert made.stat().st_uid == account.uid and made.read_text() == "made\n"


def test_groups_are_removed(isle, account):
    counted = isle.sh("echo fine").result["usage"]["cpu_ms"]
    assert (counted is None) == (account.groups == [])
    assert [d for g in account.groups for d in (g / "isle").iterdir() if d.is_dir()] == []
