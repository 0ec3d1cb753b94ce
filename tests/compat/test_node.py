"""Node's own modules, one telling use of each: as a command, as a snippet, and bare."""

from __future__ import annotations

import pathlib
import tempfile

import compat
import harness

PROGRAM = compat.HERE / "node_core.cjs"
EXPECTED = compat.Expected(compat.HERE / "node_expected.txt")
ARGV = ["node", PROGRAM.name, "OUT"]


def run_snippet(isle: harness.Isle) -> compat.Outcomes:
    code = PROGRAM.read_text().replace("main(process.argv[2]);", 'await main("/workspace/out.jsonl");')
    assert "await main(" in code
    with tempfile.TemporaryDirectory(prefix="compat-") as out:
        r = isle.js(
            code, *compat.LIMITS, "--timeout", "300", "--artifact", "out.jsonl", "--output-dir", out, within=360
        )
        assert r.reason == "ok", (r.result["error"], r.stderr[-1000:])
        return compat.read_log((pathlib.Path(out) / "out.jsonl").read_text())


def test_a_command_does_what_node_does(packaged: harness.Isle, bare: compat.Bare) -> None:
    def run(job: bool) -> compat.Outcomes:
        return compat.as_job(packaged, [], [PROGRAM], ARGV) if job else bare.run([], [PROGRAM], ARGV)

    compat.compare(run, EXPECTED, lambda _: True).check()


def test_a_snippet_does_what_node_does(packaged: harness.Isle, bare: compat.Bare) -> None:
    def run(job: bool) -> compat.Outcomes:
        return run_snippet(packaged) if job else bare.run([], [PROGRAM], ARGV)

    compat.compare(run, EXPECTED, lambda _: True).check()
