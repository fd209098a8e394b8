#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# `dtrain runs` on real runs: one that goes on, one killed, one done, one failed, one damaged; and nobody trains into
# the folder of a run that is alive.
set -u

. "${DT_SRCDIR:-.}/tests/check.inc"
mkdir "$work/runs"
run="$dtrain --plugin phase1_world_model --set risk_gnn.hidden=8 --set risk_gnn.heads=1 --set risk_gnn.layers=1
     --set world_lstm.hidden=8 --set world_lstm.layers=1 --set data.batch=8 --set training.eval_interval=0
     --set checkpoint.every_seconds=0 --set training.save_interval=0 --threads 1 -q"

# says NAME STATE: the line of the table, and the object of the JSON
says() {
    "$dtrain" runs "$work/runs" >"$work/table" 2>"$work/err" || fail "runs: $(cat "$work/err")"
    grep -q "^$1 .*$2" "$work/table" || fail "$1 is not \"$2\" in: $(cat "$work/table")"
    "$dtrain" runs "$work/runs" --json | tr '{' '\n' | grep -q "\"name\":\"$1\",\"state\":\"$2\"" || fail "$1 is not $2 in JSON"
}

"$dtrain" runs "$work/runs" | grep -qx "no runs in $work/runs" || fail "an empty folder"
test "$(DTRAIN_RUN_DIR=$work/none "$dtrain" runs --json)" = "[]" || fail "no folder yet"

$run --run-dir "$work/runs/done" --max-steps 4 2>"$work/err" || fail "the run: $(cat "$work/err")"
says "done" "done"
"$dtrain" runs "$work/runs/done" --json | grep -q '"step":4,"steps":4,"phase_progress":1,"progress":1,' || fail "how far: $("$dtrain" runs "$work/runs/done" --json)"
"$dtrain" runs "$work/runs/done" --json | grep -q '"best":{"name":"loss","is":"min","value":[0-9.]*,"step":[1-4]}' || fail "how good"

# --- runs lie at any depth below; their names say where; links are not followed, and a run holds no others ---
mkdir -p "$work/deep/a/b/c" "$work/deep/z"
cp -r "$work/runs/done" "$work/deep/a/b/c/one"
cp -r "$work/runs/done" "$work/deep/two"
cp -r "$work/runs/done" "$work/deep/two/inner"
ln -s ../../deep "$work/deep/z/round"
ln -s "$work/runs/done" "$work/deep/link"
for dir in "$work/deep" "$work/deep/"; do
    "$dtrain" runs "$dir" --json | tr '{' '\n' | sed -n 's/^"run":"[^"]*","name":"\([^"]*\)".*/\1/p' | sort >"$work/names"
    printf 'a/b/c/one\ntwo\n' | cmp -s - "$work/names" || fail "runs below $dir: $(cat "$work/names")"
done
"$dtrain" runs "$work/deep" | grep -q "^a/b/c/one .*done" || fail "the table of runs below"
"$dtrain" runs "$work/deep" --json | grep -qF "\"run\":\"$work/deep/a/b/c/one\"" || fail "where a run is"

$run --run-dir "$work/runs/alive" --set training.epochs=100000 2>"$work/err" &
pid=$!
tries=0
until [ -s "$work/runs/alive/metrics.jsonl" ] || [ $tries -gt 400 ]; do
    tries=$((tries + 1))
    sleep 0.05
done
says alive running
"$dtrain" watch "$work/runs/alive" >"$work/out" 2>&1 || fail "watch: $(cat "$work/out")"
grep -q "^alive  running$" "$work/out" && grep -q "^loss " "$work/out" || fail "what watch shows: $(cat "$work/out")"
$run --run-dir "$work/runs/alive" --resume "$work/runs/alive" 2>"$work/err"
code=$?
[ $code -eq 2 ] || fail "a second process trains into it: exit code $code"
grep -q "alive is in use by a training.*held by process $pid on " "$work/err" || fail "who trains: $(cat "$work/err")"
kill -KILL $pid
wait $pid 2>/dev/null
says alive interrupted
"$dtrain" runs "$work/runs/alive" --json | grep -q '"exit_code":null' || fail "a killed run has no exit code"

# --- who goes on with a run while its process, killed, is not quite gone, waits for that ---
$run --run-dir "$work/dying" --set training.epochs=100000 --set checkpoint.every_steps=1 2>"$work/err" &
pid=$!
tries=0
until [ -n "$(ls -d "$work/dying/checkpoints"/step-* 2>/dev/null)" ] || [ $tries -gt 400 ]; do
    tries=$((tries + 1))
    sleep 0.05
done
kill -STOP $pid
(sleep 0.7 && kill -KILL $pid) &
$run --resume "$work/dying" --max-time 1 2>"$work/err"
code=$?
wait $pid 2>/dev/null
[ $code -eq 75 ] || fail "a run whose process is ending goes on: exit code $code, $(cat "$work/err")"

# --- with nothing but damaged checkpoints nothing goes on, and that is said ---
cp -r "$work/runs/alive" "$work/runs/lost"
mkdir -p "$work/runs/lost/checkpoints/quarantine/step-000000000002" "$work/runs/lost/checkpoints/quarantine/step-000000000004"
rm -rf "$work/runs/lost/checkpoints"/step-*
says lost interrupted
grep -q "^lost .*nothing to resume from: 2 damaged checkpoints in checkpoints/quarantine$" "$work/table" ||
    fail "what is left of a run: $(cat "$work/table")"
! grep -q "^alive .*nothing to resume from" "$work/table" || fail "a run without checkpoints begins again"
rm -rf "$work/runs/lost"

# --- a file where the folder should be ---
: >"$work/file"
$run --run-dir "$work/file" 2>"$work/err"
code=$?
[ $code -eq 2 ] && grep -q "^error --run-dir $work/file is a file; name a folder, or remove it$" "$work/err" ||
    fail "--run-dir FILE: $code, $(cat "$work/err")"
mkfifo "$work/pipe"
ln -s nowhere "$work/link"
for other in "pipe is not a folder" "link is a link that does not point to a folder"; do
    $run --run-dir "$work/${other%% *}" 2>"$work/err"
    code=$?
    [ $code -eq 2 ] && grep -q "^error --run-dir $work/$other; name a folder, or remove it$" "$work/err" ||
        fail "--run-dir ${other%% *}: $code, $(cat "$work/err")"
done

$run --run-dir "$work/runs/bad" --set training.learning_rate=1000 --set training.gradient_clip=0 \
    --set training.warmup_epochs=0 --set training.optimizer=sgd --max-steps 400 >/dev/null 2>&1
says bad failed
grep -q "^bad .*failed (7) .*training diverged" "$work/table" || fail "why it failed: $(cat "$work/table")"
"$dtrain" runs "$work/runs/bad" --json | grep -q '"exit_code":7,.*"error":"training diverged' || fail "why, in JSON"

# how far, by whatever ends a phase
progress() { # RUN: of the run, and steps
    "$dtrain" runs "$1" --json | sed 's/.*"steps":\([0-9]*\).*"phase_progress":\([0-9.]*\),.*/\2 \1/'
}
stops() { # name rule steps: what is planned where --max-steps 5 ends it
    "$dtrain" $tiny --run-dir "$work/stop-$1" --max-steps 5 2>"$work/err" \
        --set "phases=({plugin=\"phase1_world_model\"; stop={$2};})" || fail "$1: $(cat "$work/err")"
    # shellcheck disable=SC2046
    set -- "$1" "$3" $(progress "$work/stop-$1")
    [ "$4" = "$2" ] || fail "$1: $4 steps are planned, expected $2"
}
tiny="$(echo "$run" | sed 's/.*--plugin phase1_world_model//')"
stops steps "steps=10" 5
stops iterations "iterations=10" 5
stops time "time=1000.0" 0
"$dtrain" --plugin phase2_ppo --set env.id=cartpole --set phase2_ppo.train_batch=128 --set phase2_ppo.fragment=16 \
    --set env.instances=8 --set phase2_ppo.iterations=8 --set phase2_ppo.sgd_epochs=2 --set data.batch=64 --threads 1 -q \
    --run-dir "$work/ppo" --max-steps 8 --set report.enabled=false 2>"$work/err" || fail "phase 2: $(cat "$work/err")"
[ "$(progress "$work/ppo")" = "1 8" ] || fail "phase 2 to --max-steps: $(progress "$work/ppo")"
two='phases=({plugin="phase1_world_model";},{plugin="phase1_world_model";})'
"$dtrain" $tiny --set "$two" --run-dir "$work/runs/first_of_two" --max-steps 4 2>"$work/err" || fail "two phases: $(cat "$work/err")"
says first_of_two stopped
grep -q "^first_of_two .*phase1_world_model 1/2  *4  *-  loss" "$work/table" || fail "where it stopped: $(cat "$work/table")"
"$dtrain" watch "$work/runs/first_of_two" >"$work/out" 2>&1
grep -q "^first_of_two  stopped$" "$work/out" && grep -q "^phase1_world_model (1 of 2)  step 4  " "$work/out" ||
    fail "watch of a run that was stopped: $(cat "$work/out")"
mkdir "$work/runs/broken"
echo '{' >"$work/runs/broken/meta.json"
says broken damaged
grep -q "broken/meta.json:" "$work/table" || fail "why it is damaged: $(cat "$work/table")"

# looking at a run that ended, and at one that was resumed after it failed to end
"$dtrain" watch "$work/runs/done" >"$work/out" 2>&1 && grep -q "^done  done$" "$work/out" && grep -q " 100 %" "$work/out" ||
    fail "watch of a run that ended: $(cat "$work/out")"
"$dtrain" run --resume "$work/runs/done" --max-steps 6 -q 2>"$work/err" || fail "resumed: $(cat "$work/err")"
"$dtrain" watch "$work/runs/done" --json >"$work/out" 2>&1 && grep -q '"state":"done",.*"step":6,.*"last":{.*"loss":' "$work/out" ||
    fail "watch of a resumed run: $(cat "$work/out")"

for words in "" "$work/nowhere"; do
    "$dtrain" watch $words >"$work/out" 2>&1
    [ $? -eq 2 ] || fail "watch $words: $(cat "$work/out")"
done
"$dtrain" runs "$work/nowhere" 2>"$work/err"
code=$?
[ $code -eq 2 ] && grep -q nowhere "$work/err" || fail "no such folder: exit code $code, $(cat "$work/err")"
[ $failed -eq 0 ]
