"""`isle config`, and the settings file as `isle run` reads it."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import tempfile

import harness
import pytest
import results

SECRET = "geheim-7f3a"
SNIPPET = ("-l", "python", "-c", "import socket; return socket.gethostname()")


def config(*args: object, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [harness.ISLE, "config", *map(str, args)],
        capture_output=True,
        text=True,
        check=False,
        timeout=20,
        env={"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", **environ},
    )


def settings(*args: object, **environ: str) -> dict[str, dict]:
    r = config("--json", *args, **environ)
    assert r.returncode == 0, r.stderr
    assert r.stdout.endswith("\n") and r.stdout.count("\n") == 1
    return {s["name"]: s for s in results.strict_json(r.stdout.encode())["settings"]}


def refused(r: subprocess.CompletedProcess[str] | harness.Run, *words: str) -> None:
    status, out, err = (
        (r.returncode, r.stdout, r.stderr)
        if isinstance(r, subprocess.CompletedProcess)
        else (r.status, r.text, r.err.decode())
    )
    assert status == 125 and out == "" and err.count("\n") == 1, (status, out, err)
    for word in words:
        assert word in err, err


@pytest.fixture
def file(tmp_path) -> pathlib.Path:
    path = tmp_path / "isle.conf"
    path.write_text("# of a test\nSANDBOX_HOSTNAME=box\nSANDBOX_QUEUE_LIMIT=5\n")
    path.chmod(0o644)
    tmp_path.chmod(0o755)
    return path


def test_each_value_says_where_it_is_from(file):
    rows = settings("--config", file, "--set", "SANDBOX_DRAIN_SECONDS=9", SANDBOX_QUEUE_LIMIT="6", ISLE_LOG_LEVEL="")
    assert [(rows[n]["value"], rows[n]["from"]) for n in ("SANDBOX_HOSTNAME", "SANDBOX_QUEUE_LIMIT")] == [
        ("box", "file"),
        (6, "environment"),
    ]
    assert (rows["SANDBOX_DRAIN_SECONDS"]["value"], rows["SANDBOX_DRAIN_SECONDS"]["from"]) == (9, "option")
    assert (rows["ISLE_LOG_LEVEL"]["value"], rows["ISLE_LOG_LEVEL"]["from"]) == ("info", "default")
    assert rows["SANDBOX_RUNTIME_ENABLED"]["value"] is True
    assert rows["SANDBOX_PACKAGES_ROOT"]["value"] is None
    assert not any(name.startswith("ISLE_TEST_") for name in rows)


def test_what_departs_from_the_platform_is_marked(file):
    rows = settings("--config", file)
    departing = {name for name, row in rows.items() if row["departs"]}
    assert {"SANDBOX_FILESYSTEM_ISOLATION_ENABLED", "SANDBOX_LEGACY_FALLBACK_ENABLED"} <= departing
    assert not {"SANDBOX_RUNTIME_ENABLED", "SANDBOX_MAX_DISK_MB", "SANDBOX_HOSTNAME", "ISLE_LISTEN"} & departing
    table = config("--config", file).stdout
    assert re.search(r"^SANDBOX_FILESYSTEM_ISOLATION_ENABLED +true +default +false$", table, re.M)
    assert re.search(r"^SANDBOX_HOSTNAME +box +file$", table, re.M)
    assert table.endswith(f"\nfile: {file}\n")
    moved = settings("--set", "SANDBOX_MAX_DISK_MB=1", "--config", file)
    assert moved["SANDBOX_MAX_DISK_MB"]["departs"]


def test_preset(file, isle):
    file.write_text("SANDBOX_PRESET=platform\n")
    told = "SANDBOX_PRESET=platform: SANDBOX_FILESYSTEM_ISOLATION_ENABLED=false, "
    rows = settings("--config", file)
    assert {name for name, row in rows.items() if row["departs"]} == set()
    assert told in config("--config", file).stderr
    r = isle.job("--config", file, "-l", "python", "-c", "return 1")
    assert r.result["isolation"]["level"] == "none" and told in r.err.decode()


def test_what_is_given_outweighs_the_preset(file, isle):
    given = "SANDBOX_LEGACY_FALLBACK_ENABLED=false\nSANDBOX_FILESYSTEM_ISOLATION_ENABLED=true\n"
    file.write_text(f"SANDBOX_PRESET=platform\nSANDBOX_FILESYSTEM_ISOLATION_BINARY=native\n{given}")
    r = config("--config", file)
    assert r.returncode == 0, r.stderr
    assert re.search(r"^SANDBOX_NETWORK_DEFAULT +host +preset$", r.stdout, re.M)
    assert re.search(r"^SANDBOX_LEGACY_FALLBACK_ENABLED +false +file +true$", r.stdout, re.M)
    assert r.stderr == (
        "isle config: SANDBOX_PRESET=platform: SANDBOX_NETWORK_DEFAULT=host, SANDBOX_NETWORK_ALLOW_HOST=true\n"
    )
    isolation = isle.job("--config", file, "-l", "python", "-c", "return 1").result["isolation"]
    assert (isolation["launcher"], isolation["network"]) == ("native", "host")


def test_one_setting():
    r = config("SANDBOX_QUEUE_LIMIT")
    assert r.returncode == 0
    assert r.stdout.startswith("SANDBOX_QUEUE_LIMIT=1000\n")
    for words in ("default", "1 to 1000000 jobs", "SIGHUP"):
        assert words in r.stdout
    r = config("SANDBOX_LEGACY_FALLBACK_ENABLED")
    assert "isle departs: " in r.stdout and "restart" in r.stdout
    one = results.strict_json(config("--json", "SANDBOX_QUEUE_LIMIT").stdout.encode())
    assert one["value"] == 1000 and one["unit"] == "jobs" and one["live"] is True
    refused(config("SANDBOX_QUEUE_LIMITS"), "did you mean SANDBOX_QUEUE_LIMIT?")
    refused(config("A", "B"), "one NAME is enough")


def test_every_setting_has_a_page_of_its_own():
    for name, row in settings().items():
        r = config(name)
        assert r.returncode == 0 and r.stdout.startswith(f"{name}="), r
        assert row["used"] or "does not use it" in r.stdout


def test_secrets_are_never_printed(file):
    file.chmod(0o600)
    file.write_text(f"SECRET_KEY={SECRET}\nREDIS_PASSWORD='{SECRET} b'\n")
    for r in (
        config("--config", file),
        config("--config", file, "--json"),
        config("--config", file, "SECRET_KEY"),
        config("--config", file, "--json", "SECRET_KEY"),
        config("SECRET_KEY", SECRET_KEY=SECRET),
    ):
        assert r.returncode == 0 and "(set)" in r.stdout and SECRET not in r.stdout + r.stderr, r
    file.chmod(0o644)
    r = config("--config", file)
    refused(r, "SECRET_KEY is a secret", "chmod o-r", f"{file}:1:")
    assert SECRET not in r.stderr
    r = config("--set", f"SECRET_KEY={SECRET}")
    refused(r, "SECRET_KEY is a secret", "command lines")
    assert SECRET not in r.stderr
    file.write_text(f"SECRET_KEY={SECRET} b\n")  # a bad line is not quoted
    r = config("--config", file)
    refused(r, f"{file}:1:")
    assert SECRET not in r.stderr


def test_a_bad_file_is_told_with_its_line(file):
    file.write_text("SANDBOX_HOSTNAME=box\n\nSANDBOX_MAX_DISK_MB=1000000\n")
    refused(config("--config", file), f"{file}:3: SANDBOX_MAX_DISK_MB: 1000000 is above the maximum of 102400 MB")
    file.write_text("SANDBOX_HOSTNAM=box\n")
    refused(config("--config", file), f"{file}:1: ", "did you mean SANDBOX_HOSTNAME?")
    file.write_text("hello\n")
    refused(config("--config", file), f"{file}:1: ", "NAME=VALUE")
    file.chmod(0o666)
    refused(config("--config", file), "others can write it")
    refused(config("--config", file.parent), "is not a file")
    refused(config("--config", file.parent / "none"), "No such file")
    os.mkfifo(file.parent / "pipe")  # nobody writes into it
    refused(config("--config", file.parent / "pipe"), "is not a file")


@pytest.fixture
def home():
    """That every account can look into, which pytest's folders are not."""
    with tempfile.TemporaryDirectory(prefix="isle-home-", dir="/tmp") as name:
        os.chmod(name, 0o755)
        yield pathlib.Path(name)


@pytest.mark.parametrize(
    "setting, why",
    [
        ("ISLE_TRUSTED_PROXIES=proxy", "addresses or networks such as 10.0.0.0/8"),
        ("ISLE_LISTEN=127.0.0.1", "HOST:PORT"),
        ("ISLE_ALLOWED_ORIGINS=https://a/", "no path"),
        ("ISLE_PUBLIC_URL=https://a/?b", "this is http://HOST or https://HOST"),
        ("SANDBOX_SECCOMP_ALLOW=unknown", "no system call"),
        ("SANDBOX_HOSTNAME=a_b", "not a host name"),
    ],
)
def test_it_takes_what_every_other_verb_takes(setting, why):
    for verb in ("config", "serve", "run", "doctor"):
        words = [verb, "--set", setting] + (["-c", "1", "-l", "python"] if verb == "run" else [])
        r = subprocess.run([harness.ISLE, *words], capture_output=True, text=True, check=False, timeout=20)
        refused(r, setting.partition("=")[0], why)
    assert settings("--set", "SANDBOX_RUNTIME_ENABLED=off")["SANDBOX_RUNTIME_ENABLED"]["value"] is False


def test_an_accounts_file_is_its_own(home):
    place = home / ".config/isle"
    place.mkdir(parents=True)
    (place / "isle.conf").write_text("SANDBOX_HOSTNAME=mine\n")

    def as_nobody(**environ: str) -> dict:
        r = subprocess.run(
            [harness.ISLE, "config", "--json"],
            capture_output=True,
            check=True,
            user=65534,
            group=65534,
            extra_groups=[],
            env={"PATH": "/usr/bin:/bin", **environ},
            timeout=20,
        )
        return results.strict_json(r.stdout)

    def hostname(value: dict) -> str:
        return next(s["value"] for s in value["settings"] if s["name"] == "SANDBOX_HOSTNAME")

    value = as_nobody(HOME=str(home))
    assert value["file"] == str(place / "isle.conf") and value["file_read"] is True
    assert hostname(value) == "mine"
    value = as_nobody(HOME="/nonexistent", XDG_CONFIG_HOME=str(home / ".config"))
    assert hostname(value) == "mine"
    value = as_nobody(HOME="/nonexistent")
    assert value["file_read"] is False and hostname(value) == "clouisle-sandbox"
    place.chmod(0o700)  # it is there, and cannot be read: never passed over
    with pytest.raises(subprocess.CalledProcessError) as error:
        as_nobody(HOME=str(home))
    assert b"Permission denied" in error.value.stderr


def test_a_run_has_the_files_settings(isle, file):
    given = ("--config", str(file))
    assert isle.job(*given, *SNIPPET).result["result"] == "box"
    assert isle.job(*given, "--set", "SANDBOX_HOSTNAME=opt", *SNIPPET).result["result"] == "opt"
    assert isle.job(*given, *SNIPPET, env={"SANDBOX_HOSTNAME": "env"}).result["result"] == "env"
    file.write_text("SANDBOX_MAX_DISK_MB=100\n")
    refused(isle.run(*given, "--disk", "101", *SNIPPET), "101", "100")
    file.write_text("SANDBOX_RUNTIME_ENABLED=false\n")
    refused(isle.run(*given, *SNIPPET), "SANDBOX_RUNTIME_ENABLED")
    file.write_text("SANDBOX_RUNTIME_ENABLED=perhaps\n")
    refused(isle.run(*given, *SNIPPET), f"{file}:1: ", "neither true nor false")
    refused(isle.run("--set", "HOSTNAME=x", *SNIPPET), "did you mean SANDBOX_HOSTNAME?")


def test_a_job_sees_no_setting(isle, file):
    file.chmod(0o600)
    file.write_text(f"SECRET_KEY={SECRET}\nSANDBOX_HOSTNAME=box\n")
    r = isle.job("--config", str(file), "-l", "bash", "-c", "env; cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n'")
    assert SECRET not in r.stdout and "ISLE_CONF" not in r.stdout and "SANDBOX_HOSTNAME" not in r.stdout


EXECUTABLE = ("-l", "python", "-c", "import sys; return sys.executable")
# another Python in the runtime root, in a mount namespace of the command's own
OTHER = """at="$SANDBOX_RUNTIME_ROOT/usr/games"
mount -t tmpfs other "$at" && cp -P "$at"/../bin/python3 "$at"/../bin/python3.13 "$at" && exec "$@"
"""


def test_python_is_the_first_of_a_list(isle):
    words = {"SANDBOX_DEFAULT_PYTHON_BINARIES": "python2,/opt/venv/bin/python,python3"}
    r = isle.run(*EXECUTABLE, env=words)
    assert (r.status, r.text) == (0, '"/usr/bin/python3.13"\n'), r
    words = {"SANDBOX_DEFAULT_PYTHON_BINARIES": "python2,/usr/games/python3,python3"}
    r = isle.run(*EXECUTABLE, env=words, prefix=["unshare", "-m", "sh", "-c", OTHER, "sh"])
    assert (r.status, r.text) == (0, '"/usr/games/python3.13"\n'), r
    for none in ("python2,pypy3", "/bin/sh", "/etc/passwd"):
        words = {"SANDBOX_DEFAULT_PYTHON_BINARIES": none}
        refused(isle.run(*EXECUTABLE, env=words), "SANDBOX_DEFAULT_PYTHON_BINARIES", none, "Python 3.13")
        refused(config(SANDBOX_RUNTIME_ROOT=str(harness.RUNTIME_ROOT), **words), none, "Python 3.13")
    refused(config(SANDBOX_DEFAULT_PYTHON_BINARIES="../../bin/python3"), "names of programs")
