#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# A phase whose critic learns from shadows (tests/service/duel.c): threads, ranks, processes and resumes end in the same
# bits; shadows are in checkpoints and in what is judged, and another run begins without them; what a phase does wrong is
# said.
set -u

name=duel
. "${DT_SRCDIR:?}/tests/run/job.inc"
has_mpi=$(. "$DT_SRCDIR/tests/mpi_job.sh" >/dev/null && echo yes) # it leaves where there is none
DTRAIN_PLUGIN_PATH=$DT_BUILDDIR/tests/service/.libs
export DTRAIN_PLUGIN_PATH
cat >"$work/job.cfg" <<'END'
models = { perception = ""; world = ""; controller = ""; actor = "duel_actor"; critic = "duel_critic"; };
data = { source = "duel_data"; batch = 16; shards = 8; };
training = { epochs = 4; eval_interval = 1; save_interval = 0; warmup_epochs = 0; learning_rate = 0.01; };
checkpoint = { every_seconds = 0; every_steps = 5; keep_last = 9; };
metrics = { tensorboard = false; };
report = { enabled = false; };
phases = ( { plugin = "duel"; } );
END

# --- the same bits ---
train 0 whole --threads 1
enough_states 4
train 0 threads --threads 4
same_all threads "4 threads"
for n in 2 3; do
    train 0 sim$n --set comm.backend=sim --set comm.ranks=$n --check-sync 1
    same_all sim$n "$n virtual ranks"
done
if [ "$has_mpi" = yes ]; then
    train 0 processes --nproc 2 --check-sync 1
    same_all processes "2 processes"
fi
for n in 7 10; do
    train 0 cut$n --max-steps $n --threads 2
    train 0 cut$n --resume "$work/cut$n"
    same cut$n "stopped after $n steps"
done
train 0 shards --set comm.backend=sim --set comm.ranks=3 --set checkpoint.shard_mb=0.0001 --max-steps 7
train 0 shards --resume "$work/shards" --set comm.ranks=2
same shards "3 shards, then 2 ranks"

# --- in checkpoints, and in what is judged ---
tensors() { # RUN: of its last checkpoint
    head -c 20000 "$work/$1/checkpoints/$(cat "$work/$1/checkpoints/LATEST")/model.safetensors" | tr ',' '\n' | tr '{' '\n' |
        grep -ao '^"[a-z@_.]*":' | sort
}
cases=$((cases + 1))
for tensor in actor.out.w actor@target.out.w actor@past.out.b critic.in.w critic@target.out.b; do
    tensors whole | grep -qF "\"$tensor\":" || fail "$tensor is not in the checkpoint: $(tensors whole)"
done
cases=$((cases + 1))
! tensors whole | grep -q "critic@past" || fail "a shadow that nobody asked for"
differs() { # FILE
    sed -n 's/.*"differ":\([-0-9.e]*\).*/\1/p' "$1" | tail -n 1
}
train 0 judged --max-steps 8 # two steps after the past was set
cases=$((cases + 1))
"$dtrain" eval --checkpoint "$work/judged" --json -q >"$work/json" 2>"$work/err" || fail "dtrain eval left with $?"
case $(differs "$work/json") in '' | 0 | 0.0) fail "what is judged has no past: $(cat "$work/json")" ;; esac
train 0 begun --max-steps 1 --init-from "$work/judged" # where training begins, shadows begin
cases=$((cases + 1))
"$dtrain" eval --checkpoint "$work/begun" --json -q >"$work/json2" 2>"$work/err" || fail "dtrain eval left with $?"
[ "$(differs "$work/json")" != "$(differs "$work/json2")" ] || fail "a run begins with the past of another"

# --- what is wrong is said ---
wrong() { # CODE TEXT WHAT
    rm -rf "${work:?}/wrong"
    train "$1" wrong --set "duel.wrong=$3"
    says 1+ "$2"
}
wrong 3 'shadows; at most 8 are possible' 'many shadows'
wrong 3 'actor has two shadows past' 'two of a name'
wrong 3 '3 shadows and no list of them' 'no list'
wrong 3 'without their struct_size' 'no size'
wrong 3 'a shadow of a model that is not among those of the trainer' 'foreign model'
wrong 3 'a shadow without a name' 'no name'
wrong 3 'the shadow "the past" of actor: its name must begin with a-z' 'bad name'
wrong 3 'tau 1.5 of the shadow past of actor is outside (0, 1]' 'bad tau'
wrong 2 'model_as: critic has no shadow "ghost"; the trainer gave it target' 'unknown shadow'
wrong 2 'there is no shadow "ghost"; there are target, target, past' 'unknown copy'
finish
