#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# README.md and its translation are short, their first steps work in a clone after ./quickstart, their steps with SUMO
# where it is built in, and their pictures exist.
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
    {
        tested_commands "$readme"
        tested_commands "$readme" "tested with SUMO"
    } | sed 's/#.*//' >"$work/$(basename "$readme").sh"
    n=$(grep -c '^build/dtrain ' "$work/$(basename "$readme").sh") || true
    test "$n" -ge 13 || { echo "$readme has $n tested dtrain commands, expected at least 13"; exit 1; }
    # no block is left out
    test "$(grep -c '^<!-- tested' "$readme")" -eq "$(grep -c '^```sh$' "$readme")" || { echo "$readme has an untested block"; exit 1; }
done
# the translation runs the same commands; only its comments differ
diff "$work/README.md.sh" "$work/README.zh.md.sh" || { echo "README.zh.md has other commands"; exit 1; }

like_a_clone "$work"
cd "$work"
# the commands as they are, with smaller models
DTRAIN__RISK_GNN__HIDDEN=16 DTRAIN__RISK_GNN__HEADS=2 DTRAIN__WORLD_LSTM__HIDDEN=16
export DTRAIN__RISK_GNN__HIDDEN DTRAIN__RISK_GNN__HEADS DTRAIN__WORLD_LSTM__HIDDEN
# what ./quickstart leaves, of two rounds instead of some minutes
build/dtrain --config share/hybrid.cfg --phase 2 --set phase2_ppo.iterations=2 --set evaluation.seeds=1 \
    --run-dir runs/quickstart-20261122T120000Z -q
tested_commands "$DT_SRCDIR/README.md" | sed 's/#.*//' >first.sh
sh -eux first.sh
for file in episode.html first.html; do
    grep -q '</html>' "$file" || { echo "no $file"; exit 1; }
done

# --- a scenario of SUMO: two minutes of the one in examples/, few and short rounds ---
if [ ! -e "$DT_BUILDDIR/plugins/env_sumo/.libs/env_sumo_shim.so" ]; then
    echo "built without SUMO: the steps with SUMO are skipped"
    exit 0
fi
cp "$DT_SRCDIR/examples/data/town.net.xml" "$DT_SRCDIR/examples/data/town.rou.xml" .
sed 's/<end value="600"/<end value="120"/' "$DT_SRCDIR/examples/data/town.sumocfg" >town.sumocfg
DTRAIN__PHASE2_PPO__ITERATIONS=1 DTRAIN__PHASE2_PPO__TRAIN_BATCH=16 DTRAIN__PHASE2_PPO__FRAGMENT=4 DTRAIN__DATA__BATCH=16
DTRAIN__EVALUATION__SEEDS=1
export DTRAIN__PHASE2_PPO__ITERATIONS DTRAIN__PHASE2_PPO__TRAIN_BATCH DTRAIN__PHASE2_PPO__FRAGMENT DTRAIN__DATA__BATCH
export DTRAIN__EVALUATION__SEEDS
rm episode.html
tested_commands "$DT_SRCDIR/README.md" "tested with SUMO" | sed 's/#.*//' >sumo.sh
sh -eux sumo.sh
for file in town.html episode.html; do
    grep -q '</html>' "$file" || { echo "no $file"; exit 1; }
done
test -s town.onnx && test -s town.onnx.json || { echo "no town.onnx"; exit 1; }
