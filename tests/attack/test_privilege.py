"""Group A: privilege, namespaces and kernel surface. One test per payload, named by it."""

from __future__ import annotations

import os
import pathlib
import re

import harness
import leftovers
from payload import attack, held, prepared

EPERM = "Operation not permitted"
ENOSYS = "Function not implemented"
ZERO_CAPS = " ".join(["eff", "0" * 16, "perm", "0" * 16, "inh", "0" * 16, "bounding 0"])


def test_A01(isle):
    held(attack(isle, "A01.py"), f"HELD {ZERO_CAPS}")


def test_A01_threads_and_children(isle):
    code = """
import subprocess, threading
def caps(text): print(sorted({line for line in text.splitlines() if line.startswith("Cap")}))
t = threading.Thread(target=lambda: caps(open("/proc/thread-self/status").read()))
t.start(); t.join()
caps(subprocess.run(["cat", "/proc/self/status"], capture_output=True, text=True).stdout)
"""
    zero = str(sorted(f"Cap{n}:\t{'0' * 16}" for n in ("Inh", "Prm", "Eff", "Bnd", "Amb")))
    held(isle.command(["python3", "-c", code]), zero, zero)


def test_A02(isle):
    r = attack(isle, "A02.sh")
    assert r.reason == "ok"
    assert len(r.lines) == 2 and r.lines[1] == "HELD", r.lines
    assert re.search(r"superuser|permission denied|not permitted|not found", r.lines[0]), r.lines
    for root in (pathlib.Path("/"), harness.RUNTIME_ROOT):
        assert not (root / "usr/.atk-rw").exists()


MOUNT = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def mount(source, target, kind, flags, data=None):
    if libc.mount(source, target, kind, flags, data) == 0: print("ESCAPED", source, target, kind, flags)
    elif ctypes.get_errno() != 1: print("not EPERM:", os.strerror(ctypes.get_errno()), target, kind)
"""


def test_A02_by_system_call(isle):
    """The root has no mount(8): the same by mount(2), with every flag that could help."""
    code = (
        MOUNT
        + """
for target in (b"/", b"/usr", b"/dev", b"/etc", b"/proc", b"/packages/0"):
    mount(None, target, None, 0x20 | 0x1000)      # REMOUNT|BIND
    mount(None, target, None, 0x20)
    mount(None, target, None, 0x4000 | 0x100000)  # REC|SHARED
    mount(b"/tmp", target, None, 0x1000)
    mount(b"t", target, b"tmpfs", 0)
    if libc.umount2(target, 2) == 0: print("ESCAPED umount", target)
print("done")
"""
    )
    held(isle.command(["python3", "-c", code]), "done")


def test_A03(isle):
    held(attack(isle, "A03.sh"), "done")


def test_A04(isle):
    r = attack(isle, "A04.py")
    assert r.reason == "ok"
    assert len(r.lines) == 2 and r.lines[1] == "HELD", r.lines
    assert r.lines[0] in (f"fsopen -1 {EPERM}", f"fsopen -1 {ENOSYS}")


def test_A06(isle):
    held(attack(isle, "A06.py"), f"HELD {ENOSYS}")


def test_A07(isle):
    held(attack(isle, "A07.py"), "HELD")


def test_A08(isle):
    held(attack(isle, "A08.py"), f"HELD [Errno 1] {EPERM}: '/workspace/c'")


def test_A09(isle):
    held(attack(isle, "A09.py"), "HELD nnp 1 []")


def test_A11(isle):
    r = attack(isle, "A11.py")
    assert r.reason == "ok"
    *held_lines, listing = r.lines
    assert len(held_lines) == 2 and all(line.startswith("HELD ") for line in held_lines), r.lines
    must = {"null", "zero", "full", "random", "urandom", "fd", "stdin", "stdout", "stderr", "shm"}
    seen = set(eval(listing))  # a list of names, printed by our own payload
    assert must <= seen <= must | {"tty"}, seen


def test_A12(isle):
    r = attack(isle, "A12.py")
    assert r.reason == "ok"
    last = r.lines[-1]
    assert last.startswith("HELD ["), r.lines
    tried = eval(last.removeprefix("HELD "))
    assert {fd for fd, *_ in tried} >= {0, 1, 2}
    assert {request for _, request, *_ in tried} == {
        "0x5412",
        "0x100005412",
        "0x541c",
        "0x10000541c",
    }
    assert all(value == -1 and text == EPERM for *_, value, text in tried), tried


def test_A12_no_terminal(isle):
    code = "import os\ntry: os.open('/dev/tty', os.O_RDWR)\nexcept OSError as e: print(e.errno)"
    r = isle.command(["python3", "-c", code])
    assert r.lines in (["6"], ["2"]), r.lines  # ENXIO, or no such node


def test_A13(isle):
    r = attack(isle, "A13.c")
    assert r.reason == "ok"
    assert len(r.lines) == 2, r.lines
    assert re.fullmatch(r"HELD int80 (killed (31|11)|-\d+)", r.lines[0]), r.lines
    assert r.lines[1] == "HELD x32"


def test_A14(isle):
    held(attack(isle, "A14.py"), f"HELD {ENOSYS}")


def test_A15(isle):
    held(attack(isle, "A15.py"), "HELD [-1, -1, -1]")


def test_A18(isle):
    before = leftovers.modules()
    held(attack(isle, "A18.sh"), "done")
    assert leftovers.modules() == before


def test_A18_by_system_call(isle):
    code = (
        MOUNT
        + """
for kind in (b"cramfs", b"hfsplus", b"jfs", b"udf", b"gfs2", b"ntfs3"):
    mount(b"none", b"/tmp", kind, 0)
print("done")
"""
    )
    before = leftovers.modules()
    held(isle.command(["python3", "-c", code]), "done")
    assert leftovers.modules() == before


def test_A19(isle):
    lines = [f"HELD {name} {EPERM}" for name in ("session", "user", "usersession")]
    for _ in range(2):  # twice: the second looks for the note of the first
        held(attack(isle, "A19.py"), *lines)
    assert not [k for k in leftovers.host_keys() if "atk-note" in k]


def test_A20(isle):
    r = attack(isle, "A20.py")
    assert r.reason == "ok"
    assert len(r.lines) == 1 and re.fullmatch(r"HELD \[(-?\d+, )*-?\d+\]", r.lines[0]), r.lines
    seen = eval(r.lines[0].removeprefix("HELD "))
    assert len(seen) <= 4 and {abs(p) for p in seen} >= {1}, seen


def test_A21(isle):
    held(attack(isle, "A21.py"), f"HELD {EPERM}")


def test_A22(isle):
    held(attack(isle, "A22.py"), "HELD []")


def test_A23(isle):
    r = attack(isle, "A23.sh")
    assert r.reason == "ok" and r.lines[-1] == "done"
    code = MOUNT + "mount(b'atk-prop', b'/workspace', b'tmpfs', 0); print('done')"
    held(isle.command(["python3", "-c", code]), "done")
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                text = pathlib.Path(f"/proc/{entry}/mountinfo").read_text()
            except OSError:
                continue
            assert "atk-prop" not in text, entry


def test_A24(isle, canary):
    r = attack(isle, "A24.py", env={"SUPERVISOR_NOTE": "CANARY-ENV-7f3a"})
    assert r.reason == "ok"
    held_lines = [line for line in r.lines if line.startswith("HELD ")]
    assert len(held_lines) == 7, r.lines
    text = r.stdout
    assert "CANARY" not in text and "SUPERVISOR_NOTE" not in text
    assert not re.search(r"read /proc/1/environ b'.+'", text), "pid 1 shows its environment"
    # Knobs and kernel tables: masked (empty) or refused, never with content.
    for name in (
        "kcore",
        "keys",
        "kallsyms",
        "timer_list",
        "cmdline",
        "kmsg",
        "config.gz",
        "partitions",
        "interrupts",
    ):
        assert not re.search(rf"read /proc/{re.escape(name)} b'.+'", text), name
    assert str(canary.folder) not in text
    assert not re.search(r"^0?\d*:.*:/.+", text, re.MULTILINE), "the job sees the path of its group"


def test_A25(isle):
    lines = harness.kernel_log_lines()
    r = attack(isle, "A25.py")
    held(r, "core limit (1, 1)", "HELD []")
    if lines is not None and not harness.SHARED_HOST:  # the log is the whole host's
        assert harness.kernel_log_lines() - lines < 20


def test_A26(isle):
    r = attack(isle, "A26.sh")
    assert r.reason == "ok"
    assert r.lines[-1] == "done"
    rest = r.lines[:-1]
    assert not rest or rest == ["ls: cannot access '/sys': No such file or directory"], rest


def test_A27(isle):
    r = attack(isle, "A27.py")
    assert r.reason == "ok"
    assert len(r.lines) == 3 and all(line.startswith("HELD ") for line in r.lines), r.lines


def test_A27_without_pid_1(isle):
    """ETXTBSY guards a running file only: pid 1 must not even be killable."""
    code = "import os\ntry: os.kill(1, 9); print('killed')\nexcept OSError as e: print(e.errno)"
    assert isle.command(["python3", "-c", code]).lines == ["1"]


def test_A28(isle):
    r = attack(isle, "A28.py")
    assert r.reason == "ok"
    assert len(r.lines) == 1 and r.lines[0].startswith("HELD [] cwd /workspace "), r.lines


def test_A31(isle):
    r = attack(isle, "A31.py", env={"CANARY_ENV": "CANARY-ENV-7f3a", "AWS_SECRET": "CANARY-ENV-7f3a"})
    assert r.reason == "ok"
    names, verdict = r.lines
    assert verdict == "HELD [] 0"
    allowed = {
        "HOME",
        "PATH",
        "LANG",
        "LC_ALL",
        "TMPDIR",
        "TZ",
        "MATPLOTLIBRC",
        "MPLCONFIGDIR",
        "OPENBLAS_NUM_THREADS",
        "OMP_NUM_THREADS",
        "MKL_NUM_THREADS",
        "NUMEXPR_NUM_THREADS",
        "NUMEXPR_MAX_THREADS",
        "PYTHON_CPU_COUNT",
        "UV_THREADPOOL_SIZE",
        "PYTHONUNBUFFERED",
        "LC_CTYPE",  # set by Python itself
    }
    assert set(eval(names)) <= allowed, names


def test_A32(isle):
    held(attack(isle, "A32.py"), "HELD [Errno 111] Connection refused")


def test_A33(isle):
    held(attack(isle, "A33.py"), "HELD []")


def test_A34(isle, canary):
    r = attack(isle, "A34.py")
    assert r.reason == "ok"
    assert len(r.lines) == 6, r.lines
    assert all(line.startswith("HELD ") for line in r.lines[:5]), r.lines
    interfaces = r.lines[5]
    assert "lo" in interfaces or "Errno" in interfaces or "not supported" in interfaces, interfaces
    assert not re.search(r"eth|ens|enp|docker|veth|wlan", interfaces)
    assert canary.hits == []


def test_A36(isle):
    before = leftovers.sysv_objects()
    r = attack(isle, "A36.py")
    assert r.reason == "ok"
    assert r.lines[0] == "HELD shm" and len(r.lines) == 3, r.lines
    assert leftovers.sysv_objects() == before


def test_A37(isle):
    r = attack(isle, "A37.py")
    if r.reason == "memory_limit":
        assert r.lines[0].startswith("HELD")
        return
    assert r.reason == "ok"
    assert r.lines[0].startswith("HELD ["), r.lines
    stopped = re.fullmatch(r"stopped at (\d+) MiB No space left on device", r.lines[1])
    assert stopped and int(stopped[1]) <= 64, r.lines


def test_A37_is_charged_to_the_job(isle):
    r = attack(isle, "A37.py", "--memory", "48")
    assert r.reason == "memory_limit", r.result


def test_A38(isle):
    r = attack(isle, "A38.sh")
    assert r.reason == "ok"
    assert r.lines[0] == harness.HOSTNAME and r.lines[-1] == "done", r.lines
    for secret in ("/etc/machine-id", "/sys/class/dmi/id/product_uuid", "/etc/hostname"):
        try:
            text = pathlib.Path(secret).read_text().strip()
        except OSError:
            continue
        assert not text or text == harness.HOSTNAME or text not in r.lines, secret
    numbers = [int(line) for line in r.lines if line.isdigit()]
    assert numbers and numbers[0] <= 24, "a made-up /etc has few entries"
    assert numbers[1:] in ([0], []), "no name server"
    assert not [line for line in r.lines if line.startswith("/")], r.lines


def test_A39(isle):
    path, argv = prepared("A39.py")
    r = isle.command(argv, "--file", str(path))
    assert r.reason == "ok"
    # A change of the core limit is answered as done and not done (programs lower it on purpose): the value tells.
    assert r.lines[-1] == "ESCAPED ['raise CORE']", r.lines
    code = """
import resource
resource.setrlimit(resource.RLIMIT_CORE, (2, 2))
print(resource.getrlimit(resource.RLIMIT_CORE))
"""
    held(isle.command(["python3", "-c", code]), "(1, 1)")
    finite = dict(line.split(" ", 1) for line in r.lines[:-1])
    for name in ("NOFILE", "NPROC", "FSIZE", "CORE", "MEMLOCK", "SIGPENDING", "MSGQUEUE", "STACK"):
        assert "-1" not in finite[name].split(), (name, finite[name])
    assert finite["CORE"] == "1 1"  # at 0 a piped core_pattern is run
    assert finite["RTPRIO"] == "0 0" and finite["NICE"] == "0 0"


def test_A40(isle):
    r = attack(isle, "A40.sh")
    assert r.reason == "ok"
    assert r.lines[0] == "HELD" and r.lines[-1] == "done"
    assert int(r.lines[1]) > 0, r.lines


def test_A42(isle):
    held(attack(isle, "A42.py"), "nnp 0", "listener fd -1 Function not implemented")


def test_A42_no_stacked_filters(isle):
    """A job cannot stack a filter that answers every later write by itself; it is ended and reaped as any."""
    code = """
import ctypes, struct, time
libc = ctypes.CDLL(None, use_errno=True)
rows = [(0x20, 0, 0, 0), (0x15, 0, 1, 1), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7fff0000)]
text = ctypes.create_string_buffer(b"".join(struct.pack("<HBBI", *r) for r in rows))
prog = struct.pack("<HxxxxxxQ", len(rows), ctypes.addressof(text))
print("before", flush=True)
if libc.syscall(317, 1, 0, prog): print("refused", flush=True)
try: print("unheard", flush=True)
except OSError: pass
time.sleep(600)
"""
    r, _ = harness.in_time(isle.command, ["python3", "-c", code], seconds=4, ready=lambda r: len(r.lines) > 2)
    assert r.reason == "timeout" and r.lines == ["before", "refused", "unheard"], r.result
