"""Code tools as a team keeps them: made, changed, shared, carried elsewhere. Calls of them have files of their own."""

from __future__ import annotations

import concurrent.futures
import contextlib
import sqlite3

import pytest
from service import API, Answer, Client, Service
from tool_teams import TOOLS, every, save, tool

NO_TOOL = "0190c3f0-0000-7000-8000-000000000001"
ADD = {
    "name": "add",
    "display_name": "Add",
    "description": "Adds two numbers – exactly.",
    "icon": "➕",
    "category": "arithmetic",
    "parameters": [
        {"name": "a", "type": "integer", "description": "the first", "required": True},
        {"name": "b", "type": "integer", "default": 12345678901234567890123, "enum": [1, 12345678901234567890123]},
    ],
    "code_config": {
        "language": "python",
        "code": "return params['a'] + params['b']",
        "limits": {"timeout_seconds": 90, "memory_mb": 128},
        "python_packages": ["requests==2.32.3"],
        "artifacts": [{"path": "sum.txt", "optional": True}],
    },
}

pytestmark = pytest.mark.usefixtures("emptied")


def made(c: Client, definition: dict) -> dict:
    a = c.post(TOOLS, definition)
    assert a.status == 201, a
    return a.data


def definition_of(t: dict) -> dict:
    return {
        k: t[k]
        for k in ("name", "display_name", "description", "icon", "category", "parameters", "code_config")
        if k in t
    }


def audit(s: Service, ident: str) -> list[str]:
    return [r["event"] for r in s.log_rows() if r.get("audit") and r.get("tool") == ident]


# ---- One tool


def test_a_tool_is_kept_as_it_was_given(service: Service, red: Client):
    t = made(red, ADD)
    assert (t["version"], t["permission"], t["shared_by"], t["is_enabled"]) == (1, "owner", None, True)
    assert t["created_at"] == t["updated_at"]
    kept = definition_of(t)
    assert {**kept, "parameters": None} == {**ADD, "parameters": None}
    assert kept["parameters"][0] == ADD["parameters"][0]
    assert kept["parameters"][1] == {**ADD["parameters"][1], "required": False}
    one = red.get(f"{TOOLS}/{t['id']}")
    assert one.data == t and b"12345678901234567890123" in one.body, "digit for digit"
    (entry,) = every(red)
    assert entry == {k: v for k, v in t.items() if k not in ("parameters", "code_config")}
    assert audit(service, t["id"]) == ["tool created"]


def test_a_restart_keeps_all(service: Service, red: Client, blue: Client):
    t = made(red, ADD)
    path = f"{TOOLS}/{t['id']}"
    red.call("PUT", path, {"name": "plus"})
    red.post(f"{path}/toggle")
    red.post(f"{path}/share", {"team_id": "blue", "permission": "read_execute"})
    paths = [path, f"{path}/versions", f"{path}/versions/1", f"{path}/shares", TOOLS, f"{TOOLS}/export"]
    before = [red.get(p).data for p in paths] + [blue.get(path).data, every(blue)]
    service.restart()
    assert [red.get(p).data for p in paths] + [blue.get(path).data, every(blue)] == before


def test_a_change_is_over_what_is_there(service: Service, red: Client):
    t = made(red, ADD)
    path = f"{TOOLS}/{t['id']}"
    changed = red.call("PUT", path, {"description": "Sums.", "icon": None}).data
    assert changed["version"] == 2 and changed["description"] == "Sums." and "icon" not in changed
    assert changed["parameters"] == t["parameters"] and changed["code_config"] == t["code_config"]
    assert changed["created_at"] == t["created_at"] <= changed["updated_at"]
    again = red.call("PUT", path, {"description": "Sums."}).data
    assert again == changed, "nothing changed: no new version"
    off = red.call("PUT", path, {"is_enabled": False, "version": 2}).data
    assert (off["version"], off["is_enabled"]) == (2, False)
    stale = red.call("PUT", path, {"description": "Lost.", "version": 1})
    assert stale.status == 412 and stale.msg == "version: the tool is at 2, not at 1; read it again"
    renamed = red.call("PUT", path, {"name": "plus"}).data
    assert (renamed["name"], renamed["version"], renamed["is_enabled"]) == ("plus", 3, False)
    versions = red.get(f"{path}/versions").data["items"]
    assert [(v["version"], v["name"]) for v in versions] == [(3, "plus"), (2, "add"), (1, "add")]
    assert audit(service, t["id"]) == ["tool created"] + ["tool changed"] * 4


def test_changes_at_once_lose_nothing(service: Service, red: Client):
    t = made(red, ADD)
    fields = {"display_name": "Sum", "description": "both", "icon": "s", "category": "c"}

    def put(item: tuple[str, str]) -> int:
        with service.client(red.key) as c:
            return c.call("PUT", f"{TOOLS}/{t['id']}", dict([item])).status

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert list(pool.map(put, fields.items())) == [200] * 4
    now = red.get(f"{TOOLS}/{t['id']}").data
    assert {k: now[k] for k in fields} == fields and now["version"] == 5


def test_a_toggle_makes_no_version(service: Service, red: Client):
    t = save(red, "t")
    path = f"{TOOLS}/{t['id']}/toggle"
    assert [red.post(path).data["is_enabled"] for _ in range(2)] == [False, True]
    for on in (False, False, True):
        now = red.post(path, {"is_enabled": on}).data
        assert (now["is_enabled"], now["version"]) == (on, 1)
    assert red.post(path, {"is_enabled": "no"}).msg == 'is_enabled: must be true or false, not "no"'
    assert audit(service, t["id"])[1:4] == ["tool disabled", "tool enabled", "tool disabled"]
    assert save(red, "off", is_enabled=False)["is_enabled"] is False


def test_what_it_was_comes_back(red: Client):
    t = save(red, "t", "return 1", description="first")
    path = f"{TOOLS}/{t['id']}"
    red.call("PUT", path, {"name": "u", "code_config": {"language": "javascript", "code": "return 2"}})
    first = red.get(f"{path}/versions/1").data
    assert (first["name"], first["code_config"], first["version"]) == ("t", t["code_config"], 1)
    assert first["created_at"] == t["created_at"] and first["id"] == t["id"]
    red.post(f"{path}/toggle", {"is_enabled": False})
    back = red.post(f"{path}/restore", {"version": 1}).data
    assert definition_of(back) == definition_of(t)
    assert (back["version"], back["is_enabled"]) == (3, False)
    assert red.post(f"{path}/restore", {"version": 3}).data["version"] == 3, "as it is"
    save(red, "u")
    taken = red.post(f"{path}/restore", {"version": 2})
    assert taken.status == 409 and taken.msg.startswith('name: the team has a tool "u" (id ')
    for answer in (red.get(f"{path}/versions/4"), red.post(f"{path}/restore", {"version": 4})):
        assert answer.status == 404 and answer.msg.startswith("version: ")
    for word in ("0", "x", "01", "1.0", "-1", "9" * 12):
        assert red.get(f"{path}/versions/{word}").status == 404


def test_only_so_many_versions_are_kept(red: Client):
    t = save(red, "t", "return 1")
    path = f"{TOOLS}/{t['id']}"
    for n in range(2, 53):
        red.call("PUT", path, {"code_config": {"language": "python", "code": f"return {n}"}})
    versions = red.get(f"{path}/versions").data["items"]
    assert [v["version"] for v in versions] == list(range(52, 2, -1))
    assert red.get(f"{path}/versions/2").status == 404
    assert red.get(f"{path}/versions/3").data["code_config"]["code"] == "return 3"


def test_a_name_is_one_of_a_kind(red: Client, blue: Client):
    t = save(red, "t")
    twice = red.post(TOOLS, tool("t"))
    assert twice.status == 409 and twice.msg == f'name: the team has a tool "t" (id {t["id"]})'
    save(blue, "t")
    other = save(red, "u")
    assert red.call("PUT", f"{TOOLS}/{other['id']}", {"name": "t"}).status == 409
    assert red.call("DELETE", f"{TOOLS}/{t['id']}").status == 200
    assert red.call("PUT", f"{TOOLS}/{other['id']}", {"name": "t"}).data["name"] == "t"
    assert red.get(f"{TOOLS}/{t['id']}").status == 404
    assert red.call("DELETE", f"{TOOLS}/{t['id']}").status == 404


def test_lists_are_by_age_and_by_pages(red: Client, blue: Client):
    for name in ("m", "Z", "a_2"):
        save(red, name)
    theirs = save(blue, "a")
    blue.post(f"{TOOLS}/{theirs['id']}/share", {"team_id": "red", "permission": "read_only"})
    save(red, "a")
    names = [(t["name"], t["permission"]) for t in every(red)]
    assert names == [("m", "owner"), ("Z", "owner"), ("a_2", "owner"), ("a", "read_only"), ("a", "owner")]
    for limit in (1, 2, 5):
        assert [(t["name"], t["permission"]) for t in every(red, limit=limit)] == names
    for bad in ("x", NO_TOOL):
        refused = red.get(f"{TOOLS}?cursor={bad}")
        assert refused.status == 422 and refused.msg.startswith("cursor: ")


def test_a_rename_moves_nothing_from_page_to_page(red: Client):
    ids = [save(red, name)["id"] for name in ("b", "c", "d", "e")]
    page = red.get(f"{TOOLS}?limit=2").data
    for ident, name in zip(ids, ("z", "y", "B", "A"), strict=True):
        assert red.call("PUT", f"{TOOLS}/{ident}", {"name": name}).data["name"] == name
    rest = red.get(f"{TOOLS}?cursor={page['next_cursor']}").data
    assert [t["id"] for t in page["items"] + rest["items"]] == ids


def test_a_page_of_large_tools_is_short(red: Client):
    code = "#" * (1 << 20)
    for n in range(3):
        save(red, f"t{n}", code)
    pages = [red.get(f"{TOOLS}?limit=1000").data]
    assert len(pages[0]["items"]) == 2, "as many as are read at once"
    pages.append(red.get(f"{TOOLS}?limit=1000&cursor={pages[0]['next_cursor']}").data)
    assert [t["name"] for p in pages for t in p["items"]] == [f"t{n}" for n in range(3)]
    assert pages[1]["next_cursor"] is None
    assert [t["name"] for t in red.get(f"{TOOLS}/export").data["tools"]] == ["t0", "t1", "t2"]


# ---- What is no tool


BAD = {
    "a name": ({"name": "1st"}, 'name: "1st" is not a name of a tool'),
    "an empty name": ({"name": ""}, "name: 0 bytes"),
    "a long name": ({"name": "x" * 101}, "name: 101 bytes are above the maximum of 100"),
    "a built-in name": ({"name": "bash"}, 'name: "bash" is the name of the built-in tool bash'),
    "a built-in name in capitals": ({"name": "Bash"}, 'name: "Bash" is the name of the built-in tool bash'),
    "an unknown field": ({"descripton": "x"}, "descripton: unknown field"),
    "a field of the answer": ({"version": 1}, "version: unknown field"),
    "no code": ({"code_config": {"language": "python"}}, "code_config.code: is missing"),
    "another language": ({"code_config": {"language": "ruby", "code": "1"}}, 'code_config.language: "ruby"'),
    "a limit": (
        {"code_config": {"language": "python", "code": "1", "limits": {"timeout_seconds": 601}}},
        "code_config.limits.timeout_seconds: 601",
    ),
    "a limit's name": (
        {"code_config": {"language": "python", "code": "1", "limits": {"timeout": 1}}},
        "code_config.limits.timeout: ",
    ),
    "a package": (
        {"code_config": {"language": "python", "code": "1", "python_packages": ["x; rm -rf /"]}},
        "code_config.python_packages[0]: ",
    ),
    "a path": (
        {"code_config": {"language": "python", "code": "1", "artifacts": ["../x"]}},
        "code_config.artifacts[0]",
    ),
    "a parameter's type": ({"parameters": [{"name": "a", "type": "text"}]}, 'parameters[0].type: "text" is none of'),
    "a default": (
        {"parameters": [{"name": "a", "type": "integer", "default": "1"}]},
        "parameters[0].default: ",
    ),
    "two of a name": (
        {"parameters": [{"name": "a", "type": "string"}, {"name": "a", "type": "string"}]},
        "parameters[1].name: ",
    ),
    "a team": ({"team_id": "blue"}, "team_id: unknown field"),
}


@pytest.mark.parametrize("what", BAD)
def test_what_is_wrong_is_named(red: Client, what: str):
    fields, fault = BAD[what]
    refused = red.post(TOOLS, {**tool("t"), **fields})
    assert refused.status in (413, 422) and refused.msg.startswith(fault), refused.msg
    t = save(red, "t")
    if what != "a field of the answer":  # which a change takes
        over = red.call("PUT", f"{TOOLS}/{t['id']}", fields)
        assert over.status == refused.status and over.msg == refused.msg
    assert red.get(f"{TOOLS}/{t['id']}").data == t
    assert len(every(red)) == 1


def test_all_that_is_wrong_is_named_at_once(red: Client):
    bad = {
        "name": "edit",
        "parameters": [{"name": " a", "type": "array", "default": 3}],
        "code_config": {"language": "python", "code": "x", "limits": {"memory_mb": 128}, "env": {"LD_PRELOAD": "x"}},
    }
    refused = red.post(TOOLS, bad)
    assert refused.status == 422
    for path in ("name: ", "parameters[0].name: ", "parameters[0].default: ", "code_config.env"):
        assert path in refused.msg, (path, refused.msg)


def test_what_older_platforms_saved_is_read(red: Client):
    old = tool("old")
    old["code_config"]["dependencies"] = [{"name": "requests", "version": "2.32.3"}, "numpy==2.1.0"]
    t = made(red, old)
    assert t["code_config"]["python_packages"] == ["requests==2.32.3", "numpy==2.1.0"]
    assert "dependencies" not in t["code_config"]


def test_large_definitions(red: Client):
    code = "#" + "\N{SNOWMAN}" * 300_000 + "\nreturn 1"
    t = save(red, "large", code)
    assert red.get(f"{TOOLS}/{t['id']}").data["code_config"]["code"] == code
    refused = red.post(TOOLS, tool("larger", "#" * (1 << 20) + "xx"))
    assert refused.status == 413 and refused.msg.startswith("code_config.code: ")


# ---- Other teams


def test_a_foreign_tool_is_one_that_does_not_exist(red: Client, blue: Client):
    t = made(red, ADD)
    share = {"team_id": "red", "permission": "read_only"}
    calls = [
        ("GET", "", None),
        ("PUT", "", {"description": "x"}),
        ("DELETE", "", None),
        ("POST", "/toggle", {}),
        ("POST", "/share", share),
        ("DELETE", "/share/blue", None),
        ("GET", "/shares", None),
        ("GET", "/versions", None),
        ("GET", "/versions/1", None),
        ("POST", "/restore", {"version": 1}),
    ]
    for method, behind, body in calls:
        foreign = blue.call(method, f"{TOOLS}/{t['id']}{behind}", body)
        missing = blue.call(method, f"{TOOLS}/{NO_TOOL}{behind}", body)
        assert foreign.status == 404 and foreign.body == missing.body, (method, behind)
    assert blue.get(f"{TOOLS}/export?id={t['id']}").status == 404
    assert red.get(f"{TOOLS}/{t['id']}").data == t
    assert every(blue) == []


def test_shared_tools_are_seen_and_no_more(service: Service, red: Client, blue: Client):
    t = made(red, ADD)
    path = f"{TOOLS}/{t['id']}"
    shared = red.post(f"{path}/share", {"team_id": "blue", "permission": "read_only"})
    assert shared.data == {"id": t["id"], "team_id": "blue", "permission": "read_only"}
    seen = blue.get(path).data
    assert seen == {**t, "permission": "read_only", "shared_by": "red"}
    assert [e["shared_by"] for e in every(blue)] == ["red"]
    for method, behind, body in [
        ("PUT", "", {"description": "x"}),
        ("DELETE", "", None),
        ("POST", "/toggle", {}),
        ("POST", "/share", {"team_id": "blue", "permission": "read_execute"}),
        ("GET", "/shares", None),
        ("GET", "/versions", None),
        ("GET", "/versions/1", None),
        ("POST", "/restore", {"version": 1}),
        ("DELETE", "/share/green", None),
    ]:
        refused = blue.call(method, f"{path}{behind}", body)
        assert refused.status == 403, (method, behind, refused)
    assert "permission read_only" in blue.call("DELETE", path).msg
    assert blue.get(f"{TOOLS}/export").data == {"tools": []}, "what is another's is not exported"
    assert blue.get(f"{TOOLS}/export?id={t['id']}").status == 403

    red.post(f"{path}/share", {"team_id": "blue", "permission": "read_execute"})
    (share,) = red.get(f"{path}/shares").data["items"]
    assert (share["team_id"], share["permission"]) == ("blue", "read_execute")
    red.call("PUT", path, {"name": "plus"})
    assert (blue.get(path).data["name"], blue.get(path).data["permission"]) == ("plus", "read_execute")
    assert red.call("DELETE", f"{path}/share/blue").data == {"id": t["id"], "team_id": "blue"}
    assert blue.get(path).status == 404 and every(blue) == []
    gone = red.call("DELETE", f"{path}/share/blue")
    assert gone.status == 404 and gone.msg.startswith("team_id: ")
    rows = [r for r in service.log_rows() if r.get("audit") and r.get("tool") == t["id"] and r.get("with")]
    assert [(r["event"], r["with"], r["team"]) for r in rows] == [
        ("tool shared", "blue", "red"),
        ("tool shared", "blue", "red"),
        ("tool unshared", "blue", "red"),
    ]


def test_a_team_may_end_what_is_shared_with_it(red: Client, blue: Client):
    t = save(red, "t")
    path = f"{TOOLS}/{t['id']}"
    red.post(f"{path}/share", {"team_id": "blue", "permission": "read_execute"})
    assert blue.call("DELETE", f"{path}/share/blue").status == 200
    assert blue.get(path).status == 404
    assert red.get(f"{path}/shares").data["items"] == []
    assert red.get(path).data == t


def test_with_whom_a_tool_may_be_shared(service: Service, red: Client):
    t = save(red, "t")
    path = f"{TOOLS}/{t['id']}/share"
    nobody = red.post(path, {"team_id": "nobody", "permission": "read_only"})
    assert nobody.status == 404 and nobody.msg.startswith("team_id: there is no team nobody: ")
    own = red.post(path, {"team_id": "red", "permission": "read_only"})
    assert own.status == 422 and own.msg.startswith("team_id: ")
    for body, fault in [
        ({"team_id": "blue"}, "permission: is missing"),
        ({"team_id": "blue", "permission": "owner"}, 'permission: "owner" is none of read_only, read_execute'),
        ({"team_id": "no team", "permission": "read_only"}, "team_id: "),
    ]:
        refused = red.post(path, body)
        assert refused.status == 422 and refused.msg.startswith(fault), refused
    with service.client(unix=True) as c:
        key = c.post(f"{API}/keys", {"team": "short", "name": "n"}).data
        assert red.post(path, {"team_id": "short", "permission": "read_only"}).status == 200
        c.call("DELETE", f"{API}/keys/{key['id']}")
    assert red.post(path, {"team_id": "short", "permission": "read_only"}).status == 404, "its only key is revoked"


# ---- Many at once


def test_what_is_exported_can_be_imported(red: Client, blue: Client):
    made(red, ADD)
    save(red, "t", is_enabled=False)
    out = red.get(f"{TOOLS}/export")
    assert [t["name"] for t in out.data["tools"]] == ["add", "t"]
    assert b"12345678901234567890123" in out.body
    done = blue.post(f"{TOOLS}/import", out.data).data
    assert [(i["name"], i["outcome"], i["version"]) for i in done["items"]] == [
        ("add", "created", 1),
        ("t", "created", 1),
    ]
    assert (done["created"], done["updated"], done["skipped"]) == (2, 0, 0)
    assert blue.get(f"{TOOLS}/export").data == out.data
    assert blue.get(f"{TOOLS}/{done['items'][1]['id']}").data["is_enabled"] is False
    ident = next(t["id"] for t in every(red) if t["name"] == "t")
    assert [t["name"] for t in red.get(f"{TOOLS}/export?id={ident}").data["tools"]] == ["t"]
    assert blue.post(f"{TOOLS}/import", {"tools": []}).data["items"] == []


def test_names_that_are_taken(service: Service, red: Client):
    t, u = save(red, "t"), save(red, "u", is_enabled=False)
    new = [tool("v", "return 3"), tool("u", "return 2"), tool("t")]
    refused = red.post(f"{TOOLS}/import", {"tools": new})
    assert refused.status == 409
    taken = [f'tools[{i}]: name: the team has a tool "{x["name"]}" (id {x["id"]})' for i, x in ((1, u), (2, t))]
    assert refused.msg == "on_conflict: names are taken; skip or replace goes on: " + "; ".join(taken)
    assert len(every(red)) == 2
    skipped = red.post(f"{TOOLS}/import", {"tools": new[1:], "on_conflict": "skip"}).data
    assert [(i["id"], i["outcome"], i["version"]) for i in skipped["items"]] == [
        (u["id"], "skipped", 1),
        (t["id"], "skipped", 1),
    ]
    assert red.get(f"{TOOLS}/{u['id']}").data == u
    replaced = red.post(f"{TOOLS}/import", {"tools": new, "on_conflict": "replace"}).data
    assert [(i["name"], i["outcome"], i["version"]) for i in replaced["items"]] == [
        ("v", "created", 1),
        ("u", "updated", 2),
        ("t", "updated", 1),  # as it is: no new version
    ]
    now = red.get(f"{TOOLS}/{u['id']}").data
    assert (now["code_config"]["code"], now["is_enabled"]) == ("return 2", False), "not said: as it is"
    assert audit(service, u["id"]) == ["tool created", "tool changed"]


def test_nothing_is_imported_where_one_is_wrong(red: Client):
    bad = [tool("a"), tool("bash"), tool("b", timeout=3), tool("c")]
    refused = red.post(f"{TOOLS}/import", {"tools": bad, "on_conflict": "replace"})
    assert refused.status == 422 and refused.msg.startswith("tools[2].timeout: unknown field"), refused.msg
    refused = red.post(f"{TOOLS}/import", {"tools": [tool("a"), tool("bash"), tool("edit"), tool("c"), tool("a")]})
    assert refused.status == 422
    for fault in (
        'tools[1]: name: "bash" is',
        'tools[2]: name: "edit" is',
        'tools[4]: name: "a" is the name of tools[0], too',
    ):
        assert fault in refused.msg, refused.msg
    assert red.post(f"{TOOLS}/import", {"tools": [3]}).msg.startswith("tools[0]: must be an object")
    assert red.post(f"{TOOLS}/import", {"tools": [], "on_conflict": "x"}).msg.startswith("on_conflict: ")
    assert red.post(f"{TOOLS}/import", {}).msg == "tools: is missing"
    assert every(red) == []


def test_an_import_that_does_not_fit_is_not_there_in_part(service: Service, red: Client):
    """That a team has nearly as many bytes as it may is written here: to send them takes long."""
    t = save(red, "t")
    with contextlib.closing(sqlite3.connect(f"{service.data}/serve/store/isle.db")) as db, db:
        almost = (256 << 20) - 5000
        assert db.execute("UPDATE tools SET bytes = ? WHERE id = ?", (almost, t["id"].encode())).rowcount == 1
    large = [tool(name, f"return '{'x' * 3000}'") for name in ("large", "larger")]
    refused = red.post(f"{TOOLS}/import", {"tools": [*large, tool("t", "return 2")], "on_conflict": "replace"})
    assert refused.status == 409 and refused.msg.startswith("tools[1]: with those before it the team would"), refused
    assert refused.msg.endswith("nothing was saved")
    assert [i["name"] for i in every(red)] == ["t"] and red.get(f"{TOOLS}/{t['id']}").data == t
    assert red.post(f"{TOOLS}/import", {"tools": large[:1]}).data["created"] == 1


def test_imports_that_want_the_same_name(service: Service, red: Client):
    """One of them has all that it brings, the other nothing; asked to go on, each has all."""
    sets = [[tool(n) for n in names] for names in ("abc", "cde")]

    def post(body: dict) -> Answer:
        with service.client(red.key) as c:
            return c.post(f"{TOOLS}/import", body)

    for how, wanted in (("refuse", 1), ("skip", 2), ("replace", 2)):
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            sent = [{"tools": s, "on_conflict": how} for s in sets]
            answers = list(pool.map(post, sent))
        done = [s for s, a in zip(sets, answers, strict=True) if a.status == 200]
        assert len(done) == wanted, answers
        assert all("names are taken" in a.msg for a in answers if a.status != 200), answers
        there = every(red)
        assert sorted(t["name"] for t in there) == sorted({t["name"] for s in done for t in s})
        for t in there:
            assert red.call("DELETE", f"{TOOLS}/{t['id']}").status == 200


def test_so_many_and_no_more(service: Service):
    """All that a team may have, by one import; then one more by each way in."""
    tools = [tool(f"t{n}") for n in range(1000)]
    with service.client(service.new_key("many")) as many:
        assert many.post(f"{TOOLS}/import", {"tools": tools}).data["created"] == 1000
        assert len(every(many, limit=600)) == 1000
        refused = many.post(TOOLS, tool("more"))
        assert refused.status == 409 and refused.msg.startswith("tool: a team has at most 1000 tools")
        refused = many.post(f"{TOOLS}/import", {"tools": [tool("more"), tool("t1")], "on_conflict": "skip"})
        assert refused.status == 409 and refused.msg.startswith("tools: with 1 new ones the team would have 1001")
        assert many.post(f"{TOOLS}/import", {"tools": [*tools, tool("more")]}).status == 422
        assert len(many.get(f"{TOOLS}/export").data["tools"]) == 1000


def test_fixed_words_are_no_ids(red: Client):
    assert red.get(f"{TOOLS}/import").status == 405
    assert red.call("DELETE", f"{TOOLS}/export").status == 405
    assert red.get(f"{TOOLS}/nonesuch").status == 404
    assert red.get(f"{TOOLS}/{NO_TOOL.upper()}").status == 404
