#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# log.every thins metrics.jsonl and the event files: the first step, the last one and evaluated ones are always there,
# what is kept says the same as without it, and a run that was interrupted keeps the same steps.
set -u

dtrain=${DT_BUILDDIR:-.}/dtrain
work=$(mktemp -d ./test-records-XXXXXX) || exit 1
trap 'rm -rf "$work"' EXIT INT TERM
failed=0
tiny="--plugin phase1_world_model --set risk_gnn.hidden=8 --set risk_gnn.heads=1 --set risk_gnn.layers=1
      --set world_lstm.hidden=8 --set world_lstm.layers=1 --set data.batch=64 --set checkpoint.every_seconds=0
      --set report.enabled=false --set training.eval_interval=0 --threads 1 -q"

fail() {
    echo "FAIL: $*"
    failed=$((failed + 1))
}
steps() { # run: the steps of its records
    sed -n 's/^{"step":\([0-9]*\),.*/\1/p' "$1/metrics.jsonl" | tr '\n' ' '
}
losses() { # run: step and loss of each record
    sed -n 's/^{"step":\([0-9]*\),.*"loss":\([^,}]*\).*/\1 \2/p' "$1/metrics.jsonl"
}

"$dtrain" $tiny --run-dir "$work/all" --max-steps 17 2>"$work/err" || fail "all: $(cat "$work/err")"
"$dtrain" $tiny --run-dir "$work/thin" --max-steps 17 --set log.every=5 2>"$work/err" || fail "thin: $(cat "$work/err")"
[ "$(steps "$work/all")" = "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 " ] || fail "all: $(steps "$work/all")"
[ "$(steps "$work/thin")" = "1 5 10 15 17 " ] || fail "thin: $(steps "$work/thin")"
losses "$work/all" >"$work/all.losses"
losses "$work/thin" | while read -r line; do
    grep -qx "$line" "$work/all.losses" || echo "$line"
done >"$work/others"
[ ! -s "$work/others" ] || fail "other losses than without log.every: $(cat "$work/others")"

# stopped by a fault after step 7, which is not kept; what follows is kept as if nobody had stopped it
DTRAIN_FAULT=run.stop:7 "$dtrain" $tiny --run-dir "$work/cut" --max-steps 17 --set log.every=5 2>"$work/err"
[ $? -eq 75 ] || fail "interrupted: $(cat "$work/err")"
[ "$(steps "$work/cut")" = "1 5 " ] || fail "interrupted: $(steps "$work/cut")"
"$dtrain" run --resume "$work/cut" --max-steps 17 -q 2>"$work/err" || fail "resumed: $(cat "$work/err")"
losses "$work/cut" >"$work/cut.losses"
losses "$work/thin" | cmp -s - "$work/cut.losses" || fail "resumed: $(cat "$work/cut.losses")"

# rounds are counted where a phase makes them; evaluated ones are kept
"$dtrain" --plugin phase2_ppo --set env.id=cartpole --set phase2_ppo.iterations=7 --set phase2_ppo.train_batch=64 \
    --set phase2_ppo.fragment=16 --set phase2_ppo.sgd_epochs=2 --set env.instances=4 --set data.batch=32 \
    --set training.eval_interval=5 --set evaluation.seeds=1 --set evaluation.episodes=1 --set evaluation.max_steps=20 \
    --set log.every=3 --set report.enabled=false --threads 1 --run-dir "$work/rounds" -q 2>"$work/err" ||
    fail "rounds: $(cat "$work/err")"
[ "$(steps "$work/rounds")" = "4 12 20 24 28 " ] || fail "rounds: $(steps "$work/rounds")"
grep '"step":20,' "$work/rounds/metrics.jsonl" | grep -q '"eval/' || fail "round 5 has no evaluation"

"$dtrain" $tiny --dry-run --set log.every=0 >/dev/null 2>"$work/err" && fail "log.every = 0 is accepted"
grep -q "log.every" "$work/err" || fail "log.every = 0: $(cat "$work/err")"

[ "$failed" -eq 0 ] && echo "ok: first, last, evaluated and every fifth record, after a resume too"
exit $((failed > 0))
