#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does the shield's learned barrier learn? Vehicles as agents on the ring and on the merge, phase 2 and then phase 3.

    bench/run phase3_barrier [--only merge] [--rounds 60] [--work DIR] [--quick] [dtrain options...]

Phase 2 trains a policy behind the shield, whose bounds keep it from collisions, not from short times to collision,
under 3 s on the merge, 6 s on the ring. Phase 3 goes on from there with half of what those cost as the limit, and
trains the barrier: unsafe is a state from which a short time is at most 2 steps away, safe one from which there are
more than 10. Each line is a mean over a tenth of the rounds, of measurements that are made on a round before it is
learnt from. Then the policy plays episodes whose seeds are none of training's, with the barrier tightening the shield's
bounds (shield_barrier.learned), and not.
"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import common

COMMON = ["env.id=env_traffic", "env.instances=8", "env_traffic.low_mps2=-9", "env_traffic.ttc_s=3",
          "env_traffic.episode_s=200", "training.eval_interval=0", "evaluation.greedy=false",
          "models.shield=shield_barrier", "controller_mlp.log_std_init=-1", "training.learning_rate=1e-3",
          "training.eta_min=0", "training.weight_decay=0"]
POLICY = ["normalise_obs=true", "normalise_reward=true", "entropy_coef=0", "entropy_coef_end=0", "gamma=0.98",
          "train_batch=3200", "sgd_epochs=4"]
SCENARIOS = {
    "ring": ["env_traffic.scenario=ring", "env_traffic.ttc_s=6", "env_traffic.penetration=0.5",
             "env_traffic.agents=11", "data.batch=200"],
    "merge": ["env_traffic.scenario=merge", "env_traffic.penetration=0.25", "env_traffic.agents=32", "data.batch=64"],
}
COST = "time_to_collision"
COLUMNS = [("violation_rate", "barrier/violation_rate"), ("accuracy", "barrier/accuracy"),
           ("of safe", "barrier/accuracy_safe"), ("of unsafe", "barrier/accuracy_unsafe"),
           ("unsafe", "barrier/unsafe"), ("cost", "costs/" + COST), ("limit", "limits/" + COST)]


def train(a, phase, run, scenario, more, *words):
    policy = [phase + "." + s for s in POLICY + ["iterations=%d" % a.rounds]]
    common.train(a, phase, run, COMMON + policy + SCENARIOS[scenario] + more, "--threads", a.threads, *words)


def mean(rows, name):
    values = [r[name] for r in rows if name in r]
    return sum(values) / len(values) if values else float("nan")


def measure(a, scenario):
    before, after = "%s/%s-2" % (a.work, scenario), "%s/%s-3" % (a.work, scenario)
    train(a, "phase2_ppo", before, scenario, [])
    rows = common.rows(before, "losses/policy_loss")
    limit = 0.5 * mean(rows[-len(rows) // 4:], "costs/" + COST)
    train(a, "phase3_constrained", after, scenario,
          ["phase3_constrained.on_violations=none", "phase3_constrained.limits=%s:%.3g" % (COST, limit),
           "training.warmup_epochs=4"], "--init-from", before)
    rows = common.rows(after, "losses/barrier_loss")
    print("%s: rounds  %s" % (scenario, "  ".join("%14s" % c[0] for c in COLUMNS)))
    step = max(1, len(rows) // 10)
    for i in range(0, len(rows), step):
        print("%s %3d-%3d  %s" % (scenario, i + 1, min(i + step, len(rows)),
                                  "  ".join("%14.4f" % mean(rows[i:i + step], c[1]) for c in COLUMNS)), flush=True)
    for learned in ("false", "true"):
        r = common.evaluate(a, "phase3_constrained", after, {"shield_barrier.learned": learned}, "--episodes",
                            str(a.episodes), "--seeds", "1000000")
        print("%s learned=%s: %s %.2f  collisions %.2f  return %.1f  interventions %.0f" % (
            scenario, learned, COST, r["costs"][COST]["mean"], r["costs"]["collisions"]["mean"], r["return"]["mean"],
            r["shield"]["interventions"]), flush=True)
    last = rows[-step:]
    common.tell("phase3_barrier.%s.accuracy" % scenario, mean(last, "barrier/accuracy"), "1", "0.9 at least")
    common.tell("phase3_barrier.%s.violation_rate" % scenario, mean(last, "barrier/violation_rate"), "1", "0.1 at most")


def main():
    p = common.parser(__doc__)
    p.add_argument("--only", choices=SCENARIOS)
    p.add_argument("--rounds", type=int, default=60)
    p.add_argument("--threads", default="1")
    p.add_argument("--episodes", type=int, default=16)
    a = common.parse(p)
    if a.quick:
        a.only, a.rounds, a.episodes = "ring", 8, 1
        a.more += common.options({"env_traffic.episode_s": 10})
    for scenario in SCENARIOS:
        if a.only in (None, scenario):
            measure(a, scenario)


if __name__ == "__main__":
    main()
