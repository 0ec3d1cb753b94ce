"""Tenants of one service, against each other and against it; and jobs against the service that runs them."""

from __future__ import annotations

import harness
from service import JOBS, SESSIONS, serving

KEYS = "/api/v1/keys"


def test_a_job_with_the_hosts_network_is_not_its_caller():
    """Without a key whoever calls by loopback is the team "default": jobs that reach it must not be."""
    ask = """
import urllib.request, urllib.error
for path in params["paths"]:
    try:
        urllib.request.urlopen("http://127.0.0.1:%d%s" % (params["port"], path))
    except urllib.error.HTTPError as e:
        print(path, e.code)
    else:
        print(path, "ESCAPED")
"""
    paths = [JOBS, SESSIONS, KEYS, "/metrics"]
    with (
        serving({"SANDBOX_NETWORK_ALLOW_HOST": "true"}, ready=False) as s,
        s.client() as nobody,
        s.client(unix=True) as admin,
    ):
        s.wait_listening()
        assert harness.until(s.ready, 20)
        r = nobody.get(SESSIONS)
        assert r.status == 401 and "isle key create" in r.msg, r
        r = admin.python(ask, params={"port": s.port, "paths": paths}, network="host")
        assert r["stdout"] == "".join(f"{path} 401\n" for path in paths), r
        assert nobody.get("/metrics").status == 401
        assert admin.get("/metrics").status == 200
