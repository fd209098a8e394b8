#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# env.mix of road networks with other numbers of signals, phases, lanes and links: rejected with the quantity and the
# network; with places that only the larger one fills it trains, to the same bits on ranks and after a stop, and a policy
# acts alike with such places and without. With SUMO, where it is installed, too.
set -u

. "${DT_SRCDIR:-.}/tests/check.inc"
shapes=$(cd "${DT_SRCDIR:-.}" && pwd)/tests/fixtures/shapes
state_hash() {
    "$dtrain" ckpt inspect "$1" --json 2>/dev/null | sed -n 's/.*"state_hash":"\([0-9a-f]*\)".*/\1/p'
}
small="--set env.instances=2 --set data.shards=2 --set evaluation.baselines= --set training.eval_interval=0
    --set checkpoint.every_seconds=0 --set report.enabled=false --set metrics.tensorboard=false --set data.batch=24
    --set phase2_ppo.iterations=2 --set phase2_ppo.train_batch=24 --set phase2_ppo.fragment=12
    --set phase2_ppo.sgd_epochs=2 --set models.controller=controller_influence -q"
grid="--set env.id=env_traffic --set env_traffic.control=signals --set env_traffic.episode_s=90
    --set env_traffic.scenario=grid --set env_traffic.right_of_way=true"
mix="env.mix=traffic,traffic:rows=1;cols=3;lanes=1"
set_sizes() { # SIGNALS PHASES LANES LINKS
    sizes="--set env_traffic.max_signals=$1 --set env_traffic.max_phases=$2 --set env_traffic.max_lanes=$3
        --set env_traffic.max_links=$4"
}
train() { # DIR MORE...
    dir=$1
    shift
    # shellcheck disable=SC2086
    expect 0 "" "$dtrain" --plugin phase2_ppo $small $grid $sizes --set "$mix" --run-dir "$work/$dir" "$@"
}
rejected() { # TEXT MORE...
    text=$1
    shift
    # shellcheck disable=SC2086
    expect 2 "$text" "$dtrain" --plugin phase2_ppo $small $grid $sizes --set "$mix" --run-dir "$work/none" "$@"
    grep -qF "traffic:rows=1" "$work/err" || fail "the network is not named"
    [ ! -e "$work/none" ] || fail "a run was made"
}

set_sizes 0 0 0 0
rejected "3 places for agents instead of 4"
set_sizes 4 0 0 0
rejected "phases [A 2 17" # of the port; the first one has 4
set_sizes 3 4 0 24
# shellcheck disable=SC2086
expect 2 "env_traffic.max_signals = 3" "$dtrain" --plugin phase2_ppo $small $grid $sizes --run-dir "$work/none"

set_sizes 5 6 20 24
train one --threads 1
want=$(state_hash "$work/one")
[ -n "$want" ] || fail "no state"
train ranks --set comm.backend=sim --set comm.ranks=2
[ "$(state_hash "$work/ranks")" = "$want" ] || fail "two ranks: other bits"
train stopped --max-steps 3
expect 0 "" "$dtrain" run --resume "$work/stopped" -q
[ "$(state_hash "$work/stopped")" = "$want" ] || fail "resumed: other bits"
for net in "rows=2 cols=2 lanes=2" "rows=1 cols=3 lanes=1" "rows=3 cols=2 lanes=1"; do
    of=
    for option in $net; do
        of="$of --set env_traffic.$option"
    done
    for size in "0 0 0 0" "9 7 30 40"; do
        # shellcheck disable=SC2086
        set_sizes $size
        # shellcheck disable=SC2086
        expect 0 '"place_returns"' "$dtrain" eval --checkpoint "$work/one" --seeds 1 --episodes 1 --json -q $of $sizes
        mv "$work/out" "$work/as_${size%% *}"
    done
    cmp -s "$work/as_0" "$work/as_9" || fail "$net: places without signals change what a policy does"
done

[ -e "${DT_BUILDDIR:-.}/plugins/env_sumo/.libs/env_sumo_shim.so" ] || {
    finish "nets of any size, without SUMO"
    exit 0
}
sumo="--set env.id=env_sumo --set env_sumo.sumocfg=$shapes/shared.sumocfg --set env_sumo.end_s=90
    --set env_sumo.right_of_way=true"
sizes="--set env_sumo.max_phases=5 --set env_sumo.max_signals=3 --set env_sumo.max_lanes=20 --set env_sumo.max_links=30"
for size in "" "$sizes"; do
    # shellcheck disable=SC2086
    expect 0 '"return"' "$dtrain" eval --checkpoint "$work/one" $sumo $size --seeds 1 --episodes 1 --json -q
    sed 's/,"place_returns".*/}/' "$work/out" >"$work/sumo_${#size}" # of several places alone
done
cmp -s "$work/sumo_0" "$work/sumo_${#sizes}" || fail "SUMO: places without signals change what a policy does"
# shellcheck disable=SC2086
expect 0 "" "$dtrain" --plugin phase2_ppo $small $sumo $sizes --run-dir "$work/sumo" \
    --set "env.mix=sumo,sumo:sumocfg=$shapes/turns.sumocfg"
# shellcheck disable=SC2086
expect 2 "env_sumo.max_links" "$dtrain" --plugin phase2_ppo $small $sumo --run-dir "$work/none" \
    --set "env.mix=sumo,sumo:sumocfg=$shapes/turns.sumocfg"
finish "nets of any size"
