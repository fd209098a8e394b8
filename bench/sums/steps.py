#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Speed of phase 1's step in two builds of dtrain, in turn, so that both have the same machine.

    bench/sums/steps.py OLD/bench_phase1_step NEW/bench_phase1_step [PAIRS] [OPTIONS as `dtrain run` takes them]

One step of each by turns; prints the median of both, and the median and the quartiles of the ratio of a pair (new / old:
below 1 is faster), by the clock and by the time that the threads had a processor, which others on the machine disturb
less. DTRAIN_CPU_ISA chooses the kernels as always.
"""
import glob
import json
import statistics
import subprocess
import sys
import tempfile


class Side:
    def __init__(self, program, options):
        self.folder = tempfile.TemporaryDirectory()
        self.process = subprocess.Popen([program, self.folder.name, "0", *options], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.answer()  # "ready"

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"{self.process.args[0]} ended with {self.process.wait()}")
        return line

    def busy(self):
        """Seconds that its threads ran."""
        total = 0
        for path in glob.glob(f"/proc/{self.process.pid}/task/*/schedstat"):
            with open(path, encoding="ascii") as f:
                total += int(f.read().split()[0])
        return 1e-9 * total

    def step(self):
        before = self.busy()
        self.process.stdin.write("step 1\n")
        self.process.stdin.flush()
        wall = json.loads(self.answer())[0][0]
        return wall, self.busy() - before

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    pairs = int(sys.argv[3]) if len(sys.argv) > 3 else 40
    old, new = (Side(program, sys.argv[4:]) for program in sys.argv[1:3])
    for side in (old, new):
        side.step()
        side.step()
    times = []
    for i in range(pairs):
        order = (old, new) if i % 2 == 0 else (new, old)
        pair = {side: side.step() for side in order}
        times.append((pair[old], pair[new]))
    for what, k in (("clock", 0), ("processor", 1)):
        low, middle, high = statistics.quantiles([n[k] / o[k] for o, n in times], n=4)
        print(f"{pairs} pairs, {what}: old {1e3 * statistics.median(o[k] for o, _ in times):.1f} ms, "
              f"new {1e3 * statistics.median(n[k] for _, n in times):.1f} ms, "
              f"ratio {middle:.4f} (quartiles {low:.4f} to {high:.4f})")
    old.end()
    new.end()


main()
