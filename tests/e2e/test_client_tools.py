"""`isle tools` with a real service: saving, calling, changing, sharing, moving tools; what docs/tools.md shows."""

from __future__ import annotations

import json
import re
import shlex
import signal
import subprocess

import harness
import pytest
import service
from test_client import UUID, data, on_terminal, said, words

ECHO = "print('called')\nreturn params\n"
HEAD = "name version enabled".split()


@pytest.fixture(scope="module")
def teams():
    """A service with two teams: what a test calls is done as `me`."""
    with service.serving() as s:
        none = words(s, "key", ISLE_URL=f"unix:{s.socket}")
        assert (none.returncode, none.stdout) == (0, b"") and none.stderr.startswith(b"isle: there is no key"), none
        keys = {team: s.new_key(team) for team in ("me", "data")}
        yield s, keys


@pytest.fixture
def me(teams):
    s, keys = teams

    class Me:
        """isle's words as one team."""

        port, socket = s.port, s.socket

        def __init__(self, team: str):
            self.env = {"ISLE_KEY": keys[team]}

        def words(self, *args: object, **kw):
            return words(s, "tools", *args, **self.env | kw)

        def said(self, *args: object, **kw) -> str:
            return said(s, "tools", *args, **self.env | kw)

        def data(self, *args: object, **kw):
            return data(s, "tools", *args, **self.env | kw)

        def refused(self, *args: object, **kw) -> str:
            r = self.words(*args, **kw)
            assert r.returncode == 125 and r.stdout == b"" and r.stderr.count(b"\n") == 1, (args, r)
            return r.stderr.decode()

    me = Me("me")
    me.other = Me("data")
    yield me
    for one in (me, me.other):
        for tool in one.data("list")["items"]:
            one.words(*(("delete", tool["id"]) if tool["permission"] == "owner" else ("unshare", tool["id"], "data")))


@pytest.fixture
def echo(me, tmp_path):
    """A tool of the team: its file, and what it is called."""
    path = tmp_path / "echo.py"
    path.write_text(ECHO)
    specs = ["a", "n:integer=3 # how many", "unit:string:km,miles=km", "tags:string[]", "flag:boolean!"]
    ident = me.said("create", path, "--description", "Says what it got.", *(w for s in specs for w in ("-p", s)))
    assert re.fullmatch(UUID + "\n", ident)
    return path, ident.strip()


def test_parameters_are_what_the_words_say(me, echo):
    tool = me.data("show", "echo")
    found = {
        p["name"]: {k: v for k, v in p.items() if k != "name" and v not in (None, False)} for p in tool["parameters"]
    }
    assert found == {
        "a": {"type": "string"},
        "n": {"type": "integer", "default": 3, "description": "how many"},
        "unit": {"type": "string", "enum": ["km", "miles"], "default": "km"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "flag": {"type": "boolean", "required": True},
    }
    assert tool["code_config"]["code"] == ECHO and tool["code_config"]["language"] == "python"
    assert (tool["name"], tool["version"], tool["is_enabled"]) == ("echo", 1, True)
    assert 'unit\tstring\tno\t"km"\t["km","miles"]\t-\n' in me.said("show", "echo")


def test_specs_that_are_none(me, tmp_path):
    (tmp_path / "f.py").write_text("return 1")
    for spec, word in {
        "n:integer=x": "x is no JSON",
        "n:number:1,two": "two is no JSON",
        "n:strung": "strung",
        "n:integer=1.5": "1.5",
        "": "name",
        "n:integer!=": "such as 12",
        "fold:boolean=yes": "true or false",
        "tags:string[]=a": 'such as ["a", "b"]',
        "name!:string": "! stands behind the type",
    }.items():
        assert word in me.refused("create", tmp_path / "f.py", "-p", spec), spec
    assert me.data("list")["items"] == []


def test_files_that_are_none(me, tmp_path):
    (tmp_path / "text.txt").write_text("return 1")
    (tmp_path / "bytes.py").write_bytes(b"return '\xff'")
    (tmp_path / "list.json").write_text("[]")
    (tmp_path / "a-b.py").write_text("return 1")
    (tmp_path / "s.sh").write_text("echo")
    for name in ("9.py", ".py", "n" * 101 + ".py"):
        (tmp_path / name).write_text("return 1")
    for name, word in {
        "nowhere.py": "No such file",
        "text.txt": "--language",
        "bytes.py": "UTF-8 at byte 8",
        "list.json": "object",
        "a-b.py": "a-b is no name of a tool (letters, digits and _, a letter first, up to 100): give one with --name",
        "9.py": "--name",
        ".py": "--name",
        "n" * 101 + ".py": "--name",
        "s.sh": "bash",
    }.items():
        assert word in me.refused("create", tmp_path / name), name
    assert "-c" not in me.refused("create", "-", input=b"")
    assert "--language" in me.refused("create", "-", input=b"return 1")
    assert "--name" in me.refused("create", "-", "--language", "python", input=b"return 1")
    assert "isle tools create" in me.refused("import", "-", input=b'{"name": "one"}')
    assert "FILE" in me.refused("create")


@pytest.mark.parametrize("name", ["echo", "id"])
def test_a_call_prints_what_isle_run_prints(me, echo, name):
    which = echo[1] if name == "id" else name
    out = me.said("run", which, "a=b=c é", "n=12345678901234567890", 'tags=["x"]', "flag=true")
    params = {"a": "b=c é", "n": 12345678901234567890, "tags": ["x"], "flag": True, "unit": "km"}
    head, _, result = out.partition("\n")
    assert head == "called" and json.loads(result) == params
    answer = me.data("run", which, "flag=false", "n=1", "unit=miles")
    assert answer["success"] and answer["tool"] == {"id": echo[1], "name": "echo", "version": 1}
    assert answer["result"]["unit"] == "miles" and answer["stdout"] == "called\n"


def test_arguments_from_a_file(me, echo, tmp_path):
    (tmp_path / "a.json").write_text('{"a": "1", "n": 1.0e2, "flag": true}')
    for source, kw in {tmp_path / "a.json": {}, "-": {"input": b'{"flag": true, "a": "1"}'}}.items():
        answer = me.data("run", "echo", "n=2", "--arguments", source, **kw)
        assert (answer["result"]["a"], answer["result"]["n"]) == ("1", 2)
    assert me.data("run", "echo", "n=2", "--arguments", f"@{tmp_path}/a.json")["result"]["a"] == "1"
    assert me.data("run", "echo", "--arguments", '{"flag": true, "n": 7}')["result"]["n"] == 7
    assert "--arguments" in me.refused("run", "echo", "--arguments", "{flag: true}")
    for text, word in {b"[]": "object", b"{": "--arguments", b'{"a": 1, "a": 2}': "a"}.items():
        assert word in me.refused("run", "echo", "--arguments", "-", input=text)


def test_every_wrong_argument_is_named(me, echo):
    text = me.refused("run", "echo", "n=many", "unit=cm", "other=1", "tags=x")
    for word in ("arguments.n", "arguments.unit", "arguments.other", "arguments.tags", "arguments.flag"):
        assert word in text, (word, text)
    assert "NAME=VALUE" in me.refused("run", "echo", "flag")
    assert "twice" in me.refused("run", "echo", "flag=true", "flag=false")
    assert "UTF-8" in me.refused("run", "echo", b"a=\xff".decode(errors="surrogateescape"))
    assert "--timeout" in me.refused("run", "echo", "flag=true", "--timeout", "soon")
    for name in ("nothing", "../keys", "a-b", ""):
        assert "no such tool" in me.refused("run", name), name
    assert "none with this id" in me.refused("run", "0199f3a2-5a9d-7c41-9d7c-3f1b2a4c5d6e")


def test_a_tool_that_fails_ends_as_a_job_does(me, tmp_path):
    (tmp_path / "f.py").write_text("import sys, time\nprint('on the way')\ntime.sleep(params['s'])\nsys.exit(7)\n")
    me.said("create", tmp_path / "f.py", "-p", "s:number=0")
    r = me.words("run", "f")
    assert (r.returncode, r.stdout) == (7, b"on the way\n"), r
    me.said("update", "f", "--timeout", "1")
    r = me.words("run", "f", "s=60", "--timeout", "29")  # the saved time counts
    assert r.returncode == 124 and b"timeout" in r.stderr, r


def test_a_file_that_a_tool_leaves(me, tmp_path):
    (tmp_path / "leave.py").write_text("open('a.txt', 'w').write(params['text'])")
    me.said("create", tmp_path / "leave.py", "-p", "text!", "--artifact", "a.txt", "--artifact", "b?")
    assert me.said("run", "leave", "text=héllo", "--output-dir", tmp_path / "out") == ""
    assert (tmp_path / "out/a.txt").read_text() == "héllo"


def test_changes_are_versions(me, echo, tmp_path):
    (tmp_path / "new.py").write_text("return 'new'")
    before = me.data("show", "echo")
    r = me.words("update", "echo", tmp_path / "new.py", "--timeout", "5")
    assert (r.returncode, r.stdout, r.stderr) == (0, b"", b"isle: it is at version 2 now\n")
    tool = me.data("show", "echo")
    assert tool["code_config"]["code"] == "return 'new'" and tool["code_config"]["limits"] == {"timeout_seconds": 5}
    assert tool["parameters"] == before["parameters"] and tool["description"] == before["description"]
    assert me.said("run", "echo", "flag=true") == '"new"\n'
    me.said("update", "echo", "--name", "renamed", "--if-version", "2")
    assert "2" in me.refused("update", "renamed", "--description", "x", "--if-version", "2")
    assert "no such tool" in me.refused("show", "echo")
    rows = [line.split("\t") for line in me.said("versions", "renamed").splitlines()]
    assert [row[:2] for row in rows] == [["3", "renamed"], ["2", "echo"], ["1", "echo"]]
    assert me.data("versions", "renamed", "1")["code_config"]["code"] == ECHO
    assert ECHO in me.said("versions", "renamed", "1")
    me.said("restore", "renamed", "1")
    tool = me.data("show", "echo")
    assert (tool["version"], tool["code_config"]["code"]) == (4, ECHO)
    for args in (("update", "echo"), ("update", "echo", "--language", "python"), ("restore", "echo", "x")):
        me.refused(*args)
    for args in (("restore", "echo", "9"), ("versions", "echo", "9")):
        assert "version" in me.refused(*args)
    assert "VERSION: x is not a number" in me.refused("versions", "echo", "x")


def test_what_show_prints_can_be_edited_and_handed_in(me, echo, tmp_path):
    shown = me.data("show", "echo")
    shown["description"] = "Edited."
    (tmp_path / "edited.json").write_text(json.dumps(shown))
    me.said("update", "echo", tmp_path / "edited.json")
    assert me.data("show", "echo")["description"] == "Edited."
    assert "version" in me.refused("update", "echo", tmp_path / "edited.json"), "it is of version 1"
    ident = me.said("create", "-", "--name", "copy", "--timeout", "3", input=json.dumps(shown).encode()).strip()
    copy = me.data("show", ident)
    assert (copy["name"], copy["version"], copy["description"]) == ("copy", 1, "Edited.")
    assert copy["code_config"]["limits"] == {"timeout_seconds": 3} and copy["parameters"] == shown["parameters"]
    shown["nonesuch"] = 1
    assert "nonesuch" in me.refused("create", "-", "--name", "b", input=json.dumps(shown).encode())
    assert "echo" in me.refused("create", "-", input=json.dumps(me.data("show", "echo")).encode()), "the name is taken"


def test_a_tool_that_is_off(me, echo):
    names = lambda: [t["function"]["name"] for t in me.data("schemas")["tools"]]  # noqa: E731
    assert "echo" in names()
    assert me.words("disable", "echo").stderr == b"isle: echo is disabled\n"
    assert me.words("disable", "echo").returncode == 0, "once more is harmless"
    assert "echo" not in names() and "disabled" in me.refused("run", "echo", "flag=true")
    assert me.words("enable", "echo").stderr == b"isle: echo is enabled\n"
    assert "echo" in names()


def test_schemas_in_each_form(me, echo):
    openai = {t["function"]["name"]: t["function"]["parameters"] for t in me.data("schemas")["tools"]}
    claude = {t["name"]: t["input_schema"] for t in me.data("schemas", "--format", "anthropic")["tools"]}
    mcp = {t["name"]: t["inputSchema"] for t in me.data("schemas", "--format", "mcp")["tools"]}
    assert openai == claude == mcp
    assert openai["echo"]["required"] == ["flag"] and openai["echo"]["properties"]["unit"]["enum"] == ["km", "miles"]
    assert {"bash", "read", "write", "edit", "artifact", "run_python", "run_javascript"} < set(openai)
    assert "odd" in me.refused("schemas", "--format", "odd")


def test_shared_tools(me, echo):
    other = me.other
    assert other.words("list").stderr.startswith(b"isle: there is no tool")
    assert b"nobody" in me.words("shares", "echo").stderr
    assert "--permission" in me.refused("share", "echo", "data")
    assert "nobody" in me.refused("share", "echo", "nobody", "--permission", "read_only")
    r = me.words("share", "echo", "data", "--permission", "read_only")
    assert r.stderr == b"isle: team data may read it\n"
    assert other.data("show", "echo")["code_config"]["code"] == ECHO
    assert "read_only" in other.refused("run", "echo", "flag=true")
    me.said("share", "echo", "data", "--permission", "read_execute")
    assert [row.split("\t")[:2] for row in me.said("shares", "echo").splitlines()] == [["data", "read_execute"]]
    assert other.said("run", "echo", "flag=true").startswith("called\n")
    for args in (("update", "echo", "--description", "x"), ("delete", "echo"), ("disable", "echo")):
        other.refused(*args)
    assert "echo" not in str(other.data("schemas")) and "echo" in str(other.data("schemas", "--shared"))
    # its own one of the name counts
    own = other.said("create", "-", "-l", "python", "--name", "echo", input=b"return 'own'").strip()
    assert other.said("run", "echo") == '"own"\n' and other.said("run", echo[1], "flag=true").startswith("called\n")
    other.said("delete", own)
    other.said("unshare", "echo", "data")
    assert "no such tool" in other.refused("show", "echo")


def test_a_move(me, echo, tmp_path):
    me.said("create", "-", "-l", "javascript", "--name", "two", input="return 'zwei — 二'".encode())
    exported = me.said("export")
    assert sorted(t["name"] for t in json.loads(exported)["tools"]) == ["echo", "two"]
    assert [t["name"] for t in me.data("export", "two")["tools"]] == ["two"]
    (tmp_path / "all.json").write_text(exported)
    assert "echo" in me.refused("import", tmp_path / "all.json"), "the names are taken"
    rows = me.said("import", tmp_path / "all.json", "--on-conflict", "skip").splitlines()
    assert sorted(row.split("\t")[:2] for row in rows) == [["echo", "skipped"], ["two", "skipped"]]
    other = me.other
    rows = other.said("import", "-", input=exported.encode()).splitlines()
    assert sorted(row.split("\t")[:2] for row in rows) == [["echo", "created"], ["two", "created"]]
    assert other.said("run", "two") == '"zwei — 二"\n'
    assert json.loads(other.said("export")) == json.loads(exported)
    rows = other.said("import", "-", "--on-conflict", "replace", input=exported.encode()).splitlines()
    assert len(rows) == 2
    for text, word in {b"[]": "export", b"{}": "export", b"{": "standard input", b'{"tools": [{}]}': "name"}.items():
        assert word in other.refused("import", "-", input=text), text


def test_a_file_that_is_no_json(me, echo, tmp_path):
    """Said: which file, what is wrong with it, what to do."""
    for content, what in {
        b"": "is empty",
        b" \n": "is empty",
        b"return 1": "is not JSON",
        b'{"tools": [': "at byte 11",
    }.items():
        for name in ("f.json", "-"):
            (tmp_path / "f.json").write_bytes(content)
            file, said = (tmp_path / name, str(tmp_path / name)) if name != "-" else ("-", "standard input")
            for args, advice in {
                ("import", file): "`isle tools export`",
                ("create", file): "--language",
                ("update", "echo", file): "--language",
                ("run", "echo", "--arguments", file): '{"NAME": VALUE, ...}',
            }.items():
                text = me.refused(*args, input=content)
                assert text.startswith(f"isle tools: {said} ") and what in text and advice in text, text


def test_what_delete_says(me, echo):
    r = me.words("delete", "echo")
    assert (r.returncode, r.stdout) == (0, b"") and r.stderr.startswith(b"isle: the tool is deleted"), r
    assert "no such tool" in me.refused("delete", "echo")


def test_a_session_of_a_tool(teams, me, tmp_path):
    (tmp_path / "count.py").write_text("open('n', 'a').write('x'); return len(open('n').read())")
    me.said("create", tmp_path / "count.py")
    session = said(teams[0], "sessions", "create", **me.env).strip()
    assert [me.said("run", "count", "--session", session) for _ in range(2)] == ["1\n", "2\n"]
    assert me.said("run", "count") == "1\n"
    said(teams[0], "sessions", "delete", session, **me.env)


def test_a_text_of_others_at_a_terminal(teams, me):
    definition = {
        "name": "t",
        "description": "a\x1b[2J\nb\u009b",
        "code_config": {"language": "python", "code": "return '\x1b]0;x\x07'"},
    }
    me.said("create", "-", input=json.dumps(definition).encode())
    for args in (("tools",), ("tools", "show", "t"), ("tools", "schemas"), ("tools", "run", "t")):
        status, text = on_terminal(teams[0], *args, ISLE_KEY=me.env["ISLE_KEY"])
        assert status == 0 and not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", text), (args, text)
    assert me.said("list").count("\n") == 1


def test_what_a_terminal_is_told_besides(teams, me, tmp_path):
    (tmp_path / "greet.py").write_text("def greet(name):\n    return 'hello ' + name\n")
    (tmp_path / "leave.py").write_text("open('a', 'w').write('x')\n")
    me.said("create", tmp_path / "greet.py")
    me.said("create", tmp_path / "leave.py", "--artifact", "a")
    text = me.refused("run", "greet", "name=Ada")
    assert "the tool has no parameters; `isle tools update greet -p NAME:TYPE ...`" in text
    for name, hint in (("greet", "returned nothing: `return`"), ("leave", "left 1 file: `isle artifacts get ")):
        assert me.words("run", name).stderr == b""
        status, text = on_terminal(teams[0], "tools", "run", name, ISLE_KEY=me.env["ISLE_KEY"])
        assert status == 0 and hint in text, text


def test_each_action_has_a_help_of_its_own(me):
    whole = me.said("--help")
    actions = re.findall(r"^(?:Usage:|      ) isle tools \[?(\w+)", whole, re.M)
    assert {"list", "create", "import"} < set(actions)
    for action in actions:
        text = me.said(action, "--help")
        (usage,) = re.findall(r"isle tools \[?(\w+)[\] ]", text.partition("\nAt a terminal")[0])
        assert usage == action and "isle tools --help" in text and len(text) < len(whole)
    text = me.said("share", "--help")
    assert re.findall(r"^  (?:-., )?(--\w+)", text, re.M) == "--permission --url --key --json --help".split()
    assert me.said("nonesuch", "--help") == whole


def test_words_that_no_tool_takes(me):
    for args in (("show",), ("run",), ("list", "x"), ("share", "a"), ("list", "-p", "x"), ("nonesuch",)):
        assert "isle tools --help" in me.refused(*args)


def test_an_interruption_cancels_the_call(teams, me, tmp_path):
    (tmp_path / "slow.py").write_text("import time; time.sleep(50)")
    me.said("create", tmp_path / "slow.py")
    env = {"PATH": "/usr/bin:/bin", "ISLE_URL": f"http://127.0.0.1:{teams[0].port}"} | me.env
    p = subprocess.Popen([harness.ISLE, "tools", "run", "slow"], env=env, stderr=subprocess.PIPE)
    try:
        assert harness.until(teams[0].one_shot, 20)
        p.send_signal(signal.SIGINT)
        assert p.communicate(timeout=20 * harness.SLOW)[1] == b"isle tools: cancelled\n" and p.returncode == 130
    finally:
        p.kill()
    assert harness.until(lambda: not teams[0].one_shot(), 20)
    last = ("jobs", "list", "--limit", "1")
    assert harness.until(lambda: data(teams[0], *last, **me.env)["items"][0]["status"] == "cancelled", 20)


def test_what_the_page_says_of_parameters_and_definitions(me, tmp_path):
    text = (harness.ROOT / "docs/tools.md").read_text()
    (rows,) = re.findall(r"^\| written \| means \|\n.*?\n((?:\|.*\n)+)", text, re.M)
    specs = [spec for row in rows.splitlines() for spec in re.findall(r"`([^`]+)`", row.split("|")[1])]
    assert len(specs) > 6
    (tmp_path / "f.py").write_text("return params")
    for i, spec in enumerate([*specs, 'tags:string[]=["a","b"]']):
        me.said("create", tmp_path / "f.py", "--name", f"f{i}", "-p", spec)
    (definition,) = re.findall(r"^```json\n(.*?)^```$", text, re.M | re.S)
    me.said("create", "-", input=definition.encode())
    assert me.data("run", "top_words", "text=a b")["result"] == ["a", "b"]


def test_the_page_is_true(teams, me, tmp_path):
    """Every console block of docs/tools.md, one after another; … stands for anything."""
    s, keys = teams
    text = (harness.ROOT / "docs/tools.md").read_text()
    blocks = re.findall(r"^```console\n(.*?)^```$", text, re.S | re.M)
    steps = [s for b in blocks for s in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", b, re.M)]
    assert len(steps) > 20
    mark = "\x1e"
    script = "".join(f"printf %s {shlex.quote(mark)}; (exit $s); {command}\ns=$?\n" for command, _ in steps)
    done = subprocess.run(
        ["bash", "-c", "s=0\n" + script],
        cwd=harness.ROOT,
        env={
            "PATH": f"{harness.ISLE.parent}:/usr/sbin:/usr/bin:/sbin:/bin",
            "LANG": "C.UTF-8",
            "ISLE_URL": f"http://127.0.0.1:{s.port}",
            "ISLE_KEY": keys["me"],
            "OTHER": keys["data"],
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60 * harness.SLOW,
        check=False,
    )
    for (command, wanted), shown in zip(steps, done.stdout.split(mark)[1:], strict=True):
        assert re.fullmatch(".*".join(map(re.escape, wanted.split("…"))), shown, re.S), (command, shown)
