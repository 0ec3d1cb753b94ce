"""refused_policies.py MKPOLICY POLICY: what the generator of the seccomp policy refuses; the real one it takes.

A policy that is misread would be a hole in every sandbox, so whatever is not understood ends the build.
"""

import pathlib
import subprocess
import sys
import tempfile

MKPOLICY, POLICY = sys.argv[1:]

# policy, what the message says
REFUSED = (
    ("permit read\n", "line 1: unknown action: permit"),
    ("\n# a comment\nsetup\n", "line 3: unknown action: none"),
    ("allow\n", "no name"),
    ("allow no_such_call\n", "no such system call: no_such_call"),
    ("EPERM no_such_call\n", "no such system call: no_such_call"),
    (f"ENOSYS {'x' * 40}\n", "too many or too long"),
    ("allow read\n" * 1025, "too many or too long"),
    ("allow read write if a0 == 1\n", "a condition goes with one name and one action: read"),
    ("setup EPERM read if a0 == 1\n", "a condition goes with one name and one action: read"),
    ("EPERM read if\n", "expected a term: read"),
    ("EPERM read if a0 == 1 and\n", "expected a term: read"),
    ("EPERM read if b0 == 1\n", "expected an argument, a0 to a5, or its upper half, h0 to h5: b0"),
    ("EPERM read if a6 == 1\n", "expected an argument, a0 to a5, or its upper half, h0 to h5: a6"),
    ("EPERM read if a/ == 1\n", "expected an argument, a0 to a5, or its upper half, h0 to h5: a/"),
    ("EPERM read if a00 == 1\n", "expected an argument, a0 to a5, or its upper half, h0 to h5: a00"),
    ("EPERM read if a0\n", "expected == or !=: the end"),
    ("EPERM read if a0 < 1\n", "expected == or !=: <"),
    ("EPERM read if a0 &\n", "not a number or a known constant: "),
    ("EPERM read if a0 & 7\n", "expected == or !=: the end"),
    ("EPERM read if a0 ==\n", "not a number or a known constant: "),
    ("EPERM read if a0 == O_NONSENSE\n", "not a number or a known constant: O_NONSENSE"),
    ("EPERM read if a0 == 12x\n", "not a number or a known constant: 12x"),
    ("EPERM read if a0 == 0x100000000\n", "not a number or a known constant: 0x100000000"),
    ("EPERM read if a0 == 1 or a0 == 2\n", "expected `and`: or"),
    ("EPERM read if " + " and ".join(f"a{i} == 1" for i in range(5)) + "\n", "too many terms: read"),
    ("EPERM read if a0 == 1\n", "only conditions, no general answer: read"),
    ("allow read\nEPERM read\n", "named twice: read"),
)
TAKEN = (
    "allow read\n",
    "allow read\nEPERM read if a0 == 1\n",
    "allow read\nEPERM read if a0 == 1 and h1 != 0 and a2 & 7 == 010 and a3 == AF_UNIX\n",
    "ENOSYS a_call_of_the_future\n",
    "setup EPERM mount\nfolder EOPNOTSUPP fallocate\n",
)


def run(text: str, *arguments: str) -> subprocess.CompletedProcess:
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "policy")
        path.write_text(text)
        words = [str(path) if a == "POLICY" else a for a in arguments]
        return subprocess.run([MKPOLICY, *words], capture_output=True, text=True, check=False, timeout=60)


failures: list[str] = []


def check(ok: bool, what: str, done: subprocess.CompletedProcess) -> None:
    if not ok:
        failures.append(f"FAIL {what}: status {done.returncode}, {done.stderr!r}")


for arch in ("x86_64", "aarch64"):
    for text, message in REFUSED:
        done = run(text, arch, "POLICY", "filters")
        check(done.returncode == 1 and message in done.stderr and not done.stdout, text[:60], done)
    for text in (*TAKEN, pathlib.Path(POLICY).read_text()):
        for what in ("filters", "names"):
            done = run(text, arch, "POLICY", what)
            check(done.returncode == 0 and not done.stderr and "const struct" in done.stdout, text[:60], done)
for arguments in ((), ("x86_64", "POLICY"), ("x86_64", "/nonexistent/policy", "filters")):
    done = run("allow read\n", *arguments)
    check(done.returncode == 2 and done.stderr.startswith("usage: "), " ".join(arguments), done)
# more than a filter can hold, or a jump can reach
long = "allow read\n" + "".join(f"EPERM read if a0 == {i}\n" for i in range(900))
done = run(long, "x86_64", "POLICY", "filters")
check(done.returncode == 1 and "filter too long" in done.stderr, "a long policy", done)
print("\n".join(failures))
sys.exit(1 if failures else 0)
