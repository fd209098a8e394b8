#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Junctions that are hard on a shield, tests/fixtures/shapes: phase2_ppo learns each for a short while, in env_traffic
and in env_sumo, with shield_barrier and without it, and is judged beside the file's program and the greedy rule.

A row: delay of the whole demand per vehicle, the longest that anybody first at a line went without the green of the link,
the share of decisions at which the shield could not keep all that it promises, and whether traffic stood (less than nine
in ten of the vehicles due got through). Seeds of training and of evaluation are the same for all."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import common  # noqa: E402

SHAPES = ["merge", "shared", "same", "tie", "turns", "tram", "crossing"]
FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tests", "fixtures", "shapes")


def world(env, shape):
    path = os.path.join(FOLDER, shape)
    if env == "env_sumo":
        return {"env.id": "env_sumo", "env_sumo.sumocfg": path + ".sumocfg"}
    return {"env.id": "env_traffic", "env_traffic.scenario": "net", "env_traffic.control": "signals",
            "env_traffic.net_file": path + ".net.xml", "env_traffic.routes_file": path + ".rou.xml",
            "env_traffic.episode_s": 3600}


def row(shape, env, policy, shield, result):
    m = {k: v["mean"] for k, v in result["metrics"].items()}
    stands = m["finished"] < 0.9 * m["demand"]
    print("| %-8s | %-11s | %-9s | %-7s | %7.1f | %7.1f | %6.4f | %-3s |" % (
        shape, env, policy, "with" if shield else "without", m["strict_delay_s"], m["longest_red_s"],
        result["shield"]["infeasible_rate"], "yes" if stands else "no"), flush=True)
    return stands, m["longest_red_s"], result["shield"]["infeasible_rate"]


def judge(a, sets, *words):
    return common.json.loads(common.call([a.dtrain, "eval", "--plugin", "phase2_ppo", "-q", "--seeds", a.seeds,
                                          "--episodes", "1", "--json", *words, *common.options(sets), *a.more]))


def main():
    p = common.parser(__doc__)
    p.add_argument("--env", action="append", help="env_traffic or env_sumo (both)")
    p.add_argument("--iterations", type=int, default=12)
    p.add_argument("--seeds", default="11,12")
    a = common.parse(p)
    a.iterations = 2 if a.quick else a.iterations
    stood, late = 0, 0
    print("| junction | environment | policy    | shield  | delay s | red s   | infeas | stands |")
    print("|---|---|---|---|---|---|---|---|")
    for env in a.env or ["env_traffic", "env_sumo"]:
        for shape in SHAPES[:1] if a.quick else SHAPES:
            here = world(env, shape)
            for rule in ("fixed", "greedy"):
                row(shape, env, rule, False, judge(a, dict(here, **{"models.controller": "controller_" + rule})))
            for shield in ("", "shield_barrier"):
                run = os.path.join(a.work, "%s-%s-%s" % (env, shape, shield or "bare"))
                sets = dict(here, **{"models.controller": "controller_influence", "models.shield": shield,
                                     "phase2_ppo.iterations": a.iterations, "phase2_ppo.train_batch": 720,
                                     "phase2_ppo.fragment": 360, "env.instances": 2, "data.batch": 120,
                                     "phase2_ppo.normalise_reward": "true", "training.learning_rate": 1e-3,
                                     "training.eval_interval": 0})
                common.train(a, "phase2_ppo", run, sets)
                result = judge(a, {"models.shield": shield}, "--checkpoint", run)
                stands, red, infeasible = row(shape, env, "learned", shield, result)
                stood += stands
                late += bool(shield) and red > 90 and infeasible == 0
    common.tell("shield_shapes/stands", stood, "policies", "0 at most", "learned, of which traffic stands")
    common.tell("shield_shapes/late", late, "policies", "0 at most", "behind the shield, over 90 s and not said")


if __name__ == "__main__":
    main()
