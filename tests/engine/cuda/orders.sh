#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Phases 1, 2 and 3 in turn on the emulated GPU, once per seed: whatever is late, and in whatever order streams, blocks
# and threads go on, the run ends in the bits of one without a seed. Every fourth run is without graphs.
#   DT_EMULATED_SEEDS   how many (24; 60 with DT_LONG=1)
#   DT_EMULATED_FIRST   the first one (1)
set -u

build=$(cd "${DT_BUILDDIR:-.}" && pwd)
usual=24
[ "${DT_LONG:-}" != 1 ] || usual=60
seeds=${DT_EMULATED_SEEDS:-$usual}
first=${DT_EMULATED_FIRST:-1}
work=$(mktemp -d ./test-cuda-orders-XXXXXX) || exit 1
trap 'rm -rf "$work"' EXIT INT TERM
DTRAIN_PLUGIN_PATH=$build/tests/engine/cuda/emulated:$build/phases/.libs:$build/models/.libs:$build/plugins/.libs
export DTRAIN_PLUGIN_PATH
unset DT_EMULATED_SEED DT_EMULATE_ORDER || true

# three vehicles in a row, seen for four seconds in each of eight scenes
awk 'BEGIN {
    print "scene,site,frame,id,x,y,heading,speed,accel,length,width,frame_rate_hz"
    for (s = 1; s <= 8; s++)
        for (f = 0; f < 20; f++)
            for (v = 1; v <= 3; v++)
                printf "s%d,here,%d,%d,%g,%g,0,%g,0,4.5,1.8,5\n", s, f, v, 3 * v + s + (5 + v + s / 3) * f / 5, 3.5 * v,
                    5 + v + s / 3
}' >"$work/row.csv"
"$build/dtrain" data import "$work/row.csv" --out "$work/row.store" >"$work/row.log" 2>&1 || {
    cat "$work/row.log"
    exit 1
}

# run NUMBER DIR arguments...: phase 1, 2 or 3 for NUMBER modulo 3, and the hash of its state into DIR.hash. Everything
# is as small as it may be: what is late or out of order shows in the number of runs, not in their length.
cat >"$work/run" <<'EOF'
number=$1
dir=$2
shift 2
tiny="--set data.batch=4 --set data.shards=2 --set engine.threads=1 --set report.enabled=false
    --set metrics.tensorboard=false"
policy="--set env.id=env_traffic --set env_traffic.control=signals --set env_traffic.scenario=intersection
    --set env_traffic.episode_s=20 --set env.instances=2 --set evaluation.baselines= --set evaluation.seeds=1
    --set controller_mlp.hidden=8 --set controller_mlp.layers=1"
rounds() { # PHASE
    echo "--plugin $1 --set $1.fragment=4 --set $1.train_batch=8 --set $1.sgd_epochs=1 --set $1.iterations=3"
}
case $((number % 3)) in
    0) set -- --plugin phase1_world_model --max-steps 4 --set data.store="$WORK/row.store" --set data.batch=2 \
        --set phase1_world_model.history_s=0.6 --set phase1_world_model.horizon_s=0.4 \
        --set data_trajectory.min_history_s=0.2 --set data_trajectory.min_future_s=0.2 --set risk_gnn.hidden=4 \
        --set risk_gnn.heads=1 --set risk_gnn.layers=1 --set world_lstm.hidden=4 --set world_lstm.layers=1 \
        --set training.eval_interval=0 "$@" ;;
    1) set -- $(rounds phase2_ppo) $policy "$@" ;;
    2) set -- $(rounds phase3_constrained) $policy --set phase3_constrained.limits=starvation:5 "$@" ;;
esac
"$BUILD/dtrain" $tiny "$@" --device cuda --run-dir "$dir" -q >"$dir.log" 2>&1 &&
    "$BUILD/dtrain" ckpt inspect "$dir" --json | sed -n 's/.*"state_hash":"\([0-9a-f]*\)".*/\1/p' >"$dir.hash"
rm -rf "$dir"
EOF
cat >"$work/seed" <<'EOF'
graphs=
test $(($1 / 3 % 4)) -ne 0 || graphs=--no-graphs
DT_EMULATED_SEED=$1 sh "$WORK/run" "$1" "$WORK/$1" $graphs
if ! test -s "$WORK/$1.hash" || ! cmp -s "$WORK/$1.hash" "$WORK/usual$(($1 % 3)).hash"; then
    echo "phase $(($1 % 3 + 1)) with DT_EMULATED_SEED=$1 $graphs: other bits than without, or no end:"
    tail -n 5 "$WORK/$1.log"
    exit 255
fi
rm -f "$WORK/$1.hash" "$WORK/$1.log"
EOF

BUILD=$build WORK=$work
export BUILD WORK
for phase in 0 1 2; do
    sh "$work/run" $phase "$work/usual$phase"
    test -s "$work/usual$phase.hash" || {
        cat "$work/usual$phase.log"
        exit 1
    }
done
jobs=$(nproc 2>/dev/null || echo 1)
test "$seeds" -gt 60 || jobs=1 # make check runs several tests at once already
seq "$first" $((first + seeds - 1)) | xargs -n 1 -P "$jobs" sh "$work/seed" || exit 1
echo "$seeds seeds from $first on: phases 1, 2 and 3 end in the same bits"
