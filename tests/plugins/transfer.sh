#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Policies of signals between env_traffic and env_sumo: what was trained in one is evaluated in the other by one command,
# and decides there as before: it acts alike after a stay in the other one. Skipped without SUMO.
set -u

. "${DT_SRCDIR:-.}/tests/check.inc"
[ -e "${DT_BUILDDIR:-.}/plugins/env_sumo/.libs/env_sumo_shim.so" ] || { echo "skipped: built without SUMO"; exit 77; }
shapes=$(cd "${DT_SRCDIR:-.}" && pwd)/tests/fixtures/shapes

native="--set env.id=env_traffic"
sumo="--set env.id=env_sumo"
train() { # DIR MORE...
    dir=$1
    shift
    expect 0 "" "$dtrain" --plugin phase2_ppo --set models.controller=controller_influence --run-dir "$work/$dir" \
        --set env_traffic.scenario=net --set env_traffic.control=signals --set env_traffic.episode_s=90 \
        --set "env_traffic.net_file=$shapes/shared.net.xml" --set "env_traffic.routes_file=$shapes/shared.rou.xml" \
        --set "env_sumo.sumocfg=$shapes/shared.sumocfg" --set env_sumo.end_s=90 \
        --set env.instances=1 --set phase2_ppo.iterations=1 --set phase2_ppo.train_batch=9 --set phase2_ppo.fragment=9 \
        --set data.batch=9 --set phase2_ppo.sgd_epochs=1 --set training.eval_interval=0 --set evaluation.baselines= \
        --set checkpoint.every_seconds=0 --set report.enabled=false --set metrics.tensorboard=false -q "$@"
}
evaluate() { # DIR ENVIRONMENT...: of $work/NAME
    dir=$1
    shift
    expect 0 '"starvation"' "$dtrain" eval --checkpoint "$work/$dir" "$@" --seeds 1 --episodes 1 --json
    cp "$work/out" "$work/$dir.json"
}

# shellcheck disable=SC2086
for there in "$native" "$sumo"; do
    back=$sumo
    [ "$there" = "$sumo" ] && back=$native
    rm -rf "$work/first" "$work/second"
    train first $there
    # updates too small to change a weight
    train second $back --init-from "$work/first" --set training.learning_rate=1e-30 --set training.eta_min=0 \
        --set training.weight_decay=0
    for where in "$there" "$back"; do
        evaluate first $where
        evaluate second $where
        cmp -s "$work/first.json" "$work/second.json" || fail "it acts otherwise in ${where##*=} after ${back##*=}"
    done
done
finish "signals between simulators"
