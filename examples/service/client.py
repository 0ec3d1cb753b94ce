"""A service from Python, with nothing but the standard library: run, submit, follow, cancel; a file for a job and back.

ISLE_URL says where the service is (http://127.0.0.1:4753), ISLE_KEY who asks, where it wants a key.
"""

from __future__ import annotations

import base64
import json
import os
import urllib.error
import urllib.request
from collections.abc import Iterator

URL = os.environ.get("ISLE_URL", "http://127.0.0.1:4753")
KEY = os.environ.get("ISLE_KEY")


class Refused(Exception):
    """The service took the request for none: its own words, with the name of the field."""


def request(method: str, path: str, body: object = None):
    headers = {"Content-Type": "application/json"} if body is not None else {}
    if KEY:
        headers["Authorization"] = f"Bearer {KEY}"
    data = None if body is None else json.dumps(body).encode()
    try:
        return urllib.request.urlopen(urllib.request.Request(f"{URL}/api/v1{path}", data, headers, method=method))
    except urllib.error.HTTPError as e:
        raise Refused(json.load(e)["msg"]) from None
    except urllib.error.URLError as e:
        raise SystemExit(f"no service answers at {URL} ({e.reason}): ISLE_URL says where it is") from None


def ask(method: str, path: str, body: object = None):
    with request(method, path, body) as answer:
        return json.load(answer)["data"]


def events(job: str) -> Iterator[tuple[str, dict]]:
    """(name, data) of each, until the job's end."""
    with request("GET", f"/sandbox/jobs/{job}/events") as stream:
        name = ""
        for line in stream:
            field, _, value = line.decode().rstrip("\n").partition(": ")
            if field == "event":
                name = value
            elif field == "data":
                yield name, json.loads(value)


def main() -> None:
    answer = ask("POST", "/tools/execute-code", {"language": "javascript", "code": "return [1, 2].map(x => x * 2)"})
    print("a snippet:", answer["result"], "in", answer["isolation"]["level"], "isolation")

    # A job that ran and failed is an answer like any other; what is refused never ran.
    failed = ask("POST", "/tools/execute-code", {"language": "python", "code": "1 / 0"})
    print("one that fails:", failed["reason"], "-", failed["error"])
    try:
        ask("POST", "/tools/execute-code", {"language": "python", "code": "1", "limits": {"memory_mb": 1}})
    except Refused as why:
        print("one that is refused:", why)

    job = {
        "language": "python",
        "code": "print(open('in.txt').read().upper()); open('out.txt', 'w').write('done')",
        "input_files": [{"target_path": "in.txt", "content_base64": base64.b64encode(b"hello").decode()}],
        "artifacts": ["out.txt"],
    }
    ident = ask("POST", "/sandbox/jobs", job)["job_id"]
    for name, data in events(ident):
        if name == "stdout":
            print(data["text"], end="")  # in pieces, as it comes
        elif name == "result":
            artifact = data["artifacts"][0]
            print("it ends:", data["status"], artifact["path"], artifact["size"], "bytes")

    ident = ask("POST", "/sandbox/jobs", {"command": ["sleep", "60"]})["job_id"]
    ask("POST", f"/sandbox/jobs/{ident}/cancel")
    print("cancelled:", [data["status"] for name, data in events(ident) if name == "result"])


if __name__ == "__main__":
    main()
