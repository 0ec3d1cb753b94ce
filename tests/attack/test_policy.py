"""What each system call answers inside a job, compared with the policy that the product was built from.

The policy file is read here by its written rules, not by the code that compiles it; the answers come from a program
that makes every call inside a real job.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import functools
import pathlib
import re
import subprocess

import harness
import installed
import leftovers
import pytest
from payload import BUILT, compiled_program

POLICY = harness.ROOT / "src/guest/policy/job.policy"
ARGS = 6
MAX = (1 << 64) - 1
FOLDER = ("--disk", "200")
MEMORY = ("--disk", "48")

# Newer than the headers of Debian 12.
NEW_NUMBERS = {
    "cachestat": 451,
    "fchmodat2": 452,
    "map_shadow_stack": 453,
    "futex_wake": 454,
    "futex_wait": 455,
    "futex_requeue": 456,
    "statmount": 457,
    "listmount": 458,
    "lsm_get_self_attr": 459,
    "lsm_set_self_attr": 460,
    "lsm_list_modules": 461,
    "mseal": 462,
    "setxattrat": 463,
    "getxattrat": 464,
    "listxattrat": 465,
    "removexattrat": 466,
    "open_tree_attr": 467,
    "file_getattr": 468,
    "file_setattr": 469,
}
CONSTANTS = {
    "AF_UNIX": 1,
    "AF_INET": 2,
    "AF_INET6": 10,
    "SOCK_STREAM": 1,
    "SOCK_DGRAM": 2,
    "SOCK_SEQPACKET": 5,
    "IPPROTO_TCP": 6,
    "IPPROTO_UDP": 17,
    "SOL_SOCKET": 1,
    "SO_ATTACH_FILTER": 26,
    "SO_ATTACH_BPF": 50,
    "SO_ATTACH_REUSEPORT_CBPF": 51,
    "SO_ATTACH_REUSEPORT_EBPF": 52,
    "IPPROTO_IPV6": 41,
    "TCP_MD5SIG": 14,
    "TCP_ULP": 31,
    "TCP_MD5SIG_EXT": 32,
    "TCP_AO_ADD_KEY": 38,
    "UDP_ENCAP": 100,
    "IPV6_FLOWLABEL_MGR": 32,
    "CLONE_NEW_ANY": 0x7E020000,
    "O_CREAT": 0o100,
    "O_TMPFILE_BIT": 0o20000000,
    "S_IFMT": 0o170000,
    "S_IFCHR": 0o020000,
    "S_IFBLK": 0o060000,
    "PR_SET_MM": 35,
    "PR_SET_PTRACER": 0x59616D61,
    "PR_SET_SECCOMP": 22,
    "PR_SET_MDWE": 65,
    "PR_GET_MDWE": 66,
    "PR_SET_VMA": 0x53564D41,
    "MADV_MERGEABLE": 12,
    "RWF_OTHER": 0xFFFFFFC8,
    "POSIX_FADV_DONTNEED": 4,
    "F_SETLEASE": 1024,
    "F_OFD_SETLK": 37,
    "F_OFD_SETLKW": 38,
    "TIOCSTI": 0x5412,
    "TIOCLINUX": 0x541C,
    "TIOCSETD": 0x5423,
    "FS_IOC_SETFLAGS": 0x40086602,
    "FS_IOC_FSSETXATTR": 0x401C5820,
    "RLIMIT_CORE": 4,
    "MSG_OOB": 1,
    "SO_LINGER": 13,
    "F_NOTIFY": 1026,
    "IN_READING": 0x31,
    "PR_SCHED_CORE": 62,
    "IOC_TYPE": 0xFF00,
    "TTY_TYPE": 0x5400,
    "SIOC_FIRST": 0x8900,
    "SIOCETHTOOL": 0x8946,
    "FS_IOC_FSGETXATTR": 0x801C581F,
    "FS_IOC_GETFLAGS": 0x80086601,
    "FS_IOC_FIEMAP": 0xC020660B,
    "FICLONE": 0x40049409,
    "FICLONERANGE": 0x4020940D,
    "FIDEDUPERANGE": 0xC0189436,
    "MAP_HUGETLB": 0x40000,
    "MFD_HUGETLB": 4,
    "SHM_HUGETLB": 0x800,
}
# Calls that would spoil the probing itself, or the host's time.
NOT_PROBED = {"vfork", "rt_sigreturn", "sync"}
# Harmless arguments for calls whose rules look at arguments.
PLAIN = {"clone": (17,), "socket": (1, 1, 0), "socketpair": (1, 1, 0)}


@dataclasses.dataclass(frozen=True)
class Term:
    arg: int
    mask: int
    equal: bool
    value: int
    upper: bool = False

    def holds(self, args: list[int]) -> bool:
        half = args[self.arg] >> 32 if self.upper else args[self.arg] & 0xFFFFFFFF
        return ((half & self.mask) == self.value) == self.equal


@dataclasses.dataclass(frozen=True)
class Rule:
    name: str
    answer: str  # "allow" or the name of an errno
    folder_only: bool
    terms: tuple[Term, ...]


@functools.cache
def numbers() -> dict[str, int]:
    text = subprocess.run(
        ["gcc", "-E", "-dM", "-include", "sys/syscall.h", "-xc", "/dev/null"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout
    found = {m[1]: int(m[2]) for m in re.finditer(r"#define __NR_(\w+) (\d+)\n", text)}
    return NEW_NUMBERS | found


def value_of(word: str) -> int:
    if word in CONSTANTS:
        return CONSTANTS[word]
    return int(word, 8) if re.fullmatch(r"0[0-7]+", word) else int(word, 0)


def parse_term(text: str) -> Term:
    m = re.fullmatch(r"([ah])(\d)(?: & (\S+))? (==|!=) (\S+)", text.strip())
    assert m, text
    mask = value_of(m[3]) if m[3] else 0xFFFFFFFF
    return Term(int(m[2]), mask, m[4] == "==", value_of(m[5]), m[1] == "h")


@functools.cache
def rules() -> tuple[Rule, ...]:
    found = []
    for line in POLICY.read_text().splitlines():
        text = line.split("#", 1)[0].strip()
        if not text:
            continue
        head, _, condition = text.partition(" if ")
        words = head.split()
        folder = words[0] == "folder"
        if words[0] in ("setup", "folder"):
            words = words[1:]
        terms = tuple(parse_term(t) for t in condition.split(" and ")) if condition else ()
        found += [Rule(name, words[0], folder, terms) for name in words[1:]]
    return tuple(found)


def matching_arguments(rule: Rule, upper: int) -> list[int]:
    """Arguments that the rule's condition holds for; `upper` fills the halves that must not matter."""
    args = [0] * ARGS
    for candidate in range(1 << 16):
        # small search: each term gets its value, or something else where it must differ
        for term in rule.terms:
            if term.equal:
                args[term.arg] = (args[term.arg] & ~term.mask & 0xFFFFFFFF) | term.value
            elif term.upper:
                args[term.arg] |= 1 << 32
            elif (args[term.arg] & term.mask) == term.value:
                args[term.arg] ^= (candidate + 1) & term.mask or term.mask & -term.mask
        if all(t.holds(args) for t in rule.terms):
            break
    assert all(t.holds(args) for t in rule.terms), rule
    used = {t.arg for t in rule.terms} - {t.arg for t in rule.terms if t.upper}
    return [a | (upper << 32) if i in used else a for i, a in enumerate(args)]


def probe(isle: harness.Isle, calls: list[tuple[str, int, list[int]]], *options: str) -> dict[str, str]:
    listing = BUILT / "calls.txt"
    listing.write_text("".join(f"{i} {n:x} {' '.join(f'{a & MAX:x}' for a in args)}\n" for i, n, args in calls))
    program = compiled_program("probe")
    r = isle.command(
        ["./probe"], "--file", str(program), "--stdin", str(listing), "--timeout", "30", *options, within=60
    )
    assert r.reason == "ok", (r.result, r.err)
    answers = dict(line.split(" ", 1) for line in r.lines)
    assert answers.keys() == {i for i, _, _ in calls}
    return answers


def outside(calls: list[tuple[str, int, list[int]]]) -> dict[str, str]:
    """The same on the host, as nobody: what this kernel does not have at all."""
    text = "".join(f"{i} {n:x} {' '.join(f'{a & MAX:x}' for a in args)}\n" for i, n, args in calls)
    p = subprocess.run(
        ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", str(compiled_program("probe"))],
        input=text,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        cwd="/",
    )
    return dict(line.split(" ", 1) for line in p.stdout.splitlines())


def as_probed(rule: Rule) -> str:
    return "ok" if rule.answer == "NOTHING" else str(getattr(errno, rule.answer))


def as_installed(rule: Rule) -> int:
    if rule.answer == "allow":
        return installed.ALLOW
    return installed.ERRNO | (0 if rule.answer == "NOTHING" else getattr(errno, rule.answer))


def refused_by_name() -> list[Rule]:
    """Rules without arguments that refuse; a name that this machine does not have is left out."""
    return [r for r in rules() if not r.terms and r.answer != "allow" and r.name in numbers()]


def allowed_names(folder: bool) -> list[str]:
    blocked = {r.name for r in rules() if not r.terms and r.answer != "allow" and (folder or not r.folder_only)}
    named = {r.name for r in rules() if (r.answer == "allow" and not r.terms) or r.folder_only}
    return sorted(n for n in named - blocked - NOT_PROBED if n in numbers())


def test_policy_is_read_whole():
    assert len(rules()) > 300
    assert {r.answer for r in rules()} - {"allow", "NOTHING"} <= set(dir(errno))


@pytest.mark.parametrize("options", [FOLDER, MEMORY], ids=["folder", "memory"])
def test_refused_calls_answer_as_written(isle, options):
    chosen = [r for r in refused_by_name() if not r.folder_only or options is FOLDER]
    answers = probe(isle, [(r.name, numbers()[r.name], [0] * ARGS) for r in chosen], *options)
    wrong = {r.name: (r.answer, answers[r.name]) for r in chosen if answers[r.name] != as_probed(r)}
    assert wrong == {}


@pytest.mark.parametrize("upper", [0, 1, 0x80000000, 0xFFFFFFFF])
def test_conditions_look_at_the_low_32_bits(isle, upper):
    chosen = [r for r in rules() if r.terms and r.name in numbers() and r.answer != "allow"]
    calls = [(f"{r.name}.{i}", numbers()[r.name], matching_arguments(r, upper)) for i, r in enumerate(chosen)]
    answers = probe(isle, calls)
    wrong = {}
    for i, r in enumerate(chosen):
        answer = answers[f"{r.name}.{i}"]
        if answer != as_probed(r):
            wrong[f"{r.name}.{i}"] = (r, answer, calls[i][2])
    assert wrong == {}


@pytest.mark.parametrize("options", [FOLDER, MEMORY], ids=["folder", "memory"])
def test_allowed_calls_reach_the_kernel(isle, options):
    conditional = {r.name for r in rules() if r.terms}
    calls = []
    for name in allowed_names(options is FOLDER):
        if name in PLAIN:
            args = [*PLAIN[name], *[0] * (ARGS - len(PLAIN[name]))]
        else:
            args = [0 if name in conditional else MAX] * ARGS
        calls.append((name, numbers()[name], args))
    answers = probe(isle, calls, *options)
    suspects = [c for c in calls if answers[c[0]] in (str(errno.ENOSYS), str(errno.EPERM), "signal 31")]
    without = outside(suspects)
    wrong = {name: (answers[name], without[name]) for name, _, _ in suspects if answers[name] != without[name]}
    assert wrong == {}


def test_calls_that_no_line_names_answer_ENOSYS(isle):
    named = {numbers()[r.name] for r in rules() if r.name in numbers()}
    # uretprobe and uprobe belong to the kernel's own probes: no filter sees them, and without a probe they do nothing
    unseen = {335, 336}
    others = [n for n in [*range(600), 0x1000, 0x3FFFFFFF] if n not in named | unseen]
    answers = probe(isle, [(f"n{n}", n, [0] * ARGS) for n in others])
    assert {n: a for n, a in answers.items() if a != str(errno.ENOSYS)} == {}
    assert len(others) > 150


def test_x32_calls_answer_ENOSYS(isle):
    calls = [(f"x{n}", 0x40000000 | n, [0] * ARGS) for n in [*range(548), 0x3FFFFFFF]]
    answers = probe(isle, calls)
    assert {n: a for n, a in answers.items() if a != str(errno.ENOSYS)} == {}


@pytest.mark.parametrize("name", ["unshare", "mount", "setns", "ptrace", "bpf", "keyctl", "clone3", "io_uring_setup"])
def test_the_worst_are_named(name):
    """Whatever becomes of the policy file: these are refused by name."""
    assert [r for r in rules() if r.name == name and not r.terms and r.answer in ("EPERM", "ENOSYS")]
    assert not [r for r in rules() if r.name == name and r.answer == "allow"]


@contextlib.contextmanager
def running(isle):
    """The processes of a running job, by name: service, launcher, shim, and `sleep`."""
    p = isle.start("run", "--timeout", "300", "--", "sleep", "300")
    try:

        def below():
            table = leftovers.processes()
            mine = [q for q in table.values() if q.uid >= leftovers.UID_FLOOR and _below(q, p.pid, table)]
            found = {q.name: q.pid for q in mine if q.name != "isle-counter"}  # which comes and goes
            return found if "sleep" in found else None

        found = harness.until(below, 20)
        assert found, "no job is running"
        yield found
    finally:
        p.terminate()
        p.communicate(timeout=20 * harness.SLOW)


def test_every_process_of_an_instance_is_locked(isle):
    with running(isle) as found:
        locks = {}
        for name, pid in found.items():
            text = pathlib.Path(f"/proc/{pid}/status").read_text()
            locks[name] = ("Seccomp:\t2" in text, "NoNewPrivs:\t1" in text, "CapEff:\t0000000000000000" in text)
        assert len(locks) == 4, locks
        assert all(filtered for filtered, _, _ in locks.values()), locks
        assert locks["sleep"] == (True, True, True)


def test_A13_installed_filters(isle):
    """Whatever the kernel was built with: foreign architectures are killed, x32 calls are not there."""
    with running(isle) as found:
        job = installed.filters_of(found["sleep"])
        others = {name: installed.filters_of(pid) for name, pid in found.items() if name != "sleep"}
    assert job and all(others.values())
    for number in range(600):
        assert installed.answer(job, number, installed.I386) == installed.KILL_PROCESS
        assert installed.answer(job, 0x40000000 | number) == installed.ERRNO | errno.ENOSYS
        for name, programs in others.items():
            assert installed.answer(programs, number, installed.I386) == installed.KILL_PROCESS, name
    for arch in (0xC00000B7, 0xC00000F3, 0, 0xFFFFFFFF):  # aarch64, riscv64, nonsense
        assert installed.answer(job, 0, arch) == installed.KILL_PROCESS


def test_installed_filters_are_the_policy(isle):
    with running(isle) as found:
        job = installed.filters_of(found["sleep"])
    wrong = {}
    for rule in refused_by_name():
        got = installed.answer(job, numbers()[rule.name])
        if got != as_installed(rule):
            wrong[rule.name] = hex(got)
    for rule in (r for r in rules() if r.terms and r.name in numbers()):
        got = installed.answer(job, numbers()[rule.name], args=matching_arguments(rule, 0))
        if got != as_installed(rule):
            wrong[rule.name, rule.terms] = hex(got)
    for name in allowed_names(folder=True):
        args = PLAIN.get(name, (0,) * ARGS)
        if installed.answer(job, numbers()[name], args=args) != installed.ALLOW:
            wrong[name] = "not allowed"
    assert wrong == {}


def _below(p: leftovers.Process, top: int, table: dict[int, leftovers.Process]) -> bool:
    while p.ppid in table:
        if p.ppid == top:
            return True
        p = table[p.ppid]
    return False
