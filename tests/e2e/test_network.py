"""Networks of jobs: none, and the host's. Every test is in a network namespace of its own, over loopback alone."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

import harness
import pytest

pytestmark = pytest.mark.usefixtures("host")

NETNS = str(pathlib.Path(__file__).parent / "netns.py")
PORT = 18080
ALLOW = {"SANDBOX_NETWORK_ALLOW_HOST": "true"}
HOST = ["--network", "host"]
ABI_5 = {"ISLE_TEST_REFUSE_RUNGS": str(1 << 5)}
NO_LOOPBACK = {"ISLE_TEST_REFUSE_RUNGS": str(1 << 4)}

REACH = f"""
import socket
try:
    with socket.create_connection(("127.0.0.1", {PORT}), 20) as s: print(s.recv(9).decode())
except OSError as e: print(type(e).__name__)
"""


def inside(setup: dict) -> list[str]:
    return [sys.executable, NETNS, json.dumps(setup)]


@pytest.fixture
def setup(tmp_path) -> dict:
    tmp_path.chmod(0o755)
    return {"port": PORT, "abstract": "isle-test-name", "log": str(tmp_path / "log")}


def log(setup: dict) -> list[str]:
    path = pathlib.Path(setup["log"])
    return path.read_text().split() if path.exists() else []


def test_network_host_reaches_the_hosts_loopback(isle, setup):
    r = isle.command(["python3", "-c", REACH], *HOST, env=ALLOW, prefix=inside(setup))
    assert r.reason == "ok" and r.lines == ["hello"], r.result
    assert r.result["isolation"]["network"] == "host"
    assert r.result["isolation"]["downgrades"] == ["network_host"]
    assert r.result["isolation"]["level"] == "degraded"
    assert log(setup) == ["tcp"]


@pytest.mark.parametrize("options", [[], ["--network", "none"]])
def test_network_none_does_not(isle, setup, options):
    """Also where the host's network is allowed: a job must ask for it."""
    r = isle.command(["python3", "-c", REACH], *options, env=ALLOW, prefix=inside(setup))
    assert r.reason == "ok" and r.lines == ["ConnectionRefusedError"], r.result
    assert r.result["isolation"]["network"] == "none" and r.result["isolation"]["level"] == "full"
    assert log(setup) == []


def test_network_default(isle, setup):
    env = ALLOW | {"SANDBOX_NETWORK_DEFAULT": "host"}
    r = isle.command(["python3", "-c", REACH], env=env, prefix=inside(setup))
    assert r.lines == ["hello"] and r.result["isolation"]["network"] == "host"
    r = isle.command(["python3", "-c", REACH], "--network", "none", env=env, prefix=inside(setup))
    assert r.lines == ["ConnectionRefusedError"] and r.result["isolation"]["network"] == "none"


@pytest.mark.parametrize("env", [{}, {"SANDBOX_NETWORK_DEFAULT": "host"}])
def test_network_host_refused(isle, env):
    """Without the operator's leave it is an error, and nothing runs."""
    r = isle.run(*([] if env else HOST), "-l", "bash", "-c", "echo ran", env=env)
    assert r.status == 125 and r.out == b"", r
    assert b"--network: the host's network is not allowed: SANDBOX_NETWORK_ALLOW_HOST" in r.err, r


def test_network_unknown(isle):
    r = isle.run("--network", "proxied", "-l", "bash", "-c", "echo ran")
    assert r.status == 125 and b'--network: "proxied" is neither none nor host' in r.err, r


def test_network_in_the_plan(isle):
    r = isle.run(*HOST, "--show-plan", "--json", "--", "true", env=ALLOW)
    assert json.loads(r.out)["sandbox"]["network"] == "host"


def test_network_host_in_every_language(isle, setup):
    code = f"""
const net = require('net');
return await new Promise((done) => {{
  const s = net.connect({PORT}, '127.0.0.1');
  s.on('data', (d) => done(String(d)));
  s.on('error', (e) => done(e.code));
}});
"""
    r = isle.js(code, *HOST, env=ALLOW, prefix=inside(setup))
    assert r.result["result"] == "hello", r.result
    r = isle.sh(f"read -r line < /dev/tcp/127.0.0.1/{PORT}; echo $line", *HOST, env=ALLOW, prefix=inside(setup))
    assert r.lines == ["hello"], r.result


FORBIDDEN = """
import errno, socket
def word(e): return errno.errorcode[e.errno]
for family, kind in ((17, 3), (16, 3), (40, 1), (2, 3), (10, 3), (2, 5)):
    try: socket.socket(family, kind); print("made", family, kind)
    except OSError as e: print(word(e))
try: socket.socket(2, 2, 1); print("made icmp")
except OSError as e: print(word(e))
try:
    with socket.socket(socket.AF_UNIX) as s: s.connect("\\0isle-test-name"); print(s.recv(9).decode())
except OSError as e: print(word(e))
try: socket.create_server(("127.0.0.1", 80)); print("took port 80")
except OSError as e: print(word(e))
"""


def test_network_host_leaves_forbidden(isle, setup):
    """Raw and other families of sockets, low ports, and the host's abstract sockets: Landlock's scope."""
    r = isle.command(["python3", "-c", FORBIDDEN], *HOST, env=ALLOW, prefix=inside(setup))
    assert r.lines == ["EAFNOSUPPORT"] * 7 + ["EPERM", "EACCES"], r.result
    assert log(setup) == []


def test_network_host_without_landlocks_scope(isle, setup):
    """A kernel before 6.12: the names are in reach, and the result says so."""
    r = isle.command(["python3", "-c", FORBIDDEN], *HOST, env=ALLOW | ABI_5, prefix=inside(setup))
    assert r.lines == ["EAFNOSUPPORT"] * 7 + ["hello", "EACCES"], r.result
    assert r.result["isolation"]["downgrades"] == ["network_host", "abstract_sockets"]
    r = isle.sh("true", env=ALLOW | ABI_5, prefix=inside(setup))
    assert r.result["isolation"]["downgrades"] == []


def test_NET_05_unix_sockets_with_the_hosts_network(isle, setup):
    code = """
import os, stat
for top in ("/run", "/var/run", "/tmp", "/dev", "/var", "/home"):
    for folder, _, files in os.walk(top):
        for name in files:
            if stat.S_ISSOCK(os.lstat(os.path.join(folder, name)).st_mode): print(folder, name)
"""
    r = isle.command(["python3", "-c", code], *HOST, env=ALLOW, prefix=inside(setup))
    assert r.reason == "ok" and r.lines == [], r.result


# ---- The host's files for it


@pytest.fixture
def etc(tmp_path):
    """A copy of /etc, to be mounted over the host's in a namespace of its own; and a folder below /run."""
    tmp_path.chmod(0o755)
    run = pathlib.Path(f"/run/isle-test-{os.getpid()}")
    run.mkdir()
    subprocess.run(["cp", "-a", "/etc", tmp_path / "etc"], check=True)
    yield tmp_path / "etc", run
    subprocess.run(["rm", "-r", run], check=True)


def over_etc(etc: pathlib.Path, setup: dict) -> list[str]:
    script = f'mount --make-rprivate / && mount --bind {etc} /etc && exec "$@"'
    return ["unshare", "-m", "sh", "-c", script, "sh", *inside(setup)]


def test_NET_02_what_not_everybody_may_read_stays_the_hosts(isle, etc):
    folder, _ = etc
    (folder / "hosts").chmod(0o640)
    r = isle.command(["cat", "/etc/hosts"], *HOST, env=ALLOW, prefix=over_etc(folder, {}))
    assert (folder / "hosts").read_text() not in r.stdout
    (folder / "hosts").chmod(0o644)
    r = isle.command(["cat", "/etc/hosts"], *HOST, env=ALLOW, prefix=over_etc(folder, {}))
    assert (folder / "hosts").read_text() in r.stdout


def test_NET_02_resolver_behind_a_link(isle, etc):
    folder, run = etc
    (run / "stub.conf").write_text("nameserver 127.0.0.1\n")
    (folder / "resolv.conf").unlink(missing_ok=True)
    (folder / "resolv.conf").symlink_to(run / "stub.conf")
    with open(folder / "hosts", "a") as f:
        f.write("\n192.0.2.8 operators-name\n")
    code = """
import socket
for name in ("service.example", "operators-name", "localhost", socket.gethostname()):
    print(socket.getaddrinfo(name, 80, socket.AF_INET, socket.SOCK_STREAM)[0][4][0])
"""
    setup = {"dns": {"service.example": "192.0.2.7"}}
    r = isle.command(["python3", "-c", code], *HOST, env=ALLOW, prefix=over_etc(folder, setup))
    assert r.lines == ["192.0.2.7", "192.0.2.8", "127.0.0.1", "127.0.0.1"], r.result
    # and nothing of it without
    code = "print(open('/etc/resolv.conf').read() + open('/etc/hosts').read())"
    r = isle.command(["python3", "-c", code], env=ALLOW, prefix=over_etc(folder, setup))
    assert r.reason == "ok" and "nameserver" not in r.stdout and "operators-name" not in r.stdout


def make_authority(folder: pathlib.Path) -> None:
    """ca.pem, and server.pem with server.key for the name localhost."""

    def openssl(*words: str) -> None:
        subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)

    new = ["req", "-newkey", "rsa:2048", "-nodes", "-x509", "-days", "2"]
    usage = ["-addext", "keyUsage=critical,keyCertSign,cRLSign"]
    openssl(*new, "-subj", "/CN=operator", *usage, "-keyout", "ca.key", "-out", "ca.pem")
    request = [
        "-subj",
        "/CN=localhost",
        "-addext",
        "subjectAltName=DNS:localhost",
        "-addext",
        "basicConstraints=CA:FALSE",
    ]
    openssl(*new, *request, "-CA", "ca.pem", "-CAkey", "ca.key", "-keyout", "server.key", "-out", "server.pem")


def test_NET_03_operators_authority(isle, etc, tmp_path):
    """One that the operator added to the host's is trusted by Python, Node and curl."""
    folder, _ = etc
    make_authority(tmp_path)
    bundle = folder / "ssl/certs/ca-certificates.crt"
    bundle.write_bytes(bundle.read_bytes() + (tmp_path / "ca.pem").read_bytes())
    setup = {"https": [PORT + 1, str(tmp_path / "server.pem"), str(tmp_path / "server.key")]}
    prefix = over_etc(folder, setup)
    url = f"https://localhost:{PORT + 1}/"
    code = f"""
import ssl, urllib.request
print(ssl.create_default_context().cert_store_stats()["x509_ca"] > 100)
print(urllib.request.urlopen("{url}").read().decode())
"""
    r = isle.command(["python3", "-c", code], *HOST, env=ALLOW, prefix=prefix)
    assert r.lines == ["True", "hello over TLS"], r.result
    code = f"return await (await fetch('{url}')).text()"
    r = isle.js(code, *HOST, env=ALLOW, prefix=prefix)
    assert r.result["result"] == "hello over TLS", r.result
    if (harness.RUNTIME_ROOT / "usr/bin/curl").exists():
        r = isle.command(["curl", "-sS", url], *HOST, env=ALLOW, prefix=prefix)
        assert r.stdout == "hello over TLS", r.result


# ---- A host that lets nobody bring a loopback up


def test_KER_03_without_a_loopback(isle):
    """Jobs run, closed off altogether, and the result says so; isle doctor names it."""
    code = (
        "import socket\ntry: socket.create_server(('127.0.0.1', 0))\nexcept OSError as e: print(e.errno)\nprint('fine')"
    )
    r = isle.command(["python3", "-c", code], env=NO_LOOPBACK)
    assert r.reason == "ok" and r.lines[-1] == "fine", r.result
    assert r.result["isolation"] == {
        "level": "degraded",
        "launcher": "native",
        "start": "cold",
        "network": "none",
        "downgrades": ["no_loopback"],
        "fallback": None,
    }
