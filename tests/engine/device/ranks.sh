#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Several processes with a device each, which is one of host memory here (host_device.c): all three phases end in the bits
# of one process, on any number of them, resumed on another one, and where one was killed; so do phases whose losses
# move models of their own. What cannot work is refused.
set -u
. "${DT_SRCDIR:?}/tests/mpi_job.sh"
unset OMPI_MCA_rmaps_base_oversubscribe OMPI_MCA_hwloc_base_binding_policy # of the launcher, which knows
unset DTRAIN__ENGINE__DEVICE || true

name=device-ranks
. "$DT_SRCDIR/tests/run/job.inc"
. "$DT_SRCDIR/tests/run/half.inc"
DTRAIN_PLUGIN_PATH=$(cd "$DT_BUILDDIR" && pwd)/tests/engine/device/.libs
HOST_DEVICES=4
export DTRAIN_PLUGIN_PATH HOST_DEVICES
engine='threads = 1; slice_rows = 2048;' # on the CPU a shard is one slice too, as on the device
job <<'END'
phase2_ppo = { train_batch = 40; fragment = 8; sgd_epochs = 1; };
phase3_constrained = { train_batch = 40; fragment = 8; sgd_epochs = 1; limits = "starvation:1000"; };
phases = ( { plugin = "phase1_world_model"; stop = { steps = 5; }; training = { eval_interval = 1; }; },
           { plugin = "phase2_ppo"; stop = { iterations = 2; }; training = { eval_interval = 1; }; },
           { plugin = "phase3_constrained"; fresh = [ "controller" ]; stop = { iterations = 2; }; } );
END

records() { # DIR: what was recorded, without times
    cut -d, -f1,2,4,5 "$work/$1/metrics.jsonl"
}

# --- the same bits, and those of the CPU ---
train 0 whole --device cuda
enough_states 4
train 0 cpu --device cpu --phase 1
cases=$((cases + 1))
[ "$(states cpu | tail -n 1)" = "$(states whole | grep -A 1 '"step":5$' | tail -n 1)" ] ||
    fail "phase 1: other bits than on the CPU: $(states cpu | tail -n 1)"
for n in 2 3 4; do
    train 0 n$n --nproc $n --set comm.backend=mpi --device cuda
    same_all n$n "$n processes"
    cases=$((cases + 1))
    records whole >"$work/a"
    records n$n >"$work/b"
    cmp -s "$work/a" "$work/b" || fail "$n processes: other records: $(diff "$work/a" "$work/b" | head -n 4)"
done
train 0 clipped --device cuda --phase 1 --set training.gradient_clip=0.1
train 0 clipped3 --nproc 3 --set comm.backend=mpi --device cuda --phase 1 --set training.gradient_clip=0.1 --set comm.bucket_mb=0.01
cases=$((cases + 1))
[ "$(states clipped)" = "$(states clipped3)" ] || fail "clipped, in small buckets: other bits"

# --- on other numbers of processes in the middle, and where one was killed ---
train 0 hops --nproc 2 --set comm.backend=mpi --device cuda --phase 1 --max-steps 3
train 0 hops --resume --nproc 3 --set comm.backend=mpi --device cuda --phase 1-2
train 0 hops --resume --device cuda --phase all --set comm.backend=auto
same hops "2, then 3 processes, then one"
DTRAIN_FAULT="comm.begin:60@$work/here" timeout -k 5 120 "$dtrain" run --config "$work/job.cfg" --run-dir "$work/killed" \
    -q --nproc 2 --set comm.backend=mpi --device cuda --phase 1 >"$work/out" 2>"$work/err" &
job=$!
await "$work/here"
kill -KILL "$(pgrep -f "^$dtrain run .*/killed " | tail -n 1)"
while kill -0 $job 2>/dev/null; do # those who begin again may get as far, and wait there too
    rm -f "$work/here"
    sleep 0.1
done
cases=$((cases + 1))
wait $job || fail "a process was killed: exit code $?"
cases=$((cases + 1))
[ "$(states killed | tail -n 1)" = "$(states cpu | tail -n 1)" ] || fail "a process was killed: other bits"
says 1+ " is gone"
train 0 checked --nproc 2 --set comm.backend=mpi --device cuda --phase 1 --check-sync 1

# --- losses that move models of their own: what a step does not move is not sent; a replay, which all write ---
learn() { # DIR [options]
    dir=$1
    shift
    cases=$((cases + 1))
    timeout -k 5 "$limit" "$dtrain" run --run-dir "$work/$dir" -q --threads 1 --set engine.slice_rows=2048 \
        --set env.instances=4 --set controller_mlp.hidden=16 --set critic_mlp.hidden=16 --set training.eval_interval=0 \
        --set evaluation.baselines= --set report.enabled=false --set checkpoint.every_seconds=0 "$@" \
        >"$work/out" 2>"$work/err" || fail "$dir: exit code $?"
}
agree() { # DIR DIR WHAT
    cases=$((cases + 1))
    [ -n "$(states "$1" | tail -n 1)" ] && [ "$(states "$1" | tail -n 1)" = "$(states "$2" | tail -n 1)" ] ||
        fail "$3: other bits"
}
everywhere() { # NAME [options]
    of=$1
    shift
    learn "$of" --device cpu "$@"
    learn "$of-device" --device cuda "$@"
    agree "$of" "$of-device" "$of on a device"
    for n in 2 3; do
        learn "$of-$n" --nproc $n --set comm.backend=mpi --device cuda --set comm.bucket_mb=0.01 "$@"
        agree "$of" "$of-$n" "$of on $n devices"
    done
    has_bf16 || return 0
    learn "$of-half" --device cpu --set amp.enabled=true "$@"
    learn "$of-half-2" --device cpu --set amp.enabled=true --nproc 2 "$@"
    agree "$of-half" "$of-half-2" "$of in half precision on 2 processes"
    cases=$((cases + 1))
    [ "$(states "$of" | tail -n 1)" != "$(states "$of-half" | tail -n 1)" ] || fail "$of: half precision changes nothing"
}
of_replay() { # PHASE [options]
    phase=$1
    shift
    everywhere "$phase" --plugin "$phase" --set "$phase.collect_steps=4" --set "$phase.intensity=16" \
        --set "$phase.learning_starts=64" --set "$phase.buffer_size=100" --set "$phase.iterations=4" \
        --set data.batch=16 --set "$phase.policy_delay=2" "$@"
}
of_replay phase_sac --set phase_sac.priority=0.6
of_replay phase_ddpg --set env.id=snakes --set env_snakes.max_steps=8
everywhere phase_coma --plugin phase_coma --set env.id=matrix --set phase_coma.updates=4 --set phase_coma.batch=64 \
    --set data.batch=32

# --- a GPU each ---
HOST_DEVICES=2 train 2 crowded --nproc 3 --set comm.backend=mpi --device cuda
says 1 "ranks 0 and 2 both compute on GPU-none (host memory), and each rank needs a GPU of its own; rank 2 sees 2:"
train 2 named --nproc 2 --set comm.backend=mpi --device cuda:1
says 1 "ranks 0 and 1 both compute on GPU-none1"
train 2 virtual --device cuda --set comm.backend=sim --set comm.ranks=2
says 1 '2 virtual ranks (comm.backend = "sim") are one process, and a process has one GPU; start a process for each'

finish
