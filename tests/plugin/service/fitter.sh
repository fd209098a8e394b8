#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# A phase that makes and changes its samples itself, names its parameters and talks to other ranks
# (tests/plugin/service/fitter.c): threads, ranks, processes, batches read ahead and resumes end in the same bits; what
# it does wrong is said.
set -u

name=fitter
. "${DT_SRCDIR:?}/tests/run/job.inc"
DTRAIN_PLUGIN_PATH=$DT_BUILDDIR/tests/plugin/service/.libs
export DTRAIN_PLUGIN_PATH
cat >"$work/job.cfg" <<'END'
models = { perception = ""; world = ""; controller = ""; net = "fitter_net"; };
data = { batch = 16; shards = 8; };
training = { epochs = 4; eval_interval = 0; save_interval = 0; warmup_epochs = 0; learning_rate = 0.05; };
checkpoint = { every_seconds = 0; every_steps = 5; mirror_seconds = 0; keep_last = 9; };
metrics = { tensorboard = false; };
report = { enabled = false; };
phases = ( { plugin = "fitter"; } );
END

train 0 whole --threads 1 --set data.prefetch=0
enough_states 4
train 0 ahead --threads 3 --set data.prefetch=8 --set data.workers=3
same_all ahead "3 threads, 8 batches ahead"
same_ranks --threads 1
for n in 5 7; do # at an epoch's end, and within one
    train 0 cut$n --max-steps $n
    train 0 cut$n --resume "$work/cut$n"
    same cut$n "stopped after $n steps"
done
train 0 stale --set fitter.stale=true
cases=$((cases + 1))
last=$(cat "$work/whole/checkpoints/LATEST")
! cmp -s "$work/whole/checkpoints/$last/model.safetensors" "$work/stale/checkpoints/$last/model.safetensors" ||
    fail "samples that changed taught the same"

wrong() { # CODE TEXT WHAT
    rm -rf "${work:?}/wrong"
    train "$1" wrong --set "fitter.wrong=$3"
    says 1+ "$2"
}
wrong 3 'fitter: data of its own requires fields, symbols, count, sizes and read' 'no read'
wrong 3 'fitter: data of its own requires fields, symbols, count, sizes and read' 'small'
wrong 3 'gives its trainer no data' 'no data'
wrong 3 'gives its trainer no record' 'no record'
wrong 3 'gives its trainer no models' 'no models'
wrong 3 'gives its trainer no model at place 0 of 1' 'no model'
wrong 3 'gives its trainer 4294967295 models; at most 8' 'many models'
wrong 3 'creates a trainer without a description' 'no desc'
wrong 3 'broadcast from rank 1; there are 1, from 0 on' 'root'
wrong 3 'reduce by 9; expected DT_RANKS_SUM' 'how'
wrong 3 "column 0 of x: 3 values, least -1, greatest 1, mean 2, deviation 0.5; these are inconsistent" 'mean'
wrong 3 "the phase's data has no field z" 'field'
wrong 3 'field x of the phase'"'"'s data is "A 2" of f32, not 3 columns of f32' 'columns'
wrong 3 'fitter knows x alone' 'unknown'
wrong 3 'number 0 of constant net.constant.unit is nan, but must be finite' 'number'
wrong 3 'no model of this phase has a constant "net.out.w"' 'trained'
wrong 3 'constant net.constant.unit has 2 numbers, not 1' 'size'
wrong 3 'no loaded plugin has an op named fitter_none; there are fitter_bend, fitter_stiff' 'no op'
wrong 3 'op fitter_stiff has no derivative' 'stiff'
wrong 3 'fitter: the role of a model it binds: its name is NULL' 'no role'
wrong 3 'fitter: offered input 0: its name is NULL' 'no port name'
wrong 3 'fitter: dims of offered input x is NULL' 'no dims'
wrong 3 'fitter_net is recorded with input 0: its name is NULL' 'no input name'
wrong 3 'fitter: a group of its trainer: its name is NULL' 'no group name'
wrong 3 'fitter: loss 0 of group all: its name is NULL' 'no loss name'
wrong 3 'fitter: the name of scalar of dtrain.metrics/1 is NULL' 'no metric name'
wrong 3 'scalar of dtrain.metrics/1 is called with an empty name' 'empty metric name'
wrong 3 'fitter: the step input of set: its name is NULL' 'no step input name'
wrong 1 'fitter: iterate returned DT_EIO' 'no reason'
wrong 3 'fitter: iterate returned -77, which is not a code' 'own code'
wrong 2 'the phase: record returned DT_ENOTFOUND' 'no reason to record'
wrong 2 'its losses depend on no parameter that is trained (3 registered, the first is net.out.w)' 'constant loss'
train 2 frozen --set training.freeze=net.*
says 1+ 'its losses depend on no parameter that is trained'
for what in 'last starts' 'last iterates'; do # the others are in calls that this rank will not make
    for ranks in '--set comm.backend=sim --set comm.ranks=3' '--nproc 2'; do
        [ "$ranks" != '--nproc 2' ] || has_mpi || continue
        rm -rf "${work:?}/wrong"
        # shellcheck disable=SC2086
        train 3 wrong $ranks --set comm.timeout_s=60 --set "fitter.wrong=$what"
        says 1+ 'fitter fails on its last rank'
        says 0 'timed out'
    done
done
cases=$((cases + 1))
"$dtrain" check fitter --config "$work/job.cfg" --set 'fitter.wrong=last starts' >"$work/said" 2>&1 && fail "check accepts a start that fails on rank 1"
grep -q '^FAIL phase fitter: .*fitter fails on its last rank' "$work/said" || fail "check does not name what fails on rank 1"
cases=$((cases + 1))
FITTER_DEFAULTS=1 "$dtrain" check fitter --config "$work/job.cfg" >"$work/said" 2>&1 && fail "check accepts defaults of a plugin"
grep -q '^FAIL fitter: extension dtrain.defaults/1 is returned by the plugin fitter.*from a phase' "$work/said" ||
    fail "check says nothing of defaults that have no effect"
cases=$((cases + 1))
"$dtrain" check fitter >"$work/said" 2>&1
for op in 'fitter_bend: writes its outputs, its derivative is that of central differences' \
    'fitter_stiff: writes its outputs; it has no derivative'; do
    grep -qF "PASS fitter: op $op" "$work/said" || fail "check says nothing of op $op"
done
finish
