# SPDX-License-Identifier: Apache-2.0
"""Holds a trace.json against what it should be: check_trace.py FILE CATEGORY/NAME...

Valid JSON in Chrome's trace event format; spans of a thread nest, every one within the span around it; threads have
names; memory counters are there; and each of the spans named on the command line occurs, in the tracks of all ranks
where DT_RANKS says how many there are.
"""
import json
import os
import sys

path, wanted = sys.argv[1], sys.argv[2:]
ranks = int(os.environ.get("DT_RANKS", "1"))
with open(path, encoding="utf-8") as file:
    trace = json.load(file, parse_float=str)  # times as written: nanoseconds would drown in floats
events = trace["traceEvents"]


def nanoseconds(text):
    whole, _, part = str(text).partition(".")
    assert len(part) == 3, text
    return int(whole) * 1000 + int(part)


named = {(e["pid"], e["tid"]) for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
spans, counters = {}, {}
for e in events:
    assert 1 <= e["pid"] <= ranks and e["ph"] in "MXC", e
    if e["ph"] == "X":
        begin = nanoseconds(e["ts"])
        spans.setdefault((e["pid"], e["tid"]), []).append((begin, begin + nanoseconds(e["dur"]), e["cat"], e["name"]))
    elif e["ph"] == "C":
        counters.setdefault((e["pid"], e["name"]), []).append(float(e["args"][e["name"]]))
assert set(spans) <= named, "a thread without a name"
seen = {pid: set() for pid in range(1, ranks + 1)}
for (pid, tid), all_of in spans.items():
    stack = []
    for begin, end, category, name in sorted(all_of, key=lambda s: (s[0], -s[1])):
        while stack and stack[-1][1] <= begin:
            stack.pop()
        assert not stack or end <= stack[-1][1], f"{name} of thread {tid} goes on after {stack[-1]} around it"
        stack.append((begin, end, name))
        seen[pid].add(f"{category}/{name}")
processes = {e["pid"]: e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "process_name"}
for pid in range(1, ranks + 1):
    missing = [w for w in wanted if w not in seen[pid]]
    assert not missing, f"{missing} not among {sorted(seen[pid])} of process {pid}"
    resident = counters[pid, "resident memory MB"]
    assert resident[0] > 1 and len(resident) >= 2 and (pid, "heap MB") in counters
    assert processes[pid] == ("dtrain" if ranks == 1 else f"dtrain rank {pid - 1}"), processes
print(f"{path}: {sum(map(len, spans.values()))} spans of {len(spans)} threads, {len(seen[1])} names")
