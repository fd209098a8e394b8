#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The world model at work in phases 2 and 3, through the program: weights of phase 1 are taken as they are and stay
# frozen, one line swaps the model, a stopped and resumed run has the bits of a whole one, threads, processes and
# virtual ranks change none, nor does it whether predictions are kept or computed again, nothing is built where nobody
# asks, and wrong combinations are refused in clear words.
set -u

name=foresight
small="--set risk_gnn.hidden=16 --set risk_gnn.heads=2 --set risk_gnn.layers=1 --set world_lstm.hidden=16
       --set world_lstm.head=16 --set world_lstm.futures=3 --set world_lstm.kinematic=true --set world_lstm.calibrated=true
       --set world_gru.hidden=16 --set world_gru.head=16 --set training.eval_interval=0
       --set checkpoint.every_seconds=0"
base="$small --plugin phase2_ppo -q --set env.id=env_traffic --set env.instances=4 --set env_traffic.scenario=merge
       --set env_traffic.episode_s=60 --set env_traffic.action_s=1 --set env_traffic.agents=6 --set env_traffic.penetration=0.3
       --set phase2_ppo.iterations=2 --set phase2_ppo.fragment=50 --set phase2_ppo.train_batch=200 --set data.batch=100
       --set phase2_ppo.foresight=true --set models.shield=shield_barrier"
# shellcheck source=tests/phases/rig.inc
. "${DT_SRCDIR:-.}/tests/phases/rig.inc"

"$dtrain" --plugin phase1_world_model -q $small --set data.batch=16 --max-steps 3 --run-dir "$work/first" \
    >/dev/null 2>"$work/err" || fail "phase 1 left with $?"

# perception and world of phase 1
both="--set models.perception=risk_gnn --set models.world=world_lstm --init-from $work/first"
train whole $both --threads 1
[ "$(grep -c "frozen: perception\|frozen: world" "$work/whole/train.log")" -eq 2 ] || fail "what phase 1 learnt is not frozen"
train part $both --max-steps 10
"$dtrain" --resume "$work/part" -q >/dev/null 2>"$work/err" || fail "resuming left with $?"
same part "stopped and resumed"
grep -q "kept with the samples: foresight, foreseen" "$work/whole/train.log" || fail "what is frozen is not kept"
train recomputed $both --threads 1 --set phase2_ppo.keep_foresight=false
same recomputed "computed in every pass instead of kept"
grep -q "kept with" "$work/recomputed/train.log" && fail "kept although nobody asked"
train threads $both --threads 3
same threads "3 threads instead of 1"
train ranks $both --set comm.backend=sim --set comm.ranks=2
same ranks "2 virtual ranks instead of 1"
train apart $both --set env.isolation=process
same apart "environments in processes"

# one line swaps the model; one that learns nothing needs no perception
train gru --set models.perception=risk_gnn --set models.world=world_gru
grep -q "kept with" "$work/gru/train.log" && fail "what is trained is kept"
train constant --set models.world=world_constant_velocity
train influence --set models.world=world_constant_velocity --set models.controller=controller_influence
cases=$((cases + 1))
"$dtrain" eval --checkpoint "$work/constant" --seeds 7 --episodes 1 --json 2>"$work/err" | grep -q '"env":"env_traffic"' ||
    fail "evaluation with foresight"

train ahead --set models.world=world_constant_velocity --set shield_barrier.look_ahead_mps2=1.5
train imagines --set models.world=world_constant_velocity --set phase2_ppo.imagine_weight=0.5 --threads 1
train imagines3 --set models.world=world_constant_velocity --set phase2_ppo.imagine_weight=0.5 --threads 3
[ "$(state_hash "$work/imagines3")" = "$(state_hash "$work/imagines")" ] || fail "imagined on 3 threads: other bits"
train imagined --set models.world=world_constant_velocity --set phase2_ppo.imagine_weight=0.5 --max-steps 10
"$dtrain" --resume "$work/imagined" -q >/dev/null 2>"$work/err" || fail "resuming branches left with $?"
[ "$(state_hash "$work/imagined")" = "$(state_hash "$work/imagines")" ] || fail "imagined, stopped, resumed: other bits"
train imagined_anew --set models.world=world_constant_velocity --set phase2_ppo.imagine_weight=0.5 \
    --set phase2_ppo.keep_foresight=false
[ "$(state_hash "$work/imagined_anew")" = "$(state_hash "$work/imagines")" ] || fail "imagined, not kept: other bits"
refused 2 "obs ego" --set models.controller=controller_influence \
    --set models.world=world_constant_velocity --set phase2_ppo.imagine_weight=0.5
refused 2 "imagine_weight" --set phase2_ppo.foresight=false \
    --set phase2_ppo.imagine_weight=0.5
refused 2 "imagine_steps 1 0.5" --set env_traffic.action_s=0.5 --set phase2_ppo.imagine_weight=0.5 \
    --set models.world=world_constant_velocity

# phase 3 has the same
cases=$((cases + 1))
"$dtrain" $base --plugin phase3_constrained --set models.world=world_constant_velocity \
    --set phase3_constrained.foresight=true --set phase3_constrained.iterations=1 \
    --set phase3_constrained.train_batch=200 --set phase3_constrained.fragment=50 --set env_traffic.episode_s=40 --run-dir "$work/third" \
    >/dev/null 2>"$work/err" || fail "phase 3 left with $?"

refused 2 "models.perception" --set models.world=world_lstm --set models.perception=
refused 2 "world" --set models.world=
refused 2 "history" --set models.perception=risk_gnn --set models.world=world_lstm \
    --set world_lstm.narrow=8
refused 2 "history_s" --set env.id=cartpole --set models.shield= --set models.world=world_constant_velocity
refused 2 "vehicle agent" --set env_traffic.scenario=grid --set env_traffic.control=signals \
    --set models.shield= --set models.world=world_constant_velocity
refused 2 "whole" --set phase2_ppo.rate_hz=3 --set phase2_ppo.history_s=0.5 \
    --set models.world=world_constant_velocity

echo "$cases cases, $failed failed"
[ "$failed" -eq 0 ]
