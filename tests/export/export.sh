#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# dtrain export through the programs: what it writes drives an environment exactly as dtrain eval does with most likely
# actions - plain, with memory, with a graph, with a shield -; and bad input is refused.
set -u

. "${DT_SRCDIR:-.}/tests/check.inc"
drive=${DT_BUILDDIR:-.}/examples/drive_env_traffic
plugins=${DT_BUILDDIR:-.}/plugins/.libs

train() { # DIR OPTIONS
    dir=$1
    shift
    "$dtrain" -q --threads 1 --run-dir "$work/$dir" --set training.eval_interval=0 --set checkpoint.every_seconds=0 \
        "$@" >/dev/null 2>"$work/err" || fail "training $dir left with $?"
}

policy() { # DIR OPTIONS: a phase 2 of two short rounds
    dir=$1
    shift
    train "$dir" --plugin phase2_ppo --set env.instances=2 --set phase2_ppo.fragment=8 --set phase2_ppo.train_batch=16 \
        --set data.batch=16 --set phase2_ppo.iterations=2 --set phase2_ppo.normalise_obs=true "$@"
}

number() { # KEY: of the JSON on standard input, its mean
    sed -n "s/.*\"$1\":{\"mean\":\([-0-9.e]*\),.*/\1/p"
}

# the same episode by both: return and another number to the last digit
same() { # DIR PLUGIN [METRIC]
    cases=$((cases + 1))
    "$dtrain" export --checkpoint "$work/$1" --out "$work/$1.safetensors" -q >"$work/out" 2>"$work/err" ||
        fail "exporting $1 left with $?"
    "$drive" "$plugins/$2.so" "$work/$1.safetensors" 5 >"$work/drive" 2>"$work/err" || fail "driving $1 left with $?"
    "$dtrain" eval --checkpoint "$work/$1" --seeds 5 --episodes 1 --json -q >"$work/eval" 2>"$work/err" ||
        fail "evaluating $1 left with $?"
    for key in return ${3:-}; do
        a=$(awk -v key="$key" '$1 == key { printf "%.12g", $2 }' "$work/drive")
        b=$(number "$key" <"$work/eval" | awk '{ printf "%.12g", $1 }')
        [ -n "$a" ] && [ "$a" = "$b" ] || fail "$1: $key is $a in the example, $b in dtrain eval"
    done
}

refused() { # CODE PIECE ARGUMENTS
    code=$1 piece=$2
    shift 2
    cases=$((cases + 1))
    "$dtrain" export "$@" >"$work/out" 2>"$work/err"
    got=$?
    [ "$got" -eq "$code" ] || fail "export $*: left with $got, expected $code"
    grep -qF -- "$piece" "$work/err" || fail "export $*: nothing of '$piece' was said"
}

if [ "${DT_PREOPEN:-no}" = yes ]; then
    echo "the plugins are linked in: there is no file to drive"
    exit 77
fi

traffic="--set env.id=env_traffic --set env_traffic.episode_s=60 --set models.shield=shield_barrier
    --set models.controller=controller_influence --set controller_influence.hidden=16"
merge="--set env_traffic.scenario=merge --set env_traffic.agents=6 --set env_traffic.penetration=0.5
    --set env_traffic.lane_actions=true"
policy mlp --set env.id=cartpole
same mlp env_cartpole
# weights alone go on from the file: the statistics that they were trained on do not, which is reported
said() { # TEXT
    cases=$((cases + 1))
    grep -q -e "$1" "$work/err" || fail "nothing was said of: $1"
}
policy weights --set env.id=cartpole --init-from "$work/mlp.safetensors"
said "statistics of observations in .*mlp.safetensors (normaliser.obs.mean) are left out, .* and they start empty; to keep"
policy plain --set env.id=cartpole --init-from "$work/mlp.safetensors" --set phase2_ppo.normalise_obs=false
said "statistics of observations in .*mlp.safetensors .* are left out, .* and this phase normalises none"
# a bit that flips in such a file is noticed
cp "$work/mlp.safetensors" "$work/flipped.safetensors"
flip=$(($(wc -c <"$work/mlp.safetensors") - 3))
byte=$(od -An -tu1 -j "$flip" -N 1 "$work/mlp.safetensors" | tr -d ' ')
# shellcheck disable=SC2059
printf "\\$(printf %o $((byte ^ 64)))" | dd of="$work/flipped.safetensors" bs=1 seek="$flip" conv=notrunc 2>/dev/null
"$dtrain" --plugin phase2_ppo --set env.id=cartpole --init-from "$work/flipped.safetensors" --max-steps 1 -q \
    --run-dir "$work/flipped" >/dev/null 2>"$work/err"
[ $? -eq 4 ] || fail "a damaged file of weights is taken: $(cat "$work/err")"
policy unlike --set env.id=cartpole --init-from "$work/mlp" --set phase2_ppo.normalise_obs=false
said "the checkpoint's statistics of observation obs are of normalised ones, which this phase does not see, and are left out"
policy like --set env.id=cartpole --init-from "$work/mlp"
cases=$((cases + 1))
! grep -q "statistics" "$work/err" || fail "a checkpoint's statistics are not taken over"
# so is what is evaluated otherwise than it was trained
judge() { # OPTIONS
    "$dtrain" eval --checkpoint "$work/mlp" --seeds 5 --episodes 1 -q "$@" >"$work/out" 2>"$work/err" ||
        fail "evaluating with $* left with $?"
}
judge --set phase2_ppo.clip_obs=0.5
said "evaluated with phase2_ppo.clip_obs = 0.5 from --set, but trained with 10"
judge --set phase2_ppo.clip_obs=10
cases=$((cases + 1))
! grep -q "evaluated with" "$work/err" || fail "the same value is told as another one"
policy lstm --set env.id=tmaze --set models.controller=controller_lstm --set phase2_ppo.window=4
same lstm env_tmaze
# shellcheck disable=SC2086
policy signals $traffic --set env_traffic.scenario=grid --set env_traffic.control=signals
same signals env_traffic strict_delay_s
# shellcheck disable=SC2086
policy vehicles $traffic $merge --set models.perception=risk_gnn --set risk_gnn.hidden=16 --set risk_gnn.heads=2 \
    --set risk_gnn.layers=1
same vehicles env_traffic strict_delay_s
# shellcheck disable=SC2086
policy foresight $traffic $merge --set models.perception=risk_gnn --set risk_gnn.hidden=16 --set risk_gnn.heads=2 \
    --set risk_gnn.layers=1 --set models.world=world_lstm --set world_lstm.hidden=16 --set phase2_ppo.foresight=true
same foresight env_traffic strict_delay_s
# features normalised by a store, in a phase 1 before it: constants that no layer folds into
gnn="--set risk_gnn.hidden=16 --set risk_gnn.heads=2 --set risk_gnn.layers=1 --set risk_gnn.normalise=store"
# shellcheck disable=SC2086
train taught --plugin phase1_world_model --max-steps 2 --set data.batch=8 --set world_lstm.hidden=16 $gnn
# shellcheck disable=SC2086
policy normalised $traffic $merge --set models.perception=risk_gnn $gnn --init-from "$work/taught"
same normalised env_traffic strict_delay_s
cases=$((cases + 1))
grep -qa '"perception.constant.node_scale"' "$work/normalised.safetensors" || fail "normalised: no constants in the file"
"$dtrain" export --checkpoint "$work/taught" --format onnx --out "$work/taught.onnx" -q 2>"$work/err" ||
    fail "exporting a normalised perception as onnx left with $?"
# shellcheck disable=SC2086
policy memory $traffic $merge --set models.controller=controller_lstm --set phase2_ppo.window=3
same memory env_traffic strict_delay_s

# both formats of everything, phase 1 too; the phase that is asked for
cases=$((cases + 1))
printf 'phases=({plugin="phase1_world_model";stop={steps=2;};},{plugin="phase2_ppo";stop={iterations=1;};});
    risk_gnn={hidden=16;heads=2;layers=1;}; world_lstm={hidden=16;}; data={batch=16;};
    env={id="env_cartpole";instances=2;}; phase2_ppo={train_batch=16;fragment=8;};\n' >"$work/both.cfg"
train both --config "$work/both.cfg"
"$dtrain" export --checkpoint "$work/both" --json -q --out "$work/two.safetensors" >"$work/out" 2>"$work/err" &&
    grep -q '"phase":"phase2_ppo".*"inputs":\["obs"\],"outputs":\["value","logits"\]' "$work/out" ||
    fail "the newest phase's checkpoint is not what is exported: $(cat "$work/out")"
for format in safetensors onnx; do
    "$dtrain" export --checkpoint "$work/both" --phase 1 --json -q --format $format --out "$work/one" >"$work/out" \
        2>"$work/err" && grep -q '"phase":"phase1_world_model".*"outputs":\["risk","future","spread"\]' "$work/out" ||
        fail "phase 1 as $format: $(cat "$work/out")"
done
# several futures: nodes that lend others a shape alone are in the file too
train futures --plugin phase1_world_model --max-steps 1 --set data.batch=4 --set risk_gnn.hidden=8 \
    --set risk_gnn.heads=1 --set risk_gnn.layers=1 --set models.world=world_gru --set world_gru.hidden=8 \
    --set world_gru.futures=3 --set world_gru.kinematic=true
for format in safetensors onnx; do
    cases=$((cases + 1))
    "$dtrain" export --checkpoint "$work/futures" --json -q --format $format --out "$work/several" >"$work/out" \
        2>"$work/err" &&
        grep -q '"outputs":\["risk","future","spread","futures","spreads","probability"\]' "$work/out" ||
        fail "several futures as $format: $(cat "$work/out")"
done
"$drive" "$plugins/env_cartpole.so" "$work/one" >"$work/out" 2>"$work/err" && fail "a model without actions drives"
"$drive" "$(printf 'no\nplugin\033[2J.so')" "$work/mlp.safetensors" 2>"$work/err" && fail "no plugin drives"
[ "$(wc -l <"$work/err")" -eq 1 ] && grep -q 'no?plugin?\[2J.so' "$work/err" || fail "a name drives the terminal"

refused 2 "--checkpoint"
refused 2 "pickle" --checkpoint "$work/mlp" --format pickle
refused 2 "$work" --checkpoint "$work" --plugin phase2_ppo --set env.id=cartpole
refused 2 "nowhere" --checkpoint "$work/mlp" --out "$work/nowhere/policy.safetensors"
refused 2 "nowhere" --checkpoint "$work/nowhere" --plugin phase2_ppo --set env.id=cartpole

finish "$cases cases"
