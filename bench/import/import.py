#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An import of a table, beside importers of pandas and numpy.

    import.py --dtrain build/dtrain --peers VENV [--mb 110] [--repeats 3] [--work DIR]

A table of NGSIM's 18 columns is made (no recording is read): vehicles on six lanes, a car following the mean speed of
its lane, in the order of vehicles. pandas and numpy read it, convert feet to metres, group it by vehicle, sort it by
time, make velocities of positions, and write the columns as .npy. pandas does so a second time with what a store also
holds: every vehicle's nearest 15 within 50 m of its frame, gap, offset, closing speed and inverse time to collision
toward each, frames in order. dtrain imports the table into a store, which is all that and risk labels, checks of every
value, and a flush to the disk; and two halves of the table by two jobs.

Sides take turns; figures are medians of MB of the table a second, by the time on the clock and by the processor's,
which says more where other programs share the machine. All sides write to the same folder.
"""
import math
import os
import random
import shutil
import statistics
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from common import call, cpu_s, parse, parser

HEADER = ("Vehicle_ID,Frame_ID,Total_Frames,Global_Time,Local_X,Local_Y,Global_X,Global_Y,v_Length,v_Width,v_Class,"
          "v_Vel,v_Acc,Lane_ID,Preceding,Following,Space_Headway,Time_Headway\n")


def vehicle(out, number, rng):
    """One vehicle's rows: feet and feet a second, a frame each tenth of a second."""
    n, lane, start = rng.randrange(350, 700), rng.randrange(1, 7), 2 * number + rng.randrange(10)
    phase, length = 6 * rng.random(), rng.choice((14.5, 15.0, 16.4, 40.0))
    x, y, before = 12.0 * lane - 6, 0.0, None
    for k in range(n):
        speed = 30 + 8 * math.sin(k / 90 + phase) + rng.gauss(0, 0.2)
        y += speed * 0.1
        x += rng.gauss(0, 0.01)
        accel = 0.0 if before is None else 10 * (speed - before)
        before = speed
        out.write("%d,%d,%d,%d,%.3f,%.3f,%.3f,%.3f,%.1f,6.4,2,%.2f,%.2f,%d,%d,%d,%.2f,1.50\n" %
                  (number, start + k, n, 1118846980200 + 100 * (start + k), x, y, 6451137.641 + x, 1873344.962 + y,
                   length, speed, accel, lane, number - 1, number + 1, 50.1 + k % 7))


def make_table(path, mb, seed):
    rng = random.Random(seed)
    with open(path, "w", encoding="ascii") as out:
        out.write(HEADER)
        number = 0
        while out.tell() < mb * 1e6:
            number += 1
            vehicle(out, number, rng)


# What the peers do, in their own interpreter: pandas plain, pandas with the graph, numpy plain.
PEER = r"""
import sys, os
import numpy as np
how, table, out = sys.argv[1:4]
FT, WANTED = 0.3048, ["Vehicle_ID", "Frame_ID", "Local_X", "Local_Y", "v_Length", "v_Width", "v_Vel", "v_Acc"]
os.makedirs(out)
if how.startswith("pandas"):
    import pandas
    t = pandas.read_csv(table, usecols=WANTED)
    t[WANTED[2:]] *= FT
    t = t.sort_values(["Vehicle_ID", "Frame_ID"], kind="stable")
    by = t.groupby("Vehicle_ID", sort=False)
    t["vx"] = by["Local_X"].diff().fillna(0.0) * 10
    t["vy"] = by["Local_Y"].diff().fillna(0.0) * 10
    columns = {name: t[name].to_numpy() for name in t.columns}
else:
    with open(table) as f:
        names = f.readline().strip().split(",")
    a = np.loadtxt(table, delimiter=",", skiprows=1, usecols=[names.index(w) for w in WANTED])
    a[:, 2:] *= FT
    a = a[np.lexsort((a[:, 1], a[:, 0]))]
    columns = {name: a[:, i] for i, name in enumerate(WANTED)}
    same = np.r_[False, a[1:, 0] == a[:-1, 0]]
    for name, i in (("vx", 2), ("vy", 3)):
        columns[name] = np.where(same, np.r_[0.0, np.diff(a[:, i])] * 10, 0.0)
for name, values in columns.items():
    np.save(os.path.join(out, name + ".npy"), values)
print(len(columns["vx"]))
if how == "pandas_graph":
    t = t.sort_values(["Frame_ID", "Vehicle_ID"], kind="stable")
    source, target, edges, row = [], [], [], 0
    for _, g in t.groupby("Frame_ID", sort=False):
        x, y, v, vx, vy, size = (g[k].to_numpy() for k in ("Local_X", "Local_Y", "v_Vel", "vx", "vy", "v_Length"))
        n, heading = len(g), np.where(np.hypot(vx, vy) > 0.5, np.arctan2(vy, vx), np.pi / 2)
        ex, ey = x[None, :] - x[:, None], y[None, :] - y[:, None]
        d2 = ex * ex + ey * ey
        np.fill_diagonal(d2, np.inf)
        k = min(15, n - 1)
        if k > 0:
            near = np.argsort(d2, axis=1, kind="stable")[:, :k]
            i, j = np.nonzero(np.take_along_axis(d2, near, 1) <= 2500)
            j = near[i, j]
            c, s = np.cos(heading[i]), np.sin(heading[i])
            dx, dy = ex[i, j] * c + ey[i, j] * s, ey[i, j] * c - ex[i, j] * s
            side = np.where(dx >= 0, 1.0, -1.0)
            gap = np.maximum(0, np.abs(dx) - 0.5 * (size[i] + size[j]))
            closing = side * (v[i] - v[j] * np.cos(heading[j] - heading[i]))
            inverse = np.where(closing <= 0, 0, np.minimum(10, closing / np.maximum(gap, 1e-9)))
            edges.append(np.stack([side * gap, dy, closing, inverse], 1).astype(np.float32))
            source.append(j.astype(np.int32))
            target.append(row + i)
        row += n
    for name, parts in (("edge_src", source), ("edge_target", target), ("edge", edges)):
        np.save(os.path.join(out, name + ".npy"), np.concatenate(parts))
"""


def rows_of(path):
    with open(path, "rb") as f:
        return sum(chunk.count(b"\n") for chunk in iter(lambda: f.read(1 << 20), b"")) - 1


def main():
    p = parser(__doc__)
    p.add_argument("--peers", required=True, metavar="VENV", help="with pandas and numpy")
    p.add_argument("--mb", type=float, default=110)
    p.add_argument("--repeats", type=int, default=3)
    a = parse(p)
    mb, repeats = (4, 1) if a.quick else (a.mb, a.repeats)
    python, out = os.path.join(a.peers, "bin", "python"), os.path.join(a.work, "out")
    whole, halves = os.path.join(a.work, "whole.csv"), [os.path.join(a.work, "half%d.csv" % k) for k in (1, 2)]
    make_table(whole, mb, 1)
    for k, path in enumerate(halves):
        make_table(path, mb / 2, 2 + k)
    n, bytes_of = rows_of(whole), {True: os.path.getsize(whole), False: sum(map(os.path.getsize, halves))}
    print("%.1f MB, %d rows" % (bytes_of[True] / 1e6, n))
    importing = [a.dtrain, "data", "import", "--out", out, "-q"]
    sides = {"dtrain": importing + [whole], "dtrain, 1 job": importing + ["--jobs", "1", whole],
             "dtrain, 2 files": importing + ["--jobs", "2"] + halves}
    sides.update({how: [python, "-c", PEER, how, whole, out] for how in ("pandas", "pandas_graph", "numpy")})
    clock, cpu = {s: [] for s in sides}, {s: [] for s in sides}
    for turn in range(repeats):
        for side, words in sides.items():
            shutil.rmtree(out, ignore_errors=True)
            before, begin = cpu_s(), time.time()
            said = call(words)
            clock[side].append(time.time() - begin)
            cpu[side].append(cpu_s() - before)
            if said and int(said) != n:
                raise SystemExit("%s read %s rows of %d" % (side, said.strip(), n))
            if side in ("dtrain", "dtrain, 1 job"):
                seen = call([a.dtrain, "data", "inspect", out, "--json"])
                if '"rows":%d,' % n not in seen:
                    raise SystemExit("dtrain stored other rows than %d" % n)
            print("%d %-15s %6.2f s, processor %6.2f s" % (turn + 1, side, clock[side][-1], cpu[side][-1]), flush=True)
    shutil.rmtree(out, ignore_errors=True)
    rate = {}
    for side in sides:
        size = bytes_of[side != "dtrain, 2 files"] / 1e6
        rate[side] = [size / statistics.median(times[side]) for times in (clock, cpu)]
        print("%-15s %6.1f MB/s, by the processor %6.1f MB/s" % (side, *rate[side]))
    for peer in ("pandas", "pandas_graph", "numpy"):
        for what, side, k in (("clock", "dtrain", 0), ("cpu", "dtrain, 1 job", 1)):
            print("ratio import_%s_%s %.2f target %s" % (peer, what, rate[side][k] / rate[peer][k], 10))


if __name__ == "__main__":
    main()
