#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every shipped profile is found by its name from any folder, is accepted, plans a run on the embedded recording, and
# its values are the ones in force, with their origin shown.
set -eu
work=$(mktemp -d "$PWD/test-profiles-XXXXXX") # whole: the test goes there, and the trap runs there
trap 'rm -rf "$work"' EXIT
cd "$work"

fail() {
    echo "FAIL: $*"
    cat out
    exit 1
}

n=0
for file in "$DT_SRCDIR"/profiles/*.cfg; do
    name=$(basename "$file" .cfg)
    "$DT_BUILDDIR/dtrain" run --plugin phase1_world_model --profile "$name" --dry-run >out 2>&1 || fail "$name"
    grep -q parameters out || fail "$name plans nothing"
    n=$((n + 1))
done
test "$n" -eq 6 || fail "$n profiles, expected 6"

show() { # profile, piece of what is shown
    "$DT_BUILDDIR/dtrain" show risk_gnn --profile "$1" >out 2>&1 || fail "show --profile $1"
    grep -q "$2" out || fail "--profile $1 shows no $2"
}
show max 'preset = "15m".*/profiles/max\.cfg:'
# a name that ships comes before a file of the current folder, and ./ says which is meant
echo 'risk_gnn = { heads = 2; };' >max
show ./max 'heads = 2 .*\./max:1'
show max 'preset = "15m".*/profiles/max\.cfg:'
mv max own.cfg
show own.cfg 'heads = 2 .*own\.cfg:1'

code=0
"$DT_BUILDDIR/dtrain" run --plugin phase1_world_model --profile nromal >out 2>&1 || code=$?
test $code -eq 2 || fail "exit code $code of an unknown profile, expected 2"
grep -q 'no such profile in .*; expected max, memory, normal, recordings, test, vram, or a file' out || fail "says not which"
