#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# --dry-run rejects whatever the run would reject, with the same exit code, and leaves nothing behind: each case below
# is planned first, then started. A plan counts trained parameters as the run does, frozen ones from earlier phases
# included.
set -u

dtrain=${DT_BUILDDIR:-.}/dtrain
work=$(mktemp -d ./test-refused-XXXXXX) || exit 1
held=
moves=
trap 'test -z "$held" || kill "$held" 2>/dev/null; rm -rf "$work"' EXIT INT TERM
failed=0
cases=0
DTRAIN_RUN_DIR=$work/runs
export DTRAIN_RUN_DIR
tiny="--set risk_gnn.hidden=8 --set risk_gnn.heads=1 --set risk_gnn.layers=1 --set world_lstm.hidden=8
    --set world_lstm.layers=1 --set data.batch=8 --set training.save_interval=0 --set checkpoint.every_seconds=0
    --set checkpoint.wait_s=0 --threads 1 -q"
one="--plugin phase1_world_model $tiny --set training.eval_interval=0"
ppo="--plugin phase2_ppo --set env.id=cartpole --set phase2_ppo.train_batch=64 --set phase2_ppo.fragment=16
    --set env.instances=4 --set data.batch=32 --set phase2_ppo.iterations=2 --threads 1 -q"

fail() {
    echo "FAIL: $*"
    sed 's/^/    plan: /' "$work/plan" | tail -n 4
    sed 's/^/    run:  /' "$work/err" 2>/dev/null | tail -n 4
    failed=$((failed + 1))
}
# names and sizes of what is there, but for what this script writes itself; a lock names its last holder
contents() {
    find "$work" -type f ! -name err ! -name plan ! -name run.lock -exec wc -c {} + | sort
    find "$work" | grep -v -e '/err$' -e '/plan$' | sort
}
# both CODE NAME ARGUMENTS...: plan and run end with this code, and leave nothing
both() {
    want=$1 name=$2
    shift 2
    cases=$((cases + 1))
    contents >"$work.before"
    "$dtrain" "$@" --dry-run >"$work.out" 2>"$work.plan"
    plan=$?
    [ -n "$held" ] || contents | cmp -s - "$work.before" || fail "$name: a plan leaves files"
    mv "$work.plan" "$work/plan"
    "$dtrain" "$@" >/dev/null 2>"$work/err"
    code=$?
    [ -n "$held$moves" ] || contents | diff - "$work.before" || fail "$name: a rejected run leaves files"
    [ $plan -eq "$want" ] && [ $code -eq "$want" ] || fail "$name: plan $plan, run $code, expected $want"
    rm -f "$work.before" "$work.out"
}
parameters() { sed -n 's/.*"parameters_trained":\([0-9]*\),"steps".*/\1/p'; }

"$dtrain" $one --max-steps 2 --run-dir "$work/first" 2>"$work/err" || fail "no first run"

# --- the run directory ---
both 2 "a folder that holds a run" $one --run-dir "$work/first"
both 2 "a file as folder" $one --run-dir "$work/err"
both 1 "a folder below a file" $one --run-dir "$work/err/run"
both 1 "a folder that nothing can be written to" $one --run-dir /proc/dtrain/run
DTRAIN_RUN_DIR=/proc/dtrain both 1 "a base that nothing can be written to" $one
mkdir "$work/odd" && ln -s "$work/err" "$work/odd/train.log"
both 4 "a log that is a link" $one --run-dir "$work/odd"
mkdir -p "$work/odder/error.log"
both 1 "a log that is a folder" $one --run-dir "$work/odder"
"$dtrain" $one --set training.epochs=100000 --run-dir "$work/held" 2>/dev/null &
held=$!
n=0
until test -s "$work/held/progress.json" || [ $((n = n + 1)) -gt 200 ]; do sleep 0.05; done
both 2 "a folder where another process trains" $one --run-dir "$work/held"
kill -9 "$held" && wait "$held" 2>/dev/null
held=

# --- resume ---
both 2 "no run to resume" run --resume "$work/none" -q
both 2 "resume without a run below runs" run --resume -q
both 2 "another phase there" $ppo --resume "$work/first"
both 2 "a model of another size" run --resume "$work/first" --set world_lstm.hidden=16 -q
both 2 "phases that the checkpoint is not of" run --resume "$work/first" --phase 2 -q
cp -r "$work/first" "$work/bad"
for file in "$work"/bad/checkpoints/step-*/model.safetensors; do printf x | dd of="$file" bs=1 seek=900 conv=notrunc 2>/dev/null; done
moves=1 # to quarantine
both 4 "damaged checkpoints" run --resume "$work/bad" -q
moves=

cases=$((cases + 1))
"$dtrain" run --resume "$work/first" --dry-run --json -q 2>"$work/err" | grep -q "\"run_dir\":\"[^\"]*/first\"" ||
    fail "a plan of a resumed run is below another folder"

# --- first weights ---
both 2 "no file of --init-from" $one --init-from "$work/nowhere.safetensors"
both 2 "no file of init" $one --set phases.0.init="$work/nowhere.safetensors"
both 2 "weights of another size" $one --set world_lstm.hidden=16 --init-from "$work/first" --run-dir "$work/new"
both 2 "weights of another phase" $ppo --init-from "$work/first" --run-dir "$work/new"
both 2 "no phase before" $one --set phases.0.init=previous --run-dir "$work/new"

# --- files, results, devices ---
both 4 "no store" $one --set data.store="$work/nowhere" --run-dir "$work/new"
both 2 "no result of that name" $ppo --set stop.metric=return/men --set stop.above=3 --run-dir "$work/new"
both 2 "no best of that name" $ppo --set checkpoint.best_by=retrn/mean --run-dir "$work/new"
both 2 "an empty pattern of what is frozen" $one --set 'training.freeze=[""]' --run-dir "$work/new"
both 2 "no such phase" $one --phase 3
both 3 "no such plugin" --plugin ./nowhere.so
both 2 "several ranks of one process" $one --set comm.backend=mpi
both 2 "no profile" $one --profile nowhere
both 2 "--max-steps" $one --max-steps 0

# --- folders that are there already: notes of the user, a run that ended before its first checkpoint; new parents ---
mkdir "$work/notes" && echo mine >"$work/notes/notes.txt" && echo earlier >"$work/notes/train.log"
DTRAIN_FAULT=run.begin:1! "$dtrain" $one --run-dir "$work/begun" 2>/dev/null
echo old >"$work/begun/report.html"
LSAN_OPTIONS=detect_leaks=0 # the library of MPI keeps what it has until the process ends
export LSAN_OPTIONS
for folder in notes begun parent/new; do
    for how in "" "--set comm.backend=sim --set comm.ranks=2" "--nproc 2"; do
        [ "$how" != "--nproc 2" ] || (. "$DT_SRCDIR/tests/mpi_job.sh") >/dev/null || continue
        both 2 "a batch larger than the data $how" $one --set data.batch=1000000 --run-dir "$work/$folder" $how
        both 4 "no store $how" $one --set data.store="$work/nowhere" --run-dir "$work/$folder" $how
        both 2 "no room in memory $how" $one --set memory.target_gb=0.001 --run-dir "$work/$folder" $how
    done
done

# --- phases that follow each other: parameters that stay frozen, shapes that differ ---
cat >"$work/two.cfg" <<'END'
risk_gnn = { hidden = 8; heads = 1; layers = 1; };
world_lstm = { hidden = 8; layers = 1; };
training = { eval_interval = 0; save_interval = 0; };
phases = ( { plugin = "phase1_world_model"; stop = { steps = 1; }; data = { batch = 8; }; },
           { plugin = "phase2_ppo"; data = { batch = 32; }; phase2_ppo = { iterations = 1; train_batch = 64; fragment = 16; };
             models = { perception = "risk_gnn"; }; env = { id = "env_traffic"; instances = 4; }; } );
END
cases=$((cases + 1))
"$dtrain" --config "$work/two.cfg" --threads 1 -q --dry-run --json >"$work/plan" 2>"$work/err" || fail "no plan of two phases"
"$dtrain" --config "$work/two.cfg" --threads 1 -q --run-dir "$work/both" 2>"$work/err" || fail "no run of two phases"
planned=$(sed 's/.*"phase":"phase2_ppo"//' "$work/plan" | sed -n 's/^[^[]*"parameters_trained":\([0-9]*\).*/\1/p')
trained=$(sed -n 's/.*"parameters_trained":\([0-9]*\).*/\1/p' "$work/both/progress.json")
[ -n "$trained" ] && [ "$planned" = "$trained" ] || fail "planned are $planned trained parameters, and the run trains $trained"
grep -q '"expected":{"environments_s":[0-9.e+-]*,"evaluation_s":[0-9.e+-]*,"step_s":[0-9.e+-]*,"steps_tried":[1-9]' "$work/plan" ||
    fail "the plan does not estimate the time of environments"
grep -q '"expected":{"training_s":null,"evaluation_s":null,' "$work/plan" || fail "one step is too few to estimate by"
grep -q 'expected wall time: ' "$work/both/train.log" || fail "the run says nothing about its time"
both 2 "shapes of the phase before" --config "$work/two.cfg" --set phases.1.risk_gnn.hidden=16 --threads 1 -q --run-dir "$work/other"

echo "$cases cases, $failed failed"
[ $failed -eq 0 ]
