#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A program built with --enable-force-preopen needs no file of a plugin: alone in a folder it lists all that ship, and
# one of them trains. A file of the same name is not mixed in.
set -eu
test "$DT_PREOPEN" = yes || { echo "skipped: built without --enable-force-preopen"; exit 77; }
work=$(mktemp -d "$PWD/test-preopen-XXXXXX") # whole: the test goes there, and the trap runs there
trap 'rm -rf "$work"' EXIT
cp "$DT_BUILDDIR/dtrain" "$work"
cd "$work"

fail() {
    echo "FAIL: $*"
    cat said
    exit 1
}
./dtrain list --json >said 2>&1 || fail "dtrain list"
for plugin in $DT_PLUGINS; do
    grep -qF "\"id\":\"$(basename "$plugin" .la)\"" said || fail "$plugin is not linked in"
done
./dtrain --plugin phase1_world_model.so --set data.store="$DT_BUILDDIR/share/demo.store" --max-steps 1 --run-dir run \
    >said 2>&1 || fail "it does not train"
code=0
./dtrain check "$DT_BUILDDIR/models/.libs/risk_gnn.so" >said 2>&1 || code=$?
test $code -eq 3 && grep -q 'risk_gnn' said ||
    fail "a second risk_gnn is accepted"
