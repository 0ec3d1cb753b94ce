"""Attacks on what every job of a host shares: its kernel's tables, caches, memory and modules."""

from __future__ import annotations

import pytest
from payload import compiled_program

# Before the calls, which are Python too and are asked inside one job.
CALLS = """
import ctypes, errno, mmap, os, socket
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long


def call(number, *args):
    ctypes.set_errno(0)
    r = libc.syscall(number, *[ctypes.c_void_p(a) if isinstance(a, int) else a for a in args])
    return errno.errorcode[ctypes.get_errno()] if r == -1 else r


PRCTL, IOCTL, SETSOCKOPT, GETSOCKOPT, MADVISE, SECCOMP, PREADV2 = 157, 16, 54, 55, 28, 317, 327
tcp, udp, udp6 = [socket.socket(*a) for a in ((2, 1), (2, 2), (10, 2))]
usr = os.open("/usr/bin/env", os.O_RDONLY)
page = ctypes.create_string_buffer(1 << 16)
address = ctypes.addressof(page) + 4095 & ~4095
"""


def answers(isle, *calls: str) -> list[str]:
    r = isle.command(["python3", "-c", CALLS + "".join(f"print(call({c}))\n" for c in calls)])
    assert r.reason == "ok", (r.result, r.stderr)
    return r.lines


def test_no_page_is_shared_with_the_host(isle):
    """KSM: a write to a merged page is slow, which tells that somebody else has the same page."""
    assert answers(isle, "MADVISE, address, 4096, 12", "PRCTL, 67, 1, 0, 0, 0") == ["EINVAL"] * 2


def test_no_program_of_a_job_is_compiled_into_the_kernel(isle):
    """4,096 processes with filters take the whole host's memory for compiled ones: no sandbox starts any more."""
    assert answers(isle, "SECCOMP, 1, 0, address", "PRCTL, 22, 2, address, 0, 0") == ["ENOSYS", "EINVAL"]


def test_an_interface_is_asked_but_no_module_is_loaded(isle):
    """SIOCGIFBR, SIOCBRADDBR and SIOCGIFVLAN load bridge and 8021q, for whoever asks."""
    asked = [f"IOCTL, tcp.fileno(), {n}, address" for n in (0x8940, 0x89A0, 0x8982)]
    assert answers(isle, *asked) == ["ENOTTY"] * 3
    r = isle.python("import socket\nreturn socket.if_nameindex() and socket.if_nametoindex('lo')")
    assert r.result["result"] == 1 or "Errno" in r.stderr, (r.result, r.stderr)


def test_file_systems_do_not_tell_who_they_are(isle):
    """FS_IOC_GETFSUUID and FS_IOC_GETFSSYSFSPATH: the host's disk, by number and by device."""
    assert answers(isle, *(f"IOCTL, usr, {n}, address" for n in (0x80111500, 0x80811501))) == ["ENOTTY"] * 2


def test_the_page_cache_of_all_is_neither_probed_nor_emptied(isle):
    """Flush and probe: which file of the runtime another job has just read."""
    vector = "(ctypes.c_ulong * 2)(address, 4096)"
    nowait, uncached = (f"PREADV2, usr, {vector}, 1, 0, 0, {flag}" for flag in (0x8, 0x80))
    assert answers(isle, nowait, uncached, "221, usr, 0, 0, 4") == ["ENOTSUP"] * 2 + [
        "0"
    ]  # EOPNOTSUPP, as Python calls it
    r = isle.python("import os\nfd = os.open('/usr/bin/env', 0)\nreturn os.preadv(fd, [bytearray(4)], 0)")
    assert r.result["result"] == 4


def test_nobody_syncs_the_host(isle):
    assert answers(isle, "162", "306, usr") == ["0", "0"]  # and nothing was done: test_policy reads the filter


def test_rare_protocols_of_sockets(isle):
    """Keys of routers, IPsec inside UDP, and a table of flow labels that all hosts' containers share."""
    asked = [
        "SETSOCKOPT, tcp.fileno(), 6, 14, address, 216",
        "SETSOCKOPT, tcp.fileno(), 6, 32, address, 216",
        "SETSOCKOPT, tcp.fileno(), 6, 38, address, 128",
        "SETSOCKOPT, udp.fileno(), 17, 100, address, 4",
        "SETSOCKOPT, udp6.fileno(), 41, 32, address, 32",
    ]
    assert answers(isle, *asked) == ["EPERM"] * 5


@pytest.mark.parametrize("who", ["main", "orphan", "thread"])
def test_locks_are_memory(isle, who):
    """CVE-2022-0480: no control group counts what a lock on a part of a file takes, 100 MB in a second."""
    program = ["--file", str(compiled_program("locks"))]
    few = isle.command(["./locks", who, "20", "100"], *program)
    assert few.reason == "ok" and few.lines == ["taken"], few.result
    many = isle.command(["./locks", who, "500", "500"], *program, "--timeout", "80", within=100)
    assert many.reason == "memory_limit", many.result
    assert many.result["usage"]["wall_ms"] < 60000


def test_locks_of_open_files_are_not_there(isle):
    """The same without a process to count them by."""
    assert answers(isle, "72, usr, 37, address") == ["EINVAL"]


# Of the files of /proc that belong to no process and no namespace: what tells of this kind of kernel, and how busy
# the host is as a whole: os.cpus(), free, ps and others read them.
PROC = """
buddyinfo cgroups cpuinfo crypto devices dma execdomains fb filesystems loadavg meminfo misc stat uptime version
version_signature vmstat
"""
# Per namespace: sysvipc, net. Drivers and line disciplines of terminals: tty. For root alone on every kernel: the rest.
PROC_FOLDERS = {"net", "self", "sys", "sysvipc", "thread-self", "tty"}


def test_proc_tells_of_the_kernel_and_not_of_the_host(isle):
    code = """
for f in /proc/[a-z]*; do
    if [ -d $f ]; then [ -z "$(ls -A $f)" ] || echo $f/
    elif [ -r $f ] && [ -n "$(head -c 1 $f | tr '\\0' x)" ]; then echo $f
    fi
done
"""
    r = isle.command(["bash", "-c", code])
    assert r.reason == "ok", r.result
    folders = {line.split("/")[2] for line in r.lines if line.endswith("/")}
    files = {line.split("/")[2] for line in r.lines if not line.endswith("/")}
    assert folders <= PROC_FOLDERS, folders - PROC_FOLDERS
    assert files - {"mounts"} <= set(PROC.split()), files - set(PROC.split())
    assert {"cpuinfo", "meminfo", "stat", "loadavg", "uptime"} <= files


def test_a_pidfd_of_the_service_is_good_for_nothing(isle):
    """SO_PEERPIDFD on the result's socket: a process of the host, in the hand of a job."""
    code = """
import ctypes, os, socket, struct
libc = ctypes.CDLL(None)
fd = struct.unpack("i", socket.socket(fileno=os.dup(1023)).getsockopt(1, 77, 4))[0]
info = ctypes.create_string_buffer(128)
calls = {
    "signal": (424, fd, 0, None, 0),
    "kill": (424, fd, 9, None, 0),
    "steal": (438, fd, 0, 0),
    "info": (16, fd, ctypes.c_ulong(0xC040FF0B), info),
    "enter": (308, fd, 0),
}
told = [line for line in open(f"/proc/self/fdinfo/{fd}") if line.startswith(("Pid:", "NSpid:"))]
return [{k: libc.syscall(*v) for k, v in calls.items()}, told]
"""
    r = isle.python(code)
    if "OSError" in r.stderr:  # a kernel before Linux 6.5
        return
    answers, told = r.result["result"]
    assert set(answers.values()) == {-1}, answers
    assert {line.split()[1] for line in told} == {"0"}, told
