"""The runtime root: what is in it, whom it belongs to, what it grants."""

from __future__ import annotations

import os
import pathlib
import re
import stat
import subprocess

import pytest
from conftest import ROOT, Box

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]


def everything():
    for folder, folders, files in os.walk(ROOT):
        for name in [*folders, *files]:
            path = os.path.join(folder, name)  # noqa: PTH118  (a hundred thousand of them)
            yield path, os.lstat(path)


def test_grants_nothing():
    for path, st in everything():
        assert (st.st_uid, st.st_gid) == (0, 0), path
        kind = stat.S_IFMT(st.st_mode)
        assert kind in (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK), f"{path}: neither file, folder nor link"
        if kind != stat.S_IFLNK:
            assert not st.st_mode & (stat.S_ISUID | stat.S_ISGID | stat.S_IWGRP | stat.S_IWOTH), path
        assert "security.capability" not in os.listxattr(path, follow_symlinks=False), path


def test_is_a_folder_named_by_its_build():
    assert re.fullmatch("[0-9a-f]{16}", ROOT.name)
    assert (ROOT / "usr/share/isle/build-id").read_text().strip() == ROOT.name
    assert {p.name for p in ROOT.iterdir()} == {"usr", "etc", "bin", "sbin", "lib", "lib64"}
    for link in ("bin", "sbin", "lib", "lib64"):
        assert (ROOT / link).readlink() == pathlib.Path("usr") / link


def test_has_an_empty_mount_point_for_the_wrappers():
    assert list((ROOT / "usr/lib/isle").iterdir()) == []


@pytest.mark.parametrize(
    ("command", "version"),
    [
        ("python3 --version", "Python 3.13."),
        ("python --version", "Python 3.13."),
        ("node --version", "v22."),
        ("npm --version", "10."),
        ("uv --version", "uv "),
        ("git --version", "git version "),
    ],
)
def test_versions(box: Box, command: str, version: str):
    assert box.run(*command.split()).startswith(version)


def test_tools(box: Box):
    names = (
        "sh bash cat ls cp mv rm sort cut tr head tail wc sha256sum date env timeout find xargs grep sed awk tar gzip "
        "bzip2 xz zip unzip file git ps top kill free diff less which hostname fc-list openssl perl npx"
    )
    assert box.run("bash", "-c", f'for n in {names}; do command -v "$n" >/dev/null || echo "$n"; done') == ""


def test_archives_round_trip(box: Box):
    box.run("bash", "-ec", "echo data >f; tar -czf a.tgz f; tar -cJf a.txz f; tar -cjf a.tbz f; zip -q a.zip f")
    script = "for a in a.tgz a.txz a.tbz; do rm f; tar -xf $a; cat f; done; rm f; unzip -q a.zip; cat f; file -b a.zip"
    assert box.run("bash", "-ec", script).startswith("data\n" * 4 + "Zip archive")


def test_locales(box: Box):
    assert set(box.run("locale", "-a").split()) >= {"C", "C.utf8", "en_US.utf8", "POSIX"}
    for locale in ("C.UTF-8", "en_US.UTF-8"):
        script = "printf '\\u4f60\\n'; locale charmap; echo 'ÄÖ' | wc -m"
        assert box.run("bash", "-c", script, env={"LC_ALL": locale, "LANG": locale}) == "你\nUTF-8\n3\n"


def test_time_zones(box: Box):
    code = "import zoneinfo, datetime as d; print(d.datetime(2024,7,1,tzinfo=zoneinfo.ZoneInfo('{}')).utcoffset())"
    for zone in ("America/New_York", "US/Eastern"):
        assert box.python(code.format(zone)) == "-1 day, 20:00:00\n"
    assert box.run("date", "+%z", env={"TZ": "Asia/Tokyo"}) == "+0900\n"
    assert box.run("node", "-p", "new Date(0).getHours()", env={"TZ": "Asia/Tokyo"}) == "9\n"


def test_certificates(box: Box):
    assert int(box.python("import ssl; print(len(ssl.create_default_context().get_ca_certs()))")) > 100


def test_modules_are_compiled_and_never_checked():
    found = 0
    for path in ROOT.glob("usr/lib/python3*/**/__pycache__/*.cpython-313.pyc"):
        with path.open("rb") as file:
            assert int.from_bytes(file.read(8)[4:], "little") == 1, f"{path}: not by unchecked hash"
        found += 1
    assert found > 3000


def test_arithmetic(box: Box):
    code = """
import numpy as n, numpy.testing, scipy.linalg, scipy.stats, sympy
print(round(scipy.linalg.det(n.arange(9.0).reshape(3, 3) + n.eye(3))))
"""
    assert box.python(code) == "-5\n"


def test_second_build_changes_nothing():
    done = subprocess.run([REPOSITORY / "runtime/build-root"], capture_output=True, text=True, timeout=120, check=True)
    assert "is up to date" in done.stderr


def test_old_roots_go_when_nothing_uses_them(tmp_path: pathlib.Path):
    current, used, unused = (name * 16 for name in "abc")
    for name in (current, used, unused):
        (tmp_path / name / "usr").mkdir(parents=True)
    (tmp_path / "other").mkdir()
    (tmp_path / "current").symlink_to(current)
    script = f"mount --bind {tmp_path}/{used}/usr /mnt && echo ready && read -r _"
    with subprocess.Popen(
        ["unshare", "--mount", "bash", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as user:
        assert user.stdout.readline() == "ready\n"
        remove = [REPOSITORY / "runtime/remove-old", tmp_path]
        subprocess.run(remove, capture_output=True, check=True)
        assert {p.name for p in tmp_path.iterdir()} == {current, used, "other", "current"}
        user.communicate("\n")
    subprocess.run(remove, capture_output=True, check=True)
    assert {p.name for p in tmp_path.iterdir()} == {current, "other", "current"}
