# SPDX-License-Identifier: Apache-2.0
"""What the benches in Python share: their arguments, calls of dtrain, what a run leaves behind, their closing lines."""
import argparse
import atexit
import json
import os
import resource
import shutil
import statistics
import subprocess
import tempfile
import time


RECORDING = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "share", "demo")


def parser(doc):
    p = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--dtrain", default="build/dtrain")
    p.add_argument("--work", metavar="DIR", help="folder that keeps the runs (else they are removed at the end)")
    p.add_argument("--quick", action="store_true", help="as little as there is: does it run? its figures mean nothing")
    return p


def parse(p):
    """The arguments; their member more has those that are dtrain's."""
    a, a.more = p.parse_known_args()
    if a.work is None:
        a.work = tempfile.mkdtemp(prefix="dtrain-bench-")
        atexit.register(shutil.rmtree, a.work, ignore_errors=True)
    os.makedirs(a.work, exist_ok=True)
    return a


def call(words, **more):
    """What a command prints; the bench ends where it fails."""
    p = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)
    if p.returncode != 0:
        raise SystemExit("%s\nfailed with exit code %d:\n%s" % (" ".join(words), p.returncode, p.stderr[-2000:]))
    return p.stdout


def options(sets):
    """--set for every "key=value" of a list, or every item of a dictionary."""
    pairs = ["%s=%s" % item for item in sets.items()] if isinstance(sets, dict) else sets
    return [word for pair in pairs for word in ("--set", pair)]


def train(a, phase, run, sets, *words):
    """Trains a phase into folder run; seconds it took. What the caller of the bench says to dtrain comes last."""
    begin = time.time()
    call([a.dtrain, "run", "--plugin", phase, "-q", "--run-dir", run, *words, *options(sets), *a.more])
    return time.time() - begin


def evaluate(a, phase, run, sets, *words):
    """What dtrain eval says of the last checkpoint of a run."""
    return json.loads(call([a.dtrain, "eval", "--plugin", phase, "-q", "--checkpoint", run, "--json", *words,
                            *options(sets), *a.more]))


def copy_scenes(dtrain, source, copies, work, store):
    """A store of many copies of a recording or store, each moved to another place, so that no scene repeats another."""
    one, table, many = (os.path.join(work, n) for n in ("one", "one.csv", "many.csv"))
    if not os.path.exists(os.path.join(source, "store.json")):
        call([dtrain, "data", "import", source, "--out", one, "-q", "--set", "import.smooth_s=0"])
        source = one
    call([dtrain, "data", "export", source, table, "-q"])
    with open(table, encoding="utf-8") as f:
        names = f.readline().rstrip("\n").split(",")
        lines = [line.rstrip("\n").split(",") for line in f]
    scene, x = names.index("scene"), names.index("x")
    with open(many, "w", encoding="utf-8") as f:
        f.write(",".join(names) + "\n")
        for copy in range(copies):
            for line in lines:
                moved = list(line)
                moved[scene] = f"{line[scene].replace('#', '-')}-{copy}"
                moved[x] = repr(float(line[x]) + copy)
                f.write(",".join(moved) + "\n")
    call([dtrain, "data", "import", many, "--out", store, "-q", "--set", "import.smooth_s=0"])
    os.remove(many)
    return store


def rows(run, name):
    """Records of a run's metrics that have this one."""
    with open(os.path.join(run, "metrics.jsonl"), encoding="utf-8") as f:
        return [r for r in map(json.loads, f) if name in r]


def curve(run, name):
    """Its numbers, where there is one."""
    return [r[name] for r in rows(run, name) if r[name] is not None]


def last_tenth(values):
    """Mean of it."""
    return statistics.fmean(values[-max(1, len(values) // 10):])


def cpu_s():
    """Processor seconds of all processes that were started here and have ended."""
    u = resource.getrusage(resource.RUSAGE_CHILDREN)
    return u.ru_utime + u.ru_stime


def tell(name, value, unit, target, note=""):
    """A closing line; target is a number and which side of it is good: "0.75 at most"."""
    print("value %s %.4g %s target %s%s" % (name, value, unit, target, note and "  (%s)" % note), flush=True)
