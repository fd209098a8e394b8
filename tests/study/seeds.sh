#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# dtrain seeds: the same results in one process after another, in parallel, and after kill -9; what it rejects.
set -u
. "$DT_SRCDIR/tests/check.inc"
. "$DT_SRCDIR/tests/study/study.inc"
# shellcheck disable=SC2317
seeds() { "$dtrain" seeds "$@" -- --config "$work/tiny.cfg"; }

expect 0 '"n":3' seeds 1..3 --run-dir "$work/one" --parallel 1 --json
cp "$work/out" "$work/whole"
expect 0 '"n":3' seeds 1..3 --run-dir "$work/two" --parallel 3 --json
cmp -s "$work/whole" "$work/out" || fail "other results of three processes"
killed "$work/killed/seed-1/metrics.jsonl" "$dtrain" seeds 1..3 \
    --run-dir "$work/killed" --parallel 1 --json -- --config "$work/tiny.cfg"
cmp -s "$work/whole" "$work/out" || fail "other results after kill -9"

# complete runs are kept as they are, further seeds are added
cp "$work/one/seed-1/meta.json" "$work/meta"
expect 0 '"n":2' seeds 1,4 --run-dir "$work/one" --json
cmp -s "$work/meta" "$work/one/seed-1/meta.json" || fail "a complete seed was trained again"
[ -d "$work/one/seed-4" ] || fail "no seed 4"
# its report is of the runs of all seeds
expect 0 "one/report.html" "$dtrain" report "$work/one"
grep -q "seed-4" "$work/one/report.html" || fail "no seed 4 in the report"
expect 0 'interquartile mean' seeds 1..4 --run-dir "$work/one" --metric return/mean

# an unknown last value is none, in place of which no earlier one and no other metric counts; it is reported
edited() { # SCRIPT: for sed, on the records of seed 1 of a copy
    rm -rf "$work/edited"
    cp -r "$work/two" "$work/edited"
    sed -i "$1" "$work/edited/seed-1/metrics.jsonl"
}
edited '$ s/"eval\/return\/mean":[^,}]*/"eval\/return\/mean":null/'
grep -q '"eval/return/mean":null' "$work/edited/seed-1/metrics.jsonl" || fail "the last record has no evaluation"
expect 0 '"n":2' seeds 1..3 --run-dir "$work/edited" --metric return/mean --json
grep -q 'seed 1 ' "$work/err" || fail "an unknown value is not reported"
expect 0 '"n":2' seeds 1..3 --run-dir "$work/edited" --json
edited 's/"\(eval\/return\|charts\/episodic_return\)[^,}]*,//g' # runs are ranked by their loss then
expect 0 '"n":2' seeds 1..3 --run-dir "$work/edited" --json
grep -q 'seed 1 ' "$work/err" || fail "another metric is not reported"
for n in 2 3; do
    sed -i 's/"eval\/return\/mean":[^,}]*/"eval\/return\/mean":null/' "$work/edited/seed-$n/metrics.jsonl"
done
expect 2 'return/mean' seeds 1..3 --run-dir "$work/edited" --metric return/mean

# in a foreign folder what is started writes nothing outside
cp -r "$work/one" "$work/theirs"
echo mine >"$work/file"
mkdir "$work/outside"
ln -s "$work/outside" "$work/theirs/seed-5"
expect 4 'seed-5' seeds 1,5 --run-dir "$work/theirs"
[ -z "$(ls "$work/outside")" ] || fail "a training outside of the folder"
ln -s "$work/file" "$work/theirs/seed-6.log"
expect 4 'seed-6.log' seeds 1,6 --run-dir "$work/theirs"
[ "$(cat "$work/file")" = mine ] || fail "a file outside of the folder was written"

# a request to stop: 75, and the same command continues
"$dtrain" seeds 1..3 --run-dir "$work/stopped" --json -- --config "$work/tiny.cfg" --set phase2_ppo.iterations=100000 \
    >"$work/out" 2>"$work/err" &
pid=$!
tries=0
until [ -s "$work/stopped/seed-1/metrics.jsonl" ] || [ $tries -gt 400 ]; do
    sleep 0.05
    tries=$((tries + 1))
done
kill $pid
wait $pid
code=$?
[ $code -eq 75 ] || fail "exit code $code after SIGTERM, expected 75"
grep -q '"state":"interrupted"' "$work/out" || fail "no seed is interrupted"

# what is rejected, before anything is written
cp "$work/tiny.cfg" "$work/kept.cfg"
expect 0 '"n":1' "$dtrain" seeds 1 --run-dir "$work/named" --json -- --config "$work/kept.cfg"
sed -i 's/env_cartpole/env_pendulum/' "$work/kept.cfg"
expect 2 'content of' "$dtrain" seeds 1,2 --run-dir "$work/named" -- --config "$work/kept.cfg"
expect 2 'other arguments' "$dtrain" seeds 1..3 --run-dir "$work/one" -- --config "$work/tiny.cfg" --set seed=3
expect 2 'return/mean' seeds 1..3 --run-dir "$work/one" --metric return/maen
expect 2 '4..1' seeds 4..1 --run-dir "$work/new"
expect 2 '--parallel 0' seeds 1 --run-dir "$work/new" --parallel 0
expect 2 '' "$dtrain" seeds 1..3 --run-dir "$work/new"
expect 2 '--seed' "$dtrain" seeds 1..3 --run-dir "$work/new" -- --config "$work/tiny.cfg" --seed 4
expect 2 'got "export"' "$dtrain" seeds 1..3 --run-dir "$work/new" -- export
expect 3 'phase2_pop' "$dtrain" seeds 1..3 --run-dir "$work/new" -- --plugin phase2_pop
[ ! -e "$work/new" ] || fail "a folder of what was rejected"
expect 2 'not empty' seeds 1..3 --run-dir "$work/one/seed-1"

# a seed that fails has no value, and the code says so
expect 7 '"value":null' env DTRAIN_FAULT=run.diverge:2,run.diverge:3,run.diverge:4 "$dtrain" seeds 1,2 \
    --run-dir "$work/failed" --json -- --config "$work/tiny.cfg"
grep -q '"n":0' "$work/out" || fail "a failed seed counts"
finish seeds
