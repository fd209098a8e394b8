#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench/run store_memory: does phase 1 train as fast from a store four times as large as the memory there is?

A store is made of many moved copies of a recording. Trainings of the same steps take turns: with the whole store in
memory, and with the process held to a quarter of the store's bytes, all it has resident counted. Who holds it depends on
what the machine allows: no control group has to be writable here. Every few milliseconds pages of the store that are
resident are taken from the process and from the system's cache (process_madvise with MADV_PAGEOUT, posix_fadvise), piece
by piece, until it is below the limit; so each is read from the disk when it is wanted again. Needs Linux 5.10 and the
right to do that to a process of one's own (root, or CAP_SYS_NICE). Both sides have to end in the same bits."""
import ctypes
import itertools
import json
import os
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import common

PIDFD_OPEN, PROCESS_MADVISE, MADV_PAGEOUT = 434, 440, 21  # the same numbers on all of Linux' architectures
PIECE = 4 << 20   # bytes that are taken at a time
LOOK_S = 0.005
SHARE = 4         # the store is so many times as large as the limit
PAGE = os.sysconf("SC_PAGE_SIZE")
libc = ctypes.CDLL(None, use_errno=True)


class Piece(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("bytes", ctypes.c_size_t)]


class Holder:
    """Keeps the resident memory of a process below a limit, at the cost of what it has mapped of a folder."""

    def __init__(self, process, folder, limit):
        self.process, self.folder, self.limit = process, os.path.realpath(folder), limit
        self.fd = libc.syscall(PIDFD_OPEN, process.pid, 0)
        if self.fd < 0:
            raise SystemExit("store_memory: pidfd_open: " + os.strerror(ctypes.get_errno()))
        self.files = [os.open(os.path.join(folder, f), os.O_RDONLY) for f in os.listdir(folder) if f.endswith(".npy")]
        self.most = self.taken = 0
        self.seen = []
        self.pieces = iter(())

    def resident(self):
        with open(f"/proc/{self.process.pid}/statm", encoding="ascii") as f:
            words = f.read().split()
        return int(words[1]) * PAGE if len(words) > 1 else 0

    def mapped(self):
        with open(f"/proc/{self.process.pid}/maps", encoding="utf-8") as f:
            spans = [line.split()[0].split("-") for line in f if self.folder in line]
        return [(a, min(PIECE, end - a)) for begin, end in ((int(b, 16), int(e, 16)) for b, e in spans)
                for a in range(begin, end, PIECE)]

    def take(self):
        piece = next(self.pieces, None)
        if piece is None:
            spans = self.mapped()
            self.pieces = iter(spans)
            piece = next(self.pieces, None)
            if piece is None:
                return False
        vector = Piece(*piece)
        if libc.syscall(PROCESS_MADVISE, self.fd, ctypes.byref(vector), ctypes.c_size_t(1), MADV_PAGEOUT, 0) < 0:
            error = ctypes.get_errno()
            if self.process.poll() is None:
                raise SystemExit("store_memory: process_madvise: " + os.strerror(error))
        self.taken += 1
        return True

    def hold(self):
        """Until the process ends."""
        while self.process.poll() is None:
            now = self.resident()
            self.seen.append(now)
            self.most = max(self.most, now)
            for _ in range(1000):
                if now <= self.limit or not self.take():
                    break
                now = self.resident()
            for fd in self.files:
                os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            time.sleep(LOOK_S)
        for fd in self.files + [self.fd]:
            os.close(fd)


def size_of(store):
    return sum(e.stat().st_size for e in os.scandir(store) if e.name.endswith(".npy"))


def fill_cache(store, wanted):
    """All of the store in the system's cache, or none."""
    for e in os.scandir(store):
        with open(e.path, "rb") as f:
            if wanted:
                while f.read(1 << 22):
                    pass
            else:
                os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def state_hash(a, run):
    return json.loads(common.call([a.dtrain, "ckpt", "inspect", run, "--json"]))["state_hash"]


def train(a, store, run, limit):
    """What the steps of a run say, its first tenth left out: samples/s, share of waiting for data, most resident."""
    fill_cache(store, limit == 0)
    sets = {"data.store": store, "training.epochs": 1000, "training.eval_interval": 0, "data.batch": a.batch,
            "data.workers": a.workers, "risk_gnn.hidden": a.hidden, "world_lstm.hidden": a.hidden,
            "report.enabled": "false", "metrics.tensorboard": "false"}
    words = [a.dtrain, "run", "--plugin", "phase1_world_model", "-q", "--run-dir", run, "--threads", "1", "--max-steps",
             str(a.steps), *common.options(sets), *a.more]
    before = common.cpu_s()
    process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    holder = Holder(process, store, limit)
    if limit > 0:
        holder.hold()
    if process.wait() != 0:
        raise SystemExit(process.stderr.read()[-2000:])
    process.stderr.close()
    rows = common.rows(run, "time/step")
    rows = rows[len(rows) // 10:]
    took, waited = sum(r["time/step"] for r in rows), sum(r["time/data_wait"] for r in rows)
    return {"rate": a.batch * len(rows) / took, "wait": waited / took, "cpu": common.cpu_s() - before,
            "most": holder.most, "middle": statistics.median(holder.seen or [0]), "taken": holder.taken,
            "state": state_hash(a, run)}


def main():
    p = common.parser(__doc__)
    p.add_argument("--source", default=common.RECORDING, help="a recording, as dtrain data import takes it")
    p.add_argument("--copies", type=int, default=50)
    p.add_argument("--steps", type=int, default=150)
    p.add_argument("--turns", type=int, default=5)
    p.add_argument("--batch", type=int, default=16)
    p.add_argument("--hidden", type=int, default=128)
    p.add_argument("--workers", type=int, default=1, help="threads that read ahead")
    a = common.parse(p)
    if a.quick:
        a.steps, a.turns = 20, 1
    store = common.copy_scenes(a.dtrain, a.source, a.copies, a.work, os.path.join(a.work, "store"))
    limit = size_of(store) // SHARE
    print(f"a store of {size_of(store) / 1e6:.0f} MB, {limit / 1e6:.0f} MB for the process; batches of {a.batch}, models "
          f"{a.hidden} wide, one thread that computes, {a.workers} that read ahead", flush=True)
    free, held, number = [], [], itertools.count()
    for turn in range(a.turns):
        for side in (free, held) if turn % 2 == 0 else (held, free):
            side.append(train(a, store, os.path.join(a.work, f"run-{next(number)}"), limit if side is held else 0))
            last = side[-1]
            print(f"  {'held' if side is held else 'free'}: {last['rate']:.0f} samples/s, {100 * last['wait']:.1f} % of "
                  f"steps waiting for data, {last['cpu']:.1f} s of the processor; resident {last['middle'] / 1e6:.0f} MB "
                  f"in the middle, {last['most'] / 1e6:.0f} at most; {last['taken']} pieces taken", flush=True)
    if len({r["state"] for r in free + held}) != 1:
        raise SystemExit("store_memory: the runs end in different states")
    ratio = statistics.median(h["rate"] / f["rate"] for h, f in zip(held, free))
    common.tell("store_memory.rate", 100 * ratio, "% of the rate in memory", "95")
    common.tell("store_memory.wait", 100 * statistics.median(r["wait"] for r in held), "% of a step", "5 at most",
                "in memory %.2g" % (100 * statistics.median(r["wait"] for r in free)))


if __name__ == "__main__":
    main()
