#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Several futures, their temperature and the radii of their regions, through the program: threads, virtual ranks and a
# resume end in the bits of the undisturbed run, what was fitted is in the checkpoint and in what is reported, and what
# cannot be fitted is said.
set -u
name=futures
. "${DT_SRCDIR:?}/tests/run/job.inc"
models='risk_gnn = { hidden = 8; heads = 1; layers = 1; };
world_lstm = { hidden = 8; head = 8; layers = 1; futures = 3; kinematic = true; calibrated = true; };'
data='batch = 64; shards = 16;'
save=
job <<END
phase1_world_model = { calibration_folds = 4; history_s = 1.0; horizon_s = 3.0; };
data_trajectory = { train_stride_s = 4.0; stride_s = 2.0; };
phases = ( { plugin = "phase1_world_model"; training = { epochs = 2; save_interval = 1; }; } );
END
# evaluated DIR [options]: what eval reports of it
evaluated() {
    dir=$1
    shift
    "$dtrain" eval --plugin phase1_world_model --checkpoint "$work/$dir" --json -q "$@" >"$work/$dir.json" 2>"$work/err" ||
        fail "eval of $dir left with $?"
}
# number DIR KEY: the first of it
number() { sed -n "s/.*\"$2\":\[*\([-0-9.e+]*\).*/\1/p" "$work/$1.json" | head -n 1; }

train 0 whole
enough_states 2
train 0 threads --threads 3
same_all threads "3 threads"
train 0 ranks --set comm.backend=sim --set comm.ranks=3
same_all ranks "3 ranks"
train 0 resumed --max-steps 3
train 0 resumed --resume "$work/resumed"
same resumed "stopped and resumed"

# the fitted temperature is used: without it the same weights have other deviations, and the same positions
train 0 plain --set world_lstm.calibrated=false --set phase1_world_model.calibration_folds=0
train 0 unfitted --max-steps 1 --set phase1_world_model.calibration_folds=0
says 1 "calibration_folds is 0: its temperature stays unchanged; set calibration_folds to fit it"
train 2 x --set world_lstm.calibrated=false
says 1+ "the world model has no temperature to fit; set its option calibrated"
# of one fold none is left out: predictions are those of a run without, to rounding, fitted is what was trained on
train 0 same --set phase1_world_model.calibration_folds=1
windows=$(sed -n 's/.*"calibration\/windows":\([0-9]*\).*/\1/p' "$work/same/metrics.jsonl" | tail -n 1)
fewer=$(sed -n 's/.*"calibration\/windows":\([0-9]*\).*/\1/p' "$work/whole/metrics.jsonl" | tail -n 1)
[ "${fewer:-0}" -gt 0 ] && [ "${windows:-0}" -gt "$fewer" ] ||
    fail "$fewer windows are fitted to of a fold, $windows of all"
evaluated whole
evaluated plain
evaluated same
cases=$((cases + 1))
for key in min_ade_6 min_fde_1 miss_rate_6 coverage_50 coverage_95 cv_ade; do
    [ -n "$(number whole $key)" ] || fail "eval tells no $key"
done
[ "$(number whole coverage_50)" != "$(number plain coverage_50)" ] || fail "the temperature changes no ellipse"
awk -v a="$(number same rmse_m)" -v b="$(number plain rmse_m)" 'BEGIN { exit !(a > 0.99 * b && a < 1.01 * b) }' ||
    fail "calibrating on what is trained on changes predictions: $(number same rmse_m) m and $(number plain rmse_m) m off"
for class in standing steady changing; do
    [ -n "$(number whole $class)" ] ||
        fail "eval tells no regions of vehicles that are $class"
done
# metrics, evaluation and the curve of the loss show it
fitted=$(sed -n 's/.*"calibration\/temperature":\([-0-9.e]*\).*/\1/p' "$work/whole/metrics.jsonl" | tail -n 1)
[ -n "$fitted" ] && [ "$fitted" != 0 ] || fail "the temperature in the metrics is '$fitted'"
[ "$(number whole temperature)" = "$fitted" ] || fail "eval tells '$(number whole temperature)', not $fitted"
grep -q '"losses/temperature":-\{0,1\}[0-9.e-]*[1-9]' "$work/whole/metrics.jsonl" || fail "losses/temperature is 0"
grep -rqa '"world.temperature"' "$work/whole/checkpoints" || fail "no temperature in the checkpoint"
grep -rqa '"world.regions"' "$work/whole/checkpoints" || fail "no radii of regions in the checkpoint"
finish
