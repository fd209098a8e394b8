#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Imports of 1 and of 10 million rows in bounded memory: peak resident memory of the process.

    large.py --dtrain build/dtrain [--rows 1,10] [--files 4] [--work DIR]

Tables are made by simple car following: vehicles on the lanes of a road that goes on and on, each one keeping its gap
to the one ahead in its lane, in the order of time; each size as one table, and cut into as many files as are asked for.
The work folder needs room: a million rows are 55 MB of tables and 350 MB of stores and parts.
"""
import os
import random
import shutil
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from common import parse, parser, tell

LANES, LENGTH_M, ROAD_M, STEP_S = 4, 4.5, 1000.0, 0.1


class Road:
    """Vehicles enter at 0 and leave at ROAD_M; ids are never given twice."""

    def __init__(self, seed):
        self.rng, self.next_id, self.lanes = random.Random(seed), 0, [[] for _ in range(LANES)]

    def step(self):
        for lane in self.lanes:  # the first one is ahead
            if (not lane or lane[-1][1] > 25) and self.rng.random() < 0.2:
                lane.append([self.next_id, 0.0, 15.0, self.rng.uniform(12, 22)])
                self.next_id += 1
            ahead = None
            for car in lane:
                wanted = car[3] if ahead is None else min(car[3], max(0.0, (ahead[1] - car[1] - LENGTH_M - 2) / 1.2))
                car[2] += max(-4.0, min(2.0, wanted - car[2])) * STEP_S
                car[2] = max(0.0, car[2])
                car[1] += car[2] * STEP_S
                ahead = car
            while lane and lane[0][1] > ROAD_M:
                lane.pop(0)

    def rows(self, frame):
        for number, lane in enumerate(self.lanes):
            for who, x, speed, _ in lane:
                yield "%d,%d,%.3f,%.1f,%.3f,0,%.1f\n" % (frame, who, x, 3.5 * number, speed, LENGTH_M)


def make_tables(folder, n_rows, n_files):
    """So many rows at least: in so many files, each a scene, and all of them in one."""
    os.makedirs(folder)
    paths, whole, header = [], os.path.join(folder, "whole.csv"), "scene,frame,id,x,y,speed,heading,length\n"
    with open(whole, "w", encoding="ascii") as all_of_them:
        all_of_them.write(header)
        for i in range(n_files):
            road, frame, n = Road(i), 0, 0
            paths.append(os.path.join(folder, "road%d.csv" % i))
            with open(paths[-1], "w", encoding="ascii") as out:
                out.write(header)
                while n < n_rows // n_files:
                    road.step()
                    text = ["road%d,%s" % (i, row) for row in road.rows(frame)]
                    out.writelines(text)
                    all_of_them.writelines(text)
                    n += len(text)
                    frame += 1
    return whole, paths


def peak_mb(words):
    """Runs a command: its peak resident memory, and the processor's seconds."""
    pid = os.spawnvp(os.P_NOWAIT, words[0], words)
    _, status, used = os.wait4(pid, 0)
    if status != 0:
        raise SystemExit("%s failed" % " ".join(words))
    return used.ru_maxrss / 1024, used.ru_utime + used.ru_stime


def main():
    p = parser(__doc__)
    p.add_argument("--rows", default="1,10", help="millions, the first and the last are compared")
    p.add_argument("--files", type=int, default=4)
    a = parse(p)
    sizes = [0.01, 0.1] if a.quick else [float(word) for word in a.rows.split(",")]
    out, tables, peak = os.path.join(a.work, "out"), os.path.join(a.work, "tables"), {}
    for size in sizes:
        shutil.rmtree(tables, ignore_errors=True)
        whole, parts = make_tables(tables, int(size * 1e6), a.files)
        for paths in ([whole], parts):
            shutil.rmtree(out, ignore_errors=True)
            begin, mb = time.time(), sum(map(os.path.getsize, paths)) / 1e6
            peak[size, len(paths)], cpu = peak_mb([a.dtrain, "data", "import", *paths, "--out", out, "-q", "--jobs",
                                                   "2", "--set", "import.frame_rate_hz=10", *a.more])
            s = time.time() - begin
            print("%g million rows in %d files, %.1f MB: %.1f s, processor %.1f s, peak %.1f MB resident" %
                  (size, len(paths), mb, s, cpu, peak[size, len(paths)]), flush=True)
    shutil.rmtree(tables, ignore_errors=True)
    shutil.rmtree(out, ignore_errors=True)
    for n_files in (1, a.files):
        tell("import_large_growth_%d_files" % n_files, peak[sizes[-1], n_files] / peak[sizes[0], n_files], "times",
             "1.2 at most", "peak memory of %g million rows over that of %g" % (sizes[-1], sizes[0]))


if __name__ == "__main__":
    main()
