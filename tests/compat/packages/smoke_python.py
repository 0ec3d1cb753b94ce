"""One telling use of each package: `smoke_python.py OUT NAME...`. It runs inside a job.

A function has the name of what is installed, with _ for -. A server it needs is on the loopback, in a thread.
"""

import contextlib
import http.server
import io
import json
import os
import pathlib
import sys
import threading
import time
import traceback


class Answer(http.server.BaseHTTPRequestHandler):
    """GET: what was asked for, as JSON; POST: what was sent."""

    protocol_version = "HTTP/1.1"

    def answer(self, body, kind="application/json"):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.answer(json.dumps({"path": self.path}).encode())

    def do_POST(self):
        sent = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path.endswith("/chat/completions"):
            said = json.loads(sent)["messages"][-1]["content"]
            choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": said.upper()}}
            sent = json.dumps(
                {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
            ).encode()
        self.answer(sent)

    do_PUT = do_POST

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def server():
    """Its address."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer) as s:
        threading.Thread(target=s.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{s.server_address[1]}"
        s.shutdown()


# ---- what the runtime root has


def numpy():
    import numpy as np

    a = np.random.default_rng(1).normal(size=(200, 200))
    assert np.allclose(a @ np.linalg.inv(a), np.eye(200), atol=1e-6)
    np.save("/tmp/a.npy", a)
    assert (np.load("/tmp/a.npy", mmap_mode="r") == a).all()
    assert abs(np.fft.ifft(np.fft.fft(a[0])).real - a[0]).max() < 1e-12


def scipy():
    import scipy.optimize
    import scipy.sparse.linalg
    import scipy.stats

    assert abs(scipy.optimize.brentq(lambda x: x**3 - 2, 0, 2) - 2 ** (1 / 3)) < 1e-9
    m = scipy.sparse.eye(50, format="csc") * 3
    assert abs(scipy.sparse.linalg.spsolve(m, [3.0] * 50) - 1).max() < 1e-12
    assert scipy.stats.norm.cdf(0) == 0.5


def pandas():
    import pandas as pd

    frame = pd.DataFrame({"k": list("abab"), "v": [1, 2, 3, 4]})
    assert frame.groupby("k")["v"].sum().to_dict() == {"a": 4, "b": 6}
    frame.to_csv("t.csv", index=False)
    assert pd.read_csv("t.csv").equals(frame)
    assert pd.to_datetime("2024-03-10 12:00").tz_localize("Europe/Berlin").utcoffset().seconds == 3600


def matplotlib():
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots()
    axes.plot([1, 3, 2], label="東京 ü")
    axes.legend()
    for kind, magic in (("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")):
        figure.savefig(f"plot.{kind}")
        assert pathlib.Path(f"plot.{kind}").read_bytes().startswith(magic)


def seaborn():
    import pandas as pd
    import seaborn as sns

    axes = sns.barplot(pd.DataFrame({"x": ["a", "b"], "y": [1, 2]}), x="x", y="y")
    axes.figure.savefig("bar.png")
    assert pathlib.Path("bar.png").stat().st_size > 1000


def pillow():
    from PIL import Image, ImageDraw, ImageFilter

    image = Image.new("RGB", (200, 100), "white")
    ImageDraw.Draw(image).text((10, 10), "hello", fill="black")
    for kind in ("png", "jpeg", "webp", "gif", "tiff"):
        image.filter(ImageFilter.BLUR).save(f"i.{kind}")
        assert Image.open(f"i.{kind}").size == (200, 100), kind


# ---- the web


def requests():
    import requests

    with server() as url, requests.Session() as session:
        assert session.get(f"{url}/a", params={"b": 1}).json() == {"path": "/a?b=1"}
        assert session.post(url, json={"x": [1]}).json() == {"x": [1]}
    try:
        requests.get("http://example.com", timeout=5)
    except requests.ConnectionError:
        return
    raise AssertionError("there is a network")


def httpx():
    import asyncio

    import httpx

    async def many(url):
        async with httpx.AsyncClient() as client:
            return await asyncio.gather(*(client.get(f"{url}/{i}") for i in range(10)))

    with server() as url:
        assert httpx.get(f"{url}/x").json() == {"path": "/x"}
        assert [r.json()["path"] for r in asyncio.run(many(url))] == [f"/{i}" for i in range(10)]


def aiohttp():
    import asyncio

    import aiohttp
    from aiohttp import web

    async def main():
        async def hello(request):
            return web.json_response({"name": request.match_info["name"]})

        app = web.Application()
        app.add_routes([web.get("/{name}", hello)])
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 8123)
        await site.start()
        async with aiohttp.ClientSession() as session, session.get("http://127.0.0.1:8123/isle") as r:
            assert await r.json() == {"name": "isle"}
        await runner.cleanup()

    asyncio.run(main())


def fastapi():
    import httpx
    import pydantic
    import uvicorn
    from fastapi import FastAPI

    app = FastAPI()

    class Item(pydantic.BaseModel):
        price: float

    def double(item: Item):
        return {"price": item.price * 2}

    double.__annotations__["item"] = Item
    app.post("/items")(double)
    s = uvicorn.Server(uvicorn.Config(app, port=8124, log_level="error"))
    thread = threading.Thread(target=s.run)
    thread.start()
    while not s.started:
        time.sleep(0.01)
    assert httpx.post("http://127.0.0.1:8124/items", json={"price": 2.5}).json() == {"price": 5.0}
    assert httpx.post("http://127.0.0.1:8124/items", json={"price": "x"}).status_code == 422
    s.should_exit = True
    thread.join()


def uvloop():
    import asyncio

    import uvloop

    async def main():
        p = await asyncio.create_subprocess_exec("echo", "hi", stdout=asyncio.subprocess.PIPE)
        out, _ = await p.communicate()
        host = await asyncio.get_running_loop().getaddrinfo("localhost", 80)
        await asyncio.to_thread(time.sleep, 0.01)
        return out, bool(host)

    assert uvloop.run(main()) == (b"hi\n", True)


def openai():
    import openai

    with server() as url:
        client = openai.OpenAI(api_key="k", base_url=url)
        said = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "hi"}])
        assert said.choices[0].message.content == "HI"


def boto3():
    import boto3
    from botocore.stub import Stubber

    client = boto3.client("s3", region_name="eu-west-1", aws_access_key_id="a", aws_secret_access_key="b")
    with Stubber(client) as stub:
        stub.add_response("list_buckets", {"Buckets": [{"Name": "x"}]})
        assert client.list_buckets()["Buckets"][0]["Name"] == "x"
    assert "Signature=" in client.generate_presigned_url("get_object", Params={"Bucket": "b", "Key": "k"})


# ---- text and data


def pydantic():
    import pydantic

    class Model(pydantic.BaseModel):
        a: int
        b: list[str] = []

    assert Model.model_validate_json('{"a": "3"}').a == 3
    try:
        Model(a="x")
    except pydantic.ValidationError as error:
        assert error.error_count() == 1
    else:
        raise AssertionError("valid")


def SQLAlchemy():
    import sqlalchemy as sa

    engine = sa.create_engine("sqlite:///t.db")
    table = sa.Table("t", sa.MetaData(), sa.Column("a", sa.Integer, primary_key=True), sa.Column("b", sa.String))
    table.metadata.create_all(engine)
    with engine.begin() as c:
        c.execute(table.insert(), [{"b": "x"}, {"b": "y"}])
        assert c.execute(sa.select(sa.func.count()).select_from(table)).scalar() == 2


def lxml():
    import lxml
    from lxml import etree, html

    assert "/packages/" in lxml.__file__
    assert html.fromstring("<p>a<b>c").xpath("//b/text()") == ["c"]
    style = etree.XSLT(
        etree.XML(
            '<s:stylesheet version="1.0" xmlns:s="http://www.w3.org/1999/XSL/Transform">'
            '<s:template match="/"><o><s:value-of select="a/b"/></o></s:template></s:stylesheet>'
        )
    )
    assert style(etree.XML("<a><b>1</b></a>")).getroot().text == "1"


def beautifulsoup4():
    from bs4 import BeautifulSoup

    soup = BeautifulSoup("<ul><li class=x>1<li>2</ul>", "html.parser")
    assert soup.select_one("li.x").get_text().startswith("1")


def jinja2():
    import jinja2

    template = jinja2.Environment(autoescape=True).from_string("{% for i in x %}<{{ i }}>{% endfor %}")
    assert template.render(x=[1, "&"]) == "<1><&amp;>"


def PyYAML():
    import yaml

    assert yaml.safe_load("a: [1, {b: c}]") == {"a": [1, {"b": "c"}]}
    assert yaml.__with_libyaml__


def orjson():
    import orjson

    assert orjson.loads(orjson.dumps({"a": [1, None, 2.5]})) == {"a": [1, None, 2.5]}


def regex():
    import regex

    assert regex.findall(r"\p{Han}+", "漢字kana漢") == ["漢字", "漢"]


def tiktoken():
    import tiktoken

    ranks = {bytes([i]): i for i in range(256)} | {b"ab": 256}
    encoding = tiktoken.Encoding("own", pat_str=r"\w+|\W", mergeable_ranks=ranks, special_tokens={})
    assert encoding.encode("ab!") == [256, 33]


def cryptography():
    from cryptography import x509
    from cryptography.fernet import Fernet
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    box = Fernet(Fernet.generate_key())
    assert box.decrypt(box.encrypt(b"x")) == b"x"
    key = ec.generate_private_key(ec.SECP256R1())
    key.public_key().verify(key.sign(b"m", ec.ECDSA(hashes.SHA256())), b"m", ec.ECDSA(hashes.SHA256()))
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "isle")])
    request = x509.CertificateSigningRequestBuilder().subject_name(name).sign(key, hashes.SHA256())
    assert b"REQUEST" in request.public_bytes(serialization.Encoding.PEM)


def polars():
    import polars as pl

    frame = pl.DataFrame({"k": ["a", "b", "a"], "v": [1, 2, 3]})
    got = frame.lazy().group_by("k").agg(pl.col("v").sum()).sort("k").collect()
    assert got.rows() == [("a", 4), ("b", 2)]
    frame.write_parquet("p.parquet")
    assert pl.read_parquet("p.parquet").equals(frame)


def pyarrow():
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    table = pa.table({"a": list(range(10000))})
    pq.write_table(table, "a.parquet", compression="zstd")
    assert pc.sum(pq.read_table("a.parquet", memory_map=True)["a"]).as_py() == 49995000
    assert table.to_pandas()["a"].sum() == 49995000


def duckdb():
    import duckdb

    with duckdb.connect("d.duckdb") as db:
        db.execute("create table t as select i, i % 7 as k from range(100000) r(i)")
        assert db.execute("select count(*), sum(k) from t where k < 3").fetchone() == (42858, 42858)
        db.execute("copy t to 't.parquet'")
        assert db.execute("select max(i) from 't.parquet'").fetchone() == (99999,)


def scikit_learn():
    from sklearn.datasets import make_classification
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.model_selection import cross_val_score

    x, y = make_classification(300, random_state=1)
    for jobs in (1, 2):
        scores = cross_val_score(RandomForestClassifier(20, random_state=1, n_jobs=jobs), x, y, n_jobs=jobs, cv=3)
        assert scores.mean() > 0.8


def numba():
    import numba
    import numpy as np

    @numba.njit(parallel=True)
    def total(a):
        s = 0.0
        for i in numba.prange(a.size):
            s += a[i]
        return s

    assert total(np.ones(1000)) == 1000.0


def opencv_python_headless():
    import cv2
    import numpy as np

    image = np.zeros((100, 100, 3), np.uint8)
    cv2.circle(image, (50, 50), 20, (255, 255, 255), -1)
    assert cv2.imwrite("c.png", image)
    edges = cv2.Canny(cv2.imread("c.png", cv2.IMREAD_GRAYSCALE), 50, 150)
    assert len(cv2.findContours(edges, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)[0]) == 1


def networkx():
    import networkx as nx

    graph = nx.path_graph(10)
    assert nx.shortest_path(graph, 0, 9) == list(range(10))
    assert abs(sum(nx.pagerank(graph).values()) - 1) < 1e-6


def sympy():
    import sympy

    x = sympy.symbols("x")
    assert sympy.integrate(sympy.sin(x) ** 2, (x, 0, sympy.pi)) == sympy.pi / 2


# ---- documents


def openpyxl():
    import openpyxl

    book = openpyxl.Workbook()
    book.active.append(["a", 1, "=B1*2"])
    book.save("b.xlsx")
    assert openpyxl.load_workbook("b.xlsx").active["C1"].value == "=B1*2"


def XlsxWriter():
    import xlsxwriter

    with xlsxwriter.Workbook("x.xlsx") as book:
        sheet = book.add_worksheet()
        sheet.write_column("A1", [1, 2, 3])
        chart = book.add_chart({"type": "line"})
        chart.add_series({"values": "=Sheet1!$A$1:$A$3"})
        sheet.insert_chart("C1", chart)
    assert pathlib.Path("x.xlsx").read_bytes()[:2] == b"PK"


def reportlab():
    from reportlab.pdfgen import canvas

    page = canvas.Canvas("r.pdf")
    page.drawString(100, 700, "hello isle")
    page.save()


def pypdf():
    import pypdf

    writer = pypdf.PdfWriter()
    writer.add_blank_page(100, 100)
    writer.write("p.pdf")
    assert len(pypdf.PdfReader("p.pdf").pages) == 1


def pdfplumber():
    import pdfplumber

    reportlab()
    with pdfplumber.open("r.pdf") as document:
        assert document.pages[0].extract_text() == "hello isle"
        assert document.pages[0].to_image(resolution=50).original.size[0] > 100


def python_docx():
    import docx

    document = docx.Document()
    document.add_heading("T")
    document.save("d.docx")
    assert docx.Document("d.docx").paragraphs[0].text == "T"


def python_pptx():
    import pptx

    deck = pptx.Presentation()
    deck.slides.add_slide(deck.slide_layouts[0]).shapes.title.text = "T"
    deck.save("p.pptx")
    assert len(pptx.Presentation("p.pptx").slides) == 1


# ---- terminals and processes


def click():
    import click
    from click.testing import CliRunner

    @click.command()
    @click.option("--n", type=int)
    def main(n):
        click.echo(n * 2)

    assert CliRunner().invoke(main, ["--n", "4"]).output == "8\n"


def rich():
    from rich.console import Console
    from rich.table import Table

    table = Table("a", "b")
    table.add_row("1", "[red]2[/]")
    console = Console(file=io.StringIO(), width=40)
    console.print(table)
    assert "1" in console.file.getvalue()


def tqdm():
    import tqdm

    out = io.StringIO()
    assert sum(tqdm.tqdm(range(10), file=out)) == 45
    assert "10/10" in out.getvalue()


def psutil():
    import psutil

    me = psutil.Process()
    assert me.memory_info().rss > 0 and me.num_threads() >= 1
    assert psutil.virtual_memory().total > 0 and psutil.cpu_count() >= 1
    assert os.getpid() in psutil.pids()
    assert psutil.cpu_times().user >= 0


def psutil_net():
    import psutil

    assert "lo" in psutil.net_if_addrs()


def watch(**options):
    from watchdog.events import FileCreatedEvent, FileSystemEventHandler

    seen = []

    class Handler(FileSystemEventHandler):
        def on_created(self, event):
            seen.append(event.src_path)

    from watchdog.observers import Observer

    observer = Observer()
    if options.pop("only_created", False):
        options["event_filter"] = [FileCreatedEvent]
    observer.schedule(Handler(), ".", **options)
    observer.start()
    pathlib.Path("new").write_text("x")
    for _ in range(1500):
        if seen:
            break
        time.sleep(0.02)
    observer.stop()
    observer.join()
    assert any(path.endswith("new") for path in seen), seen


def watchdog():
    watch(only_created=True)


def watchdog_all_events():
    watch()


def watchdog_polling():
    from watchdog.observers.polling import PollingObserver

    assert PollingObserver(timeout=0.1)


# ----


def main(out, names):
    with open(out, "a") as log:
        for name in names:
            print(json.dumps({"begin": name}), file=log, flush=True)
            begun = time.monotonic()
            try:
                globals()[name.replace("-", "_")]()
            except Exception as error:
                traceback.print_exc()
                line = {"id": name, "outcome": "fail", "text": f"{type(error).__name__}: {error}"[:300]}
            else:
                line = {"id": name, "outcome": "pass"}
            line["ms"] = round(1000 * (time.monotonic() - begun))
            print(json.dumps(line), file=log, flush=True)
        print(json.dumps({"end": "smoke"}), file=log, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
