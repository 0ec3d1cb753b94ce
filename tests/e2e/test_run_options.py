"""`isle run`: its options, and bad input. Nothing of a refused job may run."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess

import harness
import pytest

SLOW = harness.SLOW
pytestmark = pytest.mark.usefixtures("host")


def refused(r: harness.Run, *words: str) -> None:
    assert r.status == 125, (r.status, r.out, r.err)
    assert r.out == b"", "a refusal goes to stderr"
    assert r.err.startswith(b"isle"), r.err
    for word in words:
        assert word in r.err.decode(), (word, r.err)


# Options -------------------------------------------------------------------------------------------------


def test_result_line_after_output(isle):
    r = isle.run("-l", "python", "-c", "print('text'); return {'a': [1, None]}")
    assert r.status == 0 and r.err == b""
    text, line = r.out.decode().splitlines()
    assert text == "text" and json.loads(line) == {"a": [1, None]}
    assert isle.run("-l", "python", "-c", "print('text')").out == b"text\n"


def test_streams_stay_apart(isle):
    r = isle.run("-l", "bash", "-c", "echo out; echo err >&2")
    assert (r.out, r.err) == (b"out\n", b"err\n")


def test_output_is_live(isle):
    words = ("run", "--stdin", "-", "-l", "bash", "-c", "echo first; read x; echo last")
    p = isle.start(*words, stdin=subprocess.PIPE)
    assert p.stdout.readline() == b"first\n"
    assert p.poll() is None, "the first line came only at the end"
    assert p.communicate(b"go on\n", timeout=10 * SLOW)[0] == b"last\n"


@pytest.mark.parametrize(
    "name, text",
    [
        ("job.py", "print('py', __file__.rsplit('/')[-1])"),
        ("job.js", "console.log('js')"),
        ("job.mjs", "console.log('js')"),
        ("job.sh", "echo sh"),
        ("shebang", "#!/usr/bin/env python3\nprint('py', 'shebang')"),
        ("shebang2", "#!/bin/bash\necho sh"),
        ("shebang3", "#!/usr/bin/env node\nconsole.log('js')"),
    ],
)
def test_file_gives_its_language(isle, tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text)
    r = isle.job(str(path))
    assert r.reason == "ok", r.result
    want = {"print": f"py {name}", "console": "js", "echo": "sh"}
    assert r.lines == [v for k, v in want.items() if k in text]


def test_code_from_stdin(isle):
    r = isle.job("-l", "python", "-", input=b"import sys\nprint(repr(sys.stdin.read()))\nreturn 5")
    assert r.result["result"] == 5 and r.lines == ["''"]


def test_stdin_file_and_dash(isle, tmp_path):
    data = "α\n2\n"
    (tmp_path / "in").write_text(data)
    code = "a = input(); b = int(input()); print(a * b)"
    assert isle.python(code, "--stdin", str(tmp_path / "in")).lines == ["αα"]
    assert isle.python(code, "--stdin", "-", input=data.encode()).lines == ["αα"]
    assert isle.command(["cat"], "--stdin", "-", input=b"\x00\xff").stdout == "\x00\ufffd"


def test_stdin_that_stays_open(isle):
    """--stdin - streams: the job gets what was written while the writer still holds the pipe."""
    read, write = os.pipe()
    try:
        os.write(write, b"line\n")
        r = isle.sh('read x; echo "[$x]"', "--stdin", "-", stdin=read)
        assert r.lines == ["[line]"] and r.reason == "ok"
    finally:
        os.close(read)
        os.close(write)


def test_params(isle, tmp_path):
    params = {"class": 1, "__proto__": {"x": 1}, "a-b": 2, "": 3, "名": [4, None, "€"]}
    text = json.dumps(params, ensure_ascii=False)
    (tmp_path / "p.json").write_text(text)
    for given in (text, f"@{tmp_path / 'p.json'}"):
        r = isle.python("return params", "--params", given)
        assert r.result["result"] == params
        r = isle.js("return params", "--params", given)
        assert r.result["result"] == params
    assert isle.python("return params").result["result"] == {}


def test_numbers_keep_every_digit(isle):
    text = '{"n":123456789012345678901234567890,"f":0.1}'
    r = isle.run("--json", "-l", "python", "-c", "return params", "--params", text)
    assert b"123456789012345678901234567890" in r.out
    r = isle.run("--json", "-l", "javascript", "-c", "return params", "--params", text)
    assert b"123456789012345678901234567890" in r.out


def test_env(isle):
    r = isle.sh('echo "$A|$B|$C"', "--env", "A=1", "--env", "B=x=y z", "--env", "C=")
    assert r.lines == ["1|x=y z|"]


@pytest.mark.parametrize(
    "name",
    [
        "LD_PRELOAD",
        "LD_AUDIT",
        "LD_LIBRARY_PATH",
        "GLIBC_TUNABLES",
        "GCONV_PATH",
        "PYTHONSTARTUP",
        "PYTHONHOME",
        "PYTHONPATH",
        "NODE_OPTIONS",
        "BASH_ENV",
        "ENV",
    ],
)
def test_env_that_steers_loaders(isle, name):
    """Refused by name, or dropped: never in the job's environment."""
    r = isle.run("--env", f"{name}=/workspace/x", "--", "env")
    assert r.status in (0, 125), r
    assert f"{name}=" not in r.text
    if r.status == 125:
        assert name.encode() in r.err


def test_cwd(isle):
    assert isle.command(["pwd"]).lines == ["/workspace"]
    assert isle.sh("mkdir -p sub").reason == "ok"
    assert isle.command(["pwd"], "--cwd", "/workspace/input").lines == ["/workspace/input"]
    assert isle.command(["pwd"], "--cwd", "output").lines == ["/workspace/output"]
    r = isle.command(["pwd"], "--cwd", "/workspace/none")
    assert r.reason != "ok" and "/workspace/none" in (r.result["error"] or "") + r.stderr, r.result


def test_workspace_layout(isle):
    r = isle.sh("ls; echo $HOME; stat -c %U:%G:%u . ; id -un; id -u")
    assert r.lines[:4] == ["input", "logs", "output", "tmp"]
    assert r.lines[4] == "/workspace" and r.lines[5].endswith(":1000") and r.lines[7] == "1000"


def test_nothing_of_the_host_is_there(isle, tmp_path):
    (tmp_path / "job.sh").write_text("ls -a /workspace /workspace/input; ls /")
    r = isle.job(str(tmp_path / "job.sh"))
    assert "job.sh" not in r.stdout.replace("script.sh", "")
    for name in ("root", "var", "home", "opt", "sys"):
        assert name not in r.lines


def test_files(isle, tmp_path):
    (tmp_path / "a.txt").write_text("A")
    (tmp_path / "tool").write_text("#!/bin/sh\necho tool\n")
    (tmp_path / "tool").chmod(0o755)
    code = "cat a.txt input/deep/b.txt; ./tool; stat -c '%a %u' a.txt tool; echo more >> a.txt; cat a.txt"
    r = isle.sh(
        code,
        "--file",
        str(tmp_path / "a.txt"),
        "--file",
        f"{tmp_path / 'a.txt'}:input/deep/b.txt",
        "--file",
        str(tmp_path / "tool"),
    )
    assert r.lines == ["AAtool", "644 1000", "755 1000", "Amore"], (r.result, r.err)


def test_file_destination_forms(isle, tmp_path):
    (tmp_path / "a").write_text("A")
    for dest in ("/workspace/x/y", "x/y", "./x//y"):
        r = isle.sh("cat x/y", "--file", f"{tmp_path / 'a'}:{dest}")
        assert r.stdout == "A", r.result


def test_big_file_is_exact(isle, tmp_path):
    data = os.urandom(3 << 20)
    (tmp_path / "blob").write_bytes(data)
    code = "import hashlib; print(hashlib.sha256(open('blob','rb').read()).hexdigest())"
    import hashlib

    r = isle.python(code, "--file", str(tmp_path / "blob"))
    assert r.lines == [hashlib.sha256(data).hexdigest()]


def test_artifacts(isle, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    code = "mkdir -p output/d; printf A > output/a.bin; head -c 100000 /dev/urandom > output/d/r; sha256sum output/d/r"
    r = isle.sh(
        code,
        "--artifact",
        "output/a.bin",
        "--artifact",
        "/workspace/output/d/r",
        "--artifact",
        "output/none?",
        "--output-dir",
        str(out),
    )
    assert r.reason == "ok", r.result
    import hashlib

    files = {p.name: p for p in out.rglob("*") if p.is_file()}
    assert sorted(files) == ["a.bin", "r"]
    assert files["a.bin"].read_bytes() == b"A"
    assert hashlib.sha256(files["r"].read_bytes()).hexdigest() == r.lines[0].split()[0]
    assert all(p.stat().st_uid == os.getuid() for p in files.values())
    assert all(p.stat().st_mode & 0o7111 == 0 for p in files.values())
    listed = r.result["artifacts"]
    assert len(listed) == 2 and listed[0]["size"] == 1, listed


def test_missing_artifact_is_an_error(isle, tmp_path):
    r = isle.sh("true", "--artifact", "output/none", "--output-dir", str(tmp_path))
    assert r.reason == "artifact" and "output/none" in r.result["error"], r.result
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "make",
    [
        "ln -s /etc/passwd output/x",
        "ln -s ../../../../etc/hostname output/x",
        "mkfifo output/x",
        "mkdir output/x",
        "python3 -c \"import socket; socket.socket(socket.AF_UNIX).bind('output/x')\"",
        "rm -r output; ln -s /etc output; true",
        "truncate -s 50M output/x",
        "head -c 11M /dev/zero > output/x",
    ],
)
def test_artifact_that_is_no_file(isle, tmp_path, make):
    name = "output/passwd" if "rm -r" in make else "output/x"
    r = isle.sh(make, "--artifact", name, "--output-dir", str(tmp_path), "--disk", "60")
    assert r.reason == "artifact", r.result
    assert name in r.result["error"]
    assert list(tmp_path.iterdir()) == []


def test_existing_output_is_not_followed(isle, tmp_path):
    """--output-dir holds a link with the artifact's name: its target stays as it is."""
    target = tmp_path / "precious"
    target.write_text("mine")
    out = tmp_path / "out"
    (out / "output").mkdir(parents=True)
    (out / "x").symlink_to(target)
    (out / "output/x").symlink_to(target)
    isle.sh("echo hostile > output/x", "--artifact", "output/x", "--output-dir", str(out))
    assert target.read_text() == "mine"


def test_show_plan_runs_nothing(isle):
    r = isle.run("--show-plan", "--timeout", "5", "-l", "bash", "-c", "echo ran")
    assert r.status == 0 and b"ran\n" not in r.out
    text = r.text
    for word in ("memory_mb", "timeout_seconds", "pids", "seccomp", "landlock", "user namespace"):
        assert word in text.lower(), (word, text)


def test_help(isle):
    r = isle.run("--help")
    assert r.status == 0 and r.err == b""
    for option in ("--params", "--stdin", "--timeout", "--cpu-seconds", "--memory", "--cpus"):
        assert option in r.text
    for option in ("--pids", "--disk", "--env", "--cwd", "--file", "--artifact", "--output-dir"):
        assert option in r.text


# Bad input -----------------------------------------------------------------------------------------------

SNIPPET = ("-l", "bash", "-c", "echo ran")


@pytest.mark.parametrize(
    "options, words",
    [
        (["--nonesuch"], ["--nonesuch"]),
        (["--timeout"], ["timeout"]),
        (["--timeout", "601"], ["timeout", "601", "600"]),
        (["--timeout", "0.5"], ["timeout", "0.5", "1"]),
        (["--timeout", "ten"], ["timeout", "ten"]),
        (["--cpu-seconds", "0"], ["cpu", "0", "1"]),
        (["--cpu-seconds", "3601"], ["cpu", "3601", "3600"]),
        (["--memory", "31"], ["memory", "31", "32"]),
        (["--memory", "65537"], ["memory", "65537", "65536"]),
        (["--memory", "1e3"], ["memory", "1e3"]),
        (["--memory", "64.5"], ["memory", "64.5"]),
        (["--memory", "4294967360"], ["memory", "4294967360"]),
        (["--memory", "18446744073709551680"], ["memory", "18446744073709551680"]),
        (["--cpus", "0"], ["cpus", "0.1"]),
        (["--cpus", "0.05"], ["cpus", "0.05", "0.1"]),
        (["--cpus", "nan"], ["cpus", "nan"]),
        (["--pids", "7"], ["pids", "7", "8"]),
        (["--pids", "4097"], ["pids", "4097", "4096"]),
        (["--disk", "-1"], ["disk", "-1"]),
        (["--disk", "8193"], ["disk", "8193", "8192"]),
        (["--env", "NOEQUALS"], ["env", "NOEQUALS"]),
        (["--env", "=x"], ["env"]),
        (["--env", "A B=x"], ["env", "A B"]),
        (["--cwd", "/etc"], ["cwd", "/etc", "/workspace"]),
        (["--cwd", "../x"], ["cwd", "../x"]),
        (["--cwd", "/workspace/../etc"], ["cwd", "/workspace/../etc"]),
        (["--cwd", "/workspaceX"], ["cwd", "/workspaceX"]),
        (["--cwd", ""], ["cwd"]),
        (["--file", "/no/such/file"], ["/no/such/file"]),
        (["--file", "/etc/passwd:../x"], ["../x"]),
        (["--file", "/etc/passwd:/etc/x"], ["/etc/x", "/workspace"]),
        (["--file", "/etc/passwd:"], ["file"]),
        (["--file", "/etc"], ["/etc"]),
        (["--file", "/etc/passwd:" + "n" * 256], ["255"]),
        (["--file", "/etc/passwd:" + "d/" * 3000 + "x"], ["4096"]),
        (["--artifact", "/etc/passwd", "--output-dir", "/var/tmp"], ["/etc/passwd", "/workspace"]),
        (["--artifact", "../x", "--output-dir", "/var/tmp"], ["../x"]),
        (["--artifact", "", "--output-dir", "/var/tmp"], ["artifact"]),
        (["--output-dir", "/no/such/folder", "--artifact", "x"], ["/no/such/folder"]),
        (["--stdin", "/no/such/input"], ["/no/such/input"]),
        (["--params", "{"], ["params"]),
        (["--params", '{"a":1,"a":2}'], ["params", "a"]),
        (["--params", "NaN"], ["params"]),
        (["--params", '"\\ud800"'], ["params"]),
        (["--params", "@/no/such/params"], ["/no/such/params"]),
        (["--params", "[" * 100 + "]" * 100], ["params", "64"]),
    ],
)
def test_bad_option(isle, options, words):
    r = isle.run(*options, *SNIPPET)
    refused(r, *words)
    assert b"ran" not in r.err


def test_unknown_language(isle, tmp_path):
    refused(isle.run("-l", "cobol", "-c", "x"), "cobol", "python", "javascript", "bash")
    (tmp_path / "job.txt").write_text("print(1)")
    refused(isle.run(str(tmp_path / "job.txt")), "job.txt", "-l")
    refused(isle.run("-c", "print(1)"), "-l")


def test_nothing_to_run(isle):
    refused(isle.run())
    refused(isle.run("-l", "python"))
    refused(isle.run("--"))
    refused(isle.run("/no/such/job.py"), "/no/such/job.py")
    refused(isle.run("/etc"), "/etc")


def test_two_things_to_run(isle, tmp_path):
    (tmp_path / "a.py").write_text("print(1)")
    refused(isle.run("-l", "python", "-c", "1", str(tmp_path / "a.py")))
    refused(isle.run("-l", "python", "-c", "1", "--", "true"))


def test_code_with_nul_or_bad_text(isle, tmp_path):
    (tmp_path / "nul.py").write_bytes(b"print(1)\0")
    r = isle.run(str(tmp_path / "nul.py"))
    assert r.status in (1, 125) and r.out != b"1\n"
    (tmp_path / "bad.py").write_bytes(b"print('\xff\xfe')")
    r = isle.run(str(tmp_path / "bad.py"))
    assert r.status in (1, 125)


@pytest.mark.parametrize("name", ["a\nb.py", "-rf.py", "a b.py", "q'u\"o.py", "名.py"])
def test_odd_file_name_is_data(isle, tmp_path, name):
    path = tmp_path / name
    path.write_text("print(7)\nreturn __file__")
    r = isle.job(str(path))
    assert r.reason == "ok" and r.lines == ["7"], r.result


def test_too_much(isle, tmp_path):
    big = tmp_path / "big.py"
    big.write_text("x = 1\n" * 300000)
    refused(isle.run(str(big)), "code")
    refused(isle.run("--env", "A=" + "x" * 70000, *SNIPPET), "env")
    refused(isle.run("--", "true", *["x" * 60000] * 3), "131072")
    many = [w for i in range(101) for w in ("--artifact", f"a{i}?")]
    refused(isle.run(*many, "--output-dir", str(tmp_path), *SNIPPET), "artifact", "100")


def test_workspace_root_is_a_file(isle, tmp_path):
    (tmp_path / "file").write_text("")
    r = isle.run(*SNIPPET, env={"SANDBOX_WORKSPACE_ROOT": str(tmp_path / "file")})
    refused(r, str(tmp_path / "file"))


def test_workspace_root_not_writable(isle):
    """Root is refused by no mode bits: a place where even root cannot write."""
    r = isle.run(*SNIPPET, env={"SANDBOX_WORKSPACE_ROOT": "/proc/isle-data"})
    refused(r, "/proc/isle-data")


def test_workspace_root_is_made(isle, tmp_path):
    fresh = tmp_path / "made" / "here"
    r = isle.run(*SNIPPET, env={"SANDBOX_WORKSPACE_ROOT": str(fresh)})
    assert r.status == 0 or (r.status == 125 and str(fresh).encode() in r.err), r


def test_runtime_root_missing(isle, tmp_path):
    r = isle.run(*SNIPPET, env={"SANDBOX_RUNTIME_ROOT": str(tmp_path / "none")})
    refused(r, str(tmp_path / "none"))
    (tmp_path / "empty").mkdir()
    r = isle.run(*SNIPPET, env={"SANDBOX_RUNTIME_ROOT": str(tmp_path / "empty")})
    refused(r, str(tmp_path / "empty"))


@pytest.mark.parametrize(
    "name, value",
    [
        ("SANDBOX_TMPFS_WORKSPACE_MB", "many"),
        ("SANDBOX_MAX_DISK_MB", "-1"),
        ("SANDBOX_HOSTNAME", "x" * 100),
        ("SANDBOX_HOSTNAME", "a b"),
        ("SANDBOX_RUNTIME_ENABLED", "perhaps"),
    ],
)
def test_bad_setting(isle, name, value):
    refused(isle.run(*SNIPPET, env={name: value}), name)


def test_switched_off(isle):
    refused(isle.run(*SNIPPET, env={"SANDBOX_RUNTIME_ENABLED": "false"}), "SANDBOX_RUNTIME_ENABLED")


def test_unknown_verb(isle):
    p = isle.start("nonesuch")
    out, err = p.communicate(timeout=20 * SLOW)
    assert p.returncode == 125 and out == b"" and b"nonesuch" in err
    p = isle.start("tool", "list")
    out, err = p.communicate(timeout=20 * SLOW)
    assert p.returncode == 125 and out == b"" and b"unknown verb tool; did you mean tools?" in err


def test_json_of_a_refusal(isle):
    """--json: a refused job prints no result (nothing ran), only the message and 125."""
    r = isle.run("--json", "--timeout", "601", *SNIPPET)
    refused(r, "timeout", "601", "600")


def test_error_texts_are_one_line(isle):
    for args in (["--timeout", "601"], ["--cwd", "/etc"], ["--nonesuch"]):
        r = isle.run(*args, *SNIPPET)
        assert r.err.count(b"\n") <= 2 and pathlib.Path(harness.ISLE).exists(), r.err
