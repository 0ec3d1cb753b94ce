"""What jobs leave for their owners, over HTTP: what is named, whole, and from the workspace alone."""

from __future__ import annotations

import hashlib
import io
import zipfile

import harness
from service import API, JOBS, SESSIONS

SERVICE_SETTINGS = {"SANDBOX_ARTIFACT_MAX_FILE_SIZE_MB": "4", "SANDBOX_ARTIFACT_MAX_TOTAL_SIZE_MB": "6"}


def run(service, code: str, artifacts: list, **fields) -> dict:
    language = fields.pop("language", "python")
    job = {"language": language, "code": code, "artifacts": artifacts, **fields}
    return service.wait(service.submit(job))


def sh(service, script: str, artifacts: list, **fields) -> dict:
    return run(service, script, artifacts, language="bash", **fields)


def fetch(service, artifact: dict) -> bytes:
    a = service.get(artifact["url"])
    assert a.status == 200, a
    assert len(a.body) == artifact["size"]
    assert hashlib.sha256(a.body).hexdigest() == artifact["checksum"]
    assert a.headers["ETag"] == f'"{artifact["checksum"]}"'
    assert a.headers["X-Content-Type-Options"] == "nosniff"
    assert a.headers["Content-Security-Policy"] == "sandbox; default-src 'none'"
    assert a.headers["Content-Disposition"].startswith("attachment; filename=")
    return a.body


def test_fetched_by_name(service):
    r = run(
        service, "open('a.csv','w').write('1,2\\n'); open('b.html','w').write('<p>')", ["a.csv", {"path": "b.html"}]
    )
    a, b = r["artifacts"]
    assert (a["filename"], a["content_type"], a["file_type"]) == ("a.csv", "text/csv", "file")
    assert a["url"] == f"{JOBS}/{r['job_id']}/artifacts/a.csv"
    assert fetch(service, a) == b"1,2\n" and fetch(service, b) == b"<p>"
    assert service.get(a["url"]).headers["Content-Type"] == "text/csv"
    assert (b["content_type"], service.get(b["url"]).headers["Content-Type"]) == (
        "text/html",
        "application/octet-stream",
    )
    part = service.get(a["url"], headers={"Range": "bytes=1-2"})
    assert (part.status, part.body) == (206, b",2")
    assert service.get(a["url"], headers={"If-None-Match": f'"{a["checksum"]}"'}).status == 304
    for name in ("none", "b", "a.csv%00", "..", "%2e%2e%2fa.csv", "..%5ca.csv"):
        assert service.get(f"{JOBS}/{r['job_id']}/artifacts/{name}").status in (400, 404), name
    assert service.get(f"{JOBS}/0190c3f0-0000-7000-8000-000000000001/artifacts/a.csv").status == 404
    # the same of a caller that waits
    data = service.python("open('x','w').write('y')", artifacts=["x"])
    assert fetch(service, data["artifacts"][0]) == b"y"


def test_what_cannot_be_kept_says_nothing_of_sandboxes(service):
    """The folder that a job's artifacts would get is there already: the job has run, and its sandbox was sound."""
    session = service.post(SESSIONS, {}).data["session_id"]
    failures, trials = service.metric("isle_sandbox_failures_total"), service.get("/readyz").data["trial"]["runs"]
    script = "while [ ! -e go ]; do sleep 0.02; done; echo x > x"
    ident = service.submit({"language": "bash", "code": script, "artifacts": ["x"], "session_id": session})
    taken = service.data / "serve/artifacts" / ident
    taken.mkdir()
    try:
        assert service.call("PUT", f"{SESSIONS}/{session}/files/go", body=b"").status == 201
        r = service.wait(ident)
        assert r["reason"] == "internal" and "artifacts cannot be stored" in r["error"], r
    finally:
        taken.rmdir()
    assert service.metric("isle_sandbox_failures_total") == failures
    ready = service.get("/readyz")
    assert ready.status == 200 and ready.data["trial"]["runs"] == trials, ready


def test_ART_02_inputs_are_no_outputs(service):
    session = service.post(SESSIONS, {}).data["session_id"]
    service.call("PUT", f"{SESSIONS}/{session}/files/in.csv", body=b"1\n")
    r = service.python('print(open("in.csv").read())', session_id=session)
    assert r["success"] and r["artifacts"] == []


def test_ART_03_links(service):
    script = "echo a > a; ln -s /etc/shadow out.txt; ln -s ../../../../etc/hostname h; ln a hard; ln -s a here"
    for name in ("out.txt", "h", "here"):
        r = sh(service, script, [name, "hard"])
        assert r["reason"] == "artifact" and name in r["error"] and "link" in r["error"], r
        [hard] = r["artifacts"]
        assert fetch(service, hard) == b"a\n"


def test_ART_03_swapped_while_it_is_collected(service, canary):
    """A job of the session swaps the file and its folder with links outside all the while another's is collected."""
    session = service.post(SESSIONS, {}).data["session_id"]
    where = f"{SESSIONS}/{session}"
    code = """
import os
os.makedirs("d"); open("f", "w").write("inside"); open("d/secret.txt", "w").write("inside")
os.symlink(params["out"] + "/secret.txt", "lf"); os.symlink(params["out"], "ld")
print("swaps", flush=True)
while not os.path.exists("stop"):
    for a, b in (("f", "lf"), ("d", "ld")):
        os.rename(a, "x"); os.rename(b, a); os.rename("x", b)
"""
    job = {"language": "python", "code": code, "params": {"out": str(canary.folder)}, "session_id": session}
    swapping = service.submit(job | {"limits": {"timeout_seconds": 600}})
    with service.events(swapping) as stream:
        assert any(e.name == "stdout" for e in stream), service.job(swapping)
    kept = refused = 0

    def collected() -> None:
        nonlocal kept, refused
        a = service.post(f"{where}/tools/artifact", {"paths": ["f", "d/secret.txt", "d"]})
        for file in a.data["files"]:
            body = service.get(file["url"]).body
            whole = zipfile.ZipFile(io.BytesIO(body)).read("secret.txt") if file["name"] == "d.zip" else body
            assert whole == b"inside", file
        kept += len(a.data["files"])
        refused += a.data["error"] is not None

    try:
        for _ in range(30):
            collected()
        assert harness.until(lambda: collected() or (kept and refused), 60), "met both: what was there, and links"
    finally:
        assert service.call("PUT", f"{where}/files/stop", body=b"").status == 201
    assert service.wait(swapping)["success"] and canary.differences() == []


def test_ART_04_names_of_an_archive(service):
    script = r"""
mkdir -p bin d/sub 'd/..\..\x' 'd/-rf'; printf '#!/bin/sh\nexit 3\n' > bin/zip; cp bin/zip bin/tar; chmod +x bin/*
export PATH=/workspace/bin:$PATH
cd d; touch sub/f '..\..\x/g' -- '-rf/--checkpoint-action=exec=id' 'C:\x' $'a\nb' $'r\x80' '...' ' lead'; ln -s / root
"""
    r = sh(service, script, ["d"])
    [d] = r["artifacts"]
    assert (d["path"], d["filename"], d["file_type"]) == ("/workspace/d", "d.zip", "directory")
    with zipfile.ZipFile(io.BytesIO(fetch(service, d))) as z:
        assert z.testzip() is None
        names = z.namelist()
    assert len(names) == 11 and len(set(names)) == 11, names  # not the link
    for name in names:
        assert not name.startswith(("/", "\\")) and ".." not in name.split("/") and "\n" not in name, name
        assert "\\" not in name and ":" not in name, name


def test_ART_05_special_files(service):
    script = (
        "mkdir out; mkfifo out/p; echo 1 > out/ok;"
        "python3 -c 'import socket;s=socket.socket(socket.AF_UNIX);s.bind(\"out/s\")'"
    )
    for name in ("out/p", "out/s"):
        r = sh(service, script, [name, "out/ok"])
        assert r["reason"] == "artifact" and name in r["error"]
        assert [a["filename"] for a in r["artifacts"]] == ["ok"]
    [out] = sh(service, script, ["out"])["artifacts"]
    with zipfile.ZipFile(io.BytesIO(fetch(service, out))) as z:
        assert z.namelist() == ["ok"]


def test_ART_06_too_many_too_big(service):
    """In the job's order: what fits is kept, what does not is named, and the result says so."""
    many = "import os; os.mkdir('d'); [open(f'd/{i}','w').write('x') for i in range(%d)]"
    before = service.figures().private_kb
    r = run(service, many % 10001, ["d"])
    assert r["reason"] == "artifact" and "10000 entries" in r["error"] and r["truncated"]["artifacts"], r
    [d] = run(service, many % 5000, ["d"])["artifacts"]
    with zipfile.ZipFile(io.BytesIO(fetch(service, d))) as z:
        assert len(z.namelist()) == 5000
    r = run(service, "open('big','wb').truncate(500 << 20); open('small','w').write('s')", ["big", "small"])
    assert r["reason"] == "artifact" and "524288000 bytes" in r["error"] and r["truncated"]["artifacts"], r
    assert [a["filename"] for a in r["artifacts"]] == ["small"]
    three = "import os\nfor n in 'abc': open(n,'wb').write(os.urandom(3 << 20))"
    r = run(service, three, ["a", "b", "c"])
    assert [a["filename"] for a in r["artifacts"]] == ["a", "b"] and "artifact c" in r["error"]
    r = run(service, "import os\nos.mkdir('z')\nopen('z/f','wb').truncate(5 << 20)", ["z"])
    assert r["reason"] == "artifact" and r["artifacts"] == [] and r["truncated"]["artifacts"]
    r = run(service, "open('f','wb').truncate(2 << 20)", ["f"], artifact_limits={"max_size_mb": 1})
    assert r["reason"] == "artifact" and "artifact_limits.max_size_mb" in r["error"]
    assert harness.until(lambda: service.figures().private_kb - before < 20000, 10), (before, service.figures())


def test_ART_09_one_chart_whole(service):
    code = "import random\nrandom.seed(9)\nd=random.randbytes(1500000).hex()\nopen('chart.html','w').write(d)\n"
    code += "import hashlib\nreturn hashlib.sha256(d.encode()).hexdigest()"
    r = run(service, code, ["chart.html"])
    [chart] = r["artifacts"]
    assert chart["size"] == 3000000 and chart["checksum"] == r["result"]
    fetch(service, chart)


def test_names_that_clash(service):
    script = "mkdir a b c; echo 1 > a/x.csv; echo 2 > b/x.csv; mkdir c/x.csv; echo 3 > x.csv.zip; echo 4 > $'o\\nk'"
    r = sh(service, script, ["a/x.csv", "b/x.csv", "c/x.csv", "x.csv.zip", "o\nk"])
    assert [a["filename"] for a in r["artifacts"]] == ["x.csv", "x-2.csv", "x.csv.zip", "x.csv-2.zip", "o%0Ak"]
    bodies = [fetch(service, a) for a in r["artifacts"]]
    assert bodies[0] == b"1\n" and bodies[1] == b"2\n" and bodies[3:] == [b"3\n", b"4\n"]


def test_missing_and_optional(service):
    r = sh(service, "echo 1 > f", [{"path": "none", "optional": True, "description": "?"}, "f"])
    assert r["success"] and [a["filename"] for a in r["artifacts"]] == ["f"]
    r = sh(service, "echo 1 > f", ["none", {"path": "f", "description": "the f"}])
    assert r["reason"] == "artifact" and "none" in r["error"]
    assert [a["description"] for a in r["artifacts"]] == ["the f"]


def test_kept_over_a_restart_and_by_team(service):
    r = run(service, "open('f','w').write('kept')", ["f"])
    service.restart()
    assert fetch(service, r["artifacts"][0]) == b"kept"
    folder = service.data / "serve/artifacts"
    modes = {p.stat().st_mode & 0o7777 for p in folder.glob("*/[0-9]*")}
    assert modes == {0o600} and [p.name for p in folder.glob("*.part")] == []
    with service.client(unix=True) as admin:
        k = admin.post(f"{API}/keys", {"team": "other", "name": "k", "admin": False}).data
        try:
            with service.client(k["key"]) as other:
                assert other.get(r["artifacts"][0]["url"]).status == 404
        finally:
            admin.call("DELETE", f"{API}/keys/{k['id']}")


def test_gone_with_the_result(isle):
    assert isle
    from service import serving

    with serving({"SANDBOX_RESULT_TTL_SECONDS": "5"}) as s:
        r = run(s, "open('f','w').write('1')", ["f"])
        assert s.get(r["artifacts"][0]["url"]).status == 200
        folder = s.data / "serve/artifacts"
        assert harness.until(lambda: s.get(r["artifacts"][0]["url"]).status == 404, 20)
        assert harness.until(lambda: not any(folder.iterdir()), 10)
