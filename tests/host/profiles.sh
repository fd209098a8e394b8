#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every shipped profile is accepted, plans a run, and its values are the ones in force, with their origin shown.
set -eu
n=0
for profile in "$DT_SRCDIR"/profiles/*.cfg; do
    "$DT_BUILDDIR/dtrain" run --plugin phase1_world_model --profile "$profile" --dry-run >profiles.out 2>&1 ||
        { cat profiles.out; exit 1; }
    grep -q 'parameters' profiles.out
    n=$((n + 1))
done
test "$n" -eq 5
"$DT_BUILDDIR/dtrain" show risk_gnn --profile "$DT_SRCDIR/profiles/max.cfg" >profiles.out
grep -q 'preset = "15m".*max\.cfg' profiles.out || { cat profiles.out; exit 1; }
rm -f profiles.out
