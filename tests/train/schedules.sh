#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Every schedule that the configuration offers changes the learning rate of a run as its formula says. The formulas are
# written again here, in epochs x, so that a schedule which is lost between the configuration and the optimizer fails.
set -u

dtrain=${DT_BUILDDIR:-.}/dtrain
work=$(mktemp -d ./test-schedules-XXXXXX) || exit 1
trap 'rm -rf "$work"' EXIT INT TERM
failed=0
words=$(sed -n 's/^| `scheduler` | one of \([a-z, ]*\) |.*/\1/p' "${DT_SRCDIR:-.}/docs/reference/options-host.md" | tr -d ,)
test "$(echo "$words" | wc -w)" -ge 4 || {
    echo "FAIL: docs/reference/options-host.md lists the schedules \"$words\""
    exit 1
}

# two steps an epoch, ten epochs a round, rates of the last step of each round
for word in $words; do
    "$dtrain" --plugin phase2_ppo --run-dir "$work/$word" -q --threads 1 --set env.id=cartpole --set env.instances=4 \
        --set phase2_ppo.fragment=50 --set phase2_ppo.train_batch=200 --set data.batch=100 \
        --set phase2_ppo.iterations=3 --set report.enabled=false --set evaluation.baselines= \
        --set training.eval_interval=0 --set training.warmup_epochs=16 --set training.scheduler="$word" \
        --set training.learning_rate=1e-3 --set training.step_size=5 --set training.step_gamma=0.5 \
        --set training.t_max=28 --set training.eta_min=1e-4 >"$work/out" 2>&1 || {
        echo "FAIL: $word: exit code $?"
        tail -n 3 "$work/out"
        failed=$((failed + 1))
        continue
    }
    sed -n 's/.*"step":\([0-9]*\),.*"lr":\([0-9.e+-]*\),.*/\1 \2/p' "$work/$word/metrics.jsonl" |
        awk -v word="$word" '
        {
            x = $1 / 2
            share = (x < 28 ? x - 16 : 12) / 12
            rate["constant"] = 1e-3
            rate["cosine"] = 1e-4 + 0.5 * 9e-4 * (1 + cos(3.14159265358979 * share))
            rate["step"] = 1e-3 * 0.5 ^ int(x / 5)
            rate["linear"] = 1e-3 - 9e-4 * share
            expected = x < 16 ? 1e-3 * x / 16 : rate[word]
            if (!(word in rate) || ($2 - expected) ^ 2 > 1e-24) {
                printf "FAIL: %s: rate %s at epoch %s, expected %.12g\n", word, $2, x, expected
                bad = 1
            }
            n++
        }
        END { exit bad || n != 3 }' || failed=$((failed + 1))
done
test "$failed" -eq 0
