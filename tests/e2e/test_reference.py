"""Help, man page and completions: made from one table, they name every option and are what their readers can read."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import time

import harness
import pytest

REFERENCE = harness.ISLE.parents[1] / "cli/isle-reference"
SHELLS = ("bash", "zsh", "fish")


def said(*command: object) -> str:
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True, timeout=60).stdout


@pytest.fixture(scope="module")
def options() -> list[tuple[str, str]]:
    """(verb, "--option") of the table."""
    found = [tuple(line.split()) for line in said(REFERENCE, "options").splitlines()]
    assert {"run", "bench", "completion"} <= {verb for verb, _ in found}
    assert len(found) > 25
    return found


@pytest.fixture(scope="module")
def man() -> str:
    return said(REFERENCE, "man", "November 29, 2026")


@pytest.fixture(scope="module")
def scripts(tmp_path_factory) -> dict[str, str]:
    """Paths of the completion scripts."""
    folder = tmp_path_factory.mktemp("completions")
    for shell in SHELLS:
        (folder / shell).write_text(said(harness.ISLE, "completion", shell))
    return {shell: str(folder / shell) for shell in SHELLS}


def test_each_option_is_everywhere(options, man, scripts):
    text = {shell: open(path, encoding="utf-8").read() for shell, path in scripts.items()}
    for verb, option in options:
        word = re.escape(option)
        assert re.search(rf"^  (-., )?{word}( |$)", said(harness.ISLE, verb, "--help"), re.M), (verb, option)
        section = man.split(f".Ss isle {verb}\n")[1].split("\n.S")[0]
        assert re.search(rf"^\.It .*Fl \\&{re.escape(option[1:])}( |$)", section, re.M), (verb, option)
        assert re.search(rf"[' ]{word}[ ']", text["bash"])
        assert re.search(rf"'[^']*{word}=?\[", text["zsh"])
        assert re.search(rf"contains -- {verb} .* -l {option[2:]}( |$)", text["fish"], re.M)


def test_help_of_every_verb(options):
    top = said(harness.ISLE, "--help")
    for verb in {verb for verb, _ in options}:
        assert re.search(rf"^  {verb} +\w", top, re.M)
        text = said(harness.ISLE, verb, "--help")
        assert text == said(harness.ISLE, "help", verb)
        for word in ("Usage: isle " + verb, "Options:", "Exit status:", "Examples:", "--help"):
            assert word in text, (verb, word)
        assert max(map(len, text.splitlines())) <= 120


def test_man_page_has_no_fault(man, tmp_path):
    page = tmp_path / "isle.1"
    page.write_text(man)
    lint = subprocess.run(["mandoc", "-T", "lint", page], capture_output=True, text=True, check=False)
    assert lint.stdout + lint.stderr == ""
    text = re.sub(".\x08", "", said("mandoc", "-T", "utf8", page))
    for word in (
        "NAME",
        "SYNOPSIS",
        "ENVIRONMENT",
        "EXIT STATUS",
        "EXAMPLES",
        "--timeout N",
        "SANDBOX_RUNTIME_ROOT",
        "ISLE_KEY",
    ):
        assert word in text, word
    assert "isle run --stdin - -- sort -n < numbers" in text


ASKED = [  # line, words that must be among the answers, words that must not
    ("isle ", {"run", "bench", "completion"}, set()),
    ("isle run --ti", {"--timeout"}, {"--memory"}),
    ("isle run -l ", {"python", "javascript", "bash"}, set()),
    ("isle run --language=j", {"javascript"}, {"python"}),
    ("isle config SANDBOX_MAX", {"SANDBOX_MAX_DISK_MB"}, {"SANDBOX_HOSTNAME"}),
    ("isle config ", {"ISLE_LISTEN"}, {"ISLE_TEST_REFUSE_RUNGS"}),
    ("isle config --config /etc/host", {"/etc/hosts"}, set()),
    ("isle help ", {"run", "serve", "config"}, {"--help"}),
    ("isle he", {"help"}, {"run"}),
    ("isle serve --log-level ", {"debug", "warning"}, {"json"}),
    ("isle serve --data /et", {"/etc"}, set()),
    ("isle jobs ", {"list", "submit", "wait"}, {"running"}),
    ("isle jobs list --status ", {"running", "failed"}, {"submit"}),
    ("isle jobs submit /etc/host", {"/etc/hosts"}, {"list"}),
    ("isle files put /etc/host", {"/etc/hosts"}, {"list"}),
    ("isle jobs --wa", {"--wait"}, {"--ttl"}),
    ("isle artifacts get --output-dir /et", {"/etc"}, set()),
    ("isle tools ", {"create", "run", "schemas"}, {"submit"}),
    ("isle tools create /etc/host", {"/etc/hosts"}, {"list"}),
    ("isle tools --json update a /etc/host", {"/etc/hosts"}, {"list"}),
    ("isle tools run /etc/host", set(), {"/etc/hosts", "list"}),
    ("isle tools show ", set(), {"README.md", "list"}),
    ("isle jobs cancel /etc/host", set(), {"/etc/hosts"}),
    ("isle tools share a b --permission ", {"read_only", "read_execute"}, {"list"}),
    ("isle completion ", {"bash", "zsh", "fish"}, {"run"}),
    ("isle bench --only ", {"bwrap", "node"}, {"ruby"}),
    ("isle run /etc/host", {"/etc/hosts"}, set()),
    ("isle run --file /etc/host", {"/etc/hosts"}, set()),
    ("isle run --output-dir /et", {"/etc"}, set()),
    ("isle run --timeout ", set(), {"--timeout", "python"}),
]


def bash_answers(script: str, line: str) -> set[str]:
    words = [w for part in re.split(r" ", line) for w in re.split(r"(=)", part) if w or part == ""]
    code = (
        f"source {script}; compopt() {{ :; }}; COMP_WORDS=({' '.join(repr(w) for w in words)}); "
        "COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _isle; printf '%s\\n' \"${COMPREPLY[@]}\""
    )
    return set(said("bash", "--norc", "-c", code).split())


def fish_answers(script: str, line: str) -> set[str]:
    out = said("fish", "--no-config", "-c", f"source {script}; complete -C {line!r}")
    answers = {answer.split("\t")[0] for answer in out.splitlines()}
    return {a.rpartition("=")[2].rstrip("/") if a.startswith("--language=") else a.rstrip("/") for a in answers}


@pytest.mark.parametrize("line, wanted, unwanted", ASKED)
@pytest.mark.parametrize("answers", [bash_answers, fish_answers])
def test_completions_answer(scripts, answers, line, wanted, unwanted):
    got = answers(scripts[answers.__name__.split("_")[0]], line)
    assert wanted <= got and not unwanted & got, (line, got)


def test_zsh_completes_at_a_terminal(scripts, tmp_path):
    (tmp_path / ".zshrc").write_text(
        f"PS1='> '; autoload -Uz compinit; compinit -u -d {tmp_path}/dump\n"
        f"source {scripts['zsh']}; setopt no_beep; LISTMAX=0; echo READY\n"
    )
    fd, other = pty.openpty()
    p = subprocess.Popen(
        ["zsh", "-i"],
        stdin=other,
        stdout=other,
        stderr=other,
        env={"ZDOTDIR": str(tmp_path), "PATH": "/usr/bin:/bin", "TERM": "dumb", "HOME": str(tmp_path)},
        start_new_session=True,
    )
    os.close(other)

    def read_until(mark: str) -> str:
        text, end = "", time.monotonic() + 20 * harness.SLOW
        while mark not in text:
            assert time.monotonic() < end, text
            text += os.read(fd, 4096).decode(errors="replace")
        return text

    read_until("READY")
    os.write(fd, b"isle run --show-p\t")
    read_until("--show-plan")
    os.write(fd, b"\x15isle run --language \t\t")
    assert "javascript" in read_until("python")
    os.write(fd, b"\x15isle bench --only bw\t")
    read_until("bwrap")
    os.write(fd, b"\x15isle tools run /etc/nsswi\t\x15isle tools import /etc/nsswi\t")
    assert "nsswitch" not in read_until("import /etc/nsswitch.conf").rpartition("import")[0]
    os.write(fd, b"\x15exit\n")
    assert p.wait(timeout=20 * harness.SLOW) == 0
    os.close(fd)


def test_completion_refusals():
    for words in (["completion"], ["completion", "csh"], ["completion", "bash", "zsh"], ["completion", "--x"]):
        r = subprocess.run([harness.ISLE, *words], capture_output=True, text=True, check=False)
        assert r.returncode == 125 and r.stdout == "" and r.stderr.startswith("isle completion: "), r
        assert "zsh" in r.stderr or "--help" in r.stderr


def test_output_that_cannot_be_written():
    with open("/dev/full", "w", encoding="utf-8") as full:
        for words in (["completion", "bash"], ["--help"], ["run", "--help"], ["--version"]):
            r = subprocess.run([harness.ISLE, *words], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
            assert r.returncode == 125 and "No space left" in r.stderr, (words, r)
