"""Files of a session, over HTTP: both ways, whole or not at all, and never outside of the workspace."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import io
import os
import socket
import threading
import time
import zipfile

import harness
import pytest
from service import JOBS, SESSIONS
from session_files import Files

LONG = bool(os.environ.get("ISLE_LONG"))
MAX_MB = 300 if LONG else 100
MAX = MAX_MB << 20
SERVICE_SETTINGS = {"SANDBOX_MAX_DISK_MB": str(MAX_MB)}


@pytest.fixture
def files(service):
    return Files(service)


def etag(data: bytes) -> str:
    return f'"{hashlib.sha256(data).hexdigest()}"'


def test_there_and_back(files):
    data = os.urandom(70000)
    a = files.put("a/b c/ü.bin", data)
    assert a.status == 201 and a.headers["ETag"] == etag(data)
    assert a.data == {
        "path": "/workspace/a/b c/ü.bin",
        "escaped": False,
        "size": len(data),
        "checksum": etag(data).strip('"'),
    }
    a = files.get("a/b c/ü.bin")
    assert (a.status, a.body, a.headers["ETag"]) == (200, data, etag(data))
    assert a.headers["Content-Type"] == "application/octet-stream" and a.headers["Isle-File-Mode"] == "0644"
    assert files.put("a/b c/ü.bin", b"").status == 200
    assert files.get("/workspace/a/b c/ü.bin").body == b""
    assert files.get("a/b c").headers["Content-Type"] == "application/zip"
    a = files.c.call("HEAD", files.at("a/b c/ü.bin"))
    assert a.status == 200 and a.headers["Content-Length"] == "0"


def test_ranges_and_conditions(files):
    data = bytes(range(256)) * 10
    files.put("f", data)
    a = files.get("f", {"Range": "bytes=100-199"})
    assert (a.status, a.body, a.headers["Content-Range"]) == (206, data[100:200], "bytes 100-199/2560")
    assert files.get("f", {"Range": "bytes=-5"}).body == data[-5:]
    assert files.get("f", {"Range": "bytes=2560-"}).status == 416
    assert files.get("f", {"If-None-Match": etag(data)}).status == 304
    assert files.get("f", {"If-Match": etag(b"")}).code == 1008
    other = files.get("f", {"Range": "bytes=0-0", "If-Range": etag(b"")})
    assert other.status == 200 and other.body == data


def test_writes_on_condition(files):
    first, second = {"If-Match": etag(b"1")}, {"If-Match": etag(b"2")}
    assert files.put("f", b"1", {"If-None-Match": "*"}).status == 201
    assert files.put("f", b"x", {"If-None-Match": "*"}).code == 1008
    assert files.put("f", b"x", second).code == 1008
    assert files.get("f").body == b"1"
    assert files.put("f", b"2", first).status == 200
    assert files.put("none", b"2", first).status == 404
    assert files.delete("f", first).code == 1008
    assert files.delete("f", second).status == 200 and files.get("f").status == 404
    for bad in ({"If-Match": "x"}, {"If-Match": '"abc"'}, {"If-None-Match": '"abc"'}, {"If-None-Match": "*", **first}):
        assert files.put("f", b"", bad).status == 422, bad


def test_moved_and_removed(files):
    files.put("d/f", b"1")
    files.put("g", b"2")
    assert files.move("d", "e/d").data["path"] == "/workspace/e/d"
    assert files.get("e/d/f").body == b"1" and files.get("d/f").status == 404
    a = files.move("g", "e/d/f")
    assert a.status == 409 and "/workspace/e/d/f exists already" in a.msg, a
    assert files.move("g", "e/d/f", overwrite=True).status == 200 and files.get("e/d/f").body == b"2"
    assert files.move("e", "e/x").status == 422
    a = files.move("none", "x")
    assert a.status == 404 and "/workspace/none" in a.msg, a
    assert files.move("", "x").status == 422 and files.move(".", "x").status == 422
    assert files.delete("e").status == 200 and files.get("e/d/f").status == 404
    assert files.delete("e").status == 404
    assert files.c.call("DELETE", files.base + "/").status == 422  # not the workspace itself
    assert files.sh("test ! -e e && echo ok")["stdout"] == "ok\n"


def test_paths_of_many_components(service, files):
    """Each may be a folder that is to be made: their number is bounded, and named when it is too large."""
    deep = "/".join("d" * 63)
    assert files.put(f"{deep}/f", b"1").status == 201 and files.get(f"{deep}/f").body == b"1"
    assert files.move(f"{deep}/f", f"{deep}/g").status == 200
    content = {"target_path": f"{deep}/d/f", "content_base64": ""}
    refused = [
        files.put(f"{deep}/d/f"),
        files.move(f"{deep}/g", f"{deep}/d/f"),
        files.delete(f"{deep}/d/f"),
        service.post(JOBS, {"command": ["true"], "input_files": [content]}),
        service.post(JOBS, {"command": ["true"], "artifacts": [f"{deep}/d/f"]}),
    ]
    for a, field in zip(refused, ("path", "to", "path", "input_files[0].target_path", "artifacts[0]"), strict=True):
        assert a.status == 422 and a.msg.startswith(f"{field}: "), a
        assert "a path of 65 components is over the maximum of 64" in a.msg, a
    written = service.post(f"{SESSIONS}/{files.session}/tools/write", {"path": f"{deep}/d/f", "content": ""})
    assert "over the maximum of 64" in written.data["error"], written
    assert files.names(deep) == [f"{deep}/g"]


def test_listed_in_pages(files):
    for i in range(25):
        files.put(f"d/{i % 3}/f{i}", b"x" * i)
    expected = sorted([f"d/{i % 3}/f{i}" for i in range(25)] + ["d/0", "d/1", "d/2"])
    assert files.names("d") == ["d/0", "d/1", "d/2"]
    assert files.names("d", recursive="true") == expected
    found, cursor, pages = [], {}, 0
    while cursor is not None:
        page = files.list("d", recursive="true", limit=7, **cursor).data
        found += [i["path"].removeprefix("/workspace/") for i in page["items"]]
        assert page["truncated"] == (page["next_cursor"] is not None)
        cursor = {"cursor": page["next_cursor"]} if page["next_cursor"] else None
        pages += 1
    assert sorted(found) == expected and pages == 4
    [f] = [i for i in files.list("d/1").data["items"] if i["path"].endswith("/f7")]
    assert (f["type"], f["size"]) == ("file", 7)
    assert files.list("none").status == 404 and files.list("d/0/f0").status == 409
    for bad in ({"limit": 0}, {"limit": 1001}, {"cursor": "x y"}, {"recursive": "maybe"}):
        assert files.list("d", **bad).status == 422, bad


def test_FS_05_links_are_not_read(files):
    files.sh("ln -s /etc/passwd p; ln -s / root; echo in > in; ln -s in here; ln -s loop loop; ln -s .. up")
    for path in ("p", "root/etc/hostname", "root/etc", "root", "here", "loop", "up/x", "up"):
        for a in (files.get(path), files.list(path)):
            assert a.status in (404, 409, 422) and "root:" not in str(a.body), (path, a)
    listed = {i["path"]: i["type"] for i in files.list(recursive="true").data["items"]}
    assert listed["/workspace/root"] == listed["/workspace/p"] == "link"
    assert not any(p.startswith("/workspace/root/") for p in listed)
    with zipfile.ZipFile(io.BytesIO(files.c.get(files.base + "/").body)) as z:
        assert "in" in z.namelist() and not {"p", "here", "loop"} & set(z.namelist())
        assert not any(n.startswith("root") for n in z.namelist())


def test_FS_06_links_are_not_written_through(files, tmp_path):
    files.sh("ln -s /tmp out; ln -s /etc etc; echo old > real; ln -s real link; ln real hard")
    for path in ("out/x", "etc/x", "out/a/b"):
        assert files.put(path).status in (409, 422), path
    assert files.put("link", b"new").status == 422
    assert files.get("real").body == b"old\n"
    assert files.put("real", b"new").status == 200  # another name keeps what it had
    assert files.get("hard").body == b"old\n"
    assert files.move("real", "out/x").status in (409, 422) and files.move("out", "y").status == 422
    assert files.delete("out").status == 200  # the link, not what it points to
    assert files.sh("ls -d /tmp")["stdout"] == "/tmp\n"


AGENT_CALLS = (
    ("write", "d/new", {"content": "x"}),
    ("read", "d/secret.txt", {}),
    ("edit", "d/new", {"edits": [{"op": "insert_head", "new": "y"}]}),
)


def test_FS_06_race(files, canary_folder):
    """A folder turns into a link and back, while files are written, read and listed there."""
    swap = f"""
mkdir d; ln -s {canary_folder} l
while test ! -e stop; do mv -T d x; mv -T l d; mv -T d l; mv -T x d; done
"""
    limits = {"timeout_seconds": 600}
    job = files.c.submit({"command": ["bash", "-c", swap], "session_id": files.session, "limits": limits})
    assert harness.until(lambda: "d" in files.names() or "l" in files.names(), 20)
    begin, done = time.monotonic(), 0
    while done <= 20 or time.monotonic() - begin < (20 if LONG else 2):
        for a in (files.put("d/new", b"x"), files.get("d/secret.txt"), files.list("d"), files.delete("d/new")):
            assert a.status < 500 and b"CANARY" not in a.body, a
        for name, path, more in AGENT_CALLS:  # an agent's tools, likewise
            a = files.c.post(f"{files.base.removesuffix('/files')}/tools/{name}", {"path": path, **more})
            assert a.status == 200 and b"CANARY" not in a.body, a
        done += 1
    files.put("stop", b"")
    files.c.wait(job)
    assert os.listdir(canary_folder) == ["secret.txt"]


@pytest.fixture
def canary_folder():
    """On the host, where a link of a session may point to."""
    with harness.variants.folder("isle-canary-") as folder:
        (folder / "secret.txt").write_text("CANARY")
        yield str(folder)


def test_FS_08_names_that_are_no_text(files):
    r = files.python('open(b"r\\x80port.csv","wb").write(b"1"); open("a\\nb","w").write("2"); open("100%","w").close()')
    assert r["success"]
    listed = {i["path"]: i["escaped"] for i in files.list().data["items"] if i["type"] == "file"}
    assert listed == {"/workspace/r%80port.csv": True, "/workspace/a%0Ab": True, "/workspace/100%": False}
    assert files.get("/workspace/r%80port.csv", escaped="true").body == b"1"
    assert files.get("a%0Ab", escaped="true").body == b"2"
    assert files.get("r%80port.csv").status == 404 and files.get("100%").status == 200
    assert files.get("100%", escaped="true").status == 422 and files.get("a%00", escaped="true").status == 422
    assert files.put("r%80port.csv", b"3", escaped="true").data["escaped"]
    assert files.move("r%80port.csv", "plain.csv", escaped=True).status == 200
    assert files.python('return open("plain.csv").read()')["result"] == "3"
    assert files.delete("a%0Ab", escaped="true").status == 200


def test_FS_10_the_name_told_opens(files):
    for name in ("my file (1).csv", "ünïcode ☃.txt", "-rf", "a'b\"c", "con.txt", " lead", "dot.", "x" * 255):
        path = files.put(name, name.encode()).data["path"]
        assert files.c.execute(
            "python", "return open(params['p']).read()", params={"p": path}, session_id=files.session
        )["result"] == (name)
    assert files.put("x" * 256).status == 422


def test_FS_11_the_same_name_again(files):
    files.put("image.png", b"A")
    assert files.sh("cat image.png")["stdout"] == "A"
    files.put("image.png", b"B")
    assert files.sh("cat image.png")["stdout"] == "B"
    job = {"language": "python", "code": "return open('image.png').read()", "session_id": files.session}
    staged = {"target_path": "/workspace/image.png", "content_base64": "Qw=="}
    assert files.c.wait(files.c.submit(job | {"input_files": [staged]}))["result"] == "C"
    files.sh("rm image.png; ln -s /etc/hostname image.png")
    assert files.c.wait(files.c.submit(job | {"input_files": [staged]}))["result"] == "C"
    files.sh("rm image.png; mkdir image.png")
    r = files.c.wait(files.c.submit(job | {"input_files": [staged]}))
    assert not r["success"] and "image.png" in r["error"] and "folder" in r["error"]


OUTSIDE = ("/etc/hostname", "/proc/self/environ", "/workspaceX/a", "/", "//etc/passwd", "/workspace/../etc/x")


@pytest.mark.parametrize("path", OUTSIDE)
def test_FS_12_nothing_outside(files, path):
    files.put("f")
    for a in (
        files.list(path),
        files.get(path),
        files.put(path),
        files.delete(path),
        files.move(path, "x"),
        files.move("f", path),
    ):
        assert a.status in (400, 422), a
    assert not os.path.exists("/etc/x") and files.names() == ["f", "input", "logs", "output", "tmp"]


def test_FS_12_dots(files):
    for path in ("../../x", "a/../../x", "..", "%2e%2e/x", "a/./../b"):
        a = files.c.get(f"{files.base}/{path}")
        assert a.status in (400, 404, 422), (path, a)
        assert files.list(path).status in (404, 422), path
        assert files.move(path, "y").status in (404, 422), path


def test_FS_14_owners(files):
    files.put("a", b"1")
    files.put("d/e", b"")
    r = files.python(
        "import os\nopen('a','a').write('2'); open('d/x','w').write('3'); s=os.stat('a')\n"
        "assert s.st_uid == os.getuid()\ndata=open('a').read(); os.remove('a'); os.remove('d/e'); return data"
    )
    assert r["result"] == "12", r
    files.python(
        "import os\nopen('b','w').write('1'); os.chmod('b', 0o755); os.mkdir('g', 0o700); open('g/y','w').close()"
    )
    assert files.put("b", b"2").status == 200 and files.put("g/z", b"").status == 201
    assert files.get("b").headers["Isle-File-Mode"] == "0755"  # as it was
    assert files.delete("g").status == 200 and files.delete("d/x").status == 200
    assert files.sh("./b; ls")["success"]


@pytest.mark.parametrize("size", [0, 1, 18431, 18433, 1 << 20, (1 << 20) + 1])
def test_FS_20_arrives(files, size):
    data = os.urandom(size)
    assert files.put("f", data).status == 201
    assert files.sh("sha256sum < f")["stdout"].split()[0] == hashlib.sha256(data).hexdigest()


def left_in_trash(service) -> list[str]:
    return [p.name for p in (service.data / "serve/trash").iterdir()]


def test_FS_20_too_big(service, files):
    # told by its length: before a byte of it is read
    c = http.client.HTTPConnection("127.0.0.1", service.port, timeout=60)
    with contextlib.closing(c):
        c.putrequest("PUT", files.at("big"))
        c.putheader("Content-Length", str(MAX + 1))
        c.endheaders()
        assert c.getresponse().status == 413
    # without a length: as soon as it is
    c = http.client.HTTPConnection("127.0.0.1", service.port, timeout=60)
    with contextlib.closing(c):
        c.putrequest("PUT", files.at("big"))
        c.putheader("Transfer-Encoding", "chunked")
        c.endheaders()
        chunk = b"100000\r\n" + bytes(1 << 20) + b"\r\n"
        for _ in range(MAX // (1 << 20) + 3):
            c.send(chunk)
        assert c.getresponse().status == 413
    assert files.get("big").status == 404
    assert harness.until(lambda: left_in_trash(service) == [], 20)
    assert files.put("big", b"small").status == 201


def test_FS_20_cut(service, files):
    files.put("f", b"old")
    for kind in ("length", "chunked"):
        s = socket.create_connection(("127.0.0.1", service.port))
        how = "Content-Length: 5000000" if kind == "length" else "Transfer-Encoding: chunked"
        s.sendall(f"PUT {files.at('f')} HTTP/1.1\r\nHost: localhost\r\n{how}\r\n\r\n".encode())
        body = bytes(1 << 20)
        s.sendall(body if kind == "length" else b"100000\r\n" + body)
        assert harness.until(lambda: left_in_trash(service) != [], 20)
        s.close()
        assert harness.until(lambda: left_in_trash(service) == [], 20)
        assert files.get("f").body == b"old" and "f" in files.names()


def test_BIG_02_streams(service, files):
    """Each way: the service's memory stays; a download goes on where it was cut."""
    block = os.urandom(1 << 20)
    total = 200 if LONG else 60  # MiB
    digest = hashlib.sha256(block * 4).copy()
    for _ in range(total - 4):
        digest.update(block)
    before = peak_kb(service)
    c = http.client.HTTPConnection("127.0.0.1", service.port, timeout=120)
    with contextlib.closing(c):
        c.putrequest("PUT", files.at("big"))
        c.putheader("Content-Length", str(total << 20))
        c.endheaders()
        for _ in range(total):
            c.send(block)
        r = c.getresponse()
        assert r.status == 201
        assert digest.hexdigest().encode() in r.read()
    got, at, checks = hashlib.sha256(), 0, 0
    while at < total << 20:
        c = http.client.HTTPConnection("127.0.0.1", service.port, timeout=120)
        with contextlib.closing(c):
            c.request("GET", files.at("big"), headers={"Range": f"bytes={at}-", "If-Match": f'"{digest.hexdigest()}"'})
            r = c.getresponse()
            assert r.status == (206 if at else r.status) and r.status in (200, 206)
            while data := r.read(1 << 20):
                got.update(data)
                at += len(data)
                if at >= 20 << 20 and checks == 0:
                    checks = 1
                    break  # cut, and begun again there
    assert got.hexdigest() == digest.hexdigest() and checks == 1
    assert peak_kb(service) - before < 8000, (before, peak_kb(service))
    usage = f"{SESSIONS}/{files.session}"
    assert harness.until(lambda: service.get(usage).data["disk_usage_bytes"] >= total << 20, 20)


def peak_kb(service) -> int:
    with open(f"/proc/{service.service_pid}/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmHWM:"))


def test_zip_of_a_folder(files):
    files.sh(
        "mkdir -p d/sub d/empty; echo 1 > d/a; head -c 3000000 /dev/urandom > d/sub/big; mkfifo d/fifo; chmod 755 d/a"
    )
    a = files.get("d")
    assert a.status == 200 and a.headers["Content-Disposition"] == 'attachment; filename="d.zip"'
    with zipfile.ZipFile(io.BytesIO(a.body)) as z:
        assert z.testzip() is None
        assert sorted(z.namelist()) == ["a", "empty/", "sub/", "sub/big"]
        big = z.read("sub/big")
        assert z.getinfo("a").external_attr >> 16 & 0o777 == 0o755
    assert hashlib.sha256(big).hexdigest() == files.sh("sha256sum < d/sub/big")["stdout"].split()[0]
    assert files.c.call("HEAD", files.at("d")).status == 200


def test_slow_reader_holds_nobody_up(service, files):
    files.put("f", bytes(30 << 20))
    s = socket.create_connection(("127.0.0.1", service.port))
    s.sendall(f"GET {files.at('f')} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    s.recv(1000)
    began = time.monotonic()
    assert files.get("f", {"Range": "bytes=0-9"}).body == bytes(10)
    assert files.put("g", b"1").status == 201
    assert time.monotonic() - began < 15 * harness.SLOW  # less than a silent reader is given
    s.close()


def test_many_at_once(service, files):
    """Writers of one file: each reader sees one of them, whole."""
    bodies = [bytes([i]) * 300000 for i in range(6)]
    seen, wrong = set(), []

    def write(i: int) -> None:
        with service.client() as c:
            own = Files(c, files.session)
            for _ in range(4):
                own.put("f", bodies[i])
                a = own.get("f")
                if a.status == 409:  # it was replaced while it was hashed
                    continue
                seen.add(a.body[:1])
                wrong.extend([a] if a.body not in bodies else [])

    threads = [threading.Thread(target=write, args=(i,)) for i in range(len(bodies))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert wrong == [] and seen
    assert harness.until(lambda: left_in_trash(service) == [], 20)
