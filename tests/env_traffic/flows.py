#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Departures of flows, as SUMO reads their attributes: the recorded table against the installed sumo.

    flows.py tests/fixtures/sumo/flows.txt            compares; exit status 1 where they differ
    flows.py tests/fixtures/sumo/flows.txt --write    records them again

A row: begin | end | attributes of the flow | what SUMO does with it, for the simulation from begin to end:
    rejected
    COUNT FIRST SECOND LAST     departures that are due, in seconds
    random COUNT                drawn: their number with one seed
Attributes that begin with scale="..." have it in the vType of the flow.
"""
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

LANES = 4


def write(path, text):
    with open(path, "w", encoding="utf-8") as out:
        out.write(text)


def build(folder):
    write(f"{folder}/n.nod.xml", '<nodes><node id="a" x="0" y="0"/><node id="b" x="1000" y="0"/></nodes>')
    write(f"{folder}/n.edg.xml", f'<edges><edge id="e" from="a" to="b" numLanes="{LANES}" speed="30"/></edges>')
    subprocess.run(["netconvert", "-n", f"{folder}/n.nod.xml", "-e", f"{folder}/n.edg.xml", "-o", f"{folder}/n.net.xml",
                    "--xml-validation", "never"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def ask_sumo(folder, begin, end, attributes):
    scale, rest = attributes.split(" ", 1) if attributes.startswith("scale=") else ("", attributes)
    write(f"{folder}/f.rou.xml", f'<routes><vType id="t" {scale}/><route id="r" edges="e"/><flow id="f" route="r" '
          f'type="t" departLane="free" departSpeed="max" {rest}/></routes>')
    out = f"{folder}/t.xml"
    if os.path.exists(out):
        os.remove(out)
    run = subprocess.run(["sumo", "-n", f"{folder}/n.net.xml", "-r", f"{folder}/f.rou.xml", "-b", begin, "-e", end,
                          "--xml-validation", "never", "--no-step-log", "true", "--tripinfo-output", out,
                          "--tripinfo-output.write-unfinished", "true"], capture_output=True, text=True)
    if run.returncode != 0:
        return "rejected"
    trips = [t for t in ElementTree.parse(out).getroot() if t.tag == "tripinfo"]
    due = sorted(float(t.get("depart")) - float(t.get("departDelay")) for t in trips)
    if "probability" in attributes or "exp(" in attributes:
        return f"random {len(due)}"
    return " ".join([str(len(due))] + [f"{due[k]:.2f}" for k in (0, 1, -1) if len(due) > 1 or (due and k == 0)])


def main():
    path, is_new = sys.argv[1], "--write" in sys.argv
    with open(path, encoding="utf-8") as text:
        lines = text.read().splitlines()
    differ = 0
    with tempfile.TemporaryDirectory() as folder:
        build(folder)
        for k, line in enumerate(lines):
            if line.startswith("#") or not line:
                continue
            begin, end, attributes, *known = [part.strip() for part in line.split("|")]
            now = ask_sumo(folder, begin, end, attributes)
            if is_new:
                lines[k] = f"{begin} | {end} | {attributes} | {now}"
            elif known != [now]:
                print(f"{path}:{k + 1}: {attributes}: recorded {known}, SUMO {now}")
                differ = 1
    if is_new:
        write(path, "\n".join(lines) + "\n")
    return differ


sys.exit(main())
