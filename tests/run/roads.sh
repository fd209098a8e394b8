#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Training on recordings with roads: a world model reads them, threads, virtual ranks and a resume change no bit, and
# where a store has none, or nobody asks, nothing of it is there. What was trained with roads serves where there are
# none. Stores in fewer bits and packed ones train to the same bits, too. The recordings are scenarios of CommonRoad
# written here: cars round a bend, two lanes and a branch.
set -u

dtrain=${DT_BUILDDIR:-.}/dtrain
work=$(mktemp -d ./test-roads-XXXXXX) || exit 1
trap 'rm -rf "$work"' EXIT INT TERM
failed=0
cases=0
small="--set risk_gnn.hidden=8 --set risk_gnn.heads=1 --set risk_gnn.layers=1 --set world_lstm.hidden=8
    --set world_lstm.layers=1 --set world_lstm.head=8 --set world_gru.hidden=8 --set world_gru.layers=1
    --set world_gru.head=8 --set data.batch=4 --set data.shards=4 --set training.eval_interval=0
    --set checkpoint.every_seconds=0 --set report.enabled=false --set phase1_world_model.history_s=1
    --set phase1_world_model.horizon_s=1 --set data_trajectory.folds=2 -q"

fail() {
    echo "FAIL: $*"
    tail -n 6 "$work/err" | sed 's/^/    /'
    failed=$((failed + 1))
}
state_hash() {
    "$dtrain" ckpt inspect "$work/$1" --json 2>/dev/null | sed -n 's/.*"state_hash":"\([0-9a-f]*\)".*/\1/p'
}
train() { # NAME STORE [options]: 6 steps
    to=$1 store=$2
    shift 2
    # shellcheck disable=SC2086
    "$dtrain" --plugin phase1_world_model $small --set data.store="$work/$store" --max-steps 6 --run-dir "$work/$to" \
        "$@" >"$work/out" 2>"$work/err" || fail "$to: training left with $?"
}
same() { # NAME OTHER WHAT
    cases=$((cases + 1))
    [ -n "$(state_hash "$1")" ] && [ "$(state_hash "$1")" = "$(state_hash "$2")" ] || fail "$3: other bits"
}
differs() { # NAME OTHER WHAT
    cases=$((cases + 1))
    [ -n "$(state_hash "$1")" ] && [ "$(state_hash "$1")" != "$(state_hash "$2")" ] || fail "$3: the same bits"
}

scene() { # NUMBER: 3 cars for 4 s on a straight lane, which branches, and one next to it
    awk -v scene="$1" '
function point(x, y) { return "<point><x>" x "</x><y>" y "</y></point>" }
function bound(side, line) { return "<" side ">" line "</" side ">" }
function state(car, t,   x) {
    x = 10 * car + (8 - car + scene) * t / 10
    return "<position>" point(x, car == 3 ? 3.4 : 0.1 * car) "</position><orientation><exact>0</exact></orientation>" \
        "<time><exact>" t "</exact></time><velocity><exact>" 8 - car + scene "</exact></velocity>"
}
BEGIN {
    print "<commonRoad commonRoadVersion=\"2020a\" benchmarkID=\"USA_Test-" scene "_1_T-1\" timeStepSize=\"0.1\">"
    print "<lanelet id=\"1\">" bound("leftBound", point(0, 1.7) point(60, 1.7)) \
        bound("rightBound", point(0, -1.7) point(60, -1.7)) \
        "<successor ref=\"2\"/><successor ref=\"4\"/><adjacentLeft ref=\"3\" drivingDir=\"same\"/></lanelet>"
    print "<lanelet id=\"2\">" bound("leftBound", point(60, 1.7) point(120, 1.7)) \
        bound("rightBound", point(60, -1.7) point(120, -1.7)) "<predecessor ref=\"1\"/></lanelet>"
    print "<lanelet id=\"3\">" bound("leftBound", point(0, 5.1) point(90, 5.1)) \
        bound("rightBound", point(0, 1.7) point(90, 1.7)) "<adjacentRight ref=\"1\" drivingDir=\"same\"/></lanelet>"
    print "<lanelet id=\"4\">" bound("leftBound", point(60, 1.7) point(75, -8)) \
        bound("rightBound", point(60, -1.7) point(70, -8)) "<predecessor ref=\"1\"/></lanelet>"
    for (car = 1; car <= 3; car++) {
        printf "<dynamicObstacle id=\"%d\"><type>car</type><shape><rectangle><length>4</length><width>2</width>" \
            "</rectangle></shape><initialState>%s</initialState><trajectory>", 10 + car, state(car, 0)
        for (t = 1; t < 40; t++) {
            print "<state>" state(car, t) "</state>"
        }
        print "</trajectory></dynamicObstacle>"
    }
    print "</commonRoad>"
}'
}
for i in 1 2 3 4; do
    scene $i >"$work/scene$i.xml"
    sed '/<lanelet /d; s/USA_Test/USA_Bare/' "$work/scene$i.xml" >"$work/bare$i.xml"
done
"$dtrain" data import "$work"/scene*.xml --out "$work/roads" -q 2>"$work/err" || fail "importing with roads"
"$dtrain" data import "$work"/bare*.xml --out "$work/bare" -q 2>"$work/err" || fail "importing without roads"
"$dtrain" data merge "$work/roads" "$work/bare" --out "$work/both" -q 2>"$work/err" || fail "merging both"

for model in world_lstm world_gru; do
    with="--set models.world=$model --set data_trajectory.lanes=true --set phase1_world_model.distance_weight=5"
    # shellcheck disable=SC2086
    {
        train "$model" roads $with --threads 1
        train "$model-threads" roads $with --threads 3
        same "$model-threads" "$model" "$model with 3 threads"
        train "$model-ranks" roads $with --set comm.backend=sim --set comm.ranks=3
        same "$model-ranks" "$model" "$model on 3 ranks"
        train "$model-part" roads $with --max-steps 3
        train "$model-part" roads $with --resume "$work/$model-part"
        same "$model-part" "$model" "$model resumed"
    }
done
# a mean distance is at most the root of the mean square, of positions that are off by 0.05 m besides
cases=$((cases + 1))
awk '{
    if (!match($0, /"losses\/distance":[0-9.e+-]+/)) next
    d = 0 + substr($0, RSTART + 18, RLENGTH - 18)
    match($0, /"losses\/position":[0-9.e+-]+/)
    if (d <= 0 || d * d > substr($0, RSTART + 18, RLENGTH - 18) + 0.0026) exit 1
    n++
} END { exit n != 6 }' "$work/world_lstm/metrics.jsonl" || fail "distances are none, or more than their squares allow"
# the same recording in fewer bits, in packed blocks: threads, ranks and a resume change no bit, and neither does
# packing
with="--set models.world=world_gru --set data_trajectory.lanes=true --set phase1_world_model.distance_weight=5"
keep() { # NAME [options]
    kept=$1
    shift
    "$dtrain" data merge "$work/roads" --out "$work/$kept" -q "$@" 2>"$work/err"
}
packed=zstd
keep f32 --set store.compress=zstd || packed=none
for bits in f32 f16 i8; do
    [ $bits != f32 ] || [ $packed = zstd ] || continue # the plain one was trained above
    # shellcheck disable=SC2086
    {
        [ $bits = f32 ] || keep $bits --set store.features=$bits --set store.compress=$packed || fail "keeping as $bits"
        train $bits-ranks $bits $with --set comm.backend=sim --set comm.ranks=3 --set data_trajectory.cache_mb=1
        train $bits-part $bits $with --max-steps 3 --threads 3
        train $bits-part $bits $with --resume "$work/$bits-part" --threads 3
        same $bits-part $bits-ranks "$bits, 3 threads, resumed, and 3 ranks"
        if [ $bits = f32 ]; then
            same f32-ranks world_gru "packed"
            continue
        fi
        differs $bits-ranks world_gru "$bits"
        keep $bits-plain --set store.features=$bits || fail "keeping as $bits, not packed"
        train $bits-plain-run $bits-plain $with --threads 1
        same $bits-plain-run $bits-ranks "$bits, packed and not"
    }
done

train blind roads
differs blind world_lstm "roads are read"
train asked bare --set data_trajectory.lanes=true
mkdir "$work/stream" && cp -R "$work/bare" "$work/stream/000000"
"$dtrain" --plugin phase1_world_model $small $with --set data.store="$work/roads" --set data.stream="$work/stream" \
    --set data.window=4 --run-dir "$work/unlike" >/dev/null 2>"$work/err"
code=$?
cases=$((cases + 1))
{ [ $code -eq 4 ] && grep -q "data.store" "$work/err"; } || fail "a store unlike the others: $code"
# a store for each scene, in a stream: with all that roads give, samples of several are put together to what one store
# gives
mkdir "$work/arriving"
for i in 1 2 3 4; do
    "$dtrain" data import "$work/scene$i.xml" --out "$work/arriving/00000$((i - 1))" -q 2>"$work/err" || fail "no scene $i"
done
touch "$work/arriving/000004.end"
cases=$((cases + 1))
all="--set data_trajectory.lanes=true --set training.epochs=1 --set data.sampling=sequential
    --set engine.slice_rows=4096 --set data_trajectory.train_stride_s=0.2 --max-steps 1000 --set data.batch=8 --set data.shards=2"
tensors() { # NAME: of its last checkpoint
    for last in "$work/$1"/checkpoints/*; do :; done
    cat "$last/model.safetensors" "$last/optim.safetensors"
}
# shellcheck disable=SC2086
{
    train stored roads $all --set data_trajectory.eval_scenes=all
    steps=$(sed -n 's/.*"step":\([0-9]*\).*/\1/p' "$work/stored/metrics.jsonl" | tail -n 1)
    train streamed roads $all --set data.stream="$work/arriving" --set data.window=$((8 * ${steps:-1}))
}
tensors stored >"$work/a" && tensors streamed >"$work/b"
[ "${steps:-0}" -ge 4 ] && [ -s "$work/a" ] && cmp -s "$work/a" "$work/b" || fail "a stream with roads ($steps steps): other bits"
train plain bare
same asked plain "of a store without roads nothing is told"
cases=$((cases + 1))
[ "$(grep -c 'bare has no roads: no lanes are provided' "$work/asked/train.log")" -eq 1 ] ||
    fail "that a store has no roads is not said, or more than once"

# two futures along the lane; what was trained with roads serves where none are known
train several roads --set data_trajectory.lanes=true --set world_lstm.futures=3 --set world_lstm.kinematic=true
for store in roads bare; do
    cases=$((cases + 1))
    "$dtrain" eval --checkpoint "$work/several" --json -q --set data.store="$work/$store" >"$work/out" 2>"$work/err" ||
        fail "evaluation on $store left with $?"
    grep -q '"rmse_m":\[[0-9]' "$work/out" || fail "no errors on $store"
done

# lanes on a device of host memory, whose kernels are the CPU's; sites of one store with roads and without
with="--set models.world=world_gru --set data_trajectory.lanes=true"
# shellcheck disable=SC2086
{
    train lanes roads $with
    for site in Bare Test; do
        train lanes-no-$site both $with --set data_trajectory.eval_site=$site
    done
    DTRAIN_PLUGIN_PATH=${DT_BUILDDIR:-.}/tests/engine/device/.libs
    export DTRAIN_PLUGIN_PATH
    train lanes-device roads $with --device cuda
    same lanes-device lanes "lanes on a device"
    for site in Bare Test; do
        train lanes-no-$site-device both $with --set data_trajectory.eval_site=$site --device cuda
        same lanes-no-$site-device lanes-no-$site "lanes on a device, without $site"
    done
    unset DTRAIN_PLUGIN_PATH
    differs lanes-no-Bare lanes-no-Test "the same vehicles with roads and without"
    train unseen roads --set models.world=world_gru
}
cases=$((cases + 1))
"$dtrain" eval --checkpoint "$work/lanes" --json -q >"$work/out" 2>"$work/err" || fail "evaluation of lanes: $?"
grep -q "nothing here" "$work/err" && fail "a warning where all is as it was trained"
"$dtrain" eval --checkpoint "$work/lanes" --json -q --set data_trajectory.lanes=false >"$work/out" 2>"$work/err" ||
    fail "evaluation without lanes: $?"
grep -q "tensors of world are unused here, .*data_trajectory.lanes is false here and was true" "$work/err" ||
    fail "evaluation without lanes does not warn"
for how in "--init-from $work/unseen --run-dir $work/refused" "--resume $work/unseen"; do
    cases=$((cases + 1))
    # shellcheck disable=SC2086
    "$dtrain" --plugin phase1_world_model $small $with --set data.store="$work/roads" --max-steps 8 $how \
        >"$work/out" 2>"$work/err"
    code=$?
    { [ $code -eq 2 ] && grep -q "and the options of its data (.*data_trajectory.lanes is true here and was false)" "$work/err"; } ||
        fail "$how with lanes left with $code"
done

# recordings with roads in addition to experience, which both have many sizes of their own
beside() { # NAME [options]
    to=$1
    shift
    # shellcheck disable=SC2086
    "$dtrain" --plugin phase3_constrained --init-from "$work/lanes" $with --set data.store="$work/roads" \
        --set data_trajectory.folds=2 --set env.id=env_traffic --set env.instances=2 --set env_traffic.scenario=merge \
        --set env_traffic.episode_s=40 --set env_traffic.action_s=1 --set env_traffic.agents=6 --set models.perception=risk_gnn \
        --set risk_gnn.hidden=8 --set risk_gnn.heads=1 --set risk_gnn.layers=1 --set world_gru.hidden=8 \
        --set world_gru.layers=1 --set world_gru.head=8 --set models.shield=shield_barrier \
        --set phase3_constrained.shield_safe_steps=2 --set phase3_constrained.foresight=true \
        --set phase3_constrained.history_s=1 --set phase3_constrained.horizon_s=1 \
        --set phase3_constrained.stored_samples=8 --set phase3_constrained.train_batch=80 \
        --set phase3_constrained.fragment=40 --set phase3_constrained.iterations=2 --set data.batch=40 \
        --set training.freeze_loaded= \
        --set phase3_constrained.sgd_epochs=1 --set training.warmup_epochs=0 --set training.eval_interval=0 \
        --set report.enabled=false --run-dir "$work/$to" -q "$@" >"$work/out" 2>"$work/err" ||
        fail "$to: phase 3 beside recordings with roads left with $?"
}
cases=$((cases + 1))
beside beside --threads 1
for loss in risk nll stored_barrier_loss; do
    grep -q "\"losses/$loss\":-*[0-9.]*[1-9]" "$work/beside/metrics.jsonl" ||
        fail "beside experience, recordings with roads teach nothing of $loss"
done
beside beside-ranks --set comm.backend=sim --set comm.ranks=2
same beside-ranks beside "phase 3 beside recordings with roads, on 2 ranks"

for format in safetensors onnx; do
    cases=$((cases + 1))
    "$dtrain" export --checkpoint "$work/several" --json -q --format $format --out "$work/file" \
        >"$work/out" 2>"$work/err" && grep -q '"inputs":\[.*"lane","path"' "$work/out" ||
        fail "exporting as $format: $(cat "$work/out")"
done

echo "$cases cases, $failed failed"
[ "$failed" -eq 0 ]
