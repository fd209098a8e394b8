#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Waiting and delay where vehicles yield: the same nets of netconvert and the same flows in env_traffic and in SUMO,
half an hour each, steps of 0.5 s, means over seeds. 44 cases: T junctions, crossings, stop signs, right before
left, ramps, merges, roundabouts, left turns that yield at lights, grids.

    junctions.py --driver build/bench_env_traffic [--seeds 5] [--draw SEED] [--work DIR] [CASE_PREFIX ...]

--draw: 40 other cases, ten kinds of nets with lanes, speeds, angles, radii and demands drawn from a seed. No rule of
the simulator was chosen on them. A case is off if waiting differs by more than a factor of 2 and by 1.5 s or more. The
last table has the factors between the two simulators by kind: geometric means, and the smallest and largest one of
waiting (0.3 s added on both sides). Needs sumo, netconvert and netgenerate (Debian: sumo)."""
import argparse
import atexit
import concurrent.futures
import json
import math
import os
import random
import re
import shutil
import subprocess
import tempfile
import xml.etree.ElementTree as ElementTree

END_S, STEP_S, FAR_M = 1800, "0.5", 300
ARMS = {"w": (-FAR_M, 0), "s": (0, -FAR_M), "e": (FAR_M, 0), "n": (0, FAR_M)}
OPPOSITE = {"w": "e", "e": "w", "s": "n", "n": "s"}
LEFT = {"w": "n", "e": "s", "s": "w", "n": "e"}
RIGHT = {"w": "s", "e": "n", "s": "e", "n": "w"}
SPEEDS = (8.33, 11.11, 13.89, 16.67, 22.22)


def run(*words):
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def write(path, text):
    with open(path, "w", encoding="utf-8") as out:
        out.write(text)


def convert(base, nodes, edges, connections=None, options=()):
    write(base + ".nod.xml", "<nodes>" + nodes + "</nodes>")
    write(base + ".edg.xml", "<edges>" + edges + "</edges>")
    words = ["netconvert", "-n", base + ".nod.xml", "-e", base + ".edg.xml", "-o", base + ".net.xml",
             "--no-turnarounds", "true", "--xml-validation", "never", *options]
    if connections:
        write(base + ".con.xml", "<connections>" + connections + "</connections>")
        words += ["-x", base + ".con.xml"]
    run(*words)


def edge(name, begin, end, priority, lanes, speed, more=""):
    return (f'<edge id="{name}" from="{begin}" to="{end}" priority="{priority}" numLanes="{lanes}" speed="{speed}"'
            f'{more}/>')


def star(base, kind, arms, main_lanes, side_lanes, options=(), speed=13.89, turn=0):
    """One junction j; the roads from the west and the east are the main ones. turn: degrees that the side roads are
    off the right angle."""
    nodes, edges = f'<node id="j" x="0" y="0" type="{kind}"/>', ""
    for arm in arms:
        x, y = ARMS[arm]
        if arm in "sn":
            x, y = y * math.sin(math.radians(turn)), y * math.cos(math.radians(turn))
        nodes += f'<node id="{arm}" x="{x}" y="{y}"/>'
        is_main = arm in "we"
        priority = 3 if is_main and kind.startswith("priority") else 1
        lanes = main_lanes if is_main else side_lanes
        edges += edge(arm + "j", arm, "j", priority, lanes, speed) + edge("j" + arm, "j", arm, priority, lanes, speed)
    convert(base, nodes, edges, None, options)


def roundabout(base, lanes, radius=20):
    angle, nodes, edges = {"e": 0, "n": 90, "w": 180, "s": 270}, "", ""
    for arm, degrees in angle.items():
        cos, sin = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
        nodes += f'<node id="c{arm}" x="{radius * cos:.2f}" y="{radius * sin:.2f}" type="priority"/>'
        nodes += f'<node id="{arm}" x="{FAR_M * cos:.1f}" y="{FAR_M * sin:.1f}"/>'
    for arm, after in zip("enws", "nwse"):
        shape = " ".join(f"{radius * math.cos(math.radians(angle[arm] + t)):.2f},"
                         f"{radius * math.sin(math.radians(angle[arm] + t)):.2f}" for t in range(0, 91, 15))
        edges += edge("r" + arm, "c" + arm, "c" + after, 5, lanes, 8.33, f' shape="{shape}"')
        edges += edge(arm + "j", arm, "c" + arm, 1, lanes, 13.89) + edge("j" + arm, "c" + arm, arm, 1, lanes, 13.89)
    convert(base, nodes, edges + '<roundabout nodes="ce cn cw cs" edges="re rn rw rs"/>')


def ramp(base, lanes, speed, has_own_lane):
    nodes = ('<node id="a" x="-500" y="0"/><node id="m" x="0" y="0" type="priority"/><node id="b" x="700" y="0"/>'
             '<node id="r" x="-400" y="-90"/>')
    edges = edge("in", "a", "m", 9, lanes, speed) + edge("ramp", "r", "m", 3, 1, min(speed, 22.2))
    joined = '<connection from="{}" to="{}" fromLane="{}" toLane="{}"/>'
    if has_own_lane:
        nodes += '<node id="x" x="200" y="0" type="priority"/>'
        edges += edge("acc", "m", "x", 9, lanes + 1, speed) + edge("out", "x", "b", 9, lanes, speed)
        connections = joined.format("ramp", "acc", 0, 0)
        for k in range(lanes):
            connections += joined.format("in", "acc", k, k + 1) + joined.format("acc", "out", k + 1, k)
    else:
        edges += edge("out", "m", "b", 9, lanes, speed)
        connections = joined.format("ramp", "out", 0, 0)
        for k in range(lanes):
            connections += joined.format("in", "out", k, k)
    convert(base, nodes, edges, connections)


def grid(base, kind, lanes, length):
    run("netgenerate", "--grid", "--grid.number", "3", "--grid.length", str(length), "--grid.attach-length",
        str(length), "-L", str(lanes), "-j", kind, "-o", base + ".net.xml", "--no-turnarounds", "true")


def all_arms(shares):
    """Flows of a junction of four arms: vehicles an hour ahead, to the left and to the right of each."""
    flows = []
    for arm in "wesn":
        ahead, left, right = shares(arm)
        flows += [(arm + "j", "j" + OPPOSITE[arm], ahead), (arm + "j", "j" + LEFT[arm], left),
                  (arm + "j", "j" + RIGHT[arm], right)]
    return flows


def grid_flows(vehicles):
    ends = [(f"left{i}", f"A{i}") for i in range(3)] + [(f"right{i}", f"C{i}") for i in range(3)]
    ends += [(f"bottom{i}", "ABC"[i] + "0") for i in range(3)] + [(f"top{i}", "ABC"[i] + "2") for i in range(3)]
    return [(a + b, d + c, vehicles / (len(ends) - 1)) for a, b in ends for c, d in ends if (a, b) != (c, d)]


def cases():
    """(name, build(base), flows [(from, to, vehicles an hour)])"""
    found = []

    def add(name, build, flows):
        found.append((name, build, flows))

    def crossing(name, kind, lanes, main, side, share, is_equal):
        add(name, lambda base: star(base, kind, "wsen", lanes, lanes if is_equal else 1),
            all_arms(lambda arm: [(main if arm in "we" else side) * part for part in (1 - 2 * share, share, share)]))

    for sign, kind in (("prio", "priority"), ("stop", "priority_stop")):
        for lanes, load, main, left, to_left, to_right in ((1, "lo", 250, 50, 60, 60), (1, "hi", 400, 80, 90, 90),
                                                           (2, "lo", 500, 60, 60, 60), (2, "hi", 800, 80, 70, 70),
                                                           (3, "hi", 1000, 80, 60, 60)):
            add(f"tee_{sign}_{lanes}_{load}",
                lambda base, kind=kind, lanes=lanes: star(base, kind, "wse", lanes, 1),
                [("wj", "je", main), ("ej", "jw", main), ("ej", "js", left), ("sj", "jw", to_left),
                 ("sj", "je", to_right)])
        for lanes, load, main, side in ((1, "lo", 250, 80), (1, "hi", 400, 120), (2, "lo", 500, 80),
                                        (2, "hi", 800, 90)):
            crossing(f"cross_{sign}_{lanes}_{load}", kind, lanes, main, side, 0.15, False)
    for lanes, load, each in ((1, "lo", 120), (1, "mid", 220), (1, "hi", 290), (2, "hi", 350)):
        crossing(f"cross_rbl_{lanes}_{load}", "right_before_left", lanes, each, each, 0.15, True)
    for lanes, load, each in ((1, "lo", 120), (1, "hi", 230), (2, "hi", 300)):
        crossing(f"cross_allway_{lanes}_{load}", "allway_stop", lanes, each, each, 0.15, True)
    for lanes, load, speed, main, joining, has_own_lane in (
            (1, "fast_lo", 27.8, 500, 150, False), (1, "fast_hi", 27.8, 800, 250, False),
            (2, "fast_hi", 27.8, 1600, 250, False), (3, "fast_hi", 27.8, 2000, 250, False),
            (2, "acc", 27.8, 1600, 300, True), (1, "slow_lo", 13.89, 500, 200, False),
            (1, "slow_hi", 13.89, 800, 300, False), (2, "slow_hi", 13.89, 1400, 300, False)):
        add(f"ramp_{lanes}_{load}",
            lambda base, lanes=lanes, speed=speed, own=has_own_lane: ramp(base, lanes, speed, own),
            [("in", "out", main), ("ramp", "out", joining)])
    for lanes, load, each in ((1, "lo", 150), (1, "mid", 280), (1, "hi", 380), (2, "hi", 500)):
        add(f"round_{lanes}_{load}", lambda base, lanes=lanes: roundabout(base, lanes),
            all_arms(lambda arm, each=each: (each * .6, each * .2, each * .2)))
    for lanes, load, ahead, left in ((1, "lo", 200, 60), (1, "hi", 250, 90), (2, "lo", 400, 100), (2, "hi", 450, 120)):
        add(f"light_{lanes}_{load}",
            lambda base, lanes=lanes: star(base, "traffic_light", "wsen", lanes, lanes,
                                           ("--tls.left-green.time", "0", "--tls.cycle.time", "60")),
            all_arms(lambda arm, ahead=ahead, left=left: (ahead, left, ahead * .15)))
    for name, kind, lanes, each in (("grid_light", "traffic_light", 2, 350), ("grid_prio", "priority", 1, 160),
                                    ("grid_rbl", "right_before_left", 1, 140)):
        add(name, lambda base, kind=kind, lanes=lanes: grid(base, kind, lanes, 200), grid_flows(each))
    return found


def drawn_cases(seed, of_each=4):
    """As many cases of each kind, with lanes, speeds, angles and demands drawn from a seed."""
    found, draw = [], random.Random(seed)

    def add(kind, build, flows):
        found.append((f"{kind}_{sum(c[0].startswith(kind) for c in found)}", build, flows))

    for _ in range(of_each):
        for sign, kind in (("prio", "priority"), ("stop", "priority_stop")):
            lanes, speed, turn = draw.randint(1, 3), draw.choice(SPEEDS), draw.uniform(-30, 30)
            main, side = draw.uniform(150, 350) * (lanes + 0.3), draw.uniform(40, 100)
            left, share = draw.uniform(20, 80), draw.uniform(0.2, 0.8)
            add(f"tee_{sign}",
                lambda base, a=(kind, "wse", lanes, 1, (), speed, turn): star(base, *a),
                [("wj", "je", main), ("ej", "jw", main), ("ej", "js", left), ("sj", "jw", 2 * side * share),
                 ("sj", "je", 2 * side * (1 - share))])
            lanes, speed, turn = draw.randint(1, 2), draw.choice(SPEEDS), draw.uniform(-30, 30)
            main, side, share = draw.uniform(150, 300) * (lanes + 0.2), draw.uniform(40, 110), draw.uniform(0.05, 0.2)
            add(f"cross_{sign}", lambda base, a=(kind, "wsen", lanes, 1, (), speed, turn): star(base, *a),
                all_arms(lambda arm, m=main, s=side, x=share: [(m if arm in "we" else s) * part
                                                               for part in (1 - 2 * x, x, x)]))
        for kind, junction, most in (("cross_rbl", "right_before_left", 250), ("cross_allway", "allway_stop", 240)):
            lanes, speed, turn = draw.randint(1, 2), draw.choice(SPEEDS), draw.uniform(-30, 30)
            each, share = draw.uniform(80, most) * (1 + 0.2 * (lanes - 1)), draw.uniform(0.05, 0.2)
            add(kind, lambda base, a=(junction, "wsen", lanes, lanes, (), speed, turn): star(base, *a),
                all_arms(lambda arm, e=each, x=share: [e * part for part in (1 - 2 * x, x, x)]))
        lanes, speed, own = draw.randint(1, 3), draw.choice((13.89, 19.44, 22.22, 27.78, 33.33)), draw.random() < 0.25
        add("ramp", lambda base, a=(lanes, speed, own): ramp(base, *a),
            [("in", "out", draw.uniform(400, 750) * lanes), ("ramp", "out", draw.uniform(100, 280))])
        lanes, radius = draw.randint(1, 2), draw.uniform(14, 35)
        add("round", lambda base, a=(lanes, radius): roundabout(base, *a),
            all_arms(lambda arm, e=draw.uniform(120, 360): (e * .5, e * .25, e * .25)))
        lanes, speed, turn = draw.randint(1, 2), draw.choice(SPEEDS), draw.uniform(-20, 20)
        words = ("--tls.left-green.time", draw.choice(("0", "0", "6")), "--tls.cycle.time", draw.choice(("60", "90")))
        ahead, left = draw.uniform(120, 240) * lanes, draw.uniform(40, 100)
        add("light", lambda base, a=("traffic_light", "wsen", lanes, lanes, words, speed, turn): star(base, *a),
            all_arms(lambda arm, a=ahead, b=left: (a, b, a * .2)))
        kind, lanes = draw.choice(("traffic_light", "priority", "right_before_left")), draw.randint(1, 2)
        add("grid", lambda base, a=(kind, lanes, draw.uniform(120, 280)): grid(base, *a),
            grid_flows(draw.uniform(100, 180) * (lanes if kind == "traffic_light" else 1)))
    return found


def write_flows(base, flows):
    """Rates in whole thousandths a second: SUMO 1.15 rounds them, and never ends where one becomes 0."""
    text = "".join(f'<flow id="f{i}" from="{a}" to="{b}" begin="0" end="{END_S}" '
                   f'period="exp({max(0.001, q / 3600):.3f})" '
                   'departSpeed="max" departLane="best"/>' for i, (a, b, q) in enumerate(flows))
    write(base + ".rou.xml", "<routes>" + text + "</routes>")


def sumo(base, seed):
    trips = f"{base}.{seed}.trips.xml"
    said = subprocess.run(
        ["sumo", "-n", base + ".net.xml", "-r", base + ".rou.xml", "--seed", str(seed), "--step-length", STEP_S,
         "--end", str(END_S), "--time-to-teleport", "-1", "--tripinfo-output", trips,
         "--tripinfo-output.write-unfinished", "true", "--no-step-log", "true", "--xml-validation", "never",
         "--collision.check-junctions", "true", "--duration-log.statistics", "true", "--collision.action", "warn"],
        check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout
    elements = list(ElementTree.parse(trips).iter("tripinfo"))
    all_trips = [(float(t.get("waitingTime")), float(t.get("timeLoss")) + float(t.get("departDelay")))
                 for t in elements]
    arrived = sum(float(t.get("arrival")) >= 0 for t in elements)
    os.remove(trips)
    collisions = re.search(r"Collisions: (\d+)", said)
    n = len(all_trips)
    return {"wait": sum(t[0] for t in all_trips) / n, "delay": sum(t[1] for t in all_trips) / n, "arrived": arrived,
            "collisions": int(collisions.group(1)) if collisions else 0}


def ours(driver, base, seeds):
    said = subprocess.run([driver, "net", base + ".net.xml", base + ".rou.xml", "0", str(END_S), STEP_S, str(seeds)],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if said.returncode:
        raise SystemExit(f"{base}: {said.stderr[-1000:]}")
    rows = [json.loads(line) for line in said.stdout.splitlines()]
    return {"wait": sum(r["standing_s"] for r in rows) / len(rows),
            "delay": sum(r["delay_s"] for r in rows) / len(rows),
            "arrived": sum(r["finished"] for r in rows) / len(rows),
            "collisions": sum(r["collisions"] for r in rows)}


def kind_of(name):
    """tee_stop of tee_stop_2_hi, round of round_3"""
    words = name.split("_")
    return "_".join(words[:2]) if words[0] in ("tee", "cross") else words[0]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--driver", default="build/bench_env_traffic")
    p.add_argument("--seeds", type=int, default=5)
    p.add_argument("--work", metavar="DIR", help="folder that keeps the files (else they are removed at the end)")
    p.add_argument("--draw", type=int, metavar="SEED", help="other cases: 40 drawn from a seed")
    p.add_argument("--quick", action="store_true", help="one seed of three cases: its figures mean nothing")
    p.add_argument("case", nargs="*")
    a = p.parse_args()
    work = a.work or tempfile.mkdtemp(prefix="dtrain-bench-")
    if a.work is None:
        atexit.register(shutil.rmtree, work, ignore_errors=True)
    os.makedirs(work, exist_ok=True)
    known = cases() if a.draw is None else drawn_cases(a.draw)
    chosen = [c for c in known if not a.case or any(c[0].startswith(prefix) for prefix in a.case)]
    seeds, chosen = (1, chosen[:3]) if a.quick else (a.seeds, chosen)
    for name, build, flows in chosen:
        build(os.path.join(work, name))
        write_flows(os.path.join(work, name), flows)
    n_off, squares, collisions, kinds = 0, 0, [0, 0], {}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        theirs = {c[0]: [pool.submit(sumo, os.path.join(work, c[0]), s) for s in range(1, seeds + 1)] for c in chosen}
        mine = {c[0]: pool.submit(ours, a.driver, os.path.join(work, c[0]), seeds) for c in chosen}
        print("case               waiting   SUMO    delay   SUMO  arrived   SUMO  collisions SUMO")
        for name, _, _ in chosen:
            results = [f.result() for f in theirs[name]]
            wait, delay, arrived = (sum(r[key] for r in results) / seeds for key in ("wait", "delay", "arrived"))
            crashed = sum(r["collisions"] for r in results)
            o = mine[name].result()
            is_off = not wait / 2 <= o["wait"] <= 2 * wait and abs(o["wait"] - wait) >= 1.5
            n_off += is_off
            factor = (o["wait"] + .3) / (wait + .3)
            squares += math.log(factor) ** 2
            kinds.setdefault(kind_of(name), []).append((factor, o["delay"] / delay, o["arrived"] / arrived))
            collisions[0] += o["collisions"]
            collisions[1] += crashed
            print(f"{name:18} {o['wait']:7.2f} {wait:6.2f}  {o['delay']:7.2f} {delay:6.2f}  {o['arrived']:7.0f} "
                  f"{arrived:6.0f}  {o['collisions']:10.0f} {crashed:4}{'  off' if is_off else ''}", flush=True)
    print("kind          cases  waiting  from     to  delay  arrived")
    for kind, factors in kinds.items():
        waiting, delay, arrived = (math.prod(column) ** (1 / len(factors)) for column in zip(*factors))
        print(f"{kind:13} {len(factors):5}  {waiting:7.2f}  {min(factors)[0]:4.2f}  {max(factors)[0]:5.2f}  "
              f"{delay:5.2f}  {arrived:7.2f}")
    print(f"value collisions {collisions[0]:.0f} collisions target {collisions[1]} at most")
    print(f"value log_ratios {squares:.2f} sum_of_squares target {len(chosen) * math.log(2) ** 2:.1f} at most")
    print(f"value cases_off {n_off} of_{len(chosen)} target 0 at most")


if __name__ == "__main__":
    main()
