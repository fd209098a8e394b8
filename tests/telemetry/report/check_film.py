# SPDX-License-Identifier: Apache-2.0
"""Reads a film of `dtrain render` as XML: check_film.py FILE.html MOMENTS SECONDS, or check_film.py FILE.svg..."""
import json
import math
import sys
import xml.etree.ElementTree as ElementTree

HTML, SVG = "{http://www.w3.org/1999/xhtml}", "{http://www.w3.org/2000/svg}"
NUMBERS = 8  # of a vehicle


def check_vehicles(frames, size):
    moved = 0
    before = {}
    for frame in frames:
        v, now = frame["v"], {}
        assert len(v) % NUMBERS == 0
        for k in range(0, len(v), NUMBERS):
            name, x, y, turn, color, mark, length, width = v[k:k + NUMBERS]
            assert name not in now, "a vehicle is there twice"
            now[name] = (x / 10, y / 10)
            assert -1 <= x / 10 <= size[0] + 1 and -1 <= y / 10 <= size[1] + 1, "a vehicle outside the picture"
            assert color in (0, 1, 2, 3, 4) and mark in (0, 1, 2) and length > 0 and width > 0 and -3600 <= turn <= 3600
        for name, place in now.items():
            if name in before:
                far = math.dist(place, before[name])
                assert far < 40, f"vehicle {name} jumps {far} m"
                moved += far > 0.05
        before = now
    assert moved > 0, "nothing moves"


def check_html(path, moments, seconds):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    root = ElementTree.fromstring(text)
    for outside in ("http://", "https://", "url(", "@import", "src=", "href="):
        assert outside not in text.replace("http://www.w3.org/", ""), f"{outside} in a self-contained page"
    svg = next(s for s in root.iter(HTML + "svg") if s.get("class") == "view")
    size = [float(v) for v in svg.get("viewBox").split()[2:]]
    film = json.loads(next(s for s in root.iter(HTML + "script") if s.get("class") == "film-data").text)
    frames = film["frame"]
    assert len(frames) == moments and frames[0]["t"] == 0 and abs(frames[-1]["t"] - seconds) < 0.01, (len(frames), frames[-1]["t"])
    assert all(a["t"] < b["t"] for a, b in zip(frames, frames[1:]))
    assert all(len(f["s"]) == len(film["mark"]) and set(f["s"]) <= set("0123") for f in frames)
    if film["mark"]:
        assert len({f["s"] for f in frames}) > 1, "lights that never change"
    assert len(svg.findall(f".//{HTML}rect")) == len(frames[0]["v"]) / NUMBERS, "the first moment is there without a script"
    check_vehicles(frames, size)


def check_svg(paths):
    seen = set()
    for path in paths:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        root = ElementTree.fromstring(text)
        assert root.tag == SVG + "svg" and root.find(SVG + "style") is not None
        assert float(root.get("width")) > 100 and float(root.get("height")) > 50
        assert len(root.findall(f".//{SVG}rect")) > 0
        seen.add(text)
    assert len(seen) == len(paths), "the same moment twice"


if sys.argv[1].endswith(".svg"):
    check_svg(sys.argv[1:])
else:
    check_html(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))
