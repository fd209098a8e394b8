#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# One configuration, several phases: what a phase begins with, when it ends, and that a run killed in or between phases
# ends in the bits of one that nobody disturbed. Tiny models; a whole run takes a fraction of a second.
set -u

dtrain=${DT_BUILDDIR:-.}/dtrain
work=$(mktemp -d ./test-phases-XXXXXX) || exit 1
trap 'rm -rf "$work"' EXIT INT TERM
failed=0
cases=0

cat >"$work/tiny.cfg" <<'END'
risk_gnn = { hidden = 16; heads = 2; layers = 1; };
world_lstm = { hidden = 16; layers = 1; };
controller_mlp = { hidden = 16; };
data = { batch = 16; };
training = { eval_interval = 0; save_interval = 0; warmup_epochs = 0; };
checkpoint = { every_seconds = 0; };
engine = { threads = 1; };
metrics = { tensorboard = false; };
report = { enabled = false; };
env = { instances = 2; };
env_traffic = { episode_s = 60.0; action_s = 5.0; };
phase2_ppo = { train_batch = 32; fragment = 8; sgd_epochs = 1; };
phase3_constrained = { train_batch = 32; fragment = 8; sgd_epochs = 1; limits = "starvation:1000"; };
END
one='plugin = "phase1_world_model"; stop = { steps = 4; };'
two='plugin = "phase2_ppo"; stop = { iterations = 3; };'
three='plugin = "phase3_constrained"; models = { perception = "risk_gnn"; }; fresh = [ "controller" ]; stop = { iterations = 3; };'

fail() {
    echo "FAIL: $*"
    tail -n 8 "$work/err" | sed 's/^/    /'
    failed=$((failed + 1))
}

# train CODE DIR PHASES [options]: a fresh run of these phases
train() {
    want=$1 dir=$2 phases=$3
    shift 3
    { cat "$work/tiny.cfg"; echo "phases = ( $phases );"; } >"$work/$dir.cfg"
    "$dtrain" --config "$work/$dir.cfg" --run-dir "$work/$dir" -q "$@" >"$work/out" 2>"$work/err"
    code=$?
    cases=$((cases + 1))
    [ $code -eq "$want" ] || fail "$dir: exit code $code, expected $want"
}

# says TEXT...: each stands in what the last run said or logged
says() {
    for text in "$@"; do
        cases=$((cases + 1))
        grep -qsF -- "$text" "$work/err" "$work/$dir/train.log" || fail "nothing said about \"$text\""
    done
}

state_hash() {
    "$dtrain" ckpt inspect "$1" --json 2>/dev/null | sed -n 's/.*"state_hash":"\([0-9a-f]*\)".*/\1/p'
}

# --- each role comes from the newest earlier phase that has it ---
train 0 three "{ $one }, { $two }, { $three }"
first=checkpoints/step-000000000004
says "perception 15 tensors from $work/three/$first, end of phase1_world_model" \
    "controller begins with its first weights: what the phase begins with holds none of it" \
    "frozen: perception" "controller begins with its first weights: the phase wants it fresh"
train 0 again "{ $one }, { $two }, { plugin = \"phase1_world_model\"; init = \"previous\"; stop = { steps = 2; }; }"
says "world      7 tensors from $work/again/$first"
train 0 by_file "{ plugin = \"phase1_world_model\"; init = \"$work/three/$first/model.safetensors\"; stop = { steps = 1; }; }"
says "perception 15 tensors from $work/three/$first/model.safetensors"
train 0 by_run "{ plugin = \"phase1_world_model\"; init = \"$work/three\"; stop = { steps = 1; }; }"
says "world      7 tensors from $work/three/$first, end of phase1_world_model"
train 2 wider "{ $one }, { plugin = \"phase1_world_model\"; risk_gnn = { hidden = 8; }; stop = { steps = 1; }; }"
says "perception of this phase is risk_gnn (" ".so)" "/wider/$first/model.safetensors: tensors of another model" \
    "[16] in the file, the model has [8]"
train 2 mixed "{ $one }, { plugin = \"phase1_world_model\"; models = { world = \"world_gru\"; }; stop = { steps = 1; }; }"
says "world of this phase is world_gru" "is not in the file"
train 2 nobody "{ $one }, { $two init = \"previous\"; }"
says "holds none of this phase's"
train 2 odd "{ $one fresh = [ \"eyes\" ]; init = \"$work/three\"; }"
says 'fresh of the phase holds "eyes"'
train 2 freeze "{ $one freeze = [ \"perzeption\" ]; }"
says 'freeze of the phase holds "perzeption", which is neither a role (perception, world, controller, shield)'

echo "$cases cases, $failed failed"
[ "$failed" -eq 0 ] && [ "$cases" -gt 20 ]
