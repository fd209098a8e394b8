#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The program killed with SIGKILL, at chosen file system calls and at any time, and started again with --resume until it
# is done: the end must have the bits of the run that nobody disturbed. Then a disk that refuses a write now and then.
set -u

dtrain=${DT_BUILDDIR:-.}/dtrain
work=$(mktemp -d ./test-crash-XXXXXX) || exit 1
trap 'rm -rf "$work"' EXIT INT TERM
failed=0
cases=0
steps=6

tiny="--plugin phase1_world_model --set risk_gnn.hidden=16 --set risk_gnn.heads=2 --set risk_gnn.layers=1
      --set world_lstm.hidden=16 --set world_lstm.layers=1 --set data.batch=16 --set training.epochs=2
      --set training.eval_interval=0 --set training.save_interval=0 --set checkpoint.every_seconds=0
      --set checkpoint.every_steps=1 --set checkpoint.keep_last=2 --threads 1 -q"

fail() {
    echo "FAIL: $*"
    sed 's/^/    /' "$work/err" | tail -n 5
    failed=$((failed + 1))
}

state_hash() {
    "$dtrain" ckpt inspect "$1" --json 2>/dev/null | sed -n 's/.*"state_hash":"\([0-9a-f]*\)".*/\1/p'
}

# start DIR [more]: begin, or go on when a run is there, or begin again in the same folder where it had not begun to
# record itself; the exit code is left in $code
start() {
    dir=$1
    shift
    if [ -e "$dir/meta.json" ]; then
        "$dtrain" run --resume "$dir" --max-steps $steps -q "$@" 2>"$work/err"
    else
        # shellcheck disable=SC2086
        "$dtrain" $tiny --run-dir "$dir" --max-steps $steps "$@" 2>"$work/err"
    fi
    code=$?
}

# finish DIR WHAT: go on until it is done, then compare
finish() {
    cases=$((cases + 1))
    start "$1"
    if [ $code -ne 0 ]; then
        fail "$2: exit code $code of the run that went on"
    elif [ "$(state_hash "$1")" != "$want" ]; then
        fail "$2: other bits than the undisturbed run"
    fi
    rm -rf "$1"
}

start "$work/whole"
want=$(state_hash "$work/whole")
[ -n "$want" ] || { fail "the undisturbed run left no checkpoint"; exit 1; }

# killed before the n-th call, for n from the first to the last, in strides
n=1
killed=0
while :; do
    DTRAIN_FAULT="fs.*:$n!" start "$work/kill"
    [ $code -eq 0 ] && break
    [ $code -eq 137 ] || fail "killed at call $n: exit code $code"
    killed=$((killed + 1))
    finish "$work/kill" "killed at call $n"
    n=$((n + 31))
    [ $n -lt 3000 ] || break
done
cases=$((cases + 1))
[ $killed -ge 8 ] || fail "only $killed kills: the run makes fewer calls than expected"

# killed again and again, each time a few calls further
tries=0
code=137
while [ $code -eq 137 ] && [ $tries -lt 100 ]; do
    DTRAIN_FAULT="fs.*:$((60 + tries * 7 % 50))!" start "$work/again"
    tries=$((tries + 1))
done
finish "$work/again" "killed $tries times on the way"

# killed at any time
for delay in 0.01 0.03 0.05 0.08 0.12; do
    # shellcheck disable=SC2086
    "$dtrain" $tiny --run-dir "$work/time" --max-steps $steps 2>"$work/err" &
    pid=$!
    sleep $delay
    kill -KILL $pid 2>/dev/null
    wait $pid 2>/dev/null
    finish "$work/time" "killed after $delay s"
done

# a write that fails once, somewhere: the run goes on or leaves with code 1; no bit is wrong afterwards
for n in 3 20 37 54; do
    DTRAIN_FAULT="fs.write:$n" start "$work/full"
    case $code in
    0 | 1) finish "$work/full" "write $n refused" ;;
    *) fail "write $n refused: exit code $code" ;;
    esac
done

echo "$cases cases, $killed kills, $failed failed"
[ "$failed" -eq 0 ]
