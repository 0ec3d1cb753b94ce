"""Kills a loaded service at random moments, again and again, and counts what became of the jobs it had accepted.

    ISLE=build/src/app/isle build/venv/bin/python tests/e2e/reliability.py [--kills N] [--seed N]

Each job of a session leaves one line in a file there. A job whose acceptance a caller has read is never lost: at the
end it is completed, and its line is there once, or it ended as worker_lost because it ran when the kill came, and its
line is there at most once. One whose caller read nothing is asked for again by its Idempotency-Key, and counts like the
others. Some have no session and so no line, only their result; some callers wait for the end. A direct call has no key:
one that is cut may have been lost, one that is answered may be told that the service stops; it has run once at most.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import dataclasses
import http.client
import random
import threading
import time

import harness
import host
import variants
from service import EXECUTE, JOBS, SESSIONS, Client, Service, serving

CLIENTS = 4
SLOTS = 2
SESSIONS_USED = 4
MARKS = "marks"
# How every eighth job is asked for: where, and of a session or not.
WAYS = (
    (JOBS, True),
    (JOBS, False),
    (JOBS, True),
    (f"{JOBS}?wait=20", True),
    (JOBS, True),
    (JOBS, False),
    (f"{JOBS}?wait=20", False),
    (EXECUTE, True),
)
# What is killed by one stroke.
VICTIMS = (("service",), ("launcher",), ("front",), ("service", "launcher"), ("front", "service", "launcher"))
CODE = (
    "import os, time\n"
    f"with open('{MARKS}', 'a') as f: f.write('%d\\n' % params['n'])\n"
    "time.sleep(params['sleep'])\n"
    "return params['n']\n"
)


@dataclasses.dataclass
class Asked:
    """One job that a client wanted to have done."""

    n: int
    where: str
    session: str | None
    key: str
    ident: str | None = None  # accepted, and the caller knows
    answer: dict | None = None  # of a direct call: its row is written later, and a kill may come before that

    @property
    def direct(self) -> bool:
        return self.where == EXECUTE


@dataclasses.dataclass
class Load:
    """Clients that submit without a pause, over kills and starts."""

    service: Service
    sessions: list[str]
    random: random.Random
    asked: list[Asked] = dataclasses.field(default_factory=list)
    refused: int = 0
    wrong: list[str] = dataclasses.field(default_factory=list)
    up: threading.Event = dataclasses.field(default_factory=threading.Event)
    over: bool = False
    lock: threading.Lock = dataclasses.field(default_factory=threading.Lock)

    def new(self) -> Asked:
        with self.lock:
            n = len(self.asked)
            where, of_session = WAYS[n % len(WAYS)]
            session = self.sessions[n // len(WAYS) % len(self.sessions)] if of_session else None
            one = Asked(n, where, session, f"mark-{n}")
            self.asked.append(one)
            return one

    def submit(self, c: Client, one: Asked, where: str) -> None:
        job = {
            "language": "python",
            "code": CODE,
            "params": {"n": one.n, "sleep": (one.n * 7 % 5) * 0.01},
        }
        if one.session:
            job["session_id"] = one.session
        while True:
            a = c.post(where, job, headers={} if one.direct else {"Idempotency-Key": one.key})
            if a.status in (200, 202):
                one.answer = a.data if one.direct else None
                one.ident = a.data["job_id"]
                return
            if a.status not in (429, 503):
                self.wrong.append(f"{one}: {a.status} {a.body[:300]!r}")
                return
            with self.lock:
                self.refused += 1
            if self.over:
                return
            time.sleep(0.05)

    def accepted(self) -> int:
        with self.lock:
            return sum(one.ident is not None for one in self.asked)

    def client(self) -> None:
        while not self.over:
            if not self.up.wait(0.1):
                continue
            with contextlib.suppress(OSError, http.client.HTTPException), self.service.client() as c:
                while self.up.is_set() and not self.over:
                    one = self.new()
                    self.submit(c, one, one.where)
                    time.sleep(0.02)


@dataclasses.dataclass
class Outcome:
    kills: int
    by_victim: dict[str, int]
    accepted: int
    without_answer: int
    cut: int
    states: dict[str, int]
    ends: list[float]  # seconds from a kill until every process was gone
    starts: list[float]  # from a start until it answered
    wrong: list[str]

    def text(self) -> str:
        def range_of(values: list[float]) -> str:
            ordered = sorted(values)
            return f"p50 {ordered[len(ordered) // 2] * 1000:.0f} ms, longest {ordered[-1] * 1000:.0f} ms"

        rows = [
            f"kills: {self.kills} ({', '.join(f'{k} {v}' for k, v in sorted(self.by_victim.items()))})",
            f"jobs whose acceptance was read: {self.accepted}; asked for again by key: {self.without_answer}; "
            f"direct calls that were cut: {self.cut}",
            f"how they ended: {', '.join(f'{k} {v}' for k, v in sorted(self.states.items()))}",
            f"from the kill until no process was left: {range_of(self.ends)}",
            f"from a start until it answered: {range_of(self.starts)}",
            f"lost, run twice, or left behind: {len(self.wrong)}",
        ]
        return "\n".join(rows + self.wrong[:20])


def run(kills: int, seed: int) -> Outcome:
    rng = random.Random(seed)
    settings = {
        "SANDBOX_WORKER_CONCURRENCY": str(SLOTS),
        "SANDBOX_QUEUE_LIMIT": "60",
        "SANDBOX_QUEUE_TIMEOUT_SECONDS": "3600",
        "ISLE_LOG_LEVEL": "error",
    }
    with serving(settings) as s:
        sessions = [s.post(SESSIONS, {"conversation_id": f"c{i}"}).data["session_id"] for i in range(SESSIONS_USED)]
        load = Load(s, sessions, rng)
        threads = [threading.Thread(target=load.client, daemon=True) for _ in range(CLIENTS)]
        for t in threads:
            t.start()
        victims: collections.Counter[str] = collections.Counter()
        ends, starts = [], []
        for n in range(kills):
            load.up.set()
            if n % 2:  # else the kill may meet the start
                least = load.accepted() + rng.randrange(3, 8)
                harness.until(lambda least=least: load.accepted() >= least, 60)
            time.sleep(rng.random() * 0.6 * harness.SLOW)
            who = rng.choice(VICTIMS)
            victims["+".join(who)] += 1
            begin = time.monotonic()
            load.up.clear()
            s.kill(*who)
            ends.append(time.monotonic() - begin)
            begin = time.monotonic()
            s.start(wait=False)  # the next kill may meet the start
            s.wait_listening()
            s.get("/healthz")
            starts.append(time.monotonic() - begin)
            mounts = host.mounts_of([s.data])
            if mounts:
                load.wrong.append(f"mounts on the host: {mounts}")
        load.over = True
        for t in threads:
            t.join(30)
        unknown = [a for a in load.asked if a.ident is None]
        again = [a for a in unknown if not a.direct]
        for one in again:
            load.over = False
            load.submit(s, one, JOBS)
        states = settle(s, load, kills)
        accepted, cut = len(load.asked) - len(unknown), len(unknown) - len(again)
        return Outcome(kills, victims, accepted, len(again), cut, states, ends, starts, load.wrong)


def settle(s: Service, load: Load, kills: int) -> dict[str, int]:
    """Waits for the rest, and holds every job's end against its marks."""
    states: collections.Counter[str] = collections.Counter()
    results = {}
    for one in load.asked:
        if one.ident:
            results[one.n] = one.answer or s.wait(one.ident, 120)
            states[results[one.n]["reason"]] += 1
    marks: collections.Counter[int] = collections.Counter()
    for session in load.sessions:
        a = s.get(f"{SESSIONS}/{session}/files/{MARKS}")
        if a.status == 200:
            marks.update(int(word) for word in a.body.split())
    for one in load.asked:
        r = results.get(one.n)
        if marks[one.n] > 1:
            load.wrong.append(f"{one}: ran {marks[one.n]} times ({r and r['reason']})")
        elif not r:
            load.wrong += [] if one.direct else [f"{one}: never accepted"]
        elif r["reason"] not in ("ok", "worker_lost", *["cancelled"] * one.direct):
            load.wrong.append(f"{one}: {r['reason']}: {r['error']}")
        elif r["reason"] == "ok" and (r["result"] != one.n or (one.session and marks[one.n] != 1)):
            load.wrong.append(f"{one}: completed without its mark, or with another's result ({r['result']})")
    if states["worker_lost"] > kills * SLOTS:
        load.wrong.append(f"{states['worker_lost']} jobs were lost with their worker, more than can have run")
    return states


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000)
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    with variants.account(harness.ISLE), variants.container():
        print(run(options.kills, options.seed).text())


if __name__ == "__main__":
    main()
