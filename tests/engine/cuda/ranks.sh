#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Several processes with an emulated GPU each: phases 1 and 2 end in the bits of one process, on any number of them,
# resumed on another one, and whatever is late (DT_EMULATED_SEED). GPUs, drivers and libraries that differ are refused
# where the same bits were promised.
set -u
. "${DT_SRCDIR:?}/tests/mpi_job.sh"
unset OMPI_MCA_rmaps_base_oversubscribe OMPI_MCA_hwloc_base_binding_policy # of the launcher, which knows
unset DTRAIN__ENGINE__DEVICE DT_EMULATED_SEED || true

name=cuda-ranks
. "$DT_SRCDIR/tests/run/job.inc"
builds=$(cd "$DT_BUILDDIR" && pwd)
DTRAIN_PLUGIN_PATH=$builds/tests/engine/cuda/emulated:$builds/phases/.libs:$builds/models/.libs:$builds/plugins/.libs
DT_EMULATE_DEVICES=4
export DTRAIN_PLUGIN_PATH DT_EMULATE_DEVICES
models='risk_gnn = { hidden = 4; heads = 1; layers = 1; };
world_lstm = { hidden = 4; layers = 1; };
controller_mlp = { hidden = 8; };'
data='batch = 4; shards = 4;'
instances=4
training='gradient_clip = 0.1;'
job <<'END'
comm = { bucket_mb = 0.01; };
phase2_ppo = { train_batch = 16; fragment = 8; sgd_epochs = 1; };
phases = ( { plugin = "phase1_world_model"; stop = { steps = 4; }; },
           { plugin = "phase2_ppo"; stop = { iterations = 1; }; } );
END

train 0 whole --device cuda
enough_states 3
# tests/engine/device/ranks.sh has all numbers of processes, on a device without emulated kernels
counts=3
[ "${DT_LONG:-}" != 1 ] || counts="2 3 4"
for n in $counts; do
    DT_EMULATED_SEED=$n train 0 n$n --nproc $n --set comm.backend=mpi --device cuda
    same_all n$n "$n processes"
done
train 0 hops --nproc 3 --set comm.backend=mpi --device cuda --phase 1 --max-steps 2
train 0 hops --resume --nproc 2 --set comm.backend=mpi --device cuda --phase all --no-graphs
same hops "3, then 2 processes"

# --- stored in half; of fp16 the first steps overflow, on all ranks alike, until the loss scale has fallen ---
amp="--phase 1 --max-steps 4 --set amp.enabled=true --set amp.initial_scale=16777216 --set amp.hysteresis=1
    --set amp.backoff_factor=0.0009765625"
halves=2 types=fp16
[ "${DT_LONG:-}" != 1 ] || halves="2 3" types="bf16 fp16"
for half in $types; do
    # shellcheck disable=SC2086 # options and their values
    train 0 $half --device cuda $amp --set amp.dtype=$half
    states $half >"$work/one.states"
    for n in $halves; do
        # shellcheck disable=SC2086
        DT_EMULATED_SEED=$n train 0 $half$n --nproc $n --set comm.backend=mpi --device cuda $amp --set amp.dtype=$half
        cases=$((cases + 1))
        states $half$n >"$work/several.states"
        [ -s "$work/one.states" ] && cmp -s "$work/one.states" "$work/several.states" ||
            fail "$n processes in $half: other bits than one"
    done
done
cases=$((cases + 1))
skipped=$(sed -n 's/.*"overflows":\([0-9]*\).*/\1/p' "$work"/fp162/checkpoints/*4/state.json)
[ "${skipped:-0}" -ge 1 ] && [ "$skipped" -lt 4 ] || fail "of 4 steps in fp16 ${skipped:-none} overflowed"

# --- what differs ---
OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
export OMPI_MCA_rmaps_base_oversubscribe OMPI_MCA_hwloc_base_binding_policy
# unlike CODE DIR ASSIGNMENT [options]: rank 1 has that in its environment
unlike() {
    want=$1 dir=$2 what=$3
    shift 3
    cases=$((cases + 1))
    set -- "$dtrain" run --config "$work/job.cfg" --run-dir "$work/$dir" -q --phase 1 --device cuda \
        --set comm.backend=mpi "$@"
    timeout -k 5 60 mpirun -q -n 1 "$@" : -n 1 env "$what" "$@" >"$work/out" 2>"$work/err"
    code=$?
    [ $code -eq "$want" ] || fail "$what: exit code $code, expected $want"
}
unlike 2 named DT_EMULATE_NAME=another
says 1 "rank 1 computes on another, rank 0 emulated GPU: ranks that round differently diverge; use one kind of"
unlike 2 driven DT_EMULATE_DRIVER=12080
says 1 "rank 1 computes with driver 12080, CUDA 13000, cuBLASLt 130000, rank 0 driver 13000, CUDA 13000, cuBLASLt 130000"
unlike 2 linked DT_EMULATE_BLAS=120805
says 1 "rank 1 computes with driver 13000, CUDA 13000, cuBLASLt 120805, rank 0 driver 13000, CUDA 13000, cuBLASLt 130000"
unlike 0 fast DT_EMULATE_BLAS=120805 --set engine.reduction=fast
DT_EMULATE_DEVICES=1 train 2 crowded --nproc 2 --set comm.backend=mpi --device cuda
says 1 "ranks 0 and 1 both compute on GPU-656d756c-6174-6564-2047-505520303031 (emulated GPU)"

finish
