#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Virtual ranks: all three phases end in the bits of one rank, on any number of ranks, with any buckets and threads, and
# with another number after a resume in the middle; parameters that are not the same on all ranks are found out.
# DT_RANKS_STEPS=200: as many steps of each phase, and up to 64 ranks (make check-ranks); else a few.
set -u
dtrain=${DT_BUILDDIR:?}/dtrain
work=$(mktemp -d ./test-ranks-XXXXXX) || exit 1
trap 'rm -rf "$work"' EXIT INT TERM
steps=${DT_RANKS_STEPS:-6}
counts=${DT_RANKS_COUNTS:-2 3 8}
failed=0
cases=0

cat >"$work/job.cfg" <<END
risk_gnn = { hidden = 16; heads = 2; layers = 1; };
world_lstm = { hidden = 16; layers = 1; };
controller_mlp = { hidden = 16; };
data = { batch = 64; shards = 64; };
training = { eval_interval = 0; save_interval = 0; warmup_epochs = 0; epochs = 1000; };
evaluation = { seeds = "1,2"; episodes = 1; baselines = ""; };
checkpoint = { every_seconds = 0; every_steps = $((steps / 2)); };
engine = { threads = 1; };
metrics = { tensorboard = false; };
report = { enabled = false; };
env = { instances = 64; };
env_traffic = { episode_s = 60.0; action_s = 5.0; };
phase2_ppo = { train_batch = 128; fragment = 2; sgd_epochs = 1; };
phase3_constrained = { train_batch = 128; fragment = 2; sgd_epochs = 1; limits = "starvation:1000"; };
phases = ( { plugin = "phase1_world_model"; stop = { steps = $steps; }; },
           { plugin = "phase2_ppo"; stop = { steps = $steps; }; },
           { plugin = "phase3_constrained"; fresh = [ "controller" ]; stop = { steps = $steps; }; } );
END

fail() {
    echo "FAIL: $*"
    tail -n 12 "$work/err" | sed 's/^/    /'
    failed=$((failed + 1))
}
# train CODE DIR [options]
train() {
    want=$1 dir=$2
    shift 2
    cases=$((cases + 1))
    "$dtrain" run --config "$work/job.cfg" --run-dir "$work/$dir" -q "$@" >"$work/out" 2>"$work/err"
    code=$?
    [ $code -eq "$want" ] || fail "$dir $*: exit code $code, expected $want"
}
on() { # N CODE DIR [options]: on so many virtual ranks
    n_ranks=$1
    shift
    train "$@" --set comm.backend=sim --set comm.ranks="$n_ranks"
}
states() { # of all checkpoints
    "$dtrain" ckpt list "$work/$1" --json | grep -o '"state_hash":"[0-9a-f]*"'
}
same() { # DIR WHAT
    cases=$((cases + 1))
    states "$1" >"$work/$1.states"
    cmp -s "$work/whole.states" "$work/$1.states" || fail "$2: other bits than those of one rank"
}

train 0 whole
states whole >"$work/whole.states"
cases=$((cases + 1))
[ "$(wc -l <"$work/whole.states")" -ge 4 ] || fail "too few checkpoints to compare"
for n in $counts; do
    on "$n" 0 "of$n" --check-sync 1
    same "of$n" "$n ranks"
done
on 4 0 small --set comm.bucket_mb=0.004
same small "4 ranks, small buckets"

# another number of ranks in the middle of the second phase
on 3 0 changed --max-steps $((steps + steps / 2))
on 8 0 changed --resume "$work/changed"
cases=$((cases + 1))
[ "$(states changed | tail -n 1)" = "$(tail -n 1 "$work/whole.states")" ] || fail "3 ranks, then 8: other bits"

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

echo "ranks: $cases cases, $failed failed"
[ $failed -eq 0 ]
