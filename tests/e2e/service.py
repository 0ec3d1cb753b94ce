"""A running `isle serve` with a data folder of its own, and a small client for it.

Real clients (curl, libraries) have tests of their own; here a test says what it sends, byte for byte if need be, and
gets back status, headers and the envelope, checked. When a Service ends, nothing of it may be left on the host.
"""

from __future__ import annotations

import contextlib
import dataclasses
import http.client
import json
import os
import pathlib
import select
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator, Mapping

import harness
import host
import leftovers
import results
import variants

API = "/api/v1"
JOBS = f"{API}/sandbox/jobs"
SESSIONS = f"{API}/sandbox/sessions"
EXECUTE = f"{API}/tools/execute-code"
STATUSES = ("queued", "preparing", "running", "collecting", "completed", "failed", "cancelled")
ENDED = ("completed", "failed", "cancelled")
READY_SECONDS = 60
END_SECONDS = 10


class Died(AssertionError):
    """The service ended by itself, or did not start."""


@dataclasses.dataclass
class Answer:
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    def json(self) -> object:
        return results.strict_json(self.body)

    @property
    def envelope(self) -> dict:
        """The body, which has the envelope's shape and goes with the status."""
        assert self.headers.get_content_type() == "application/json", self
        value = self.json()
        assert isinstance(value, dict) and set(value) == {"code", "data", "msg"}, value
        assert type(value["code"]) is int and type(value["msg"]) is str, value
        assert (value["code"] == 0) == (200 <= self.status < 300), self
        assert value["code"] == 0 or (value["data"] is None and value["msg"]), value
        return value

    @property
    def code(self) -> int:
        return self.envelope["code"]

    @property
    def msg(self) -> str:
        return self.envelope["msg"]

    @property
    def data(self):
        """Of a call that went well."""
        assert 200 <= self.status < 300, (self.status, self.body[:1000])
        return self.envelope["data"]


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: pathlib.Path, timeout: float):
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self.path))


@dataclasses.dataclass
class Event:
    """One server-sent event."""

    name: str = "message"
    data: str = ""
    id: str | None = None

    def json(self) -> object:
        return results.strict_json(self.data.encode())


def read_events(stream) -> Iterator[Event]:
    """Events of a stream of lines, as the standard's "event stream interpretation" has them."""
    name, data, ident = "", [], None
    for raw in stream:
        line = raw.decode("utf-8").rstrip("\n").removesuffix("\r")
        if not line:
            if data:
                yield Event(name or "message", "\n".join(data), ident)
            name, data = "", []
        elif not line.startswith(":"):
            field, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if field == "event":
                name = value
            elif field == "data":
                data.append(value)
            elif field == "id" and "\0" not in value:
                ident = value


class Client:
    """Calls of one team over one kept connection at a time. Not for several threads: each has its own."""

    def __init__(self, service: Service, key: str | None = None, unix: bool = False):
        self.service, self.key, self.unix = service, key, unix
        self.kept: http.client.HTTPConnection | None = None

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        if self.kept:
            self.kept.close()
        self.kept = None

    def connection(self, timeout: float) -> http.client.HTTPConnection:
        limit = timeout * harness.SLOW
        if self.unix:
            return UnixConnection(self.service.socket, limit)
        return http.client.HTTPConnection("127.0.0.1", self.service.port, timeout=limit)

    def send(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        path: str,
        json: object = None,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> http.client.HTTPResponse:
        sent = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        if json is not None:
            body = dumps(json)
            sent["Content-Type"] = "application/json"
        connection.request(method, path, body, sent | dict(headers or {}))
        return connection.getresponse()

    def call(
        self,
        method: str,
        path: str,
        json: object = None,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float = 70,
    ) -> Answer:
        """One request, its whole answer. A kept connection that the service has closed meanwhile is opened anew."""
        if self.kept and self.kept.sock and select.select([self.kept.sock], [], [], 0)[0]:
            self.close()  # nothing was asked, so this is its end
        self.kept = self.kept or self.connection(timeout)
        try:
            r = self.send(self.kept, method, path, json, body, headers)
            answer = Answer(r.status, r.headers, r.read())
        except Exception:
            self.close()
            raise
        if r.will_close:
            self.close()
        return answer

    def get(self, path: str, **kw) -> Answer:
        return self.call("GET", path, **kw)

    def post(self, path: str, json: object = None, **kw) -> Answer:
        return self.call("POST", path, json=json, **kw)

    def metric(self, name: str) -> float:
        """One figure of /metrics, by its name and labels."""
        text = self.get("/metrics").body.decode()
        (value,) = (line.rsplit(" ", 1)[1] for line in text.splitlines() if line.startswith(f"{name} "))
        return float(value)

    # ---- jobs

    def execute(self, language: str, code: str, **fields) -> dict:
        """execute-code, which must be answered: its data."""
        return self.post(EXECUTE, {"language": language, "code": code, **fields}).data

    def python(self, code: str, **fields) -> dict:
        return self.execute("python", code, **fields)

    def js(self, code: str, **fields) -> dict:
        return self.execute("javascript", code, **fields)

    def submit(self, job: Mapping[str, object], headers: Mapping[str, str] | None = None) -> str:
        """An accepted job's id."""
        a = self.post(JOBS, dict(job), headers=headers)
        assert a.status == 202, (a.status, a.body[:1000])
        return a.data["job_id"]

    def job(self, ident: str) -> dict:
        """The job as it is now; checked, when it has ended."""
        r = self.get(f"{JOBS}/{ident}").data
        assert r["job_id"] == ident and r["status"] in STATUSES, r
        if r["status"] in ENDED:
            results.check_result(r)
        return r

    @contextlib.contextmanager
    def events(self, ident: str, after: str | None = None, timeout: float = 70) -> Iterator[Iterator[Event]]:
        """The job's events from the first, or from the one behind `after`."""
        connection = self.connection(timeout)
        with contextlib.closing(connection):
            headers = {"Accept": "text/event-stream"} | ({"Last-Event-ID": after} if after else {})
            r = self.send(connection, "GET", f"{JOBS}/{ident}/events", headers=headers)
            assert r.status == 200, (r.status, r.read()[:1000])
            assert r.headers.get_content_type() == "text/event-stream", r.headers
            yield read_events(r)

    def wait(self, ident: str, within: float = 60) -> dict:
        """The job's result, by its events: nothing asks again and again."""
        with self.events(ident, timeout=within) as stream:
            for event in stream:
                if event.name == "result":
                    break
            else:
                raise AssertionError(f"the events of {ident} end without a result")
        return self.job(ident)

    def cancel(self, ident: str) -> Answer:
        return self.post(f"{JOBS}/{ident}/cancel")


def dumps(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


def rows_of(log: pathlib.Path) -> list[dict]:
    """Lines of a log file, each strict JSON. One that is being written at this moment is none yet."""
    return [results.strict_json(line) for line in log.read_bytes().split(b"\n")[:-1] if line]


def inode(path: str | os.PathLike) -> int:
    with contextlib.suppress(FileNotFoundError):
        return os.stat(path).st_ino
    return 0


class Service(Client):
    """`isle serve` as the variant's user, with the variant's launcher. Its own calls are a client without a key.

    `settings` are environment variables, `options` words behind `isle serve`.
    """

    def __init__(self, folder: pathlib.Path, settings: Mapping[str, str] | None = None, *options: str):
        super().__init__(self)
        self.folder = folder
        self.data = folder / "data"
        self.socket = folder / "run/isle.sock"
        self.log_file = folder / "log"
        self.settings = {"ISLE_LOG_FORMAT": "json"} | dict(settings or {})
        self.options = options
        self.prefix: tuple[str, ...] = ()  # what executes it
        self.process: subprocess.Popen | None = None
        self.groups: set[tuple[str, int]] = set()  # that instances had at their end
        self.port = 0
        for path, mode in ((self.data, 0o755), (self.socket.parent, 0o700)):
            path.mkdir(exist_ok=True)
            path.chmod(mode)
            variants.give(path)

    # ---- life

    def start(self, wait: bool = True) -> Service:
        """Starts, and waits until it takes jobs."""
        assert self.process is None
        env = dict(self.settings)
        if variants.NOW.launcher == "bwrap":
            env.setdefault("SANDBOX_FILESYSTEM_ISOLATION_BINARY", "bwrap")
        words = ("--listen", f"127.0.0.1:{self.port}", "--data", self.data, *self.options)
        with self.log_file.open("ab") as log:
            self.process = harness.Isle(self.data, {"ISLE_SOCKET": str(self.socket)} | env).start(
                "serve", *words, stdout=log, stderr=log, prefix=self.prefix
            )
        leftovers.EXPECTED.add(self.process.pid)
        if wait:
            self.wait_ready()
        return self

    def wait_listening(self, seconds: float = READY_SECONDS) -> None:
        def listens() -> list[int]:
            if self.process.poll() is not None:
                raise Died(f"status {self.process.returncode}:\n{self.log()[-3000:]}")
            return self.listening()

        ports = harness.until(listens, seconds)
        if not ports:
            raise Died(f"no listener after {seconds} s:\n{self.log()[-3000:]}")
        self.port = ports[0]

    def wait_ready(self, seconds: float = READY_SECONDS) -> None:
        self.wait_listening(seconds)
        self.take_key_if_needed()
        if not harness.until(self.ready, seconds, 0.01):
            raise Died(f"not ready after {seconds} s: {self.get('/readyz').body!r}\n{self.log()[-3000:]}")

    def take_key_if_needed(self) -> None:
        """Where jobs may have the host's network nobody is served without a key."""
        if not self.key and b"jobs may have the host's network" in self.get(JOBS).body:
            self.key = self.new_key("default", admin=True)

    def ready(self) -> bool:
        a = self.get("/readyz", timeout=10)
        assert a.status in (200, 503), a
        return a.status == 200

    def listening(self) -> list[int]:
        """TCP ports that the service listens on, told by the kernel."""
        inodes = set()
        for pid in (self.process.pid, *self.below()):
            with contextlib.suppress(OSError):
                for fd in os.listdir(f"/proc/{pid}/fd"):
                    with contextlib.suppress(OSError):
                        inodes.add(os.readlink(f"/proc/{pid}/fd/{fd}"))
        found = []
        for name in ("tcp", "tcp6"):
            with open(f"/proc/self/net/{name}") as f:
                rows = [line.split() for line in f][1:]
            found += [int(r[1].rpartition(":")[2], 16) for r in rows if r[3] == "0A" and f"socket:[{r[9]}]" in inodes]
        return found

    def below(self) -> list[int]:
        return host.below(self.process.pid)

    def sleeps(self) -> bool:
        """Nothing is left to be done, by any of its processes."""
        return all(host.sleeps(pid) for pid in (self.process.pid, *self.below()))

    def held_up(self, ask: Callable[[], object]) -> float:
        """Seconds that the service's loop works before this is answered. What other processes do does not count, nor
        what the loop does while the one who asks is put off."""

        def told(thread: str, field: int) -> int:
            with open(f"/proc/{thread}/schedstat") as f:
                return int(f.read().split()[field])

        loop = f"{self.service_pid}/task/{self.service_pid}"
        put_off, worked = told("thread-self", 1), told(loop, 0)
        ask()
        worked = told(loop, 0) - worked
        return max(0, worked - (told("thread-self", 1) - put_off)) / 1e9

    @property
    def front_pid(self) -> int:
        return self.process.pid

    @property
    def service_pid(self) -> int | None:
        return next(iter(host.children(self.front_pid)), None)

    @property
    def launcher_pid(self) -> int | None:
        service = self.service_pid
        named = (p for p in host.children(service) if host.status_of(p).get("Name") == "isle-launcher")
        return next(named, None) if service else None

    def kill(self, *which: str, sig: int = signal.SIGKILL) -> None:
        """Of "front", "service" and "launcher", those; then waits for the front's end, and for that of all others."""
        # the sockets are there before service and launcher are
        assert harness.until(lambda: all(getattr(self, f"{name}_pid") for name in which), READY_SECONDS), which
        pids = {name: getattr(self, f"{name}_pid") for name in which}
        for pid in pids.values():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, sig)
        self.wait_gone()

    def wait_gone(self) -> int:
        """The front's exit status; no process of the instance is there any more."""
        known = self.instances()
        numbers = {str(i.number) for i in known}
        self.groups |= {(str(g), inode(g)) for g in leftovers.instance_groups() if g.name in numbers}
        status = self.process.wait(END_SECONDS * 2 * harness.SLOW)

        def held() -> list[host.Instance]:
            return [i for i in known if i in self.instances() and not leftovers.lock_is_free(str(i.number))]

        def left() -> list[int]:
            ours = [i for i in known if i in self.instances() or leftovers.lock_is_free(str(i.number))]
            return host.processes_in({i.uid_base for i in ours})

        if not harness.until(lambda: not held(), END_SECONDS / 2):
            holders = [who for i in held() for who in leftovers.lock_holders(str(i.number))]
            said = (status, holders, self.log()[-2000:])
            assert harness.until(lambda: not held(), END_SECONDS / 2), said
        if not variants.Session.account:  # an account's range serves all its instances
            assert harness.until(lambda: not left(), END_SECONDS), [host.status_of(p).get("Name") for p in left()]
        leftovers.EXPECTED.discard(self.process.pid)
        self.close()
        self.process = None
        return status

    def stop(self, sig: int = signal.SIGTERM) -> None:
        """A graceful end: status 0, and nothing left but what is to be kept."""
        self.process.send_signal(sig)
        status = self.wait_gone()
        assert status == 0, (status, self.log()[-3000:])
        self.check_nothing_left()

    def abandon(self) -> None:
        """What a failed test leaves running is ended, and not looked at."""
        if not self.process:
            return
        instances = [] if variants.Session.account else self.instances()
        host.kill(self.process.pid)
        with contextlib.suppress(AssertionError, subprocess.TimeoutExpired):
            self.wait_gone()
        for pid in host.processes_in({i.uid_base for i in instances}):
            host.kill(pid)

    def restart(self) -> None:
        self.stop()
        self.start()

    def instances(self) -> list[host.Instance]:
        """Those that lock files name: alive, or with something left."""
        return host.instances([self.data, self.data / "serve"])

    def check_nothing_left(self) -> None:
        """After an end, or a next start's end: workspaces, mounts, groups, the lock's text."""
        assert self.instances() == [], "the lock still names the data folder"
        assert [m for m in host.mounts_of([self.data]) if m.split()[4] != str(self.data)] == []  # it may be a disk
        assert self.one_shot() == [], "one-shot workspaces"
        assert [p for p in self.data.glob("*/trash/*") if p.name != "lock"] == []
        left = leftovers.left_groups()
        if harness.SHARED_HOST:  # others' may be left for a moment, also under a number that was ours
            left = [g for g in left if (g, inode(g)) in self.groups]
        assert left == [], left

    def one_shot(self) -> list[pathlib.Path]:
        return [*self.data.glob("*/once/*")]

    # ---- what it says and is

    def log(self) -> str:
        return self.log_file.read_text(errors="replace")

    def log_rows(self) -> list[dict]:
        """Lines of the log, each strict JSON."""
        return rows_of(self.log_file)

    def new_key(self, team: str, admin: bool = False) -> str:
        """A key, made by the administrator's socket."""
        with self.client(unix=True) as c:
            return c.post(f"{API}/keys", {"team": team, "name": "test", "admin": admin}).data["key"]

    def client(self, key: str | None = None, unix: bool = False) -> Client:
        return Client(self, key, unix)

    def figures(self) -> Figures:
        return Figures.of(self)

    @contextlib.contextmanager
    def grows_at_most(self, kb: int) -> Iterator[None]:
        """The service's resident memory, at any moment meanwhile."""
        pathlib.Path(f"/proc/{self.service_pid}/clear_refs").write_text("5")  # its peak is what it is now
        before = self.peak_kb()
        yield
        grown = self.peak_kb() - before
        assert grown < kb or harness.SLOW > 1, grown  # a sanitizer keeps what was freed

    def peak_kb(self) -> int:
        return int(host.status_of(self.service_pid)["VmHWM"].split()[0])


def members(group: str) -> str:
    """The processes in it; none, where it is being removed."""
    with contextlib.suppress(OSError):
        return pathlib.Path(group, "cgroup.procs").read_text()
    return ""


@dataclasses.dataclass
class Figures:
    """What must stay flat, of service and launcher."""

    private_kb: int
    descriptors: int
    threads: int
    mounts: int
    groups: int  # with processes
    empty_groups: int  # made ahead; or forgotten
    processes: int

    @classmethod
    def of(cls, s: Service) -> Figures:
        pids = [s.service_pid, s.launcher_pid]
        private = descriptors = threads = mounts = 0
        for pid in pids:
            with open(f"/proc/{pid}/smaps_rollup") as f:
                private += sum(int(line.split()[1]) for line in f if line.startswith("Private_Dirty:"))
            descriptors += len(os.listdir(f"/proc/{pid}/fd"))
            threads += int(host.status_of(pid)["Threads"])
            with open(f"/proc/{pid}/mountinfo") as f:
                mounts += len(f.readlines())
        groups = host.job_groups({i.number for i in s.instances()})
        used = sum(bool(members(g)) for g in groups)
        return cls(private, descriptors, threads, mounts, used, len(groups) - used, len(s.below()))


@contextlib.contextmanager
def serving(settings: Mapping[str, str] | None = None, *options: str, ready: bool = True) -> Iterator[Service]:
    """A service over a new folder; at the end it is stopped, where the test has not done it, and nothing is left."""
    with variants.folder("isle-serve-") as folder:
        folder.chmod(0o755)
        s = Service(folder, settings, *options)
        try:
            s.start(ready)
            yield s
            if s.process:
                s.stop()
            else:
                s.check_nothing_left()
        finally:
            s.abandon()
