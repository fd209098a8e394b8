#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tools/recording/argoverse2.py: two scenarios as the data set has them become a table, and the table with the folder's
# maps a store; without pyarrow it says so. tests/peers/argoverse2.sh BUILD, with a python3 that has pyarrow in PATH
set -eu
build=$(cd "${1:?usage: tests/peers/argoverse2.sh BUILD}" && pwd)
script=$(cd "$(dirname "$0")/../.." && pwd)/tools/recording/argoverse2.py
here=$build/test-argoverse.$$
trap 'rm -rf "$here"' EXIT
fail() {
    echo "FAIL: $*" >&2
    exit 1
}
mkdir "$here"
cd "$here"
python3 "$script" --help >out
grep -q 'usage: python3 argoverse2.py FOLDER' out || fail "no help"
python3 -S "$script" . 2>err && fail "without pyarrow it went on" # without the folder that has it
grep -q 'python3 has no pyarrow' err || fail "what is missing is not said: $(cat err)"
python3 - <<'END'
import json, os, pyarrow, pyarrow.parquet
P = lambda *points: [{"x": x, "y": y, "z": 0.0} for x, y in points]
for scene, city in (("aa-1", "austin"), ("bb-2", "miami")):
    os.makedirs("av2/" + scene)
    rows = []
    for track, kind, x in (("AV", "vehicle", 0.0), ("17", "bus", 30.0), ("40", "pedestrian", 5.0), ("9", "vehicle", 60.0)):
        for step in range(4):
            rows.append(dict(observed=True, track_id=track, object_type=kind, object_category=2, timestep=step,
                             position_x=x + step, position_y=1.5 if city == "austin" else 2.5, heading=0.0, velocity_x=10.0, velocity_y=0.0,
                             scenario_id=scene, start_timestamp=0, end_timestamp=1, num_timestamps=4, focal_track_id="9",
                             city=city))
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), f"av2/{scene}/scenario_{scene}.parquet")
    lane = dict(id=5, is_intersection=False, lane_type="VEHICLE", left_lane_boundary=P((0, 3), (90, 3)),
                right_lane_boundary=P((0, 0), (90, 0)), successors=[6], predecessors=[], left_neighbor_id=None,
                right_neighbor_id=None)
    json.dump({"lane_segments": {"5": lane}}, open(f"av2/{scene}/log_map_archive_{scene}.json", "w"))
END
python3 "$script" av2 >t.csv
cat >want <<'END'
scene,site,frame,id,x,y,heading,speed,length,width,frame_rate_hz
aa-1,austin,0,9,60.0,1.5,0.0,10.0,4.5,1.8,10
aa-1,austin,0,17,30.0,1.5,0.0,10.0,12,2.5,10
aa-1,austin,0,41,0.0,1.5,0.0,10.0,4.5,1.8,10
END
head -4 t.csv | cmp - want || fail "another table: $(head -4 t.csv)"
"$build/dtrain" data import t.csv --out store -q --set import.map=av2
"$build/dtrain" data inspect store >out
grep -q '^scenes 2, frames 8, vehicles 6, rows 24' out || fail "$(cat out)"
grep -q '^sites austin (1 scenes), miami (1 scenes)' out || fail "$(cat out)"
grep -q '^roads: maps 2, lanes 2, 0.2 km, links 0, scenes with a map 2 of 2' out || fail "$(cat out)"
python3 "$script" store 2>err && fail "a folder without a scenario was taken"
grep -q 'there is no scenario_\*.parquet in store' err || fail "$(cat err)"
echo "PASS: scenarios of Argoverse 2, by way of a table"
