#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Options of an environment that hold in evaluations alone (evaluation.env), and those that training keeps for itself:
# in training and in dtrain eval, in threads and processes, on any ranks, and after a resume.
set -u

dtrain=${DT_BUILDDIR:-.}/dtrain
command -v python3 >/dev/null 2>&1 || { echo "no python3"; exit 77; }
work=$(mktemp -d ./test-evaluated-XXXXXX) || exit 1
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
controller_mlp = { hidden = 16; };
data = { batch = 16; };
checkpoint = { every_seconds = 0; };
engine = { threads = 1; device = "cpu"; };
metrics = { tensorboard = false; };
report = { enabled = false; };
env = { id = "helped"; instances = 4; isolation = "thread"; };
helped = { help = 2.0; };
evaluation = { seeds = "1,2,3"; episodes = 2; baselines = ""; };
training = { eval_interval = 1; };
phase2_ppo = { train_batch = 40; fragment = 8; sgd_epochs = 3; };
phases = ( { plugin = "phase2_ppo"; stop = { iterations = 3; }; } );
END

# train NAME [options]
train() {
    name=$1
    shift
    "$dtrain" --config "$work/base.cfg" --run-dir "$work/$name" -q "$@" >"$work/out" 2>&1 || fail "$name: $(cat "$work/out")"
}
# evaluate NAME [options]: dtrain eval into NAME.json
evaluate() {
    name=$1
    shift
    "$dtrain" eval --checkpoint "$work/$name" --json -q "$@" >"$work/$name.json" 2>"$work/err" || fail "$name: $(cat "$work/err")"
}
# holds TEXT: python, with j(NAME) as what dtrain eval said and m(NAME, KEY) as the last record of a run
holds() {
    python3 - "$work" "$1" <<'END' || fail "$1"
import json, sys
work = sys.argv[1]
j = lambda name: json.load(open("%s/%s.json" % (work, name)))
def m(name, key):
    v = [r["scalars"][key] if "scalars" in r else r[key] for r in map(json.loads, open("%s/%s/metrics.jsonl" % (work, name)))
         if key in r.get("scalars", r)]
    return v[-1]
def strip(o):
    return {k: v for k, v in o.items() if k != "env_options"}
if not eval(sys.argv[2]):
    sys.exit("does not hold")
END
}

# --- what helps training is not there in evaluations, in both places, and both say so ---
train plain
evaluate plain
holds 'j("plain")["return"]["values"] == [8, 8, 8] and m("plain", "eval/return/mean") == 8'
holds 'm("plain", "charts/episodic_return") == 24' # training has it
holds 'j("plain")["env_options"] == {"help": {"value": 0, "training": 2}}'
grep -q "in helped with help = 0.0 (training: 2.0)" "$work/plain/train.log" || fail "training does not say what it evaluates with"
"$dtrain" eval --checkpoint "$work/plain" -q >"$work/out" 2>&1
grep -q "in helped with help = 0.0 (training: 2.0)" "$work/out" || fail "eval does not say what it evaluates with"

# --- what a run may ask of its evaluation has bounds, and the user may ask for more ---
cp -r "$work/plain" "$work/greedy"
sed -i 's/episodes = 2/episodes = 999999/' "$work/greedy/config.cfg"
grep -q 'episodes = 999999' "$work/greedy/config.cfg" || fail "config.cfg does not say episodes"
"$dtrain" eval --checkpoint "$work/greedy" --seeds 1 -q >"$work/out" 2>&1 || fail "greedy: $(cat "$work/out")"
grep -q "evaluation.episodes" "$work/out" || fail "no bound of episodes: $(cat "$work/out")"
"$dtrain" eval --checkpoint "$work/greedy" --seeds 1 -q --set evaluation.episodes=1001 >"$work/out" 2>&1 || fail "greedy: $?"
grep -q "is accepted" "$work/out" && fail "what the user asks for is bounded"

# --- evaluation.env: of any option, max_steps of the spec included ---
train said --set 'evaluation.env=help=1, scale=3,steps=20'
evaluate said
holds 'j("said")["return"]["values"] == [80, 80, 80] and m("said", "eval/return/mean") == 80 and m("said", "eval/length/mean") == 20'
holds 'm("said", "charts/episodic_return") == 24'
evaluate said --set 'evaluation.env=["help=2"]'
holds 'j("said")["return"]["mean"] == 24 and j("said")["env_options"] == {"help": {"value": 2, "training": 2}}'
# training does not feel it
tensors() { # of 3 iterations with 3 passes of 4 steps
    cksum <"$work/$1/checkpoints/step-000000000036/model.safetensors" || fail "$1 has no step 36"
}
[ "$(tensors plain)" = "$(tensors said)" ] || fail "evaluation.env changed what was learnt"

# --- processes, ranks and a resume: the same bits ---
for how in "env.isolation=process" "comm.backend=sim --set comm.ranks=2" "env.workers=2"; do
    # shellcheck disable=SC2086 # words
    train other --set 'evaluation.env=help=1, scale=3,steps=20' --set $how
    [ "$(tensors said)" = "$(tensors other)" ] || fail "$how: other weights"
    evaluate other
    evaluate said
    holds 'j("said") == j("other") and m("other", "eval/return/mean") == 80'
    rm -rf "$work/other"
done
train halves --set 'evaluation.env=help=1, scale=3,steps=20' --max-steps 3
"$dtrain" run --resume "$work/halves" -q >"$work/out" 2>&1 || fail "resume: $(cat "$work/out")"
[ "$(tensors said)" = "$(tensors halves)" ] || fail "a resume ends in other weights"
holds 'm("halves", "eval/return/mean") == 80'

# --- an environment of its own accord: the same as with the options in its own section ---
cat >"$work/traffic.cfg" <<'END'
env = { id = "env_traffic"; };
env_traffic = { episode_s = 60.0; action_s = 5.0; };
END
train traffic --config "$work/traffic.cfg" --set models.controller=controller_influence --set 'evaluation.env=episode_s=120, limit_mps=10'
evaluate traffic
cp "$work/traffic.json" "$work/apart.json"
holds 'm("traffic", "eval/metrics/strict_delay_s/mean") == j("apart")["metrics"]["strict_delay_s"]["mean"]'
evaluate traffic --set evaluation.env= --set env_traffic.episode_s=120 --set env_traffic.limit_mps=10
holds 'strip(j("traffic")) == strip(j("apart")) and "env_options" not in j("traffic") and "env_options" in j("apart")'

# --- what is wrong is said before training ---
# refused CODE TEXT VALUE
refused() {
    "$dtrain" --config "$work/base.cfg" --config "$work/traffic.cfg" --run-dir "$work/no" -q --set "evaluation.env=$3" >"$work/out" 2>&1
    code=$?
    [ $code -eq "$1" ] && grep -qF -- "$2" "$work/out" || fail "evaluation.env=$3: code $code: $(cut -c1-300 "$work/out")"
    [ ! -d "$work/no/checkpoints/step-000000000001" ] || fail "evaluation.env=$3 is found after the first step"
    rm -rf "$work/no"
}
refused 2 'evaluation.env.episode = "3" from --set: unknown key; did you mean "episode_s"?' episode=3
refused 2 'evaluation.env.episode_s = "-4" from --set: expected a number in [1, 1000000]' episode_s=-4
refused 2 '"foo" is not option=value' foo
refused 2 "it sets episode_s twice" "episode_s=9,episode_s=9"
refused 2 "evaluation.env must leave what a policy sees and does as it is: symbol 0" max_vehicles=7

[ $failed -eq 0 ]
