#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Memory is told before a run and held: arenas to the byte, resident memory within a tenth.
set -eu
work=$(mktemp -d "$PWD/test-memory-XXXXXX") # whole: the test goes there, and the trap runs there
trap 'rm -rf "$work"' EXIT
cd "$work"

fail() {
    echo "FAIL: $*"
    cat out
    exit 1
}

# the largest value of a metric in a run's records
most() {
    tr ',' '\n' <run/metrics.jsonl | tr -d '{}' | sed -n "s|^\"$1\":||p" | sort -g | tail -n 1
}

# a run, and whether it kept to its plan
holds() {
    rm -rf run
    "$DT_BUILDDIR/dtrain" run "$@" --set evaluation.episodes=1 --set report.enabled=false --run-dir run >out 2>&1 ||
        fail "$*"
    grep -q '^info .*planned peak [0-9.]* MB resident; arenas at most [0-9.]* MB: parameters' out || fail "$*: tells nothing"
    test "$(most mem/arenas)" = "$(most mem/arenas_planned)" ||
        fail "$*: arenas take $(most mem/arenas) bytes, planned were $(most mem/arenas_planned)"
    if grep -q __asan_init "$DT_BUILDDIR/dtrain"; then # it has memory of its own
        return
    fi
    echo "$(most mem/rss) $(most mem/planned)" |
        awk -v what="$*" '{ printf "%s: %.1f MB resident, %.1f planned\n", what, $1 / 1e6, $2 / 1e6
                            exit !($1 < 1.1 * $2 && $1 > 0.9 * $2) }' ||
        fail "$*: $(most mem/rss) bytes resident, planned were $(most mem/planned)"
}

holds --plugin phase1_world_model --threads 1 --set training.epochs=1 --set training.eval_interval=1
holds --plugin phase1_world_model --threads 2 --profile test
holds --plugin phase2_ppo --threads 2 --set env.id=env_traffic --set models.controller=controller_influence \
    --set models.perception=risk_gnn --set models.shield=shield_barrier --set phase2_ppo.iterations=2 \
    --set phase2_ppo.train_batch=1000 --set phase2_ppo.fragment=80 --set phase2_ppo.sgd_epochs=1 \
    --set training.eval_interval=2
holds --plugin phase3_constrained --threads 1 --set phase3_constrained.iterations=2 --set training.eval_interval=2 \
    --set phase3_constrained.pid_delay=1

# the same plan without a run, of every phase of a configuration, for people and for scripts
"$DT_BUILDDIR/dtrain" run --config "$DT_SRCDIR/share/hybrid.cfg" --dry-run --name mine >out 2>&1 || fail "dry run"
for piece in 'phase phase1_world_model: 350 steps (7 a pass over the data)' 'phase phase2_ppo: .* in 40 rounds of' \
    '  perception   risk_gnn  .* parameters, trained' '  planned peak [0-9.]* MB resident; arenas [0-9.]* MB at most' \
    '    activations  *[0-9.]* / [0-9.]*' '    rollouts  *[0-9.]* / [0-9.]*' '8 environments in this process' \
    '  disk         [0-9.]* MB for checkpoints: 6 of [0-9.]* MB are kept' 'files below runs/mine-<UTC time>-' \
    '  checkpoints/'; do
    grep -q "$piece" out || fail "the dry run says nothing of: $piece"
done
test ! -e runs || fail "a dry run writes"
"$DT_BUILDDIR/dtrain" run --config "$DT_SRCDIR/share/hybrid.cfg" --dry-run --json >out 2>err || fail "dry run as JSON"
for piece in '"phase":"phase2_ppo"' '"parameters_trained":' '"iterations":40' '"stop":{"epochs":0' '"bytes":{"parameters":' \
    '"rollouts":' '"arenas":' '"planned_peak":' '"planned_peak_device":0' '"environments":8' '"kept":' '"files":\["config.cfg"'; do
    grep -q "$piece" out || fail "the dry run as JSON has no $piece"
done
