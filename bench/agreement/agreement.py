#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Agreement of env_traffic with SUMO on generated nets: delay, arrived vehicles and queue of the same files under the
same controllers, means over seeds. Nets: netgenerate's grids, spiders and random nets; netconvert's junctions with
every kind of link (permissive, shared, protected, priority, stop, right before left, roundabout, ramp, short edges,
closely spaced signals).

    agreement.py --driver build/bench_env_traffic [--dtrain build/dtrain] [--seeds 5] [--work DIR] [CASE_PREFIX ...]

Controllers: the program of the net; with --dtrain also the rules controller_greedy and controller_max_pressure, on
nets with signals. A figure agrees within 10 %, or within what sampling explains (two standard errors of the difference
of the means), or if both are negligible (1 s of delay, half a vehicle of queue). Stuck: vehicles that stood first in
their lane for 300 s (SUMO: that stood as long and had not arrived). Needs sumo, netconvert, netgenerate, duarouter
(Debian: sumo)."""
import argparse
import atexit
import concurrent.futures
import json
import math
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "junctions"))
import junctions as nets  # pylint: disable=wrong-import-position

END_S = 1200
KEYS = ("delay", "arrived", "queue")
NEGLIGIBLE = {"delay": 1.0, "arrived": 2.0, "queue": 0.5}


def netgenerate(base, kind, *words):
    nets.run("netgenerate", *words, "-j", kind, "-o", base + ".net.xml", "--no-turnarounds", "true",
             "--tls.cycle.time", "60")


def random_trips(base, seed, rate):
    """Poisson departures between edges far apart, with the routes of duarouter on randomly weighted edges."""
    draw = random.Random(seed)
    root = ElementTree.parse(base + ".net.xml").getroot()
    length = {e.get("id"): float(e.find("lane").get("length")) for e in root.iter("edge")
              if e.get("function") is None}
    ends = sorted(e for e in length if length[e] >= 30)
    text, t = "", draw.expovariate(rate)
    for i in range(100000):
        if t >= END_S:
            break
        a, b = draw.sample(ends, 2)
        text += f'<trip id="{i}" depart="{t:.2f}" from="{a}" to="{b}" departLane="best" departSpeed="max"/>'
        t += draw.expovariate(rate)
    nets.write(base + ".trips.xml", "<routes>" + text + "</routes>")
    nets.run("duarouter", "-n", base + ".net.xml", "--route-files", base + ".trips.xml", "-o", base + ".rou.xml",
             "--ignore-errors", "true", "--seed", "1", "--weights.random-factor", "2", "--xml-validation", "never")


def drawn_vehicles(base, name, flows):
    """Poisson departures of flows (from, to, vehicles an hour), the same ones on both sides."""
    draw, due = random.Random(name), []
    for a, b, q in flows:
        t = draw.expovariate(q / 3600)
        while t < END_S:
            due.append((t, a, b))
            t += draw.expovariate(q / 3600)
    text = "".join(f'<trip id="{i}" depart="{t:.2f}" from="{a}" to="{b}" departLane="best" departSpeed="max"/>'
                   for i, (t, a, b) in enumerate(sorted(due)))
    nets.write(base + ".rou.xml", "<routes>" + text + "</routes>")


def signals_in_row(base, lanes, apart):
    """A main street over two signals that are this far apart, a side street at each."""
    nodes = (f'<node id="a" x="0" y="0" type="traffic_light"/><node id="b" x="{apart}" y="0" type="traffic_light"/>'
             f'<node id="w" x="-300" y="0"/><node id="e" x="{apart + 300}" y="0"/>')
    edges = "".join(nets.edge(x + y, x, y, 3, lanes, 13.89) for x, y in ("wa", "ab", "be", "eb", "ba", "aw"))
    for node, x in (("a", 0), ("b", apart)):
        nodes += f'<node id="{node}n" x="{x}" y="300"/><node id="{node}s" x="{x}" y="-300"/>'
        for arm in "ns":
            edges += nets.edge(node + arm + "j", node + arm, node, 1, 1, 13.89)
            edges += nets.edge("j" + node + arm, node, node + arm, 1, 1, 13.89)
    nets.convert(base, nodes, edges, None, ("--tls.cycle.time", "60"))


def row_flows(main, side):
    return [("wa", "be", main), ("eb", "aw", main), ("asj", "jan", side), ("anj", "jas", side), ("bsj", "jbn", side),
            ("bnj", "jbs", side), ("asj", "be", side / 3), ("bnj", "aw", side / 3), ("wa", "jbn", side / 3),
            ("eb", "jan", side / 3)]


def short_edges(base, lanes, apart):
    """A priority road over three side roads, this far apart."""
    nodes, edges, names = '<node id="w" x="-300" y="0"/>', "", "wabce"
    for i, node in enumerate("abc"):
        nodes += f'<node id="{node}" x="{i * apart}" y="0" type="priority"/><node id="s{node}" x="{i * apart}" y="-250"/>'
        edges += nets.edge("s" + node + "j", "s" + node, node, 1, 1, 11.11)
        edges += nets.edge("js" + node, node, "s" + node, 1, 1, 11.11)
    nodes += f'<node id="e" x="{2 * apart + 300}" y="0"/>'
    for x, y in zip(names, names[1:]):
        edges += nets.edge(x + y, x, y, 3, lanes, 13.89) + nets.edge(y + x, y, x, 3, lanes, 13.89)
    nets.convert(base, nodes, edges)


def short_flows(main, side):
    return [("wa", "ce", main), ("ec", "aw", main)] + \
        [(a, b, side) for a, b in (("saj", "ce"), ("sbj", "aw"), ("scj", "ce"), ("wa", "jsb"), ("ec", "jsa"),
                                   ("wa", "jsc"))]


def cases():
    """(name, build(base), flows, or (seed, trips a second), has signals)"""
    found = []

    def add(name, build, demand, has_signals=False):
        found.append((name, build, demand, has_signals))

    kinds = (("light", "traffic_light"), ("prio", "priority"), ("rbl", "right_before_left"))
    for i, (short, kind) in enumerate(kinds):
        for lanes, number, length in ((1, 4, 150), (2, 3, 220)):
            add(f"grid_{short}_{lanes}",
                lambda base, a=(kind, lanes, number, length): netgenerate(
                    base, a[0], "--grid", "--grid.number", str(a[2]), "--grid.length", str(a[3]),
                    "--grid.attach-length", "150", "-L", str(a[1])), (10 * i + lanes, 0.25 * (1 + lanes)), i == 0)
        for arms, circles, seed in ((5, 2, 1), (7, 3, 2)):
            add(f"spider_{short}_{arms}",
                lambda base, a=(kind, arms, circles): netgenerate(
                    base, a[0], "--spider", "--spider.arm-number", str(a[1]), "--spider.circle-number", str(a[2]),
                    "--spider.space-radius", "120", "-L", "1"), (20 + 10 * i + seed, 0.3), i == 0)
        for seed in (3, 4, 5):
            add(f"random_{short}_{seed}",
                lambda base, a=(kind, seed): netgenerate(
                    base, a[0], "--rand", "--rand.iterations", "40", "--seed", str(a[1]), "-L", str(1 + a[1] % 2),
                    "--rand.min-distance", "80", "--rand.max-distance", "220"), (50 + 10 * i + seed, 0.3), i == 0)
    for name, lanes, left_s, ahead, left in (("permissive", 1, 0, 220, 70), ("permissive", 2, 0, 420, 110),
                                             ("permissive", 3, 0, 600, 110), ("protected", 2, 6, 400, 100),
                                             ("protected", 3, 6, 600, 120)):
        add(f"left_{name}_{lanes}",
            lambda base, a=(lanes, left_s): nets.star(base, "traffic_light", "wsen", a[0], a[0], (
                "--tls.left-green.time", str(a[1]), "--tls.cycle.time", "60")),
            nets.all_arms(lambda arm, a=ahead, b=left: (a, b, a * .15)), True)
    for name, kind, lanes, main, side in (("prio", "priority", 1, 320, 90), ("prio", "priority", 2, 600, 80),
                                          ("stop", "priority_stop", 1, 300, 80), ("rbl", "right_before_left", 1, 200, 200),
                                          ("allway", "allway_stop", 1, 180, 180)):
        add(f"cross_{name}_{lanes}", lambda base, a=(kind, lanes): nets.star(base, a[0], "wsen", a[1], 1),
            nets.all_arms(lambda arm, m=main, s=side: [(m if arm in "we" else s) * x for x in (0.7, 0.15, 0.15)]))
    for lanes, radius, each in ((1, 20, 300), (2, 20, 450), (2, 32, 450)):
        add(f"round_{lanes}_{radius}", lambda base, a=(lanes, radius): nets.roundabout(base, *a),
            nets.all_arms(lambda arm, e=each: (e * .6, e * .2, e * .2)))
    for name, lanes, speed, own, main in (("merge", 1, 27.8, False, 700), ("merge", 2, 13.89, False, 1200),
                                          ("lane", 2, 27.8, True, 1600)):
        add(f"ramp_{name}_{lanes}", lambda base, a=(lanes, speed, own): nets.ramp(base, *a),
            [("in", "out", main), ("ramp", "out", 220)])
    for apart in (14, 40):
        add(f"short_{apart}", lambda base, a=apart: short_edges(base, 1, a), short_flows(300, 50))
        add(f"signals_{apart}", lambda base, a=apart: signals_in_row(base, 2, a), row_flows(420, 130), True)
    return found


def ours(driver, base, seeds):
    said = subprocess.run([driver, "net", base + ".net.xml", base + ".rou.xml", "0", str(END_S), "1", str(seeds)],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if said.returncode:
        raise SystemExit(f"{base}: {said.stderr[-1000:]}")
    return [{"delay": r["delay_s"], "arrived": r["finished"], "queue": r["standing_s"] * r["inserted"] / END_S,
             "collisions": r["collisions"], "stuck": r["stuck"]} for r in map(json.loads, said.stdout.splitlines())]


def theirs(base, seed):
    trips, stats = f"{base}.{seed}.trips.xml", f"{base}.{seed}.stats.xml"
    nets.run("sumo", "-n", base + ".net.xml", "-r", base + ".rou.xml", "--seed", str(seed), "--end", str(END_S),
             "--time-to-teleport", "-1", "--tripinfo-output", trips, "--tripinfo-output.write-unfinished", "true",
             "--no-step-log", "true", "--xml-validation", "never", "--statistic-output", stats,
             "--collision.check-junctions", "true", "--collision.action", "warn")
    trip = [(float(t.get("waitingTime")), float(t.get("timeLoss")) + float(t.get("departDelay")),
             float(t.get("arrival")) >= 0) for t in ElementTree.parse(trips).iter("tripinfo")]
    root = ElementTree.parse(stats).getroot()
    waiting = int(root.find("vehicles").get("waiting"))
    os.remove(trips)
    return {"delay": sum(t[1] for t in trip) / len(trip), "arrived": sum(t[2] for t in trip),
            "queue": sum(t[0] for t in trip) / END_S, "collisions": int(root.find("safety").get("collisions")),
            "stuck": sum(t[0] >= 300 and not t[2] for t in trip), "waiting": waiting}


def by_rule(dtrain, base, rule, env, seeds):
    """Either environment steered by a rule, through dtrain eval."""
    if env == "env_sumo":
        nets.write(base + ".sumocfg", f'<configuration><input><net-file value="{base}.net.xml"/><route-files '
                   f'value="{base}.rou.xml"/></input><time><begin value="0"/><end value="{END_S}"/></time>'
                   '</configuration>')
        sets = [f"env_sumo.sumocfg={base}.sumocfg"]
    else:
        sets = ["env_traffic.scenario=net", "env_traffic.control=signals", f"env_traffic.episode_s={END_S}",
                f"env_traffic.net_file={base}.net.xml", f"env_traffic.routes_file={base}.rou.xml", "env_traffic.dt_s=1"]
    words = [dtrain, "eval", "--plugin", "phase2_ppo", "-q", "--json", "--seeds",
             ",".join(str(k + 1) for k in range(seeds)), "--episodes", "1"]
    for pair in [f"env.id={env}", f"models.controller={rule}", *sets]:
        words += ["--set", pair]
    said = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if said.returncode:
        raise SystemExit(f"{base}: {rule}: {said.stderr[-1000:]}")
    m = {key: value["values"] for key, value in json.loads(said.stdout)["metrics"].items()}
    return [{"delay": m["strict_delay_s"][k], "arrived": m["finished"][k],
             "queue": m["waiting_s"][k] * (m["demand"][k] - m["never_inserted"][k]) / END_S,
             "collisions": m["collisions"][k], "stuck": m["stuck"][k]} for k in range(seeds)]


def differs(key, a, b):
    """Means of two lists of figures: their ratio, and whether they agree."""
    x, y = statistics.fmean(a), statistics.fmean(b)
    error = math.sqrt((statistics.pvariance(a) + statistics.pvariance(b)) / max(1, len(a) - 1))
    off = abs(x - y)
    return x / y if y else math.inf if x else 1, off > max(0.1 * y, 2 * error, NEGLIGIBLE[key])


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--driver", default="build/bench_env_traffic")
    p.add_argument("--dtrain", help="also by rules, through this program")
    p.add_argument("--seeds", type=int, default=5)
    p.add_argument("--work", metavar="DIR", help="folder that keeps the files (else they are removed at the end)")
    p.add_argument("--quick", action="store_true", help="one seed of three cases: its figures mean nothing")
    p.add_argument("case", nargs="*")
    a = p.parse_args()
    work = os.path.abspath(a.work or tempfile.mkdtemp(prefix="dtrain-bench-"))
    if a.work is None:
        atexit.register(shutil.rmtree, work, ignore_errors=True)
    os.makedirs(work, exist_ok=True)
    chosen = [c for c in cases() if not a.case or any(c[0].startswith(prefix) for prefix in a.case)]
    seeds, chosen = (1, chosen[:3]) if a.quick else (a.seeds, chosen)
    jobs = []
    for name, build, demand, has_signals in chosen:
        base = os.path.join(work, name)
        build(base)
        if isinstance(demand, tuple):
            random_trips(base, *demand)
        else:
            drawn_vehicles(base, name, demand)
        jobs.append((name, "program", base))
        if has_signals and a.dtrain:
            jobs += [(name, "controller_greedy", base), (name, "controller_max_pressure", base)]
    good, collisions, locked = {}, [0, 0], 0  # by controller: for each case, whether delay, arrivals, queue and all agree
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        running = []
        for name, rule, base in jobs:
            if rule == "program":
                running.append((pool.submit(ours, a.driver, base, seeds),
                                [pool.submit(theirs, base, s) for s in range(1, seeds + 1)]))
            else:
                running.append((pool.submit(by_rule, a.dtrain, base, rule, "env_traffic", seeds),
                                pool.submit(by_rule, a.dtrain, base, rule, "env_sumo", seeds)))
        print("case              controller     delay   SUMO  arrived   SUMO   queue   SUMO  collisions SUMO  stuck SUMO")
        for (name, rule, _), (one, other) in zip(jobs, running):
            o, t = one.result(), [f.result() for f in other] if isinstance(other, list) else other.result()
            mean = {k: (statistics.fmean(r[k] for r in o), statistics.fmean(r[k] for r in t)) for k in KEYS}
            off = [k for k in KEYS if differs(k, [r[k] for r in o], [r[k] for r in t])[1]]
            crashed, stuck = ([sum(r[k] for r in side) for side in (o, t)] for k in ("collisions", "stuck"))
            good.setdefault(rule, []).append([k not in off for k in KEYS] + [not off])
            locked += stuck[0] > 0 and stuck[1] == 0
            collisions = [collisions[0] + crashed[0], collisions[1] + crashed[1]]
            print(f"{name:17} {rule.replace('controller_', ''):12}"
                  + "  {:6.1f} {:6.1f}   {:6.0f} {:6.0f}  {:6.1f} {:6.1f}".format(*[v for k in KEYS for v in mean[k]])
                  + f"  {crashed[0]:10.0f} {crashed[1]:4.0f}  {stuck[0]:5.0f} {stuck[1]:4.0f}"
                  + ("  off: " + ", ".join(off) if off else ""), flush=True)
    for rule, cases_of in good.items():
        share = [sum(column) / len(cases_of) for column in zip(*cases_of)]
        for k, value in zip(KEYS + ("all",), share):
            print(f"value agreement_{rule.replace('controller_', '')}_{k} {value:.2f} share_of_{len(cases_of)} target 0.9")
    print(f"value agreement_stuck {locked} cases_stuck_only_here target 0 at most")
    print(f"value agreement_collisions {collisions[0]:.0f} collisions target {collisions[1]:.0f} at most")


if __name__ == "__main__":
    main()
