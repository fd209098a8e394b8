#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Logs of a run turn over by size, across a resume too, and warnings stand in error.log; runs that begin in the same
# moment never share a folder; the first step is reported once it was made.
set -u

dtrain=${DT_BUILDDIR:-.}/dtrain
work=$(mktemp -d ./test-logs-XXXXXX) || exit 1
trap 'rm -rf "$work"' EXIT INT TERM
failed=0
tiny="--set risk_gnn.hidden=8 --set risk_gnn.heads=1 --set risk_gnn.layers=1 --set world_lstm.hidden=8
      --set world_lstm.layers=1 --set data.batch=8 --set checkpoint.every_seconds=0 --set report.enabled=false
      --set training.eval_interval=0 --threads 1 -q"

fail() {
    echo "FAIL: $*"
    failed=$((failed + 1))
}

# about 1.5 kB of lines a process: 600 bytes a file, two older ones
"$dtrain" --plugin phase1_world_model $tiny --run-dir "$work/a" --max-steps 1 --set log.max_mb=0.0006 --set log.keep=2 2>"$work/err" ||
    fail "a run: $(cat "$work/err")"
for i in 2 3 4; do
    "$dtrain" run --resume "$work/a" --max-steps $i -q 2>"$work/err" || fail "resumed: $(cat "$work/err")"
done
[ -e "$work/a/train.log.2" ] && [ ! -e "$work/a/train.log.3" ] || fail "two older logs: $(ls "$work/a")"
for f in "$work/a/train.log" "$work/a/train.log.1" "$work/a/train.log.2"; do
    [ "$(wc -c <"$f")" -le 600 ] || fail "$f has $(wc -c <"$f") bytes"
    grep -qvE '^[0-9-]{10}T[0-9:]{8}Z (info|warn|error|debug)  ?' "$f" && fail "a line of $f is cut: $(cat "$f")"
done
tail -n 1 "$work/a/train.log" | grep -q "stopped after --max-steps 4" || fail "the youngest log ends with: $(tail -n 1 "$work/a/train.log")"
[ ! -s "$work/a/error.log" ] || fail "no error, but: $(cat "$work/a/error.log")"

# what went wrong stands in error.log too; another learning rate than the checkpoint's is a warning
"$dtrain" run --resume "$work/a" --max-steps 5 --set training.learning_rate=0.01 --set log.max_mb=0 -q 2>"$work/err" || fail "resumed: $(cat "$work/err")"
grep -q "Z warn  the configuration differs" "$work/a/error.log" || fail "a warning in error.log: $(cat "$work/a/error.log")"
grep -q "Z warn  the configuration differs" "$work/a/train.log" || fail "a warning in train.log"
"$dtrain" --plugin phase1_world_model $tiny --run-dir "$work/bad" --max-steps 200 --set training.learning_rate=1000 \
    --set training.optimizer=sgd --set training.gradient_clip=0 --set training.warmup_epochs=0 2>"$work/err"
grep -q "Z error .*training diverged" "$work/bad/error.log" || fail "an error in error.log: $(cat "$work/bad/error.log")"

# the first step is reported when it was made
awk '/first step done after/ { told = 1 } / parameters \(/ { planned = NR } END { exit !(told && planned) }' "$work/bad/train.log" ||
    fail "the first step: $(cat "$work/bad/train.log")"

# twenty at once, whose first choice of a name is the same
i=0
pids=
while [ $i -lt 20 ]; do
    DTRAIN_FAULT=rundir.random:1 DTRAIN_RUN_DIR=$work/runs nice "$dtrain" --plugin phase1_world_model $tiny --name x --max-steps 1 \
        2>"$work/err.$i" &
    pids="$pids $!"
    i=$((i + 1))
done
for pid in $pids; do
    wait $pid || fail "one of twenty left with $?: $(cat "$work"/err.*)"
done
[ "$(find "$work/runs" -name meta.json | wc -l)" -eq 20 ] || fail "twenty runs: $(ls "$work/runs")"
[ "$("$dtrain" runs "$work/runs" --json | grep -o '"exit_code":0' | wc -l)" -eq 20 ] || fail "twenty done: $("$dtrain" runs "$work/runs")"
[ $failed -eq 0 ]
