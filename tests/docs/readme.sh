#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# README.md is short, its five first steps work in a clone after ./quickstart, and its pictures are there.
set -eu
. "$DT_SRCDIR/tests/docs/tested.sh"
work=$(mktemp -d "$PWD/test-readme-XXXXXX")
trap 'rm -rf "$work"' EXIT
readme=$DT_SRCDIR/README.md

lines=$(wc -l <"$readme")
test "$lines" -le 120 || { echo "README.md has $lines lines, 120 are what is read"; exit 1; }
for name in docs/img/report.svg docs/img/episode.svg; do
    grep -q "($name)" "$readme" || { echo "README.md does not show $name"; exit 1; }
    head -n 2 "$DT_SRCDIR/$name" | grep -q '<svg ' || { echo "$name is no picture"; exit 1; }
done

tested_commands "$readme" >"$work/commands.sh"
n=$(grep -c '^build/dtrain ' "$work/commands.sh")
test "$n" -ge 7 || { echo "README.md has $n tested dtrain commands, expected at least 7"; exit 1; }
like_a_clone "$work"
cd "$work"
# what ./quickstart leaves, of two rounds instead of some minutes
build/dtrain --config share/hybrid.cfg --phase 2 --set phase2_ppo.iterations=2 --set evaluation.seeds=1 \
    --run-dir runs/quickstart-20261122T120000Z -q
sh -eux commands.sh
for file in episode.html first.html; do
    grep -q '</html>' "$file" || { echo "no $file"; exit 1; }
done
