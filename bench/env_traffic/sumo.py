#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The same small nets in env_traffic and in SUMO. Krauss, steps of 1 s; compares flow, mean speed and strict delay
(time loss and depart delay of all that are due), means over seeds; each within 10 %.

  signal  built by either side: four arms of 400 m, one lane, straight on, a fixed-time signal of 60 s (26 s green, 3 s
          yellow, 1 s all red), Poisson arrivals
  pair    the same files for both sides: two signals in a row with turns, as netconvert makes them (tests/fixtures/sumo)
  corner  the same files: a side street that joins a main street before a signal

    sumo.py --driver build/bench_env_traffic [--hours 2] [--seeds 5]

Needs sumo and netconvert (Debian: sumo)."""
import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

LIMIT = 13.89
HALF = 7.2  # line to centre, as in env_traffic: a lane of 3.2 m and 4 m
ARMS = {"w": (-1, 0), "s": (0, -1), "e": (1, 0), "n": (0, 1)}
OPPOSITE = {"w": "e", "s": "n", "e": "w", "n": "s"}


def write(path, text):
    with open(path, "w", encoding="utf-8") as out:
        out.write(text)


def build(folder):
    far = 400 + HALF
    nodes = '<nodes><node id="c" x="0" y="0" type="traffic_light"/>'
    edges, connections = "<edges>", "<connections>"
    for arm, (x, y) in ARMS.items():
        nodes += f'<node id="{arm}" x="{x * far}" y="{y * far}" type="dead_end"/>'
        edges += f'<edge id="{arm}c" from="{arm}" to="c" numLanes="1" speed="{LIMIT}"/>'
        edges += f'<edge id="c{arm}" from="c" to="{arm}" numLanes="1" speed="{LIMIT}"/>'
        connections += f'<connection from="{arm}c" to="c{OPPOSITE[arm]}" fromLane="0" toLane="0"/>'
    write(f"{folder}/n.nod.xml", nodes + "</nodes>")
    write(f"{folder}/n.edg.xml", edges + "</edges>")
    write(f"{folder}/n.con.xml", connections + "</connections>")
    subprocess.run(["netconvert", "-n", f"{folder}/n.nod.xml", "-e", f"{folder}/n.edg.xml", "-x",
                    f"{folder}/n.con.xml", "-o", f"{folder}/n.net.xml", "--no-turnarounds", "true"],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    links = {}  # index of the link in the signal, by arm
    for c in ElementTree.parse(f"{folder}/n.net.xml").iter("connection"):
        if c.get("tl") is not None:
            links[c.get("from")[0]] = int(c.get("linkIndex"))

    def state(letter, street):
        text = ["r"] * len(links)
        for arm, index in links.items():
            if arm in street:
                text[index] = letter
        return "".join(text)

    program = '<additional><tlLogic id="c" type="static" programID="fixed" offset="0">'
    for street in ("we", "sn"):
        program += f'<phase duration="26" state="{state("G", street)}"/>'
        program += f'<phase duration="3" state="{state("y", street)}"/>'
        program += f'<phase duration="1" state="{"r" * len(links)}"/>'
    write(f"{folder}/n.add.xml", program + "</tlLogic></additional>")


def simulate(folder, flow, hours, seed):
    draw = random.Random(seed)
    due = []
    for arm in ARMS:
        t = draw.expovariate(flow / 3600)
        while t < 3600 * hours:
            due.append((t, arm))
            t += draw.expovariate(flow / 3600)
    due.sort()
    routes = ('<routes><vType id="car" carFollowModel="Krauss" accel="2.6" decel="4.5" sigma="0.5" tau="1" minGap="2.5" '
              'length="5" maxSpeed="55" speedFactor="1" speedDev="0"/>')
    for arm in ARMS:
        routes += f'<route id="{arm}" edges="{arm}c c{OPPOSITE[arm]}"/>'
    for i, (t, arm) in enumerate(due):
        routes += f'<vehicle id="{i}" type="car" route="{arm}" depart="{t:.2f}" departSpeed="max"/>'
    write(f"{folder}/n.rou.xml", routes + "</routes>")
    subprocess.run(["sumo", "-n", f"{folder}/n.net.xml", "-r", f"{folder}/n.rou.xml", "-a", f"{folder}/n.add.xml",
                    "--seed", str(seed), "--step-length", "1", "--end", str(int(3600 * hours)), "--time-to-teleport",
                    "-1", "--tripinfo-output", f"{folder}/trips.xml", "--tripinfo-output.write-unfinished", "true",
                    "--no-step-log", "true", "--no-warnings", "true"],
                   check=True, stdout=subprocess.DEVNULL)
    return read_trips(folder, {str(i): t for i, (t, _) in enumerate(due)}, 3600 * hours)


def read_trips(folder, due, end):
    """Means of one run; due: departure of every vehicle, by its name."""
    seen, loss, path, driven, arrived = set(), 0.0, 0.0, 0.0, 0
    for trip in ElementTree.parse(f"{folder}/trips.xml").iter("tripinfo"):
        seen.add(trip.get("id"))
        loss += float(trip.get("timeLoss")) + float(trip.get("departDelay"))
        path += float(trip.get("routeLength"))
        driven += float(trip.get("duration"))
        arrived += float(trip.get("arrival")) >= 0
    loss += sum(end - t for name, t in due.items() if name not in seen)
    return {"flow_vph": arrived / end * 3600, "speed_mps": path / driven, "delay_s": loss / len(due)}


# Vehicles per hour between two edges of the nets in tests/fixtures/sumo.
DEMAND = {
    "pair": {("west_a", "b_east"): 600, ("east_b", "a_west"): 500, ("a_north_a", "a_a_south"): 150,
             ("b_south_b", "b_b_north"): 150, ("b_south_b", "a_west"): 100, ("b_north_b", "b_east"): 100},
    "corner": {("west_m", "c_east"): 400, ("west_m", "c_north"): 250, ("side_m", "c_east"): 120,
               ("south_c", "c_north"): 200, ("south_c", "c_east"): 100},
}


def write_trips(folder, name, hours):
    """Poisson departures, the same ones on both sides."""
    draw = random.Random(name)
    due = []
    for (start, end), flow in DEMAND[name].items():
        t = draw.expovariate(flow / 3600)
        while t < 3600 * hours:
            due.append((t, start, end))
            t += draw.expovariate(flow / 3600)
    due.sort()
    text = '<routes><vType id="car" speedDev="0.1"/>'
    for i, (t, start, end) in enumerate(due):
        text += (f'<trip id="{i}" type="car" from="{start}" to="{end}" depart="{t:.2f}" departLane="best" '
                 'departSpeed="max"/>')
    write(f"{folder}/{name}.rou.xml", text + "</routes>")
    return {str(i): t for i, (t, _, _) in enumerate(due)}


def compare_files(folder, name, args):
    """Yields what env_traffic and SUMO measure on the same files."""
    fixtures = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tests/fixtures/sumo")
    net = f"{folder}/{name}.net.xml"
    if os.path.exists(f"{fixtures}/{name}.net.xml"):
        shutil.copy(f"{fixtures}/{name}.net.xml", net)
    else:
        subprocess.run(["netconvert", "-n", f"{fixtures}/{name}.nod.xml", "-e", f"{fixtures}/{name}.edg.xml", "-o", net,
                        "--no-turnarounds", "true", "--xml-validation", "never"],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    due = write_trips(folder, name, args.hours)
    end = 3600 * args.hours
    ours = [json.loads(line) for line in subprocess.run(
        [args.driver, "net", net, f"{folder}/{name}.rou.xml", "0", str(end), "1", str(args.seeds)],
        check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()]
    theirs = []
    for seed in range(1, args.seeds + 1):
        subprocess.run(["sumo", "-n", net, "-r", f"{folder}/{name}.rou.xml", "--seed", str(seed), "--step-length", "1",
                        "--end", str(int(end)), "--time-to-teleport", "-1", "--tripinfo-output", f"{folder}/trips.xml",
                        "--tripinfo-output.write-unfinished", "true", "--no-step-log", "true", "--no-warnings", "true",
                        "--xml-validation", "never"],
                       check=True, stdout=subprocess.DEVNULL)
        theirs.append(read_trips(folder, due, end))
    return ours, theirs


def main():
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("--driver", required=True)
    ask.add_argument("--hours", type=float, default=2)
    ask.add_argument("--seeds", type=int, default=5)
    args = ask.parse_args()
    if shutil.which("sumo") is None or shutil.which("netconvert") is None:
        print("sumo.py: sumo is not installed (Debian: apt install sumo): nothing compared", file=sys.stderr)
        return 0
    os.environ.setdefault("SUMO_HOME", "/usr/share/sumo")
    worst = 0.0

    def report(what, ours, theirs):
        nonlocal worst
        for key in ("flow_vph", "speed_mps", "delay_s"):
            a = sum(row[key] for row in ours) / len(ours)
            b = sum(row[key] for row in theirs) / len(theirs)
            worst = max(worst, abs(a / b - 1))
            print(f"{what:22}  {key:10} env_traffic {a:8.2f}  SUMO {b:8.2f}  {100 * (a / b - 1):+6.1f} %",
                  file=sys.stderr)

    with tempfile.TemporaryDirectory() as folder:
        build(folder)
        for flow in (200, 400, 550):
            ours = [json.loads(line) for line in subprocess.run(
                [args.driver, "signal", str(flow), str(args.hours), str(args.seeds)],
                check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()]
            theirs = [simulate(folder, flow, args.hours, seed) for seed in range(1, args.seeds + 1)]
            report(f"{flow} veh/h and arm", ours, theirs)
        for name in DEMAND:
            report(name, *compare_files(folder, name, args))
    print(f"value env_traffic/sumo_deviation {100 * worst:.1f} % target 10")
    return 0


if __name__ == "__main__":
    sys.exit(main())
