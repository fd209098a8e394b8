#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs never end in a dead end: one that was killed before its first checkpoint begins again in its folder, by --resume
# and by the same command, to the bits of one that nobody disturbed, with the phase and the weights that it began with.
# --resume auto goes on or begins. Weights that are not there are refused before anything is left behind.
set -u

dtrain=${DT_BUILDDIR:-.}/dtrain
work=$(mktemp -d ./test-again-XXXXXX) || exit 1
trap 'rm -rf "$work"' EXIT INT TERM
failed=0
cases=0
DTRAIN_RUN_DIR=$work/runs
export DTRAIN_RUN_DIR
tiny="--set risk_gnn.hidden=8 --set risk_gnn.heads=1 --set risk_gnn.layers=1 --set world_lstm.hidden=8
    --set world_lstm.layers=1 --set data.batch=8 --set training.eval_interval=0 --set training.save_interval=0
    --set checkpoint.every_seconds=0 --set phase2_ppo.train_batch=64 --set phase2_ppo.fragment=16
    --set phase2_ppo.iterations=3 --threads 1 -q"
one="--plugin phase1_world_model $tiny"
cat >"$work/two.cfg" <<'END2'
phases = ( { plugin = "phase1_world_model"; stop = { steps = 3; }; },
           { plugin = "phase2_ppo"; env = { id = "cartpole"; instances = 2; }; data = { batch = 32; }; } );
END2

fail() {
    echo "FAIL: $*"
    tail -n 6 "$work/err" | sed 's/^/    /'
    failed=$((failed + 1))
}
# expect CODE TEXT COMMAND...
expect() {
    want=$1 text=$2
    shift 2
    cases=$((cases + 1))
    "$@" >"$work/out" 2>"$work/err"
    code=$?
    [ $code -eq "$want" ] || fail "exit code $code, expected $want: $*"
    [ -z "$text" ] || grep -qF -- "$text" "$work/err" "$work/out" || fail "nothing said about \"$text\": $*"
}
state_hash() {
    "$dtrain" ckpt inspect "$1" --json 2>/dev/null | sed -n 's/.*"state_hash":"\([0-9a-f]*\)".*/\1/p'
}
same() { # DIR OTHER: the same bits and the same records
    cases=$((cases + 1))
    [ -n "$(state_hash "$1")" ] && [ "$(state_hash "$1")" = "$(state_hash "$2")" ] || fail "$1: other bits than $2"
    [ "$(cut -d, -f1,2 "$1/metrics.jsonl")" = "$(cut -d, -f1,2 "$2/metrics.jsonl")" ] || fail "$1: other records than $2"
}
again="ended before its first checkpoint: it starts again"

expect 0 "" "$dtrain" $one --max-steps 6 --run-dir "$work/whole"

# --- killed before its first checkpoint: at its start, in the middle, while it saves for the first time ---
for point in run.begin:1! run.iterate:4! fs.fsync:3! fs.rename:5!; do
    for how in resume command auto; do
        rm -rf "$work/killed"
        DTRAIN_FAULT=$point "$dtrain" $one --max-steps 6 --run-dir "$work/killed" >/dev/null 2>"$work/err"
        code=$?
        [ $code -eq 137 ] || fail "$point: exit code $code"
        [ -z "$(state_hash "$work/killed")" ] || fail "$point: it saved before"
        [ -e "$work/killed/meta.json" ] || continue # not even begun: nothing to be said
        case $how in
        resume) expect 0 "$again" "$dtrain" run --resume "$work/killed" --max-steps 6 --threads 1 -q ;;
        command) expect 0 "$again" "$dtrain" $one --max-steps 6 --run-dir "$work/killed" ;;
        auto) expect 0 "$again" "$dtrain" $one --max-steps 6 --run-dir "$work/killed" --resume auto ;;
        esac
        same "$work/killed" "$work/whole"
    done
done
[ $cases -ge 19 ] || fail "only $cases cases: the kills come at another place than expected"

# --- what it began with is part of it: the phase, and weights from a path of then ---
expect 0 "" "$dtrain" --config "$work/two.cfg" $tiny --phase 1 --run-dir "$work/first"
weights=$work/first/checkpoints/step-000000000003/model.safetensors
expect 0 "" "$dtrain" $one --init-from "$weights" --max-steps 2 --run-dir "$work/warm"
DTRAIN_FAULT=run.iterate:2! "$dtrain" $one --init-from "$weights" --max-steps 2 --run-dir "$work/cold" >/dev/null 2>"$work/err"
expect 0 "$again" "$dtrain" run --resume "$work/cold" --max-steps 2 --threads 1 -q
same "$work/cold" "$work/warm"
expect 0 "" "$dtrain" --config "$work/two.cfg" $tiny --phase 2 --run-dir "$work/second"
DTRAIN_FAULT=run.iterate:2! "$dtrain" --config "$work/two.cfg" $tiny --phase 2 --run-dir "$work/later" >/dev/null 2>"$work/err"
expect 0 "$again" "$dtrain" run --resume "$work/later" -q
same "$work/later" "$work/second"

# --- --resume auto: the same line in every life of a job ---
job="$dtrain $one --max-steps 6 --run-dir $work/job --resume auto"
DTRAIN_FAULT=run.stop:2 expect 75 "" $job
DTRAIN_FAULT=run.stop:2 expect 75 "" $job
DTRAIN_FAULT=run.iterate:2! expect 137 "" $job
expect 0 "" $job
same "$work/job" "$work/whole"
expect 0 "" $job # nothing is left to do
same "$work/job" "$work/whole"
named="$dtrain $one --max-steps 6 --name nightly --resume auto"
expect 0 "" "$dtrain" $one --max-steps 1 --name nightly-other # another run, whose name begins alike
DTRAIN_FAULT=run.stop:3 expect 75 "" $named
expect 0 "" $named
cases=$((cases + 1))
set -- "$work"/runs/nightly-2*
[ $# -eq 1 ] || fail "--name with --resume auto made $# runs: $*"
same "$1" "$work/whole"
expect 2 "--run-dir" "$dtrain" $one --resume auto
expect 0 "\"run_dir\":\"$work/new\"" "$dtrain" $one --run-dir "$work/new" --resume auto --dry-run --json
[ ! -e "$work/new" ] || fail "a dry run left something behind"

# --- what is no run stays refused, and so does what would be mixed or is damaged ---
mkdir "$work/empty" "$work/other"
expect 2 "no run is there" "$dtrain" $one --resume "$work/empty"
expect 2 "no run is there" "$dtrain" $one --resume "$work/nowhere"
echo '{"step":1}' >"$work/other/metrics.jsonl"
expect 2 "already contains a run" "$dtrain" $one --run-dir "$work/other"
expect 2 "already contains a run" "$dtrain" $one --run-dir "$work/other" --resume auto
grep -q step "$work/other/metrics.jsonl" || fail "foreign records are gone"
expect 2 "already contains a run" "$dtrain" $one --run-dir "$work/whole"
cp -r "$work/whole" "$work/damaged"
for step in "$work"/damaged/checkpoints/step-*; do
    echo x >"$step/COMMIT"
done
expect 4 "none of the" "$dtrain" run --resume "$work/damaged" -q
expect 4 "quarantine" "$dtrain" run --resume "$work/damaged" -q
expect 4 "quarantine" "$dtrain" $one --run-dir "$work/damaged" --resume auto
expect 4 "quarantine" "$dtrain" eval --checkpoint "$work/damaged"
expect 4 "quarantine" "$dtrain" export --checkpoint "$work/damaged"
expect 4 "quarantine" "$dtrain" ckpt inspect "$work/damaged"
expect 2 "already contains a run" "$dtrain" $one --run-dir "$work/damaged"

# --- every checkpoint of a run is looked at, not the newest good one alone ---
"$dtrain" $one --max-steps 5 --set checkpoint.every_steps=1 --run-dir "$work/many" 2>"$work/err" || fail "five steps: $?"
expect 0 "a resume continues from step 5" "$dtrain" ckpt verify "$work/many"
expect 0 "\"damaged\":0" "$dtrain" ckpt verify "$work/many" --json
printf x | dd of="$work/many/checkpoints/step-000000000005/model.safetensors" bs=1 seek=3000 conv=notrunc 2>/dev/null
expect 4 "1 of 5" "$dtrain" ckpt verify "$work/many"
expect 4 "a resume continues from step 4" "$dtrain" ckpt verify "$work/many"
expect 4 "5  damaged  " "$dtrain" ckpt verify "$work/many"
expect 4 "\"resume\":\"$work/many/checkpoints/step-000000000004\"" "$dtrain" ckpt verify "$work/many/checkpoints" --json
passed_over() { # what takes weights from a run, with the newest ones damaged: the same warning, and the older one
    for text in "step-000000000005 skipped: " "using $work/many/checkpoints/step-000000000004"; do
        expect 0 "$text" "$dtrain" ckpt inspect "$work/many"
        expect 0 "$text" "$dtrain" eval --checkpoint "$work/many"
        expect 0 "$text" "$dtrain" export --checkpoint "$work/many" --out "$work/out.safetensors"
        rm -rf "$work/later"
        expect 0 "$text" "$dtrain" $one --max-steps 1 --init-from "$work/many" --run-dir "$work/later"
    done
}
passed_over
cp "$work/many/checkpoints/step-000000000005/COMMIT" "$work/commit"
rm "$work/many/checkpoints/step-000000000005/COMMIT"
passed_over
cp "$work/commit" "$work/many/checkpoints/step-000000000005/COMMIT"
expect 4 "model.safetensors" "$dtrain" eval --checkpoint "$work/many/checkpoints/step-000000000005"
rm "$work/many/checkpoints/step-000000000002/COMMIT"
expect 4 "2 of 5 checkpoints" "$dtrain" ckpt verify "$work/many"
expect 4 "model.safetensors" "$dtrain" ckpt verify "$work/many/checkpoints/step-000000000005"
expect 0 "step 4, " "$dtrain" ckpt verify "$work/many/checkpoints/step-000000000004"
expect 2 "no run or checkpoint at" "$dtrain" ckpt verify "$work/nowhere"

# --- a result that nobody reports is found before the first step; looking for it changes no bit ---
seen="--set training.eval_interval=100 --set training.epochs=1"
wrong() { # TEXT [options]
    text=$1
    shift
    rm -rf "$work/wrong"
    expect 2 "$text" "$dtrain" $one $seen --max-steps 2 --run-dir "$work/wrong" "$@"
    [ ! -s "$work/wrong/metrics.jsonl" ] || fail "it trained before"
}
wrong 'stop.metric = "rmse" is not a result of the evaluation of phase1_world_model; did you mean "rmse_m"?' \
    --set phase1_world_model.stop.metric=rmse --set phase1_world_model.stop.below=0.1
wrong 'checkpoint.best_by = "rmse_n" is not a result' --set checkpoint.best_by=min:rmse_n
"$dtrain" $one $seen --max-steps 2 --run-dir "$work/plain" 2>"$work/err" || fail "plain: $?"
"$dtrain" $one $seen --max-steps 2 --run-dir "$work/best" --set checkpoint.best_by=min:rmse_m/5 2>"$work/err" || fail "best_by: $?"
same "$work/best" "$work/plain"

# --- weights that are not there ---
for word in "$work/nowhere.safetensors" "$work/empty"; do
    expect 2 "--init-from $word" "$dtrain" $one --init-from "$word" --run-dir "$work/none" --dry-run
    expect 2 "--init-from $word" "$dtrain" $one --init-from "$word" --run-dir "$work/none"
    expect 2 "--init-from $word" "$dtrain" $one --init-from "$word" --name none
done
expect 4 "--init-from $work/two.cfg" "$dtrain" $one --init-from "$work/two.cfg" --run-dir "$work/none" --dry-run
set -- "$work"/none* "$work"/runs/none*
[ ! -e "$1" ] && [ ! -e "$2" ] || fail "a refused --init-from left $*"

# --- asked for fewer steps than it has ---
cp -r "$work/whole" "$work/past"
expect 0 "step 6 of" \
    "$dtrain" run --resume "$work/past" --max-steps 3 --threads 1 -q
same "$work/past" "$work/whole"
cases=$((cases + 1))
"$dtrain" runs "$work/past" --json >"$work/out"
grep -q '"step":6,' "$work/out" && ! grep -q '"steps":3,' "$work/out" || fail "it is at step 6 of 3: $(cat "$work/out")"
expect 0 "" "$dtrain" run --resume "$work/past" --max-steps 6 --threads 1 -q # just there: nothing to be said
cases=$((cases + 1))
! grep -q "beyond" "$work/err" || fail "what was asked for is there, and is told as if it were not"

echo "$cases cases, $failed failed"
[ $failed -eq 0 ]
