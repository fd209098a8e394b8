#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Faults in whole runs: files cannot be written, memory runs out. Training goes on to the same bits or stops with a
# message and a code, never with a crash. Kills are tests/train/crash.sh; single saves are tests/state/checkpoint.
set -u

dtrain=${DT_BUILDDIR:-.}/dtrain
work=$(mktemp -d ./test-faults-XXXXXX) || exit 1
trap 'rm -rf "$work"' EXIT INT TERM
failed=0
points=0
run="$dtrain --plugin phase1_world_model --set risk_gnn.hidden=8 --set risk_gnn.heads=1 --set risk_gnn.layers=1
     --set world_lstm.hidden=8 --set world_lstm.layers=1 --set data.batch=8 --set training.eval_interval=0
     --set checkpoint.every_seconds=0 --set training.save_interval=0 --set checkpoint.every_steps=2 --threads 2 -q"

bad() {
    echo "FAIL: $*"
    tail -n 20 "$work/err" | sed 's/^/    /'
    failed=$((failed + 1))
}

state_hash() {
    "$dtrain" ckpt inspect "$1" --json 2>/dev/null | sed -n 's/.*"state_hash":"\([0-9a-f]*\)".*/\1/p'
}

$run --run-dir "$work/whole" --max-steps 6 2>"$work/err" || { echo "FAIL: the run without a fault"; exit 1; }
whole=$(state_hash "$work/whole")

# --- a save that fails leaves training alone; the next one succeeds ---
for point in fs.write:12 fs.fsync:6 fs.rename:4; do
    rm -rf "$work/fail"
    points=$((points + 1))
    DTRAIN_FAULT=$point $run --run-dir "$work/fail" --max-steps 6 2>"$work/err"
    code=$?
    if [ $code -eq 0 ]; then
        [ "$(state_hash "$work/fail")" = "$whole" ] || bad "$point: another state than without a fault"
    else
        grep -q "error" "$work/err" || bad "$point: exit code $code without a word"
    fi
done

# --- a worker process of an environment dies: the run goes on. Episodes of an environment that is declared
# deterministic are repeated; of another one the run says from where on it cannot be repeated ---
ppo="$dtrain --plugin phase2_ppo --set env.id=cartpole --set env.isolation=process --set env.instances=2
     --set env.restarts=100 --set phase2_ppo.fragment=100 --set phase2_ppo.train_batch=200 --set data.batch=100
     --set phase2_ppo.sgd_epochs=1 --set phase2_ppo.iterations=4 --set training.eval_interval=0 --threads 2 -q"
mark='"not_reproducible_from_step":'
points=$((points + 2))
$ppo --run-dir "$work/alive" 2>"$work/err" || bad "PPO in worker processes"
! grep -q "$mark" "$work/alive/meta.json" || bad "a run that lost nothing is marked"
DTRAIN_FAULT=env.step:150! $ppo --run-dir "$work/repeated" 2>"$work/err" || bad "PPO with lost workers, repeated"
! grep -q "$mark" "$work/repeated/meta.json" || bad "repeated episodes: the run is marked"
grep -q '"env/restarts":[1-9]' "$work/repeated/metrics.jsonl" || bad "no worker was lost"
[ "$(state_hash "$work/repeated")" = "$(state_hash "$work/alive")" ] || bad "repeated episodes: another state"
DTRAIN_PLUGIN_PATH=${DT_BUILDDIR:-.}/tests/run/.libs
export DTRAIN_PLUGIN_PATH
ppo="$ppo --set env.id=stubborn --set models.controller=controller_mlp"
DTRAIN_FAULT=env.step:150! $ppo --run-dir "$work/lost" 2>"$work/err" || bad "PPO with lost workers"
grep -q "${mark}2" "$work/lost/meta.json" || bad "the run is not marked from step 2 on: $(cat "$work/lost/meta.json")"
grep -q '"exit_code":0' "$work/lost/meta.json" || bad "no exit code beside the mark"
# a run that goes on behind the loss stays marked; one that goes on before it is whole again
$ppo --run-dir "$work/two" --max-steps 2 2>"$work/err" || bad "PPO, two steps"
DTRAIN_FAULT=env.step:150! $ppo --max-steps 6 --resume "$work/two" 2>"$work/err" || bad "PPO resumed, with lost workers"
grep -q "$mark" "$work/two/meta.json" || bad "a resumed run that lost workers is not marked"
$ppo --max-steps 8 --resume "$work/two" 2>"$work/err" || bad "PPO resumed"
grep -q "$mark" "$work/two/meta.json" || bad "the mark did not outlive a resume"
$ppo --max-steps 4 --resume "$work/two/checkpoints/step-000000000002" 2>"$work/err" || bad "PPO resumed before it"
! grep -q "$mark" "$work/two/meta.json" || bad "the mark outlived what was lost"

# --- out of memory at the n-th allocation: a code and a message, never a crash ---
n=1
while [ $n -lt 4000 ]; do
    rm -rf "$work/mem"
    points=$((points + 1))
    (DTRAIN_FAULT="alloc:$n" $run --run-dir "$work/mem" --max-steps 2) >/dev/null 2>"$work/err"
    code=$?
    ! grep -q Sanitizer "$work/err" || bad "alloc:$n: what the sanitizer says"
    [ $code -lt 128 ] || bad "alloc:$n ended with exit code $code"
    [ $code -eq 0 ] || [ -s "$work/err" ] || bad "alloc:$n: exit code $code without a word"
    n=$((n + 1 + n / 6))
done

echo "$points fault points hit, $failed failed"
[ "$failed" -eq 0 ] && [ "$points" -gt 40 ]
