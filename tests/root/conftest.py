"""What a sandbox sees of the runtime root, shown by Bubblewrap: these tests need no isle."""

from __future__ import annotations

import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(os.environ.get("SANDBOX_RUNTIME_ROOT", "/var/lib/isle/runtime/current")).resolve()
# Of the root's /etc a sandbox gets these.
ETC = ("fonts", "ssl", "ld.so.cache", "mime.types", "services", "protocols")
ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "HOME": "/workspace",
    "LANG": "en_US.UTF-8",
    "LC_ALL": "en_US.UTF-8",
    "MATPLOTLIBRC": "/usr/share/isle/matplotlib/matplotlibrc",
    "MPLCONFIGDIR": "/tmp/matplotlib",
}


class Box:
    """Runs programs of the root as an ordinary user, with the workspace as the only folder that stays."""

    def __init__(self, workspace: pathlib.Path):
        self.workspace = workspace

    def run(self, *command: str, env: dict[str, str] | None = None) -> str:
        """Its stdout; it must end well and say nothing on stderr."""
        bwrap = ["bwrap", "--unshare-all", "--uid", "1000", "--gid", "1000", "--clearenv", "--die-with-parent"]
        bwrap += ["--tmpfs", "/", "--ro-bind", ROOT / "usr", "/usr"]
        for link in ("bin", "sbin", "lib", "lib64"):
            bwrap += ["--symlink", f"usr/{link}", f"/{link}"]
        for name in ETC:
            bwrap += ["--ro-bind", ROOT / "etc" / name, f"/etc/{name}"]
        bwrap += ["--tmpfs", "/tmp", "--dev", "/dev", "--proc", "/proc", "--bind", self.workspace, "/workspace"]
        bwrap += ["--remount-ro", "/", "--chdir", "/workspace"]
        for name, value in (ENVIRONMENT | (env or {})).items():
            bwrap += ["--setenv", name, value]
        done = subprocess.run(
            [*bwrap, *command], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, (done.returncode, done.stdout, done.stderr)
        assert done.stderr == ""
        return done.stdout

    def python(self, code: str, env: dict[str, str] | None = None) -> str:
        return self.run("python3", "-W", "error", "-c", code, env=env)


@pytest.fixture
def box(tmp_path: pathlib.Path) -> Box:
    if os.geteuid() != 0:
        pytest.fail("these tests need root")
    # pytest's folders are closed to others; bwrap maps the caller, so its own are fine.
    return Box(tmp_path)
