#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Virtual ranks: all three phases end in the bits of one rank, on any number of ranks, with any buckets and threads, and
# with another number after a resume in the middle; parameters that are not the same on all ranks are found out.
# DT_RANKS_STEPS=200: as many steps of each phase, and up to 64 ranks (make check-ranks); else a few.
set -u
steps=${DT_RANKS_STEPS:-6}
counts=${DT_RANKS_COUNTS:-2 3 8}
name=ranks
. "${DT_SRCDIR:?}/tests/run/job.inc"
limit=0
data='batch = 64; shards = 64;'
training='epochs = 1000;'
save="every_steps = $((steps / 2));"
instances=64
job <<END
phase2_ppo = { train_batch = 128; fragment = 2; sgd_epochs = 1; };
phase3_constrained = { train_batch = 128; fragment = 2; sgd_epochs = 1; limits = "starvation:1000"; };
phases = ( { plugin = "phase1_world_model"; stop = { steps = $steps; }; },
           { plugin = "phase2_ppo"; stop = { steps = $steps; }; },
           { plugin = "phase3_constrained"; fresh = [ "controller" ]; stop = { steps = $steps; }; } );
END

on() { # N CODE DIR [options]: on so many virtual ranks
    n_ranks=$1
    shift
    train "$@" --set comm.backend=sim --set comm.ranks="$n_ranks"
}

train 0 whole
enough_states 4
for n in $counts; do
    on "$n" 0 "of$n" --check-sync 1
    same_all "of$n" "$n ranks"
done
on 4 0 small --set comm.bucket_mb=0.004
same_all small "4 ranks, small buckets"

# each rank writes a shard of the optimizer's state, which one rank or two read again
shards_of() { # DIR: of the newest checkpoint
    find "$work/$1/checkpoints/$(cat "$work/$1/checkpoints/LATEST")" -name 'optim-*-of-*.safetensors' | wc -l
}
on 3 0 sharded --set checkpoint.shard_mb=0.001
same_all sharded "3 ranks that write a shard each"
cases=$((cases + 1))
[ "$(shards_of sharded)" -eq 3 ] || fail "3 ranks wrote $(shards_of sharded) shards"
for n in 1 2; do
    on 3 0 "shards$n" --set checkpoint.shard_mb=0.001 --max-steps $((steps + steps / 2))
    on "$n" 0 "shards$n" --resume "$work/shards$n" --set checkpoint.shard_mb=0.001
    same "shards$n" "3 shards, then $n ranks"
done
# a rank cannot write its shard: training goes on, and the next checkpoint is whole
DTRAIN_FAULT=ckpt.shard:1
export DTRAIN_FAULT
on 2 0 unwritten --set checkpoint.shard_mb=0.001
unset DTRAIN_FAULT
cases=$((cases + 1))
grep -q 'checkpoint failed, training continues and saves again in .*rank 1.*cannot write shard 1' "$work/err" ||
    fail "says not which rank's shard was not written"
same unwritten "a shard that was not written"

# another number of ranks in the middle of the second phase
on 3 0 changed --max-steps $((steps + steps / 2))
on 8 0 changed --resume "$work/changed"
same changed "3 ranks, then 8"

# a bit turns over on rank 1
DTRAIN_FAULT=run.sync:2
export DTRAIN_FAULT
on 2 6 turned --check-sync 1 --set training.retries=0
cases=$((cases + 1))
grep -q 'after step 2 rank 1 has another tensor than rank 0, perception[.]' "$work/err" ||
    fail "says not which tensor differs on which rank"
DTRAIN_FAULT=run.sync:1
on 2 0 unnoticed --max-steps 2
unset DTRAIN_FAULT

finish
