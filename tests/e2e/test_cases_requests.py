"""Cases API, ART, FS, SES, SAF, KER and NET, as far as one `isle run` shows them."""

from __future__ import annotations

import filecmp
import json
import os
import sys

import harness
import pytest
import results

SLOW = harness.SLOW
pytestmark = pytest.mark.usefixtures("host")


def test_API_01_big_code_and_params(isle, tmp_path):
    code = tmp_path / "big.py"
    code.write_text("# padding\n" * 40000 + "return len(params['a'])\n")
    params = tmp_path / "p.json"
    params.write_text(json.dumps({"a": "x" * (3 << 20)}))
    r = isle.job("--params", f"@{params}", str(code))
    assert r.result["result"] == 3 << 20
    params.write_text(json.dumps({"a": "x" * (9 << 20)}))
    r = isle.run("--params", f"@{params}", str(code))
    assert r.status == 125 and b"params" in r.err


def test_API_03_awkward_names(isle):
    text = '{"class":1,"__proto__":{"x":1},"a-b":2,"":3,"名":4}'
    code = "return [params['class'], params['__proto__'], params['a-b'], params[''], params['名']]"
    want = [1, {"x": 1}, 2, 3, 4]
    assert isle.python(code, "--params", text).result["result"] == want
    assert isle.js(code, "--params", text).result["result"] == want
    assert isle.js("return ({}).x === undefined", "--params", text).result["result"] is True


@pytest.mark.parametrize("name", ["main.py (you may rename it)", "n" * 300, "a/b.py"])
def test_API_04_file_names(isle, tmp_path, name):
    source = tmp_path / "s"
    source.write_text("x")
    r = isle.run("--json", "--file", f"{source}:{name}", "-l", "bash", "-c", "find . -type f")
    if len(name) > 255:
        assert r.status == 125 and b"255" in r.err
    else:
        assert results.strict_json(r.out)["stdout"] == f"./{name}\n"


def test_API_05_delimiters_in_code(isle):
    code = "cat <<'EOF'\nisle EOF 'EOF' \\\nEOF\ncat <<OUTER\nEOF\nOUTER\n"
    assert isle.sh(code).stdout == "isle EOF 'EOF' \\\nEOF\n"


def test_API_06_crlf(isle, tmp_path):
    script = tmp_path / "run.sh"
    script.write_bytes(b"#!/bin/bash\r\necho hi\r\n")
    script.chmod(0o755)
    r = isle.sh("./run.sh", "--file", str(script))
    assert r.status in (126, 127) and r.stdout == "", r.result
    # bash's words: those of older ones name the interpreter, with its \r
    assert "./run.sh" in r.stderr and ("required file not found" in r.stderr or "bad interpreter" in r.stderr), r.stderr
    assert isle.python("x = 1\r\nif x:\r\n    print('crlf')\r\n").lines == ["crlf"]
    assert isle.js("const x = 1\r\nconsole.log('crlf')\r\n").lines == ["crlf"]
    assert isle.python("\ufeffprint('bom')").lines == ["bom"]


@pytest.mark.parametrize("value", ["0", "-1", "1e99", '"5"', "null", "NaN"])
@pytest.mark.parametrize("option", ["--timeout", "--memory", "--pids", "--cpus", "--cpu-seconds"])
def test_API_07_odd_limits(isle, option, value):
    r = isle.run(f"{option}={value}", "--", "true")
    assert r.status == 125 and option[2:5].encode() in r.err, r.err


def test_ART_03_links(isle, tmp_path):
    code = "ln -s /etc/shadow out.txt; ln -s ../../../../etc/hostname h; echo A > a; ln a hard"
    for name in ("out.txt", "h"):
        r = isle.sh(code, "--artifact", name, "--output-dir", str(tmp_path))
        assert r.reason == "artifact" and list(tmp_path.iterdir()) == [], r.result
    r = isle.sh(code, "--artifact", "hard?", "--output-dir", str(tmp_path))
    assert r.reason in ("ok", "artifact"), r.result


def test_ART_05_special_files(isle, tmp_path):
    code = (
        "mkdir out; mkfifo out/p; echo 1 > out/ok; "
        "python3 -c 'import socket; s=socket.socket(socket.AF_UNIX); s.bind(\"out/s\")'"
    )
    wanted = [w for n in ("out/p", "out/s", "out/ok") for w in ("--artifact", n)]
    r = isle.sh(code, *wanted, "--output-dir", str(tmp_path))
    assert r.reason == "artifact" and "out/p" in r.result["error"], r.result
    r = isle.sh(code, "--artifact", "out/ok", "--output-dir", str(tmp_path))
    assert r.reason == "ok" and [p.name for p in tmp_path.rglob("*") if p.is_file()] == ["ok"]


# Runs a program and leaves the KiB of its largest process in a file. A child begins with its parent's figure: pytest's
# would hide isle's.
LARGEST = """import os, sys
pid = os.spawnvp(os.P_NOWAIT, sys.argv[2], sys.argv[2:])
_, status, usage = os.wait4(pid, 0)
open(sys.argv[1], "w").write(str(usage.ru_maxrss))
sys.exit(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.parametrize("disk", ["128", "1024"])  # in memory; in a folder
def test_big_files_both_ways(isle, tmp_path, disk):
    """What passes through the service is no longer in it: it takes as much memory for 100 MB as for none."""
    big = tmp_path / "big"
    block = os.urandom(1 << 20)
    with big.open("wb") as f:
        for i in range(100):
            f.write(i.to_bytes(4, "little") + block[4:])
    options = ("--disk", disk, "--output-dir", str(tmp_path / "out"))
    env = {"SANDBOX_ARTIFACT_MAX_FILE_SIZE_MB": "100", "SANDBOX_ARTIFACT_MAX_TOTAL_SIZE_MB": "100"}
    env["SANDBOX_TMPFS_WORKSPACE_MB"] = "128"
    largest = (sys.executable, "-c", LARGEST, str(tmp_path / "largest"))
    job = ("--file", str(big), "--artifact", "copy", "--", "mv", "big", "copy")
    p = isle.start("run", *options, *job, env=env, prefix=largest)
    assert p.wait() == 0, p.stderr.read()
    assert int((tmp_path / "largest").read_text()) < 90 << 10 or harness.SANITIZED
    assert filecmp.cmp(big, tmp_path / "out/copy", shallow=False)


def test_FS_08_names_that_are_not_utf8(isle):
    code = r'open(b"r\x80port.csv", "wb").write(b"1"); import os; print(os.listdir(b"."))'
    r = isle.python(code)
    assert r.reason == "ok" and r"r\x80port.csv" in r.stdout


def test_FS_19_cwd(isle):
    for cwd in ("/workspace", "."):
        assert isle.command(["pwd"], "--cwd", cwd).lines == ["/workspace"]
    for cwd in ("/workspace/tmp", "tmp"):
        assert isle.command(["pwd"], "--cwd", cwd).lines == ["/workspace/tmp"]
    r = isle.run("--cwd", "/var/lib", "--", "pwd")
    assert r.status == 125 and b"/var/lib" in r.err


def test_SES_08_missing_cwd(isle):
    r = isle.command(["pwd"], "--cwd", "/workspace/none")
    assert r.reason != "ok" and r.stdout == ""
    assert "/workspace/none" in r.result["error"], r.result


def test_SES_09_command_not_found(isle):
    r = isle.sh("nonesuch --x")
    assert r.status == 127 and "nonesuch" in r.stderr
    r = isle.command(["nonesuch"])
    assert r.status == 127 and "nonesuch" in r.result["error"] + r.stderr, r.result


HOOKS = {
    "sitecustomize.py": "print('hooked')",
    "usercustomize.py": "print('hooked')",
    "evil.pth": "import os; print('hooked')",
    ".npmrc": "script-shell=/workspace/x",
    ".bashrc": "echo hooked",
    ".bash_profile": "echo hooked",
    "json.py": "print('hooked')",
    "x.js": "console.log('hooked')",
}


def test_SAF_02_text_that_runs_before_the_job(isle, tmp_path):
    files = []
    for name, text in HOOKS.items():
        (tmp_path / name).write_text(text)
        files += ["--file", str(tmp_path / name)]
    r = isle.python("return params", "--params", '{"a":1}', *files)
    assert r.reason == "ok" and r.result["result"] == {"a": 1} and "hooked" not in r.stdout, r.result
    assert isle.js("return params", *files).stdout == ""
    assert isle.sh("true", *files).stdout == ""


def test_SAF_03_link_at_the_scripts_path(isle, tmp_path):
    """Where a snippet and a script lie is out of the job's reach."""
    code = """
import os
try: os.unlink(__file__); os.symlink("/etc/passwd", __file__); print("replaced")
except OSError as e: print("held")
"""
    r = isle.python(code)
    assert r.reason == "ok" and r.lines == ["replaced"], r.result  # its own copy, in its own memory
    assert isle.python("print(open(__file__).read())").lines == ["print(open(__file__).read())"]
    r = isle.sh('ln -sf /etc/passwd "$0" 2>/dev/null && echo replaced || echo held')
    assert r.lines == ["held"], r.result


def test_KER_07_set_up_failure_is_not_the_jobs(isle, tmp_path):
    r = isle.run("-l", "bash", "-c", "echo ran", env={"SANDBOX_RUNTIME_ROOT": str(tmp_path / "missing")})
    assert r.status == 125 and b"ran" not in r.out
    assert b"script" not in r.err and str(tmp_path / "missing").encode() in r.err


def test_KER_07_root_without_a_shell(isle, tmp_path):
    (tmp_path / "usr").mkdir()
    r = isle.run("--", "/bin/true", env={"SANDBOX_RUNTIME_ROOT": str(tmp_path)})
    assert r.status == 125 and r.out == b"", r


def test_NET_05_no_socket_of_the_host(isle, canary):
    code = """
import os, socket
hit = []
for top in ("/run", "/var/run", "/tmp"):
    for at, _, files in os.walk(top):
        hit += [os.path.join(at, f) for f in files]
s = socket.socket(socket.AF_UNIX)
try: s.connect("\\0canary-abstract"); hit.append("abstract")
except OSError: pass
print(hit)
"""
    assert isle.python(code).lines == ["[]"]
    assert canary.hits == []
