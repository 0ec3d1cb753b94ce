"""Writes the list of fonts that matplotlib in the sandbox starts with; runs once, inside the runtime root.

Families that programs often name, and that the sandbox does not have, lead to the nearest font it has: a plot
that asks for SimHei or Arial then draws with no warning.
"""

import dataclasses
import os
import shutil

PLACE = "/usr/share/isle/matplotlib"
os.environ["MPLCONFIGDIR"] = "/tmp/mpl"

from matplotlib import font_manager  # noqa: E402  (it reads the environment when imported)

STAND_INS = {
    "WenQuanYi Micro Hei": (
        "Microsoft YaHei",
        "PingFang SC",
        "Heiti SC",
        "STHeiti",
        "Noto Sans CJK SC",
        "Noto Sans CJK JP",
        "Noto Sans CJK KR",
        "Noto Sans SC",
        "Source Han Sans CN",
        "Source Han Sans SC",
        "Malgun Gothic",
        "NanumGothic",
        "MS Gothic",
        "Yu Gothic",
        "IPAexGothic",
        "Arial Unicode MS",
    ),
    "WenQuanYi Zen Hei": ("SimHei", "SimSun", "KaiTi", "FangSong"),
    "DejaVu Sans": ("Arial", "Helvetica", "Liberation Sans", "Verdana"),
    "DejaVu Serif": ("Times New Roman", "Times", "Liberation Serif"),
    "DejaVu Sans Mono": ("Courier New", "Consolas", "Liberation Mono"),
}

manager = font_manager.FontManager()
known = {entry.name for entry in manager.ttflist}
for family, names in STAND_INS.items():
    for entry in [e for e in manager.ttflist if e.name == family]:
        for name in names:
            if name not in known:
                manager.ttflist.append(dataclasses.replace(entry, name=name))

for family in ("DejaVu Sans", "WenQuanYi Micro Hei", "WenQuanYi Zen Hei"):
    assert family in known, f"the runtime root lacks the font {family}"

font_manager.json_dump(manager, PLACE + "/fontlist.json")
shutil.rmtree("/tmp/mpl", ignore_errors=True)
