#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Stored rollouts: what rollouts.keep leaves changes nothing of what is learnt, and is the same bytes on any number of
# threads and ranks and behind a stop and a kill. phase_offline learns from them, with the same bits everywhere, what is
# known to be right; files that are damaged are refused.
set -u

name=offline
base="--plugin phase2_ppo -q --set env.id=cartpole --set env.instances=5 --set models.perception=
      --set phase2_ppo.iterations=6 --set phase2_ppo.fragment=50 --set phase2_ppo.train_batch=250 --set data.batch=125
      --set data.shards=4 --set phase2_ppo.sgd_epochs=2 --set training.eval_interval=0 --set checkpoint.every_seconds=0
      --set evaluation.baselines= --set report.enabled=false"
# shellcheck source=tests/phases/rig.inc
. "${DT_SRCDIR:-.}/tests/phases/rig.inc"
keep="--set rollouts.keep=1100" # four whole rounds

# same_files DIR WHAT: the rollouts of the run called whole
same_files() {
    cases=$((cases + 1))
    [ -n "$(ls "$work/$1/rollouts"/*/ 2>/dev/null)" ] && diff -r "$work/whole/rollouts" "$work/$1/rollouts" >"$work/err" ||
        fail "$2: other rollouts"
}

resume() { # DIR [options]
    dir=$1
    shift
    cases=$((cases + 1))
    "$dtrain" --resume "$work/$dir" -q "$@" >/dev/null 2>"$work/err" || fail "resuming $dir left with $?"
}

# shellcheck disable=SC2086
{
    train whole --threads 1 $keep
    train without --threads 1
    same without "a run that keeps nothing"
    cases=$((cases + 1))
    files=$(cd "$work/whole/rollouts/phase2_ppo-1" && echo *)
    [ "$files" = "round-000000000003.safetensors round-000000000004.safetensors round-000000000005.safetensors round-000000000006.safetensors" ] ||
        fail "it keeps '$files'"
    train ranks --threads 2 $keep --set comm.backend=sim --set comm.ranks=3
    same ranks "3 virtual ranks instead of 1"
    same_files ranks "3 virtual ranks instead of 1"
    train stopped --threads 2 $keep --max-steps 8
    resume stopped --set comm.backend=sim --set comm.ranks=2
    same_files stopped "stopped and resumed on 2 ranks"
    # killed in round 6, and gone on with from round 4: what it had played since is played again
    cases=$((cases + 1))
    DTRAIN_FAULT=train.step:23! "$dtrain" $base $keep --set training.save_interval=4 --run-dir "$work/killed" >/dev/null \
        2>"$work/err"
    code=$?
    [ "$code" -eq 137 ] || fail "it was to be killed and left with $code"
    [ -f "$work/killed/rollouts/phase2_ppo-1/round-000000000006.safetensors" ] || fail "it was killed before round 6"
    # and a file aside, as a kill in the middle of writing one leaves it
    : >"$work/killed/rollouts/phase2_ppo-1/round-000000000006.safetensors.tmp.77"
    resume killed
    same_files killed "killed and resumed"
    same killed "killed and resumed"
    refused 2 "rollouts.keep 200" --set rollouts.keep=200
}

# what is ragged, several places, costs and a shield
street="--plugin phase3_constrained -q --set env.id=env_traffic --set env_traffic.penetration=0.5
        --set env_traffic.agents=11 --set env.instances=2 --set models.perception=risk_gnn --set models.world=
        --set models.controller=controller_influence --set models.shield=shield_barrier
        --set phase3_constrained.iterations=2 --set phase3_constrained.fragment=20
        --set phase3_constrained.train_batch=40 --set data.batch=20 --set data.shards=2
        --set phase3_constrained.limits=hard_braking:1 --set phase3_constrained.sgd_epochs=1
        --set training.eval_interval=0 --set evaluation.baselines= --set report.enabled=false
        --set env_traffic.episode_s=3"
rm -rf "$work/whole" "$work/without" "$work/ranks"
base=$street
train whole --threads 1 --set rollouts.keep=80
train without --threads 1
same without "traffic that keeps nothing"
train ranks --threads 1 --set rollouts.keep=80 --set comm.backend=sim --set comm.ranks=2
same_files ranks "traffic on 2 virtual ranks"

# ---- learning from them
# ------------------------------------------------------------------------------------------------

learn="-q --set training.eval_interval=0 --set checkpoint.every_seconds=0 --set evaluation.baselines=
       --set report.enabled=false --set training.scheduler=constant"
# collect DIR ENV [options]: what a policy that learns nothing does
collect() {
    dir=$1
    env=$2
    shift 2
    cases=$((cases + 1))
    "$dtrain" --plugin phase2_ppo $learn --threads 1 --set env.id="$env" --set env.instances=20 \
        --set models.perception= --set phase2_ppo.iterations=1 --set phase2_ppo.fragment=200 \
        --set phase2_ppo.train_batch=4000 --set data.batch=4000 --set phase2_ppo.sgd_epochs=1 \
        --set training.learning_rate=0 --set rollouts.keep=4000 --run-dir "$work/$dir" "$@" >/dev/null 2>"$work/err" ||
        fail "collecting $dir left with $?"
    rollouts=$work/$dir/rollouts/phase2_ppo-1
}

# of a gaussian within bounds, and of choices: threads, ranks, stops
small="--set phase_offline.iterations=4 --set phase_offline.updates=8 --set phase_offline.clone_rounds=1
       --set data.batch=64 --set data.shards=4 --set critic_mlp.hidden=16 --set phase_offline.normalise_obs=true"
for env in pendulum cartpole; do
    collect "of-$env" $env
    base="--plugin phase_offline $learn $small --set env.id=$env --set phase_offline.rollouts=$rollouts"
    rm -rf "$work/whole" "$work/ranks" "$work/stopped"
    # shellcheck disable=SC2086
    train whole --threads 1
    train ranks --threads 2 --set comm.backend=sim --set comm.ranks=3
    same ranks "$env on 3 virtual ranks instead of 1"
    train stopped --threads 2 --max-steps 8
    resume stopped --set comm.backend=sim --set comm.ranks=2 --max-steps 24
    resume stopped
    same stopped "$env, stopped and resumed on 2 ranks and on 1"
done

# a run goes on with the rollouts that it began with alone
train other --max-steps 8
cases=$((cases + 1))
"$dtrain" --resume "$work/other" -q --set phase_offline.rollouts="$work/of-cartpole-2" >/dev/null 2>"$work/err" &&
    fail "a folder that is not there is learnt from"
train played --set phase_offline.iterations=1
rm -rf "$work/moved"
mv "$rollouts" "$work/moved"
cases=$((cases + 1))
"$dtrain" eval --checkpoint "$work/played" --seeds 1 --episodes 1 --json >/dev/null 2>"$work/err" ||
    fail "evaluating without the rollouts left with $?"
mv "$work/moved" "$rollouts"

# ---- files of others
# ---------------------------------------------------------------------------------------------------

sealed=$rollouts/round-000000000001.safetensors
bad=$work/bad.safetensors
file=$work/unsealed
unseal() { # as others may write it, of as many bytes
    LC_ALL=C sed 's/"version":"2"/"version":"1"/; s/"sha256":"/"nothing":"/; s/"nothing":"[0-9a-f]/"nothing":"/' "$1" >"$file"
}
unseal "$sealed"
head_bytes=$(od -An -tu8 -N8 "$file" | tr -d ' ')
# at NAME: where its first byte lies
at() {
    begin=$(head -c "$((8 + head_bytes))" "$file" | LC_ALL=C sed -n "s|.*\"$1\":{[^}]*\"data_offsets\":\[\([0-9]*\),.*|\1|p")
    echo $((8 + head_bytes + begin))
}
# put NAME BYTES: a copy whose first item of a tensor is these
put() {
    cp "$file" "$bad"
    # shellcheck disable=SC2059
    printf "$2" | dd of="$bad" bs=1 seek="$(at "$1")" conv=notrunc 2>/dev/null
}
is_bad() { # PIECE
    refused 4 "bad.safetensors $1" --set phase_offline.rollouts="$bad"
}
is_good() { # [SETTINGS]
    cases=$((cases + 1))
    "$dtrain" $base --set ${1:-seed=1} --max-steps 1 --run-dir "$work/good" --set phase_offline.rollouts="$bad" >/dev/null 2>"$work/err" ||
        fail "what is right is refused with $?"
    rm -rf "$work/good"
}
head -c 5000 "$file" >"$bad"
is_bad ""
cp "$file" "$bad"
is_good
grep -q "1 of 1 files have no checksum" "$work/err" || fail "a file without a checksum is not warned of"
# a bit that flips anywhere is noticed
bytes=$(wc -c <"$sealed")
cp "$sealed" "$bad"
is_good
grep -q "no checksum" "$work/err" && fail "a file with a checksum is warned of"
for i in 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19; do
    flip=$((bytes * (2 * i + 1) / 40))
    cp "$sealed" "$bad"
    byte=$(od -An -tu1 -j "$flip" -N 1 "$sealed" | tr -d ' ')
    # shellcheck disable=SC2059
    printf "\\$(printf %o $((byte ^ 64)))" | dd of="$bad" bs=1 seek="$flip" conv=notrunc 2>/dev/null
    is_bad ""
done
LC_ALL=C sed 's/"sha256":"[0-9a-f]/"sha256":"x/' "$sealed" >"$bad"
is_bad "is damaged"
LC_ALL=C sed 's/"sha256":/"sha257":/' "$sealed" >"$bad"
is_bad "sha256 is missing"
LC_ALL=C sed 's/"version":"1"/"version":"7"/' "$file" >"$bad"
is_bad 'metadata have version "7"; expected "2"'
LC_ALL=C sed 's/"env_cartpole"/"env_cartpoles"/; s/  *$//' "$file" >"$bad"
is_bad ""
LC_ALL=C sed 's/"env_cartpole"/"env_carthole"/' "$file" >"$bad"
is_bad 'metadata have environment "env_carthole"'
LC_ALL=C sed 's/"next_obs"/"next_obx"/' "$file" >"$bad"
is_bad 'next_obs is not in it'
LC_ALL=C sed 's/"place":{"dtype":"I32"/"place":{"dtype":"F32"/' "$file" >"$bad"
is_bad 'place is F32 .rows., and the environment has I32 .rows.'
put obs '\000\000\300\177'
is_bad 'sample 0: obs is not finite (nan)'
put reward '\000\000\200\377'
is_bad 'sample 0: reward is not finite (-inf)'
put action_i '\002\000\000\000'
is_bad 'sample 0: action_i points to a missing row'
put mask '\000\000\000\000\000\000\000\000'
is_bad 'sample 0, row 0: action_i is a choice that mask forbids: [01] of head 0'
put next_mask '\000\000\000\000\000\000\000\000'
is_bad 'sample 0, row 0: next_mask forbids all 2 choices of head 0'
put log_prob '\000\000\000\077'
is_bad 'sample 0, row 0: log_prob is 0.5; the logarithm of a choice.s probability is at most 0'
put terminated '\000\000\000\077'
is_bad 'sample 0, row 0: terminated is 0.5, neither 0 nor 1'
put terminated '\000\000\200\077'
printf '\000\000\200\077' | dd of="$bad" bs=1 seek="$(at truncated)" conv=notrunc 2>/dev/null
is_bad 'sample 0, row 0: terminated and truncated are both 1'
put terminated '\000\000\200\077'
is_bad 'sample 0, row 0: next_present is 1 and terminated is 1'
put next_present '\000\000\000\000'
is_bad 'sample 0, row 0: next_present is 0, and terminated and truncated are 0'
put place '\001\000\000\000'
is_bad 'sample 0: place points to a missing row'
put sample/sizes '\377\377\377\177'
is_bad 'sample 0: A has 2147483647 rows, and there can be 1 to 1'
put sample/sizes '\000\000\000\000'
is_bad 'sample 0: A has 0 rows, and there can be 1 to 1'
put sample/step '\011\000\000\000'
is_bad 'sample 1: it is of step 0 and instance 1, after step 9'
# word KEY TEXT: a copy whose metadata say another text of as many letters
word() {
    LC_ALL=C sed "s/\"$1\":\"[^\"]*\"/\"$1\":\"$2\"/" "$file" >"$bad"
    [ "$(wc -c <"$bad")" -eq "$(wc -c <"$file")" ] || fail "$1 = $2 is of other length"
}
word round x
is_bad 'metadata have round "x"; expected the number of its round, a whole number from 1'
word round 0
is_bad 'metadata have round "0"; expected'
word steps abc
is_bad 'metadata have steps "abc"; expected how many steps the round has'
word instances -2
is_bad 'metadata have instances "-2"; expected'
word steps 100
is_bad 'sample [0-9]*: it is of step 100 and instance [0-9]*, and by its metadata the round has 100 steps of 20'
word steps 900
is_good
episodes=$(LC_ALL=C sed -n 's/.*"episodes":"\([0-9]*\)".*/\1/p' "$file" | head -n 1)
word episodes "$(echo "$episodes" | sed 's/./x/g')"
is_bad 'metadata have episodes "x*"; expected how many episodes'
# a round twice, by whatever name; one of another run with its number is another one
mkdir "$work/twice"
cp "$file" "$work/twice/a.safetensors"
for how in "cp" "ln" "ln -s"; do
    $how "$(pwd)/$file" "$work/twice/b.safetensors"
    refused 4 "b.safetensors 1 a.safetensors" \
        --set phase_offline.rollouts="$work/twice"
    rm "$work/twice/b.safetensors"
done
# said WORDS: with these options of the environment they are said, once; with its own ones nothing is
said() {
    is_good "$2"
    names "$work/err" "$1"
}
cp "$file" "$bad"
said 'bad.safetensors env_cartpole max_steps "500" "9"' env_cartpole.max_steps=9
said 'max_steps "500" "9" start "0.05" "0.1"' \
    "env_cartpole.max_steps=9 --set env_cartpole.start=0.1"
is_good seed=3
grep -q "max_steps" "$work/err" && fail "options that are equal are called others"
LC_ALL=C sed 's/"option.start"/"optiom.start"/' "$file" >"$bad"
said 'start env_cartpole' seed=3
mkdir "$work/empty"
refused 4 "rollouts" --set phase_offline.rollouts="$work/empty"
collect of-pendulum-2 pendulum
unseal "$rollouts/round-000000000001.safetensors"
head_bytes=$(od -An -tu8 -N8 "$file" | tr -d ' ')
put executed '\000\000\240\100'
refused 4 "executed bounds" --set env.id=pendulum --set phase_offline.rollouts="$bad"
# whatever byte is another, it is refused or learnt from
for i in 3 9 14 31 60 97 130 171 240 333 410 523 611 700 801 950 1024 2000 4001 9000 20011 40009; do
    cases=$((cases + 1))
    cp "$file" "$bad"
    printf '\275' | dd of="$bad" bs=1 seek="$i" conv=notrunc 2>/dev/null
    "$dtrain" $base --set env.id=pendulum --set phase_offline.rollouts="$bad" --max-steps 1 --run-dir "$work/mutant" \
        >/dev/null 2>"$work/err"
    code=$?
    [ "$code" -eq 0 ] || [ "$code" -eq 4 ] || fail "byte $i is another: left with $code"
    rm -rf "$work/mutant"
done
refused 2 "phase_offline.rollouts" --set phase_offline.rollouts=
refused 2 "phase_offline.limits clone" --set phase_offline.algorithm=clone \
    --set phase_offline.limits=price:1
# what would be taken and do nothing
limited="--set env.id=env_constrained --set phase_offline.limits=price:1"
refused 2 "clone_rounds 4" $limited --set phase_offline.clone_rounds=4
refused 2 "phase_offline.margin 1" $limited --set phase_offline.margin=1
refused 2 "multiplier_max 0" $limited --set phase_offline.multiplier_max=0
refused 2 "start kp ki kd 0" $limited --set phase_offline.start=0 --set phase_offline.kp=0 \
    --set phase_offline.ki=0 --set phase_offline.kd=0
refused 2 "start 3 multiplier_max 2" $limited --set phase_offline.start=3 \
    --set phase_offline.multiplier_max=2

# what would say nothing
refused 2 "phase_offline.tau 0.2 clone" --set phase_offline.algorithm=clone \
    --set phase_offline.clone_rounds=10 --set phase_offline.tau=0.2
refused 2 "phase_offline.kp 3" --set phase_offline.kp=3
refused 2 "phase_offline.clip_obs 3 normalise_obs" --set phase_offline.clip_obs=3 \
    --set phase_offline.normalise_obs=false

# ---- what is known exactly
# ---------------------------------------------------------------------------------------------

# near WHAT VALUE FROM TO
near() {
    cases=$((cases + 1))
    awk -v x="$2" -v from="$3" -v to="$4" 'BEGIN { exit !(x != "" && x >= from && x <= to) }' ||
        fail "$1 is '$2', expected $3 to $4"
}
play() { # DIR [EPISODES]
    "$dtrain" eval --checkpoint "$work/$1" --set evaluation.greedy=false --json --episodes "${2:-10000}" --seeds 7 \
        >"$work/json" 2>"$work/err" || fail "evaluating $1 left with $?"
}
mean() { # NAME, of the evaluation
    sed -n "s|.*\"$1\":{\"mean\":\([0-9.e+-]*\).*|\1|p" "$work/json"
}
# the bandit of env_constrained, by what even draws of its arms give: 1 without a limit, 0.84 at a cost of 0.6
collect arms env_constrained
base="--plugin phase_offline $learn --threads 1 --set env.id=env_constrained --set phase_offline.rollouts=$rollouts
      --set controller_mlp.layers=0 --set critic_mlp.hidden=16 --set critic_mlp.layers=1
      --set training.learning_rate=1e-2 --set data.batch=250 --set data.shards=1 --set phase_offline.updates=20"
plain=$base
base="$base --set phase_offline.critics=1 --set phase_offline.tau=0.1 --set phase_offline.beta=0.1"
train free
play free
near "without a limit: value" "$(mean return)" 0.97 1
train held --set phase_offline.limits=price:0.6 --set phase_offline.margin=0
play held
near "under a limit: value" "$(mean return)" 0.825 0.845
near "under a limit: cost" "$(mean price)" 0.58 0.61
names "$work/held/train.log" "price 95 0.6"
# a queue, whose states the policy changes: 59.6 of reward at 200 of waiting in 200 steps (env_constrained.c). What is
# held is an estimate over states of the data
collect queue env_constrained --set env_constrained.problem=queue
train queued --set env_constrained.problem=queue --set phase_offline.rollouts="$rollouts" \
    --set phase_offline.limits=waiting:200 --set phase_offline.margin=0 --set phase_offline.gamma=0.97
play queued 100
near "a queue: value" "$(mean return)" 55 61
near "a queue: cost" "$(mean waiting)" 180 215
# what is estimated of costs is the same everywhere, and it is said which limits it does not let one count on
base="$base --set phase_offline.rollouts=$rollouts --set env_constrained.problem=queue
      --set phase_offline.limits=waiting:20 --set phase_offline.iterations=3 --set phase_offline.clone_rounds=1
      --set data.shards=4"
rm -rf "$work/whole" "$work/ranks" "$work/stopped"
train whole
names "$work/err" "waiting 20 95"
# once HOW: a warning at the beginning of a run
once() {
    cases=$((cases + 1))
    [ "$(grep -c "updates are too few" "$work/err")" -eq "$2" ] || fail "$1: few updates are not named $2 times"
}
once "1 rank" 1
train ranks --threads 2 --set comm.backend=sim --set comm.ranks=3
same ranks "limits on 3 virtual ranks instead of 1"
once "3 ranks" 1
train stopped --threads 2 --max-steps 40
resume stopped --set comm.backend=sim --set comm.ranks=2
same stopped "limits, stopped and resumed on 2 ranks"
once "a resume" 0
# a clone draws as often as the behaviour did
collect better env_constrained --set training.learning_rate=0.02 --set phase2_ppo.iterations=2 \
    --set phase2_ppo.sgd_epochs=10 --set training.warmup_epochs=0
base=$plain
train clone --set phase_offline.algorithm=clone --set phase_offline.rollouts="$rollouts" \
    --set phase_offline.iterations=30
play clone
value=$(sed -n 's|.*"rollouts/return":\([0-9.e+-]*\).*|\1|p' "$work/clone/metrics.jsonl")
price=$(tail -n 1 "$work/better/metrics.jsonl" | sed -n 's|.*"costs/price":\([0-9.e+-]*\).*|\1|p')
near "the behaviour is one of its own: value" "$value" 0.65 0.95
near "the clone: value" "$(mean return)" "$(echo "$value" | awk '{ print $1 - 0.015 }')" \
    "$(echo "$value" | awk '{ print $1 + 0.015 }')"
near "the clone: cost" "$(mean price)" "$(echo "$price" | awk '{ print $1 - 0.015 }')" \
    "$(echo "$price" | awk '{ print $1 + 0.015 }')"

echo "offline: $cases cases, $failed failed"
[ "$failed" -eq 0 ]
