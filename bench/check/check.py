# SPDX-License-Identifier: Apache-2.0
"""Processor time and duration of `dtrain check` for every plugin that dtrain finds, one after another."""
import json
import os
import resource
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import common


def children_s():
    r = resource.getrusage(resource.RUSAGE_CHILDREN)  # those of trials, too: check waits for them
    return r.ru_utime + r.ru_stime


def main():
    a = common.parse(common.parser(__doc__))
    listed = json.loads(common.call([a.dtrain, "list", "--json"]))["components"]
    files = sorted({c["file"] or c["plugin"] for c in listed})
    total_cpu, total, rows = 0, 0, []
    for file in files:
        begin, cpu = time.time(), children_s()
        p = subprocess.run([a.dtrain, "check", file, *a.more], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        cpu, took = children_s() - cpu, time.time() - begin
        rows.append((cpu, took, p.stdout.splitlines()[-1]))
        total_cpu, total = total_cpu + cpu, total + took
        if p.returncode != 0:
            raise SystemExit("dtrain check %s failed with exit code %d:\n%s" % (file, p.returncode, p.stdout))
    for cpu, took, verdict in sorted(rows, reverse=True):
        print("%6.2f s of processor time  %6.2f s  %s" % (cpu, took, verdict))
    print("value check_all_processor %.1f s target 180 at most" % total_cpu)
    print("value check_all %.1f s target 180 at most" % total)


if __name__ == "__main__":
    main()
