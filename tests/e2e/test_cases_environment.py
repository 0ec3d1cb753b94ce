"""Cases ENV and SEC: what a job finds, and system calls that programs need."""

from __future__ import annotations

import concurrent.futures
import errno

import harness
import pytest

pytestmark = pytest.mark.usefixtures("host")


def test_ENV_02_localhost_resolves(isle):
    code = "import socket; print(socket.gethostbyname('localhost'), socket.gethostbyname(socket.gethostname()))"
    r = isle.python(code)
    assert r.reason == "ok", r.result
    assert all(a.startswith("127.") for a in r.stdout.split()) and len(r.stdout.split()) == 2
    code = """
const { lookup } = require("dns").promises;
for (const name of ["localhost", require("os").hostname()]) console.log((await lookup(name)).address)
"""
    r = isle.js(code)
    assert all(a.startswith(("127.", "::1")) for a in r.lines) and len(r.lines) == 2, r.result


def test_ENV_03_time_zones(isle):
    code = """
import datetime, zoneinfo, time
print(datetime.datetime(2024, 7, 1, tzinfo=zoneinfo.ZoneInfo("America/New_York")).utcoffset())
print(time.tzname[0], time.timezone)
"""
    assert isle.python(code).lines == ["-1 day, 20:00:00", "UTC 0"]
    assert isle.sh("TZ=Asia/Tokyo date +%z; date +%z").lines == ["+0900", "+0000"]
    code = 'console.log(new Date(0).toLocaleString("en-GB", {timeZone: "Asia/Tokyo", hour: "numeric", hour12: false}))'
    assert int(isle.js(code).stdout) == 9
    code = "console.log(Intl.DateTimeFormat().resolvedOptions().timeZone, new Date().getTimezoneOffset())"
    assert isle.js(code).lines == ["UTC 0"]
    assert isle.sh("date +%z", "--env", "TZ=Asia/Tokyo").lines == ["+0900"]


def test_ENV_04_locale(isle):
    r = isle.sh(r"printf '\u4f60\n'; locale charmap; echo 'ÄÖ' | wc -m")
    assert r.lines == ["你", "UTF-8", "3"] and r.stderr == "", r.result
    code = "import sys, locale; print(sys.stdout.encoding, locale.getpreferredencoding(False))"
    assert isle.python(code).stdout.lower().split() == ["utf-8", "utf-8"]
    r = isle.command(["python3", "-c", code])
    assert r.stdout.lower().split() == ["utf-8", "utf-8"]
    assert isle.js("console.log('你', process.env.LANG, process.env.LC_ALL)").lines == ["你 C.UTF-8 C.UTF-8"]


PYTHON_CALLS = """
import asyncio, os, sys, threading
os.sched_getaffinity(0)
os.close(os.pipe2(os.O_CLOEXEC)[0])
os.close(os.memfd_create("m"))
os.getrandom(8)
with open("a", "wb") as f: f.write(b"x" * 1000)
a, b = os.open("a", os.O_RDONLY), os.open("b", os.O_CREAT | os.O_WRONLY)
for call in (lambda: os.copy_file_range(a, b, 1000), lambda: os.sendfile(b, a, 0, 10)):
    try: call()
    except OSError: pass
p = os.posix_spawn("/bin/true", ["true"], os.environ)
assert os.waitpid(p, 0)[1] == 0
done = []
ts = [threading.Thread(target=done.append, args=(i,)) for i in range(4)]
for t in ts: t.start()
for t in ts: t.join()
async def sub():
    p = await asyncio.create_subprocess_exec("echo", "hello", stdout=asyncio.subprocess.PIPE)
    return (await p.communicate())[0]
assert asyncio.run(sub()) == b"hello\\n"
print(len(done))
"""
NODE_CALLS = """
const { Worker } = require("worker_threads"), fs = require("fs"), cp = require("child_process");
const n = await new Promise((ok, no) => {
  const w = new Worker("require('worker_threads').parentPort.postMessage(7)", { eval: true });
  w.on("message", ok); w.on("error", no);
});
await fs.promises.writeFile("f", "text"); await fs.promises.copyFile("f", "g");
const t = (await fs.promises.readFile("g")).toString();
console.log(n, t, cp.execFileSync("echo", ["child"]).toString().trim());
"""


def test_SEC_02_calls_of_modern_runtimes(isle):
    """No run dies by SIGSYS, whatever is refused."""
    count = 200 if harness.LONG else 12

    def one(i: int) -> harness.Run:
        return isle.python(PYTHON_CALLS) if i % 2 else isle.js(NODE_CALLS)

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        runs = list(pool.map(one, range(count)))
    for i, r in enumerate(runs):
        assert r.reason == "ok", r.result
        assert r.lines == (["4"] if i % 2 else ["7 text child"]), r.result


def test_SEC_03_plain_imports(isle):
    code = """
import json, ssl, sqlite3, ctypes, decimal, zoneinfo, multiprocessing, asyncio, lzma, uuid
print("word")
"""
    r = isle.python(code)
    assert r.reason == "ok" and r.stdout == "word\n" and r.stderr == "", r.result
    r = isle.python("import no_such_module")
    assert r.reason == "error" and r.status == 1 and "ModuleNotFoundError" in r.stderr
    r = isle.js("for (const m of require('module').builtinModules) if (!/^_|^sys$|^wasi$|^trace_/.test(m)) require(m)")
    assert r.reason == "ok" and r.stdout == "", r.result
    r = isle.js("require('no-such-module')")
    assert r.reason == "error" and r.status == 1 and "MODULE_NOT_FOUND" in r.stderr


ANSWERS = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall({"x86_64": 206, "aarch64": 0}[os.uname().machine], 0, ctypes.byref(ctypes.c_ulong(0)))
print("io_setup", ctypes.get_errno())
libc.syscall({"x86_64": 272, "aarch64": 97}[os.uname().machine], 0)
print("unshare", ctypes.get_errno())
print(os.sched_getaffinity(0) != set())
"""


def test_SEC_04_more_calls_are_added(isle):
    """To the default list, which stays; what is no call stops the start."""
    assert isle.python(ANSWERS).lines == [f"io_setup {errno.ENOSYS}", f"unshare {errno.EPERM}", "True"]
    more = {"SANDBOX_SECCOMP_ALLOW": "io_setup"}
    r = isle.python(ANSWERS, env=more)
    assert r.lines == [f"io_setup {errno.EINVAL}", f"unshare {errno.EPERM}", "True"]
    assert r.result["isolation"]["level"] == "degraded"
    assert r.result["isolation"]["downgrades"] == ["seccomp_allow"]
    for value, words in (
        ("io_setup,no_such_call", "SANDBOX_SECCOMP_ALLOW: no_such_call is no system call"),
        ("io setup", "SANDBOX_SECCOMP_ALLOW: io setup is no list of system calls"),
        (",".join(["read"] * 17), "SANDBOX_SECCOMP_ALLOW: read is one more than the maximum of 16"),
    ):
        r = isle.run("--", "true", env={"SANDBOX_SECCOMP_ALLOW": value})
        assert r.status == 125 and words in r.err.decode(), r.err


def test_SEC_05_subprocesses(isle):
    r = isle.python('import subprocess; print(subprocess.check_output(["uname", "-s"]))')
    assert r.lines == ["b'Linux\\n'"], r.result
    r = isle.js('console.log(require("child_process").execSync("uname -s").toString())')
    assert r.stdout.strip() == "Linux", r.result
