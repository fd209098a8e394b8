# SPDX-License-Identifier: Apache-2.0
"""bench/run phase1_ranks: phase 1 on two ranks against PyTorch DDP (gloo) on two, against one rank, and against itself.

Both sides train the same model on the same global batches with one thread a rank. dtrain is the program as people run
it (`dtrain run --nproc 2`), timed from its own records, reading and augmenting its data; DDP's halves of the same
batches are laid out before the clock starts. The sides take turns. Ratios are medians over the turns.
"""
import json
import os
import statistics
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import common  # noqa: E402

RATE, DECAY, CLIP = 1e-3, 1e-4, 1.0
WARM = 5  # steps of a run that are not counted


def sets(a, preset, batch):
    return ["data.batch=%d" % batch, "training.scheduler=constant", "training.warmup_epochs=0", "training.epochs=100000",
            "training.learning_rate=%g" % RATE, "training.weight_decay=%g" % DECAY, "training.gradient_clip=%g" % CLIP,
            "phase1_world_model.horizon_epochs=0", "risk_gnn.preset=" + preset, "world_lstm.preset=" + preset,
            "risk_gnn.dropout=0", "world_lstm.dropout=0", "training.eval_interval=0", "report.enabled=false"]


class Ours:
    """Runs of the program; each gives seconds a step."""
    n = 0

    def __init__(self, a, preset):
        self.a, self.preset = a, preset

    def run(self, ranks, steps, more=()):
        Ours.n += 1
        folder = os.path.join(self.a.work, "run%d" % Ours.n)
        words = ["--threads", "1", "--max-steps", str(steps + WARM)]
        if ranks > 1:
            words += ["--nproc", str(ranks)]
        common.train(self.a, "phase1_world_model", folder, sets(self.a, self.preset, self.a.batch) + list(more), *words)
        rows = common.rows(folder, "loss")
        first, last = rows[WARM - 1], rows[-1]
        self.first_loss = rows[0]["loss"]
        self.peak = max(r["mem/peak"] for r in rows)
        return (last["wall_s"] - first["wall_s"]) / (last["step"] - first["step"])


class Ddp:
    """Two processes of ddp.py."""

    def __init__(self, a, preset):
        folder = os.path.join(a.work, "batches-" + preset)
        os.makedirs(folder)
        halves = 2 * a.batches
        words = [a.driver, folder, str(halves), "--plugin", "phase1_world_model", "--threads", "1", "-q"]
        driver = subprocess.Popen(words + common.options(sets(a, preset, a.batch // 2)), text=True, stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE)
        if not driver.stdout.readline():
            sys.exit("phase1_ranks: the driver wrote no batches")
        driver.communicate("")
        self.ranks = []
        for rank in range(2):
            env = dict(os.environ, RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(a.port),
                       OMP_NUM_THREADS="1")
            self.ranks.append(subprocess.Popen(
                [sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "ddp.py"), "--folder", folder,
                 "--batches", str(a.batches), "--lr", str(RATE), "--weight-decay", str(DECAY), "--clip", str(CLIP)],
                text=True, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE))

    def steps(self, n):
        self.ranks[0].stdin.write("step %d\n" % n)
        self.ranks[0].stdin.flush()
        line = self.ranks[0].stdout.readline()
        if not line:
            sys.exit("phase1_ranks: the DDP side ended")
        out = json.loads(line)
        self.first_loss = getattr(self, "first_loss", out[0][1])
        return statistics.median(x[0] for x in out)

    def close(self):
        self.ranks[0].stdin.close()
        for r in self.ranks:
            r.wait()


def main():
    p = common.parser(__doc__)
    p.add_argument("--driver", default="build/bench_phase1_step")
    p.add_argument("--preset", action="append", help="guide and 15m unless given")
    p.add_argument("--batch", type=int, default=64)
    p.add_argument("--batches", type=int, default=10, help="different ones that DDP goes round")
    p.add_argument("--turns", type=int, default=5)
    p.add_argument("--steps", type=int, default=20, help="of a turn")
    p.add_argument("--port", type=int, default=29577)
    p.add_argument("--no-peer", action="store_true", help="dtrain alone")
    a = common.parse(p)
    if a.quick:
        a.turns, a.steps, a.batches = 1, 5, 2
    for preset in a.preset or ["guide", "15m"]:
        ours, two, one, ddp = Ours(a, preset), [], [], []
        peer = None if a.no_peer else Ddp(a, preset)
        if peer is not None:
            peer.steps(WARM)
        for _ in range(a.turns):
            two.append(ours.run(2, a.steps))
            loss = ours.first_loss
            if peer is not None:
                ddp.append(peer.steps(a.steps))
            one.append(ours.run(1, a.steps))
        print("%s, batch %d, s a step: dtrain on 1 rank %.4f, on 2 %.4f%s" % (
            preset, a.batch, statistics.median(one), statistics.median(two),
            "" if peer is None else "; DDP on 2 %.4f" % statistics.median(ddp)), flush=True)
        if peer is not None:
            peer.close()
            away = abs(loss - peer.first_loss) / abs(loss)
            print("%s: first loss %.6f here, %.6f there (DDP weighs halves equally, whatever they hold)" % (
                preset, loss, peer.first_loss))
            if away > 0.05:
                sys.exit("phase1_ranks: the two sides do not do the same work, nothing is compared")
            print("ratio phase1_ranks_ddp_%s %.3g target 3" % (
                preset, statistics.median(d / t for d, t in zip(ddp, two))), flush=True)
        print("ratio phase1_ranks_scaling_%s %.3g target 1.8" % (
            preset, statistics.median(o / t for o, t in zip(one, two))), flush=True)
    one, four = Ours(a, "15m"), Ours(a, "15m")
    one.run(1, 5)
    four.run(4, 5)
    common.tell("phase1_ranks_memory_15m", four.peak / one.peak, "of one rank's, rank 0 of 4", "0.6 at most")


main()
