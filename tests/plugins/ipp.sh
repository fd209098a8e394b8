#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# env_ipp in the program: checked by dtrain check; its rules play; learning gives the same bits on any number of threads
# and ranks, in processes, and after a stop; its cost is limited by phase 3; wrong options leave with 2; it is drawn.
set -u
dtrain=$DT_BUILDDIR/dtrain
work=$(mktemp -d ./test-ipp-XXXXXX) || exit 1
trap 'rm -rf "$work"' EXIT
failed=0

fail() {
    echo "FAIL: $*"
    tail -n 8 "$work/err" | sed 's/^/    /'
    failed=1
}
state_hash() {
    "$dtrain" ckpt inspect "$1" --json 2>/dev/null | sed -n 's/.*"state_hash":"\([0-9a-f]*\)".*/\1/p'
}

"$dtrain" check env_ipp >"$work/err" 2>&1 || fail "check left with $?"
grep -q "PASS environment env_ipp: the same seeds and actions give identical results" "$work/err" || fail "check"

# rules act by the largest of a column, drawn or not; returns are of four UAVs together
returns() { # controller, low, high, more options
    controller=$1 low=$2 high=$3
    shift 3
    got=$("$dtrain" eval --plugin phase2_ppo --env ipp --set "models.controller=$controller" --seeds 1,2 --episodes 10 \
        --json "$@" 2>"$work/err" | sed -n 's/.*"return":{"mean":\([-0-9.]*\).*/\1/p')
    awk "BEGIN {exit !($got > $low && $got < $high)}" || fail "$controller $* returns $got, expected $low to $high"
}
returns ipp_greedy 24 48
returns ipp_greedy 24 48 --set evaluation.greedy=false
returns ipp_random -16 2
# what it begins as is the greedy rule
returns controller_field 24 48 --set controller_field.rule=1000 --set env_ipp.view=own

small="--set env.id=ipp --set env_ipp.cells=100 --set env_ipp.stride=2 --set env_ipp.budget=5 --set env_ipp.state=true
    --set env.instances=4 --set data.shards=2 --set evaluation.baselines= --set training.eval_interval=0
    --set evaluation.seeds=1 --set evaluation.episodes=1 --set checkpoint.every_seconds=0 --set report.enabled=false
    --set metrics.tensorboard=false --set env_ipp.view=own --set env_ipp.lookahead=true
    --set models.controller=controller_field -q"
rounds="--set data.batch=16 --set phase2_ppo.iterations=4 --set phase2_ppo.train_batch=48 --set phase2_ppo.fragment=12
    --set phase2_ppo.sgd_epochs=2"

train() { # folder, more options
    folder=$1
    shift
    "$dtrain" --plugin phase2_ppo $small $rounds --run-dir "$work/$folder" "$@" >"$work/err" 2>&1
}
train one --threads 1 || fail "training left with $?"
want=$(state_hash "$work/one")
[ -n "$want" ] || fail "a run without a state"
same() { # what, folder, more options
    what=$1 folder=$2
    shift 2
    train "$folder" "$@" || fail "$what left with $?"
    [ "$(state_hash "$work/$folder")" = "$want" ] || fail "$what: other bits"
}
same "three threads" threads --threads 3
same "two ranks" ranks --threads 2 --set comm.backend=sim --set comm.ranks=2
same "processes" processes --threads 2 --set env.isolation=process
train stopped --threads 2 --max-steps 7 || fail "seven steps left with $?"
"$dtrain" --plugin phase2_ppo $small $rounds --resume "$work/stopped" --threads 1 >"$work/err" 2>&1 || fail "resuming left with $?"
[ "$(state_hash "$work/stopped")" = "$want" ] || fail "resumed: other bits"

"$dtrain" --plugin phase3_constrained $small --set data.batch=16 --set phase3_constrained.iterations=1 \
    --set phase3_constrained.train_batch=48 --set phase3_constrained.fragment=12 \
    --set phase3_constrained.limits=collision:0.1 --run-dir "$work/limited" >"$work/err" 2>&1 || fail "phase 3 left with $?"

"$dtrain" render "$work/one" --out "$work/film.html" >"$work/err" 2>&1 || fail "render left with $?"
grep -q '<svg' "$work/film.html" || fail "no picture"
! grep -q "<b>Risk" "$work/film.html" || fail "the legend of a game speaks of risk"

for wrong in uavs=9 uavs=0 budget=0 noise_low=0 noise_high=0.6 truth=sea step_m=30 step_m=1 stride=30 covered_min=0.9 fov_deg=nan \
    cells=100000 communication_m=-1; do
    "$dtrain" --plugin phase2_ppo --set env.id=ipp --set "env_ipp.$wrong" --run-dir "$work/wrong" >"$work/err" 2>&1
    code=$?
    [ "$code" -eq 2 ] || fail "env_ipp.$wrong left with $code"
done

exit "$failed"
