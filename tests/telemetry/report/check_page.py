# SPDX-License-Identifier: Apache-2.0
"""Reads a report as XML and holds it against the runs it is of: check_page.py PAGE RUN...

Well-formed, self-contained, no markup out of a run's own words, and every number of a curve is the one of metrics.jsonl
at that step.
"""
import json
import math
import os
import re
import sys
import xml.etree.ElementTree as ElementTree

HTML = "{http://www.w3.org/1999/xhtml}"
ALLOWED = set("html head meta title style body main header section p h1 h2 h3 small dl div dt dd span table thead tbody tr th "
              "td i b em br a nav ul li details summary figure figcaption svg path text polyline circle ellipse rect g code script button input output label select option".split())


def records(run, axis="step"):
    """{(phase id, name): {step: value}}, of whole lines; axis: or of these steps, where every line has them."""
    series = {}
    with open(os.path.join(run, "metrics.jsonl"), encoding="utf-8") as file:
        for line in file:
            try:
                record = json.loads(line)
            except ValueError:
                continue
            for name, value in record.items():
                if name not in ("step", "phase", "wall_s", "progress") and axis in record:
                    series.setdefault((record["phase"], name), {})[record[axis]] = value
    return series


def baselines(run):
    """{name of a result: its values}, of controllers that learnt nothing."""
    found = {}
    folder = os.path.join(run, "evaluation")
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        if not name.endswith(".baselines.json"):
            continue
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            for result in json.load(file)["results"]:
                for key, value in flat(result["result"]):
                    if not result["learnt"]:
                        found.setdefault("eval/" + key, []).append(value)
    return found


def flat(node, path=""):
    if isinstance(node, dict):
        for key, value in node.items():
            yield from flat(value, path + key + "/")
    elif isinstance(node, (int, float)):
        yield path[:-1], node


# a chart of memory, in MB: what was used and, dashed, what was planned, or the levels of the watch
MEMORY = {"resident": ("mem/rss", "mem/planned"), "arenas": ("mem/arenas", "mem/arenas_planned"),
          "resident, at most so far": ("mem/peak", None),
          "in use, as it is watched": ("mem/watched", "mem/warn_level", "mem/shed_level"),
          "processes of environments": ("mem/workers", "mem/workers_planned"),
          "allocated on the device": ("gpu/mem_allocated", "gpu/mem_planned"),
          "held of the device by this process": ("gpu/mem_reserved", None),
          "in use on the device, by all": ("gpu/mem_used", None)}
# not smoothed: numbers that a user set, or that stand for themselves
PLAIN = re.compile("lr$|charts/horizon_s$|(limits|multipliers|mem|amp)/")


def near(a, b):
    return a == b or math.isclose(a, b, rel_tol=1e-6)


def curve_numbers(group):
    x = [float(v) for v in group.get("data-x").split()]
    y = [float(v) for v in group.get("data-y").split()]
    assert len(x) == len(y) > 0
    assert x == sorted(x)
    line = group.find(HTML + "polyline")
    assert len(line.get("points").split()) == len(x), "as many places as numbers"
    for point in line.get("points").split():
        assert all(math.isfinite(float(v)) for v in point.split(","))
    return x, y


def short(v):
    """A number as the page tells it, near enough to be compared."""
    text = v.replace("\u2212", "-")
    factor = {"k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}.get(text[-1], 1)
    return float(text.rstrip("kMGT")) * factor


def check_last(figure, name, runs, axis):
    """Beside a chart of a single run stands the last number of it, as it was recorded."""
    told = [e.text for e in figure.find(HTML + "figcaption").iter(HTML + "em")]
    for values in (values for what, values in runs[0].items() if what[1] == name):
        last = [v for v in values.values() if v is not None and math.isfinite(v)][-1:]
        if told and last and math.isclose(short(told[0]), last[0], rel_tol=6e-3, abs_tol=1e-300):
            return
    assert not told, f"{name} over {axis}: {told} is not its last value"


RELIABILITY = ("Share of recorded positions inside", "level of the region")


def check_reliability(x, y, runs):
    """The curve is the last evaluation of a run."""
    def last(run, what):
        return [list(values.values())[-1] for i in range(1, len(x) + 1) for key, values in run.items()
                if key[1] == f"eval/reliability/{what}/{i}"]
    fits = [run for run in runs if len(last(run, "level")) == len(x)]
    assert any(all(map(near, x, last(run, "level"))) and all(map(near, y, last(run, "share"))) for run in fits), "reliability"


def check_curves(root, every, others):
    n_curves = n_points = 0
    drawn = set()
    for figure in root.iter(HTML + "figure"):
        chart = figure.find(HTML + "svg")
        if chart is None or chart.get("class") != "chart":
            continue
        name, axis = chart.get("data-name"), chart.get("data-x-name")
        told = [t.text for t in chart.iter(HTML + "text") if t.get("class") == "x name"]
        assert told == [axis], f"{name}: the x axis is not told: {told}"
        runs = every.get(axis)
        if runs is not None and len(runs) == 1 and name not in MEMORY:
            check_last(figure, name, runs, axis)
        for group in chart.iter(HTML + "g"):
            x, y = curve_numbers(group)
            n_curves += 1
            n_points += len(x)
            assert not PLAIN.match(name) or len(group.findall(HTML + "polyline")) == 1, f"{name} is smoothed"
            if runs is None:
                assert (name, axis) in (("RMSE", "horizon, s"), RELIABILITY)
                if (name, axis) == RELIABILITY and "ref" not in group.get("class"):
                    check_reliability(x, y, every["training steps"])
                continue
            if "ref" in group.get("class") and name.startswith("eval/"):
                assert any(near(y[0], v) for run in others for v in run.get(name, [])), f"{name}: no baseline has {y[0]}"
                continue
            if group.get("data-runs"):  # one curve of several runs: within what they recorded, and within its interval
                assert len(runs) >= int(group.get("data-runs")) > 1
                fits = [(run, key, values) for run in runs for key, values in run.items() if key[1] == name]
                low, high = ([float(v) for v in group.get(k).split()] for k in ("data-low", "data-high"))
                every_value = [v for _, _, values in fits for v in values.values() if v is not None]
                for l, v, h in zip(low, y, high):
                    slack = 1e-5 * max(1, abs(v))
                    assert l - slack <= v <= h + slack, (name, l, v, h)
                    assert min(every_value) - slack <= v <= max(every_value) + slack
                drawn.update(key for _, key, _ in fits)
                continue
            if name in MEMORY:
                keys = MEMORY[name][1:] if "ref" in group.get("class") else MEMORY[name][:1]
                fits = [what for run in runs for what, values in run.items() if what[1] in keys and
                        all(near(values.get(int(step), math.nan) / 1e6, v) for step, v in zip(x, y))]
                assert fits, f"{name}: these numbers are in no run"
                drawn.update(what for run in runs for what in run if what[1] in {key for _, key in fits})
                continue
            names = [name] if "ref" not in group.get("class") else ["limits/" + name.split("/", 1)[1]]
            fits = [key for run in runs for key, values in run.items() if key[1] in names and
                    all(values.get(int(step)) is not None and near(values[int(step)], v) for step, v in zip(x, y))]
            assert fits, f"{name}: these numbers are in no run"
            drawn.update(fits)
            values = [v for run in runs for key in fits for v in run.get(key, {}).values() if v is not None]
            if len(runs) == 1:
                assert near(max(y), max(values)) and near(min(y), min(values)), f"{name}: an extreme is lost"
    return n_curves, n_points, drawn


def pictures(run):
    folder = os.path.join(run, "evaluation")
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        if name.endswith(".pictures.json"):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                yield json.load(file)


def check_trajectories(root, folders):
    """Scenes say what they hold, and every vehicle of theirs is drawn."""
    n_vehicles = n_scenes = n_ways = n_unclear = 0
    for left in (p["trajectories"] for folder in folders for p in pictures(folder) if "trajectories" in p):
        last = left.pop("horizon")[-1]
        shares = [scene["share"][0] for scene in left.values()]
        assert shares == sorted(shares) and len(set(shares)) == len(shares)
        for scene in left.values():
            squares = []
            for v in scene["vehicle"].values():
                assert len(v["future"]) == len(v["predicted"]) == len(v["spread"]) == last + 1
                assert math.dist(v["history"][-1], v["pose"][:2]) < 0.01, "history ends where the vehicle is"
                squares.append(math.dist(v["future"][last], v["predicted"][last]) ** 2)
                ahead = math.atan2(v["constant"][0][1] - v["pose"][1], v["constant"][0][0] - v["pose"][0])
                if math.dist(v["constant"][0], v["pose"][:2]) > 1:
                    assert abs(math.remainder(ahead - v["pose"][2], 2 * math.pi)) < 0.05, "constant velocity is straight ahead"
                assert all(s > 0 for row in v["spread"] for s in row)
                ways = list(v.get("futures", {}).values())
                assert len(ways) == len(v.get("probability", [])) and all(len(way) == last + 1 for way in ways)
                if ways:
                    assert abs(sum(v["probability"]) - 1) < 0.01
                    mean = [sum(p * way[last][a] for p, way in zip(v["probability"], ways)) for a in (0, 1)]
                    assert math.dist(mean, v["predicted"][last]) < 0.1 + 0.001 * math.hypot(*mean), "the mean of all futures"
                n_ways += sum(p >= 0.0501 for p in v.get("probability", []))
                n_unclear += sum(0.0499 <= p < 0.0501 for p in v.get("probability", []))
            assert abs(math.sqrt(sum(squares) / len(squares)) - scene["rmse_m"][0]) < 0.01
            n_vehicles += len(scene["vehicle"])
            n_scenes += 1
    drawn = [g for g in root.iter(HTML + "g") if g.get("class") == "vehicle"]
    ways = sum(1 for g in drawn for p in g.iter(HTML + "path") if p.get("class") == "way")
    assert n_ways <= ways <= n_ways + n_unclear, f"{ways} futures are drawn, {n_ways} were left"
    assert len(drawn) == n_vehicles, f"{len(drawn)} vehicles are drawn, {n_vehicles} were left"
    assert len([f for f in root.iter(HTML + "figure") if (f.get("class") or "").startswith("scene paths")]) == n_scenes
    return n_scenes


def near_road(x, y, roads):
    best = math.inf
    for (ax, ay), (bx, by) in roads:
        long = (bx - ax) ** 2 + (by - ay) ** 2
        t = 0 if long == 0 else min(1, max(0, ((x - ax) * (bx - ax) + (y - ay) * (by - ay)) / long))
        best = min(best, math.hypot(x - ax - t * (bx - ax), y - ay - t * (by - ay)))
    return best


def check_traffic(root, folders):
    """Vehicles drive on roads; the first moment is drawn with every light and change of the shield, the film has all."""
    films = []
    for left in (p["traffic"] for folder in folders for p in pictures(folder) if "traffic" in p):
        points, film = left["road"], []
        roads = [(a[1:3], b[1:3]) for a, b in zip(points, points[1:]) if a[0] == b[0]]
        times = [m["time"][0] for m in left["moment"].values()]
        assert times == sorted(set(times)) and 1 <= len(times) <= 60
        for m in left["moment"].values():
            vehicles, lights = m.get("vehicle", []), m.get("signal", [])
            assert len({v[0] for v in vehicles}) == len(vehicles), "a vehicle is there twice"
            for v in vehicles:
                assert near_road(v[1], v[2], roads) < 0.5, "a vehicle beside the road"
                assert v[4] > 0 and v[5] > 0 and v[6] >= 0 and (v[7] is None or 0 <= v[7] <= 1) and v[8] in (0, 1, 2)
            for s in lights:
                assert near_road(s[0], s[1], roads) < 0.5 and s[4] in (0, 1, 2, 3) and s[5] in (0, 1, 2)
            changed = sum(v[8] == 2 for v in vehicles) + len({s[6] for s in lights if s[5] == 2})
            film.append((len(vehicles), sum(v[8] > 0 for v in vehicles), changed, len(lights), m.get("delay")))
        films.append((times, film))
    drawn = [d for d in root.iter(HTML + "div") if (d.get("class") or "").split()[:1] == ["film"]]
    assert len(drawn) == min(len(films), 4 * max(1, len(films) // len(folders))), f"{len(drawn)} films of {len(films)}"
    kept = []
    for div in drawn:
        told = json.loads(next(s for s in div.iter(HTML + "script")).text)
        frames = [(len(f["v"]) // 8, sum(mark > 0 for mark in f["v"][5::8]), sum(mark == 2 for mark in f["v"][5::8]) +
                   len(f["c"]), len(f["s"]), f.get("d")) for f in told["frame"]]
        fits = [film for times, film in films if len(times) == len(frames) and
                all(abs(a - f["t"]) < 0.01 for a, f in zip(times, told["frame"])) and
                all(a[:4] == b[:4] and (a[4] is None) == (b[4] is None) and (a[4] is None or abs(a[4][0] - b[4]) < 0.06)
                    for a, b in zip(film, frames))]
        assert fits, "a film that no run left"
        n, agents, changed, lights, _ = frames[0]
        svg = next(s for s in div.iter(HTML + "svg") if s.get("class") == "view")
        classes = [(e.get("class") or "").split() for e in svg.iter()]
        assert sum("body" in c for c in classes) == n and sum("agent" in c for c in classes) == agents
        assert sum("changed" in c for c in classes) == changed
        assert sum(e.get("d").count("M") for e in svg.iter() if (e.get("class") or "").startswith("mark")) == lights
        kept += [f[:4] for f in frames]
    return kept


def check_complete(runs, drawn):
    """What changes has a curve, evaluations apart."""
    for run in runs:
        for key, values in run.items():
            finite = {v for v in values.values() if v is not None and math.isfinite(v)}
            if len(finite) > 1 and not key[1].startswith(("eval/", "limits/")) and key[1] != "env_steps":
                assert key in drawn, f"{key} has no curve"


def main(path, *folders):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    assert text.startswith("<!DOCTYPE html>")
    root = ElementTree.fromstring(text)
    for element in root.iter():
        tag = element.tag.replace(HTML, "")
        assert tag in ALLOWED, f"an element <{tag}>"
        for name in element.attrib:
            assert not name.startswith("on") and name not in ("src", "action"), f"an attribute {name}"
            assert name != "href" or re.fullmatch("#[a-z0-9-]+", element.get(name)), f"a link to {element.get(name)}"
    anchors = {element.get("id") for element in root.iter() if element.get("id")}
    for link in root.iter(HTML + "a"):
        assert link.get("href")[1:] in anchors, f"a link to {link.get('href')}, which is not there"
    assert len([s for s in root.iter(HTML + "script") if s.get("type") is None]) == 1 and len(list(root.iter(HTML + "style"))) == 1
    for outside in ("http://", "https://", "url(", "@import"):
        assert outside not in text.replace("http://www.w3.org/", ""), f"{outside} in a self-contained page"
    words = "".join(root.itertext())
    every = {"training steps": [records(folder) for folder in folders],
             "environment steps": [records(folder, "env_steps") for folder in folders]}
    runs = every["training steps"]
    for folder, run in zip(folders, runs):
        assert os.path.basename(folder) in words, "the name of a run"
        for key in (k for k in run if not k[1].startswith(("env_steps", "shield/", "eval/shield/", "eval/cv_", "eval/sites/")) and k[1] not in sum(MEMORY.values(), ())):
            assert key[0] in words and (key[1].split("/")[-1] in words or key[1].endswith("/std") or
                                        key[1].split("/")[-1].isdigit() or key[1].endswith("/mean")), key
    n_curves, n_points, drawn = check_curves(root, every, [baselines(folder) for folder in folders])
    check_complete(runs, drawn)
    n_scenes = check_trajectories(root, folders)
    moments = check_traffic(root, folders)
    assert n_curves > 0
    print(f"{path}: {len(text)} bytes, {n_curves} curves, {n_points} points, {n_scenes} scenes, "
          f"moments (vehicles, agents, changed, lights) {moments}")


main(*sys.argv[1:])
