"""Group D, as far as one job shows it: traps that trusted code meets when it collects and cleans."""

from __future__ import annotations

import harness
import leftovers
from payload import attack, held


def collect(isle, canary, tmp_path, file, *names, **kw):
    wanted = [w for n in names for w in ("--artifact", n)]
    out = tmp_path / "out"
    out.mkdir(exist_ok=True)
    harness.variants.give(out)
    r = attack(isle, file, *wanted, "--output-dir", str(out), canary=canary, **kw)
    got = [p for p in out.rglob("*") if not p.is_dir()]
    return r, got


def test_D01(isle, canary, tmp_path):
    for name in ("report.txt", "env.txt", "s"):
        r, got = collect(isle, canary, tmp_path, "D01.sh", f"output/{name}")
        assert r.reason == "artifact" and name in r.result["error"], r.result
        assert got == []


def test_D02(isle, canary, tmp_path):
    for name in ("d", "d/x", "d/rootdir/etc/hostname", "d/sub/up/etc/hostname", "d/loop2"):
        r, got = collect(isle, canary, tmp_path, "D02.sh", name)
        assert r.reason == "artifact", r.result
        assert got == []


def test_D03(isle, canary, tmp_path):
    r, got = collect(isle, canary, tmp_path, "D03.sh", "out/secret.txt")
    assert r.reason == "artifact" and got == [], r.result


def test_D09(isle, canary, tmp_path):
    for name in ("f.bin", "output/g.csv", "s.sock"):
        r, got = collect(isle, canary, tmp_path, "D09.py", name)
        assert r.reason == "artifact" and got == [], r.result


def test_D11(isle):
    r = attack(isle, "D11.py")
    assert r.reason == "ok" and len(r.lines) == 4, r.result
    assert all(line.startswith("HELD ") for line in r.lines)


def test_D12(isle, canary, tmp_path):
    r, got = collect(isle, canary, tmp_path, "D12.sh", "z")
    assert r.reason == "artifact" and got == [], r.result
    # truncate is refused (EFBIG) at the size of the workspace: what is left is empty
    r, got = collect(isle, canary, tmp_path, "D12.sh", "sp")
    assert r.reason == "artifact" or [p.stat().st_size for p in got] == [0], r.result


def test_D12_below_the_file_limit(isle, tmp_path):
    """Larger than an artifact may be, and not a byte of it is on the disk: refused by its apparent size."""
    r = isle.sh("truncate -s 900M sp", "--artifact", "sp", "--output-dir", str(tmp_path))
    assert r.reason == "artifact" and "sp" in r.result["error"], r.result
    assert list(tmp_path.iterdir()) == []


def test_D14(isle):
    """The fixture sees that the tree is gone afterwards."""
    r = attack(isle, "D14.py", "--disk", "60", within=40)
    assert r.reason == "ok" and r.lines[-1].startswith("deep "), r.result


def test_D14_in_a_folder(isle):
    """Landlock walks up to the root at each step, so that the depth costs the job its own time; then it must go."""
    r = attack(isle, "D14.py", "--disk", "1000", "--timeout", "5", within=40)
    assert r.reason in ("ok", "disk_limit", "timeout"), r.result


def test_D15(isle, canary, tmp_path):
    r, got = collect(isle, canary, tmp_path, "D15.py", "output/-rf", "output/a\nb")
    assert r.lines == ["16"]
    assert r.reason in ("ok", "artifact"), r.result
    if r.reason == "ok":
        assert sorted(p.name for p in got) == ["-rf", "a\nb"]


def test_D16(isle):
    for disk in ("60", "1000"):
        held(attack(isle, "D16.sh", "--disk", disk), "ok")
        assert harness.until(lambda: not leftovers.left_folders(isle.data), 10)
