#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# phase3_constrained through the program: multipliers answer to limits, a stopped and resumed run has the bits of one
# that nobody stopped, threads and virtual ranks change none, and bad input is refused.
set -u

name=constrained
limits=phase3_constrained.limits
base="--plugin phase3_constrained -q --set env.id=env_traffic --set env_traffic.episode_s=60 --set env_traffic.action_s=5 --set env.instances=4
      --set phase3_constrained.fragment=16 --set phase3_constrained.train_batch=64 --set data.batch=32
      --set phase3_constrained.sgd_epochs=2 --set phase3_constrained.iterations=6 --set training.warmup_epochs=0
      --set training.eval_interval=0 --set checkpoint.every_seconds=0 --set phase3_constrained.max_violations=2
      --set phase3_constrained.pid_delay=2 --set $limits=starvation:0,collisions:1000"
# shellcheck source=tests/phases/rig.inc
. "${DT_SRCDIR:-.}/tests/phases/rig.inc"

# last DIR NAME: the last value of a metric
last() {
    sed -n "s|.*\"$2\":\([0-9.e+-]*\).*|\1|p" "$work/$1/metrics.jsonl" | tail -n 1
}

train whole --threads 1
train stopped --threads 1 --max-steps 6
"$dtrain" --resume "$work/stopped" -q >/dev/null 2>"$work/err" || fail "resuming left with $?"
same stopped "stopped and resumed"
train threads --threads 3
same threads "3 threads instead of 1"
train ranks --set comm.backend=sim --set comm.ranks=2
same ranks "2 virtual ranks instead of 1"

# A limit that is met lets the first multiplier fall to 0.
cases=$((cases + 1))
[ "$(last whole multipliers/collisions)" = 0 ] || fail "1000 collisions are far away: '$(last whole multipliers/collisions)'"
[ "$(last whole limits/collisions)" = 1000 ] || fail "the limit is reported as '$(last whole limits/collisions)'"
[ -n "$(last whole costs/starvation)" ] || fail "no cost is reported"

for algorithm in lagrangian penalty log_barrier; do
    cases=$((cases + 1))
    train $algorithm --set phase3_constrained.algorithm=$algorithm
    [ "$(state_hash "$work/$algorithm")" != "$(state_hash "$work/whole")" ] || fail "$algorithm does as the default"
done

# A cost that stays above its limit: a warning, once, or the end of the run.
cases=$((cases + 1))
train alarmed --set $limits=hard_braking:0 --set env_traffic.hard_mps2=0
[ "$(grep -c "cost hard_braking is .* above its limit 0 for 2 rounds in a row" "$work/alarmed/train.log")" -eq 1 ] ||
    fail "hard braking above its limit was not said once"
refused 7 "0 2 max_violations" --set $limits=hard_braking:0 \
    --set env_traffic.hard_mps2=0 --set phase3_constrained.on_violations=stop

refused 2 "\"speeding:1\" time_to_collision" --set $limits=speeding:1
refused 2 "multiplier_max 0" --set phase3_constrained.multiplier_max=0
refused 2 "start kp ki kd 0" --set phase3_constrained.start=0 --set phase3_constrained.kp=0 \
    --set phase3_constrained.ki=0 --set phase3_constrained.kd=0
refused 2 "start 3 multiplier_max 2" --set phase3_constrained.start=3 \
    --set phase3_constrained.multiplier_max=2
refused 2 "margin 1" --set phase3_constrained.margin=1
refused 2 "\"collisions\"" --set $limits=collisions
refused 2 "\"collisions:-1\"" --set $limits=collisions:-1
refused 2 "\"collisions:2\"" --set $limits=collisions:1,collisions:2
refused 2 "phase3_constrained.limits" --set $limits=
refused 2 "phase3_constrained.limits" --set env.id=cartpole
refused 2 "pid_lagrangian" --set phase3_constrained.algorithm=hope

echo "$cases cases, $failed failed"
[ "$failed" -eq 0 ]
