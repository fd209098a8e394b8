#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# stop.patience: the phase ends after so many evaluations that are no better, at the same step and in the same bits after
# kill -9 at any iteration and with two ranks.
set -u
. "$DT_SRCDIR/tests/check.inc"
. "$DT_SRCDIR/tests/study/study.inc"
long="--set phase2_ppo.iterations=100 --set training.eval_interval=1 --set checkpoint.every_steps=20 --threads 1 -q"
rule='stop={ metric = "return/mean"; patience = 2; min_delta = 1000.0; }'
sed "s/^    plugin = .*/&\n    $(echo "$rule" | sed 's/stop=/stop = /; s/[\/&]/\\&/g');/" "$work/tiny.cfg" >"$work/patient.cfg"
train() { # FOLDER [options]
    folder=$1
    shift
    # shellcheck disable=SC2086
    "$dtrain" run --config "$work/patient.cfg" $long --run-dir "$work/$folder" --resume auto "$@"
}
state_hash() { "$dtrain" ckpt inspect "$work/$1" --json | sed -n 's/.*"state_hash":"\([0-9a-f]*\)".*/\1/p'; }
records() { cut -d, -f1,2 "$work/$1/metrics.jsonl"; }

expect 0 '' train whole
n=$(records whole | wc -l)
[ "$n" -eq 3 ] || fail "$n iterations, expected 3: the first evaluation is the best, two are no better"
for at in 2 3; do
    expect 137 '' env DTRAIN_FAULT=run.iterate:$at! "$dtrain" run --config "$work/patient.cfg" $long \
        --run-dir "$work/killed$at"
    expect 0 '' train killed$at
    [ "$(state_hash killed$at)" = "$(state_hash whole)" ] || fail "other bits after kill -9 in iteration $at"
    [ "$(records killed$at)" = "$(records whole)" ] || fail "other records after kill -9 in iteration $at"
done
expect 75 '' env DTRAIN_FAULT=run.stop:2 "$dtrain" run --config "$work/patient.cfg" $long --run-dir "$work/stopped"
leaks=${LSAN_OPTIONS-}
LSAN_OPTIONS=$leaks${leaks:+:}detect_leaks=0 # the library of MPI keeps what it has until the process ends
export LSAN_OPTIONS
expect 0 '' train stopped --nproc 2
LSAN_OPTIONS=$leaks
[ "$(records stopped)" = "$(records whole)" ] || fail "other records after a stop and on two ranks"
# another metric after a resume: what was counted of the first one does not count
sed 's/patience = 2/patience = 9/' "$work/patient.cfg" >"$work/first.cfg"
sed 's,return/mean,length/mean,' "$work/patient.cfg" >"$work/second.cfg"
# shellcheck disable=SC2086
expect 0 '' "$dtrain" run --config "$work/first.cfg" $long --set phase2_ppo.iterations=2 --run-dir "$work/changed"
# shellcheck disable=SC2086
expect 0 '' "$dtrain" run --config "$work/second.cfg" $long --run-dir "$work/changed" --resume auto
n=$(records changed | wc -l)
[ "$n" -eq 5 ] || fail "$n iterations, expected 5: two, and three with the other metric"
# what training records, without evaluations: the same, and from a checkpoint within an epoch
sed 's,metric = "return/mean",metric = "train/charts/episodic_return",' "$work/patient.cfg" >"$work/trained.cfg"
trained() { # FOLDER [options]
    folder=$1
    shift
    # shellcheck disable=SC2086
    "$dtrain" run --config "$work/trained.cfg" $long --set training.eval_interval=0 --run-dir "$work/$folder" --resume auto "$@"
}
expect 0 '' trained t
n=$(records t | wc -l)
[ "$n" -eq 3 ] || fail "$n iterations, expected 3: the first round is the best, two are no better"
expect 137 '' env DTRAIN_FAULT=run.iterate:3! "$dtrain" run --config "$work/trained.cfg" $long \
    --set training.eval_interval=0 --run-dir "$work/tkilled"
expect 0 '' trained tkilled
[ "$(state_hash tkilled)" = "$(state_hash t)" ] || fail "other bits after kill -9, by a metric of training"
LSAN_OPTIONS=$leaks${leaks:+:}detect_leaks=0
expect 0 '' trained tranks --nproc 2
LSAN_OPTIONS=$leaks
[ "$(records tranks)" = "$(records t)" ] || fail "other records on two ranks, by a metric of training"
# episodes of 200 steps, rounds of 64: three of four rounds have no value, as has the first one after a resume
slow() { # FOLDER [options]
    trained "$@" --set env.id=env_pendulum
}
expect 0 '' slow s
n=$(records s | wc -l)
[ "$n" -eq 10 ] || fail "$n iterations, expected 10: episodes end in rounds 4, 7 and 10"
expect 137 '' env DTRAIN_FAULT=run.iterate:6! "$dtrain" run --config "$work/trained.cfg" $long \
    --set training.eval_interval=0 --set env.id=env_pendulum --run-dir "$work/skilled"
expect 0 '' slow skilled
[ "$(state_hash skilled)" = "$(state_hash s)" ] || fail "other bits after kill -9, of rounds without a value"
# what has no value in the whole phase: an error with the names that have one; a warning where the run was resumed
expect 2 'train/charts/episodic_return' slow snever --set phase2_ppo.iterations=2
grep 'train/charts/episodic_return' "$work/err" | grep -qF 'charts/episodes' || fail "the names are not listed"
! grep 'train/charts/episodic_return' "$work/err" | grep -q 'time/\|_per_s' || fail "names are listed that are rejected"
expect 137 '' env DTRAIN_FAULT=run.iterate:2! "$dtrain" run --config "$work/trained.cfg" $long \
    --set training.eval_interval=0 --set env.id=env_pendulum --set phase2_ppo.iterations=2 --run-dir "$work/sresumed"
expect 0 'train/charts/episodic_return' slow sresumed --set phase2_ppo.iterations=2
expect 2 'train/nothing' trained tnone --set 'phases.0.stop.metric=train/nothing' --set phase2_ppo.iterations=2
for name in time/step charts/env_steps_per_s charts/learn_samples_per_s ranks/busy_s; do
    expect 2 "train/$name" trained tmeasured --set "phases.0.stop.metric=train/$name" --dry-run
done
expect 0 '' trained tsimulated --set 'phases.0.stop.metric=train/costs/x_per_s' --dry-run # of simulated seconds
expect 2 'min_delta' "$dtrain" run --config "$work/tiny.cfg" --set phases.0.stop.min_delta=1 --run-dir "$work/none"
finish patience
