#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# README.md and its translation are short, their first steps work in a clone after ./quickstart, and their pictures
# exist.
set -eu
. "$DT_SRCDIR/tests/docs/tested.sh"
work=$(mktemp -d "$PWD/test-readme-XXXXXX")
trap 'rm -rf "$work"' EXIT

for readme in "$DT_SRCDIR/README.md" "$DT_SRCDIR/README.zh.md"; do
    lines=$(wc -l <"$readme")
    test "$lines" -le 120 || { echo "$readme has $lines lines, the limit is 120"; exit 1; }
    for name in docs/img/report.svg docs/img/episode.svg; do
        grep -q "($name)" "$readme" || { echo "$readme does not show $name"; exit 1; }
        head -n 2 "$DT_SRCDIR/$name" | grep -q '<svg ' || { echo "$name is not an SVG file"; exit 1; }
    done
    tested_commands "$readme" | sed 's/#.*//' >"$work/$(basename "$readme").sh"
    n=$(grep -c '^build/dtrain ' "$work/$(basename "$readme").sh") || true
    test "$n" -ge 7 || { echo "$readme has $n tested dtrain commands, expected at least 7"; exit 1; }
done
# the translation runs the same commands; only its comments differ
diff "$work/README.md.sh" "$work/README.zh.md.sh" || { echo "README.zh.md has other commands"; exit 1; }
untested() { grep '^ *build/dtrain \|^ *--set ' "$1" | sort; }
untested "$DT_SRCDIR/README.md" >"$work/en" && untested "$DT_SRCDIR/README.zh.md" | diff "$work/en" - ||
    { echo "README.zh.md has other commands"; exit 1; }

like_a_clone "$work"
cd "$work"
# the commands as they are, with smaller models
DTRAIN__RISK_GNN__HIDDEN=16 DTRAIN__RISK_GNN__HEADS=2 DTRAIN__WORLD_LSTM__HIDDEN=16
export DTRAIN__RISK_GNN__HIDDEN DTRAIN__RISK_GNN__HEADS DTRAIN__WORLD_LSTM__HIDDEN
# what ./quickstart leaves, of two rounds instead of some minutes
build/dtrain --config share/hybrid.cfg --phase 2 --set phase2_ppo.iterations=2 --set evaluation.seeds=1 \
    --run-dir runs/quickstart-20261122T120000Z -q
sh -eux README.md.sh
for file in episode.html first.html; do
    grep -q '</html>' "$file" || { echo "no $file"; exit 1; }
done
