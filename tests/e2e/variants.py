"""Which tests run again with another launcher, as another user or in a container, and how that is set up.

ISLE_VARIANT names the variant of a whole test session; unset, everything runs as host root with the native launcher.
In any other variant only those tests run whose verdict depends on what the variant changes: TABLE says for each case
and attack on what it depends, and what it needs of the host. A test without an id is about the front, the guests or
the start, and runs once (MORE names the exceptions).

Adding a variant: one row in VARIANTS. A launcher's row says the words that follow `isle run`; harness.Isle puts them
there and results.check_result() expects the launcher's name in every result.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import pathlib
import pwd
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from typing import ClassVar

ROOT = pathlib.Path(__file__).resolve().parents[2]


@dataclasses.dataclass(frozen=True)
class Variant:
    name: str
    launcher: str = "native"
    options: tuple[str, ...] = ()  # behind `isle run`
    user: str = ""  # "range": of an account with subordinate ids and groups of its own; "bare": with neither
    container: bool = False
    downgrades: tuple[str, ...] = ()  # that every result lists, and no other
    settings: tuple[tuple[str, str], ...] = ()  # environment variables
    warning: bytes = b""  # that `isle run` begins with

    @property
    def changes(self) -> str:
        """Letters of TABLE: tests that depend on one of them run."""
        return ("L" if self.launcher != "native" else "") + ("U" if self.user or self.container else "")


NO_GROUPS = ("no_cgroup_memory", "no_cgroup_pids", "no_cgroup_cpu", "no_cpu_time")
VARIANTS = {
    v.name: v
    for v in (
        Variant("native-root"),
        Variant("bwrap-root", launcher="bwrap", options=("--launcher", "bwrap")),
        Variant("native-user", user="range"),
        Variant("bwrap-user", launcher="bwrap", options=("--launcher", "bwrap"), user="range"),
        Variant("native-container", container=True),
        Variant("native-bare", user="bare", downgrades=(*NO_GROUPS, "single_uid")),
        # Without sandboxes, by hand: test_switches.py has the heart of it in every run.
        Variant(
            "none-root",
            launcher="none",
            downgrades=("network_host", "no_isolation"),
            settings=(("SANDBOX_FILESYSTEM_ISOLATION_ENABLED", "false"),),
            warning=b"isle: warning: this job is not isolated (SANDBOX_FILESYSTEM_ISOLATION_ENABLED=false)\n",
        ),
    )
}
NOW = VARIANTS[os.environ.get("ISLE_VARIANT") or "native-root"]

# ---------------------------------------------------------------------------------------------------------
# The table
#
# ID, on what the verdict depends (L the launcher, U the user or the container, - neither), what it needs ("groups":
# control groups that count and limit; "uids": more user ids of the host than one).

TABLE = """
A01 LU   A02 LU   A03 LU   A04 LU   A06 LU   A07 LU   A08 LU   A09 LU   A11 LU   A12 LU   A13 LU   A14 LU
A15 LU   A18 LU   A19 LU   A20 LU   A21 LU   A22 LU   A23 LU   A24 LU   A25 LU   A26 LU   A27 LU   A28 LU
A31 LU   A32 LU   A33 LU   A34 LU   A36 LU   A37 LU   A38 LU   A39 LU   A40 LU   A42 LU
B01 LU   B02 LU   B03 LU   B05 LU   B06 LU   B07 LU groups     B08 LU groups     B09 LU   B10 LU
B12 LU   B13 LU   B14 LU   B15 LU   B17 LU   B18 LU   B19 LU groups     B20 -    B21 LU
C01 -    C03 -    C04 -    C05 -    C06 -    C07 -    C08 -    C09 -    C10 -    C11 -    C12 -    C16 -
C17 -    C18 -    C19 -
D01 LU   D02 LU   D03 LU   D09 LU   D11 LU   D12 LU   D14 LU   D15 LU   D16 LU   D05 LU   D06 LU   D08 -
D13 -   D17 -   D18 -   D21 LU   D22 LU   D23 -   D24 -   D25 -
E06 LU   E07 LU   E15 LU
F03 LU groups     F05 LU groups     F06 LU groups     F07 LU groups     F08 LU groups     F09 LU groups
F10 LU groups     F11 LU groups     F14 LU groups   F12 -
H24 -    H25 -   H16 -   H26 L   H02 -   H03 -   H04 -   H05 -   H08 -   H10 -   H13 -   H14 -   H15 -
H18 -   H19 -   H22 -   H12 -   H20 -
API-01 -  API-03 -  API-04 -  API-05 -  API-06 -  API-07 -   API-09 -   API-12 -
ART-03 LU  ART-05 LU  ART-09 -   ART-02 LU   ART-04 -   ART-06 -
CON-02 -   CON-06 L   CON-09 -   CON-11 L   CON-03 L   CON-04 -   CON-05 -   CON-08 L   CON-12 L   CON-10 -
BIG-03 -   BIG-02 -
ENV-02 LU  ENV-03 L   ENV-04 L
FS-08 LU   FS-16 -    FS-18 -    FS-19 L   FS-05 LU   FS-06 LU   FS-10 -   FS-11 -   FS-12 LU   FS-14 LU
FS-20 -    FS-01 -    FS-02 -    FS-03 -    FS-13 LU
KER-01 -   KER-03 -   KER-04 -   KER-05 -   KER-06 -   KER-07 L
LIM-01 -   LIM-04 LU groups   LIM-05 -   LIM-06 LU groups   LIM-07 -   LIM-08 LU groups   LIM-10 LU groups
LIM-11 LU  LIM-12 LU   LIM-13 LU   LIM-14 LU   LIM-16 LU   LIM-17 -   LIM-18 LU groups
NET-02 -   NET-03 -   NET-05 LU
NOD-01 -   NOD-03 -   NOD-04 -   NOD-06 -   NOD-07 -   NOD-09 -
OUT-03 -   OUT-05 -   OUT-06 -   OUT-07 L   OUT-08 L   OUT-09 -   OUT-11 -   OUT-12 -   OUT-15 -   OUT-13 -
PKG-19 L
PLT-01 -   PLT-02 L   PLT-04 -
PY-01 -    PY-02 -    PY-03 -    PY-04 -    PY-06 -    PY-07 -    PY-08 -    PY-09 -    PY-10 -
RES-02 -   RES-03 -   RES-04 -   RES-05 -   RES-08 -   RES-09 -   RES-10 -   RES-11 -   RES-13 -   RES-14 -
RES-15 -
SAF-02 L   SAF-03 L   SAF-04 -   SAF-05 -
SEC-02 LU  SEC-03 -   SEC-04 L   SEC-05 LU
SES-08 L   SES-09 L   SES-02 L   SES-03 L   SES-04 L   SES-05 -   SES-07 -   SES-10 L
SIG-02 LU  SIG-03 L   SIG-04 L   SIG-05 LU
TMO-01 L   TMO-02 LU  TMO-05 L   TMO-06 L   TMO-08 LU  TMO-10 LU  TMO-14 LU   TMO-17 -   TMO-12 -   TMO-16 -
TMO-18 L
"""

# Single tests that run only once although their id runs again, with the reason.
SINGLE = {
    "test_NET_05_unix_sockets_with_the_hosts_network": "runs isle in a network namespace made for it, as host root",
    "test_A13_installed_filters": "reads the filters of processes that only host root may trace",
}

# Single tests that need more than their id.
NEEDS = {"test_A37_is_charged_to_the_job": "groups"}

# What uid, limits and filter do alone, where there is no sandbox.
UNISOLATED = """
ART-03 ART-05 ENV-02 ENV-03 ENV-04 FS-08 FS-19 LIM-04 LIM-06 LIM-08 LIM-10 LIM-11 LIM-12 LIM-13 LIM-14 LIM-16 LIM-18
OUT-07 OUT-08 PKG-19 SAF-02 SAF-03 SEC-02 SEC-05 SES-08 SES-09 SIG-02 SIG-03 SIG-05 TMO-01 TMO-02 TMO-05 TMO-06
TMO-10 TMO-14 B01 B02 B03 B05 B06 B07 B08 B09 B10 B12 B13 B14 B15 B17 B18 B19 B20 B21 E06 E07
F03 F05 F06 F07 F08 F09 F10 F11 F14
"""

# Tests without an id that depend on the user or the launcher all the same.
MORE = {
    "test_L": "U",  # the native launcher's border, whoever starts it
    "test_L_every_check_is_listed": "U",
    "test_downgrades": "LU",
    "test_whoever_starts_it": "U",
    "test_doctor_on_this_host": "LU",
    # the service's sockets, signals and data folder
    "test_serves_by_tcp_and_unix_socket": "LU",
    "test_second_service_of_a_data_folder": "U",
    "test_drains": "U",
    "test_reads_settings_again": "U",
    "test_what_is_kept_outlives_others": "U",
}

ENTRY = re.compile(r"(?<!\S)([A-Z]\w*(?:-\d\d)?) +(-|[LU]+)(?: (groups|uids))?(?!\S)")
NAMED = re.compile(r"test_(?:([A-H]\d\d)|([A-Z]{2,3})_(\d\d))(?:_|$)")


def table() -> dict[str, tuple[str, str]]:
    """ID -> (letters, need)."""
    return {m[1]: (m[2].strip("-"), m[3] or "") for m in ENTRY.finditer(TABLE)}


def id_of(test: str) -> str | None:
    m = NAMED.match(test)
    return (m[1] or f"{m[2]}-{m[3]}") if m else None


def runs(test: str, variant: Variant = NOW) -> bool:
    """Does the test of this function name belong to the variant?"""
    ident = id_of(test)
    if variant.launcher == "none":
        return ident in UNISOLATED.split() or test == "test_downgrades"
    if not variant.changes:
        return True
    letters, need = table()[ident] if ident else (MORE.get(test, ""), "")
    if letters == "U" and variant.launcher != "native":
        return False  # tried with the native launcher
    lacking = variant.user == "bare" and (need or test in NEEDS)
    return bool(set(letters) & set(variant.changes)) and test not in SINGLE and not lacking


# ---------------------------------------------------------------------------------------------------------
# The account of the user variants

# Made at import, as other modules ask for its paths.
HOME = pathlib.Path("/var/tmp") / f"isle-variant-{os.getpid()}"
RUN_DIR = HOME / "run/isle" if NOW.user else pathlib.Path("/run/isle")


@dataclasses.dataclass
class Account:
    name: str
    uid: int
    gid: int
    program: pathlib.Path  # of `isle`, where the account may read it
    groups: list[pathlib.Path]  # delegated folders of control groups

    def environ(self) -> dict[str, str]:
        return {
            "HOME": str(HOME / "home"),
            "USER": self.name,
            "XDG_RUNTIME_DIR": str(HOME / "run"),
            "ISLE_LIBEXEC": str(self.program.parent),
        }

    def enter_groups(self) -> None:
        """Between fork and exec, already as the account."""
        for group in self.groups:
            fd = os.open(group / "tasks", os.O_WRONLY)
            os.write(fd, b"0")
            os.close(fd)

    def popen(self) -> dict[str, object]:
        """What subprocess.Popen() needs to start something as the account."""
        return {"user": self.uid, "group": self.gid, "extra_groups": [], "preexec_fn": self.enter_groups}

    def give(self, path: pathlib.Path) -> None:
        os.chown(path, self.uid, self.gid)


class Session:
    """What this session has made for its variant."""

    account: ClassVar[Account | None] = None
    container: ClassVar[tuple[str, ...]] = ()  # words before isle's


def v1_mounts() -> list[pathlib.Path]:
    wanted = {"memory", "pids", "cpu", "cpuacct"}
    with open("/proc/self/mountinfo", encoding="utf-8") as f:
        rows = [line.split(" - ") for line in f]
    return [
        pathlib.Path(head.split()[4])
        for head, tail in rows
        if tail.split()[0] == "cgroup" and wanted & set(tail.split()[2].split(","))
    ]


def copy_program(isle: pathlib.Path, to: pathlib.Path) -> pathlib.Path:
    """All parts of isle in one folder that everybody may read: a build folder often is nobody else's to see."""
    built = isle.resolve().parent
    shutil.copytree(built / "guest", to / "guest")
    for path in built.glob("isle*"):
        if path.is_file():
            shutil.copy2(path, to / path.name)
    for path in [to, *to.rglob("*")]:
        path.chmod(path.stat().st_mode | 0o555)
    return to / "isle"


def add_account(name: str, subordinate: bool) -> None:
    """By useradd(8), which finds free ids and writes /etc/subuid and /etc/subgid."""
    keys = {"UID_MIN": 70100, "UID_MAX": 79000}
    for kind in ("UID", "GID"):  # far from what other accounts and host root's instances use
        keys[f"SUB_{kind}_MIN"], keys[f"SUB_{kind}_MAX"] = 400000000, 500000000
        keys[f"SUB_{kind}_COUNT"] = 65536 if subordinate else 0
    words = [word for key, value in keys.items() for word in ("-K", f"{key}={value}")]
    command = ["useradd", *words, "-M", "-U", "-d", str(HOME / "home"), "-s", "/bin/sh", name]
    for _ in range(10):  # another session may hold the lock of /etc/passwd longer than useradd waits for it
        done = subprocess.run(command, check=False, timeout=60, capture_output=True)
        if done.returncode == 0:
            return
        time.sleep(1)
    done.check_returncode()


@contextlib.contextmanager
def account(isle: pathlib.Path, variant: Variant = NOW) -> Iterator[Account | None]:
    """The account of this session, in Session while it lasts. Nothing of it stays."""
    if not variant.user:
        yield None
        return
    name = f"isle-t{os.getpid()}"
    HOME.mkdir(mode=0o755)
    HOME.chmod(0o755)
    groups = []
    try:
        add_account(name, variant.user == "range")
        entry = pwd.getpwnam(name)
        made = Account(name, entry.pw_uid, entry.pw_gid, HOME / "app/isle", groups)
        for folder, mode in (("home", 0o700), ("run", 0o700)):
            (HOME / folder).mkdir(mode=mode)
            made.give(HOME / folder)
        made.program = copy_program(isle, HOME / "app")
        if variant.user == "range":
            for mount in v1_mounts():
                group = mount / name
                group.mkdir()
                groups.append(group)
                made.give(group)
                made.give(group / "tasks")
                made.give(group / "cgroup.procs")
        Session.account = made
        yield made
    finally:
        Session.account = None
        for group in groups:
            remove_group(group)
        subprocess.run(["userdel", name], check=False, timeout=60, capture_output=True)
        remove(HOME)


def remove_group(group: pathlib.Path) -> None:
    for _ in range(100):
        for at, _, _ in os.walk(group, topdown=False):
            with contextlib.suppress(OSError):
                os.rmdir(at)
        if not group.exists():
            return
        time.sleep(0.05)


def remove(folder: pathlib.Path) -> None:
    """Also a tree that is deeper than Python's stack, which a failed test may leave."""
    subprocess.run(["rm", "-rf", "--one-file-system", folder], check=False, capture_output=True)


def give(path: pathlib.Path) -> None:
    """To the account that isle runs as, if it is not ours."""
    if Session.account:
        Session.account.give(path)


def prefix() -> tuple[str, ...]:
    """Words that start isle in the variant's container."""
    return Session.container


@contextlib.contextmanager
def container(variant: Variant = NOW) -> Iterator[None]:
    """The program that makes a container around a command, where the variant wants one."""
    if not variant.container:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="isle-container-", dir="/var/tmp") as made:
        program = build_container(pathlib.Path(made))
        Session.container = (str(program),)
        yield
        Session.container = ()


def build_container(to: pathlib.Path) -> pathlib.Path:
    source = ROOT / "tests/attack/programs/container.c"
    subprocess.run(["gcc", "-O1", "-static", "-w", "-o", to / "container", source], check=True, timeout=120)
    return to / "container"


# By this session; names are never used again.
FOLDERS: set[str] = set()


@contextlib.contextmanager
def folder(prefix: str) -> Iterator[pathlib.Path]:
    """A new folder in /var/tmp that the account of this session owns (root's without one)."""
    made = pathlib.Path(tempfile.mkdtemp(prefix=prefix, dir="/var/tmp"))
    FOLDERS.add(str(made))
    try:
        if Session.account:
            made.chmod(0o755)
        give(made)
        yield made
    finally:
        remove(made)
