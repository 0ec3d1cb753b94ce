"""Group L, the other side: a service that is taken over talks to the front, which has the user's rights."""

from __future__ import annotations

import dataclasses
import os
import pathlib

import harness
import pytest
import results

BUILD = pathlib.Path(os.environ.get("ISLE_BUILD", harness.ISLE.parents[2]))


@dataclasses.dataclass
class Side:
    """The user's side after one run: status, streams, and every file below the user's folder."""

    run: harness.Run
    files: dict[str, bytes]


@pytest.fixture
def hijacked(isle, tmp_path):
    program = BUILD / "tests/attack/border-front"
    if not program.is_file():
        pytest.fail(f"{program} is not built (set ISLE_BUILD)")
    outside = tmp_path / "outside"
    outside.write_bytes(b"mine")

    def go(mode: str, *options: str) -> Side:
        out = tmp_path / "out"
        out.mkdir()
        hostile = harness.Isle(isle.data, isle.env | {"ISLE_LIBEXEC": str(harness.ISLE.parent)}, program)
        r = hostile.run("--artifact", "output/asked", "--output-dir", str(out), *options, "--", mode, within=20)
        assert outside.read_bytes() == b"mine"
        files = {str(p.relative_to(tmp_path)): p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
        del files["outside"]
        for p in out.rglob("*"):
            assert p.stat().st_mode & 0o7111 == (0o111 if p.is_dir() else 0), p
        return Side(r, files)

    return go


def test_L_front_honest(hijacked):
    side = hijacked("honest")
    assert side.run.status == 0 and side.files == {"out/output/asked": b"data"}


@pytest.mark.parametrize(
    "mode",
    [f"artifact-{kind}" for kind in ("up", "middle", "absolute", "unasked", "empty", "dot", "nul", "longer")],
)
def test_L_front_refuses_files(hijacked, mode):
    side = hijacked(mode)
    assert side.run.status == 125 and b"--output-dir" in side.run.err
    assert side.files == {}
    assert not pathlib.Path("/var/tmp/isle-escape").exists()


@pytest.mark.parametrize("mode", ["artifact-shorter", "artifact-endless", "data-only"])
def test_L_front_keeps_nothing_in_part(hijacked, mode):
    assert hijacked(mode).files == {}


@pytest.mark.parametrize("mode", ["artifact-mode", "artifact-twice"])
def test_L_front_gives_its_own_mode(hijacked, mode):
    assert hijacked(mode).files == {"out/output/asked": b"data"}


@pytest.mark.parametrize(
    "mode",
    [
        *(f"artifact-{kind}" for kind in ("negative", "number", "broken")),
        *(f"final-{kind}" for kind in ("broken", "number", "reason")),
        *("nothing", "magic", "sequence", "direction", "unknown-type", "length"),
    ],
)
def test_L_front_takes_nonsense_for_a_lost_service(hijacked, mode):
    side = hijacked(mode)
    assert side.run.status == 125 and side.files == {}
    assert b"internal" in side.run.err and side.run.out == b""


@pytest.mark.parametrize("mode", ["final-broken", "nothing", "length"])
def test_L_front_lost_service_in_json(hijacked, mode):
    side = hijacked(mode, "--json")
    result = results.strict_json(side.run.out)
    assert result["reason"] == "internal" and result["success"] is False
    assert side.run.status == 125


def test_L_front_odd_numbers(hijacked):
    side = hijacked("final-codes")
    assert 1 <= side.run.status <= 255


def test_L_front_shows_no_control_characters(hijacked):
    side = hijacked("final-controls")
    assert side.run.status == 125
    text = side.run.err.decode("utf-8", "replace")
    assert not [c for c in text if (ord(c) < 0x20 and c != "\n") or 0x7F <= ord(c) < 0xA0], text


def test_L_front_flood(hijacked):
    side = hijacked("flood")
    assert side.run.status == 0 and side.run.out == b"x" * (59999 * 1000)


def test_L_front_takes_no_descriptors(hijacked):
    side = hijacked("descriptors")
    assert side.run.status == 0 and side.run.out == b"d" * 100
