#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The world model at work in SUMO, through the program: vehicles of the project's own nets see what phase 1's models
# predict of them and of the vehicle ahead, a shield looks ahead with it, branches are imagined from it. Threads change
# no bit, nor does it whether predictions are kept. Skipped where SUMO or the module for it is missing.
set -u

name=foresight_sumo
small="--set risk_gnn.hidden=16 --set risk_gnn.heads=2 --set risk_gnn.layers=1 --set world_lstm.hidden=16
       --set world_lstm.head=16 --set training.eval_interval=0 --set checkpoint.every_seconds=0"
base="$small --plugin phase2_ppo -q --set env.id=env_sumo --set env.instances=2 --set env_sumo.control=vehicles
      --set env_sumo.agents=8 --set env_sumo.penetration=0.5 --set env_sumo.end_s=200 --set env_sumo.max_vehicles=150
      --set phase2_ppo.iterations=2 --set phase2_ppo.fragment=40 --set phase2_ppo.train_batch=80 --set data.batch=40
      --set phase2_ppo.sgd_epochs=3 --set phase2_ppo.foresight=true --set models.controller=controller_mlp
      --set models.shield=shield_barrier"
# shellcheck source=tests/phases/rig.inc
. "${DT_SRCDIR:-.}/tests/phases/rig.inc"

if [ ! -e "${DT_BUILDDIR:-.}/plugins/env_sumo/env_sumo_shim.la" ] || ! command -v netconvert >/dev/null 2>&1; then
    echo "SKIP: no SUMO here"
    exit 77
fi
cp "${DT_SRCDIR:-.}"/tests/fixtures/sumo/pair.* "$work" && chmod u+w "$work"/pair.*
(cd "$work" && netconvert -n pair.nod.xml -e pair.edg.xml -o pair.net.xml --no-turnarounds --xml-validation never) \
    >"$work/err" 2>&1 || fail "netconvert left with $?"
base="$base --set env_sumo.sumocfg=$work/pair.sumocfg"

"$dtrain" --plugin phase1_world_model -q $small --set data.batch=16 --max-steps 3 --run-dir "$work/first" \
    >/dev/null 2>"$work/err" || fail "phase 1 left with $?"
both="--set models.perception=risk_gnn --set models.world=world_lstm --init-from $work/first"

train whole $both --set shield_barrier.look_ahead_mps2=1.5 --threads 1
grep -q "kept with the samples: foresight, foreseen" "$work/whole/train.log" || fail "what is frozen is not kept"
train recomputed $both --set shield_barrier.look_ahead_mps2=1.5 --threads 1 --set phase2_ppo.keep_foresight=false
same recomputed "computed in every pass instead of kept"
train threads $both --set shield_barrier.look_ahead_mps2=1.5 --threads 3
same threads "3 threads instead of 1"
train imagines $both --set phase2_ppo.imagine_weight=0.5 --set phase2_ppo.imagine_steps=2
train constant --set models.world=world_constant_velocity --set phase2_ppo.imagine_weight=0.5
refused 2 "vehicle agent" --set env_sumo.control=signals --set models.world=world_constant_velocity

echo "$cases cases, $failed failed"
[ "$failed" -eq 0 ]
