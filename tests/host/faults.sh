#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Faults in whole runs: files cannot be written, memory runs out. Training goes on to the same bits or stops with a
# message and a code, never with a crash. Kills are tests/train/crash.sh; single saves are tests/checkpoint.
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
