#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# A disk that is full and freed again later: training goes on while saves and records fail, nothing is torn, and the run
# ends in the bits and records of one that had room. Where a phase or the run ends, it waits; in vain, it leaves with 1
# after checkpoint.wait_s, its last checkpoint good. Refused writes (DTRAIN_FAULT), limits of file sizes, and, where a
# user may mount one, a small file system that is really full.
set -u

dtrain=$(cd "${DT_BUILDDIR:-.}" && pwd)/dtrain
work=$(mktemp -d ./test-diskfull-XXXXXX) || exit 1
trap 'rm -rf "$work"' EXIT INT TERM
failed=0
cases=0
job="--plugin phase1_world_model --set risk_gnn.hidden=8 --set risk_gnn.heads=1 --set risk_gnn.layers=1
     --set world_lstm.hidden=8 --set world_lstm.layers=1 --set data.batch=8 --set training.eval_interval=0
     --set checkpoint.every_seconds=0 --set training.save_interval=0 --set checkpoint.every_steps=1 --set report.enabled=false
     --set metrics.tensorboard=false --threads 1 -q"

fail() {
    echo "FAIL: $*"
    tail -n 8 "$work/err" | sed 's/^/    /'
    failed=$((failed + 1))
}
state_hash() {
    "$dtrain" ckpt inspect "$1" --json 2>/dev/null | sed -n 's/.*"state_hash":"\([0-9a-f]*\)".*/\1/p'
}
# expect CODE TEXT COMMAND...
expect() {
    want=$1 text=$2
    shift 2
    cases=$((cases + 1))
    "$@" >"$work/out" 2>"$work/err"
    code=$?
    [ $code -eq "$want" ] || fail "exit code $code, expected $want: $*"
    [ -z "$text" ] || grep -q -- "$text" "$work/err" || fail "nothing said about \"$text\": $*"
}
same() { # DIR: the bits and records of the whole run, every record a line that is whole
    cases=$((cases + 1))
    [ "$(state_hash "$1")" = "$whole" ] || fail "$1: other bits"
    [ "$(cut -d, -f1,2 "$1/metrics.jsonl")" = "$(cut -d, -f1,2 "$work/whole/metrics.jsonl")" ] || fail "$1: other records"
    ! grep -v '^{.*}$' "$1/metrics.jsonl" || fail "$1: a torn record"
    ! grep -v '^20[0-9-]*T[0-9:.]*Z [a-z]*  *[^ ]' "$1/train.log" || fail "$1: a torn line of the log"
}
expect 0 "" "$dtrain" $job --max-steps 6 --run-dir "$work/whole"
whole=$(state_hash "$work/whole")

# --- refused and later not: the first saves of the middle; then those of the end too, which are waited for ---
DTRAIN_FAULT=fs.write:5-5 expect 0 "checkpoint failed, training continues and saves again in" "$dtrain" $job --max-steps 6 --run-dir "$work/middle"
same "$work/middle"
DTRAIN_FAULT=fs.write:5-7 expect 0 "the state cannot be saved, trying again in .*free space there" "$dtrain" $job --max-steps 6 --run-dir "$work/end"
grep -q "step 6 is saved, after [0-9]* tries that failed" "$work/err" || fail "nobody said that it is saved again"
same "$work/end"
DTRAIN_FAULT=fs.mkdir:2-4,fs.fsync:7-9,fs.rename:6-7 expect 0 "" "$dtrain" $job --max-steps 6 --run-dir "$work/others"
same "$work/others"

# --- records and logs that are refused wait or are counted ---
DTRAIN_FAULT=fs.append:4-12 expect 0 "its records are kept in memory: free space there" "$dtrain" $job --max-steps 6 --run-dir "$work/records" -v
same "$work/records"
grep -q "lines could not be written here" "$work/records/train.log" || fail "lost lines are not told"
DTRAIN_FAULT=fs.append:4+ expect 0 "records could not be written to" "$dtrain" $job --max-steps 6 --run-dir "$work/lost"
[ "$(state_hash "$work/lost")" = "$whole" ] || fail "lost records: other bits"

# --- between two phases ---
cat >"$work/two.cfg" <<'END2'
phases = ( { plugin = "phase1_world_model"; stop = { steps = 2; }; }, { plugin = "phase1_world_model"; init = "previous"; stop = { steps = 2; }; } );
END2
two="--config $work/two.cfg ${job#* * } --set checkpoint.every_steps=0"
expect 0 "" "$dtrain" $two --run-dir "$work/two"
DTRAIN_FAULT=fs.write:5-6 expect 0 "trying again in" "$dtrain" $two --run-dir "$work/change"
[ "$(state_hash "$work/change")" = "$(state_hash "$work/two")" ] || fail "full between phases: other bits"

# --- never freed: a code, no second try of the phase, and a checkpoint to go on from ---
DTRAIN_FAULT=fs.write:20+ expect 1 "--resume" \
    "$dtrain" $job --max-steps 6 --run-dir "$work/never" --set checkpoint.wait_s=1
! grep -q "continues from the last checkpoint, retry" "$work/never/train.log" || fail "the phase was done again"
expect 0 "" "$dtrain" ckpt verify "$work/never"
expect 0 "" "$dtrain" run --resume "$work/never" --max-steps 6 --threads 1 -q
same "$work/never"

# --- never freed, and nothing was saved before ---
DTRAIN_FAULT=fs.write:5+ expect 1 "--resume $work/first" \
    "$dtrain" $job --max-steps 6 --run-dir "$work/first" --set checkpoint.wait_s=1
expect 0 "ended before its first checkpoint: it starts again" "$dtrain" run --resume "$work/first" --max-steps 6 --threads 1
same "$work/first"

# --- asked to stop while it waits ---
DTRAIN_FAULT=fs.write:20+,run.stop:4+ expect 1 "is not saved" "$dtrain" $job --max-steps 6 --run-dir "$work/stop" --set checkpoint.wait_s=1
expect 0 "" "$dtrain" run --resume "$work/stop" --max-steps 6 --threads 1 -q
same "$work/stop"

# --- a limit of file sizes is an error, not the end (SIGXFSZ) ---
# shellcheck disable=SC3045
(ulimit -f 12 && exec "$dtrain" $job --max-steps 6 --run-dir "$work/limit" --set checkpoint.wait_s=0) >"$work/out" 2>"$work/err"
code=$?
cases=$((cases + 1))
[ $code -eq 1 ] && grep -q "File too large" "$work/err" || fail "a limit of file sizes: exit code $code"

# --- a file system that is full ---
cat >"$work/full.sh" <<'END2'
mount -t tmpfs -o size=12m none "$1/disk" || exit 77
head -c 100000000 /dev/zero >"$1/disk/other" 2>/dev/null # as full as can be, but for what the run needs to begin
truncate -s -262144 "$1/disk/other"
"$dtrain" $job --max-steps 6 --dry-run >"$1/plan" 2>"$1/err" || exit 3
"$dtrain" $job --max-steps 6 --run-dir "$1/disk/run" 2>"$1/err" &
pid=$!
tries=0
until grep -q "cannot be saved, trying again" "$1/err" || [ $tries -gt 600 ]; do
    tries=$((tries + 1))
    sleep 0.1
done
# what it needs is what the plan says
mb=$(sed -n 's/^  disk  *[0-9.]* MB for checkpoints: [0-9]* of \([0-9.]*\) MB.*/\1/p' "$1/plan")
grep -q "run has [0-9.]* MB free, and a checkpoint needs [0-9.]* MB: $mb of its own, [0-9.]* for files .*; training begins, and waits" \
    "$1/err" || exit 3 # before the first step
[ "$(grep -c "MB free, and a checkpoint needs" "$1/err")" -ge 2 ] || exit 3 # and when it is saved
rm "$1/disk/other"
wait $pid || exit 4
cp -r "$1/disk/run" "$1/real"
END2
# the run directory is removed while it is trained in: nothing can be kept any more, and that is said
for n in 1 2; do
    rm -rf "$work/gone"
    # shellcheck disable=SC2086 # options
    $dtrain $job --run-dir "$work/gone" --max-steps 100000 --set comm.backend=sim --set comm.ranks=$n \
        --set checkpoint.shard_mb=0.001 2>"$work/err" &
    pid=$!
    tries=0
    until [ -e "$work/gone/checkpoints/LATEST" ] || [ $tries -gt 300 ]; do
        tries=$((tries + 1))
        sleep 0.1
    done
    mv "$work/gone" "$work/gone.$n" # and nothing of it grows again
    wait $pid
    code=$?
    cases=$((cases + 1))
    [ $code -eq 1 ] && grep -q "the run directory .*gone is gone, with all its checkpoints" "$work/err" ||
        fail "a removed run directory, $n ranks: code $code"
    cases=$((cases + 1))
    [ ! -e "$work/gone/checkpoints" ] || fail "a removed run directory, $n ranks: checkpoints in a folder without a run"
done

mkdir "$work/disk"
export dtrain job
if unshare -rm true 2>/dev/null; then
    unshare -rm sh "$work/full.sh" "$work"
    code=$?
    cases=$((cases + 1))
    if [ $code -eq 0 ]; then
        same "$work/real"
    elif [ $code -eq 77 ]; then
        echo "no file system could be mounted here: not tried on a real one"
    else
        fail "a real file system: $code"
    fi
else
    echo "no name spaces here: not tried on a real file system"
fi

echo "$cases cases, $failed failed"
[ $failed -eq 0 ]
