#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Benches do not rot: every name of bench/run --list has its files, every script that trains by calling dtrain says how
# it is used, and one of them runs to its closing line.
set -eu
command -v python3 >/dev/null || { echo "no python3 here"; exit 77; }
bench=$DT_SRCDIR/bench
PYTHONDONTWRITEBYTECODE=1
export PYTHONDONTWRITEBYTECODE

sh "$bench/run" --list | while read -r name _; do
    test -e "$bench/$name.c" || test -d "$bench/$name" || { echo "bench/run lists $name, which is not there"; exit 1; }
done
if sh "$bench/run" phase1 2>/dev/null; then
    echo "bench/run takes the beginning of a name for a name"
    exit 1
fi
grep -l 'common\.parser' "$bench"/*/*.py | while read -r script; do
    python3 "$script" --help | grep -q -e '--quick' || { echo "$script does not start"; exit 1; }
done
python3 "$bench/phase2_classic/classic.py" --dtrain "$DT_BUILDDIR/dtrain" --work "$PWD/test-benches.$$" --quick \
    --threads 1 >"test-benches.$$.txt"
cat "test-benches.$$.txt"
grep -Eq '^value phase2_classic\.cartpole [0-9.]+ return target 475 at least' "test-benches.$$.txt"
test -e "test-benches.$$/cartpole-1/metrics.jsonl"
rm -r "test-benches.$$" "test-benches.$$.txt"
