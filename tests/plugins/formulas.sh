#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Rewards and observations by formulas (plugins/signals) in whole runs: the same bits on one and on two ranks and after
# a stop, whose formulas come from the run; another result than without; wrong ones leave with 2 before a run is made;
# with SUMO, where it is installed, too.
set -u
dtrain=$DT_BUILDDIR/dtrain
DT_SRCDIR=${DT_SRCDIR:-.}
work=$(mktemp -d "$PWD/test-formulas-XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
failed=0

fail() {
    echo "FAIL: $*"
    tail -n 5 "$work/err" | sed 's/^/    /'
    failed=1
}
state_hash() {
    "$dtrain" ckpt inspect "$1" --json 2>/dev/null | sed -n 's/.*"state_hash":"\([0-9a-f]*\)".*/\1/p'
}
small="--set env.instances=2 --set data.shards=2 --set evaluation.baselines= --set training.eval_interval=0
    --set checkpoint.every_seconds=0 --set report.enabled=false --set metrics.tensorboard=false --set data.batch=24
    --set phase2_ppo.iterations=2 --set phase2_ppo.train_batch=24 --set phase2_ppo.fragment=12
    --set phase2_ppo.sgd_epochs=2 -q"
reward="diff_waiting_s - 0.1*queue - phase_max(phase.red_s)/60"
observation="queue, min(waiting_s, 500)/500, shown_s, phase.near, phase.allowed"
train() { # folder, more options
    folder=$1
    shift
    "$dtrain" --plugin phase2_ppo $small --run-dir "$work/$folder" "$@" >"$work/err" 2>&1
}
traffic="--set env.id=traffic --set env_traffic.scenario=grid --set env_traffic.control=signals --set env_traffic.episode_s=90
    --set models.controller=controller_mlp"

train plain $traffic || fail "training without formulas left with $?"
train one $traffic --set "env_traffic.reward=$reward" --set "env_traffic.observation=$observation" --threads 1 ||
    fail "training left with $?"
want=$(state_hash "$work/one")
[ -n "$want" ] && [ "$want" != "$(state_hash "$work/plain")" ] || fail "formulas change nothing"
train ranks $traffic --set "env_traffic.reward=$reward" --set "env_traffic.observation=$observation" \
    --set comm.backend=sim --set comm.ranks=2 || fail "two ranks left with $?"
[ "$(state_hash "$work/ranks")" = "$want" ] || fail "two ranks: other bits"
train stopped $traffic --set "env_traffic.reward=$reward" --set "env_traffic.observation=$observation" --max-steps 3 ||
    fail "three steps left with $?"
"$dtrain" run --resume "$work/stopped" -q >"$work/err" 2>&1 || fail "resuming left with $?"
[ "$(state_hash "$work/stopped")" = "$want" ] || fail "resumed: other bits"

wrong() { # option, value, what is said
    train wrong $traffic --set "env_traffic.$1=$2"
    code=$?
    [ $code -eq 2 ] && grep -qF "$3" "$work/err" || fail "$1=$2 left with $code"
    [ ! -e "$work/wrong" ] || fail "$1=$2 left a run"
}
wrong reward "diff_wait - 0.1*queue" 'character 1: "diff_wait" is not a quantity; did you mean diff_waiting_s'
wrong reward "-queue/vehicles" "character 7: the divisor may be 0"
wrong observation "queue, near" 'character 8: "near" is not a quantity'

# the reference page has every column and quantity, in the order of the tables
sed -n 's/^SIGNAL_[A-Z]*([A-Z_]*, "\([a-z_]*\)", .*/\1/p' "$DT_SRCDIR/plugins/signals/columns.def" \
    "$DT_SRCDIR/plugins/signals/quantities.def" >"$work/names"
sed -n 's/^| \([0-9]* | \)\{0,1\}`\([a-z_]*\)` | .*/\2/p' "$DT_SRCDIR/docs/reference/signals.md" >"$work/documented"
diff "$work/names" "$work/documented" >"$work/err" || fail "docs/reference/signals.md differs from plugins/signals"

# what ports hold: shown with an instance and without, and written next to an export and into it
"$dtrain" show env_sumo >"$work/err" 2>&1 || fail "show env_sumo left with $?"
[ "$(sed -n '/^columns of phases/,/^options/p' "$work/err" | grep -c '^  *[0-9]')" -eq 17 ] || fail "show env_sumo lacks columns"
# shellcheck disable=SC2046
"$dtrain" show env_traffic $(echo "$traffic" | sed 's/--set models[^ ]*//; s/--set env.id[^ ]*//') \
    --set "env_traffic.observation=$observation" >"$work/err" 2>&1 || fail "show env_traffic left with $?"
for line in "3-6 phase.near count 0 to inf vehicles within near_m" "1 min(waiting_s, 500)/500 -inf to inf a formula" "12 green_s s -1 to inf time"; do
    sed 's/  */ /g' "$work/err" | grep -qF " $line" || fail "show env_traffic does not say $line"
done
for format in safetensors onnx; do
    "$dtrain" export --checkpoint "$work/one" --format $format --out "$work/policy" >"$work/err" 2>&1 || fail "export left with $?"
    for text in '"name":"shown_s","unit":"s"' '"port":"signal","first":3,"n":4,"stride":1,"name":"phase.near"' \
        '"normalised_inside":false' '"choices":4' '"step_s":10' "\"env_traffic.observation\":\"$observation\""; do
        grep -qF "$text" "$work/policy.json" || fail "the description of $format lacks $text"
    done
    [ "$format" = safetensors ] || grep -qaF "$(cat "$work/policy.json")" "$work/policy" || fail "the ONNX file lacks its description"
done

if command -v netconvert >/dev/null && [ -e "$DT_BUILDDIR/plugins/env_sumo/.libs/env_sumo_shim.so" ]; then
    cp "$DT_SRCDIR"/tests/fixtures/sumo/pair.* "$work"
    (cd "$work" && netconvert -n pair.nod.xml -e pair.edg.xml -o pair.net.xml --no-turnarounds) >"$work/err" 2>&1 || fail "netconvert"
    seen="phase.near, phase.standing, phase.shown, phase.allowed" # what examples/traci_policy.py makes
    sumo="--set env.id=sumo --set env_sumo.sumocfg=$work/pair.sumocfg --set models.controller=controller_mlp
        --set phase2_ppo.normalise_obs=true"
    train sumo $sumo --set "env_sumo.reward=$reward" --set "env_sumo.observation=$seen" || fail "SUMO left with $?"
    train again $sumo --set "env_sumo.reward=$reward" --set "env_sumo.observation=$seen" --max-steps 1 ||
        fail "one step with SUMO left with $?"
    "$dtrain" run --resume "$work/again" -q >"$work/err" 2>&1 || fail "resuming with SUMO left with $?"
    hash=$(state_hash "$work/sumo")
    [ -n "$hash" ] && [ "$(state_hash "$work/again")" = "$hash" ] || fail "SUMO resumed: other bits"
    # a program with TraCI and the exported policy has the delay of dtrain eval
    library=$(cd "$DT_BUILDDIR" && pwd)/.libs/libdtrain-policy.so
    if python3 -c "import ctypes, sys; ctypes.CDLL(sys.argv[1]); sys.path.append('${SUMO_HOME:-/usr/share/sumo}/tools'); import traci" \
        "$library" 2>"$work/err"; then
        "$dtrain" export --checkpoint "$work/sumo" --out "$work/town.safetensors" >"$work/err" 2>&1 || fail "export left with $?"
        LIBDTRAIN_POLICY=$library python3 "$DT_SRCDIR/examples/traci_policy.py" "$work/pair.sumocfg" "$work/town.safetensors" 2 \
            >"$work/driven" 2>"$work/err" || fail "traci_policy.py left with $?"
        "$dtrain" eval --checkpoint "$work/sumo" --seeds 2 --episodes 1 --json >"$work/eval" 2>"$work/err" || fail "eval left with $?"
        want=$(sed -n 's/.*"time_loss_s":{"mean":\([0-9.e+-]*\).*/\1/p' "$work/eval")
        got=$(sed -n 's/.*"decisions": 60, .*"time_loss_s": \([0-9.e+-]*\)}.*/\1/p' "$work/driven")
        awk "BEGIN { exit !(\"$want\" != \"\" && \"$got\" != \"\" && $want - $got < 1e-9 && $got - $want < 1e-9) }" ||
            fail "driven through TraCI vehicles lose $got s, in dtrain eval $want s"
        sed -i 's/"name":"phase.shown"/"name":"phase.red_s"/' "$work/town.safetensors.json"
        LIBDTRAIN_POLICY=$library python3 "$DT_SRCDIR/examples/traci_policy.py" "$work/pair.sumocfg" "$work/town.safetensors" 2 \
            >"$work/driven" 2>"$work/err" && fail "traci_policy.py takes a policy whose observation it does not make"
        grep -q 'phase.red_s.*env_sumo.observation=' "$work/err" || fail "it does not say which observation"
    else
        echo "Python, TraCI or libdtrain-policy.so cannot be loaded: examples/traci_policy.py is skipped"
    fi
else
    echo "SUMO is not installed: its half is skipped"
fi
exit "$failed"
