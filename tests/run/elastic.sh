#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs whose number of processes changes: a lost one is left out, its slot joins again at a checkpoint, one process alone
# is supervised as several are, and all end in the bits of one process. Ranges that cannot work are rejected.
set -u
. "${DT_SRCDIR:?}/tests/mpi_job.sh"
unset OMPI_MCA_rmaps_base_oversubscribe OMPI_MCA_hwloc_base_binding_policy # of the launcher, which knows
name=elastic
. "$DT_SRCDIR/tests/run/job.inc"
save='every_steps = 1; keep_last = 1000;'
instances=3
job <<'END'
phase2_ppo = { train_batch = 24; fragment = 8; sgd_epochs = 1; };
phases = ( { plugin = "phase1_world_model"; stop = { steps = 6; }; },
           { plugin = "phase2_ppo"; stop = { iterations = 4; }; training = { eval_interval = 2; }; } );
END
train 0 whole
enough_states 8

rank_of() { # RANK DIR: its process
    for pid in $(pgrep -f "^$dtrain run .*$2 "); do
        tr '\0' '\n' <"/proc/$pid/environ" 2>/dev/null | grep -qx "OMPI_COMM_WORLD_RANK=$1" && echo "$pid"
    done
}
await_line() { # TEXT FILE
    tries=0
    until grep -q -F -e "$1" "$2" 2>/dev/null || [ $tries -gt 600 ]; do
        sleep 0.05
        tries=$((tries + 1))
    done
}

# --- a lost process is left out; when its slot is back, all stop at a checkpoint, and it joins ---
# each life waits at its 60th collective until it is let go
DTRAIN_FAULT="comm.begin:60@$work/here" timeout -k 5 120 "$dtrain" run --config "$work/job.cfg" --run-dir "$work/lost" \
    --threads 1 --nproc 1:3 >"$work/out" 2>"$work/err" & # words after its folder, by which its processes are found
job=$!
await "$work/here"
kill -KILL "$(rank_of 1 lost)"
await_line "continuing with 2 processes instead of 3" "$work/err"
rm -f "$work/here"
await "$work/here"
await_line "3 instead of 2 processes from the next checkpoint on" "$work/err"
while kill -0 $job 2>/dev/null; do
    rm -f "$work/here"
    sleep 0.1
done
wait $job
code=$?
cases=$((cases + 1))
[ $code -eq 0 ] || fail "a process was lost: exit code $code"
says 1 "restart 1 of 3"
says 1 "continuing with 2 processes instead of 3"
says 1 "continuing with 3 processes instead of 2"
same_all lost "a process was left out, and joined again"
cases=$((cases + 1))
[ -z "$(pgrep -f "$work/lost ")" ] || fail "processes are left"

# --- what a lost process costs is what followed the last mirror, here the last step ---
DTRAIN_FAULT="comm.begin:90@$work/here,run.mirror:1+" timeout -k 5 120 "$dtrain" run --config "$work/job.cfg" \
    --run-dir "$work/mirrored" --threads 1 --nproc 2 --set checkpoint.every_steps=0 \
    --set checkpoint.mirror_seconds=5 >"$work/out" 2>"$work/err" &
job=$!
await "$work/here"
recorded=$(wc -l <"$work/mirrored/metrics.jsonl")
kill -KILL "$(rank_of 1 mirrored)"
await_line "restart 1 of 3" "$work/err"
while kill -0 $job 2>/dev/null; do
    rm -f "$work/here"
    sleep 0.1
done
wait $job
code=$?
cases=$((cases + 1))
[ $code -eq 0 ] || fail "mirrors: exit code $code"
resumed=$(sed -n 's/.*resuming .*mirrored\/mirror\/checkpoints\/step-0*\([0-9]*\) .*/\1/p' "$work/mirrored/train.log")
cases=$((cases + 1))
[ -n "$resumed" ] && [ "$resumed" -gt 1 ] && [ "$resumed" -ge $((recorded - 1)) ] ||
    fail "mirrors: continued from step '$resumed', $recorded were recorded"
same mirrored "from a mirror"
cases=$((cases + 1))
cut -d, -f1,2 "$work/whole/metrics.jsonl" >"$work/a"
cut -d, -f1,2 "$work/mirrored/metrics.jsonl" >"$work/b"
cmp -s "$work/a" "$work/b" || fail "mirrors: other records"
cases=$((cases + 1))
[ ! -e "$work/mirrored/mirror" ] || fail "a mirror is left"

# --- one process, by the hostfile: supervised as several are, and another number by a resume ---
printf 'localhost slots=1\n' >"$work/hosts"
train 0 hosted --nnodes 1:2 --hostfile "$work/hosts" --phase 1
cases=$((cases + 1))
[ -e "$work/hosted/launch.log" ] || fail "one process of --nnodes 1:2 is not supervised"
train 0 hosted --nproc 1:2 --resume "$work/hosted" --phase all
same_all hosted "one process, then two"

# --- more processes than have work: each phase continues on fewer, which is no restart ---
train 0 limited --nproc 1:4 --max-restarts 0
says 1 "phase 2 (phase2_ppo) has work for 3 processes" # env.instances
says 1 "continuing with 3 processes instead of 4"
same_all limited "as many processes as instances"
train 0 planned --nproc 1:4 --dry-run
train 0 planned --nproc 1:3 --set data.shards=2 --phase 1 --dry-run
train 2 planned --nproc 4:5 --phase 2 --dry-run
train 0 sharded --nproc 1:3 --max-restarts 0 --set data.shards=2 --phase 1 --max-steps 1
says 1 "phase 1 (phase1_world_model) has work for 2 processes"
says 1 "continuing with 2 processes instead of 3"

# --- rejected ---
train 2 crowded --nproc 4 --phase 2
says 1 "env.instances = 3 is less than the 4 ranks" # their number is fixed
for ranks in '--nproc 4' '--nproc 4:5' '--set comm.backend=sim --set comm.ranks=4'; do
    train 2 crowded-later $ranks
    says 1 "phase 2, tried before phase 1 begins: env.instances = 3 is less than the 4 ranks"
    cases=$((cases + 1))
    [ ! -e "$work/crowded-later/checkpoints" ] || fail "$ranks: phase 1 was trained"
done
train 2 bad --nproc 4:2
says 1 "--nproc 4:2: the minimum 4 is larger than the maximum 2; use --nproc 2:4"
train 2 bad --nproc 2 --nnodes 3:1 --hostfile "$work/hosts"
says 1 "--nnodes 3:1: the minimum 3 is larger than the maximum 1; use --nnodes 1:3"
train 2 bad --nproc 1:2 --nnodes 2:3 --hostfile "$work/hosts"
says 1 "names 1 host: add hosts, or lower the minimum"
train 2 bad --nproc 2:3 --hostfile "$work/hosts"
says 1 "have 1 slot "
train 2 bad --nnodes 1:2
says 1 "--nnodes 1:2 needs --hostfile FILE"
train 2 bad --nproc 2:3 --set data.shards=1
says 1 "2 ranks share data.shards = 1 shards"
for range in 0:2 2: :2 a:b 1:2:3; do
    train 2 bad --nproc $range
    says 1 "--nproc $range: expected a whole number of at least 1, or MIN:MAX of two"
done
train 2 bad --nproc 1:5000
says 1 "at most 4096 processes"
train 2 bad --nproc 1:2 --set comm.shard_weights=2,1
says 1 "gives each rank its part, and with MIN:MAX the number of ranks changes"
cases=$((cases + 1))
[ ! -e "$work/bad" ] || fail "a rejected run left a folder"
finish
