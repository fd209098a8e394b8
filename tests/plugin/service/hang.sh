#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# A callback that never returns on the last rank (fitter.c), alone, among virtual ranks and among processes: the rank
# and the callback are reported after half of comm.timeout_s, a signal ends the run within that time, other ranks give
# up after comm.timeout_s, and the run continues from its last checkpoint with the same bits.
set -u

name=hang
. "${DT_SRCDIR:?}/tests/run/job.inc"
DTRAIN_PLUGIN_PATH=$DT_BUILDDIR/tests/plugin/service/.libs
export DTRAIN_PLUGIN_PATH
cat >"$work/job.cfg" <<'END'
models = { perception = ""; world = ""; controller = ""; net = "fitter_net"; };
data = { batch = 16; shards = 8; };
comm = { timeout_s = 4; };
training = { epochs = 4; eval_interval = 0; save_interval = 0; warmup_epochs = 0; learning_rate = 0.05; retries = 1; };
checkpoint = { every_seconds = 0; every_steps = 5; mirror_seconds = 0; keep_last = 9; };
metrics = { tensorboard = false; };
report = { enabled = false; };
phases = ( { plugin = "fitter"; } );
END
job=
trap 'test -z "$job" || kill -KILL $job 2>/dev/null; rm -rf "$work"' EXIT INT TERM
begin() { # DIR [options]: in the background
    dir=$1
    shift
    "$dtrain" run --config "$work/job.cfg" --run-dir "$work/$dir" --threads 1 -q --set fitter.wrong=hangs "$@" \
        >"$work/out" 2>"$work/err" &
    job=$!
}
await_line() { # TEXT
    tries=0
    until grep -q -F -e "$1" "$work/err" || [ $tries -gt 300 ]; do
        sleep 0.1
        tries=$((tries + 1))
    done
}
ends() { # CODE WHAT: within a minute
    cases=$((cases + 1))
    tries=0
    while kill -0 $job 2>/dev/null && [ $tries -lt 600 ]; do
        sleep 0.1
        tries=$((tries + 1))
    done
    [ $tries -lt 600 ] || kill -KILL $job
    wait $job
    code=$?
    [ $code -eq "$1" ] || fail "$2: exit code $code, expected $1"
}
continues() { # DIR
    train 0 "$1" --resume "$work/$1" --threads 1 --set fitter.wrong=
    same "$1" "after a hang"
}
silent='iterate of fitter has neither returned nor made progress'

train 0 whole --threads 1

# --- alone: reported, and ended by one signal ---
begin alone
await_line "$silent"
says 0 "rank 0: $silent"
kill -TERM $job
ends 75 "a signal after the report"
says 2 "$silent"
cases=$((cases + 1))
grep -q '"exit_code": *75' "$work/alone/meta.json" || fail "meta.json has another exit code"
continues alone
begin early --set checkpoint.every_steps=0
await_line "$silent"
kill -TERM $job
ends 143 "a signal before the first checkpoint"

# --- virtual ranks: a signal before the report; without one the others give up, and the run ends by itself ---
sim='--set comm.backend=sim --set comm.ranks=3'
# shellcheck disable=SC2086
begin given-up $sim
ends 6 "a virtual rank hangs"
says 1+ "rank 2: $silent"
says 1+ 'timed out after 4 s waiting for rank 2'
continues given-up
# shellcheck disable=SC2086
begin stopped $sim
await "$work/stopped/checkpoints/LATEST"
kill -TERM $job
ends 75 "a signal before the report"
says 1+ "rank 2: $silent"

# --- processes: the same message; the launcher restarts them ---
if has_mpi; then
    . "$DT_SRCDIR/tests/mpi_job.sh"
    begin processes --nproc 2 --max-restarts 0
    ends 6 "a process hangs"
    says 1+ "rank 1: $silent"
    continues processes
    begin asked --nproc 2 --max-restarts 0
    await_line "rank 1: $silent"
    kill -TERM $job
    ends 75 "a signal to the launcher"
fi
job=
finish
