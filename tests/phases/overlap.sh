#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# phase2_ppo with overlap, which collects the next round in parallel with learning: it learns CartPole, threads, ranks and
# processes change no bit, nor does a stop between rounds or within one, and what an evaluation in between says stays.
set -u

name=overlap
base="--plugin phase2_ppo -q --set phase2_ppo.overlap=1 --set env.id=cartpole --set env.instances=8
      --set phase2_ppo.fragment=32 --set phase2_ppo.train_batch=256 --set data.batch=64 --set training.learning_rate=1e-3
      --set phase2_ppo.iterations=30 --set training.eval_interval=0 --set checkpoint.every_seconds=0
      --set evaluation.baselines= --set report.enabled=false"
# shellcheck source=tests/phases/rig.inc
. "${DT_SRCDIR:-.}/tests/phases/rig.inc"

resume() { # DIR CODE [options]
    dir=$1
    want=$2
    shift 2
    "$dtrain" --resume "$work/$dir" -q "$@" >/dev/null 2>"$work/err"
    code=$?
    [ "$code" -eq "$want" ] || fail "resuming $dir left with $code, expected $want"
}

# it learns, from rounds that are one update old
train whole --threads 1
cases=$((cases + 1))
value=$("$dtrain" eval --checkpoint "$work/whole" --seeds 7,8 --episodes 5 --json 2>"$work/err" |
    sed -n 's/^{"env":"env_cartpole","seeds":\[7,8\],"return":{"mean":\([0-9]*\)[.,].*"shield":{.*/\1/p')
[ "${value:-0}" -ge 100 ] || fail "after 30 rounds the return is '$value', a random policy has 22"
train turns --threads 1 --set phase2_ppo.overlap=0
cases=$((cases + 1))
[ "$(state_hash "$work/turns")" != "$(state_hash "$work/whole")" ] || fail "overlap changes nothing"

# the same bits whichever thread does the work
train threads --threads 2
same threads "2 threads instead of 1"
train ranks --set comm.backend=sim --set comm.ranks=2
same ranks "2 virtual ranks instead of 1"
train three --threads 2 --set comm.backend=sim --set comm.ranks=3
same three "3 virtual ranks of 2 threads"

# and whenever it is stopped: between two rounds, where one was collected and not learnt from; again, at once
train stopped --threads 1 --max-steps 500
resume stopped 0 --max-steps 700 --set comm.backend=sim --set comm.ranks=3
resume stopped 0 --max-steps 1100 --threads 2
resume stopped 0
same stopped "stopped and resumed, on other ranks and threads"

# asked to stop in a round, first of learning, then of what is collected when a run goes on
cases=$((cases + 1))
DTRAIN_FAULT=run.stop:150 "$dtrain" $base --run-dir "$work/asked" >/dev/null 2>"$work/err"
code=$?
[ "$code" -eq 75 ] || fail "asked to stop it left with $code"
DTRAIN_FAULT=run.stop:5
export DTRAIN_FAULT
resume asked 75
unset DTRAIN_FAULT
resume asked 0
same asked "asked to stop within a round"

# what else is kept between rounds: histories, statistics, what frozen models said; evaluated after every round
base="$base --set env.id=env_traffic --set env_traffic.episode_s=60 --set env_traffic.action_s=5 --set env.instances=4
      --set phase2_ppo.iterations=5 --set phase2_ppo.fragment=10 --set phase2_ppo.train_batch=80 --set data.batch=20
      --set data.shards=4 --set phase2_ppo.sgd_epochs=2 --set phase2_ppo.window=3 --set phase2_ppo.normalise_obs=true
      --set phase2_ppo.normalise_reward=true --set models.controller=controller_lstm --set controller_lstm.hidden=16
      --set training.eval_interval=1 --set evaluation.seeds=1,2 --set evaluation.episodes=1"
rm -rf "$work/whole"
train whole --threads 1
train again --threads 2 --set comm.backend=sim --set comm.ranks=2
same again "histories and statistics on 2 ranks"
train part --threads 1 --max-steps 16
resume part 0 --threads 2
same part "histories and statistics after a resume"
train apart --set env.isolation=process
same apart "environments in processes"
train unseen --set training.eval_interval=0
[ "$(state_hash "$work/unseen")" = "$(state_hash "$work/whole")" ] || fail "an evaluation in between changes bits"
cases=$((cases + 1))

# a run that goes on without it says what it does
train left --max-steps 16
cases=$((cases + 1))
"$dtrain" --resume "$work/left" -q --set phase2_ppo.overlap=0 >/dev/null 2>"$work/err" || fail "without overlap it left with $?"
grep -q "the next round uses the current parameters" "$work/err" || fail "going on without overlap says nothing"
refused 2 "overlap" --set phase2_ppo.overlap=2
refused 2 "overlap" --plugin phase3_constrained --set phase3_constrained.overlap=1

echo "overlap: $cases cases, $failed failed"
[ "$failed" -eq 0 ]
