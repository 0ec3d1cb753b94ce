"""An idle service sleeps: nothing in front, service and launcher wakes up by itself."""

from __future__ import annotations

import contextlib
import os
import time

import harness
import service

SECONDS = float(os.environ.get("ISLE_TEST_IDLE_SECONDS", "61"))


def switches(pid: int) -> dict[str, int]:
    """How often each thread of a process has gone to sleep or was put aside."""
    found = {}
    with contextlib.suppress(FileNotFoundError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/status") as f:
                rows = dict(line.split(":\t", 1) for line in f if ":\t" in line)
            n = int(rows["voluntary_ctxt_switches"]) + int(rows["nonvoluntary_ctxt_switches"])
            found[f"{rows['Name'].strip()} {task}"] = n
    return found


def test_sleeps() -> None:
    """At most one wake-up a minute of all processes together, after it has run jobs and has a session."""
    with service.serving() as s:
        for _ in range(3):
            s.python("return 1")
        assert s.post(service.SESSIONS, {}).status == 201
        s.close()  # a kept connection is closed after a while, which is no idle moment

        def look() -> dict[str, int]:
            return {k: n for pid in (s.process.pid, *s.below()) for k, n in switches(pid).items()}

        looks = [look()]

        def quiet() -> bool:  # after the store's last lazy write, and the launcher's stock
            time.sleep(3)
            looks.append(look())
            return looks[-1] == looks[-2]

        assert harness.until(quiet, 60), looks[-2:]
        before = looks[-1]
        time.sleep(SECONDS)
        after = look()
        assert set(after) == set(before)
        woken = {k: after[k] - n for k, n in before.items() if after[k] != n}
        assert sum(woken.values()) <= SECONDS / 60 + 1, woken
