#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The same small net in env_traffic and in SUMO: four arms of 400 m, one lane, straight on, a fixed-time signal of 60 s
(26 s green, 3 s yellow, 1 s all red), Krauss, steps of 1 s, Poisson arrivals. Compares flow, mean speed and strict
delay (time loss and depart delay of all that are due), means over seeds; each within 10 %.

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
    end, seen, loss, path, driven, arrived = 3600 * hours, set(), 0.0, 0.0, 0.0, 0
    for trip in ElementTree.parse(f"{folder}/trips.xml").iter("tripinfo"):
        seen.add(int(trip.get("id")))
        loss += float(trip.get("timeLoss")) + float(trip.get("departDelay"))
        path += float(trip.get("routeLength"))
        driven += float(trip.get("duration"))
        arrived += float(trip.get("arrival")) >= 0
    loss += sum(end - t for i, (t, _) in enumerate(due) if i not in seen)
    return {"flow_vph": arrived / hours, "speed_mps": path / driven, "delay_s": loss / len(due)}


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
    with tempfile.TemporaryDirectory() as folder:
        build(folder)
        for flow in (200, 400, 550):
            ours = [json.loads(line) for line in subprocess.run(
                [args.driver, "signal", str(flow), str(args.hours), str(args.seeds)],
                check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()]
            theirs = [simulate(folder, flow, args.hours, seed) for seed in range(1, args.seeds + 1)]
            for key in ("flow_vph", "speed_mps", "delay_s"):
                a = sum(row[key] for row in ours) / len(ours)
                b = sum(row[key] for row in theirs) / len(theirs)
                worst = max(worst, abs(a / b - 1))
                print(f"{flow} veh/h and arm  {key:10} env_traffic {a:8.2f}  SUMO {b:8.2f}  {100 * (a / b - 1):+6.1f} %",
                      file=sys.stderr)
    print(f"value env_traffic/sumo_deviation {100 * worst:.1f} % target 10")
    return 0


if __name__ == "__main__":
    sys.exit(main())
