"""The SandboxResult as a test reads it: by a parser that is stricter than json.loads, and its shape."""

from __future__ import annotations

import json
import re
import sys

import variants

sys.set_int_max_str_digits(0)  # results keep every digit


class NotStrict(ValueError):
    """Text that a strict reader of RFC 8259 refuses."""


def _no_constant(name: str) -> None:
    raise NotStrict(f"{name} is not JSON")


def _no_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    names = [name for name, _ in pairs]
    if len(set(names)) != len(names):
        raise NotStrict(f"a key twice among {names}")
    return dict(pairs)


def _no_surrogates(value: object) -> None:
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            try:
                item.encode("utf-8")
            except UnicodeEncodeError as e:
                raise NotStrict(f"lone surrogate in {item[:40]!r}") from e
        elif isinstance(item, dict):
            stack.extend(item.keys())
            stack.extend(item.values())
        elif isinstance(item, list):
            stack.extend(item)


def strict_json(data: bytes) -> object:
    """The one JSON value in data. Refuses bad UTF-8, NaN, duplicate keys, lone surrogates, raw controls."""
    try:
        text = data.decode("utf-8")
        value = json.loads(text, parse_constant=_no_constant, object_pairs_hook=_no_duplicates)
    except UnicodeDecodeError as e:
        raise NotStrict(f"not UTF-8: {e}") from e
    except json.JSONDecodeError as e:
        raise NotStrict(f"{e}: {data[:200]!r}") from e
    _no_surrogates(value)
    return value


RESULT_KEYS = [
    "job_id",
    "success",
    "status",
    "reason",
    "result",
    "error",
    "exit_code",
    "signal",
    "stdout",
    "stderr",
    "truncated",
    "artifacts",
    "usage",
    "isolation",
    "packages",
    "metadata",
]
TRUNCATED_KEYS = ["stdout", "stderr", "artifacts"]
USAGE_KEYS = [
    "wall_ms",
    "cpu_ms",
    "memory_peak_bytes",
    "disk_bytes",
    "pids_peak",
    "stdout_bytes",
    "stderr_bytes",
]
ISOLATION_KEYS = ["level", "launcher", "start", "network", "downgrades", "fallback"]
REASONS = {
    "ok",
    "error",
    "timeout",
    "cpu_limit",
    "memory_limit",
    "disk_limit",
    "result_too_large",
    "artifact",
    "cancelled",
    "policy",
    "install_failed",
    "queue_timeout",
    "caller_timeout",
    "isolation_unavailable",
    "worker_lost",
    "internal",
}


def check_result(r: dict) -> None:
    """The shape that every SandboxResult has, whatever happened."""
    assert list(r) == RESULT_KEYS, list(r)
    assert list(r["truncated"]) == TRUNCATED_KEYS
    assert list(r["usage"]) == USAGE_KEYS
    assert list(r["isolation"]) == ISOLATION_KEYS
    assert re.fullmatch(
        r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}",
        r["job_id"],
    ), r["job_id"]
    assert r["reason"] in REASONS
    assert r["success"] is (r["reason"] == "ok")
    assert r["status"] == {"ok": "completed", "cancelled": "cancelled"}.get(r["reason"], "failed")
    assert r["exit_code"] is None or (type(r["exit_code"]) is int and 0 <= r["exit_code"] <= 255)
    assert r["signal"] is None or (type(r["signal"]) is int and 1 <= r["signal"] <= 64)
    assert r["exit_code"] is None or r["signal"] is None, "an exit code and a signal"
    assert (r["error"] is None) == (r["reason"] == "ok"), r["error"]
    assert r["error"] is None or "\n" not in r["error"], "error is one line"
    assert r["success"] is False or r["exit_code"] == 0
    for name, value in r["usage"].items():
        assert value is None or (type(value) is int and value >= 0), (name, value)
    for name in ("stdout", "stderr"):
        assert type(r[name]) is str and type(r["truncated"][name]) is bool
        if not r["truncated"][name] and "\ufffd" not in r[name]:
            assert len(r[name].encode()) == r["usage"][f"{name}_bytes"], name
    assert r["metadata"]["exit_code"] in (0, 1)
    assert (r["metadata"]["exit_code"] == 0) is r["success"]
    assert r["metadata"]["status"] == r["status"]
    unisolated = "no_isolation" in r["isolation"]["downgrades"]
    assert r["isolation"]["level"] == "none" or not unisolated
    ran = r["isolation"]["level"] != "none"  # or it ran without a sandbox, where tests look at more
    assert r["isolation"]["launcher"] == variants.NOW.launcher or not ran
    assert unisolated or variants.NOW.launcher != "none"
    # tests that bring a host of their own, with downgrades of its own, run in no other variant
    if ran and variants.NOW.changes:
        chosen = ("seccomp_allow", "network_host")  # by who runs isle, not by the host
        lost = [name for name in r["isolation"]["downgrades"] if name not in chosen]
        assert lost == list(variants.NOW.downgrades), r["isolation"]
    assert r["isolation"]["network"] in ("none", "host") or not ran
    assert (r["isolation"]["network"] == "host") == ("network_host" in r["isolation"]["downgrades"]) or not ran
    assert r["isolation"]["fallback"] is None or r["isolation"]["level"] == "none"


def exit_status(r: dict) -> int:
    """What `isle run` must exit with for this result."""
    fixed = {
        "timeout": 124,
        "cpu_limit": 124,
        "memory_limit": 137,
        "cancelled": 130,
    }
    if r["reason"] in fixed:
        return fixed[r["reason"]]
    if r["reason"] == "ok":
        return 0
    if r["reason"] not in ("error", "result_too_large", "artifact"):
        return 125
    if r["signal"] is not None:
        return 128 + r["signal"]
    return r["exit_code"] or 1
