#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Make the demo recording: drive a small network of our own in SUMO and write it in the JSON chunk layout.

    python3 tools/recording/make_demo.py share/demo

Needs python3 and Eclipse SUMO (the recording that is kept was made with 1.15 of Debian 12) where the recording is made,
and nowhere else. Equal SUMO versions give equal bytes. See share/demo/README.md for what comes out.
"""
import json
import math
import os
import random
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET

HERE = os.path.dirname(os.path.abspath(__file__))
RATE_HZ = 5
WARM_UP_S = 90  # until the roads are filled
SCENE_S = 10.4
EVERY_S = 29.0  # between the begins of two scenes of one place: no vehicle's future is in another scene
SCENES_PER_RUN = 9  # of each place
SEEDS = (11, 23, 37, 53, 71, 89)
PER_CHUNK = 5
VEHICLES = (6, 20)  # in every frame that is kept: fewer and the scene is not used, more and the farthest are left out
# name, centre in the network, half sizes in m
PLACES = (("crossing", (0.0, 0.0), (42.0, 42.0)), ("merge", (480.0, -8.0), (110.0, 24.0)))

# length, width, share, the rest as SUMO's vType attributes
TYPES = {
    "calm": (4.3, 1.8, 0.30, dict(carFollowModel="IDM", accel="1.6", decel="2.0", tau="1.6", minGap="2.5", delta="4",
                                  speedFactor="normc(0.95,0.08,0.7,1.2)")),
    "usual": (4.6, 1.8, 0.30, dict(carFollowModel="Krauss", accel="2.2", decel="2.9", tau="1.1", minGap="2.0", sigma="0.4",
                                   speedFactor="normc(1.02,0.10,0.7,1.3)")),
    "hasty": (4.4, 1.8, 0.14, dict(carFollowModel="Krauss", accel="3.2", decel="4.8", tau="0.6", minGap="1.0", sigma="0.8",
                                   speedFactor="normc(1.25,0.12,1.0,1.6)", lcAssertive="2.5", lcSpeedGain="3.0",
                                   lcCooperative="0.2", lcSigma="0.3")),
    "van": (6.2, 2.1, 0.08, dict(carFollowModel="IDM", accel="1.4", decel="2.2", tau="1.4", minGap="2.5", delta="4",
                                 speedFactor="normc(0.95,0.06,0.8,1.1)")),
    "truck": (11.5, 2.5, 0.06, dict(carFollowModel="Krauss", accel="0.9", decel="2.2", tau="1.6", minGap="3.0", sigma="0.3",
                                    speedFactor="normc(0.85,0.05,0.7,1.0)")),
    "automated": (4.7, 1.9, 0.12, dict(carFollowModel="IDM", accel="1.8", decel="2.5", tau="1.3", minGap="2.0", delta="4",
                                       speedFactor="1.0")),
}
# vehicles a second, from, to
FLOWS = (("n_in", "s_out", 0.035), ("n_in", "w_out", 0.02), ("n_in", "e_out", 0.035), ("s_in", "n_out", 0.035),
         ("s_in", "w_out", 0.025), ("s_in", "e_out", 0.035), ("w_in", "e_out", 0.12), ("w_in", "n_out", 0.02),
         ("w_in", "s_out", 0.02), ("e_in", "w_out", 0.07), ("e_in", "n_out", 0.025), ("e_in", "s_out", 0.025),
         ("ramp", "east", 0.21))


def call(*args):
    subprocess.run(args, check=True, stdout=subprocess.DEVNULL)


def build_network(folder):
    net = os.path.join(folder, "demo.net.xml")
    call("netconvert", "-n", f"{HERE}/demo.nod.xml", "-e", f"{HERE}/demo.edg.xml", "-x", f"{HERE}/demo.con.xml",
         "--offset.disable-normalization", "--no-turnarounds", "--tls.cycle.time", "56", "--xml-validation", "never",
         "-o", net)
    return net


def write_demand(folder, seconds):
    routes = ET.Element("routes")
    mix = ET.SubElement(routes, "vTypeDistribution", id="mix")
    for name, (length, width, share, rest) in TYPES.items():
        ET.SubElement(mix, "vType", id=name, length=str(length), width=str(width), probability=str(share), **rest)
    for i, (begin, end, rate) in enumerate(FLOWS):
        end = "east" if end == "e_out" else end
        flow = dict(begin="0", end=str(seconds), probability=str(rate), departLane="best", departSpeed="avg")
        ET.SubElement(routes, "flow", id=f"f{i}", type="mix", **{"from": begin, "to": end}, **flow)
    path = os.path.join(folder, "demo.rou.xml")
    ET.ElementTree(routes).write(path)
    return path


def drive(folder, net, routes, seed, seconds):
    """Yield (time, vehicles) of every frame of one run."""
    out = os.path.join(folder, f"fcd{seed}.xml")
    call("sumo", "-n", net, "-r", routes, "--seed", str(seed), "--end", str(seconds), "--step-length", "0.2",
         "--step-method.ballistic", "--lateral-resolution", "0.6", "--fcd-output", out, "--fcd-output.acceleration",
         "--time-to-teleport", "-1", "--xml-validation", "never", "--no-step-log", "--no-warnings")
    for _, step in ET.iterparse(out):
        if step.tag == "timestep":
            yield float(step.get("time")), [dict(v.attrib) for v in step if v.tag == "vehicle"]
            step.clear()
    os.remove(out)


def lane_lengths(net):
    return {lane.get("id"): float(lane.get("length")) for lane in ET.parse(net).getroot().iter("lane")}


def vehicle_of(v, lengths, centre):
    """One vehicle of SUMO as the layout wants it: centre of the body, mathematical heading."""
    length, width = TYPES[v["type"]][:2]
    heading = math.radians(90.0 - float(v["angle"]))
    heading = math.atan2(math.sin(heading), math.cos(heading))
    return {
        "x": round(float(v["x"]) - 0.5 * length * math.cos(heading) - centre[0], 2),
        "y": round(float(v["y"]) - 0.5 * length * math.sin(heading) - centre[1], 2),
        "heading": round(heading, 3),
        "speed": round(float(v["speed"]), 2),
        "accel": round(float(v["acceleration"]), 2),
        "length": length,
        "width": width,
        "stop_distance": round(max(0.0, lengths[v["lane"]] - float(v["pos"])), 1),
        "controlled": v["type"] == "automated",
    }


class Scene:
    def __init__(self, place, number, begin):
        self.name, self.centre, self.half = place
        self.number, self.begin = number, begin
        self.frames, self.ids = [], {}

    def add(self, time, vehicles, lengths):
        inside = []
        for v in vehicles:
            out = vehicle_of(v, lengths, self.centre)
            if abs(out["x"]) <= self.half[0] and abs(out["y"]) <= self.half[1]:
                inside.append((math.hypot(out["x"], out["y"]), v["id"], out))
        inside = sorted(inside)[:VEHICLES[1]]
        rows = []
        for _, name, out in sorted(inside, key=lambda e: e[1]):
            rows.append({"id": self.ids.setdefault(name, len(self.ids) + 1), **out})
        self.frames.append({"t": round(time - self.begin, 1), "vehicles": rows})

    def is_good(self):
        return min(len(f["vehicles"]) for f in self.frames) >= VEHICLES[0]

    def sample(self):
        return {"id": f"s{self.number:04d}", "scene": f"{self.name}-{self.number:04d}", "site": self.name,
                "frames": self.frames}


def record(folder):
    net = build_network(folder)
    seconds = WARM_UP_S + int(EVERY_S * SCENES_PER_RUN) + 10
    routes = write_demand(folder, seconds)
    lengths = lane_lengths(net)
    scenes, dropped, number = [], 0, 0
    for seed in SEEDS:
        rng = random.Random(seed)
        todo = []
        for place in PLACES:
            for k in range(SCENES_PER_RUN):
                begin = WARM_UP_S + EVERY_S * k + round(rng.uniform(0, EVERY_S - SCENE_S - 6) * RATE_HZ) / RATE_HZ
                todo.append(Scene(place, number, begin))
                number += 1
        for time, vehicles in drive(folder, net, routes, seed, seconds):
            for scene in todo:
                if scene.begin - 1e-6 <= time <= scene.begin + SCENE_S + 1e-6:
                    scene.add(time, vehicles, lengths)
        scenes += [s for s in todo if s.is_good()]
        dropped += sum(not s.is_good() for s in todo)
    print(f"{len(scenes)} scenes, {dropped} with too few vehicles left out")
    return scenes


def statistics(scenes):
    values = {}
    for scene in scenes:
        for frame in scene.frames:
            for v in frame["vehicles"]:
                for key, x in v.items():
                    if key != "id":
                        values.setdefault(key, []).append(float(x))
    out = {}
    for key, x in values.items():
        mean = math.fsum(x) / len(x)
        std = math.sqrt(math.fsum((a - mean) ** 2 for a in x) / len(x))
        out[key] = {"min": min(x), "max": max(x), "mean": round(mean, 6), "std": round(std, 6), "count": len(x)}
    return out


def dump(path, value):
    with open(path, "w", encoding="ascii") as f:
        json.dump(value, f, separators=(",", ":"))
        f.write("\n")


def write(folder, scenes):
    random.Random(7).shuffle(scenes)  # places and seeds in every chunk
    os.makedirs(f"{folder}/chunks", exist_ok=True)
    chunks = []
    for i in range(0, len(scenes), PER_CHUNK):
        part = scenes[i:i + PER_CHUNK]
        name = f"chunks/chunk_{len(chunks):03d}.json"
        dump(f"{folder}/{name}", {"samples": [s.sample() for s in part]})
        chunks.append({"file": name, "samples": len(part)})
    dump(f"{folder}/metadata.json", {
        "format": "dtrain-chunks", "version": 1, "frame_rate_hz": float(RATE_HZ),
        "units": {"length": "m", "speed": "m/s", "angle": "rad"}, "sites": [p[0] for p in PLACES], "chunks": chunks})
    dump(f"{folder}/statistics.json", statistics(scenes))


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    os.environ.setdefault("SUMO_HOME", "/usr/share/sumo")
    with tempfile.TemporaryDirectory() as folder:
        write(sys.argv[1], record(folder))


if __name__ == "__main__":
    main()
