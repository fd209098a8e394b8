#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# What never has a value: nothing is learnt from rounds and minibatches without a sample, a phase without any fails, and
# so does a run whose limit, stop.metric or best_by was never evaluated. Unknown numbers are null, and not 0.
set -u

dtrain=${DT_BUILDDIR:-.}/dtrain
work=$(mktemp -d ./test-unjudged-XXXXXX) || exit 1
trap 'rm -rf "$work"' EXIT INT TERM
failed=0
DTRAIN_PLUGIN_PATH=$(cd "${DT_BUILDDIR:-.}/tests/run/.libs" && pwd)
export DTRAIN_PLUGIN_PATH

fail() {
    echo "FAIL: $*"
    failed=$((failed + 1))
}

cat >"$work/base.cfg" <<'END'
models = { controller = "controller_mlp"; };
controller_mlp = { hidden = 8; };
critic_others = { state = false; };
data = { batch = 8; };
checkpoint = { every_seconds = 0; best_by = ""; };
engine = { threads = 1; device = "cpu"; };
metrics = { tensorboard = false; };
report = { enabled = false; };
env = { id = "sparse"; instances = 2; isolation = "thread"; };
evaluation = { seeds = "1,2"; episodes = 1; baselines = ""; };
training = { eval_interval = 1; };
phase2_ppo = { iterations = 3; train_batch = 32; fragment = 16; sgd_epochs = 2; };
phase3_constrained = { iterations = 3; train_batch = 32; fragment = 16; sgd_epochs = 2; limits = "worn:1000"; };
phase_coma = { updates = 3; batch = 16; batch_number = 2; data_passes = 1; };
phase_sac = { iterations = 2; collect_steps = 2000; learning_starts = 100; };
phase_ddpg = { iterations = 2; collect_steps = 2000; learning_starts = 100; };
END

# train CODE NAME PHASE [options]
train() {
    code=$1 name=$2 phase=$3
    shift 3
    "$dtrain" --config "$work/base.cfg" --plugin "$phase" --run-dir "$work/$name" -q "$@" >"$work/out" 2>&1
    got=$?
    [ "$got" -eq "$code" ] || fail "$name: $got, expected $code: $(cat "$work/out")"
}
# says TEXT: the last run did
says() { grep -qF "$1" "$work/out" || fail "expected '$1': $(cat "$work/out")"; }
# last NAME KEY: of its records the last one's; empty: it has none
last() { tail -n 1 "$work/$1/metrics.jsonl" | sed -n "s|.*\"$2\":\([^,}]*\).*|\1|p"; }
# weights NAME
weights() { "$dtrain" ckpt inspect "$work/$1" --json | sed -n 's/.*"weights_hash": *"\([^"]*\)".*/\1/p'; }

# no agent ever: no step is made, in no phase
for phase in phase2_ppo phase3_constrained phase_coma; do
    train 2 "none_$phase" "$phase"
    says "has learned nothing"
    [ "$(last "none_$phase" charts/rounds_without_samples)" = 3 ] || fail "$phase: rounds are not counted"
    [ "$(last "none_$phase" losses/explained_variance)" = null ] || fail "$phase: explained variance is known"
    grep -q '"losses/policy_loss"' "$work/none_$phase/metrics.jsonl" && fail "$phase: a loss of no sample"
done
train 2 none_cpo phase3_constrained --set phase3_constrained.algorithm=cpo
train 2 none_ahead phase2_ppo --set phase2_ppo.overlap=1
train 2 none_sac phase_sac --set sparse.continuous=true
train 2 none_ddpg phase_ddpg --set sparse.continuous=true
"$dtrain" run --resume "$work/none_phase2_ppo" -q >"$work/out" 2>&1
[ $? -eq 2 ] || fail "a resume of a phase that has learnt nothing: $(cat "$work/out")"
[ "$(last none_phase2_ppo eval/shield/interventions)" = null ] || fail "a share of no rows is known"

# in some rounds and minibatches: what has no sample moves nothing, and is counted
train 0 some phase2_ppo --set sparse.alive_every=6 --set phase2_ppo.iterations=6 --set data.batch=2
[ "$(last some charts/rounds_without_samples)" -ge 1 ] || fail "no round without samples"
grep -q '"train/empty_steps":[1-9]' "$work/some/metrics.jsonl" || fail "no minibatch without samples"
grep -q '"losses/policy_loss":null' "$work/some/metrics.jsonl" && fail "a loss of no sample"

# rounds without any sample leave the weights alone
train 0 first phase2_ppo --set sparse.alive_every=1 --max-steps 8
train 2 alone phase2_ppo --init-from "$work/first"
[ "$(weights first)" = "$(weights alone)" ] || fail "rounds without samples moved the weights"

# what an agent did in an environment with other agents is not played again
"$dtrain" run --resume "$work/first" --set sparse.alive_every=0 -q >"$work/out" 2>&1
[ $? -eq 4 ] || fail "resume: $(cat "$work/out")"
says "it has an action of an agent that does not act"

# no episode ends in training: the limit is not evaluated, and the run fails; a resume does, too
train 2 open phase3_constrained --set sparse.alive_every=1 --set sparse.steps=1000 --set phase3_constrained.limits=worn:10
says "the limit 10 of cost worn was never evaluated"
[ -z "$(last open multipliers/worn)" ] || fail "a multiplier without an episode is $(last open multipliers/worn)"
[ "$(last open limits_fail_unevaluated/worn)" = 3 ] || fail "rounds without an episode are not counted"
[ "$(last open eval/limits/worn)" = 10 ] || fail "an evaluation does not say what the limit is"
"$dtrain" run --resume "$work/open" -q >"$work/out" 2>&1
[ $? -eq 2 ] || fail "a resume of a phase whose limit was never evaluated: $(cat "$work/out")"
for algorithm in cpo pid_lagrangian penalty; do
    train 2 "open_$algorithm" phase3_constrained --set sparse.alive_every=1 --set sparse.steps=1000 \
        --set "phase3_constrained.algorithm=$algorithm"
    [ -z "$(last "open_$algorithm" multipliers/worn)" ] || fail "$algorithm: a multiplier without an episode"
done
# ... which the plan says
"$dtrain" --config "$work/base.cfg" --plugin phase3_constrained --set sparse.steps=1000 --dry-run >"$work/out" 2>&1 ||
    fail "plan: $(cat "$work/out")"
says "an episode has up to 1000 steps, and the whole phase 48 of each instance"
"$dtrain" --config "$work/base.cfg" --plugin phase3_constrained --set sparse.steps=20 --dry-run --json >"$work/out" 2>&1
says '"episode":{"steps":20,"round":16,"phase":48}'
"$dtrain" --config "$work/base.cfg" --plugin phase3_constrained --dry-run --json >"$work/out" 2>&1
grep -qF '"episode":{' "$work/out" && fail "episodes of 8 steps end in rounds of 16"

# where a rule of section stop ends the phase, it is the same; --max-steps leaves it to what follows
train 2 stopped phase3_constrained --set sparse.alive_every=1 --set sparse.steps=1000 --set phases.0.stop.iterations=2
train 0 part phase3_constrained --set sparse.alive_every=1 --set sparse.steps=1000 --max-steps 4

# an evaluation above the limit is said; below it there is nothing to say
train 0 above phase3_constrained --set sparse.alive_every=1 --set phase3_constrained.limits=worn:10
says "cost worn is 16 in the evaluation, above its limit 10"
[ -n "$(last above multipliers/worn)" ] || fail "no multiplier"
"$dtrain" eval --checkpoint "$work/above" -q >"$work/out" 2>&1 || fail "eval: $(cat "$work/out")"
says "cost worn is 16 in the evaluation, above its limit 10"
train 0 below phase3_constrained --set sparse.alive_every=1
grep -q "above its limit" "$work/out" && fail "a cost below its limit is warned of"

# what is never a number decides nothing
train 2 target phase2_ppo --set sparse.alive_every=1 --set phases.0.stop.metric=metrics/unknown/mean \
    --set phases.0.stop.above=1
says 'stop.metric = "metrics/unknown/mean" was not a number in any of 3 evaluations'
train 2 best phase2_ppo --set sparse.alive_every=1 --set checkpoint.best_by=metrics/unknown/mean
says 'checkpoint.best_by = "metrics/unknown/mean" was not a number in any of 3 evaluations'
train 2 unevaluated phase2_ppo --set sparse.alive_every=1 --set checkpoint.best_by=return/mean --set training.eval_interval=0
says "no phase is evaluated"
cat >"$work/two.cfg" <<'END'
phases = ( { plugin = "phase2_ppo"; }, { plugin = "phase2_ppo"; } );
END
"$dtrain" --config "$work/base.cfg" --config "$work/two.cfg" --set sparse.alive_every=1 --set checkpoint.best_by=nothing \
    --run-dir "$work/two" -q >"$work/out" 2>&1
[ $? -eq 2 ] || fail "no phase reports best_by: $(cat "$work/out")"

[ "$failed" -eq 0 ] && echo "what is unknown stays unknown"
[ "$failed" -eq 0 ]
