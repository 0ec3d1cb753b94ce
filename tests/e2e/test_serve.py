"""The life of a service: sockets, start, signals, crashes, and what a data folder keeps."""

from __future__ import annotations

import contextlib
import os
import pathlib
import re
import signal
import socket
import stat
import subprocess
import threading
import time
from collections.abc import Iterator

import harness
import host
import leftovers
import pytest
import results
import service
import service_faults
import variants
from session_files import Files

RANGE = 65536


def refused(*words: object, data: pathlib.Path, settings: dict[str, str] | None = None) -> str:
    """What `isle serve` says that does not start."""
    isle = harness.Isle(data, {"ISLE_SOCKET": str(data.parent / "run/refused.sock")} | (settings or {}))
    p = isle.start("serve", "--data", data, *words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out, err = p.communicate(timeout=60)
    assert p.returncode == 125 and out == b"", (p.returncode, out, err)
    text = err.decode()
    assert text.startswith("isle serve: ") and text.count("\n") == 1, text
    return text


@contextlib.contextmanager
def in_background(call) -> Iterator[list]:
    """The list gets what `call` returns, or raises."""
    got: list = []

    def run() -> None:
        try:
            got.append(call())
        except Exception as e:  # the test looks at it
            got.append(e)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield got
    finally:
        thread.join(90)
        assert not thread.is_alive()


def running(s: service.Service) -> str:
    """An accepted job that runs for long: its id."""
    code = "import time; print('begun', flush=True); time.sleep(600)"
    ident = s.submit({"language": "python", "code": code, "limits": {"timeout_seconds": 600}})
    assert harness.until(lambda: s.job(ident)["status"] == "running", 20)
    return ident


def end_of(s: service.Service) -> tuple[str, int, str | None]:
    """What the last line of the log says of the end: level, status, signal."""
    row = s.log_rows()[-1]
    assert row["event"] == "ended" and "left" not in row, s.log()[-2000:]
    return row["level"], row["status"], row.get("signal")


def serving_rows(s: service.Service) -> list[dict]:
    """Where it serves: the front says so, it may be after the service has begun."""
    rows: list[dict] = []
    assert harness.until(lambda: rows.extend(r for r in s.log_rows() if r["event"] == "serving") or rows, 20)
    return rows


def in_python(s: service.Service) -> bool:
    """A job of it has come so far."""
    return any(host.status_of(p).get("Name", "").startswith("python3") for p in s.below())


# ---------------------------------------------------------------------------------------------------------
# One service for all that leaves it as it was


@pytest.fixture(scope="module")
def shared() -> Iterator[service.Service]:
    with service.serving() as s:
        yield s


def test_serves_by_tcp_and_unix_socket(shared: service.Service) -> None:
    assert shared.get("/healthz").data == {"status": "ok"}
    with shared.client(unix=True) as local:
        assert local.get("/healthz").data == {"status": "ok"}
    assert stat.S_IMODE(shared.socket.stat().st_mode) == 0o600
    assert shared.python("return 6 * 7")["result"] == 42


def test_says_where_it_serves(shared: service.Service) -> None:
    [row] = serving_rows(shared)
    assert row["urls"] == f"http://127.0.0.1:{shared.port}"
    assert row["docs"] == f"http://127.0.0.1:{shared.port}/docs"
    assert row["socket"] == str(shared.socket) and row["data"] == str(shared.data)


def test_ready_says_what_was_tried(shared: service.Service) -> None:
    data = shared.get("/readyz").data
    assert data["ready"] is True and data["why"] is None
    assert data["downgrades"] == list(variants.NOW.downgrades)
    assert data["trial"]["runs"] >= 1


def limits_of(s: service.Service) -> tuple[set[str], dict[str, int]]:
    """By the control groups that the service is in: number of its instance, limits of memory and processes."""
    numbers, found = set(), {}
    for group in leftovers.instance_groups():
        inside = group / "service/cgroup.procs"
        if str(s.service_pid) not in service.members(str(inside.parent)).split():
            continue
        numbers.add(group.name)
        for name in ("memory.limit_in_bytes", "memory.max", "pids.max"):
            if (group / name).exists():
                found[name.split(".")[0]] = int((group / name).read_text())
    return numbers, found


def test_services_that_start_at_once() -> None:
    """Lock files in four folders: the control groups tell the services apart, and each has the limits of its own."""
    with contextlib.ExitStack() as stack:
        services = []
        for i in range(4):
            folder = stack.enter_context(variants.folder("isle-serve-"))
            limits = {"SANDBOX_INSTANCE_MEMORY_MB": str(1024 + i), "SANDBOX_INSTANCE_PIDS": str(500 + i)}
            s = service.Service(folder, {"SANDBOX_RUN_DIR": str(folder / "locks")} | limits)
            stack.callback(s.abandon)
            services.append(s)
        for s in services:
            s.start(wait=False)
        for s in services:
            s.wait_ready()
        found = [limits_of(s) for s in services]
        assert [limits for _, limits in found] == [{"memory": (1024 + i) << 20, "pids": 500 + i} for i in range(4)]
        assert len(set.union(*(numbers for numbers, _ in found))) == 4, found
        for s in services:
            assert s.python("return 6 * 7")["result"] == 42
        for s in services:
            s.process.send_signal(signal.SIGTERM)
        for s in services:
            assert s.wait_gone() == 0, s.log()[-2000:]


def test_second_service_of_a_data_folder(shared: service.Service) -> None:
    text = refused("--listen", "127.0.0.1:0", data=shared.data)
    assert str(shared.data) in text and "already" in text
    assert shared.get("/healthz").status == 200


def test_the_run_folder_is_its_owners_alone(shared: service.Service) -> None:
    """Whoever makes it: the socket, or a start's lock files."""
    with variants.folder("isle-run-") as folder:
        for name, socket_path in (("socket", ""), ("locks", str(folder / "isle.sock"))):
            settings = {"SANDBOX_RUN_DIR": str(folder / name), "ISLE_SOCKET": socket_path}
            assert "already" in refused("--listen", "127.0.0.1:0", data=shared.data, settings=settings)
            assert stat.S_IMODE((folder / name).stat().st_mode) == 0o700, name


def test_what_the_service_writes_is_inert(shared: service.Service) -> None:
    """Its store, also where the host's own mount may be executed: its root is read-only."""
    lines = pathlib.Path(f"/proc/{shared.service_pid}/mountinfo").read_text().splitlines()
    options = {line.split()[4]: set(line.split()[5].split(",")) for line in lines}
    assert {"rw", "nosuid", "nodev", "noexec", "nosymfollow"} <= options.pop("/store"), lines
    assert options and all({"ro", "noexec"} & words for words in options.values()), lines


def test_address_in_use(shared: service.Service, tmp_path: pathlib.Path) -> None:
    with variants.folder("isle-serve-") as folder:
        other = service.Service(folder)
        text = refused("--listen", f"127.0.0.1:{shared.port}", data=other.data)
        assert f"127.0.0.1:{shared.port}" in text and "listens there already" in text
        text = refused("--listen", "127.0.0.1:0", data=other.data, settings={"ISLE_SOCKET": str(shared.socket)})
        assert str(shared.socket) in text and "--socket" in text
        assert os.listdir(other.data) == []


def test_the_socket_of_the_next_service_stays() -> None:
    """One that ends removes its own socket, and no other that stands in its place by then."""
    with service.serving() as s:
        s.socket.rename(s.socket.with_name("moved"))
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(str(s.socket))
            s.stop()
            assert s.socket.exists()
            s.socket.unlink()
            s.socket.with_name("moved").unlink()


@pytest.mark.parametrize(
    "word", ["4753", "127.0.0.1", "example.invalid:80", "127.0.0.1:x", "127.0.0.1:65536", "::1:80", "[::1]", ""]
)
def test_addresses_that_are_none(shared: service.Service, word: str) -> None:
    text = refused("--listen", word, data=shared.data)
    assert "HOST:PORT" in text or "ISLE_LISTEN" in text or "already" in text, text


def test_needs_a_key_beyond_loopback() -> None:
    with variants.folder("isle-serve-") as folder:
        s = service.Service(folder)
        p = harness.Isle(s.data, {"ISLE_SOCKET": str(s.socket)}).start(
            "serve", "--listen", "0.0.0.0:0", "--data", s.data, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        _, err = p.communicate(timeout=60)
        assert p.returncode == 125, err
        assert b"isle key create" in err and err.count(b"\n") == 1, err
        s.check_nothing_left()


def test_a_key_behind_a_thousand_revoked_ones_is_one() -> None:
    with service.serving() as s:
        key = s.new_key("a")
        s.stop()
        service_faults.add_revoked_keys(s, 1001)
        s.options = ("--listen", "0.0.0.0:0")
        s.start()
        with s.client(key) as c:
            assert c.get(service.JOBS).status == 200


def test_several_addresses() -> None:
    with service.serving(None, "--listen", "[::1]:0", "--listen", "localhost:0") as s:
        [row] = serving_rows(s)
        urls = row["urls"].split()
        assert len(urls) == 3 and [u.startswith("http://[::1]:") for u in urls] == [False, True, False]
        for url in urls:
            at, _, port = url.removeprefix("http://").rpartition(":")
            with socket.create_connection((at.strip("[]"), int(port)), 10) as c:
                c.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                assert c.recv(4096).startswith(b"HTTP/1.1 200 ")


# ---------------------------------------------------------------------------------------------------------
# Signals


def test_drains() -> None:
    """What runs ends and is answered; what is new is refused; then all ends, with status 0."""
    with service.serving() as s:
        caller, files = s.client(s.key), Files(s)
        code = "import os, time\nwhile not os.path.exists('go'): time.sleep(0.02)\nreturn 'done'"
        with in_background(lambda: caller.python(code, session_id=files.session)) as got:
            assert harness.until(lambda: in_python(s), 20)
            s.process.send_signal(signal.SIGTERM)
            assert harness.until(lambda: s.get("/readyz").status == 503, 20)
            assert s.post(service.EXECUTE, {"language": "python", "code": "return 1"}).status == 503
            assert files.put("go").status == 201
        assert got[0]["result"] == "done", got
        assert s.wait_gone() == 0
        s.check_nothing_left()
        assert "ending" in [r["event"] for r in s.log_rows()]
        assert end_of(s) == ("info", 0, None)


def test_TMO_08_second_signal_ends_at_once() -> None:
    with service.serving() as s:
        ident = running(s)
        s.process.send_signal(signal.SIGINT)
        assert harness.until(lambda: s.get("/readyz").status == 503, 20)
        begun = time.monotonic()
        s.process.send_signal(signal.SIGINT)
        s.wait_gone()
        assert time.monotonic() - begun < 5 * harness.SLOW
        s.start()
        assert s.get(f"{service.JOBS}/{ident}").data["reason"] == "worker_lost"


def test_many_hangups_lose_no_end() -> None:
    """While the service hears nothing, one order to read again waits, not so many that another has no room."""
    with service.serving({"SANDBOX_DRAIN_SECONDS": "1"}) as s:
        os.kill(s.service_pid, signal.SIGSTOP)
        for _ in range(600):
            s.process.send_signal(signal.SIGHUP)
            time.sleep(0.001)  # the front takes each
        s.process.send_signal(signal.SIGTERM)
        time.sleep(0.2)
        os.kill(s.service_pid, signal.SIGCONT)
        assert s.wait_gone() == 0


@pytest.mark.long
def test_ends_with_a_launcher_that_stands_still() -> None:
    with service.serving({"SANDBOX_DRAIN_SECONDS": "1"}) as s:
        ident = running(s)
        launcher = s.launcher_pid
        os.kill(launcher, signal.SIGSTOP)
        try:
            s.process.send_signal(signal.SIGTERM)
            assert s.process.wait(30) == 0
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(launcher, signal.SIGCONT)
        s.wait_gone()
        assert "jobs do not end" in s.log()
        s.start()
        assert s.job(ident)["reason"] == "worker_lost"


def test_a_store_that_is_removed_takes_no_job() -> None:
    """What was accepted into a file that no later start finds would be lost."""
    with service.serving() as s:
        kept = s.data / "kept-store"
        (s.data / "serve/store/isle.db").rename(kept)
        a = s.post(service.JOBS, {"command": ["true"]})
        assert a.status == 503 and a.code, a.body
        assert b"removed or replaced" in s.get("/readyz").body
        kept.rename(s.data / "serve/store/isle.db")
        assert harness.until(s.ready, 30)
        assert s.wait(s.submit({"command": ["echo", "back"]}))["result"] == "back"


def test_reads_settings_again() -> None:
    with variants.folder("isle-conf-") as folder:
        folder.chmod(0o755)
        conf = folder / "isle.conf"
        conf.write_text("ISLE_LOG_LEVEL=warning\n")
        conf.chmod(0o600)  # the service itself cannot open it
        variants.give(conf)
        with service.serving(None, "--config", str(conf)) as s:
            s.python("return 1")
            assert [r for r in s.log_rows() if r["event"] == "job ended"] == []
            conf.write_text("ISLE_LOG_LEVEL=info\nSANDBOX_WORKSPACE_ROOT=/elsewhere\n")
            s.process.send_signal(signal.SIGHUP)
            assert harness.until(lambda: any(r["event"] == "settings read again" for r in s.log_rows()), 20), s.log()
            s.python("return 1")
            assert [r for r in s.log_rows() if r["event"] == "job ended"]
            # a broken file changes nothing, and says so
            conf.write_text("ISLE_LOG_LEVEL=loud\n")
            s.process.send_signal(signal.SIGHUP)
            assert harness.until(lambda: any(r["event"] == "settings refused" for r in s.log_rows()), 20), s.log()
            assert s.python("return 2")["result"] == 2


def test_every_line_is_in_the_format_of_now() -> None:
    """Also those of the front, which is told of a change."""
    with variants.folder("isle-conf-") as folder:
        conf = folder / "isle.conf"
        conf.write_text("ISLE_LOG_FORMAT=text\n")
        conf.chmod(0o600)
        with service.serving({"ISLE_LOG_FORMAT": ""}, "--config", str(conf)) as s:
            conf.write_text("ISLE_LOG_FORMAT=json\nISLE_LOG_LEVEL=error\n")
            s.process.send_signal(signal.SIGHUP)
            assert harness.until(lambda: '"settings read again"' in s.log(), 20), s.log()
            s.stop()
            *_, last = s.log().splitlines()
            told = r"time=\S+ level=info event=serving urls=http://127\.0\.0\.1:\d+ socket=.* stop=SIGTERM"
            assert re.search(f"^{told}$", s.log(), re.M)
            row = results.strict_json(last.encode())
            assert (row["event"], row["status"]) == ("ended", 0)


def test_tells_systemd() -> None:
    with variants.folder("isle-notify-") as folder, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        folder.chmod(0o755)
        path = folder / "notify"
        listener.bind(str(path))
        path.chmod(0o666)
        listener.settimeout(20)
        with service.serving({"NOTIFY_SOCKET": str(path)}) as s:
            said = [listener.recv(4096).decode().split("\n")[0]]
            s.process.send_signal(signal.SIGHUP)
            said += [listener.recv(4096).decode().split("\n")[0] for _ in range(2)]
            s.stop()
            rest = []
            listener.settimeout(0.5)
            with contextlib.suppress(TimeoutError):
                while True:
                    rest.append(listener.recv(4096).decode().split("\n")[0])
        assert said == ["READY=1", "RELOADING=1", "READY=1"]
        assert rest[0] == "STOPPING=1"


# ---------------------------------------------------------------------------------------------------------
# Crashes


@pytest.mark.parametrize("which", ["front", "service", "launcher", "front service launcher"])
def test_TMO_08_killed_while_a_job_runs(which: str) -> None:
    """Every process of the instance is gone within 5 s; the next start has nothing left; the job is told as lost."""
    with service.serving() as s:
        ident = running(s)
        begun = time.monotonic()
        s.kill(*which.split())  # waits for the end of all
        assert time.monotonic() - begun < 5 * harness.SLOW + 1
        if "front" not in which:
            assert end_of(s) == ("error", 1, "SIGKILL" if which == "service" else None)
        elif which == "front":
            assert s.log_rows()[-1]["event"] == "front lost"
        s.start()
        assert s.get(f"{service.JOBS}/{ident}").data["reason"] == "worker_lost"
        assert s.python("return 1")["result"] == 1


def test_launcher_lost_is_told() -> None:
    """Its running jobs end as lost, and the service with a status that says so."""
    with service.serving() as s:
        caller = s.client()
        with in_background(lambda: caller.python("import time; time.sleep(60)", timeout=60)) as got:
            assert harness.until(lambda: in_python(s), 20)
            os.kill(s.launcher_pid, signal.SIGKILL)
            assert s.wait_gone() == 1
        assert got[0]["reason"] == "worker_lost", got
        s.start()


# With the host to itself: who starts beside it may take the number of what was killed, and sees another /var/tmp.
@pytest.mark.usefixtures("host")
def test_what_is_kept_outlives_others() -> None:
    """A start of `isle run` over the data folder of a killed service removes one-shot workspaces, and nothing else."""
    with service.serving() as s:
        running(s)
        kept = s.data / "serve/kept/left"
        kept.mkdir()
        st = kept.parent.stat()
        os.chown(kept, st.st_uid, st.st_gid)
        s.kill("front", "service", "launcher")
        before = sorted(p.name for p in (s.data / "serve").iterdir())
        p = harness.Isle(s.data).start("run", "-l", "bash", "-c", "echo ran", stdout=subprocess.PIPE)
        assert p.communicate(timeout=60)[0] == b"ran\n" and p.returncode == 0
        assert harness.until(lambda: s.one_shot() == [], 20)  # or another start is at it just now
        assert kept.is_dir() and (s.data / "serve/store/isle.db").exists()
        assert sorted(p.name for p in (s.data / "serve").iterdir()) == before
        s.start()


def test_kept_files_follow_the_ids() -> None:
    """The number of the last start is another's: everything that is kept gets the ids of the new one."""
    if os.geteuid() or variants.Session.account:
        pytest.skip("only root can give files away")
    with service.serving() as s:
        ident = s.submit({"language": "python", "code": "return 5"})
        s.wait(ident)
        s.stop()
        root = s.data / "serve"
        base = root.stat().st_uid - 1
        other = base + 3 * RANGE if base < 2**31 - 4 * RANGE else base - 3 * RANGE
        deep = root / "store/x"  # where nobody tidies up
        deep.mkdir()
        at = os.open(deep, os.O_RDONLY)
        for _ in range(3000):  # deeper than a path may be long
            os.mkdir("d" * 200, dir_fd=at)
            down = os.open("d" * 200, os.O_RDONLY, dir_fd=at)
            os.close(at)
            at = down
        with os.fdopen(os.open("file", os.O_WRONLY | os.O_CREAT, 0, dir_fd=at), "w") as f:
            f.write("kept")
        os.symlink("/etc/passwd", "link", dir_fd=at)
        os.chown("file", base + 20485, base + 20485, dir_fd=at)
        os.chown("link", base + 20485, base + 20485, dir_fd=at, follow_symlinks=False)
        before = os.stat("/etc/passwd").st_uid
        # as if it had been another instance's
        subprocess.run(
            ["chown", "-R", "-h", f"--from={base + 1}:{base + 1}", f"{other + 1}:{other + 1}", root], check=True
        )
        os.chown("file", other + 20485, other + 20485, dir_fd=at)
        os.chown("link", other + 20485, other + 20485, dir_fd=at, follow_symlinks=False)
        number = 3 if other > base else 0
        (root / "instance").write_text(f"isle 1\n{number + 900} {other} {other} {RANGE}\n")
        s.start()
        now = (root / "kept").stat().st_uid - 1
        assert os.stat("file", dir_fd=at).st_uid == now + 20485
        assert os.stat("link", dir_fd=at, follow_symlinks=False).st_uid == now + 20485
        assert os.stat("/etc/passwd").st_uid == before
        os.close(at)
        subprocess.run(["rm", "-r", deep], check=True)
        assert s.job(ident)["result"] == 5
        assert (root / "instance").read_text().split("\n")[1].split()[1] == str(now)


def test_folder_that_is_not_isles() -> None:
    with variants.folder("isle-serve-") as folder:
        s = service.Service(folder)
        (s.data / "serve").write_text("a file")
        assert "serve" in refused("--listen", "127.0.0.1:0", data=s.data)
        (s.data / "serve").unlink()
        (s.data / "serve").mkdir()
        variants.give(s.data / "serve")
        (s.data / "serve/instance").write_text("something else")
        assert "instance" in refused("--listen", "127.0.0.1:0", data=s.data)
        assert (s.data / "serve/instance").read_text() == "something else"


def test_bootstrap_run_ends_with_a_service() -> None:
    """examples/serve, which it calls: starts a service, asks it, says how to stop it; called again, it replaces it."""
    script = pathlib.Path(__file__).resolve().parents[2] / "examples/serve"
    with variants.folder("isle-example-") as folder:
        folder.chmod(0o755)
        (folder / "run").mkdir(mode=0o700)
        env = {"ISLE_DATA": str(folder), "ISLE_LISTEN": "127.0.0.1:0", "ISLE_SOCKET": str(folder / "run/isle.sock")}
        env = os.environ | env | {"ISLE": str(harness.ISLE), "NO_COLOR": "1"}
        pids = []
        for answer in ('"result":42', '"code":2000'):  # the second time it has a key, which the script has not
            p = subprocess.run(
                [script, folder / "service"], env=env, capture_output=True, timeout=120, text=True, check=False
            )
            assert p.returncode == 0, p.stderr
            assert answer in p.stdout and p.stdout.lstrip().startswith("$ curl http://127.0.0.1:")
            pids.append(int((folder / "service/pid").read_text()))
            assert f"stop it by: kill {pids[-1]}\n" in p.stderr
            assert ("isle key create" in p.stderr) == (answer != '"result":42')
            made = [
                harness.ISLE,
                "key",
                "create",
                "--team",
                "a",
                "--name",
                "n",
                "--url",
                f"unix:{folder}/run/isle.sock",
            ]
            subprocess.run(made, env=env, capture_output=True, timeout=60, check=True)
        assert not pathlib.Path(f"/proc/{pids[0]}").exists() and pids[0] != pids[1]
        port = re.search(r"runs at http://127.0.0.1:(\d+)", p.stderr)[1]
        taken = env | {"ISLE_LISTEN": f"127.0.0.1:{port}", "ISLE_SOCKET": str(folder / "run/other.sock")}
        p = subprocess.run([script, folder / "b"], env=taken, capture_output=True, timeout=60, text=True, check=False)
        assert p.returncode == 1 and "listens there already" in p.stderr, p.stderr
        assert f"ISLE_SOCKET={folder}/b/isle.sock ISLE_DATA={folder} {script}\n" in p.stderr, p.stderr
        os.kill(pids[1], signal.SIGTERM)
        assert harness.until(lambda: not pathlib.Path(f"/proc/{pids[1]}").exists(), 15)
