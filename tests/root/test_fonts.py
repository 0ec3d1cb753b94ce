"""Plots and pictures show Chinese, Japanese and Korean text with no setting, no warning and no font scan."""

from __future__ import annotations

import pytest
from conftest import Box

TEXT = "中文图表价格数据 東京売上日本語ひらがなカタカナ 한국어매출그래프"

# A scan of the fonts or a missing glyph is an error; so is every warning (python3 -W error).
STRICT = """
import logging, sys
class Loud(logging.Handler):
    def emit(self, record):
        sys.exit("said: " + record.getMessage())
logging.getLogger("matplotlib").addHandler(Loud(logging.WARNING))
import matplotlib.font_manager as fm
def scan(*_): sys.exit("fonts were scanned")
fm.FontManager.__init__ = scan
fm._load_fontmanager()
import matplotlib.pyplot as plt
"""

FAMILIES = {
    "nothing set": "",
    "SimHei, as many a program asks": 'plt.rcParams["font.sans-serif"] = ["SimHei"]',
    "one family that lacks the glyphs": 'plt.rcParams["font.family"] = "DejaVu Serif"',
    "Arial": 'plt.rcParams["font.family"] = ["Arial"]',
    "all settings reset": "plt.rcdefaults()",
    "a style": 'plt.style.use("ggplot")',
    "the default style": 'plt.style.use("default")',
}


@pytest.mark.parametrize("setting", FAMILIES.values(), ids=FAMILIES.keys())
def test_matplotlib(box: Box, setting: str):
    draw = f"""
{setting}
figure, axes = plt.subplots()
axes.plot([-2, 1, 3], label={TEXT!r})
axes.set_title({TEXT!r}, weight="bold")
axes.set_xlabel({TEXT!r}, style="italic")
axes.legend()
for kind in ("png", "svg", "pdf"):
    figure.savefig("chart." + kind)
"""
    box.python(STRICT + draw)
    assert (box.workspace / "chart.png").read_bytes().startswith(b"\x89PNG")
    assert {p.name for p in box.workspace.iterdir()} == {"chart.png", "chart.svg", "chart.pdf"}, "litter"


def test_seaborn(box: Box):
    box.python(
        STRICT
        + f"""
import pandas as pd, seaborn as sns
sns.set_theme()
sns.barplot(pd.DataFrame({{"月": ["一月", "二月"], "売上": [3, 4]}}), x="月", y="売上").set_title({TEXT!r})
plt.savefig("chart.png")
"""
    )


def test_each_glyph_differs_from_the_box_of_a_missing_one(box: Box):
    code = f"""
import matplotlib.font_manager as fm, matplotlib.ft2font as ft
from PIL import ImageFont
for path in fm.fontManager._find_fonts_by_props(fm.FontProperties())[1:]:
    font, picture = ft.FT2Font(path), ImageFont.truetype(path, 32)
    def drawn(c):
        mask = picture.getmask(c)
        return mask.size, bytes(mask)
    missing = drawn("\\U000F1234")
    for c in {TEXT!r}.replace(" ", ""):
        assert font.get_char_index(ord(c)) != 0 and drawn(c) != missing, (path, c)
    print(path.rsplit("/")[-1])
"""
    assert box.python(code) == "wqy-microhei.ttc\nwqy-zenhei.ttc\n"


def test_pillow_finds_fonts_by_name(box: Box):
    code = """
from PIL import Image, ImageDraw, ImageFont
for name in ("wqy-microhei.ttc", "wqy-zenhei.ttc", "DejaVuSans.ttf"):
    picture = Image.new("L", (200, 50), 255)
    ImageDraw.Draw(picture).text((5, 5), "中文 abc", font=ImageFont.truetype(name, 24), fill=0)
    assert picture.getextrema()[0] < 50
"""
    box.python(code)


def test_fontconfig_cache_is_warm(box: Box):
    for language in ("zh", "ja", "ko"):
        assert "WenQuanYi" in box.run("fc-list", f":lang={language}")
    assert box.run("fc-match", "-f", "%{family}", "sans-serif:lang=zh-cn").startswith("WenQuanYi")
    assert list(box.workspace.iterdir()) == [], "a cache was written"


def test_backend_needs_no_display(box: Box):
    code = "import matplotlib.pyplot as p; p.plot([1]); p.show(); print('after')"
    assert "after" in box.run("python3", "-W", "ignore", "-c", code)
