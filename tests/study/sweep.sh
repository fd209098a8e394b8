#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# dtrain sweep: the same table from one process after another, in parallel, and after kill -9; what it rejects.
set -u
. "$DT_SRCDIR/tests/check.inc"
. "$DT_SRCDIR/tests/study/study.inc"
parameters='parameters = (
    { key = "training.learning_rate"; min = 1e-4; max = 1e-2; log = true; },
    { key = "controller_mlp.hidden"; values = [ 8, 16 ]; }
);'
file() { # NAME: the rest of it on standard input
    cat >"$work/$1.cfg" <<END
arguments = [ "--config", "$work/tiny.cfg" ];
metric = "return/mean"; goal = "max";
$(cat)
END
}
sweep() { # NAME FOLDER [options]
    name=$1 folder=$2
    shift 2
    "$dtrain" sweep "$work/$name.cfg" --run-dir "$work/$folder" "$@"
}
value() { sed 's/.*"trial":'"$1"',"state":"[^"]*","steps":[0-9]*,"value":\([^,]*\),.*/\1/' "$work/out"; }

# --- successive halving: decisions and table do not depend on processes and kills ---
file asha <<END
search = "asha"; trials = 6; seed = 3; seeds = "1,2"; min_steps = 80; steps = 160; window = 3; $parameters
END
expect 0 '"steps":160' sweep asha one --parallel 1 --json
cp "$work/out" "$work/whole"
best=$(sed 's/.*"trials":\[{"trial":\([0-9]*\),.*/\1/' "$work/out")
for seed in 1 2; do
    tail -n 1 "$work/one/trial-000$best/seed-$seed/metrics.jsonl" | grep -q '"step":160,' ||
        fail "trial $best with seed $seed did not train as far as the table says"
done
expect 0 '"steps":160' sweep asha three --parallel 3 --json
cmp -s "$work/whole" "$work/out" || fail "another table of three processes"
killed "$work/killed/trial-0001/seed-1/metrics.jsonl" "$dtrain" sweep "$work/asha.cfg" --run-dir "$work/killed" --parallel 1 --json
cmp -s "$work/whole" "$work/out" || fail "another table after kill -9"
expect 0 '"steps":160' sweep asha one --json
cmp -s "$work/whole" "$work/out" || fail "another table of a complete sweep"
cmp -s "$work/out" "$work/one/summary.json" || fail "summary.json is not the table"
expect 0 'best: trial' sweep asha one

# --- its report: a line for each trial ---
expect 0 'one/report.html' "$dtrain" report "$work/one"
[ "$(grep -c '<polyline points=' "$work/one/report.html")" -eq 6 ] || fail "not a line for each of 6 trials"
expect 2 'a report of its own' "$dtrain" report "$work/one" "$work/three" --out "$work/both.html"
mkdir "$work/begun"
cp "$work/one/study.json" "$work/begun"
expect 2 'no table yet' "$dtrain" report "$work/begun"
[ ! -e "$work/begun/report.html" ] || fail "a page without a table"

# --- the others: complete trainings, which are those of dtrain run with the same values ---
file grid <<END
search = "grid";
parameters = ( { key = "controller_mlp.hidden"; values = [ 8, 16 ]; } );
END
expect 0 '"parameters":{"controller_mlp.hidden":"16"}' sweep grid grid --json
grid=$(value 2)
expect 0 "\"value\":$grid" "$dtrain" seeds 1 --run-dir "$work/alone" --json -- --config "$work/tiny.cfg" \
    --set controller_mlp.hidden=16
file sobol <<END
search = "sobol"; trials = 2; seed = 9; $parameters
END
expect 0 '"trial":2' sweep sobol sobol --json

# --- a last value that is unknown is none: no earlier one stands in for it ---
sed -i '$ s/"eval\/return\/mean":[^,}]*/"eval\/return\/mean":null/' "$work/grid/trial-0002/seed-1/metrics.jsonl"
expect 0 '"trial":2,"state":"unknown","steps":0,"value":null' sweep grid grid --json
sed -i '$ s/"eval\/return\/mean":[^,}]*/"eval\/return\/mean":null/' "$work/grid/trial-0001/seed-1/metrics.jsonl"
expect 1 '"trial":1,"state":"unknown"' sweep grid grid --json

# --- a population: the same generations and table from any number of processes, of ranks, and after kills ---
file pbt <<END_PBT
search = "pbt"; trials = 4; seed = 2; interval = 80; steps = 240;
parameters = ( { key = "training.learning_rate"; min = 1e-4; max = 1e-2; log = true; } );
END_PBT
expect 0 '"steps":240' sweep pbt pbt1 --parallel 1 --json
cp "$work/out" "$work/population"
grep -q '"folder":"trial-000[1-4]/generation-0[23]"' "$work/population" || fail "no member was replaced"
expect 0 '"steps":240' sweep pbt pbt4 --parallel 4 --json
cmp -s "$work/population" "$work/out" || fail "another population of four processes"
killed "$work/pbtk/trial-0001/seed-1/metrics.jsonl" "$dtrain" sweep "$work/pbt.cfg" --run-dir "$work/pbtk" --json
cmp -s "$work/population" "$work/out" || fail "another population after kill -9"
later=$(cd "$work/pbt1" && for f in trial-*/generation-*/seed-1; do echo "$f"; break; done)
killed "$work/pbtl/$later" "$dtrain" sweep "$work/pbt.cfg" --run-dir "$work/pbtl" --json
cmp -s "$work/population" "$work/out" || fail "another population after kill -9 in a later generation"
sed 's/arguments = \[/& "--nproc", "2",/' "$work/pbt.cfg" >"$work/pbt2.cfg"
leaks=${LSAN_OPTIONS-}
LSAN_OPTIONS=$leaks${leaks:+:}detect_leaks=0 # the library of MPI keeps what it has until the process ends
export LSAN_OPTIONS
expect 0 '"steps":240' sweep pbt2 pbt2 --parallel 2 --json
LSAN_OPTIONS=$leaks
cmp -s "$work/population" "$work/out" || fail "another population of two ranks"
sed 's/trials = 4/trials = 5/' "$work/pbt.cfg" >"$work/pbt5.cfg"
expect 2 'trials' sweep pbt5 pbt1
expect 0 'pbt1/trial-' "$dtrain" compare "$work/pbt1" --metric return/mean

# --- tasks of a job array share a folder: one of them is killed; the last one has the table ---
tasks() { # NAME FOLDER
    pids=''
    for task in 1 2 3; do
        "$dtrain" sweep "$work/$1.cfg" --run-dir "$work/$2" --array --parallel 1 --json >"$work/task$task" 2>"$work/err$task" &
        pids="$pids $!"
    done
    sleep 0.3
    kill -9 "${pids##* }"
    for pid in $pids; do
        wait "$pid" 2>/dev/null
        code=$?
        [ $code -eq 0 ] || [ "$pid" = "${pids##* }" ] || fail "exit code $code of a task of $2"
    done
    expect 0 '' sweep "$1" "$2" --array --json
}
for search in asha pbt; do
    tasks $search tasks-$search
    [ $search = asha ] && cp "$work/whole" "$work/wanted" || cp "$work/population" "$work/wanted"
    cmp -s "$work/wanted" "$work/out" || fail "another table of tasks: $search"
    cmp -s "$work/wanted" "$work/task1" || cmp -s "$work/wanted" "$work/task2" || fail "no task has the table: $search"
done
"$dtrain" sweep "$work/asha.cfg" --run-dir "$work/held" --array --parallel 1 >/dev/null 2>&1 &
pid=$!
until [ -e "$work/held/study.json" ] || ! kill -0 $pid 2>/dev/null; do sleep 0.02; done
kill -STOP $pid # it holds the folder for as long as it takes to be refused
expect 1 'in use' sweep asha held
kill -CONT $pid
kill $pid
wait $pid

# --- more trials: the table of a sweep that had them from the beginning; nothing else may change ---
file few <<END_FEW
search = "asha"; trials = 3; seed = 3; seeds = "1,2"; min_steps = 80; steps = 160; window = 3; $parameters
END_FEW
expect 0 '"trial":3' sweep few few --json
expect 0 '"trial":6' sweep asha few --json
cmp -s "$work/whole" "$work/out" || fail "another table of a sweep that was given more trials"
expect 2 'trials' sweep few few
sed 's/eta = 3; //; s/window = 3/window = 3; eta = 4/' "$work/asha.cfg" >"$work/eta.cfg"
expect 2 'eta' sweep eta few
sed 's/seed = 3; //' "$work/asha.cfg" >"$work/seed.cfg"
expect 2 'seed = 3' sweep seed few

# --- nor may the configuration that the trials train, but for its comments ---
cp "$work/tiny.cfg" "$work/kept.cfg"
sed 's/tiny/kept/' "$work/grid.cfg" >"$work/named.cfg"
expect 0 '"trial":2' sweep named named --json
echo '// a comment' >>"$work/kept.cfg"
expect 0 '"trial":2' sweep named named --json
sed -i 's/env_cartpole/env_pendulum/' "$work/kept.cfg"
expect 2 'kept.cfg' sweep named named

# --- a folder in which a task that was killed left an unfinished file is free; words without a value match nothing ---
mkdir "$work/part"
echo '{' >"$work/part/study.json.tmp.1"
expect 0 '"trial":2' sweep sobol part --json
mkdir "$work/foreign"
echo '{"study":"sweep","identity":["trials"]}' >"$work/foreign/study.json"
expect 2 'trials' sweep sobol foreign

# --- trials that fail have no value ---
file fails <<END
search = "random"; trials = 2; $parameters
END
expect 1 '"state":"failed (7)","steps":0,"value":null' env DTRAIN_FAULT=run.diverge:2,run.diverge:3,run.diverge:4 \
    "$dtrain" sweep "$work/fails.cfg" --run-dir "$work/fails" --json
expect 1 '"state":"failed (7)"' sweep fails fails --json

# --- what is rejected ---
expect 2 'parameters/0/values/1' sh -c "sed 's/8, 16/8, 32/' '$work/grid.cfg' >'$work/grid2.cfg' &&
    '$dtrain' sweep '$work/grid2.cfg' --run-dir '$work/grid'"
expect 2 'dtrain sweep' "$dtrain" seeds 1 --run-dir "$work/grid" -- --config "$work/tiny.cfg"
expect 2 'search' sweep sobol grid
file metric <<END
trials = 2; $parameters
END
sed 's/return.mean/return\/maen/' "$work/metric.cfg" >"$work/metric2.cfg"
expect 2 'return/mean' sweep metric2 metric
sed 's/controller_mlp.hidden/controller_mlp.hiden/' "$work/metric.cfg" >"$work/key.cfg"
expect 2 'unknown key' sweep key key
expect 2 '' sweep none none
[ ! -e "$work/key" ] && [ ! -e "$work/none" ] || fail "a folder of what was rejected"
sed 's/^arguments = \[/&"--seed", "3", /' "$work/metric.cfg" >"$work/own.cfg"
expect 2 '--seed' sweep own own

# --- the example is a sweep of this version ---
sed -e 's/trials = 27/trials = 2/; s/min_steps = 400/min_steps = 2/; s/steps = 3200/steps = 4/' \
    -e 's/iterations=40/iterations=2/; s/train_batch=2048/train_batch=256/; s/fragment=256/fragment=32/' \
    -e 's/eval_interval=5/eval_interval=1/; s/64, 128, 256, 512/64, 128/; s/seeds = "1,2"/seeds = "1"/' \
    "$DT_SRCDIR/examples/sweeps/cartpole.cfg" >"$work/example.cfg"
expect 0 '"trial":2' sweep example example --json
finish sweep
