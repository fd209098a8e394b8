#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Weights of a model with other options: fewer tensors than were trained are refused as more are, with the option that
# differs, by evaluations, first weights and resumes; what is refused leaves nothing behind. Phases that are shown less
# than the one that trained a role say so in the line about it, and warn of nothing.
set -u

dtrain=${DT_BUILDDIR:-.}/dtrain
work=$(mktemp -d ./test-mismatch-XXXXXX) || exit 1
trap 'rm -rf "$work"' EXIT INT TERM
failed=0
cases=0
one="--plugin phase1_world_model --set risk_gnn.hidden=8 --set risk_gnn.heads=1 --set world_lstm.hidden=8
    --set world_lstm.layers=1 --set data.batch=8 --set training.eval_interval=0 --set checkpoint.every_seconds=0
    --set report.enabled=false --threads 1 -q"

fail() {
    echo "FAIL: $*"
    tail -n 6 "$work/err" | sed 's/^/    /'
    failed=$((failed + 1))
}
# expect CODE TEXT COMMAND...
expect() {
    want=$1 text=$2
    shift 2
    cases=$((cases + 1))
    "$@" >"$work/out" 2>"$work/err"
    code=$?
    [ $code -eq "$want" ] || fail "exit code $code, expected $want: $*"
    [ -z "$text" ] || grep -qF -- "$text" "$work/err" || fail "nothing said about \"$text\": $*"
}
says() { # TEXT: in addition to what was expected
    grep -qF -- "$1" "$work/err" || fail "nothing said about \"$1\""
}

# shellcheck disable=SC2086
{
    expect 0 "" "$dtrain" $one --set risk_gnn.layers=2 --max-steps 2 --run-dir "$work/two"
    cksum "$work/two/config.cfg" "$work/two/metrics.jsonl" "$work"/two/checkpoints/*/* >"$work/before"

    # fewer and more layers than were trained
    for layers in 1 3; do
        expect 2 "(risk_gnn.layers is $layers" \
            "$dtrain" eval --checkpoint "$work/two" --set risk_gnn.layers=$layers
        says "set the options of the model as in training"
        expect 2 "(risk_gnn.layers is $layers" \
            "$dtrain" $one --set risk_gnn.layers=$layers --init-from "$work/two" --max-steps 2 --run-dir "$work/none"
        says "set the options of the model as in training"
        [ ! -e "$work/none" ] || fail "refused weights left a folder"
        expect 2 "(risk_gnn.layers is $layers" "$dtrain" $one --set risk_gnn.layers=$layers \
            --init-from "$work/two" --max-steps 2 --run-dir "$work/none" --dry-run
        expect 2 "(risk_gnn.layers is $layers" \
            "$dtrain" run --resume "$work/two" --set risk_gnn.layers=$layers --max-steps 4 -q
        says "set the options of the model as in training"
    done
    expect 2 "(risk_gnn.layers is 1" "$dtrain" $one --set risk_gnn.layers=1 --init-from "$work/two" \
        --set comm.backend=sim --set comm.ranks=2 --max-steps 2 --run-dir "$work/none"
    # a plan of what would be refused is refused, too, and of what would be trained is none the worse
    expect 2 "already contains a run" "$dtrain" $one --set risk_gnn.layers=2 --run-dir "$work/two" --dry-run
    expect 0 "" "$dtrain" $one --set risk_gnn.layers=2 --init-from "$work/two" --run-dir "$work/none" --dry-run
    expect 0 "" "$dtrain" $one --set risk_gnn.layers=2 --init-from "$work/two" --run-dir "$work/none" --dry-run \
        --set comm.backend=sim --set comm.ranks=2
    expect 0 "" "$dtrain" run --resume "$work/two" --max-steps 4 --dry-run -q
    [ ! -e "$work/none" ] || fail "a plan left a folder"
    expect 2 "7 tensors of perception" \
        "$dtrain" eval --checkpoint "$work/two" --set risk_gnn.layers=1
    # constants are reported as such, by a resume, too
    for how in "$one --set risk_gnn.layers=2 --init-from $work/two --run-dir $work/none" "run --resume $work/two -q"; do
        expect 2 "(risk_gnn.normalise is store" "$dtrain" $how --set risk_gnn.normalise=store --max-steps 4
        says "lacks perception."
        says "which risk_gnn has as it is configured here"
    done
    grep -q "tensors of another model" "$work/err" && fail "constants are told as a list of tensors"
    cksum "$work/two/config.cfg" "$work/two/metrics.jsonl" "$work"/two/checkpoints/*/* | cmp -s - "$work/before" || fail "a refused resume changed the run"

    # what makes no tensor more or less is nobody's concern
    expect 0 "" "$dtrain" eval --checkpoint "$work/two" --set risk_gnn.dropout=0
    grep -q "serves\{0,1\} nothing here" "$work/err" && fail "a warning of weights that all serve"

    # values of another number of costs: the policy acts alike, and their head starts from initial weights
    acts="--plugin phase2_ppo --set models.controller=controller_mlp --set env_constrained.problem=lqr
        --set phase2_ppo.train_batch=32 --set phase2_ppo.fragment=16 --set phase2_ppo.iterations=1 --set data.batch=32
        --set phase2_ppo.sgd_epochs=1 --set env.instances=2 --set training.eval_interval=0 --set report.enabled=false
        --set evaluation.baselines= --set checkpoint.every_seconds=0 --threads 1 -q"
    expect 0 "" "$dtrain" $acts --set env.id=env_lqr --run-dir "$work/free"
    expect 0 "" "$dtrain" eval --checkpoint "$work/free" --json
    cp "$work/out" "$work/wanted"
    expect 0 "(controller.head.cost_value.w, controller.head.cost_value.b)" \
        "$dtrain" eval --checkpoint "$work/free" --set env.id=env_constrained
    says "0 in the file and 1 in this environment"
    expect 0 "controller.head.cost_value.w" "$dtrain" export --checkpoint "$work/free" --set env.id=env_constrained \
        --out "$work/policy.safetensors"
    # updates too small to change a weight: what comes back acts as what went there
    expect 0 "controller.head.cost_value.w" "$dtrain" $acts --set env.id=env_constrained --init-from "$work/free" \
        --set training.learning_rate=1e-30 --set training.eta_min=0 --set training.weight_decay=0 --run-dir "$work/limited"
    expect 0 "controller.head.cost_value.b" "$dtrain" eval --checkpoint "$work/limited" --set env.id=env_lqr --json
    cmp -s "$work/out" "$work/wanted" || fail "a policy acts otherwise after it was in an environment with costs"
    # other options explain it: refused as before, and so is a policy that does not fit
    expect 2 "controller_mlp.critic_layers" "$dtrain" eval --checkpoint "$work/free" --set env.id=env_constrained \
        --set controller_mlp.critic_layers=1
    expect 2 "controller.policy" "$dtrain" eval --checkpoint "$work/free" --set env.id=env_pendulum

    # a file of its own does not say so, and is refused likewise
    free=$(echo "$work"/free/checkpoints/*/model.safetensors)
    expect 0 "0 in the file and 1 in this environment" \
        "$dtrain" $acts --set env.id=env_constrained --init-from "$free" --run-dir "$work/none" --dry-run
    for where in env_lqr env_constrained; do
        expect 2 "controller.critic.2.w" "$dtrain" $acts --set env.id=$where --init-from "$free" \
            --set controller_mlp.critic_layers=3 --run-dir "$work/none"
    done
    grep -q "number of costs" "$work/err" && fail "a critic of other layers is explained by costs"
    # nor is a critic of another width or depth that acting does not need
    learns="--plugin phase_ddpg --set models.controller=controller_mlp --set models.critic=critic_mlp --set env.id=env_lqr
        --set phase_ddpg.iterations=1 --set phase_ddpg.learning_starts=8 --set data.batch=8 --set env.instances=1
        --set training.eval_interval=0 --set report.enabled=false --set evaluation.baselines=
        --set checkpoint.every_seconds=0 --threads 1 -q"
    expect 0 "" "$dtrain" $learns --set critic_mlp.hidden=8 --run-dir "$work/pair"
    pair=$(echo "$work"/pair/checkpoints/*/model.safetensors)
    expect 0 "" "$dtrain" $learns --set critic_mlp.hidden=8 --init-from "$pair" --run-dir "$work/none" --dry-run
    for other in hidden=9 layers=4; do
        expect 2 "critic." "$dtrain" $learns --set critic_mlp.hidden=8 --set critic_mlp.$other --init-from "$pair" \
            --run-dir "$work/none" --dry-run
    done

    # a file of its own does not say what it was trained with
    for last in "$work"/two/checkpoints/*; do :; done
    cp "$last/model.safetensors" "$work/alone.safetensors"
    expect 0 "tensors of perception are unused here" "$dtrain" $one --set risk_gnn.layers=1 \
        --init-from "$work/alone.safetensors" --max-steps 2 --run-dir "$work/fewer"
    [ "$(grep -c "are unused here" "$work/err")" -eq 1 ] || fail "the warning comes more than once"
}

echo "$cases cases, $failed failed"
[ "$failed" -eq 0 ]
