#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# phase2_ppo in env_snakes: opponents follow a schedule over the episodes of an instance, and neither threads, ranks,
# processes nor a stop change a bit of what is learnt from them; evaluations have the opponent asked for, match-ups of
# rules come out as they should, a game is drawn, wrong values are refused.
set -u

name=snakes
base="--plugin phase2_ppo -q --set env.id=snakes --set env.instances=4 --set env_snakes.max_steps=16
      --set phase2_ppo.fragment=16 --set phase2_ppo.train_batch=192 --set phase2_ppo.sgd_epochs=2 --set data.batch=64
      --set phase2_ppo.iterations=12 --set training.eval_interval=0 --set checkpoint.every_seconds=0
      --set evaluation.baselines= --set report.enabled=false
      --set env_snakes.schedule=curriculum --set env_snakes.schedule_episodes=10"
# shellcheck source=tests/phases/rig.inc
. "${DT_SRCDIR:-.}/tests/phases/rig.inc"

resume() { # DIR [options]
    dir=$1
    shift
    "$dtrain" --resume "$work/$dir" -q "$@" >/dev/null 2>"$work/err" || fail "resuming $dir left with $?"
}

# everywhere PREFIX WORDS STEP STEP: the bits of the run called whole, with DT_LONG=1 on other threads and ranks and in
# processes, and of a run (PREFIXpart) that is stopped after these steps and resumed on others
everywhere() {
    if [ "${DT_LONG:-}" = 1 ]; then
        train "$1threads" --threads 2
        same "$1threads" "${2}2 threads"
        train "$1ranks" --set comm.backend=sim --set comm.ranks=3
        same "$1ranks" "${2}3 virtual ranks"
    fi
    train "$1apart" --set env.isolation=process
    same "$1apart" "${2}environments in processes"
    train "$1part" --max-steps "$3"
    resume "$1part" --max-steps "$4" --threads 2
    resume "$1part" --set comm.backend=sim --set comm.ranks=2
    same "$1part" "${2}stopped and resumed twice, on other threads and ranks"
}

metric() { # NAME FILE: its mean
    sed -n "s/.*\"$1\":{\"mean\":\([-0-9.e]*\),.*/\1/p" "$2"
}

# a game is a round: opponents change within the run, and the number of a game survives what a run goes through
train whole --threads 1
train fixed --set env_snakes.schedule=fixed
cases=$((cases + 1))
[ "$(state_hash "$work/fixed")" != "$(state_hash "$work/whole")" ] || fail "a schedule of opponents changes nothing"
everywhere "" "" 15 21
if [ "${DT_LONG:-}" = 1 ]; then # self-play below has overlap as well
    train ahead --set phase2_ppo.overlap=1
    train again --set phase2_ppo.overlap=1 --max-steps 17 --set env.isolation=process
    resume again
    cases=$((cases + 1))
    [ "$(state_hash "$work/ahead")" = "$(state_hash "$work/again")" ] || fail "overlap: other bits after a resume, in processes"
fi

# self-play: opponents are the policy and earlier states of it, in episodes that go on through rounds
rules=$base
self="--set training.learning_rate=0.01 --set env_snakes.self_play=0.7 --set opponents.pool=3 --set opponents.every=2"
base="$base $self --set phase2_ppo.fragment=10 --set phase2_ppo.train_batch=120"
rm -rf "$work/whole"
train whole --threads 1
everywhere self_ "self-play, " 5 15
cases=$((cases + 6))
train self_ahead --set phase2_ppo.overlap=1
train self_again --set phase2_ppo.overlap=1 --max-steps 9
resume self_again --set comm.backend=sim --set comm.ranks=2
[ "$(state_hash "$work/self_ahead")" = "$(state_hash "$work/self_again")" ] || fail "self-play, overlap: other bits"
for other in opponents.latest=1 opponents.pool=2 opponents.every=3 opponents.pool=0; do
    train self_other --set $other
    [ "$(state_hash "$work/self_other")" != "$(state_hash "$work/whole")" ] || fail "self-play: $other changes nothing"
    rm -rf "$work/self_other"
done
"$dtrain" --resume "$work/self_part" -q --set opponents.pool=2 --set phase2_ppo.iterations=14 >/dev/null 2>"$work/err" ||
    fail "a pool of another size left with $?"
grep -q "it starts empty" "$work/err" || fail "nothing is said of a pool of another size"
refused 2 "no such team" --set opponents.learner=2
refused 2 "no such target network" --set opponents.target=target
refused 2 "no place of team 1" --set opponents.learner=1 --set training.eval_interval=1
refused 2 "latest" --set opponents.latest=1.5

# games in which nobody of the team that learns lives are none: all counted ones have agents as rivals (rule 6)
learners="$rules --set env.instances=6 --set phase2_ppo.fragment=10 --set phase2_ppo.train_batch=180
          --set env_snakes.self_play=0.5 --set opponents.learner=1"
rules_base=$base
base=$learners
counted() { # DIR: what each round says of its episodes
    sed -n 's/.*\("opponents\/unplayed[^,]*\),.*\("charts\/episodic_return.*"charts\/episodes":[^,]*\),.*/\1 \2/p' \
        "$work/$1/metrics.jsonl"
}
cases=$((cases + 2))
train played --threads 1
[ "$(counted played | wc -l)" -gt 5 ] || fail "no game without the team that learns, or nothing said of it"
counted played | grep -qv '"env/rival":6,' && fail "games against a rule count, in which nobody learns"
[ "$(grep -c "(opponents/unplayed_episodes)" "$work/err")" = 1 ] || fail "not told once that games do not count"
train played_part --max-steps 15
resume played_part --max-steps 21 --threads 2
resume played_part --set comm.backend=sim --set comm.ranks=3
[ "$(counted played)" = "$(counted played_part)" ] || fail "other games count after a resume, or on several ranks"
base=$rules_base

# off policy: a pool, and a target network as the opponent
base="--plugin phase_ddpg -q --set env.id=snakes --set env.instances=4 --set env_snakes.max_steps=16 $self
      --set phase_ddpg.collect_steps=4 --set phase_ddpg.learning_starts=64 --set phase_ddpg.iterations=20
      --set data.batch=16 --set training.eval_interval=0 --set evaluation.baselines= --set report.enabled=false"
for target in "" target; do
    cases=$((cases + 1))
    train ddpg --set opponents.target=$target --threads 1
    train ddpg_part --set opponents.target=$target --max-steps 17
    resume ddpg_part --set comm.backend=sim --set comm.ranks=3
    [ "$(state_hash "$work/ddpg")" = "$(state_hash "$work/ddpg_part")" ] || fail "phase_ddpg, target '$target': other bits"
    rm -rf "$work/ddpg" "$work/ddpg_part"
done
refused 2 'contains the controller is "target"' --set opponents.target=tarjet

# a team that is in no game never learns
refused 2 "no agent that learns" --set opponents.learner=1 --set env_snakes.self_play=0.000000001 \
    --set env.instances=1 --set phase_ddpg.collect_steps=100 --threads 1

# a target of the critic alone is no opponent
base="--plugin phase_coma -q --set env.id=snakes --set env.instances=4 --set env_snakes.max_steps=16 $self
      --set training.eval_interval=0 --set evaluation.baselines= --set report.enabled=false"
refused 2 "does not contain the controller" --set opponents.target=target
base=$rules

# a mix: one environment with other options in each instance, evaluated as env.id says
base="$rules --set phase2_ppo.fragment=10 --set phase2_ppo.train_batch=120 --set phase2_ppo.iterations=5
      --set env.mix=snakes:opponent=l1;schedule=fixed,snakes:opponent=random;max_steps=12,snakes"
mv "$work/whole" "$work/rule"
train whole --threads 1
train mix_ranks --set comm.backend=sim --set comm.ranks=4 --threads 2
same mix_ranks "a mix, 4 virtual ranks"
train mix_apart --set env.isolation=process --max-steps 5
resume mix_apart --set comm.backend=sim --set comm.ranks=3 --set env.workers=1
same mix_apart "a mix, in processes, stopped and resumed on other ranks and workers"
cases=$((cases + 6))
for name in mix/0/return mix/1/length mix/2/episodes places/0/reward; do
    cases=$((cases + 1))
    grep -q "\"$name\":" "$work/whole/metrics.jsonl" || fail "a mix of three: no $name in the metrics"
done
cases=$((cases + 1))
! grep -q '"mix/3/' "$work/whole/metrics.jsonl" || fail "a mix of three has an entry 3"
sed -n '/^env = {/,/^};/p' "$work/whole/config.cfg" | grep -q 'mix = ( "snakes:opponent=l1;schedule=fixed",' ||
    fail "the configuration of a run does not say its mix"
"$dtrain" --config "$work/whole/config.cfg" --run-dir "$work/mix_again" -q >/dev/null 2>"$work/err" || fail "a mix again"
same mix_again "a mix by the configuration of its run"
"$dtrain" $base --dry-run >"$work/out" 2>"$work/err" || fail "a dry run of a mix left with $?"
grep -q "mix .*2 of snakes:opponent=l1;schedule=fixed, 1 of snakes:opponent=random;max_steps=12, 1 of snakes" "$work/out" ||
    fail "a dry run does not tell the mix"
"$dtrain" eval --checkpoint "$work/whole" --seeds 1 --episodes 2 --json >"$work/out" 2>"$work/err" || fail "eval left with $?"
grep -q '"place_returns":{"0":{"mean":' "$work/out" || fail "an evaluation has no return of place 0"
[ "$(metric rival "$work/out")" = 2 ] || fail "the policy of a mix is evaluated elsewhere than in env.id"
if [ "${DT_LONG:-}" = 1 ]; then
    train mix_ahead --set phase2_ppo.overlap=1
    train mix_again2 --set phase2_ppo.overlap=1 --max-steps 5
    resume mix_again2 --set comm.backend=sim --set comm.ranks=2
    [ "$(state_hash "$work/mix_ahead")" = "$(state_hash "$work/mix_again2")" ] || fail "a mix, overlap: other bits"
fi
refused 2 'l9' --set "env.mix=snakes,snakes:opponent=l9"
refused 2 "snakes:features=planes must match snakes, the first one: port 0 is obs" \
    --set "env.mix=snakes,snakes:features=planes"
refused 2 "env.mix, entry 2" --set env.mix=snakes,snakess
base="--plugin phase_ddpg -q --set env.id=snakes --set env.instances=4 --set env_snakes.max_steps=16
      --set phase_ddpg.collect_steps=4 --set phase_ddpg.learning_starts=48 --set phase_ddpg.iterations=12
      --set data.batch=16 --set training.eval_interval=0 --set evaluation.baselines= --set report.enabled=false
      --set env.mix=snakes:opponent=l1,snakes:opponent=random"
train mix_ddpg --threads 1
train mix_ddpg_part --max-steps 8
resume mix_ddpg_part --set comm.backend=sim --set comm.ranks=3
[ "$(state_hash "$work/mix_ddpg")" = "$(state_hash "$work/mix_ddpg_part")" ] || fail "a mix off policy: other bits"
base=$rules
rm -rf "$work/whole"
mv "$work/rule" "$work/whole"

# evaluations have the opponent, not the schedule, unless they ask for it
cases=$((cases + 2))
"$dtrain" eval --checkpoint "$work/whole" --seeds 1 --episodes 2 --json >"$work/out" 2>"$work/err" || fail "eval left with $?"
[ "$(metric rival "$work/out")" = 2 ] || fail "an evaluation has another opponent than l2"
"$dtrain" eval --checkpoint "$work/whole" --seeds 1 --episodes 2 --json --set 'evaluation.env=opponent=evasion' \
    >"$work/out" 2>"$work/err" || fail "eval with evaluation.env left with $?"
[ "$(metric rival "$work/out")" = 5 ] || fail "evaluation.env does not choose the opponent"

# the greedy rule beats random, which loses to it as often (measured: .98 and .99 of games)
for rule in l2 random; do
    cases=$((cases + 1))
    other=$([ $rule = l2 ] && echo random || echo l2)
    "$dtrain" eval --plugin phase2_ppo --env snakes --set models.controller=controller_snakes --seeds 1,2 --episodes 10 \
        --set controller_snakes.rule=$rule --set env_snakes.opponent="$other" --json >"$work/out" 2>"$work/err" ||
        fail "a match-up left with $?"
    share=$(metric "$([ $rule = l2 ] && echo win || echo loss)" "$work/out")
    awk "BEGIN { exit !(${share:-0} >= 0.9) }" || fail "greedy wins ${share:-nothing} of games against random"
done

cases=$((cases + 1))
"$dtrain" render "$work/whole" --out "$work/film.html" >/dev/null 2>"$work/err" || fail "render left with $?"
grep -q "env_snakes" "$work/film.html" || fail "no film of a game"

refused 2 "l9" --set env_snakes.opponent=l9
refused 2 "max_steps" --set env_snakes.max_steps=0
refused 2 "view_rows" --set env_snakes.view_rows=11
refused 2 "view_columns" --set env_snakes.view_columns=0
refused 2 "schedule_episodes" --set env_snakes.schedule_episodes=0
refused 2 "evasion_from" --set env_snakes.evasion_from=-2
refused 2 "reward_death" --set env_snakes.reward_death=nan
refused 2 "reward_own" --set env_snakes.reward_own=1e9
refused 2 "advice" --set env.id=cartpole --set models.controller=controller_snakes
refused 2 "what a policy sees" --set 'evaluation.env=features=planes'

# the profile is a plan that fits
cases=$((cases + 1))
"$dtrain" --plugin phase2_ppo --profile snakes --dry-run >"$work/out" 2>"$work/err" || fail "the profile left with $?"

echo "snakes: $cases cases, $failed failed"
[ "$failed" -eq 0 ]
