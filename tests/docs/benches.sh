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
# The build folder: build-bench, the tree itself when it is configured in place, or the one that is given. make and the
# benchmark are stand-ins; configure fails as in a tree that is configured in place.
work=$PWD/test-benches-run.$$
mkdir -p "$work/src/bench" "$work/bin"
cp "$bench/run" "$work/src/bench/run"
printf '#!/bin/sh\n[ ! -f "%s/src/config.status" ] && : >config.status\n' "$work" >"$work/src/configure"
printf '#!/bin/sh\n[ -f "$2/config.status" ] && { printf "#!/bin/sh\\necho $2\\n" >"$2/bench_trace"; chmod +x "$2/bench_trace"; }\n' \
    >"$work/bin/make"
chmod +x "$work/src/configure" "$work/bin/make"
folder_of() { # [assignment]
    env PATH="$work/bin:$PATH" "DTRAIN_BENCH_BUILD=${1:-}" sh "$work/src/bench/run" trace
}
test "$(folder_of)" = "$work/src/build-bench"
: >"$work/src/config.status"
test "$(folder_of)" = "$work/src"
test "$(folder_of "$work/src/build-bench")" = "$work/src/build-bench"
rm -r "$work"

grep -l 'common\.parser' "$bench"/*/*.py | while read -r script; do
    python3 "$script" --help | grep -q -e '--quick' || { echo "$script does not start"; exit 1; }
done
python3 "$bench/phase2_classic/classic.py" --dtrain "$DT_BUILDDIR/dtrain" --work "$PWD/test-benches.$$" --quick \
    --threads 1 >"test-benches.$$.txt"
cat "test-benches.$$.txt"
grep -Eq '^value phase2_classic\.cartpole [0-9.]+ return target 475 at least' "test-benches.$$.txt"
test -e "test-benches.$$/cartpole-1/metrics.jsonl"
rm -r "test-benches.$$" "test-benches.$$.txt"
