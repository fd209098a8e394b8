#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# How gradients of ranks become one: engine.reduction = fast is near exact sums, repeats its bits, and says so where
# another number of ranks goes on; comm.wire = bf16 and fp16 round on one rank as on many, and send less;
# comm.shard_weights changes nothing. On virtual ranks; sums_mpi.sh does the same on processes.
set -u
backend=${DT_SUMS_BACKEND:-sim}
name=sums
. "${DT_SRCDIR:?}/tests/run/job.inc"
data='batch = 16; shards = 16;'
training='epochs = 1000;'
save='every_steps = 3;'
job <<'END'
comm = { bucket_mb = 0.02; };
phases = ( { plugin = "phase1_world_model"; stop = { steps = 6; }; } );
END

# on N CODE DIR [options]: on so many ranks
on() {
    n_ranks=$1
    shift
    if [ "$backend" = sim ]; then
        set -- "$@" --set comm.backend=sim --set comm.ranks="$n_ranks"
    elif [ "$n_ranks" -gt 1 ]; then
        set -- "$@" --nproc "$n_ranks"
    fi
    train "$@"
}
as() { # DIR DIR WHAT: the same bits in all checkpoints
    cases=$((cases + 1))
    [ -n "$(states "$1")" ] && [ "$(states "$1")" = "$(states "$2")" ] || fail "$3: other bits"
}
other() { # DIR DIR WHAT
    cases=$((cases + 1))
    [ -n "$(states "$1")" ] && [ "$(states "$1" | tail -n 1)" != "$(states "$2" | tail -n 1)" ] || fail "$3: the same bits"
}
weights() { # DIR: of the last checkpoint, a number a line
    file=$work/$1/checkpoints/step-000000000006/model.safetensors
    header=$(od -An -tu8 -N8 "$file" | tr -d ' ')
    od -An -v -tf4 -w4 -j$((header + 8)) "$file"
}
# near DIR DIR MOST MEAN WHAT: no weight is further away, nor all of them by the root of the mean square
near() {
    cases=$((cases + 1))
    weights "$1" >"$work/a"
    weights "$2" >"$work/b"
    paste "$work/a" "$work/b" | awk -v most="$3" -v mean="$4" '
        { d = $1 - $2; d = d < 0 ? -d : d; far = d > far ? d : far; sum += d * d; n++ }
        !(d <= most) { bad++ }
        END { print far, "and in the mean", sqrt(sum / n); exit !(n > 1000 && NF == 2 && bad == 0 && sum <= n * mean ^ 2) }' \
        >"$work/far" || fail "$5: weights are up to $(cat "$work/far") away, allowed are $3 and $4"
}
sent() { # DIR: MB a step
    grep -o 'rank 0 sends [0-9.]*' "$work/$1/train.log" | head -n 1 | tr -dc 0-9.
}

on 1 0 whole
# --- fast: six updates of at most the rate, 1e-3, each wrong by the leaves' cancellation times 15 * 2^-24; 1e-5 in all
# allows them to cancel to less than a hundredth
fast="--set engine.reduction=fast"
on 1 0 fast1 $fast
as fast1 whole "fast on one rank"
for n in 2 3; do
    on $n 0 fast$n $fast
    on $n 0 again$n $fast --check-sync 1
    near fast$n whole 1e-5 1e-6 "fast on $n ranks"
    as fast$n again$n "fast on $n ranks, twice"
done
other fast3 whole "fast on 3 ranks"
on 3 0 half $fast --max-steps 3
on 3 0 half $fast --resume "$work/half"
as half fast3 "fast on 3 ranks, resumed"
cases=$((cases + 2))
! grep -q not_reproducible "$work/half/meta.json" || fail "a resume on as many ranks is marked"
"$dtrain" ckpt inspect "$work/half" --json | grep -q '"ranks":3,"reduction":"fast"' || fail "the checkpoint does not say it"
on 3 0 moved $fast --max-steps 3
on 2 0 moved $fast --resume "$work/moved"
says 1 "engine.reduction = fast, and"
says 1 "was saved by 3 ranks, here there are 2: results will differ in the last digits"
near moved whole 1e-5 1e-6 "fast on 3, then 2 ranks"
cases=$((cases + 1))
grep -q '"not_reproducible_from_step":3' "$work/moved/meta.json" || fail "a resume on other ranks is not marked"

# --- halves: a weight moves by at most the rate a step, either way; most follow the gradient, which is rounded to 1/256
# of itself where it is bf16, and the weights move by six times the rate
for wire in bf16 fp16; do
    on 1 0 $wire --set comm.wire=$wire
    other $wire whole "$wire"
    near $wire whole 12e-3 1e-4 "$wire"
    for n in 2 3; do
        on $n 0 $wire$n --set comm.wire=$wire --check-sync 1
        as $wire$n $wire "$wire on $n ranks"
    done
done
on 3 0 turns --set comm.wire=bf16 --max-steps 3
on 2 0 turns --set comm.wire=bf16 --resume "$work/turns"
as turns bf16 "bf16 on 3, then 2 ranks"
cases=$((cases + 1))
on 2 0 exact2
awk "BEGIN { exit !($(sent bf162) > 0.7 * $(sent exact2) && $(sent bf162) < 0.76 * $(sent exact2)) }" ||
    fail "2 ranks send $(sent bf162) MB with bf16 and $(sent exact2) without"
on 2 2 refused --set comm.wire=bf16 --set engine.reduction=fast
says 1 'comm.wire = "bf16" with engine.reduction = "fast" in phase 1: the ranks'"'"' library sums fp32'
on 1 2 refused --set comm.wire=int8
says 1 "comm.wire"

# --- shards by weights
on 2 0 dealt2 --set comm.shard_weights=3,1
as dealt2 whole "12 and 4 shards"
on 3 0 dealt3 --set comm.shard_weights=1,5,2 --max-steps 3
cases=$((cases + 1))
grep -q ": 2 10 4" "$work/dealt3/train.log" || fail "the shards of ranks are not told"
on 3 2 dealt3 --resume "$work/dealt3" --set comm.shard_weights=1,1
says 1 "comm.shard_weights of phase 1 has 2 numbers, and 3 ranks train: give one per rank"
on 3 0 dealt3 --resume "$work/dealt3" --set comm.shard_weights=7,2,2
as dealt3 whole "2, 10 and 4 shards, then 10, 3 and 3"
cases=$((cases + 1))
"$dtrain" eval --checkpoint "$work/dealt3" >"$work/out" 2>"$work/err" || fail "what weighed ranks trained is not evaluated by one"
on 2 0 dealt16 --set comm.shard_weights=3,1 --set comm.wire=bf16
as dealt16 bf16 "12 and 4 shards in bf16"
on 2 2 refused --set comm.shard_weights=100,1
says 1 "rank 1 with the weight 1 of 101 gets none of 16 shards"
on 2 2 refused --set comm.shard_weights=3,-1
says 1 "expected whole numbers from 1 to 1000000, one per rank"
on 2 2 refused --set comm.shard_weights=3,1 $fast
says 1 'comm.shard_weights with engine.reduction = "fast" in phase 1'

finish
