#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# `dtrain data import` of several files: interrupted by a signal, by SIGKILL and by a full disk, the same command goes on
# and makes the store that an undisturbed one makes; a second import to the same place is refused; --jobs.
set -u

dtrain=${DT_BUILDDIR:-.}/dtrain
work=$(mktemp -d ./test-import-XXXXXX) || exit 1
trap 'rm -rf "$work"' EXIT INT TERM
failed=0

fail() {
    echo "FAIL: $*"
    sed 's/^/    /' "$work/err"
    failed=$((failed + 1))
}
for n in 1 2 3 4; do
    awk -v n=$n 'BEGIN { print "frame,id,x,y,speed"
        for (f = 0; f < 2000; f++) for (v = 0; v < 3; v++) printf "%d,%d,%.2f,%.2f,%.2f\n", f, v, n * f + 9 * v, v, 10 * n }' \
        >"$work/f$n.csv"
done
import() { # OUT [WORDS]: with its exit code
    out=$1
    shift
    "$dtrain" data import "$work"/f?.csv --out "$work/$out" --set import.frame_rate_hz=10 --set import.part_mb=0 \
        "$@" >"$work/said" 2>"$work/err"
}
finish() { # OUT: it goes on, and nothing is left of its parts
    import "$1" || fail "$1 does not go on"
    grep -q "going on with [1-4] of 4 parts" "$work/err" || fail "$1: not with what was finished"
    diff -r "$work/whole" "$work/$1" >"$work/err" || fail "$1 is another store"
    [ -e "$work/$1.parts" ] && fail "$1.parts is left"
    return 0
}

"$dtrain" data import "$work"/f?.csv --out "$work/whole" --set import.frame_rate_hz=10 -q 2>"$work/err" || fail "the whole"

# a signal, while it waits at its last steps: 75, and what is finished is named
DTRAIN_FAULT="fs.rename:12@$work/here" import signal --jobs 1 &
n=0
while [ ! -e "$work/here" ] && [ $n -lt 300 ]; do
    sleep 0.1
    n=$((n + 1))
done
"$dtrain" data import "$work"/f?.csv --out "$work/signal" --set import.part_mb=0 2>"$work/second"
[ $? -eq 2 ] && grep -q "an import to .*signal is under way: .* is held by process" "$work/second" ||
    fail "a second import is not refused: $(cat "$work/second")"
kill -TERM "$(sed 's/^process \([0-9]*\) .*/\1/' "$work/signal.parts/lock")"
rm -f "$work/here"
wait $!
code=$?
[ $code -eq 75 ] || fail "exit code $code after SIGTERM, expected 75"
grep -q "parts lie finished in .*signal.parts, and the same command goes on with them" "$work/err" || fail "it does not say so"
[ -e "$work/signal" ] && fail "half a store"
finish signal

# SIGKILL at several steps
for step in 11 14 17; do
    DTRAIN_FAULT="fs.rename:$step!" import "killed$step" --jobs 2
    code=$?
    [ $code -eq 137 ] || fail "exit code $code at step $step, expected 137"
    [ -e "$work/killed$step/store.json" ] && fail "half a store at step $step"
    finish "killed$step"
done

# a full disk: 1, and when there is room again
DTRAIN_FAULT="fs.write:80+" import full --jobs 1
code=$?
[ $code -eq 1 ] || fail "exit code $code on a full disk, expected 1"
finish full

for jobs in 0 -1 many 1025; do
    import none --jobs=$jobs
    code=$?
    [ $code -eq 2 ] && grep -q -- "--jobs $jobs is not a number in \[1, 1024\]" "$work/err" || fail "--jobs $jobs: $code"
done
import again --jobs 3 -q && diff -r "$work/whole" "$work/again" >/dev/null || fail "--jobs 3"
[ -s "$work/said" ] && fail "-q says $(cat "$work/said")"

[ $failed -eq 0 ] && echo "PASS"
exit $((failed != 0))
