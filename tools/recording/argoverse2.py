# SPDX-License-Identifier: Apache-2.0
"""Scenarios of the Argoverse 2 motion forecasting data set as a table that `dtrain data import` reads.

usage: python3 argoverse2.py FOLDER... >scenarios.csv

Looks for scenario_*.parquet below each folder (as train/, val/ and test/ of the data set are laid out) and writes one
row for each vehicle and step: cars, buses and motorcycles. People on foot and on bicycles, what does not move and what
is unknown are left out. The city is the site and the scenario's id the scene, so that the folder itself holds the map
of each: --set import.map=FOLDER. The data set does not say how large vehicles are: each gets the usual size
of its kind. Needs pyarrow.
"""
import csv
import math
import pathlib
import sys

RATE_HZ = 10
SIZES = {"vehicle": (4.5, 1.8), "bus": (12, 2.5), "motorcyclist": (2.2, 0.9)}  # length and width, m
COLUMNS = ["track_id", "object_type", "timestep", "position_x", "position_y", "heading", "velocity_x", "velocity_y",
           "scenario_id", "city"]
HEADER = ["scene", "site", "frame", "id", "x", "y", "heading", "speed", "length", "width", "frame_rate_hz"]


def numbers_of(track_ids):
    """Whole numbers for the names of tracks: their own, and of "AV" and its like the first ones that are free."""
    names = sorted(set(track_ids))
    numbers = {name: int(name) for name in names if name.isdecimal()}
    free = max(numbers.values(), default=-1) + 1
    for name in names:
        if name not in numbers:
            numbers[name] = free
            free += 1
    return numbers


def rows_of(path, read_table):
    table = read_table(path, columns=COLUMNS).to_pydict()
    numbers = numbers_of(table["track_id"])
    rows = zip(*(table[name] for name in COLUMNS))
    for track, kind, step, x, y, heading, vx, vy, scene, city in sorted(rows, key=lambda row: (row[2], numbers[row[0]])):
        if kind not in SIZES:
            continue
        speed = vx * math.cos(heading) + vy * math.sin(heading)
        length, width = SIZES[kind]
        yield [scene, city, step, numbers[track], repr(x), repr(y), repr(heading), repr(speed), length, width, RATE_HZ]


def main(folders):
    if not folders or folders[0] in ("-h", "--help"):
        print(__doc__.strip(), file=sys.stdout if folders else sys.stderr)
        return 0 if folders else 2
    try:
        from pyarrow.parquet import read_table
    except ImportError:
        sys.exit("argoverse2.py: python3 has no pyarrow, which reads parquet: pip install pyarrow")
    paths = sorted(path for folder in folders for path in pathlib.Path(folder).rglob("scenario_*.parquet"))
    if not paths:
        sys.exit("argoverse2.py: there is no scenario_*.parquet in " + " ".join(folders))
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(HEADER)
    for path in paths:
        out.writerows(rows_of(path, read_table))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
