#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# dtrain compare: groups of runs as text, JSON and a page; a statistic that is known; what it rejects.
set -u
. "$DT_SRCDIR/tests/check.inc"
. "$DT_SRCDIR/tests/study/study.inc"
seeds() { # SEEDS FOLDER [arguments of a training]
    list=$1 folder=$2
    shift 2
    "$dtrain" seeds "$list" --run-dir "$work/$folder" --json -- --config "$work/tiny.cfg" "$@"
}
compare() { "$dtrain" compare "$@"; }

expect 0 '"n":3' seeds 1..3 a
iqm=$(sed 's/.*"iqm":\([^,]*\),.*/\1/' "$work/out")
expect 0 '"n":2' seeds 1,2 b --set controller_mlp.hidden=8
expect 0 "\"final_iqm\":{\"value\":$iqm," compare "$work/a" "$work/b" --json --out "$work/page.html"
cp "$work/out" "$work/first"
for key in '"metric":"eval/return/mean"' '"goal":"max"' '"x":"env_steps"' '"tasks":["env_cartpole"]' '"normalised":false'; do
    grep -qF "$key" "$work/first" || fail "no $key"
done
grep -q '<svg class="chart"' "$work/page.html" || fail "no chart in the page"
expect 0 '' compare "$work/a" "$work/b" --json
cmp -s "$work/out" "$work/first" || fail "other intervals of the same results"
expect 0 'interquartile mean' compare "$work/a" "$work/b/seed-1" --metric min:loss
expect 0 '"improvement":[]' compare "$work/a" --json
# a group is no better than itself: 1/2
cp -r "$work/b" "$work/copy"
expect 0 '"probability":{"value":0.5,' compare "$work/b" "$work/copy" --json

# several environments: a folder of both, scaled
mkdir "$work/one" "$work/two"
expect 0 '"n":2' seeds 1,2 one/pendulum --set env.id=env_pendulum
expect 0 '"n":2' seeds 1,2 two/pendulum --set env.id=env_pendulum --set controller_mlp.hidden=8
cp -r "$work/a" "$work/one/cartpole"
cp -r "$work/b" "$work/two/cartpole"
expect 0 '"normalised":true' compare "$work/one" "$work/two" --json --metric return/mean

# a plugin in two phases: the environment is that of the phase that has the metric, the last one
cat >"$work/curriculum.cfg" <<END
models = { controller = "controller_mlp"; };
controller_mlp = { hidden = 16; };
phase2_ppo = { iterations = 2; train_batch = 256; fragment = 64; };
data = { batch = 64; };
training = { eval_interval = 2; };
evaluation = { seeds = "1"; episodes = 1; baselines = ""; };
report = { enabled = false; };
phases = ( { plugin = "phase2_ppo"; env = { id = "env_cartpole"; }; },
           { plugin = "phase2_ppo"; env = { id = "env_pendulum"; }; fresh = [ "controller" ]; } );
END
expect 0 '' "$dtrain" run --config "$work/curriculum.cfg" --run-dir "$work/curriculum" -q
expect 0 '"tasks":["env_pendulum"]' compare "$work/curriculum" --json --metric return/mean

# a sweep: its best trial
cat >"$work/sweep.cfg" <<END
arguments = [ "--config", "$work/tiny.cfg" ];
metric = "return/mean"; goal = "max"; search = "grid"; seeds = "1,2";
parameters = ( { key = "controller_mlp.hidden"; values = [ 8, 16 ]; } );
END
expect 0 '"trial":2' "$dtrain" sweep "$work/sweep.cfg" --run-dir "$work/sweep" --json
best=$(sed 's/.*"trials":\[{"trial":\([0-9]*\),.*/\1/' "$work/out")
expect 0 "sweep/trial-000$best" compare "$work/sweep" "$work/a"

# what cannot be compared: which, and why
cp -r "$work/a" "$work/unknown"
sed -i '$ s/"eval\/return\/mean":[^,}]*/"eval\/return\/mean":null/' "$work/unknown/seed-2/metrics.jsonl"
expect 2 'unknown/seed-2' compare "$work/unknown" "$work/b" --metric return/mean
expect 2 'after --steps 1' compare "$work/a" "$work/b" --steps 1
expect 2 'env_pendulum' compare "$work/a" "$work/one/pendulum"
expect 0 '"n":1' seeds 1 long --set env_cartpole.max_steps=100
expect 2 'env_cartpole.max_steps = 100' compare "$work/a" "$work/long"
expect 0 '"n":1' seeds 1 short --set phase2_ppo.iterations=4
expect 2 'short/seed-1' compare "$work/a" "$work/short"
expect 0 '"steps":900' compare "$work/a" "$work/short" --steps 900 --json
# a first value shortly after the other's end is of the same number of steps: these are advised
cp -r "$work/a" "$work/near"
for file in "$work"/near/seed-*/metrics.jsonl; do
    sed -i '1,3 s/"eval\/return\/mean":[^,}]*/"eval\/return\/mean":null/' "$file"
done
expect 2 'short/seed-1' compare "$work/near" "$work/short" --metric return/mean
steps=$(sed -n 's/.*--steps \([0-9]*\) .*/\1/p' "$work/err")
expect 0 "\"steps\":$steps" compare "$work/near" "$work/short" --metric return/mean --steps "$steps" --json
cp -r "$work/a" "$work/late" # without a value before the other's end: no --steps is advised
for file in "$work"/late/seed-*/metrics.jsonl; do
    sed -i '$! s/"eval\/return\/mean":[^,}]*/"eval\/return\/mean":null/' "$file"
done
expect 2 'late/seed-' compare "$work/late" "$work/short"
! grep -qF -- '--steps' "$work/err" || fail "steps that have no value are advised"
for file in "$work"/late/seed-*/metrics.jsonl; do
    sed -i 's/"eval\/return\/mean":[^,}]*/"eval\/return\/mean":null/' "$file"
done
expect 2 'late/seed-' compare "$work/late" "$work/short" --metric return/mean
! grep -q '[^a-z]inf[^a-z]' "$work/err" || fail "a value at step inf"
expect 2 '--steps 99999' compare "$work/a" "$work/b" --steps 99999
expect 2 '--steps 0' compare "$work/a" "$work/b" --steps 0
expect 2 'return/mean' compare "$work/a" "$work/b" --metric return/maen
expect 2 'twice' compare "$work/a" "$work/a"
mkdir "$work/empty"
expect 2 'empty' compare "$work/a" "$work/empty"
sed -i 's/"exit_code":0/"exit_code":7/' "$work/copy/seed-1/meta.json"
expect 2 'copy/seed-1' compare "$work/b" "$work/copy"
finish compare
