"""The artifact tool of a session: what is given out, whole, by safe names, and what is not."""

from __future__ import annotations

import concurrent.futures
import hashlib
import io
import pathlib
import zipfile

import harness
import pytest
from agent_session import Agent, links
from service import JOBS

BASE = "https://isle.example/base"
SERVICE_SETTINGS = {
    "SANDBOX_ARTIFACT_MAX_FILE_SIZE_MB": "20",
    "SANDBOX_ARTIFACT_MAX_TOTAL_SIZE_MB": "24",
    "ISLE_PUBLIC_URL": f"{BASE}/",
}
MB = 1 << 20


@pytest.fixture(scope="module")
def agent(service):
    return Agent(service)


def fetch(service, file: dict) -> bytes:
    assert file["url"].startswith(f"{BASE}{JOBS}/"), file
    a = service.get(file["url"].removeprefix(BASE))
    assert a.status == 200, a
    assert len(a.body) == file["size_bytes"] and hashlib.sha256(a.body).hexdigest() == file["sha256"]
    assert a.headers["X-Content-Type-Options"] == "nosniff"
    assert a.headers["Content-Security-Policy"] == "sandbox; default-src 'none'"
    assert a.headers["Content-Disposition"].startswith("attachment; filename=")
    return a.body


def kept(service) -> set[str]:
    return {p.name for p in pathlib.Path(service.data, "serve/artifacts").iterdir()}


def listed(service, job: str) -> list[dict]:
    """Its row, which comes after the answer."""
    rows = []
    assert harness.until(
        lambda: rows.extend(i for i in service.get(JOBS).data["items"] if i["job_id"] == job) or rows, 5
    )
    return rows


def sparse(agent: Agent, **sizes: float) -> None:
    for name, mb in sizes.items():
        agent.says(f"truncate -s {int(mb * MB)} {name}")


def test_links_for_the_model(service, agent):
    agent.bash("mkdir -p out; echo 1,2 > out/a.csv; printf '\\x89PNG' > plot.png; echo '<svg/>' > drawing.svg")
    r = agent.artifact("out/a.csv", {"path": "/workspace/plot.png", "description": "the plot"}, "drawing.svg")
    assert r["success"] and r["missing"] == []
    a, plot, drawing = r["files"]
    assert (a["path"], a["name"], a["content_type"], a["description"]) == (
        "/workspace/out/a.csv",
        "a.csv",
        "text/csv",
        None,
    )
    assert (plot["content_type"], plot["description"], plot["size_bytes"]) == ("image/png", "the plot", 4)
    assert a["url"] == f"{BASE}{JOBS}/{r['job_id']}/artifacts/a.csv"
    assert r["markdown"] == f"[a.csv]({a['url']})\n\n![plot.png]({plot['url']})\n\n[drawing.svg]({drawing['url']})"
    assert [fetch(service, f) for f in r["files"]] == [b"1,2\n", b"\x89PNG", b"<svg/>\n"]
    # it is what a job left: found, listed, logged as one
    job = service.job(r["job_id"])
    assert job["success"] and [i["filename"] for i in job["artifacts"]] == ["a.csv", "plot.png", "drawing.svg"]
    assert job["artifacts"][0]["url"] == a["url"] and job["artifacts"][1]["description"] == "the plot"
    [row] = listed(service, r["job_id"])
    assert (row["status"], row["session_id"]) == ("completed", agent.session)
    [line] = [i for i in service.log_rows() if i.get("job") == r["job_id"]]
    assert (line["entry"], line["reason"]) == ("agent-artifact", "ok")
    # as it was: what the session does with the file later is another matter
    agent.bash("echo 3,4 > out/a.csv")
    assert fetch(service, a) == b"1,2\n"


def test_what_is_not_there(service, agent):
    agent.bash("echo 1 > there; mkdir -p d; touch d/f")
    r = agent.artifact({"path": "none", "optional": True}, "there", {"path": "there/x", "optional": True})
    assert [f["name"] for f in r["files"]] == ["there"]
    assert r["missing"] == ["/workspace/none", "/workspace/there/x"]
    r = agent.artifact({"path": "none", "optional": True})
    assert r["success"] and r["files"] == [] and r["markdown"] == "" and r["missing"] == ["/workspace/none"]
    before = kept(service)
    r = agent.artifact("none", "there", "also/none", {"path": "gone", "optional": True})
    assert not r["success"] and "none: " in r["error"] and "also/none: " in r["error"] and "gone" not in r["error"]
    assert harness.until(lambda: kept(service) == before, 5)
    failed = []
    assert harness.until(lambda: failed.extend(service.get(f"{JOBS}?status=failed").data["items"]) or failed, 5)
    failed = failed[0]
    assert failed["reason"] == "artifact" and service.job(failed["job_id"])["artifacts"] == []


def test_a_folder(service, agent):
    agent.bash("mkdir -p pack/sub; cd pack; echo 1 > one; echo 2 > sub/two; ln -s /etc/passwd link; mkfifo p")
    r = agent.artifact("pack")
    [f] = r["files"]
    assert (f["name"], f["content_type"]) == ("pack.zip", "application/zip")
    with zipfile.ZipFile(io.BytesIO(fetch(service, f))) as z:
        assert sorted(i for i in z.namelist() if not i.endswith("/")) == ["one", "sub/two"]


def test_what_is_no_file(service, agent):
    agent.bash("ln -s /etc/shadow l; ln -s l2 l2; ln -s /etc dir; mkfifo p; echo 1 > ok; ln -s ok same")
    before = kept(service)
    for path, why in (
        ("l", "link"),
        ("l2", "link"),
        ("dir/shadow", "link"),
        ("same", "link"),
        ("p", ""),
        ("../../etc/shadow", "paths[1]"),
        ("/etc/shadow", "paths[1]"),
        ("/proc/self/environ", "paths[1]"),
        ("ok\0", "paths[1]"),
    ):
        r = agent.artifact("ok", path)
        assert not r["success"] and why in r["error"], (path, r)
    assert harness.until(lambda: kept(service) == before, 5)
    for arguments in ({"paths": []}, {}, {"paths": ["ok"], "max_size_mb": 0}, {"paths": [{"optional": True}]}):
        assert agent.post("artifact", **arguments).status == 422, arguments
    assert agent.post("artifact", paths=["ok"] * 101).status == 422


HOSTILE = (
    "](http:evil) [x",
    "![x](y",
    "a\\",
    "`code`",
    "<img src=x onerror=alert(1)>",
    "<http:evil>",
    "**bold** _it_ ~~no~~",
    "a|b",
    "&lt;script&gt;",
    "$x$",
    "\U0001f600 ä 名.png",
    "'quoted' \"twice\"",
    "-rf",
    "...",
    "%5D(x)",
)


def test_names_that_would_break_out(service, agent):
    for name in HOSTILE:
        assert agent.put(name, name.encode()).status in (200, 201), name
    r = agent.artifact(*HOSTILE)
    assert [f["name"] for f in r["files"]] == list(HOSTILE)
    assert links(r["markdown"]) == [(f["name"].endswith(".png"), f["name"], f["url"]) for f in r["files"]]
    assert [fetch(service, f).decode() for f in r["files"]] == list(HOSTILE)
    # those that are no text of one line, or turn what stands around them
    agent.bash("echo 1 > $'a\\nb'; echo 2 > $'\\e[31mred'; echo 3 > $'cod\\u202etxt.exe'")
    r = agent.artifact("a\nb", "\x1b[31mred", "cod\u202etxt.exe")
    assert [f["name"] for f in r["files"]] == ["a%0Ab", "%1B[31mred", "cod\u202etxt.exe"]
    assert [text for _, text, _ in links(r["markdown"])] == ["a%0Ab", "%1B[31mred", "cod%E2%80%AEtxt.exe"]
    assert [fetch(service, f) for f in r["files"]] == [b"1\n", b"2\n", b"3\n"]


def test_names_that_clash(service, agent):
    agent.bash("mkdir -p x y; echo 1 > x/n.txt; echo 2 > y/n.txt")
    r = agent.artifact("x/n.txt", "y/n.txt", "x/n.txt")
    assert [f["name"] for f in r["files"]] == ["n.txt", "n-2.txt", "n-3.txt"]
    assert [fetch(service, f) for f in r["files"]] == [b"1\n", b"2\n", b"1\n"]


def test_bounds(service, agent):
    sparse(agent, ten=10, eleven=11, six=6, seven=7, large=21)
    before = kept(service)
    assert agent.artifact("ten")["success"]
    r = agent.artifact("eleven")
    assert not r["success"] and "eleven: 11534336 bytes" in r["error"] and "max_size_mb" in r["error"]
    r = agent.artifact("six", "seven")
    assert not r["success"] and "seven" in r["error"] and "max_total_size_mb" in r["error"]
    [f] = agent.artifact("eleven", max_size_mb=11, max_total_size_mb=11)["files"]
    assert fetch(service, f) == bytes(11 * MB)
    # never beyond the operator's
    r = agent.artifact("large", max_size_mb=100, max_total_size_mb=100)
    assert not r["success"] and "SANDBOX_ARTIFACT_MAX_FILE_SIZE_MB" in r["error"]
    r = agent.artifact("eleven", "ten", "six", max_size_mb=100, max_total_size_mb=100)
    assert not r["success"] and "SANDBOX_ARTIFACT_MAX_TOTAL_SIZE_MB" in r["error"]
    assert harness.until(lambda: len(kept(service) - before) == 2, 5)
    agent.bash("rm ten eleven six seven large")


def test_D24_type_and_mode(service, agent):
    agent.bash(
        "mkdir -p output; cd output; cp /bin/sh run.sh; chmod 6777 run.sh;"
        "printf '<script>fetch(\"/api/keys\")</script>' > page.html;"
        'printf \'<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>\' > pic.svg;'
        "printf '#!/bin/sh\\nid' > .htaccess; printf '%%PDF-1.4' > a.pdf"
    )
    names = ("run.sh", "page.html", "pic.svg", ".htaccess", "a.pdf")
    r = agent.artifact(*(f"output/{n}" for n in names))
    assert [f["name"] for f in r["files"]] == list(names) and not any(picture for picture, _, _ in links(r["markdown"]))
    for f in r["files"]:
        fetch(service, f)
    sent = [service.get(f["url"].removeprefix(BASE)).headers["Content-Type"] for f in r["files"]]
    assert sent == ["application/octet-stream"] * 4 + ["application/pdf"]
    folder = pathlib.Path(service.data, "serve/artifacts", r["job_id"])
    assert {p.name for p in folder.iterdir() if not p.is_symlink()} == set("01234")
    assert {p.stat().st_mode & 0o7777 for p in folder.iterdir() if not p.is_symlink()} == {0o600}
    assert (folder / "team").readlink() == pathlib.Path("default")


PAGE = 4096


def at_one_time(data: bytes) -> bool:
    """Whether the file was ever like this: the writer below numbers page after page, round and round."""
    numbers = [int(data[at : at + 8]) for at in range(0, len(data), PAGE)]
    newest, pages = max(numbers), len(numbers)
    return all(n == newest - (newest - page) % pages for page, n in enumerate(numbers))


def test_a_file_that_is_being_written(service, agent):
    """Whole as it was at one time, or not at all; and no answer waits for the command that writes."""
    writer = f"""
import itertools, os
pages = {16 * MB // PAGE}
f = os.open("busy", os.O_RDWR | os.O_CREAT)
os.ftruncate(f, pages * {PAGE})
for i in itertools.takewhile(lambda i: i % 64 or not os.path.exists("stop"), itertools.count()):
    os.pwrite(f, b"%08d" % i, i % pages * {PAGE})
    if i == pages:
        open("begun", "x").close()
"""
    agent.put("writer.py", writer.encode())
    room = {"max_size_mb": 20, "max_total_size_mb": 20}

    def write() -> dict:
        with service.client() as c:
            return Agent(c, agent.session).bash("python3 writer.py", timeout=100)

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        call = pool.submit(write)
        try:
            assert harness.until(lambda: "begun" in agent.names() or call.done(), 20)

            def refused() -> str:
                r = agent.artifact("busy", "writer.py", **room)
                assert not call.done()
                # the writer may not have run while a copy was made: then that one is whole
                assert not r["success"] or at_one_time(fetch(service, r["files"][0]))
                return r["error"] or ""

            why = harness.until(refused, 30, 0.2)
        finally:
            agent.put("stop")
        assert why.startswith("busy: ") and "written" in why, why
        assert call.result()["success"]
    [f] = agent.artifact("busy", **room)["files"]
    assert at_one_time(fetch(service, f))


def test_kept_over_a_restart(service, agent):
    agent.bash("echo kept > k")
    [f] = agent.artifact("k")["files"]
    service.restart()
    assert fetch(service, f) == b"kept\n"
    assert [p for p in kept(service) if p.endswith(".part")] == []
    assert agent.artifact("k")["success"]
