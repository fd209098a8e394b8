#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Perception that is normalised by the store it is trained on, through the program: threads, virtual ranks, processes
# and a resume end in the bits of the undisturbed run; its constants are in the checkpoint, are those of the training
# scenes, and stay where weights go on; weights that were trained otherwise are refused.
set -u
name=normalise
. "${DT_SRCDIR:?}/tests/run/job.inc"
models='risk_gnn = { hidden = 8; heads = 1; layers = 1; normalise = "store"; };
world_lstm = { hidden = 8; head = 8; layers = 1; };
controller_mlp = { hidden = 8; };'
data='batch = 64; shards = 16;'
save='every_steps = 2;'
job <<END
phase1_world_model = { history_s = 1.0; horizon_s = 3.0; };
data_trajectory = { train_stride_s = 4.0; stride_s = 2.0; };
phases = ( { plugin = "phase1_world_model"; training = { epochs = 2; save_interval = 1; }; } );
END
# constant RUN NAME: the numbers of perception's constant in its last checkpoint, in hexadecimal words
constant() {
    file=$work/$1/checkpoints/$(cat "$work/$1/checkpoints/LATEST")/model.safetensors
    place=$(grep -ao "\"perception.constant.$2\":{[^}]*}" "$file" | sed -n 's/.*"data_offsets":\[\([0-9]*\),\([0-9]*\)\].*/\1 \2/p')
    [ -n "$place" ] || return
    head=$(od -A n -t u8 -N 8 "$file" | tr -d ' ')
    from=${place% *} end=${place#* }
    od -A n -v -t x4 -j $((8 + head + from)) -N $((end - from)) "$file" | tr -d '\n'
}
# alike RUN RUN NAME WHAT / unlike
alike() {
    cases=$((cases + 1))
    [ -n "$(constant "$1" "$3")" ] && [ "$(constant "$1" "$3")" = "$(constant "$2" "$3")" ] || fail "$4: another $3"
}
unlike() {
    cases=$((cases + 1))
    [ -n "$(constant "$1" "$3")" ] && [ "$(constant "$1" "$3")" != "$(constant "$2" "$3")" ] || fail "$4: the same $3"
}

train 0 whole
enough_states 2
train 0 threads --threads 3
same_all threads "3 threads"
train 0 ranks --set comm.backend=sim --set comm.ranks=2 --check-sync 1
same_all ranks "2 ranks"
if has_mpi; then
    LSAN_OPTIONS=detect_leaks=0 # the library of MPI keeps what it has until the process ends
    export LSAN_OPTIONS
    train 0 processes --nproc 2 --check-sync 1
    same_all processes "2 processes"
fi
for n in 1 3; do
    train 0 cut$n --max-steps $n
    train 0 cut$n --resume "$work/cut$n"
    same cut$n "stopped after $n steps"
done

# no step moves them, decay or not; it is reported once what they are
train 0 first --max-steps 1 --set training.weight_decay=0.5
for part in node_shift node_scale edge_shift edge_scale; do
    alike first whole $part "after one step"
done
timeout 120 "$dtrain" run --config "$work/job.cfg" --run-dir "$work/loud" --max-steps 2 >"$work/out" 2>"$work/err"
says 1 'perception is normalised by'
says 0 'so scaled by fixed numbers'
# other training scenes, other numbers: nothing of those held out is in them
train 0 fold1 --max-steps 1 --set data_trajectory.fold=1
unlike fold1 whole node_shift "another fold held out"

# the fixed one has none, and is what it was without the option
train 0 fixed --max-steps 2 --set risk_gnn.normalise=fixed
cases=$((cases + 1))
! grep -rqa 'perception.constant' "$work/fixed/checkpoints" || fail "fixed: constants in the checkpoint"

still="--set data.store=$work/still --set data.batch=8 --set data.shards=8"
# vehicles that stand, 60 m and 80 m from the middle: only positions and the bound of accelerations are left to scale,
# 30 m / 100 m, of which 1 / 30 in f32 costs the last bit, and 2 m/s^2 / 5 m/s^2
awk 'BEGIN { print "scene,site,id,frame,x,y,speed,heading,accel,length"
    for (s = 0; s < 5; s++) for (f = 0; f < 60; f++) for (c = 0; c < 4; c++)
        printf "s%d,yard,%d,%d,%g,%g,0,0,0,4.5\n", s, c, f, 1000 * s + (c % 2 ? 60 : -60), (c > 1 ? 80 : -80) }' \
    >"$work/still.csv"
"$dtrain" data import "$work/still.csv" --out "$work/still" --set import.frame_rate_hz=5 -q 2>"$work/err" ||
    fail "import left with $?"
timeout 120 "$dtrain" run --config "$work/job.cfg" --run-dir "$work/standing" --max-steps 1 \
    $still >"$work/out" 2>"$work/err"
says 1 'so scaled by fixed numbers: speed, length, stop distance, gap, lateral offset, closing speed, inverse'
cases=$((cases + 1))
[ "$(constant standing node_scale)" = \
    " 3e999999 3e999999 3f800000 3ecccccd 3f800000 3f800000 3f800000 3f800000 3f800000" ] ||
    fail "vehicles that stand: node_scale is$(constant standing node_scale)"
[ "$(constant standing edge_scale)$(constant standing edge_shift)" = \
    " 3f800000 3f800000 3f800000 3f800000 00000000 00000000 00000000 00000000" ] ||
    fail "vehicles alone: edge_scale is$(constant standing edge_scale)"

# weights go on: what they were trained behind stays, on another store too, until it is asked for
train 0 later --max-steps 2 $still --init-from "$work/whole"
alike later whole node_shift "weights that go on"
train 0 anew --max-steps 2 $still --init-from "$work/whole" \
    --set phase1_world_model.refit_normalisation=true
alike anew standing node_scale "fitted anew"
train 0 anew --resume "$work/anew" --max-steps 3 $still
alike anew standing node_scale "fitted anew and resumed"
train 0 frozen --max-steps 2 --init-from "$work/whole" $still --set 'training.freeze=perception'
alike frozen whole node_shift "a frozen perception"
train 2 x --max-steps 2 --init-from "$work/whole" $still --set 'training.freeze=perception' \
    --set phase1_world_model.refit_normalisation=true
says 1+ 'refit_normalisation is set, but perception is frozen'
train 2 y --max-steps 2 --set risk_gnn.normalise=fixed --set phase1_world_model.refit_normalisation=true
says 1+ 'perception is not normalised by a store; set its option normalise to "store"'
train 2 z --max-steps 2 --set risk_gnn.normalise=fixed --init-from "$work/whole"
says 1+ 'perception.constant.edge_s'
says 1+ 'which risk_gnn has not as it is configured here: set the options of the model as in training'
train 2 w --max-steps 2 --init-from "$work/fixed"
says 1+ 'lacks perception.constant.node_shift, which risk_gnn has as it is configured here'

# of a stream, whose stores come later, it is what data.store shows: all of it, as a stream holds out none
demo=$DT_BUILDDIR/share/demo.store
mkdir "$work/arriving"
"$dtrain" data sample "$demo" --out "$work/arriving/000000" --set sample.scenes=30 -q 2>"$work/err" ||
    fail "sample left with $?"
: >"$work/arriving/000001.end"
train 0 stream --max-steps 1 --set data.store="$demo" --set data.stream="$work/arriving" --set data.window=64 \
    --set training.epochs=1
train 0 all --max-steps 1 --set data_trajectory.eval_scenes=all
alike stream all node_shift "a stream"
unlike stream whole node_shift "a stream"

# of two phases 1 in a row the first one fits
sed 's/^phases.*/phases = ( { plugin = "phase1_world_model"; stop = { steps = 2; }; },\
    { plugin = "phase1_world_model"; stop = { steps = 2; }; data_trajectory = { fold = 1; }; } );/' \
    "$work/job.cfg" >"$work/twice.cfg"
mv "$work/twice.cfg" "$work/job.cfg"
train 0 twice
alike twice whole node_shift "the second phase 1 of a run"
cases=$((cases + 1))
[ "$(cat "$work/twice/checkpoints/LATEST")" != "$(cat "$work/first/checkpoints/LATEST")" ] || fail "there was no second"

# phases of a policy see features so, and leave the constants alone though perception learns on
cat >"$work/job.cfg" <<END
$models
data = { $data };
training = { eval_interval = 0; save_interval = 0; warmup_epochs = 0; weight_decay = 0.1; };
evaluation = { seeds = "1"; episodes = 1; baselines = ""; };
checkpoint = { every_seconds = 0; every_steps = 2; mirror_seconds = 0; };
metrics = { tensorboard = false; };
report = { enabled = false; };
env = { id = "env_traffic"; instances = 2; };
env_traffic = { scenario = "merge"; agents = 4; episode_s = 60.0; };
phase2_ppo = { train_batch = 64; fragment = 8; sgd_epochs = 1; };
phases = ( { plugin = "phase2_ppo"; models = { perception = "risk_gnn"; world = ""; };
             training = { freeze_loaded = []; }; stop = { iterations = 2; }; } );
END
train 0 policy --init-from "$work/whole"
for part in node_shift node_scale edge_shift edge_scale; do
    alike policy whole $part "phase 2"
done
cases=$((cases + 1))
cmp -s "$work/policy/checkpoints/$(cat "$work/policy/checkpoints/LATEST")/model.safetensors" \
    "$work/whole/checkpoints/$(cat "$work/whole/checkpoints/LATEST")/model.safetensors" && fail "phase 2 learnt nothing"
finish
