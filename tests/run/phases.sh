#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# One configuration, several phases: what a phase begins with, when it ends, and that a run killed in or between phases
# ends in the bits of one that nobody disturbed. Tiny models; a whole run takes a fraction of a second.
set -u

dtrain=${DT_BUILDDIR:-.}/dtrain
unset DTRAIN__ENGINE__DEVICE || true # phases choose
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
engine = { threads = 1; device = "cpu"; };
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
    "controller starts from its initial weights: the initial weights of the phase contain none of it" \
    "frozen: perception" "controller starts from its initial weights: the phase requests fresh weights"
# what is evaluated is the phase of the checkpoint, of a run its last one
# shown CHECKPOINT WORD: the evaluation without --phase reports it
shown() {
    cases=$((cases + 1))
    "$dtrain" eval --checkpoint "$1" -q --set evaluation.seeds=1 --set evaluation.episodes=1 >"$work/out" 2>"$work/err" &&
        grep -q "$2" "$work/out" || fail "evaluation of $1 without --phase shows no $2"
}
shown "$work/three" starvation
shown "$work/three/$first" rmse_m
cases=$((cases + 1))
"$dtrain" eval --config "$work/three.cfg" -q >"$work/out" 2>"$work/err"
[ $? -eq 2 ] && grep -q "3 phases" "$work/err" || fail "eval of three phases without a checkpoint"

train 0 again "{ $one }, { $two }, { plugin = \"phase1_world_model\"; init = \"previous\"; stop = { steps = 2; }; }"
says "world      7 tensors from $work/again/$first"
train 0 by_file "{ plugin = \"phase1_world_model\"; init = \"$work/three/$first/model.safetensors\"; stop = { steps = 1; }; }"
says "perception 15 tensors from $work/three/$first/model.safetensors"
train 0 by_run "{ plugin = \"phase1_world_model\"; init = \"$work/three\"; stop = { steps = 1; }; }"
says "world      7 tensors from $work/three/$first, end of phase1_world_model"
train 2 wider "{ $one }, { plugin = \"phase1_world_model\"; risk_gnn = { hidden = 8; }; stop = { steps = 1; }; }"
says "phase 2, " "is [8, 39] in phase 2 (phase1_world_model) and [16, 39] in phase 1" \
    "(risk_gnn.hidden is 8 here and was 16)"
train 2 wider_run "{ plugin = \"phase1_world_model\"; init = \"$work/three/$first\"; risk_gnn = { hidden = 8; }; stop = { steps = 1; }; }"
says "perception of this phase is risk_gnn (" ".so)" "/three/$first/model.safetensors: tensors of another model" \
    "[16] in the file, the model has [8]"
train 2 mixed "{ $one }, { plugin = \"phase1_world_model\"; models = { world = \"world_gru\"; }; stop = { steps = 1; }; }"
says "missing in phase 1" "(models.world is world_gru here and was world_lstm"
train 2 mixed_run "{ plugin = \"phase1_world_model\"; init = \"$work/three/$first\"; models = { world = \"world_gru\"; }; stop = { steps = 1; }; }"
says "world of this phase is world_gru" "is not in the file"
train 2 nobody "{ $one }, { $two init = \"previous\"; }"
says "contains none of this phase's"
train 2 odd "{ $one fresh = [ \"eyes\" ]; init = \"$work/three\"; }"
says phases.0.fresh '"eyes" is not a role'
train 2 freeze "{ $one freeze = [ \"perzeption\" ]; }"
says '"perzeption"' '(perception, world, controller, shield, critic, temperature)'

# --- killed in the middle of each phase and between phases, resumed: the bits of a run that nobody disturbed ---
all="{ $one }, { $two }, { $three }"
often="--set checkpoint.every_steps=1"
train 0 whole "$all"
whole=$(state_hash "$work/whole")
[ "$(state_hash "$work/three")" = "$whole" ] || fail "the same run twice: other bits"

# finish DIR WHAT: go on until the end, and compare
finish() {
    cases=$((cases + 1))
    if [ -n "$(state_hash "$work/$1")" ]; then
        "$dtrain" run --resume "$work/$1" -q >"$work/out" 2>"$work/err" || fail "$2: resuming left with $?"
    else
        rm -rf "${work:?}/$1"
        train 0 "$1" "$all"
    fi
    [ "$(state_hash "$work/$1")" = "$whole" ] || fail "$2: other bits"
    [ "$("$dtrain" ckpt list "$work/$1" | grep -c "end$")" -eq 3 ] || fail "$2: not the ends of three phases"
    records=$(cut -d, -f1,2 "$work/$1/metrics.jsonl" | tr '\n' ' ')
    [ "$records" = "$(cut -d, -f1,2 "$work/whole/metrics.jsonl" | tr '\n' ' ')" ] || fail "$2: other records: $records"
    rm -rf "${work:?}/$1"
}
for point in run.begin:1 run.iterate:1 run.iterate:3 run.end:1 run.begin:2 run.iterate:5 run.iterate:7 run.end:2 \
    run.begin:3 run.iterate:8 run.iterate:9 run.end:3; do
    # shellcheck disable=SC2086
    DTRAIN_FAULT="$point!" train 137 killed "$all" $often
    finish killed "killed at $point"
done
DTRAIN_FAULT="run.iterate:6!" train 137 seldom "$all"
finish seldom "killed at run.iterate:6, without checkpoints inside phases"
for delay in 0.05 0.12 0.2; do
    { cat "$work/tiny.cfg"; echo "phases = ( $all );"; } >"$work/term.cfg"
    "$dtrain" --config "$work/term.cfg" --run-dir "$work/term" -q >"$work/out" 2>"$work/err" &
    pid=$!
    sleep $delay
    kill -TERM $pid 2>/dev/null
    wait $pid
    finish term "told to stop after $delay s"
done

# --- --phase: some of the phases, and what --resume makes of it ---
train 0 part "$all" --phase 1
stop='' # a fault point where the run is asked to stop
go_on() { # CODE TEXT [options]
    want=$1 text=$2
    shift 2
    cases=$((cases + 1))
    DTRAIN_FAULT=$stop "$dtrain" run --resume "$work/part" -q "$@" >"$work/out" 2>"$work/err"
    code=$?
    [ $code -eq "$want" ] || fail "--resume $*: exit code $code, expected $want"
    grep -qsF -- "$text" "$work/err" "$work/part/train.log" || fail "--resume $*: nothing said about \"$text\""
}
go_on 0 "nothing is left to do" --phase 1
go_on 0 "continuing with phase 2 (phase2_ppo)" --phase phase2_ppo
go_on 2 "after what --phase requests; continue" --phase 1
go_on 2 "expected all, a number, an id, or a range" --phase 3-2
go_on 0 "continuing with phase 3 (phase3_constrained)" --phase 2-
[ "$(state_hash "$work/part")" = "$whole" ] || fail "phase by phase: other bits"
stop=run.stop:9
go_on 75 "2 checkpoints after step 4 moved to checkpoints/superseded" --resume "$work/part/checkpoints/step-000000000004" \
    --set phases.1.stop.iterations=40
stop=''
go_on 0 "Training completed" --phase 1-2
train 0 half "$all" --max-steps 2
"$dtrain" run --resume "$work/half" --phase 3 -q >"$work/out" 2>"$work/err"
[ $? -eq 2 ] && grep -q "which is not over yet" "$work/err" || fail "phase 3 went on in the middle of phase 1"

# --- a phase that fails goes on from its last checkpoint, to the same bits; then the run stops, all before it intact
# ---
for fault in run.iterate:3 run.iterate:6 run.diverge:9; do
    DTRAIN_FAULT=$fault train 0 retried "$all"
    says "retry 1 of 1" "on purpose"
    finish retried "$fault failed once"
done
DTRAIN_FAULT=run.diverge:6,run.diverge:7 train 7 gave_up "$all"
says "phase 2 (phase2_ppo) failed 2 times" "at step 6"
[ "$("$dtrain" ckpt inspect "$work/gave_up" | grep -c "step *6")" -eq 1 ] || fail "the last good step is not the newest"
grep -q '"exit_code":7' "$work/gave_up/meta.json" || fail "meta.json does not tell the exit code"
finish gave_up "failed twice, then resumed"
DTRAIN_FAULT=run.iterate:2 train 3 never "$all" --set training.retries=0
says "the iteration failed on purpose"

# limits that end phase 3: the state before the round that broke them is kept, with its multipliers
broken='plugin = "phase3_constrained"; stop = { iterations = 6; };'
rule="--set phase3_constrained.limits=time_to_collision:0 --set phase3_constrained.max_violations=2"
# shellcheck disable=SC2086
train 0 alarmed "{ $broken }" $rule
# shellcheck disable=SC2086
train 7 stopped "{ $broken }" $rule --set phase3_constrained.on_violations=stop --set training.retries=0
says "above its limit 0 for 2 rounds in a row" "what was learned before the failure is saved at step"
"$dtrain" run --resume "$work/stopped" -q --set phase3_constrained.on_violations=alarm >"$work/out" 2>"$work/err" ||
    fail "going on without the stop left with $?"
[ "$(state_hash "$work/stopped")" = "$(state_hash "$work/alarmed")" ] || fail "ended by limits, then resumed: other bits"
cases=$((cases + 2))

# --- what ends a phase: a target of its evaluation, or time; and which checkpoint is handed on ---
steps_of() { # DIR: the step at which the first phase ended
    "$dtrain" ckpt list "$work/$1" | awk '/end$/ { print $1; exit }'
}
seen="training = { eval_interval = 1; }; evaluation = { seeds = \"1\"; episodes = 1; baselines = \"\"; };"
target='stop = { iterations = 9; metric = "return/mean"; above = -1000000.0; };'
train 0 target "{ plugin = \"phase2_ppo\"; $seen $target }"
says "return/mean is" ": the phase ends"
[ "$(steps_of target)" -eq 2 ] || fail "the target was met at step 2, the phase ended at $(steps_of target)"
train 0 far "{ plugin = \"phase2_ppo\"; $seen stop = { iterations = 3; metric = \"return/mean\"; below = -1000000.0; }; }"
[ "$(steps_of far)" -eq 6 ] || fail "a target that is not met ended the phase at step $(steps_of far)"
train 0 rare "{ plugin = \"phase2_ppo\"; $seen stop = { iterations = 3; }; }" --set training.eval_interval=100
grep -q '"step":6,.*"eval/return/mean"' "$work/rare/metrics.jsonl" || fail "no evaluation where the phase ended"
train 2 misnamed "{ plugin = \"phase2_ppo\"; $seen stop = { metric = \"return/meen\"; above = 0.0; }; }"
says 'stop.metric = "return/meen"' '"return/mean"?' \
    "return/mean, return/std"
cases=$((cases + 1))
[ -z "$(steps_of misnamed)" ] || fail "a misspelt result is found after step $(steps_of misnamed)"
train 2 unseen "{ plugin = \"phase2_ppo\"; $target }"
says "training.eval_interval = 0"
for dry in "" --dry-run; do
    train 2 unseen_later "{ $one }, { plugin = \"phase2_ppo\"; $target }" $dry
    says "phase 2 (phase2_ppo): stop.metric" "training.eval_interval"
    train 2 wrold "{ $one fresh = [ \"wrold\" ]; }, { $two }" $dry
    says "phases.0.fresh" '"wrold" is not a role' 'did you mean "world"?'
    train 2 wrold_later "{ $one }, { $two fresh = [ \"wrold\" ]; }" $dry
    says "phases.1.fresh" 'did you mean "world"?'
done
cases=$((cases + 1))
[ ! -e "$work/unseen_later" ] && [ ! -e "$work/wrold_later" ] || fail "what a later phase says wrong was found after one"
train 2 best_misnamed "{ $seen plugin = \"phase2_ppo\"; stop = { iterations = 1; }; }, { $seen $two }" \
    --set checkpoint.best_by=return/meen
says 'checkpoint.best_by = "return/meen"' '"return/mean"?'
train 2 best_own "{ $seen $two checkpoint = { best_by = \"nothing\"; }; }, { $seen $two }"
says 'checkpoint.best_by = "nothing" is not a result of the evaluation of phase2_ppo'
train 2 best_one "{ $seen $two }, { $one }" --set checkpoint.best_by=nothing
says 'checkpoint.best_by = "nothing" is not a result of the evaluation of phase2_ppo'

# --- --plugin runs one phase: what is given under phases is that phase's, or refused ---
only() { # CODE [options]: a run of the one phase
    want=$1 dir=only.none
    shift
    cases=$((cases + 1))
    timeout 300 "$dtrain" --config "$work/tiny.cfg" --plugin phase1_world_model "$@" -q >"$work/out" 2>"$work/err"
    got=$?
    [ "$got" -eq "$want" ] || fail "--plugin $*: exit code $got, expected $want"
}
only 0 --set phases.0.stop.steps=3 --run-dir "$work/only"
[ "$(steps_of only)" -eq 3 ] || fail "--plugin with phases.0.stop.steps=3 ended at step $(steps_of only)"
export DTRAIN__PHASES__0__STOP__STEPS=2
only 0 --run-dir "$work/only_env"
unset DTRAIN__PHASES__0__STOP__STEPS
[ "$(steps_of only_env)" -eq 2 ] || fail "--plugin with the variable for 2 steps ended at step $(steps_of only_env)"
only 2 --set phases.0.bogus=1 --dry-run
says "phases.0.bogus = " "from --set"
only 2 --set phases.0.checkpoint.hand_on=best --dry-run
says "checkpoint.best_by selects the best checkpoint"
echo "phases = ( { $two } );" >"$work/other.cfg"
only 2 --config "$work/other.cfg" --dry-run
says "phases.0.stop.iterations = 3 at" "other.cfg:1" "phases has no entry of phase1_world_model"
echo "phases = ( { $two }, { $one } );" >"$work/both.cfg"
only 0 --config "$work/both.cfg" --set phases.1.stop.steps=2 --run-dir "$work/only_second"
[ "$(steps_of only_second)" -eq 2 ] || fail "the second entry, set by hand, ended at step $(steps_of only_second)"
only 2 --config "$work/both.cfg" --set phases.0.stop.iterations=2 --dry-run
says "phases.0.stop.iterations = \"2\" from --set" "phases.1"
only 2 --set stop.metric=return/mean --dry-run
says "stop.metric = " "stop belongs in an entry of phases: phases.0.stop.metric"
train 2 valueless "{ $two }, { plugin = \"phase2_ppo\"; stop = { metric = \"return/mean\"; }; }"
says "phases.1.stop" "metric needs above, below or patience"
train 2 nameless "{ plugin = \"phase2_ppo\"; stop = { below = 3.0; }; }"
says "above, below and patience need metric"
train 75 clock "{ plugin = \"phase1_world_model\"; stop = { time = 3.0; epochs = 1000000; }; }" --max-time 2
"$dtrain" run --resume "$work/clock" -q >"$work/out" 2>"$work/err" || fail "a stop by time, resumed: $?"
spent=$(sed -n '$s/.*"wall_s":\([0-9]*\).*/\1/p' "$work/clock/metrics.jsonl")
[ "${spent:-9}" -lt 3 ] || fail "of 3 s, 2 were spent before the resume, and $spent after it"

best='checkpoint = { best_by = "return/mean"; hand_on = "best"; };'
train 0 best "{ plugin = \"phase2_ppo\"; $seen $best stop = { iterations = 4; }; }, { plugin = \"phase2_ppo\"; stop = { iterations = 1; }; }"
says "best of phase2_ppo"
handed=$(sed -n 's/.*controller .* tensors from .*step-0*\([0-9]*\), best of.*/\1/p' "$work/best/train.log")
best_step=$(sed -n 's|.*"step":\([0-9]*\),.*"eval/return/mean":\([-0-9.e+]*\).*|\1 \2|p' "$work/best/metrics.jsonl" |
    sort -k2,2g -k1,1n | tail -n 1 | cut -d' ' -f1)
cases=$((cases + 1))
[ -n "$handed" ] && [ "$handed" = "$best_step" ] || fail "the best is of step $best_step, handed on was $handed"
train 2 unmeasured "{ $two checkpoint = { best_by = \"\"; hand_on = \"best\"; }; }"
says "checkpoint.best_by selects the best checkpoint"

# --- each phase has workers of its own, and what it held is given back ---
train 0 workers "{ $one engine = { threads = 3; }; }, { $two }, { $three engine = { threads = 2; }; }"
says "; 3 workers on 1 rank" "; 1 worker on 1 rank" "; 2 workers on 1 rank"
[ "$(state_hash "$work/workers")" = "$whole" ] || fail "other numbers of workers: other bits"
train 2 ranks "{ $one }, { $two comm = { backend = \"sim\"; ranks = 2; }; }"
says "phase 1 has 1 ranks and phase 2 has 2" "set comm outside of phases"
train 5 device "{ $one }, { $two engine = { device = \"cuda:77\"; }; }"
says "phase 2 (phase2_ppo)"
[ ! -e "$work/device/checkpoints" ] || fail "a device that is not there was found out after the first phase"
train 2 unnamed "{ $one }, { $two models = { controller = \"controller_mpl\"; }; }"
says "phase 2 (phase2_ppo): models.controller from" 'did you mean "controller_mlp"'
[ ! -e "$work/unnamed/checkpoints" ] || fail "a model that is not there was found out after the first phase"
train 2 uninit "{ $one }, { plugin = \"phase2_ppo\"; init = \"previuos\"; env = { id = \"cartpole\"; }; }"
says "init = \"previuos\""
[ ! -e "$work/uninit/checkpoints" ] || fail "first weights that are not there were found out after the first phase"
train 2 unlimited "{ $one }, { $three phase3_constrained = { limits = \"starvatoin:60\"; }; }"
says "phase 2, " "no such cost as in" "starvatoin:60"
[ ! -e "$work/unlimited" ] || fail "a limit on no cost was found out after the first phase"
train 2 unlike "{ $two controller_mlp = { hidden = 32; }; }, { $two init = \"previous\"; controller_mlp = { hidden = 48; }; }"
says "phase 2, " "is [48, 4] in phase 2 (phase2_ppo) and [32, 4] in phase 1"
[ ! -e "$work/unlike" ] || fail "weights of another shape were found out after the first phase"
train 0 afresh "{ $two controller_mlp = { hidden = 32; }; }, { $two fresh = [ \"controller\" ]; controller_mlp = { hidden = 48; }; }"
cases=$((cases + 5))
# what may be there when the phase is due is a warning at first, and ends the run, with the first phase's results, then
train 4 unrecorded "{ $one }, { plugin = \"phase1_world_model\"; data = { store = \"./no-such-store\"; }; }"
says "phase 2 could not begin now" "no-such-store"
[ -e "$work/unrecorded/checkpoints/LATEST" ] || fail "a recording that is missing later cost the first phase"
cases=$((cases + 1))
large='plugin = "phase1_world_model"; init = "random"; risk_gnn = { hidden = 96; }; world_lstm = { hidden = 96; }; stop = { steps = 3; };'
train 0 alike "{ $large }, { $large }"
grep "is released" "$work/alike/train.log" | sed 's/.*arenas \([0-9.]*\) MB, resident \([0-9.]*\) MB.*/\1 \2/' >"$work/released"
allowed=1.05
! grep -q __asan_init "$dtrain" || allowed=2 # it keeps what was freed
awk '{ if ($1 != 0) bad = 1; mb[NR] = $2 } END { exit bad || NR != 2 || mb[2] > mb[1] * '$allowed' }' "$work/released" ||
    fail "arenas and resident memory after each of two equal phases: $(cat "$work/released")"
sed -n 's/.*"step":3,.*"mem\/rss":\([0-9]*\).*/\1/p' "$work/alike/metrics.jsonl" >"$work/resident"
awk '{ mb[NR] = $1 } END { exit NR != 2 || mb[2] > mb[1] * '$allowed' }' "$work/resident" ||
    fail "resident memory at the end of two equal phases: $(cat "$work/resident")"
cases=$((cases + 3))

echo "$cases cases, $failed failed"
[ "$failed" -eq 0 ] && [ "$cases" -gt 20 ]
