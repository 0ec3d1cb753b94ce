"""An agent's loop, as chat completions have it, with nothing but the standard library: a model asks for tools, isle
runs them in a session, their results go back, until the model has an answer.

    ISLE_URL         where the service is (http://127.0.0.1:4753); ISLE_KEY: who asks, where it wants a key
    OPENAI_BASE_URL  a model's endpoint, such as https://llm.example/v1, with OPENAI_API_KEY and OPENAI_MODEL.
                     Without it the model's part is read from answers.json; everything else is real.
"""

from __future__ import annotations

import json
import os
import pathlib
import sys
import urllib.error
import urllib.parse
import urllib.request

HERE = pathlib.Path(__file__).parent
URL = os.environ.get("ISLE_URL", "http://127.0.0.1:4753")
KEY = os.environ.get("ISLE_KEY")
TASK = "orders.csv is in your workspace. Who has spent most, in euros? Leave the totals as totals.csv."

# A code tool of ours, beside those that every session has: what runs when the model calls it.
RATE = {
    "name": "rate",
    "description": "How many euros one unit of a currency is.",
    "parameters": [{"name": "currency", "type": "string", "enum": ["GBP", "SEK", "USD"], "required": True}],
    "code_config": {
        "language": "python",
        "code": "return {'GBP': 1.17, 'SEK': 0.09, 'USD': 0.92}[params['currency']]",
        "limits": {"timeout_seconds": 5},
    },
}


def post_json(url: str, body: object, key: str | None):
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
    with urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers)) as answer:
        return json.load(answer)


# ---- The model


def recorded():
    """Answers of a model that was asked before, one after another. {tag}: it copies the one that it was told last."""
    answers = iter(json.loads((HERE / "answers.json").read_text()))

    def ask(messages: list, tools: list) -> dict:
        last = messages[-1]
        tag = json.loads(last["content"]).get("tag", "") if last["role"] == "tool" else ""
        return json.loads(json.dumps(next(answers)).replace("{tag}", tag))

    return ask


def endpoint(base: str):
    model = os.environ.get("OPENAI_MODEL") or sys.exit("OPENAI_MODEL: which model of OPENAI_BASE_URL?")

    def ask(messages: list, tools: list) -> dict:
        body = {"model": model, "messages": messages, "tools": tools}
        answer = post_json(f"{base}/chat/completions", body, os.environ.get("OPENAI_API_KEY"))
        return answer["choices"][0]["message"]

    return ask


# ---- The tools


class Isle:
    def __init__(self) -> None:
        self.session = self.request("POST", "/sandbox/sessions", {"ttl_hours": 1})["session_id"]

    def request(self, method: str, path: str, body: object = None, data: bytes | None = None):
        headers = {"Authorization": f"Bearer {KEY}"} if KEY else {}
        if body is not None:
            headers["Content-Type"], data = "application/json", json.dumps(body).encode()
        elif data is not None:
            headers["Content-Type"] = "application/octet-stream"
        request = urllib.request.Request(f"{URL}/api/v1{path}", data, headers, method=method)
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)["data"]

    def put(self, name: str, content: bytes) -> None:
        self.request("PUT", f"/sandbox/sessions/{self.session}/files/{name}", data=content)

    def call(self, name: str, arguments: object) -> dict:
        """What the tool says, fit for the model: a call that is refused is told as well, so that it can be mended."""
        try:
            if name in ("bash", "read", "write", "edit", "artifact"):
                return self.request("POST", f"/sandbox/sessions/{self.session}/tools/{name}", arguments)
            if name in ("run_python", "run_javascript"):  # in a fresh sandbox, as the model was told
                job = {"language": name.removeprefix("run_")} | arguments
                return self.request("POST", "/tools/execute-code", job)
            called = {"name": name, "arguments": arguments, "session_id": self.session}
            return self.request("POST", "/tools/execute", called)
        except urllib.error.HTTPError as e:
            return {"success": False, "error": json.load(e)["msg"]}


TOLD = (
    "success error result reason exit_code stdout stderr truncated command"  # of what ran: how it went, and what it was
    " content tag message markdown missing"  # of files: the tag is what the next edit names its lines by
).split()


def for_model(said: dict) -> str:
    """What says nothing is left out, but for a result, which may be 0 or empty."""
    cut = said.get("truncated")
    if isinstance(cut, dict):  # a job tells it of each stream
        said = said | {"truncated": [stream for stream, is_cut in cut.items() if is_cut]}
    told = {k: said[k] for k in TOLD if said.get(k) or (k in ("success", "result") and said.get(k) is not None)}
    return json.dumps(told, ensure_ascii=False)


# ---- The loop


def run(model, isle: Isle, task: str, rounds: int = 20) -> str:
    tools = isle.request("GET", "/tools/schemas?format=openai")["tools"]
    messages = [{"role": "user", "content": task}]
    for _ in range(rounds):
        answer = model(messages, tools)
        messages.append(answer)
        if not answer.get("tool_calls"):
            return answer["content"]
        for call in answer["tool_calls"]:
            wanted = call["function"]
            try:
                said = isle.call(wanted["name"], json.loads(wanted["arguments"]))
            except json.JSONDecodeError as e:
                said = {"success": False, "error": f"the arguments are no JSON: {e}"}
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": for_model(said)})
            how = "done" if said["success"] else (said["error"] or "failed").splitlines()[-1]
            print(f"{wanted['name']}: {how}")
    sys.exit(f"no answer after {rounds} rounds")


def main() -> None:
    base = os.environ.get("OPENAI_BASE_URL")
    isle = Isle()
    try:
        isle.request("POST", "/tools/import", {"tools": [RATE], "on_conflict": "replace"})
        isle.put("orders.csv", (HERE / "orders.csv").read_bytes())
        print(run(endpoint(base) if base else recorded(), isle, TASK))
    finally:
        isle.request("DELETE", f"/sandbox/sessions/{isle.session}")


if __name__ == "__main__":
    try:
        main()
    except urllib.error.HTTPError as e:
        sys.exit(f"{e.url}: {e}: {e.read().decode(errors='replace')[:500]}")
    except urllib.error.URLError as e:
        where = " or ".join([URL, os.environ.get("OPENAI_BASE_URL", "")]).removesuffix(" or ")
        sys.exit(f"nothing answers at {where} ({e.reason}): ISLE_URL, OPENAI_BASE_URL")
