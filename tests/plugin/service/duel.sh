#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# A phase whose critic learns from target networks, and an actor through the critic, each by a loss of its own
# (tests/plugin/service/duel.c): threads, ranks, processes and resumes end in the same bits; target networks are in checkpoints
# and in what is evaluated, and another run begins without them; what a phase does wrong is said.
set -u

name=duel
. "${DT_SRCDIR:?}/tests/run/job.inc"
DTRAIN_PLUGIN_PATH=$DT_BUILDDIR/tests/plugin/service/.libs
export DTRAIN_PLUGIN_PATH
cat >"$work/job.cfg" <<'END'
models = { perception = ""; world = ""; controller = ""; actor = "duel_actor"; critic = "duel_critic"; };
data = { source = "duel_data"; batch = 16; shards = 8; };
training = { epochs = 4; eval_interval = 1; save_interval = 0; warmup_epochs = 0; learning_rate = 0.01; };
checkpoint = { every_seconds = 0; every_steps = 5; mirror_seconds = 0; keep_last = 9; };
metrics = { tensorboard = false; };
report = { enabled = false; };
phases = ( { plugin = "duel"; } );
END

# --- the same bits, without groups and with them ---
for delay in 0 2; do
    rm -rf "${work:?}/whole"
    train 0 whole --threads 1 --set duel.delay=$delay
    enough_states 4
    train 0 threads$delay --threads 4 --set duel.delay=$delay
    same_all threads$delay "4 threads"
    same_ranks --set duel.delay=$delay
    for n in 7 10; do
        train 0 cut$delay$n --max-steps $n --threads 2 --set duel.delay=$delay
        train 0 cut$delay$n --resume "$work/cut$delay$n"
        same cut$delay$n "stopped after $n steps"
    done
    train 0 shards$delay --set comm.backend=sim --set comm.ranks=3 --set checkpoint.shard_mb=0.0001 --max-steps 7 \
        --set duel.delay=$delay
    train 0 shards$delay --resume "$work/shards$delay" --set comm.ranks=2
    same shards$delay "3 shards, then 2 ranks"
done

# what was trained before the phase had groups goes on in groups, which have as many updates as there were
rm -rf "${work:?}/older"
train 0 older --max-steps 7
train 0 older --resume "$work/older" --set duel.delay=2
cases=$((cases + 1))
tr -d ' \n' <"$work/older/checkpoints/$(cat "$work/older/checkpoints/LATEST")/state.json" |
    grep -qF '"group_updates":[24,16]' || fail "updates of what went on in groups"

# --- each group's own ---
records() { # KEY: of how many steps
    grep -c -F "\"$1\":" "$work/whole/metrics.jsonl"
}
cases=$((cases + 1))
[ "$(records losses/critic) $(records losses/actor)" = "24 12" ] || fail "losses of $(records losses/actor) steps of the actor"
for key in grad_norm learning_rate; do
    cases=$((cases + 1))
    [ "$(records $key/critic) $(records $key/actor)" = "24 12" ] || fail "$key of $(records $key/actor) steps"
done
state=$work/whole/checkpoints/$(cat "$work/whole/checkpoints/LATEST")/state.json
cases=$((cases + 1))
tr -d ' \n' <"$state" | grep -qF '"groups":["critic","actor"],"group_updates":[24,12]' || fail "updates: $(cat "$state")"

# --- in checkpoints, and in what is evaluated ---
tensors() { # RUN: of its last checkpoint
    head -c 20000 "$work/$1/checkpoints/$(cat "$work/$1/checkpoints/LATEST")/model.safetensors" | tr ',' '\n' | tr '{' '\n' |
        grep -ao '^"[a-z@_.]*":' | sort
}
cases=$((cases + 1))
for tensor in actor.out.w actor@target.out.w actor@past.out.b critic.in.w critic@target.out.b; do
    tensors whole | grep -qF "\"$tensor\":" || fail "$tensor is not in the checkpoint: $(tensors whole)"
done
cases=$((cases + 1))
! tensors whole | grep -q "critic@past" || fail "a target network that was not requested"
cases=$((cases + 1))
"$dtrain" export --checkpoint "$work/whole" --out "$work/exported" -q >"$work/out" 2>"$work/err" &&
    head -c 20000 "$work/exported" | grep -qaF '"actor@past.out.w"' && ! head -c 20000 "$work/exported" | grep -qaF critic.in ||
    fail "what is exported of it: $(cat "$work/out")"
cases=$((cases + 1))
"$dtrain" run --config "$work/job.cfg" --dry-run 2>&1 |
    grep -qF '149 parameters' || fail "the plan"
differs() { # FILE
    sed -n 's/.*"differ":\([-0-9.e]*\).*/\1/p' "$1" | tail -n 1
}
train 0 judged --max-steps 8 # two steps after the past was set
cases=$((cases + 1))
"$dtrain" eval --checkpoint "$work/judged" --json -q >"$work/json" 2>"$work/err" || fail "dtrain eval left with $?"
case $(differs "$work/json") in '' | 0 | 0.0) fail "what is judged has no past: $(cat "$work/json")" ;; esac
train 0 begun --max-steps 1 --init-from "$work/judged" # where training begins, target networks begin
cases=$((cases + 1))
"$dtrain" eval --checkpoint "$work/begun" --json -q >"$work/json2" 2>"$work/err" || fail "dtrain eval left with $?"
[ "$(differs "$work/json")" != "$(differs "$work/json2")" ] || fail "a run begins with the past of another"

# --- what is wrong is said ---
delay=0
wrong() { # CODE TEXT WHAT
    rm -rf "${work:?}/wrong"
    train "$1" wrong --set "duel.wrong=$3" --set duel.delay=$delay
    says 1+ "$2"
}
wrong 3 'target networks; at most 8 are possible' 'many target networks'
wrong 3 'actor has two target networks past' 'two of a name'
wrong 3 '3 target networks and no list of them' 'no list'
wrong 3 'without their struct_size' 'no size'
wrong 3 'a target network of a model that is not among those of the trainer' 'foreign model'
wrong 3 'a target network without a name' 'no name'
wrong 3 'the target network "the past" of actor: its name must begin with a-z' 'bad name'
wrong 3 'tau 1.5 of the target network past of actor is outside (0, 1]' 'bad tau'
wrong 3 'model_as: critic has no target network "ghost"; the trainer gave it target' 'unknown target'
wrong 3 'there is no target network "ghost"; there are target, target, past' 'unknown copy'
delay=2
wrong 3 'groups of losses; at most 8 are possible' 'many groups'
wrong 3 '2 groups of losses and no list of them' 'no group list'
wrong 3 'without their struct_size' 'no group size'
wrong 3 'group actor has no losses' 'no losses'
wrong 3 'a group of its trainer: its name "Actor" cannot have the character' 'bad group name'
wrong 3 'duel has two groups critic' 'two groups'
wrong 3 'group actor has the learning rate -1' 'bad rate'
wrong 3 'group critic has the learning rate 0 and the gradient clip' 'bad clip'
wrong 3 'the role critic is in two groups, critic and actor' 'role in two groups'
wrong 3 'group actor has the role ghost, which no model of the trainer has' 'unknown role'
wrong 3 'loss actor is in two groups, critic and actor' 'loss in two groups'
wrong 3 'loss actor is in no group' 'loss in none'
wrong 3 'group actor has the loss ghost, which is not recorded' 'unknown loss'
wrong 3 'loss actor is in no group, but groups are used' 'apart'
wrong 3 'a step of the groups 0x4; there are 2, the mask is 0x3' 'no such group'
train 2 frozen --set duel.delay=2 --set training.freeze=actor.*
says 1+ 'group actor updates nothing: its losses depend on no parameter of its roles that is trained'
finish
