"""A workflow of three code nodes, with nothing but the standard library: each is given outputs of those before it.

ISLE_URL says where the service is (http://127.0.0.1:4753), ISLE_KEY who asks, where it wants a key.
"""

from __future__ import annotations

import json
import os
import sys
import urllib.error
import urllib.request

URL = os.environ.get("ISLE_URL", "http://127.0.0.1:4753")
KEY = os.environ.get("ISLE_KEY")

PARSE = """
import csv, io

def main(inputs):
    rows = list(csv.DictReader(io.StringIO(inputs["text"])))
    print(len(rows), "rows")
    return {"rows": [{"item": row["item"], "price": float(row["price"])} for row in rows]}
"""

TOTAL = """
export default ({ rows }) => {
  const total = rows.reduce((sum, row) => sum + row.price, 0);
  return { total, dearest: rows.sort((a, b) => b.price - a.price)[0].item };
};
"""

REPORT = """
def main(inputs):
    return f"{inputs['total']:.2f} in all, most of it for {inputs['dearest']}"
"""

# What a node's inputs are taken from is written NODE.OUTPUT; "start" is the workflow's own input.
ROW = {"properties": {"item": "string", "price": "number"}, "required": ["item", "price"]}
NODES = {
    "parse": {
        "language": "python",
        "code": PARSE,
        "inputs": {"text": "start.text"},
        "outputs": [{"name": "rows", "type": "array[object]", "typeSpec": {"items": ROW}}],
    },
    "total": {
        "language": "javascript",
        "code": TOTAL,
        "inputs": {"rows": "parse.rows"},
        "outputs": [{"name": "total", "type": "number"}, {"name": "dearest", "type": "string"}],
    },
    "report": {
        "language": "python",
        "code": REPORT,
        "inputs": {"total": "total.total", "dearest": "total.dearest"},
        "outputs": [{"name": "result", "type": "string"}],
    },
}


def ask(path: str, body: object):
    headers = {"Content-Type": "application/json"}
    if KEY:
        headers["Authorization"] = f"Bearer {KEY}"
    request = urllib.request.Request(f"{URL}/api/v1/workflow/{path}", json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)["data"]
    except urllib.error.HTTPError as e:
        sys.exit(f"refused: {json.load(e)['msg']}")
    except urllib.error.URLError as e:
        sys.exit(f"no service answers at {URL} ({e.reason}): ISLE_URL says where it is")


def check() -> None:
    """All nodes, before the first one runs."""
    for name, node in NODES.items():
        for fault in ask("code-node:validate", node)["errors"]:
            where = fault["field"] + (f", line {fault['line']}" if fault["line"] else "")
            sys.exit(f"node {name}: {where}: {fault['message']}")


def run(start: dict) -> dict:
    done = {"start": start}
    for name, node in NODES.items():
        taken = {to: source.partition(".") for to, source in node["inputs"].items()}
        inputs = {to: done[before][output] for to, (before, _, output) in taken.items()}
        answer = ask("code-node", node | {"inputs": inputs})
        if answer["logs"]:
            print(f"{name} says: {answer['logs']}")
        if not answer["success"]:
            sys.exit(f"node {name}: {answer['reason']}: {answer['error']}\n{answer['stderr']}")
        done[name] = answer["outputs"]
    return done[name]


if __name__ == "__main__":
    check()
    print(run({"text": "item,price\npear,4\nmelon,7.50\n"})["result"])
