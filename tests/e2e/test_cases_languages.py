"""Cases NOD, PY, PLT and others that are about the two languages."""

from __future__ import annotations

import hashlib
import subprocess
import sys

import harness
import pytest

pytestmark = pytest.mark.usefixtures("host")


def test_NOD_01_unhandled_rejection(isle):
    r = isle.js('console.log("a"); Promise.reject(new Error("boom"))')
    assert r.stdout == "a\n" and r.reason == "error" and r.status == 1, r.result
    assert "boom" in r.stderr
    for more in ("; await null; await 1", "; await new Promise((r) => setTimeout(r, 100)); return 1", "; return 5"):
        r = isle.js('console.log("a"); Promise.reject(new Error("boom"))' + more)
        assert r.stdout == "a\n" and r.status == 1 and "boom" in r.stderr and r.result["result"] is None, r.result


def test_NOD_03_import_and_top_level_await(isle):
    code = 'import { sep } from "node:path"; const v = await Promise.resolve(sep); console.log(v)'
    assert isle.js(code).lines == ["/"]


def test_NOD_04_require_with_top_level_await(isle):
    r = isle.js('const p = require("path"); console.log(await p.sep)')
    assert r.lines == ["/"], r.result


def test_NOD_06_promise_that_never_settles(isle):
    r = isle.js("await new Promise(() => {})")
    assert r.reason == "error" and r.result["exit_code"] == 13, r.result
    assert "unsettled top-level await" in r.stderr


def test_NOD_07_endless_timer(isle):
    code = "let n = 0; setInterval(() => console.log(n++), 500)"
    r, _ = harness.in_time(isle.js, code, seconds=4, ready=lambda r: len(r.lines) > 1)
    assert r.reason == "timeout" and r.lines[:2] == ["0", "1"], r.result


def test_NOD_09_first_line(isle):
    assert isle.js("#!/usr/bin/env node\nconsole.log(1)").lines == ["1"]
    code = '"use strict"; try { undeclared = 1; console.log("sloppy") } catch { console.log("strict") }'
    assert isle.js(code).lines == ["strict"]
    assert isle.js("\ufeffconsole.log(1)").lines == ["1"]
    for first in ("\ufeff", "#!/usr/bin/env node\n"):
        assert isle.js(first + code).lines == ["strict"]
        assert isle.js(first + code.replace('"use strict"; ', "")).lines == ["sloppy"]


def test_PY_01_text_is_not_edited(isle, tmp_path):
    code = (
        's = """one\n  two\n\nthree\\\\\nfour"""\n'
        "print(repr(s))\n"
        'f = f"""{s}\n\ttab\n  end"""\n'
        "if True:\n\tprint(repr(f))\n"
    )
    plain = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert isle.python(code).stdout == plain.stdout
    path = tmp_path / "p.py"
    path.write_text(code + "open('s.txt', 'w').write(s + f)\n")
    assert isle.job(str(path), "--artifact", "s.txt", "--output-dir", str(tmp_path)).stdout == plain.stdout
    s = "one\n  two\n\nthree\\\nfour"
    assert (tmp_path / "s.txt").read_text() == f"{s}{s}\n\ttab\n  end"


def test_PY_02_future_import_and_docstring(isle):
    assert isle.python('"""doc"""\nfrom __future__ import annotations\nprint(__doc__)').lines == ["doc"]
    code = '"""doc"""\nfrom __future__ import annotations\nprint(__doc__)\nreturn 1'
    r = isle.python(code)
    assert r.lines == ["doc"] and r.result["result"] == 1


@pytest.mark.parametrize("end", ["", "\nreturn 1"])
def test_PY_03_functions_see_top_level_names(isle, end):
    code = "import math\nk = 2\ndef area(r): return k * math.pi * r\nprint(round(area(1), 2), [k for _ in range(1)])"
    assert isle.python(code + end).lines == ["6.28 [2]"]


@pytest.mark.parametrize("end", ["", "\nif __name__ == '__main__': return 1"])
def test_PY_04_classes_pickle(isle, end):
    code = """
import dataclasses, multiprocessing, pickle, typing
class A: pass
@dataclasses.dataclass
class B:
    x: "A"
def double(n): return 2 * n
if __name__ == "__main__":
    print(type(pickle.loads(pickle.dumps(A()))).__name__, typing.get_type_hints(B)["x"].__name__)
    with multiprocessing.get_context("spawn").Pool(1) as p: print(p.map(double, [1, 2]))
    print(__name__, __file__.rsplit("/", 1)[1])
"""
    r = isle.python(code + end, within=30)
    assert r.lines == ["A A", "[2, 4]", "__main__ snippet.py"], r.result


def test_PY_06_asyncio(isle):
    code = 'import asyncio\nasyncio.run(asyncio.sleep(0.01))\nprint("ok")'
    assert isle.python(code).lines == ["ok"]
    code = "import asyncio\nawait asyncio.sleep(0.01)\nprint('top')\nreturn 2"
    r = isle.python(code)
    assert r.lines == ["top"] and r.result["result"] == 2, r.result


@pytest.mark.parametrize(
    "code, status",
    [
        ('sys.exit("why")', 1),
        ("sys.exit(None)", 0),
        ("sys.exit(256)", 0),
        ("sys.exit(-1)", 255),
        ("raise SystemExit(7)", 7),
    ],
)
def test_PY_07_exit_values(isle, code, status):
    r = isle.python("import sys\n" + code)
    assert r.result["exit_code"] == status, r.result
    assert r.stderr == ("why\n" if "why" in code else "")
    assert r.result["result"] is None and (r.reason == "ok") == (status == 0)
    r = isle.python(f"import sys\ntry: return 5\nfinally: {code}")  # never returned
    assert r.result["exit_code"] == status and r.result["result"] is None, r.result


def test_PY_08_exit_and_fork_with_pending_output(isle):
    r = isle.python('import os; print("keep"); os._exit(3)')
    assert r.lines == ["keep"] and r.status == 3
    assert isle.python('import os; print("once"); os.fork()').lines == ["once"]


def test_PY_09_stdin(isle):
    code = "a = input(); b = int(input()); print(a * b)"
    assert isle.python(code, "--stdin", "-", input="α\n2\n".encode()).lines == ["αα"]
    assert isle.python("import sys; print(sys.stdin.read() == '')").lines == ["True"]
    code = "let t = ''; for await (const c of process.stdin) t += c; console.log(t.length)"
    assert isle.js(code, "--stdin", "-", input="α\n2\n".encode()).lines == ["4"]


def test_PY_10_threads_at_the_end(isle):
    code = """
import threading, time
def late(): time.sleep(0.5); print("late")
threading.Thread(target=late).start()
return 1
"""
    r = isle.python(code)
    assert r.result["result"] == 1 and r.lines == ["late"], r.result


PLOT = 'import matplotlib; matplotlib.use("Agg"); import matplotlib.pyplot as p; p.plot([1, 2]); p.savefig("a.png")'


def test_PLT_01_plot(isle, tmp_path):
    r = isle.python(PLOT, "--artifact", "a.png", "--output-dir", str(tmp_path), within=40)
    assert r.reason == "ok", r.result
    [png] = tmp_path.rglob("*.png")
    assert png.read_bytes().startswith(b"\x89PNG\r\n")


def test_PLT_02_no_noise(isle):
    r = isle.python(PLOT, within=40)
    assert r.reason == "ok" and r.stderr == "" and r.stdout == "", r.result
    watched = """
import os, sys
looked = []
sys.addaudithook(lambda event, words: event in ("os.scandir", "os.listdir") and looked.append(os.fspath(words[0])))
"""
    r = isle.python(f"{watched}{PLOT}\nreturn [at for at in looked if 'font' in at]", within=40)
    assert r.result["result"] == [], r.result  # no scan of the fonts, which a slow run would need


def test_PLT_04_show(isle):
    code = 'import matplotlib.pyplot as p; p.plot([1]); p.show(); print("after")'
    r = isle.python(code, within=40)
    assert r.reason == "ok" and r.lines == ["after"], r.result


def test_PKG_19_nothing_is_downloaded(isle):
    """There is no network at all in a job, and both languages start."""
    assert isle.python("print(1)").lines == ["1"]
    assert isle.js("console.log(1)").lines == ["1"]


def test_FS_18_package_json(isle, tmp_path):
    code = 'const p = require("path"); console.log(p.sep)'
    for text in ('{"type":"module"}', "{"):
        (tmp_path / "package.json").write_text(text)
        for form in (code, 'import p from "path"; console.log(p.sep)', 'console.log(await require("path").sep)'):
            r = isle.js(form, "--file", str(tmp_path / "package.json"))
            assert r.lines == ["/"] and r.stderr == "", r.result


def test_ART_09_one_large_page(isle, tmp_path):
    code = """
import hashlib, random
text = "<html>" + "".join(random.choice("abcdef") for _ in range(3 << 20)) + "</html>"
open("output/chart.html", "w").write(text)
return hashlib.sha256(text.encode()).hexdigest()
"""
    r = isle.python(code, "--artifact", "output/chart.html", "--output-dir", str(tmp_path))
    [page] = tmp_path.rglob("*.html")
    assert hashlib.sha256(page.read_bytes()).hexdigest() == r.result["result"]
