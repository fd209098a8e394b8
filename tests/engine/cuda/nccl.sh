#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Gradients from GPU to GPU, by a stand-in for NCCL (nccl/nccl.cc) between processes that each have an emulated GPU: the
# bits of one process and of the way through the hosts, whatever is late; nothing that NCCL forbids is called; and what
# goes wrong there is reported as it is for processors, first cause first.
set -u
. "${DT_SRCDIR:?}/tests/mpi_job.sh"
unset OMPI_MCA_rmaps_base_oversubscribe OMPI_MCA_hwloc_base_binding_policy # of the launcher, which knows
unset DTRAIN__ENGINE__DEVICE DT_EMULATED_SEED || true

name=cuda-nccl
. "$DT_SRCDIR/tests/run/job.inc"
builds=$(cd "$DT_BUILDDIR" && pwd)
DTRAIN_PLUGIN_PATH=$builds/tests/engine/cuda/emulated:$builds/phases/.libs:$builds/models/.libs:$builds/plugins/.libs
LD_LIBRARY_PATH=$builds/tests/engine/cuda/emulated/nccl${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
DT_EMULATE_DEVICES=4
DT_NCCL_DIR=$(cd "$work" && pwd)
export DTRAIN_PLUGIN_PATH LD_LIBRARY_PATH DT_EMULATE_DEVICES DT_NCCL_DIR
models='risk_gnn = { hidden = 4; heads = 1; layers = 1; };
world_lstm = { hidden = 4; layers = 1; };'
data='batch = 4; shards = 4;'
training='gradient_clip = 0.1;'
job <<'END'
comm = { bucket_mb = 0.01; timeout_s = 20.0; };
phases = ( { plugin = "phase1_world_model"; stop = { steps = 4; }; } );
END

# --- the same bits ---
train 0 whole --device cuda
enough_states 2
for n in 2 3 4; do
    DT_NCCL_LOG=$work/moved$n DT_EMULATED_SEED=$n train 0 n$n --nproc $n --device cuda
    same_all n$n "$n processes"
    cases=$((cases + 1))
    [ "$(grep -c "of $n: [1-9][0-9]* groups, [1-9]" "$work/moved$n")" -eq $n ] ||
        fail "$n processes: not by NCCL, or not to its end"
done
cases=$((cases + 1))
grep -q ", [1-9][0-9]* beside" "$work"/moved[234] || fail "nothing was sent while backward went on"
train 0 hosts --nproc 2 --device cuda --set comm.backend=mpi
same_all hosts "through the hosts"
# losses that move models of their own: what a step does not move is not sent
sac="--plugin phase_sac --threads 1 -q --device cuda --set env.instances=2 --set phase_sac.collect_steps=2
     --set phase_sac.intensity=16 --set data.batch=16 --set phase_sac.learning_starts=16 --set phase_sac.iterations=2
     --set phase_sac.policy_delay=2 --set controller_mlp.hidden=8 --set critic_mlp.hidden=8 --set evaluation.baselines=
     --set training.eval_interval=0 --set report.enabled=false --set comm.bucket_mb=0.004"
for of in one two; do
    cases=$((cases + 1))
    more=
    [ $of = one ] || more="--nproc 2 --set comm.backend=nccl"
    # shellcheck disable=SC2086 # options and their values
    timeout -k 5 "$limit" "$dtrain" run --run-dir "$work/sac-$of" $sac $more >"$work/out" 2>"$work/err" ||
        fail "phase_sac, $of: exit code $?"
done
cases=$((cases + 1))
[ -n "$(states sac-one)" ] && [ "$(states sac-one | tail -n 1)" = "$(states sac-two | tail -n 1)" ] ||
    fail "phase_sac on two: other bits"

train 0 hops --nproc 3 --device cuda --set comm.backend=nccl --max-steps 2
train 0 hops --resume --nproc 2 --device cuda --set comm.backend=nccl --no-graphs
same hops "3, then 2 processes"
counts=3
[ "${DT_LONG:-}" != 1 ] || counts="2 3"
for n in $counts; do
    DT_NCCL_LOG=$work/moved-fast$n train 0 fast$n --nproc $n --device cuda --set engine.reduction=fast
    cases=$((cases + 1))
    [ "$(grep -c "of $n: " "$work/moved-fast$n")" -eq $n ] || fail "$n processes, fast: not by NCCL, or not to its end"
done

# --- what goes wrong ---
# goes CODE FAULT [options]: and nobody tries again
goes() {
    want=$1 fault=$2
    shift 2
    DT_NCCL_FAULT=$fault train "$want" "$(echo "$fault" | tr : -)" --nproc 2 --device cuda --max-restarts 0 "$@"
}
goes 6 error:3:1
says 1+ "remote process exited or there was a network error: as DT_NCCL_FAULT wants it"
goes 6 refuse:3:1
says 1+ "NCCL, ncclGroupEnd: invalid usage: as DT_NCCL_FAULT wants it"
goes 6 hang:4:0 --set comm.timeout_s=2
says 1+ "moved data between GPUs by NCCL and timed out after 2 s"
goes 6 init:1:1 --set comm.timeout_s=2
says 1+ "moved data between GPUs by NCCL and timed out after 2 s"
DT_NCCL_FAULT=die:5:1 train 6 died --nproc 2 --device cuda --max-restarts 0
says 1+ "rank 1 (process "
says 0 "NCCL's stand-in"

# --- what is not there, or not the same ---
mkdir "$work/broken"
: >"$work/broken/libnccl.so.2"
LD_LIBRARY_PATH=$DT_NCCL_DIR/broken train 5 none --nproc 2 --device cuda --set comm.backend=nccl --max-restarts 0
says 1 'comm.backend = "nccl", and rank 0 has none: NCCL cannot be loaded: '
LD_LIBRARY_PATH=$DT_NCCL_DIR/broken train 0 without --nproc 2 --device cuda
same_all without "no NCCL, so through the hosts"
cases=$((cases + 1))
grep -q "gradients go through the hosts, which is slower; results are unchanged: rank 0: NCCL cannot be loaded" \
    "$work/without/train.log" || fail "the way through the hosts is not told"
train 2 alone --device cuda --set comm.backend=nccl
says 1 'comm.backend = "nccl" of phase 1, but this process was started alone'

finish
