# SPDX-License-Identifier: Apache-2.0
"""trace_report.py TRACE.csv [BOUND_MS]: the timeline that cupti_trace.cc wrote, per step of the second half of the run.

The first line has the time of a step, its kernels and copies, the share at work and the gaps; a table follows with every
kernel by its time. A step lasts from one kernel `decide` to the next: each step launches it once. Exit codes: 0, 1 (no
such steps, or a record without a time)."""
import collections
import csv
import re
import sys

KERNELS_SHOWN = 45


def short(name):
    """Without namespaces of one file, return type and arguments."""
    name = re.sub(r"\(anonymous namespace\)::|<unnamed>::|\(unnamed namespace\)::", "", name)
    return re.sub(r"\((?:[^()]|\([^()]*\))*\)?$", "", re.sub(r"^void ", "", name))[:78]


def read(path):
    """Rows in the order of their start; the last line of a program that was killed may be incomplete."""
    with open(path, newline="", encoding="utf-8", errors="replace") as f:
        rows = list(csv.DictReader(f))
    out = []
    for i, r in enumerate(rows):
        try:
            out.append((int(r["start"]), int(r["end"]), r["kind"], r["name"] or "?", r))
        except (ValueError, TypeError, KeyError):
            if i + 1 < len(rows):
                sys.exit(f"{path}: record {i + 1} of {len(rows)} has no time")
    return sorted(out, key=lambda r: r[:2])


def main():
    path, bound = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""
    rows = read(path)
    marks = [i for i, r in enumerate(rows) if r[2] == "k" and re.search(r"\bdecide\(", r[3])]
    if len(marks) < 6:
        sys.exit(f"{path}: {len(marks)} steps in {len(rows)} records: too few to report")
    half = marks[len(marks) // 2:]
    n, first, last = len(half) - 1, half[0], half[-1]
    busy_until, busy, gaps = rows[first][0], 0, []
    total, calls, example = collections.Counter(), collections.Counter(), {}
    for start, end, kind, name, row in rows[first:last]:
        if start > busy_until:
            gaps.append(start - busy_until)
        busy += max(0, end - max(start, busy_until))
        busy_until = max(busy_until, end)
        key = short(name) if kind == "k" else name
        total[key] += end - start
        calls[key] += 1
        example.setdefault(key, row)
    if rows[last][0] > busy_until:
        gaps.append(rows[last][0] - busy_until)
    whole = rows[last][0] - rows[first][0]
    kernels = sum(c for k, c in calls.items() if example[k]["kind"] == "k")
    print(f"= trace: {n} steps, {whole / n / 1e3:.1f} us a step{', bound ' + bound if bound else ''}; {kernels / n:.1f} "
          f"kernels and {(sum(calls.values()) - kernels) / n:.1f} copies and memsets a step; at work "
          f"{100 * min(busy, whole) / whole:.1f} %; gaps a step: {sum(g > 3000 for g in gaps) / n:.1f} over 3 us, "
          f"{sum(g > 10000 for g in gaps) / n:.1f} over 10 us, mean {sum(gaps) / max(1, len(gaps)) / 1e3:.2f} us, longest "
          f"{max(gaps, default=0) / 1e3:.0f} us")
    print("  us/step  share  calls  us each  grid x block, registers, shared, local  kernel")
    for name, ns in total.most_common(KERNELS_SHOWN):
        r = example[name]
        shared = int(r["static"] or 0) + int(r["dynamic"] or 0)
        print(f"{ns / n / 1e3:9.2f} {100 * ns / whole:5.1f}% {calls[name] / n:6.1f} {ns / calls[name] / 1e3:8.2f}  "
              f"{r['grid']} {r['block']} r{r['registers']} s{shared} l{r['local']}  {name}")


if __name__ == "__main__":
    main()
