"""Containers, made here around isle by tests/attack/programs/container.c: what its root can still do.

That program is a fixture for what an engine does: masked /proc, read-only groups, no_new_privs, the usual capabilities
with SYS_ADMIN, a filter without pivot_root(2) and keyctl(2).
"""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess

import harness
import pytest
import variants

pytestmark = pytest.mark.usefixtures("host")
REMAPPED = 700000000  # the host's id of such a container's root


@pytest.fixture(scope="module")
def container(tmp_path_factory) -> str:
    return str(variants.build_container(tmp_path_factory.mktemp("container")))


def test_container(isle, container):
    """No downgrade; of the container's own tree nothing shows."""
    r = isle.sh("id -u; cut -d' ' -f5 /proc/self/mountinfo; echo /*", "--disk", "200", prefix=[container])
    assert r.reason == "ok" and r.lines[0] == "1000", r.result
    assert r.result["isolation"]["level"] == "full"
    plain = isle.sh("id -u; cut -d' ' -f5 /proc/self/mountinfo; echo /*", "--disk", "200")
    assert sorted(r.lines) == sorted(plain.lines)


def test_container_has_limits(isle, container):
    code = "b = bytearray(300 << 20)\nfor i in range(0, len(b), 4096): b[i] = 1"
    r = isle.python(code, "--memory", "128", prefix=[container])
    assert r.reason == "memory_limit", r.result
    assert r.result["usage"]["cpu_ms"] is not None


@pytest.fixture
def open_folder():
    """Like tmp_path, where ids of others may walk."""
    with variants.folder("isle-remap-") as made:
        made.chmod(0o755)
        yield made


@pytest.mark.parametrize("proc", [[], ["--unmasked"]])
def test_remapped_container(isle, container, open_folder, proc):
    """Only the ids 0 to 65535 exist, and its groups are the host's: every job is isolated, none limited as a whole."""
    program = variants.copy_program(harness.ISLE, open_folder / "app")
    for name in ("data", "run"):
        (open_folder / name).mkdir()
        os.chown(open_folder / name, REMAPPED, REMAPPED)
    env = {
        "SANDBOX_RUN_DIR": str(open_folder / "run"),
        "SANDBOX_WORKSPACE_ROOT": str(open_folder / "data"),
        "ISLE_LIBEXEC": str(program.parent),
    }
    there = harness.Isle(open_folder / "data", isle.env, program)
    prefix = [container, "--remap", str(REMAPPED), *proc]
    r = there.sh("id -u; cat /proc/self/uid_map", "--disk", "200", env=env, prefix=prefix)
    user, mapped = r.lines
    inner, outer, count = map(int, mapped.split())
    assert (user, inner, count) == ("1000", 1000, 1) and 20480 <= outer < 32768, r.lines
    assert r.result["isolation"]["downgrades"] == list(variants.NO_GROUPS)


def libraries(image: pathlib.Path) -> None:
    """What isle is linked with besides the C library, found through the image's ld.so.cache."""
    listed = subprocess.run(["ldd", harness.ISLE], capture_output=True, text=True, check=True).stdout
    for line in listed.splitlines():
        name, _, path = line.strip().partition(" => ")
        if path and not name.startswith(("libc.", "libm.")):
            shutil.copy2(path.split()[0], image / "opt/isle" / name)
    with open(image / "etc/ld.so.conf", "a", encoding="utf-8") as f:
        f.write("/opt/isle\n")
    subprocess.run(["ldconfig", "-r", image], check=True, timeout=60)


@pytest.fixture
def image(open_folder):
    """A container's root: the runtime root with an application in it."""
    for name in ("usr", "etc", "app", "var/lib", "opt", "root", "proc", "dev", "sys", "run", "tmp", "data"):
        (open_folder / name).mkdir(parents=True)
    for name in ("bin", "sbin", "lib", "lib64"):
        (open_folder / name).symlink_to(f"usr/{name}")
    for name in ("app", "var/lib", "opt", "root"):
        (open_folder / name / "secret").write_text("CANARY-IMAGE")
    variants.copy_program(harness.ISLE, open_folder / "opt/isle")
    subprocess.run(["cp", "-a", f"{harness.RUNTIME_ROOT}/etc/.", open_folder / "etc"], check=True)
    libraries(open_folder)
    subprocess.run(["mount", "--bind", harness.RUNTIME_ROOT / "usr", open_folder / "usr"], check=True)
    yield open_folder
    subprocess.run(["umount", open_folder / "usr"], check=True)


def test_image_is_the_runtime_root(isle, container, image):
    code = """
cat /app/secret /var/lib/secret /opt/secret /root/secret; ls -d /app /var /opt /root /data /run
grep -rl CANARY-IMAGE /etc /code /packages /tmp /workspace 2>/dev/null
python3 -c 'print(6 * 7)'; node -e 'console.log(7 * 6)'; echo /*
"""
    env = {"SANDBOX_RUNTIME_ROOT": "/", "SANDBOX_WORKSPACE_ROOT": "/data", "ISLE_LIBEXEC": "/opt/isle"}
    there = harness.Isle(image / "data", isle.env, pathlib.Path("/opt/isle/isle"))
    r = there.sh(code, env=env, prefix=[container, "--image", str(image)])
    assert r.reason == "ok" and r.lines[:2] == ["42", "42"], r.result
    assert r.stderr.count("No such file or directory") == 10, r.stderr
    plain = isle.sh("echo /*")
    assert r.lines[2:] == plain.lines
    assert r.result["isolation"]["level"] == "full"
    shutil.rmtree(image / "data")
