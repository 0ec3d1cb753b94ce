"""Bubblewrap as what makes the sandbox: the same inside as natively; what it is started with; and programs in its
place that are missing, fail, hang or lie. In none of those a byte of the job runs."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import stat
import subprocess
from collections.abc import Iterator

import harness
import leftovers
import pytest
import results
import variants

pytestmark = pytest.mark.usefixtures("host")

BWRAP = harness.RUNTIME_ROOT / "usr/bin/bwrap"


@pytest.fixture
def folder() -> Iterator[pathlib.Path]:
    with variants.folder("isle-bwrap-") as made:
        made.chmod(0o755)
        yield made


def run(isle: harness.Isle, *args: str, binary: pathlib.Path | str | None = None, **kw) -> dict:
    """The result of `isle run --json`, with the runtime root's Bubblewrap or another program in its place."""
    env = {"SANDBOX_FILESYSTEM_ISOLATION_BINARY": str(binary or "bwrap")}
    r = isle.run("--json", *args, env=env | kw.pop("env", {}), **kw)
    value = results.strict_json(r.out)
    assert isinstance(value, dict)
    assert r.status == results.exit_status(value), (r.status, value, r.err)
    assert value["isolation"]["launcher"] == "bwrap"
    return value


def fake(folder: pathlib.Path, script: str) -> pathlib.Path:
    path = folder / "bwrap"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


# ---------------------------------------------------------------------------------------------------------
# What works

INSIDE = r"""
cd /
ls -a / /dev /packages /usr/lib/isle
ls -la /etc | sed 's/ .*[0-9] / /'
ulimit -a
grep -E '^(Uid|Gid|Groups|Cap|NoNewPrivs|Seccomp:)' /proc/self/status
cat /proc/sys/kernel/random/boot_id /proc/cmdline /proc/self/oom_score_adj
for f in / /usr /etc /proc /dev /tmp /dev/shm /workspace; do stat -f -c '%n %S %b %c' $f; done | grep -E 'tmp|shm'
for f in /x /usr/x /etc/x /proc/x /dev/x /packages/x /tmp/x /dev/shm/x /workspace/x; do
    { : >$f; } 2>/dev/null && echo "$f: written"
done
hostname; id; pwd; env | sort; umask; echo $0 $$
ls /proc | grep '^[0-9]' | tr '\n' ' '
"""


def test_inside_is_as_natively(isle):
    native = isle.sh(INSIDE)
    wrapped = run(isle, "-l", "bash", "-c", INSIDE)
    assert wrapped["reason"] == "ok" and wrapped["isolation"]["level"] == "full", wrapped

    # Pid 1 is hidden natively, as it has a uid of its own; in Bubblewrap's one user namespace it has the job's.
    def lines(out: str) -> list[str]:
        return [line for line in out.splitlines() if not line.startswith(("Seccomp", "1 2", "2 "))]

    assert lines(wrapped["stdout"]) == lines(native.stdout)
    three = "mkfifo p; exec 3<>p; read a <&3 & read a <&3 & echo >&3; echo >&3; wait"
    wrapped = run(isle, "-l", "bash", "-c", three)
    assert wrapped["usage"]["pids_peak"] == isle.sh(three).result["usage"]["pids_peak"]


def test_whoever_starts_it(isle):
    """Also an ordinary user, with ids of his own or with none: no right is left inside, and the losses are listed."""
    r = run(isle, "--", "sh", "-c", "id -u; grep -h ^Cap /proc/self/status /proc/1/status | sort -u")
    if variants.NOW.container:  # Docker's own filter
        unavailable(r, "pivot_root", "--launcher native")
        return
    assert r["reason"] == "ok", r
    assert r["stdout"].split() == [
        "1000",
        *(w for n in ("Amb", "Bnd", "Eff", "Inh", "Prm") for w in (f"Cap{n}:", "0" * 16)),
    ]
    assert r["isolation"]["downgrades"] == list(variants.NOW.downgrades)


def test_in_a_pid_namespace(isle):
    """As of a container: no process 2 of it is there, which is the number of Bubblewrap's child in its own."""
    value = run(isle, "-l", "bash", "-c", "echo fine", prefix=["unshare", "-p", "-f", "--mount-proc"])
    assert value["result"] == "fine", value


def test_snippets_and_files(isle, folder):
    (folder / "in.txt").write_text("41")
    code = "open('output/o.txt', 'w').write('made'); return int(open('input/in.txt').read()) + 1"
    words = ("--file", f"{folder}/in.txt:input/in.txt", "--artifact", "output/o.txt", "--output-dir", str(folder))
    r = run(isle, "-l", "python", *words, "-c", code)
    assert r["result"] == 42 and (folder / "output/o.txt").read_text() == "made"
    r = run(isle, "--disk", "200", "-l", "javascript", "-c", "return require('fs').readdirSync('/workspace').length")
    assert r["result"] == 4
    r = run(isle, "--cwd", "none", "--", "true")
    assert (r["reason"], r["error"].split(":")[0]) == ("error", "cwd")
    r = run(isle, "--", "no-such-command")
    assert (r["reason"], r["exit_code"]) == ("error", 127)


SHIM = """
import errno, os, resource
def refused(what, act):
    try:
        act()
        print(what, "passed")
    except OSError:
        pass
refused("limit", lambda: resource.prlimit(1, resource.RLIMIT_CPU, (0, 0)))
refused("affinity", lambda: os.sched_setaffinity(1, {0}))
refused("priority", lambda: os.setpriority(os.PRIO_PROCESS, 1, 19))
refused("group's priority", lambda: os.setpriority(os.PRIO_PGRP, 1, 19))
refused("user's priority", lambda: os.setpriority(os.PRIO_USER, 0, 19))
for sig in (0, 2, 9, 15, 19):
    refused("signal", lambda: os.kill(1, sig))
for name in ("mem", "environ", "maps", "auxv", "syscall"):
    refused(name, lambda: open(f"/proc/1/{name}", "rb").read(1))
for name in ("exe", "cwd", "root", "fd/3", "ns/mnt"):
    refused(name, lambda: os.readlink(f"/proc/1/{name}"))
for name in ("oom_score_adj", "comm", "clear_refs", "timerslack_ns", "coredump_filter", "autogroup"):
    refused(name, lambda: open(f"/proc/1/{name}", "w").write("1"))
print(open("/proc/1/comm").read().strip())
"""


def test_shim_is_out_of_reach(isle):
    """It has the job's uid here, which natively it has not."""
    r = run(isle, "-l", "python", "-c", SHIM)
    assert r["stdout"] == "memfd:shim\n", r["stdout"]


def bwrap_below(pid: int) -> int:
    """The pid of the one that has a job already, or 0."""
    table = leftovers.processes()

    def is_below(at: int) -> bool:
        while at in table and at != pid:
            at = table[at].ppid
        return at == pid

    mine = {q.name: q.pid for q in table.values() if is_below(q.pid)}
    return mine["bwrap"] if "sleep" in mine and "bwrap" in mine else 0


def test_what_it_is_started_with(isle):
    """As the workspace's uid, without a right, with an empty environment and a line that tells nothing."""
    env = {"SANDBOX_FILESYSTEM_ISOLATION_BINARY": "bwrap", "LD_PRELOAD": "/none/evil.so"}
    words = ("--timeout", "300", "--env", "TOKEN=secret-value", "--", "sh", "-c", "sleep 300; :", "secret")
    p = isle.start("run", *words, env=env)
    try:
        found = harness.until(lambda: bwrap_below(p.pid), 20)
        assert found, "no bwrap"
        proc = pathlib.Path(f"/proc/{found}")
        fields = dict(line.split(":\t", 1) for line in (proc / "status").read_text().splitlines() if ":\t" in line)
        launcher = leftovers.processes()[int(fields["PPid"])]
        assert (proc / "environ").read_bytes() == b""
        assert (proc / "cmdline").read_bytes() == b"bwrap\0--args\0006\0--\0/proc/self/fd/4\0inside\0"
        assert len(set(fields["Uid"].split())) == 1 and int(fields["Uid"].split()[0]) > launcher.uid
        assert fields["NoNewPrivs"] == "1" and fields["Groups"].split() == []
        open_files = {os.readlink(proc / "fd" / fd) for fd in os.listdir(proc / "fd")}
        assert not [f for f in open_files if f.startswith(("pipe:", "/memfd:args"))], "descriptors of the job"
    finally:
        p.terminate()
        p.communicate(timeout=10 * harness.SLOW)


def test_old_version_is_a_downgrade(isle):
    host = shutil.which("bwrap", path="/usr/bin:/usr/local/bin")
    if not host:
        pytest.skip("this host has no Bubblewrap of its own")
    r = run(isle, "--", "id", "-u", binary=host)
    assert (r["reason"], r["stdout"]) == ("ok", "1000\n"), r
    version = os.popen(f"{host} --version").read().split()[1]
    old = tuple(map(int, version.split("."))) < (0, 12, 0)
    assert r["isolation"]["downgrades"] == (["old_bubblewrap"] if old else [])


def test_show_plan(isle):
    """The exact line, and a reason for each difference to the documented one."""
    r = isle.run("--launcher", "bwrap", "--show-plan", "--json", "--", "true")
    plan = json.loads(r.out)
    shown = plan["bubblewrap"]
    line = " ".join(shown["arguments"])
    assert tuple(map(int, shown["version"].split("."))) >= (0, 12, 0)
    assert shown["line"][0] == "bwrap" and [s["name"] for s in plan["launch"]].count("bubblewrap") == 1
    documented = (
        "--unshare-user --unshare-pid --unshare-ipc --unshare-uts",
        "--die-with-parent",
        "/usr --",
        "/bin --",
        "/sbin --",
        "/lib --",
        "/lib64 --",
        "/etc --",
        "/proc --",
        "/dev --",
        "/tmp --",
        "--chdir /workspace",
        "--hostname clouisle-sandbox",
        "--bind /job/workspace /workspace",
    )
    for part in documented:
        assert part in line, part
    told = {d["option"]: d for d in shown["differences"]}
    assert all(d["why"] for d in told.values())
    alike = (
        "--unshare-user",
        "--unshare-pid",
        "--unshare-ipc",
        "--unshare-uts",
        "--die-with-parent",
        "--hostname",
        "--chdir",
    )
    options = [w for w in shown["arguments"] if w.startswith("--") and w not in alike]
    known = {o.split()[0] for o in told}
    assert set(options) <= known, set(options) - known
    text = isle.run("--launcher", "bwrap", "--show-plan", "--", "true").text
    assert "bwrap --args 6 -- /proc/self/fd/4 inside" in text and "for --dev /dev" in text


def test_network_of_the_host(isle):
    """Only where the operator allows it, and told; without --network host a job has none even then."""
    code = "import os, socket; return [os.readlink('/proc/self/ns/net'), socket.getaddrinfo('localhost', 1)[0][4][0]]"
    allow = {"SANDBOX_NETWORK_ALLOW_HOST": "true"}
    r = run(isle, "--network", "host", "-l", "python", "-c", code, env=allow)
    assert r["result"][0] == os.readlink("/proc/self/ns/net"), r
    assert r["isolation"]["downgrades"] == ["network_host"] and r["isolation"]["network"] == "host"
    r = run(isle, "-l", "python", "-c", code, env=allow)
    assert r["result"][0] != os.readlink("/proc/self/ns/net") and r["isolation"]["level"] == "full"
    r = isle.run("--launcher", "bwrap", "--network", "host", "--", "true")
    assert r.status == 125, r


# ---------------------------------------------------------------------------------------------------------
# What fails: as isolation_unavailable, and the code never ran

PROOF = "/var/tmp/isle-bwrap-proof"
FAKES = {
    "exits-1": (
        "echo 'bwrap: setting up uid map: Permission denied' >&2; exit 1",
        ("status 1", "setting up uid map", "lets nobody map"),
    ),
    "no-permission": (
        "echo 'bwrap: No permissions to create new namespace, likely because' >&2; exit 1",
        ("kernel.unprivileged_userns_clone",),
    ),
    "exits-0": ("exit 0", ("status 0",)),
    "writes-garbage": (
        'i=0; while [ $i -lt 2000 ]; do echo "garbage $i \033[31m" >&2; echo 1234567890123456 >&3; '
        "i=$((i + 1)); done; exit 3",
        ("status 3",),
    ),
    "starts-it-outside": ("exec /proc/self/fd/4 inside", ("another sandbox", "not as asked for")),
    "runs-the-last-word": ('shift $(($# - 1)); exec "$1"', ("status 127",)),
}


def unavailable(r: dict, *parts: str) -> None:
    assert (r["reason"], r["exit_code"], r["stdout"], r["isolation"]["level"]) == (
        "isolation_unavailable",
        None,
        "",
        "none",
    ), r
    for part in parts:
        assert part in r["error"], (part, r["error"])
    assert "\033" not in r["error"] and len(r["error"]) < 800
    assert not os.path.lexists(PROOF), "the code ran"


CODE = ("-l", "bash", "-c", f"touch {PROOF} /workspace/proof; echo ran")


@pytest.mark.parametrize("name", FAKES)
def test_fake(isle, folder, name):
    script, parts = FAKES[name]
    path = fake(folder, f'[ "$1" = --version ] && {{ echo bubblewrap 0.12.0; exit; }}\n{script}')
    unavailable(run(isle, *CODE, binary=path), f"{path} 0.12.0", "nothing of the job ran", *parts)


def test_fake_hangs(isle, folder):
    """It is given five seconds to say its version, and five more."""
    path = fake(folder, "sleep 61.5 & wait")
    unavailable(run(isle, *CODE, binary=path), str(path), "not make the sandbox in time")
    words = ["pgrep", "-x", "-f", "sleep 61.5"]
    assert harness.until(lambda: subprocess.run(words, stdout=subprocess.DEVNULL, check=False).returncode == 1, 20), (
        "something it started is left"
    )


def test_missing_and_no_program(isle, folder):
    unavailable(run(isle, *CODE, binary=folder / "none"), str(folder / "none"), "No such file")
    unavailable(run(isle, *CODE, binary=folder), str(folder), "no program")
    path = folder / "text"
    path.write_text("not a program\n")
    path.chmod(0o755)
    unavailable(run(isle, *CODE, binary=path), str(path), "Exec format error")


def test_set_uid_is_refused(isle, folder):
    path = folder / "bwrap"
    shutil.copy(BWRAP, path)
    path.chmod(0o4755)
    assert path.stat().st_mode & stat.S_ISUID
    unavailable(run(isle, *CODE, binary=path), str(path), "set-uid")


def test_unknown_launcher(isle):
    r = isle.run("--launcher", "docker", "--", "true")
    assert r.status == 125 and b"native and bwrap" in r.err


def test_FS_16(isle, folder):
    """What a root need not have is skipped; what it must have is named."""
    root = folder / "root"
    libraries = ["ld-linux-x86-64.so.2", "libc.so.6", "libcap.so.2", "libselinux.so.1", "libpcre2-8.so.0"]
    for name in ("bin", "lib/isle", "lib/x86_64-linux-gnu", "lib64"):
        (root / "usr" / name).mkdir(parents=True)
    for name in ("usr/bin/dash", "usr/bin/bwrap", "usr/lib64/ld-linux-x86-64.so.2"):
        shutil.copy(harness.RUNTIME_ROOT / name, root / name)
    for name in libraries:
        there = harness.RUNTIME_ROOT / "usr/lib/x86_64-linux-gnu" / name
        if there.exists():
            shutil.copy(there, root / "usr/lib/x86_64-linux-gnu" / name)
    (root / "etc").mkdir()
    for path in (root, *root.rglob("*")):
        path.chmod(0o755)
    env = {"SANDBOX_RUNTIME_ROOT": str(root)}
    words = ("--", "/usr/bin/dash", "-c", "echo /*")
    native, wrapped = isle.job(*words, env=env), run(isle, *words, env=env)
    assert native.reason == wrapped["reason"] == "ok", wrapped
    assert "/sbin" not in wrapped["stdout"] and "/etc" in wrapped["stdout"]
    shutil.rmtree(root / "usr/lib/isle")
    r = isle.run("--launcher", "bwrap", *words, env=env)
    assert r.status == 125 and b"usr/lib/isle" in r.err
    (root / "usr/bin/bwrap").unlink()
    unavailable(run(isle, *words, env=env), f"{root}/usr/bin/bwrap", "No such file")
