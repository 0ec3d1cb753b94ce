"""Group D over HTTP, and what goes in and out as a file: a job sets the trap, trusted code outside steps in."""

from __future__ import annotations

import hashlib
import io
import os
import time
import urllib.parse
import zipfile

import harness
import pytest
from payload import FOLDER
from service import JOBS, SESSIONS, Answer, Service
from session_files import Files

# The same in less time
FEWER = {"D13.py": {"range(1000)": "range(200)"}, "D14.py": {"d<20000": "d<3000"}}
SOON = 10 * harness.SLOW  # seconds
PROGRAMS = {"py": "python3", "sh": "bash"}


@pytest.fixture(autouse=True)
def still_there(service: Service):
    """After each attack the service is the same one, and has never said 500."""
    pid = service.service_pid
    yield
    assert service.python("return 6 * 7")["result"] == 42
    assert service.service_pid == pid
    assert [r for r in service.log_rows() if r.get("status") == 500] == []


@pytest.fixture
def files(service: Service) -> Files:
    return Files(service)


def strike(files: Files, file: str, canary=None, artifacts: tuple[str, ...] = (), **fields) -> dict:
    """A payload as a job of the session, from a file that is not in it afterwards."""
    text = (FOLDER / file).read_text()
    text = text.replace("@CANARY@", str(canary.folder)) if canary else text
    for long, short in FEWER.get(file, {}).items():
        assert long in text
        text = text if os.environ.get("ISLE_LONG") else text.replace(long, short)
    assert "@CANARY@" not in text
    argv = [PROGRAMS[file.rsplit(".", 1)[1]], "-c", text]
    job = {"command": argv, "session_id": files.session, "artifacts": list(artifacts), **fields}
    r = files.c.wait(files.c.submit(job))
    assert "ESCAPED" not in r["stdout"] + r["stderr"], r
    return r


def zipped(body: bytes) -> zipfile.ZipFile:
    z = zipfile.ZipFile(io.BytesIO(body))
    assert z.testzip() is None
    return z


def entries(s: Service) -> set[str]:
    """Names around the sessions' folders and in them, but for what the service makes ahead and throws away."""
    made = [s.folder, s.data, s.data / "serve", s.data / "serve/kept", *(s.data / "serve/kept").iterdir()]
    return {str(path) for folder in made for path in folder.iterdir()}


def unseen(*answers) -> None:
    for a in answers:
        assert b"CANARY" not in a.body and b"root:" not in a.body, a


def test_D01_links(service, files, canary):
    r = strike(files, "D01.sh", canary, ("output/report.txt", "output/env.txt", "output/s"))
    assert r["reason"] == "artifact" and r["artifacts"] == [] and "link" in r["error"], r
    for name in ("report.txt", "env.txt", "s"):
        a = files.get(f"output/{name}")
        assert a.status == 422 and "link" in a.msg
    assert zipped(files.get("output").body).namelist() == []


def test_D02_links_in_an_archive(files, canary):
    r = strike(files, "D02.sh", canary, ("d",))
    [d] = r["artifacts"]
    for body in (files.c.get(d["url"]).body, files.get("d").body):
        assert zipped(body).namelist() == ["sub/"]
        assert b"CANARY" not in body
    for path in ("d/x", "d/rootdir/etc/hostname", "d/sub/up/etc/hostname", "d/loop2", "d/rootdir"):
        assert files.get(path).status in (404, 409, 422), path


def test_D03_a_link_above(files, canary):
    assert strike(files, "D03.sh", canary, ("out/secret.txt",))["reason"] == "artifact"
    answers = [files.get("out/secret.txt"), files.put("out/new"), files.delete("out/public.txt"), files.list("out")]
    answers += [files.move("out/public.txt", "x"), files.move("input", "out/x")]
    unseen(*answers)
    assert [a.status for a in answers] == [422 if a.status == 422 else 409 for a in answers]


def test_D05_the_staged_file_is_a_link(files, canary):
    strike(files, "D05.sh", canary)
    staged = {"target_path": "/workspace/input/data.csv", "content_base64": "bmV3"}
    job = {"language": "python", "session_id": files.session, "input_files": [staged]}
    r = files.c.wait(files.c.submit(job | {"code": "return open('input/data.csv').read()"}))
    assert r["result"] == "new", r
    assert files.put("input/data.csv", b"newer").status == 200
    assert files.put("snippet.py", b"x").status == 422
    r = files.c.wait(files.c.submit({"command": ["ls", "-l", "input/data.csv"], "session_id": files.session}))
    assert r["stdout"].startswith("-")


def test_D06_folders_are_links(files, canary):
    strike(files, "D06.sh", canary)
    code = "import os, tempfile\nopen('/tmp/x','w').write('1')\nreturn sorted(os.listdir('/tmp'))"
    assert files.python(code)["result"] == ["x"]
    staged = {"target_path": "/workspace/input/data.csv", "content_base64": "bmV3"}
    r = files.c.wait(files.c.submit({"command": ["true"], "session_id": files.session, "input_files": [staged]}))
    assert r["reason"] == "error" and "input/data.csv" in r["error"], r
    unseen(files.get("input/etc/passwd"), files.list("input/etc"), files.put("tmp/file", b"x"))
    assert files.c.call("DELETE", f"{SESSIONS}/{files.session}").status == 200


def test_D08_planted_programs(files, canary):
    """What could be run by whoever archives, lists or prepares: nothing of it is."""
    strike(files, "D08.sh", canary, (".venv", "git"))
    files.get(".venv"), files.list(recursive="true"), files.delete("node_modules")
    assert files.python("import subprocess, sys\nreturn sys.executable")["result"] == "/usr/bin/python3.13"
    assert not (canary.folder / "venv_ran").exists()


def test_D09_no_regular_files(files):
    r = strike(files, "D09.py", artifacts=("f.bin", "output/g.csv", "s.sock"))
    assert r["reason"] == "artifact"
    begin = time.monotonic()
    for path in ("f.bin", "output/g.csv", "s.sock"):
        for a in (files.get(path), files.put(path)):
            assert a.status == 422 and "regular file" in a.msg, a
    assert {i["type"] for i in files.list("output").data["items"]} == {"other"}
    assert files.delete("f.bin").status == 200
    assert time.monotonic() - begin < SOON


def test_D11_hard_links(files):
    strike(files, "D11.py")
    files.sh("echo inside > a; ln a b")
    assert files.put("a", b"new").status == 200 and files.get("b").body == b"inside\n"


def test_D12_sparse(files):
    strike(files, "D12.sh")
    script = "rm -r z sp; mkdir z; truncate -s 100M z/a sp"
    job = {"command": ["bash", "-c", script], "session_id": files.session, "artifacts": ["z", "sp"]}
    begin = time.monotonic()
    r = files.c.wait(files.c.submit(job))
    assert r["reason"] == "artifact" and r["artifacts"] == [] and r["truncated"]["artifacts"], r
    assert time.monotonic() - begin < SOON
    a = files.c.get(files.at("sp"), headers={"Range": "bytes=0-9"})
    assert a.body == bytes(10)


def test_D13_a_hundred_thousand_files(service, files):
    r = strike(files, "D13.py", limits={"timeout_seconds": 120})
    assert r["reason"] in ("ok", "disk_limit", "timeout"), r
    begin = time.monotonic()
    page = files.list(recursive="true").data
    assert len(page["items"]) == 1000 and page["truncated"] and page["next_cursor"]
    assert time.monotonic() - begin < SOON
    r = files.c.wait(
        files.c.submit({"command": ["true"], "session_id": files.session, "artifacts": ["m0", "m1"]}),
    )
    assert (r["success"], r["reason"]) == (True, "ok") and r["exit_code"] == 0, r
    whole = [zipped(files.c.get(a["url"]).body).namelist() for a in r["artifacts"]]
    assert [len(names) for names in whole] == [1000 if harness.LONG else 200] * 2
    assert service.call("DELETE", f"{SESSIONS}/{files.session}").status == 200
    begin = time.monotonic()
    other = Files(service)
    assert other.put("f").status == 201 and other.python("return 1")["result"] == 1
    assert time.monotonic() - begin < SOON
    assert harness.until(lambda: not any((service.data / "serve/trash").iterdir()), 120)


def test_D14_deep(service, files):
    strike(files, "D14.py")
    page = files.list(recursive="true").data
    assert page["truncated"] and page["next_cursor"] is None
    assert files.get("d" * 50).status == 200
    assert files.delete("d" * 50).status == 200
    assert harness.until(lambda: not any((service.data / "serve/trash").iterdir()), 60)


def test_D15_odd_names(files):
    r = strike(files, "D15.py", artifacts=("output",))
    items = files.list("output").data["items"]
    assert len(items) == 16
    for i in items:
        assert files.get(i["path"], escaped=str(i["escaped"]).lower()).status == 200, i
    names = zipped(files.c.get(r["artifacts"][0]["url"]).body).namelist()
    assert len(names) == len(set(names)) == 16
    for n in names:
        assert not n.startswith(("/", "\\")) and not {"..", "."} & set(n.split("/")) and ":" not in n, n
    for i in items:
        assert files.delete(i["path"], escaped=str(i["escaped"]).lower()).status == 200, i


def test_D16_locked(service, files):
    strike(files, "D16.sh")
    assert files.list("x").status in (200, 422)
    assert service.call("DELETE", f"{SESSIONS}/{files.session}").status == 200
    folder = service.data / "serve"
    assert harness.until(lambda: not any((folder / "trash").iterdir()), 30)
    assert not (folder / "kept" / files.session).exists()


def test_D17_the_archive_contains_itself(files, canary):
    a = files.c.post(JOBS, {"command": ["true"], "artifacts": ["/workspace"]})
    assert a.status == 422
    script = f"mkdir d; head -c 9000000 /dev/urandom > d/big; ln -s {canary.folder}/overwrite_me d.zip;"
    script += f"ln -s {canary.folder}/overwrite_me d/d__artifact.zip"
    job = {"command": ["bash", "-c", script], "session_id": files.session, "artifacts": ["d"]}
    [d] = files.c.wait(files.c.submit(job))["artifacts"]
    assert zipped(files.c.get(d["url"]).body).namelist() == ["big"]
    whole = zipped(files.c.get(files.base + "/").body)
    assert "d/big" in whole.namelist() and not any("zip" in n for n in whole.namelist())
    assert sorted(files.names("d")) == ["d/big", "d/d__artifact.zip"]


OUTSIDE = [
    "../../etc/passwd",
    "/workspace/../etc/passwd",
    "/workspaceX/a",
    "/workspace//../..//etc/passwd",
    "/workspace/\0/../x",
    "a\0.txt",
    "/proc/self/environ",
    "/",
    "a/" * 5000,
    "\ud800",
]
# Odd, but names in the workspace, and which.
PLAIN = {
    "%2e%2e/%2e%2e/etc/passwd": "%2e%2e/%2e%2e/etc/passwd",
    "..\\..\\etc": "..\\..\\etc",
    "~/.ssh/id_rsa": "~/.ssh/id_rsa",
    "file:///etc/passwd": "file:/etc/passwd",
    "/workspace/\u2024\u2024/x": "\u2024\u2024/x",
}
# Codes: not readable, too long, not allowed here.
REFUSED = {400: 1002, 413: 1006, 414: 1002, 422: 1001}


def asked_of(files: Files, path: str) -> dict[str, Answer]:
    """Every call that takes a path, with this one."""
    c, session = files.c, {"session_id": files.session}
    # as bytes: a lone surrogate is no text that could be quoted
    quoted = urllib.parse.quote(path.encode("utf-8", "surrogatepass"))
    return {
        "list": c.get(f"{files.base}?path={quoted}"),
        "read": c.get(f"{files.base}/{quoted}"),
        "write": c.call("PUT", f"{files.base}/{quoted}", body=b"x"),
        "move to": files.move("none", path),
        "move from": files.move(path, "none"),
        "cwd": c.post(JOBS, {"command": ["true"], "cwd": path, **session}),
        "artifact": c.post(JOBS, {"command": ["true"], "artifacts": [path], **session}),
        "input": c.post(JOBS, {"command": ["true"], "input_files": [{"target_path": path, "content_base64": ""}]}),
    }


def told_by_tools(files: Files, path: str) -> dict[str, Answer]:
    """The agent's, of which a model reads the text."""
    tools = f"{SESSIONS}/{files.session}/tools"
    return {
        "read": files.c.post(f"{tools}/read", {"path": path}),
        "write": files.c.post(f"{tools}/write", {"path": path, "content": "x"}),
        "edit": files.c.post(f"{tools}/edit", {"path": path, "edits": [{"op": "cut", "line": "1#0000"}]}),
        "artifact": files.c.post(f"{tools}/artifact", {"paths": [path]}),
        "bash": files.c.post(f"{tools}/bash", {"command": "true", "cwd": path}),
    }


@pytest.mark.parametrize("path", OUTSIDE, ids=range(len(OUTSIDE)))
def test_D18_path_forms(files, path):
    """Refused by every call, each with the code for that, and nothing is there or gone afterwards."""
    before = files.names(recursive="true")
    answers = asked_of(files, path)
    unseen(*answers.values())
    for call, a in answers.items():
        assert a.status in REFUSED and a.code == REFUSED[a.status], (call, a)
        assert a.status in (400, 422) or len(path) > 4096, (call, a)
    for tool, a in told_by_tools(files, path).items():
        unseen(a)
        refused = a.code == REFUSED[a.status] if a.status != 200 else not a.data["success"] and a.data["error"]
        assert refused, (tool, a)
    assert files.names(recursive="true") == before


@pytest.mark.parametrize("path", PLAIN, ids=range(len(PLAIN)))
def test_D18_plain_names(files, path):
    """Nothing reads dots into them, and what is written is that name below the workspace."""
    before, name = set(files.names(recursive="true")), PLAIN[path]
    a = asked_of(files, path)
    assert [a[call].status for call in ("list", "read", "move to")] == [404, 404, 404], a
    assert a["write"].status == 201 and a["move from"].status == 200, a
    assert [a[call].status for call in ("cwd", "artifact", "input")] == [202, 202, 202], a
    assert not any(files.c.wait(a[call].data["job_id"])["success"] for call in ("cwd", "artifact")), "moved away"
    made = {name[:at] for at in range(len(name)) if name[at] == "/"}
    assert set(files.names(recursive="true")) == before | made | {"none"}
    assert files.put(path, b"x").status == 201 and files.get(path).body == b"x"
    job = {"command": ["true"], "session_id": files.session, "artifacts": [path]}
    [kept] = files.c.wait(files.c.submit(job))["artifacts"]
    assert kept["path"] == f"/workspace/{name}" and files.c.get(kept["url"]).body == b"x"
    escaped = files.put(path, b"y", escaped="true")  # only here "%2e" is a dot
    assert (escaped.status, escaped.code) == ((422, 1001) if "%" in path else (200, 0)), escaped
    assert set(files.names(recursive="true")) == before | made | {"none", name}


@pytest.mark.parametrize("path", ["", "/workspace/."])
def test_D18_the_workspace_itself(files, path):
    """May be listed and worked in; it is no file that is read, written, moved, handed in or kept."""
    before, a = files.names(recursive="true"), asked_of(files, path)
    a["move to"] = files.move("input", path)  # of what is there
    for call in ("write", "move to", "move from", "artifact", "input"):
        assert a[call].status in (400, 422) and a[call].code == REFUSED[a[call].status], (call, a[call])
    assert [a[call].status for call in ("list", "cwd")] == ([200, 202] if path else [422, 422]), a
    assert a["read"].status == (400 if path else 200), a
    if not path:
        assert set(zipped(a["read"].body).namelist()) == {f"{n}/" for n in before}
    assert files.names(recursive="true") == before


@pytest.mark.parametrize("field", [{"cwd": "../../etc"}, {"artifacts": ["../../etc/passwd"]}])
def test_D18_a_job_is_refused_by_one_field(files, field):
    a = files.c.post(JOBS, {"command": ["true"], "session_id": files.session, **field})
    assert (a.status, a.code) == (422, 1001) and next(iter(field)) in a.msg and '".."' in a.msg, a


def test_D21_traces(files):
    strike(files, "D21.sh")
    r = files.c.python("return [params['a']]", params={"a": {"b": 1}}, session_id=files.session)
    assert r["success"] and r["result"] == [{"b": 1}] and r["stderr"] == "", r
    r = files.python("import json")  # its own file, by design
    assert r["error"] == "SystemExit: shadowed", r
    r = files.c.wait(files.c.submit({"command": ["bash", "-c", "type ls; echo $PATH"], "session_id": files.session}))
    assert "alias" not in r["stdout"] and "/workspace" not in r["stdout"], r
    r = files.c.js("return require('node:fs').readdirSync('.').length > 5", session_id=files.session)
    assert r["result"] is True
    other = Files(files.c)
    assert other.names() == ["input", "logs", "output", "tmp"]


def test_D22_two_at_once(files, canary):
    swap = f"while test ! -e stop; do mv input input_; ln -s {canary.folder} input; rm input; mv input_ input; done"
    a = files.c.submit(
        {"command": ["bash", "-c", swap], "session_id": files.session, "limits": {"timeout_seconds": 300}}
    )
    assert harness.until(lambda: files.c.job(a)["status"] == "running", 20)
    staged = {"target_path": "/workspace/input/new.txt", "content_base64": "eA=="}
    jobs = [
        files.c.submit({"command": ["true"], "session_id": files.session, "input_files": [staged]}) for _ in range(20)
    ]
    for _ in range(200):  # beside it: uploads do not wait
        assert files.put("input/up.txt").status in (200, 201, 404, 409, 422)
    assert files.c.job(jobs[0])["status"] == "queued"
    files.put("stop")
    files.c.wait(a)
    assert all(files.c.wait(j)["success"] for j in jobs)
    assert sorted(os.listdir(canary.folder)) == sorted(
        ["canary.sock", "overwrite_me", "public.txt", "secret.txt", "t3", "target"]
    )


IDENTS = ["../../../..", "../../../../../..@CANARY@", "a/b", ".", "*", "A", "..%2f..%2fx", "%2e%2e", "", "0" * 36]


@pytest.mark.parametrize("ident", [*IDENTS, "x" * 9000], ids=range(len(IDENTS) + 1))
def test_D23_ids_are_no_paths(service, files, canary, ident):
    ident = ident.replace("@CANARY@", str(canary.folder))
    before = entries(service)
    for field in (ident, urllib.parse.unquote(ident), files.session.upper(), files.session + "\0"):
        a = service.post(JOBS, {"command": ["true"], "session_id": field})
        assert a.status in (404, 413, 422), (field, a)
        unseen(a)
    for path in (f"{SESSIONS}/{ident}/files", f"{JOBS}/{ident}/artifacts/..%5c..%5csecret.txt", f"{SESSIONS}/{ident}"):
        for method in ("GET", "DELETE"):
            a = service.call(method, path)
            assert a.status in (400, 404, 405, 414) or (ident == "" and path == f"{SESSIONS}/"), (path, a)
            unseen(a)
    assert service.get(f"{SESSIONS}/{files.session}").status == 200
    assert service.get(f"{SESSIONS}/{files.session.upper()}").status == 404
    assert entries(service) == before, "made or removed by a name"
    assert canary.differences() == []


def test_D24_types_and_modes(service, files):
    names = ("run.sh", "page.html", "pic.svg", ".htaccess", "a.pdf")
    r = strike(files, "D24.sh", artifacts=tuple(f"output/{n}" for n in names))
    assert [a["filename"] for a in r["artifacts"]] == list(names)
    for a in r["artifacts"]:
        for got in (service.get(a["url"]), files.get(f"output/{a['filename']}")):
            assert got.status == 200
            assert got.headers["Content-Disposition"].startswith("attachment")
            assert got.headers["X-Content-Type-Options"] == "nosniff"
            assert got.headers["Content-Security-Policy"] == "sandbox; default-src 'none'"
            assert got.headers.get_content_type() in ("application/octet-stream", "application/pdf"), got.headers
    stored = [p for p in (service.data / "serve/artifacts" / r["job_id"]).iterdir() if p.name != "team"]  # whose
    assert sorted(p.name for p in stored) == ["0", "1", "2", "3", "4"]
    assert {p.stat().st_mode & 0o7777 for p in stored} == {0o600}


def test_H12_archives_are_not_unpacked(files, canary):
    """An upload is a file and stays one: there is no call that unpacks."""
    strike(files, "H12.py", canary)
    for name in ("evil.zip", "evil.tar"):
        body = files.get(name).body
        assert files.put(f"up/{name}", body, {"Content-Type": "application/zip"}).status == 201
        assert files.get(f"up/{name}").headers["ETag"] == f'"{hashlib.sha256(body).hexdigest()}"'
    assert files.names("up") == ["up/evil.tar", "up/evil.zip"]
    assert files.c.get("/openapi.json").body.count(b"unpack") == 0


@pytest.mark.parametrize(
    "name",
    ['a"; filename="b.html', "x\r\nSet-Cookie: s=1", "\u202egpj.exe", "e" * 255, "CON", "=cmd|' C calc'!A1", "ü;x=1"],
)
def test_H20_names_in_headers(service, files, name):
    code = "open(params['n'],'w').write('1')"
    job = {"language": "python", "code": code, "params": {"n": name}, "artifacts": [name], "session_id": files.session}
    r = service.wait(service.submit(job))
    [a] = r["artifacts"]
    escaped = str(any(ord(c) < 32 for c in name)).lower()
    path = name if escaped == "false" else name.replace("\r", "%0D").replace("\n", "%0A")
    for got in (service.get(a["url"]), files.get(path, escaped=escaped)):
        assert got.status == 200 and got.body == b"1"
        [line] = got.headers.get_all("Content-Disposition")
        assert "Set-Cookie" not in got.headers
        plain = line.removeprefix('attachment; filename="').partition('"')[0]
        assert plain.isascii() and plain.isprintable() and "\\" not in plain, line
        rest = line.removeprefix(f'attachment; filename="{plain}"')
        assert rest == "" or rest.startswith("; filename*=UTF-8''"), line
        assert "\u202e" not in line and '"' not in rest and " " not in rest[2:]


def test_H24_the_next_one_finds_nothing(service: Service):
    """Uids and folders are used again: for nobody is anything there."""
    uids = set()
    for _ in range(6):
        mine = Files(service)
        r = strike(mine, "H24.sh")
        assert "keep" in r["stdout"] and "tenant-A-data" not in r["stdout"]
        assert r["stdout"].count("keep") == 1, "the one before left it"
        r = service.wait(
            service.submit({"command": ["bash", "-c", "ps ax | grep -c '[s]leep 300'; ls -A /dev/shm /tmp"]})
        )
        assert r["stdout"].splitlines()[0] == "0", r
        uids.add((service.data / "serve/kept" / mine.session / "w").stat().st_uid)
        service.call("DELETE", f"{SESSIONS}/{mine.session}")
    assert len(uids) == 6  # as late as can be
