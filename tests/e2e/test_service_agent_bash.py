"""The bash tool of a session: what runs, what is refused, what a model sees of it, and when it ends."""

from __future__ import annotations

import concurrent.futures
import contextlib
import json
import re
import signal
import subprocess
import threading
from collections.abc import Iterator

import harness
import pytest
from agent_session import BASH_KEYS, Agent
from service import JOBS, SESSIONS, Service, serving

SERVICE_SETTINGS = {"SANDBOX_QUEUE_TEAM_LIMIT": "2", "SANDBOX_WORKER_CONCURRENCY": "4"}
WAIT = "until [ -e go ]; do sleep 0.02; done; rm go"  # until the test says so
NO_SESSION = "0190c3f0-0000-7000-8000-000000000001"


@pytest.fixture(scope="module")
def agent(service):
    return Agent(service)


def jobs(client) -> dict[str, dict]:
    return {i["job_id"]: i for i in client.get(f"{JOBS}?limit=100").data["items"]}


def headers_of(client) -> dict:
    return {"Authorization": f"Bearer {client.key}"} if client.key else {}


def test_a_job_of_the_session(service, agent):
    r = agent.bash("echo out; echo err >&2; pwd")
    assert r["success"] and (r["stdout"], r["stderr"]) == ("out\n/workspace\n", "err\n")
    assert (r["exit_code"], r["signal"], r["truncated"], r["command"]) == (0, None, False, None)
    assert 0 <= r["duration_ms"] < 60000
    job = service.job(r["job_id"])
    assert job["success"] and job["stdout"] == r["stdout"]
    assert harness.until(lambda: r["job_id"] in jobs(service), 5)  # recorded after the answer
    assert jobs(service)[r["job_id"]]["session_id"] == agent.session
    [line] = [i for i in service.log_rows() if i.get("job") == r["job_id"]]
    assert (line["entry"], line["session"], line["reason"]) == ("agent-bash", agent.session, "ok")


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"command": ""},
        {"command": 1},
        {"command": "true", "timeout": 0},
        {"command": "true", "timeout": 601},
        {"command": "true", "timeout": "30"},
        {"command": "true", "cwd": ""},
        {"command": "true", "shell": True},
    ],
)
def test_what_is_no_call(agent, arguments):
    a = agent.post("bash", **arguments)
    assert a.status == 422 and (list(arguments) or ["command"])[-1] in a.msg, a


def test_commands_that_a_model_means_otherwise(agent):
    agent.bash("mkdir -p deep; touch deep/needle.txt")
    r = agent.bash("find / -name needle.txt")
    assert (r["stdout"], r["command"]) == ("/workspace/deep/needle.txt\n", "find /workspace -name needle.txt")
    r = agent.bash("cd deep && find / -name needle.txt -type f")
    assert r["stdout"] == "/workspace/deep/needle.txt\n"
    r = agent.bash("pip install --no-index nonesuch")
    assert r["command"] == "python3 -m pip install --no-index nonesuch" and not r["success"]
    assert agent.bash("pip3 install --no-index nonesuch; true")["command"].startswith("python3 -m pip install")
    for command in ("find . -name needle.txt", "find /workspace/deep -type f", "echo find /", "pip --version || true"):
        r = agent.bash(command)
        assert r["success"] and r["command"] is None, r


def test_scans_of_the_whole_system(service, agent):
    def ran() -> int:
        return sum(i.get("entry") == "agent-bash" for i in service.log_rows())

    before = ran()
    for command in (
        "find -- / -name x",
        "find // -name x",
        "find / /etc -name x",
        "find /./ -name x",
        "true | find // -name x",
        "echo $(find / -name x)",
        "( find / -name x )",
        "find / -name x -delete",
        "ls -R /",
        "ls -lR /",
        "grep -r x /",
        "rg x /",
        "du /",
        "tree /",
    ):
        r = agent.bash(command)
        assert not r["success"] and "/workspace" in r["error"], (command, r)
        assert (r["stdout"], r["stderr"], r["exit_code"], r["reason"], r["job_id"]) == ("", "", None, None, None), (
            command
        )
    assert ran() == before


def test_noise(agent):
    script = r"printf '\033[31mred\033[0m\n 10%%\r 50%%\r100%%\n\n\n\n\n\nend\n'; "
    r = agent.bash(script + "for i in 1 2 3 4 5 6; do echo same; done")
    lines = r["stdout"].split("\n")
    assert "\x1b" not in r["stdout"] and "\r" not in r["stdout"]
    assert lines[:2] == ["red", "100%"] and lines.count("") <= 2 and "end" in lines
    assert lines.count("same") == 1 and "[the same line 5 more times]" in lines
    r = agent.bash(r"printf 'a\377b\tc\bd\n'")
    assert r["stdout"] == "a\ufffdb\td\n"


def test_json_stays(agent):
    value = {"rows": [0] * 50, "text": "a\n\n\n\n\nb", "none": None}
    agent.put("v.json", json.dumps(value, indent=1).encode())
    assert json.loads(agent.says("cat v.json")) == value
    r = agent.bash("cat v.json; exit 1")  # long, on failure: head and tail
    assert len(r["stdout"].splitlines()) < 70


def test_long_output(agent):
    every = [str(i) for i in range(1, 1001)]
    assert agent.says("seq 1000").split("\n") == every
    r = agent.bash("seq 1000; seq 1000 >&2; exit 3")
    assert (r["exit_code"], r["error"], r["truncated"]) == (3, "Exit code 3", False)
    for text in (r["stdout"], r["stderr"]):
        lines = text.removesuffix("\n").split("\n")
        assert lines[:20] == every[:20] and lines[-40:] == every[-40:] and len(lines) == 61, lines
        assert "940" in lines[20] and lines[20].startswith("["), lines[20]
    # the end of what a build of 700 kB said is there, and of a line of that length both ends
    r = agent.bash("seq 100000; echo last; exit 1")
    assert r["stdout"].endswith("\nlast\n") and not r["truncated"] and len(r["stdout"]) < 1000
    r = agent.bash("head -c 700000 /dev/zero | tr '\\0' x; echo; exit 1")
    assert 2900 < len(r["stdout"]) < 3300
    # what is more than that is cut, and said to be
    r = agent.bash("seq 300000; exit 1")
    assert r["truncated"] and r["stdout"].startswith("1\n2\n")
    r = agent.bash("seq 100000")
    assert r["success"] and r["truncated"] and len(r["stdout"]) < 265000
    assert r["stdout"].startswith("1\n2\n") and "left out" in r["stdout"].splitlines()[-1]


def test_a_long_command(agent):
    lines = "\n".join(f"echo {i:0100}" for i in range(3000))
    r = agent.bash(f"{lines}\nexit 7")
    assert r["exit_code"] == 7 and r["stdout"].splitlines()[-1] == f"{2999:0100}"
    assert agent.post("bash", command="a" * (1 << 20) + "b").status in (413, 422)


def test_time(agent):
    r = agent.bash("echo begun; sleep 600", timeout=3)
    assert (r["timed_out"], r["reason"], r["stdout"]) == (True, "timeout", "begun\n")
    assert r["error"] == "Execution timeout (3.0s)"


def test_exit_codes_and_signals(agent):
    for status in (0, 1, 3, 126, 127, 255):
        r = agent.bash(f"exit {status}")
        assert (r["exit_code"], r["signal"], r["success"]) == (status, None, status == 0)
    assert agent.bash("exit 256")["exit_code"] == 0
    for command, number in (
        ("kill -9 $$", signal.SIGKILL),
        ("kill -TERM $$", signal.SIGTERM),
        ("python3 -c 'import os; os.kill(os.getpid(), 11)'", signal.SIGSEGV),
    ):
        r = agent.bash(command)
        assert (r["exit_code"], r["signal"], r["success"]) == (None, number, False), r
        assert f"signal {int(number)}" in r["error"]
    r = agent.bash("python3 -c 'import os; os.kill(os.getpid(), 11)'; echo $?")
    assert r["success"] and r["stdout"] == "139\n"  # of a program that is not the last, as a shell has it
    r = agent.bash("echo 'unclosed")
    assert r["exit_code"] == 2 and "unexpected EOF" in r["stderr"]


def test_SES_02_exec(agent):
    assert agent.bash("exec /bin/true")["exit_code"] == 0
    assert agent.says("echo ok") == "ok"


def test_SES_03_killed_from_inside(agent):
    """Nothing of a session waits for its next call that could be dead by then."""
    tag = agent.ok("write", path="alive", content="one\n")["tag"]
    r = agent.bash("sleep 600 & kill -9 -1; kill -9 $$")  # -1: all but who says it
    assert not r["success"] and r["signal"] == signal.SIGKILL, r
    assert agent.ok("read", path="alive")["tag"] == tag
    agent.edit("alive", f"1#{tag}", "two")
    assert agent.says("cat alive") == "two"


def test_SES_04_what_persists(agent):
    agent.bash("x=1; export y=2; cd /tmp; echo 1 > /workspace/f; echo t > /tmp/t; umask 077")
    assert agent.says('cat f /tmp/t; echo "x=$x y=$y"; pwd; umask') == "1\nt\nx= y=\n/workspace\n0022"
    assert agent.says("sleep 1000 & echo $!").isdigit()  # it does not outlive the command, nor hold its answer
    assert agent.says("pgrep -c sleep || true") in ("0", "")


def test_SES_08_working_folder(agent):
    agent.bash("mkdir -p sub; touch file")
    assert agent.says("pwd", cwd="sub") == "/workspace/sub"
    assert agent.says("pwd", cwd="/workspace/sub/") == "/workspace/sub"
    for cwd, why in (
        ("/workspace/none", "/workspace/none: No such file or directory"),
        ("none", "/workspace/none: No such file or directory"),
        ("file", "/workspace/file: Not a directory"),
        ("/etc", "cwd: "),
        ("../x", "cwd: "),
    ):
        r = agent.bash("pwd", cwd=cwd)
        assert not r["success"] and why in r["error"] and r["exit_code"] is None, r


def test_SES_09_command_not_found(agent):
    r = agent.bash("nonesuch --x")
    assert (r["exit_code"], r["stderr"]) == (127, "bash: line 1: nonesuch: command not found\n")


PAGE = """
import pathlib, socket, sys, threading, time
s = socket.create_server(("127.0.0.1", 8888))
threading.Thread(target=lambda: s.accept()[0].sendall(sys.argv[1].encode()), daemon=True).start()
pathlib.Path("listens").touch()
while not pathlib.Path("go").exists():
    time.sleep(0.02)
print(socket.create_connection(("127.0.0.1", 8888)).recv(100).decode())
"""


def test_SES_10_same_port(service):
    """Both listen before either fetches; then the port is free, and the next round does so again."""
    agents = [Agent(service), Agent(service)]

    def page(a: Agent) -> str:
        with service.client(service.key) as c:
            return Agent(c, a.session).says(f"python3 page.py {a.session}")

    for a in agents:
        a.put("page.py", PAGE.encode())
    for _ in range(2):
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            pages = [pool.submit(page, a) for a in agents]
            assert harness.until(lambda: all("listens" in a.names() for a in agents), 20)
            for a in agents:
                a.put("go")
            assert [p.result() for p in pages] == [a.session for a in agents]
        for a in agents:
            connect = "socket.socket().connect_ex(('127.0.0.1', 8888))"
            said = a.says(f'rm go listens; python3 -c "import errno, socket; print(errno.errorcode[{connect}])"')
            assert said == "ECONNREFUSED"


def test_one_after_another(service, agent):
    """In the order of the calls; what reads does not wait."""

    def bash(command: str) -> dict:
        with service.client() as c:
            return Agent(c, agent.session).bash(command)

    agent.bash("rm -f order")
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        first = pool.submit(bash, f"echo 1 > order; {WAIT}; echo 2 >> order")
        assert harness.until(lambda: agent.get("order").body == b"1\n", 20)
        second = pool.submit(bash, "echo 3 >> order")
        assert harness.until(lambda: service.metric("isle_queue_jobs") == 1, 10)
        third = pool.submit(bash, "echo 4 >> order")
        assert agent.get("order").body == b"1\n" and not first.done()
        agent.put("go")
        assert all(f.result()["success"] for f in (first, second, third))
    assert agent.says("cat order") == "1\n2\n3\n4"


def test_a_full_queue(service, agent):
    def post(command: str) -> int:
        with service.client() as c:
            return Agent(c, agent.session).post("bash", command=command).status

    assert harness.until(lambda: service.metric("isle_slots_used") == 0, 20)  # none of an earlier test's
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        calls = [pool.submit(post, f"touch first; {WAIT}")]
        assert harness.until(lambda: agent.get("first").status == 200, 20)
        calls += [pool.submit(post, "true"), pool.submit(post, "true")]
        assert harness.until(lambda: service.metric("isle_queue_jobs") == 2, 20)
        a = agent.post("bash", command="true")
        assert a.status == 429 and int(a.headers["Retry-After"]) > 0 and "SANDBOX_QUEUE_TEAM_LIMIT" in a.msg
        agent.put("go")
        assert [f.result() for f in calls] == [200, 200, 200]


def test_a_caller_that_leaves(service, agent):
    connection = service.connection(30)
    body = json.dumps({"command": "echo $$ > begun; sleep 600", "timeout": 600}).encode()
    path = f"{SESSIONS}/{agent.session}/tools/bash"
    connection.request("POST", path, body, {"Content-Type": "application/json"} | headers_of(service))
    assert harness.until(lambda: agent.get("begun").status == 200, 20)
    assert service.metric("isle_slots_used") == 1
    connection.close()
    assert harness.until(lambda: service.metric("isle_slots_used") == 0, 20)
    assert harness.until(lambda: service.get(f"{JOBS}?status=cancelled").data["items"], 20)
    assert agent.says("echo next") == "next"


def test_how_the_page_begins(service):
    """docs/agents.md: its first block, as it stands there, but for the port and a key."""
    block = re.search(r"^```sh\n(.*?)^```$", (harness.ROOT / "docs/agents.md").read_text(), re.S | re.M)[1]
    assert "127.0.0.1:4753" in block and "curl -s " in block
    script = block.replace("127.0.0.1:4753", f"127.0.0.1:{service.port}")
    if service.key:
        script = script.replace("curl -s ", f"curl -s -H 'Authorization: Bearer {service.key}' ")
    said = subprocess.run(["bash", "-euc", script], check=True, stdout=subprocess.PIPE, timeout=60).stdout
    answer = json.loads(said)["data"]
    assert list(answer) == BASH_KEYS and answer["success"] and answer["stdout"].startswith("Python 3."), answer


def test_what_the_page_shows(service):
    """docs/agents.md: its calls in their order give what stands below them, but for ids and times."""

    def same(value: object) -> str:
        text = json.dumps(value, sort_keys=True)
        return re.sub(r'[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?<="duration_ms": )\d+', "-", text)

    agent = Agent(service)
    page = (harness.ROOT / "docs/agents.md").read_text()
    shown = re.findall(r"^```\n([a-z]+) (\{.*?)^```$", page, re.S | re.M)
    assert [tool for tool, _ in shown] == ["write", "read", "edit", "bash", "bash", "bash", "artifact"]
    for tool, text in shown:
        arguments, end = json.JSONDecoder().raw_decode(text)
        assert same(agent.call(tool, **arguments)) == same(json.loads(text[end:]))


def test_SES_05_sessions_that_are_not_there(service, agent):
    def statuses(session: str, client=service) -> set[int]:
        other = Agent(client, session)
        return {other.post("bash", command="true").status, other.post("artifact", paths=["f"]).status}

    assert statuses(NO_SESSION) == {404}
    assert statuses("none") == {404}
    gone = Agent(service)
    assert gone.says("echo a") == "a"
    assert service.call("DELETE", f"{SESSIONS}/{gone.session}").status == 200
    assert statuses(gone.session) == {410}
    with service.client(service.new_key("other")) as other:  # from here on the service wants a key
        assert statuses(agent.session, other) == {404}


def test_the_longest_call(isle):
    """STREAM_TOOL_TIMEOUT_CODE."""
    assert isle
    with serving({"STREAM_TOOL_TIMEOUT_CODE": "5", "SANDBOX_WORKER_CONCURRENCY": "2"}) as s:
        agent, behind = Agent(s), Agent(s.client())
        limits = {"timeout_seconds": 600}
        first = s.submit({"command": ["sleep", "600"], "limits": limits, "session_id": behind.session})
        assert harness.until(lambda: s.job(first)["status"] == "running", 10)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            unstarted = pool.submit(behind.bash, "echo begun")
            r = agent.bash("echo begun; sleep 600", timeout=600)
            never = unstarted.result()
        why = "Tool call timeout (5s): it waited for an earlier job of its session, and was never started"
        assert (never["timed_out"], never["reason"], never["error"]) == (True, "caller_timeout", why)
        assert (never["stdout"], never["exit_code"]) == ("", None)
        assert s.job(never["job_id"])["metadata"]["stage"] == "queue"
        s.cancel(first)
        assert (r["timed_out"], r["reason"], r["error"]) == (True, "caller_timeout", "Tool call timeout (5s)")
        assert r["stdout"] == "begun\n"


@contextlib.contextmanager
def told_to_end(drain_seconds: int) -> Iterator[tuple[Service, Agent, list[dict]]]:
    """A service with a call under way, which goes on until it finds the file "go"; its answer is there at the end."""
    with serving({"SANDBOX_DRAIN_SECONDS": str(drain_seconds)}) as s:
        agent, answers = Agent(s), []
        with s.client(s.key) as c:
            call = threading.Thread(
                target=lambda: answers.append(Agent(c, agent.session).bash(f"touch on; {WAIT}; echo done"))
            )
            call.start()
            assert harness.until(lambda: agent.get("on").status == 200, 20)
            s.process.send_signal(signal.SIGTERM)
            yield s, agent, answers
            call.join()
        assert s.wait_gone() == 0


def test_a_call_while_the_service_ends(isle):
    """It ends as it would have, and no other begins."""
    assert isle
    with told_to_end(60) as (s, agent, answers):
        assert harness.until(lambda: s.get("/readyz").status == 503, 20)
        assert agent.post("bash", command="true").status == 503
        agent.put("go")
    assert answers[0]["success"] and answers[0]["stdout"] == "done\n", answers


def test_a_call_that_the_end_of_the_service_cuts(isle):
    assert isle
    with told_to_end(1) as (_, _, answers):
        pass
    assert answers[0]["reason"] == "cancelled" and not answers[0]["success"], answers
