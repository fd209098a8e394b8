#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The program as a user meets it: training, resuming, ranks, evaluation, exit codes and messages. Runs the built dtrain
# on the embedded recording with tiny models. Needs nothing but the build folder.
set -u

. "${DT_SRCDIR:-.}/tests/check.inc"

tiny="--set risk_gnn.hidden=16 --set risk_gnn.heads=2 --set risk_gnn.layers=1 --set world_lstm.hidden=16
      --set world_lstm.layers=1 --set data.batch=16 --set training.epochs=2 --set training.eval_interval=0
      --set checkpoint.every_seconds=0 --set training.save_interval=0 --threads 2 -q"
phase="--plugin phase1_world_model.so"

state_hash() {
    "$dtrain" ckpt inspect "$1" --json | sed -n 's/.*"state_hash":"\([0-9a-f]*\)".*/\1/p'
}

same_state() {
    cases=$((cases + 1))
    a=$(state_hash "$1")
    b=$(state_hash "$2")
    if [ -z "$a" ] || [ "$a" != "$b" ]; then
        echo "FAIL: $3: state $a of $1, $b of $2"
        failed=$((failed + 1))
    fi
}

# --- training is reproducible, resumable, and blind to threads and ranks ---
expect 0 "" "$dtrain" $phase $tiny --run-dir "$work/whole" --max-steps 6
for f in config.cfg config.origin.json meta.json train.log error.log metrics.jsonl checkpoints; do
    cases=$((cases + 1))
    [ -e "$work/whole/$f" ] || { echo "FAIL: the run directory has no $f"; failed=$((failed + 1)); }
done
expect 0 "" "$dtrain" $phase $tiny --run-dir "$work/one" --max-steps 6 --threads 1
same_state "$work/whole" "$work/one" "one thread against two"
expect 0 "" "$dtrain" $phase $tiny --run-dir "$work/again" --max-steps 6 --set engine.recompute=true
same_state "$work/whole" "$work/again" "activations recomputed"
for ranks in 2 4; do
    expect 0 "" "$dtrain" $phase $tiny --run-dir "$work/r$ranks" --max-steps 6 --set comm.backend=sim --set comm.ranks=$ranks
    same_state "$work/whole" "$work/r$ranks" "$ranks virtual ranks"
done
expect 0 "" "$dtrain" $phase $tiny --run-dir "$work/cut" --max-steps 2
expect 0 "" "$dtrain" run --resume "$work/cut" --max-steps 6 -q
same_state "$work/whole" "$work/cut" "resumed at step 2"
expect 0 "" "$dtrain" $phase $tiny --run-dir "$work/cut2" --max-steps 3 --set comm.backend=sim --set comm.ranks=2
expect 0 "" "$dtrain" run --resume "$work/cut2" --max-steps 6 -q --set comm.ranks=4
same_state "$work/whole" "$work/cut2" "resumed on four ranks after two"
cases=$((cases + 1))
lines=$(wc -l <"$work/cut/metrics.jsonl")
[ "$lines" -eq 6 ] || { echo "FAIL: $lines records of metrics after a resume, expected 6"; failed=$((failed + 1)); }

# --- mixed precision: the same promises, near fp32, refused where it cannot be ---
half="--set amp.enabled=true"
loss_of() { sed -n '$s/.*"loss":\([0-9.e+-]*\).*/\1/p' "$1/metrics.jsonl"; }
expect 5 "DTRAIN_CPU_ISA" env DTRAIN_CPU_ISA=base \
    "$dtrain" $phase $tiny $half --run-dir "$work/no_bf16" --max-steps 1
expect 5 'needs a GPU; the CPU multiplies bf16' "$dtrain" $phase $tiny $half --set amp.dtype=fp16 --device cpu \
    --run-dir "$work/no_fp16" --max-steps 1
expect 2 "amp.initial_scale" "$dtrain" $phase $tiny --set amp.initial_scale=1000 --run-dir "$work/no_scale"
if "$dtrain" $phase $tiny $half --device cpu --run-dir "$work/half" --max-steps 12 2>"$work/err"; then
    expect 0 "" "$dtrain" $phase $tiny $half --device cpu --run-dir "$work/half1" --max-steps 12 --threads 1
    same_state "$work/half" "$work/half1" "one thread against two in bf16"
    expect 0 "" "$dtrain" $phase $tiny $half --run-dir "$work/half4" --max-steps 5 --set comm.backend=sim \
        --set comm.ranks=4
    expect 0 "" "$dtrain" run --resume "$work/half4" --max-steps 12 -q --set comm.ranks=2
    same_state "$work/half" "$work/half4" "four virtual ranks, resumed on two, in bf16"
    # an overflow that skips steps, across a resume: 2^200 is too much for any gradient
    over="$half --set amp.scaling=dynamic --set amp.initial_scale=1.6069380442589903e60
          --set amp.max_scale=1.6069380442589903e60 --set amp.backoff_factor=6.103515625e-5"
    expect 0 "" "$dtrain" $phase $tiny $over --device cpu --run-dir "$work/over" --max-steps 8
    expect 0 "" "$dtrain" $phase $tiny $over --device cpu --run-dir "$work/over2" --max-steps 1
    expect 0 "" "$dtrain" run --resume "$work/over2" --max-steps 8 -q
    same_state "$work/over" "$work/over2" "resumed amid skipped steps"
    expect 7 "steps in a row were skipped" "$dtrain" $phase $tiny $over --device cpu --set amp.scaling=static \
        --set amp.static_scale=1.6069380442589903e60 --set amp.max_skips=2 --run-dir "$work/over3"
    expect 0 "" "$dtrain" $phase $tiny --device cpu --run-dir "$work/full" --max-steps 12
    cases=$((cases + 1))
    awk -v a="$(loss_of "$work/half")" -v b="$(loss_of "$work/full")" \
        'BEGIN { d = a - b; exit !(a > 0 && b > 0 && a != b && d * d <= 0.0001 * b * b) }' ||
        { echo "FAIL: loss $(loss_of "$work/half") in bf16, $(loss_of "$work/full") in fp32"; failed=$((failed + 1)); }
elif ! grep -q "needs AVX512-BF16 or AMX" "$work/err"; then
    echo "FAIL: bf16 is not to be had for another reason:"
    cat "$work/err"
    failed=$((failed + 1))
fi

# --- an evaluation compared with rules that the user names, explained by the environment's table ---
signals="--plugin phase2_ppo --env env_traffic --set env_traffic.control=signals --set env_traffic.scenario=intersection
    --set env_traffic.episode_s=30 --seeds 1 --episodes 1 -q"
expect 0 '"baselines":[{"controller":"controller_fixed","learnt":false,"result":{' "$dtrain" eval $signals \
    --set evaluation.baselines=controller_fixed --json
expect 0 "delay_s" "$dtrain" eval $signals
expect 2 "evaluation.baselines" "$dtrain" eval $phase --set evaluation.baselines=controller_fixed -q
expect 2 "evaluation.baselines" "$dtrain" eval $signals --set evaluation.baselines=controller_fixd

# --- interrupted: the step is finished, the state saved, 75 ---
expect 0 "" "$dtrain" $phase $tiny --run-dir "$work/long" --set training.epochs=40 --max-steps 40
"$dtrain" $phase $tiny --run-dir "$work/term" --set training.epochs=40 -v 2>"$work/err" &
pid=$!
tries=0
until [ -s "$work/term/metrics.jsonl" ] || [ $tries -gt 200 ]; do
    tries=$((tries + 1))
    sleep 0.05
done
kill -TERM $pid
wait $pid
code=$?
cases=$((cases + 1))
[ $code -eq 75 ] || { echo "FAIL: exit code $code after SIGTERM, expected 75"; failed=$((failed + 1)); }
step=$("$dtrain" ckpt inspect "$work/term" --json | sed -n 's/^{"step":\([0-9]*\).*/\1/p')
if [ -n "$step" ] && [ "$step" -lt 40 ]; then
    cases=$((cases + 1)) # as it was called: a build folder need not be in the path
    grep -q "continue with: $dtrain run --resume .*/term\$" "$work/err" || { echo "FAIL: how to go on: $(cat "$work/err")"; failed=$((failed + 1)); }
    expect 0 "" "$dtrain" run --resume "$work/term" --max-steps 40 -q
    same_state "$work/long" "$work/term" "resumed after SIGTERM at step $step"
fi
expect 75 "" "$dtrain" $phase $tiny --run-dir "$work/time" --set training.epochs=10000 --max-time 0.3

# --- a checkpoint on demand, the newest run, weights alone, two phases with hand-over ---
"$dtrain" $phase $tiny --run-dir "$work/usr1" --set training.epochs=400 2>"$work/err" &
pid=$!
tries=0
until [ -s "$work/usr1/metrics.jsonl" ] || [ $tries -gt 200 ]; do
    tries=$((tries + 1))
    sleep 0.05
done
kill -USR1 $pid
until [ -e "$work/usr1/checkpoints/LATEST" ] || [ $tries -gt 400 ]; do
    tries=$((tries + 1))
    sleep 0.05
done
kill -TERM $pid
wait $pid
code=$?
cases=$((cases + 1))
[ $code -eq 75 ] && [ "$("$dtrain" ckpt list "$work/usr1" | wc -l)" -ge 2 ] ||
    { echo "FAIL: SIGUSR1 then SIGTERM left exit code $code and no two checkpoints"; failed=$((failed + 1)); }
mkdir "$work/base"
expect 0 "" env DTRAIN_RUN_DIR="$work/base" "$dtrain" $phase $tiny --max-steps 2
expect 0 "resuming" env DTRAIN_RUN_DIR="$work/base" "$dtrain" run --resume --max-steps 3
expect 0 "" "$dtrain" $phase $tiny --run-dir "$work/init" --max-steps 1 \
    --init-from "$(find "$work/whole/checkpoints" -name model.safetensors | sort | tail -n 1)"
cat >"$work/two.cfg" <<'END'
phases = ( { plugin = "phase1_world_model"; stop = { steps = 3; }; },
           { plugin = "phase1_world_model"; init = "previous"; freeze = [ "perception" ]; stop = { steps = 2; }; } );
END
expect 0 "" "$dtrain" run --config "$work/two.cfg" $tiny --run-dir "$work/two"
cases=$((cases + 1))
[ "$("$dtrain" ckpt list "$work/two" | grep -c end)" -eq 2 ] ||
    { echo "FAIL: two phases left other than two ends of a phase"; failed=$((failed + 1)); }
expect 2 "init" "$dtrain" $phase $tiny --run-dir "$work/prev" --set 'phases=({plugin="phase1_world_model";init="previous";})'

# --- evaluation, plan, looking ---
expect 0 "" "$dtrain" eval $phase --checkpoint "$work/whole" -q
cases=$((cases + 1))
grep -q '^ *rmse_m  *[0-9.]* ' "$work/out" || { echo "FAIL: eval says no result on standard output"; failed=$((failed + 1)); }
expect 0 '"rmse_m":[' "$dtrain" eval $phase --checkpoint "$work/whole" --json -q
cp "$work/out" "$work/eval.json"
for key in horizon_s displacement_m cv_rmse_m cv_displacement_m nll risk_auroc samples; do
    cases=$((cases + 1))
    grep -qF "\"$key\":" "$work/eval.json" || { echo "FAIL: eval --json says no $key"; failed=$((failed + 1)); }
done
expect 0 '"planned_peak":' "$dtrain" $phase $tiny --dry-run --json
expect 0 '"step":{"flops":' "$dtrain" $phase $tiny --dry-run --json
expect 0 "phase1_world_model" "$dtrain" ckpt list "$work/whole"
expect 0 '"weights_hash":"' "$dtrain" ckpt inspect "$work/whole" --json
# one count of parameters: the log, the checkpoint, the report
n=$("$dtrain" ckpt inspect "$work/whole" --json | sed -n 's/.*"parameters":\([0-9]*\).*/\1/p')
[ "${n:-0}" -gt 0 ] && grep -q " $n parameters ($n trained)" "$work/whole/train.log" || fail "$n parameters, and the log says others"
expect 0 "  $n parameters" "$dtrain" ckpt inspect "$work/whole"
"$dtrain" report "$work/whole" --out "$work/whole.html" >/dev/null 2>&1 || fail "the report of $work/whole"
grep -q "<dt>Parameters</dt><dd>$n</dd>" "$work/whole.html" || fail "the report says other parameters than $n"
expect 0 "risk_gnn" "$dtrain" list
expect 0 "hidden" "$dtrain" show risk_gnn
expect 0 "examples:" "$dtrain" run --help
expect 0 "exit codes" "$dtrain" --help
expect 5 "$work/none.cfg" env DTRAIN_CONFIG="$work/none.cfg" "$dtrain" doctor --run-dir "$work"
expect 5 '{"check":"DTRAIN_CONFIG","verdict":"FAIL","text":' env DTRAIN_CONFIG="$work/none.cfg" "$dtrain" doctor --json
! DTRAIN_CONFIG="$work/none.cfg" "$dtrain" doctor -q 2>&1 | grep -v "^FAIL\|^WARN\|^ *->\|^error" ||
    fail "doctor -q says more than warnings and errors"

# --- every shipped plugin keeps its promises, and none is left out of the trial ---
"$dtrain" --plugin phase2_ppo -q --set env.id=cartpole --set env.instances=4 --set phase2_ppo.iterations=1 \
    --set phase2_ppo.train_batch=400 --set phase2_ppo.fragment=100 --set data.batch=100 --set rollouts.keep=400 \
    --set report.enabled=false --set evaluation.baselines= --run-dir "$work/kept" 2>"$work/err" || fail "no rollouts are kept"
for plugin in $DT_PLUGINS; do
    needs=
    case $plugin in
        *phase_offline.la) needs="--set env.id=cartpole --set phase_offline.rollouts=$work/kept/rollouts/phase2_ppo-1" ;;
        *phase_sac.la | *phase_ddpg.la) # rounds of the defaults take five times as long
            id=$(basename "$plugin" .la)
            needs="--set env.instances=4 --set data.batch=64 --set $id.learning_starts=256 --set $id.buffer_size=1000"
            needs="$needs --set $id.intensity=64 --set $id.collect_steps=4"
            ;;
    esac
    expect 0 " 0 failed, " "$dtrain" check "$(basename "$plugin" .la)" $needs
    cases=$((cases + 1))
    grep -E '^SKIP (phase|model|data) ' "$work/out" && { echo "FAIL: $plugin is not run"; failed=$((failed + 1)); }
done

# --- names as people write them: letters beyond ASCII take one place, a folder may end with a slash ---
mkdir "$work/named"
cp -r "$work/whole" "$work/named/$(printf 'l\303\274beck')"
cp -r "$work/whole" "$work/named/abcdef"
expect 0 "abcdef  done" "$dtrain" runs "$work/named"
grep -q "beck  done" "$work/out" || fail "runs does not line up: $(cat "$work/out")"
demo=${DT_BUILDDIR:-.}/share/demo.store
expect 0 "" "$dtrain" data sample "$demo" --out "$work/some/"
expect 0 "" "$dtrain" data merge "$work/some" --out "$work/merged//"
expect 0 "" "$dtrain" data split "$demo" --out "$work/parted/" --set split.by=scene
expect 0 "" "$dtrain" data cut "$work/some" --out "$work/tiles/" --set cut.regions=1
expect 2 "one of them must be" "$dtrain" data cut "$work/some" --out "$work/uncut"
expect 4 "$work/tiles" "$dtrain" data merge "$work/tiles" --out "$work/uncut"
[ -d "$work/tiles" ] && [ ! -e "$work/uncut" ] || fail "data cut"
[ -d "$work/some" ] && [ -d "$work/merged" ] && [ -d "$work/parted" ] || fail "--out with a slash at its end"
expect 0 "--profile pendulum" "$dtrain" $phase --profile pendulum --dry-run
expect 0 "phase2_ppo, critic_mlp, phase_ddpg" \
    "$dtrain" --plugin phase_coma --profile snakes --set env.id=snakes --dry-run
expect 0 "env.id = env_snakes" \
    "$dtrain" --plugin phase_coma --profile snakes --dry-run
expect 0 "" "$dtrain" $phase --profile test --dry-run
! grep -q "changes nothing" "$work/err" || fail "a profile that has values is told to have none"

# --- swaps ---
for world in world_gru world_constant_velocity; do
    expect 0 "" "$dtrain" $phase $tiny --run-dir "$work/$world" --max-steps 2 --set models.world=$world
done
expect 2 "role perception" "$dtrain" $phase $tiny --run-dir "$work/x" --set models.world=risk_gnn
expect 2 "hidden" "$dtrain" $phase $tiny --run-dir "$work/x" --set risk_gnn.hidden=10 --set risk_gnn.heads=3
expect 2 "perception" "$dtrain" run --resume "$work/whole" --set risk_gnn.hidden=32 -q
# a resume that was refused leaves the run as it was: it can be resumed again
expect 2 "world_gru" "$dtrain" run --resume "$work/whole" --set models.world=world_gru -q
expect 0 "" "$dtrain" run --resume "$work/whole" --max-steps 6 -q

# --- refusals: usage and configuration 2 ---
expect 2 "trian" "$dtrain" trian
expect 2 "--plugin" "$dtrain" run --plugn x
expect 2 "launch" "$dtrain" launch
expect 2 "epocks" "$dtrain" $phase $tiny --set training.epocks=3
mkdir "$work/hollow"
for verb in eval export; do
    for place in nosuch hollow; do
        expect 2 "$work/$place" "$dtrain" $verb --checkpoint "$work/$place"
    done
done
expect 2 'env_cartpole' "$dtrain" --plugin phase2_ppo --set env.id=cartpol --dry-run
expect 2 'env_traffic' "$dtrain" eval --plugin phase2_ppo --env trafic
expect 2 "run" "$dtrain" $phase $tiny --set run.threads=1 # once a crash
expect 2 "training.epochs" "$dtrain" $phase $tiny --set training.epochs=ten
expect 2 "training.epochs" "$dtrain" $phase $tiny --set training.epochs=-1
printf 'training = { epochs = "ten";\n optimizer = "adamv"; };\nrisk_gnn = { hiden = 3; };\n' >"$work/many.cfg"
for text in "4 errors in the configuration" 'many.cfg:1: expected an integer in [1, 1000000]' 'did you mean "adamw"?' \
    'risk_gnn.hiden = 3 at' '--set data: expected section.key=value'; do
    expect 2 "$text" "$dtrain" $phase --config "$work/many.cfg" --set data
done
cp "$work/err" "$work/many"
expect 2 "data" "$dtrain" show training --set data
cases=$((cases + 1))
[ "$(grep -c '^error' "$work/many")" -eq 5 ] || { echo "FAIL: four errors are not told in five lines"; failed=$((failed + 1)); }
expect 2 "frozen_thing" "$dtrain" $phase $tiny --run-dir "$work/y" --set 'training.freeze=["frozen_thing"]'
expect 2 "data.batch" "$dtrain" $phase $tiny --run-dir "$work/z" --set data.batch=65536
expect 2 "--plugin" "$dtrain" run
expect 2 "none.cfg" "$dtrain" run --config "$work/none.cfg"
printf 'training = { epochs = 3; };\nphases = ( { plugin = "phase1_world_model"; };\n' >"$work/bad.cfg"
expect 2 "bad.cfg:" "$dtrain" run --config "$work/bad.cfg"
mkdir "$work/empty"
expect 2 "" "$dtrain" $phase $tiny --resume "$work/empty"

# --- plugins 3, data 4, device 5, divergence 7 ---
expect 3 "no_such_phase" "$dtrain" --plugin no_such_phase
echo junk >"$work/junk.so"
expect 3 "junk" "$dtrain" --plugin "$work/junk.so"
expect 4 "nowhere" "$dtrain" $phase $tiny --run-dir "$work/d1" --set data.store="$work/nowhere"
expect 4 "" "$dtrain" data inspect "$work/nowhere"
expect 4 "" "$dtrain" data import "$work/nowhere" --out "$work/store"
printf 'scene,frame,id,x,y,speed\nnorth,0,1,0,0,9\nnorth,0,2,20,0,9\nnorth,1,1,1,0,9\nnorth,1,2,21,0,9\n' >"$work/pair.csv"
expect 0 "" "$dtrain" data import "$work/pair.csv" --out "$work/pair" --set import.frame_rate_hz=10
expect 1 "x.svg" "$dtrain" data inspect "$work/pair" --out "$work/nowhere/x.svg"
"$dtrain" data inspect "$work/pair" --out "$work/scene.svg" >"$work/told" 2>&1 || true
if ! grep -q "scene.svg: scene north after .* 2 vehicles" "$work/told" || [ "$(grep -o '<rect' "$work/scene.svg" | wc -l)" -ne 2 ]; then
    echo "FAIL: no scene with two vehicles is drawn"
    failed=$((failed + 1))
fi
: >"$work/empty.csv"
expect 4 "empty" "$dtrain" data import "$work/empty.csv" --out "$work/store"
expect 2 "DTRAIN_CPU_ISA" env DTRAIN_CPU_ISA=z80 "$dtrain" list
expect 5 "--device cpu" "$dtrain" $phase $tiny --device cuda:1023
expect 2 "cuda:N" "$dtrain" $phase $tiny --device gpu
expect 7 "diverged" "$dtrain" $phase $tiny --run-dir "$work/div" --set training.learning_rate=1000 --set training.warmup_epochs=0 \
    --set training.gradient_clip=0 --set training.optimizer=sgd --set training.epochs=20

# --- a damaged checkpoint is not loaded; the one before is ---
cp -r "$work/cut" "$work/damaged"
for f in "$work"/damaged/checkpoints/step-*/model.safetensors; do
    printf 'x' | dd of="$f" bs=1 seek=2000 conv=notrunc 2>/dev/null
done
expect 4 "" "$dtrain" run --resume "$work/damaged" -q

finish "$cases cases"
