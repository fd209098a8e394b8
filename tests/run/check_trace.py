# SPDX-License-Identifier: Apache-2.0
"""Holds a trace.json against what it should be: check_trace.py FILE CATEGORY/NAME...

Valid JSON in Chrome's trace event format; spans of a thread nest, every one within the span around it; threads have
names; memory counters are there; and each of the spans named on the command line occurs.
"""
import json
import sys

path, wanted = sys.argv[1], sys.argv[2:]
with open(path, encoding="utf-8") as file:
    trace = json.load(file, parse_float=str)  # times as written: nanoseconds would drown in floats
events = trace["traceEvents"]


def nanoseconds(text):
    whole, _, part = str(text).partition(".")
    assert len(part) == 3, text
    return int(whole) * 1000 + int(part)


named = {e["tid"] for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
spans, counters = {}, {}
for e in events:
    assert e["pid"] == 1 and e["ph"] in "MXC", e
    if e["ph"] == "X":
        begin = nanoseconds(e["ts"])
        spans.setdefault(e["tid"], []).append((begin, begin + nanoseconds(e["dur"]), e["cat"], e["name"]))
    elif e["ph"] == "C":
        counters.setdefault(e["name"], []).append(float(e["args"][e["name"]]))
assert set(spans) <= named, "a thread without a name"
seen = set()
for tid, all_of in spans.items():
    stack = []
    for begin, end, category, name in sorted(all_of, key=lambda s: (s[0], -s[1])):
        while stack and stack[-1][1] <= begin:
            stack.pop()
        assert not stack or end <= stack[-1][1], f"{name} of thread {tid} goes on after {stack[-1]} around it"
        stack.append((begin, end, name))
        seen.add(f"{category}/{name}")
missing = [w for w in wanted if w not in seen]
assert not missing, f"{missing} not among {sorted(seen)}"
assert counters["resident memory MB"][0] > 1 and len(counters["resident memory MB"]) >= 2 and "heap MB" in counters
print(f"{path}: {sum(map(len, spans.values()))} spans of {len(spans)} threads, {len(seen)} names")
