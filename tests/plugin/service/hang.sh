#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# A callback that never returns on the last rank (fitter.c), alone, among virtual ranks and among processes: the rank
# and the callback are reported after half of comm.timeout_s, a signal or --max-time ends the run within that time,
# other ranks give up after comm.timeout_s, and the run continues from its last checkpoint with the same bits. An
# environment in a thread of its own is named with its instance (stubborn.c).
set -u

name=hang
. "${DT_SRCDIR:?}/tests/run/job.inc"
DTRAIN_PLUGIN_PATH=$DT_BUILDDIR/tests/plugin/service/.libs:$DT_BUILDDIR/tests/run/.libs
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

# --- time is over: ended without a signal; what a repeated command would get no further with is 2 ---
begin timed --max-time 1
ends 75 "--max-time"
says 2 "$silent"
cases=$((cases + 1))
grep -q '"exit_code": *75' "$work/timed/meta.json" || fail "meta.json has another exit code"
continues timed
begin timed-early --set checkpoint.every_steps=0 --max-time 1
ends 2 "--max-time before the first checkpoint"

# --- an environment in threads: its callback and instance, in the thread of the rank and in another one ---
hung_env() { # DIR [options]: its message is the only one, and names no phase
    dir=$1
    shift
    "$dtrain" --plugin phase2_ppo --set env.id=stubborn --set env.isolation=thread --set env.instances=3 \
        --set phase2_ppo.fragment=8 --set phase2_ppo.train_batch=24 --set data.batch=24 \
        --set models.controller=controller_mlp --set controller_mlp.hidden=16 --set evaluation.baselines= \
        --set stubborn.how=sleep --set stubborn.mark="$work/$dir.mark" --set comm.timeout_s=2 --max-time 1 \
        --set report.enabled=false --run-dir "$work/$dir" -q "$@" >"$work/out" 2>"$work/err" &
    job=$!
    ends 2 "$dir"
    cases=$((cases + 1))
    grep -q -E -e "$env_call of stubborn, instance [0-2], has neither returned" "$work/err" || fail "$dir: not named"
    says 0 phase2_ppo
}
env_call=step
hung_env env-here --threads 1 --set env.workers=1 --set stubborn.where=step
hung_env env-there --threads 3 --set env.workers=3 --set stubborn.where=step --set stubborn.turn=2
env_call=reset
hung_env env-reset --threads 3 --set env.workers=3 --set stubborn.where=reset

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
    begin timed-processes --nproc 2 --max-restarts 0 --max-time 2
    ends 75 "--max-time of processes"
    says 1+ "rank 1: $silent"
    begin timed-processes --nproc 2 --max-restarts 0 --max-time 2 --resume auto --set checkpoint.every_steps=0
    ends 2 "--max-time of processes that go on and save nothing"
    begin asked --nproc 2 --max-restarts 0
    await_line "rank 1: $silent"
    kill -TERM $job
    ends 75 "a signal to the launcher"
fi
job=
finish
