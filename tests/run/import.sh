#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# `dtrain data import` of several files: interrupted by a signal, by SIGKILL and by a full disk, the same command goes
# on and makes the store that an undisturbed one makes; --jobs. Of two that write to one place, whatever verb, the
# second is refused and the first not harmed; what a killed one left is restarted, and what is not ours stays.
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
    grep -q "resuming with [1-4] of 4 finished parts" "$work/err" || fail "$1: not with what was finished"
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
[ $? -eq 2 ] && grep -q "signal is being written by another process, .* is held by process" "$work/second" ||
    fail "a second import is not refused: $(cat "$work/second")"
kill -TERM "$(sed 's/^process \([0-9]*\) .*/\1/' "$work/signal.parts/lock")"
rm -f "$work/here"
wait $!
code=$?
[ $code -eq 75 ] || fail "exit code $code after SIGTERM, expected 75"
grep -q "parts are finished in .*signal.parts; the same command resumes with them" "$work/err" || fail "it does not say so"
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

# two at once to one place, whatever they are: the second is refused, the first one's store is whole
refused() { # WORDS COMMAND...
    words=$1
    shift
    "$@" >"$work/said" 2>"$work/err"
    code=$?
    [ $code -eq 2 ] && grep -q "$words" "$work/err" || fail "exit code $code, expected 2 and \"$words\": $*"
}
one="$dtrain data import $work/f1.csv --set import.frame_rate_hz=10 --out"
$one "$work/small" -q 2>"$work/err" || fail "one file"
for verb in "import $work/f1.csv --set import.frame_rate_hz=10" "merge $work/small" "split $work/small --set split.by=time" "sample $work/small"; do
    out=$work/two_${verb%% *}
    rm -f "$work/here"
    DTRAIN_FAULT="fs.rename:1@$work/here" "$dtrain" data $verb --out "$out" -q 2>"$work/first" &
    n=0
    while [ ! -e "$work/here" ] && [ $n -lt 300 ]; do
        sleep 0.1
        n=$((n + 1))
    done
    held="is being written by another process, .* is held by process $! "
    refused "$held" $one "$out"
    refused "$held" "$dtrain" data merge "$work/small" --out "$out/"
    refused "$held" "$dtrain" data split "$work/small" --set split.by=time --out "$out"
    refused "$held" "$dtrain" data export "$work/small" "$out"
    rm -f "$work/here"
    wait $! || fail "$verb, which came first: $(cat "$work/first")"
    [ -e "$out.partial" ] && fail "$out.partial is left"
    refused "exists already" $one "$out"
done
diff -r "$work/small" "$work/two_import" >"$work/err" || fail "two at once: another store"

# SIGKILL where nothing goes on: restarted
DTRAIN_FAULT="fs.fsync:9!" $one "$work/dead" -q 2>"$work/err"
[ -e "$work/dead.partial/dtrain.lock" ] && [ ! -e "$work/dead" ] || fail "SIGKILL of one file"
$one "$work/dead" 2>"$work/err" >/dev/null && grep -q "dead.partial was left by a process" "$work/err" || fail "not begun anew"
diff -r "$work/small" "$work/dead" >"$work/err" && [ ! -e "$work/dead.partial" ] || fail "begun anew: another store"
DTRAIN_FAULT="fs.rename:1!" "$dtrain" data export "$work/small" "$work/dead.csv" 2>"$work/err"
"$dtrain" data export "$work/small" "$work/dead.csv" -q 2>"$work/err" && [ ! -e "$work/dead.csv.partial" ] || fail "export anew"

# what is in the way is reported at the start, and stays as it is
mkdir "$work/mine.partial"
echo letter >"$work/mine.partial/letter"
echo letter >"$work/file.partial"
echo letter >"$work/file.parts"
ln -s nowhere "$work/link"
cp -a "$work/mine.partial" "$work/file.partial" "$work/file.parts" "$(mktemp -d "$work/keep-XXXXXX")"
for verb in "import $work/f1.csv" "merge $work/small" "split $work/small" "sample $work/small"; do
    refused "mine.partial exists and was not written by dtrain" "$dtrain" data $verb --out "$work/mine"
    refused "link is a dangling link" "$dtrain" data $verb --out "$work/link/"
done
refused "file.partial exists and was not written by dtrain" "$dtrain" data export "$work/small" "$work/file"
refused "leave out the slash" "$dtrain" data export "$work/small" "$work/new.csv/"
rm "$work/file.partial"
refused "file.parts is not a folder" import file
diff -r "$work/mine.partial" "$work"/keep-*/mine.partial && diff "$work/file.parts" "$work"/keep-*/file.parts || fail "not as it was"
for verb in "import $work/f1.csv --set import.frame_rate_hz=10" "merge $work/small"; do
    "$dtrain" data $verb --out "$work/slash//" -q 2>"$work/err" && [ -e "$work/slash/store.json" ] || fail "$verb --out with a slash"
    rm -rf "$work/slash"
    DTRAIN_FAULT="fs.write:5+" "$dtrain" data $verb --out "$work/slash" -q 2>"$work/err"
    code=$?
    [ $code -eq 1 ] && [ ! -e "$work/slash" ] && [ ! -e "$work/slash.partial" ] || fail "$verb on a full disk: $code"
done

for jobs in 0 -1 many 1025; do
    import none --jobs=$jobs
    code=$?
    [ $code -eq 2 ] && grep -q -- "--jobs $jobs is not a number in \[1, 1024\]" "$work/err" || fail "--jobs $jobs: $code"
done
import again --jobs 3 -q && diff -r "$work/whole" "$work/again" >/dev/null || fail "--jobs 3"
[ -s "$work/said" ] && fail "-q says $(cat "$work/said")"

# names that promise what is not there
for end in csv.gz parquet json; do
    refused "$end ends in .*, which is not written: an export is a plain table" "$dtrain" data export "$work/small" "$work/table.$end"
done
echo "a letter" >"$work/letter.h5"
"$dtrain" data import "$work/letter.h5" --out "$work/letter" 2>"$work/err"
code=$?
[ $code -eq 4 ] && grep -q "letter.h5" "$work/err" || fail "letter.h5: $code"

# statistics of chunks that say little
cp -R "${DT_SRCDIR:-.}/share/demo" "$work/chunks"
said() { # TEXT
    rm -rf "$work/chunked"
    "$dtrain" data import "$work/chunks" --out "$work/chunked" >"$work/said" 2>"$work/err" || fail "chunks: $(cat "$work/err")"
    grep -q "$1" "$work/said" || fail "chunks: nothing of \"$1\""
}
echo '{}' >"$work/chunks/statistics.json"
said "statistics.json has no entry for x, y, .*: nothing to check them against"
rm "$work/chunks/statistics.json"
said "no statistics.json: nothing to check the chunks against"

[ $failed -eq 0 ] && echo "PASS"
exit $((failed != 0))
