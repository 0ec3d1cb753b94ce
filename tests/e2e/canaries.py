"""Files and listeners outside every sandbox, which no job may reach."""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import os
import pathlib
import shutil
import socket
import stat
import tempfile
import threading
from collections.abc import Iterator
from typing import ClassVar


@dataclasses.dataclass
class Canary:
    """Files and listeners outside every sandbox; touched by nobody, or a test fails."""

    folder: pathlib.Path
    hits: list[str] = dataclasses.field(default_factory=list)
    sockets: list[socket.socket] = dataclasses.field(default_factory=list)
    shm_id: int = -1

    SHM_KEY = 0x43414E41
    SHM_FILE = pathlib.Path("/dev/shm/attacks-canary")
    ENV: ClassVar[dict[str, str]] = {"CANARY_ENV": "CANARY-ENV-7f3a"}

    @classmethod
    @contextlib.contextmanager
    def planted(cls) -> Iterator[Canary]:
        folder = pathlib.Path(tempfile.mkdtemp(prefix="canary-", dir="/var/tmp"))
        c = cls(folder)
        try:
            c._plant()
            yield c
        finally:
            c._remove()

    def _plant(self) -> None:
        self.folder.chmod(0o755)
        for family, address in (
            (socket.AF_INET, ("127.0.0.1", 47001)),
            (socket.AF_INET6, ("::1", 47001)),
            (socket.AF_UNIX, "\0canary-abstract"),
            (socket.AF_UNIX, str(self.folder / "canary.sock")),
        ):
            self._open(family, address)
        for name, mode in (("secret.txt", 0o600), ("public.txt", 0o644), ("overwrite_me", 0o666)):
            (self.folder / name).write_text(f"CANARY-FILE-{name}\n")
            (self.folder / name).chmod(mode)
        (self.folder / "t3").mkdir()
        (self.folder / "t3/file").write_text("CANARY-FILE-t3\n")
        (self.folder / "target").mkdir()
        self.SHM_FILE.write_text("CANARY-SHM\n")
        libc = ctypes.CDLL(None, use_errno=True)
        self.shm_id = libc.shmget(self.SHM_KEY, 4096, 0o1600)
        assert self.shm_id >= 0, os.strerror(ctypes.get_errno())
        self.state = self._state()

    def _open(self, family: int, address: object) -> None:
        s = socket.socket(family)
        self.sockets.append(s)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        s.bind(address)
        s.listen(16)
        threading.Thread(target=self._listen, args=(s, str(address)), daemon=True).start()

    def _listen(self, s: socket.socket, name: str) -> None:
        while True:
            try:
                c, peer = s.accept()
            except OSError:
                return
            self.hits.append(f"{name} from {peer}")
            with contextlib.suppress(OSError):
                c.sendall(b"CANARY-NET\n")
            c.close()

    def _state(self) -> dict[str, object]:
        state: dict[str, object] = {}
        for at, dirs, files in os.walk(self.folder):
            for name in dirs + files:
                path = os.path.join(at, name)
                st = os.lstat(path)
                data = pathlib.Path(path).read_bytes() if stat.S_ISREG(st.st_mode) else b""
                state[path] = (
                    st.st_mode,
                    st.st_uid,
                    st.st_nlink,
                    st.st_mtime_ns,
                    st.st_ctime_ns,
                    data,
                )
        return state

    def differences(self) -> list[str]:
        now = self._state()
        wrong = [
            f"canary {path}: {self.state.get(path)} -> {now.get(path)}"
            for path in self.state.keys() | now.keys()
            if self.state.get(path) != now.get(path)
        ]
        if self.SHM_FILE.read_text() != "CANARY-SHM\n":
            wrong.append("canary in /dev/shm changed")
        wrong += [f"canary listener reached: {h}" for h in self.hits]
        return wrong

    def _remove(self) -> None:
        for s in self.sockets:
            with contextlib.suppress(OSError):
                s.shutdown(socket.SHUT_RDWR)
            s.close()
        if self.shm_id >= 0:  # else these are not ours
            ctypes.CDLL(None).shmctl(self.shm_id, 0, None)
            self.SHM_FILE.unlink(missing_ok=True)
        shutil.rmtree(self.folder, ignore_errors=True)
