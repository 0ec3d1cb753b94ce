"""schemathesis makes good and bad requests out of openapi.json: what comes back is as that says, and never 500."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import harness
from service import Service

PROGRAM = pathlib.Path(sys.executable).parent / "schemathesis"
CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
)
# Not TRACE, which no server of ours knows: 501, before any path is looked at.
CONFIG = """
[phases.coverage]
unexpected-methods = ["PATCH"]
"""
SECONDS = 600 if harness.LONG else 12
EXAMPLES = 200 if harness.LONG else 12


def test_requests_made_of_the_schema(service: Service, tmp_path: pathlib.Path):
    """The key is an admin's, so that every operation is reached."""
    with service.client(unix=True) as c:
        key = c.post("/api/v1/keys", {"team": "t", "name": "n", "admin": True}).data["key"]
    config = tmp_path / "schemathesis.toml"
    config.write_text(CONFIG)
    words = [
        PROGRAM,
        f"--config-file={config}",
        "run",
        f"http://127.0.0.1:{service.port}/openapi.json",
        f"--header=Authorization: Bearer {key}",
        f"--checks={','.join(CHECKS)}",
        "--phases=examples,coverage,fuzzing",
        f"--max-examples={EXAMPLES}",
        f"--max-time={SECONDS}",
        "--exclude-path=/api/v1/keys/{key}",  # it would revoke its own key
        "--request-timeout=70",
        "--generation-deterministic",
        "--suppress-health-check=all",
        "--warnings=off",
        "--no-color",
        "--continue-on-failure",
    ]
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONUTF8": "1"}
    within = SECONDS * 4 + 120
    r = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=within, check=False)
    assert r.returncode == 0, r.stdout[-8000:] + r.stderr[-2000:]
    assert harness.until(service.ready, 20)
    assert [row for row in service.log_rows() if row.get("status") == 500] == []
