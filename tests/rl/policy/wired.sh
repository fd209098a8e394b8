#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Services dtrain.wiring/1 and dtrain.rounds/1 through a phase that is made of them alone (wired.c): models in their
# order, a critic of its own and its target network over the rows that come after, groups, rounds that end early; the same bits
# from threads, ranks and a resume; and what is refused, in which words.
set -u

name=wired
base="--plugin ${DT_BUILDDIR:-.}/tests/rl/policy/.libs/wired.so -q --set checkpoint.every_seconds=0 --set report.enabled=false"
# shellcheck source=tests/phases/rig.inc
. "${DT_SRCDIR:-.}/tests/phases/rig.inc"

train whole --threads 1
train threads --threads 3
same threads "3 threads instead of 1"
train ranks --set comm.backend=sim --set comm.ranks=2
same ranks "2 virtual ranks instead of 1"
train stopped --max-steps 9
# shellcheck disable=SC2086
"$dtrain" run $base --resume "$work/stopped" >/dev/null 2>"$work/err" || fail "resuming left with $?"
same stopped "stopped and resumed"
cases=$((cases + 3))
tail -n 1 "$work/whole/metrics.jsonl" | grep -q '"wired/round":3[,.]' || fail "the last round is not the fourth"
grep -q '"losses/explained_variance":\|"charts/episodes":' "$work/whole/metrics.jsonl" || fail "rounds report nothing"
"$dtrain" ckpt inspect "$work/whole" --json | grep -q '"step":24[,}]' || fail "4 rounds of 3 passes of 2 minibatches are not 24 steps"
# a pass that has learnt enough is the last one of its round, and the schedule goes on behind it
train early --set wired.enough=1e9
cases=$((cases + 2))
grep -q '"wired/passes":[23]' "$work/early/metrics.jsonl" && fail "a round went on behind its last pass"
"$dtrain" ckpt inspect "$work/early" --json | grep -q '"step":24[,}]' || fail "a round that ends early does not pass its steps"

refused 2 "wired.fragment = 300, steps of an instance, is above wired.train_batch = 128" --set wired.fragment=300
refused 2 "risk_gnn is a model for the role perception" --set models.critic=risk_gnn
refused 2 "creating critic_others" --set models.critic=critic_others
refused 3 "model controller_mlp is already part of the wiring" --set wired.fault=adopt
refused 3 "has 20 ports and 2 sizes, at most 16 of each are possible" --set wired.fault=offers
refused 3 "wired binds a second environment; one per phase is possible" --set wired.fault=second
refused 3 "wired describes its rounds without a loss to record" --set wired.fault=silent
refused 3 "binds more than 8 models" --set wired.fault=crowd
refused 2 "a window of 3 steps is known of rows themselves, not of rows \"next_\"" --set wired.window=3 \
    --set models.controller=controller_lstm --set controller_lstm.hidden=8
refused 2 "foresight requests a history from the environment" --set wired.foresight=true --set models.world=world_lstm

echo "$cases cases, $failed failed"
[ "$failed" -eq 0 ]
