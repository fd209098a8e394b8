#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# How samples are fed: drawn by weight, with noise, and what is left of an epoch as a batch. Threads that train or read,
# virtual ranks and a stop in the middle change no bit; each of these settings does; wrong ones are refused.
set -u

dtrain=${DT_BUILDDIR:-.}/dtrain
work=$(mktemp -d ./test-feeding-XXXXXX) || exit 1
trap 'rm -rf "$work"' EXIT INT TERM
failed=0

fail() {
    echo "FAIL: $*"
    tail -n 8 "$work/err" | sed 's/^/    /'
    failed=$((failed + 1))
}
state_hash() {
    "$dtrain" ckpt inspect "$1" --json 2>/dev/null | sed -n 's/.*"state_hash":"\([0-9a-f]*\)".*/\1/p'
}
small="--plugin phase1_world_model -q --set data.batch=150 --set training.epochs=2 --set training.eval_interval=0
    --set risk_gnn.hidden=8 --set risk_gnn.heads=1 --set risk_gnn.layers=1 --set world_lstm.hidden=8
    --set world_lstm.layers=1 --set world_lstm.head=8 --set report.enabled=false --set metrics.tensorboard=false"
drawn="--set data.sampling=weighted --set data.drop_last=false --set data_trajectory.balance=risk"
noisy="--set data_trajectory.speed_noise_mps=0.1 --set data_trajectory.position_noise_m=0.5
    --set data_trajectory.drop_edges=0.1 --set data_trajectory.hide_nodes=0.05"

run() { # name options...
    name=$1
    shift
    "$dtrain" $small --run-dir "$work/$name" "$@" 2>"$work/err" || fail "$name left with $?"
}
same() { # name
    [ "$(state_hash "$work/$1")" = "$(state_hash "$work/one")" ] || fail "$1: other bits"
}
other() { # name
    [ "$(state_hash "$work/$1")" != "$(state_hash "$work/one")" ] || fail "$1 made no difference"
}
refused() { # code text options...
    want=$1 text=$2
    shift 2
    "$dtrain" $small --run-dir "$work/refused" "$@" 2>"$work/err"
    code=$?
    { [ "$code" -eq "$want" ] && grep -q "$text" "$work/err"; } || fail "$*: code $code, not $want and \"$text\""
}

# shellcheck disable=SC2086
{
    run one $drawn $noisy --threads 1
    [ -n "$(state_hash "$work/one")" ] || fail "no state"
    run readers $drawn $noisy --threads 2 --set data.workers=3 && same readers
    run ranks $drawn $noisy --set comm.backend=sim --set comm.ranks=3 && same ranks
    run stopped $drawn $noisy --max-steps 5
    "$dtrain" --resume "$work/stopped" $small $drawn $noisy 2>"$work/err" || fail "resuming left with $?"
    same stopped
    run silent $drawn && other silent
    run shuffled --set data.drop_last=false $noisy && other shuffled
    run in_order --set data.sampling=sequential --set data.drop_last=false $noisy && other in_order
    # 486 samples: three whole batches of 150, and what is left
    for name in "one 8" "in_order 8"; do
        grep -q "\"step\":${name#* }" "$work/${name% *}/metrics.jsonl" || fail "${name% *}: not ${name#* } steps"
    done
    # less than a batch: one of all there is, or a refusal that says so
    refused 2 "or set data.drop_last = false, which trains on what is there" --set data.batch=1000
    run short $noisy --set data.batch=1000 --set data.drop_last=false
    grep -q "486 samples" "$work/short/train.log" ||
        fail "short: not said"
    run short_ranks $noisy --set data.batch=1000 --set data.drop_last=false --set comm.backend=sim --set comm.ranks=2
    [ "$(state_hash "$work/short")" = "$(state_hash "$work/short_ranks")" ] || fail "short: other bits on two ranks"
    # other recordings than before: said, and both are known to have been trained on
    "$dtrain" data sample "${DT_BUILDDIR:-.}/share/demo.store" --out "$work/few" -q --set sample.scenes=30 || fail "no sample"
    run changed --set data.batch=32 --max-steps 1
    "$dtrain" --resume "$work/changed" $small --set data.batch=32 --max-steps 2 --set "data.store=$work/few" 2>"$work/err" ||
        fail "other recordings: $?"
    grep -q "was not trained on .*/few: it continues with other recordings" "$work/err" || fail "other recordings without a word"
    for store in few ../share/demo.store; do
        "$dtrain" eval --checkpoint "$work/changed" --set "data.store=$work/$store" >/dev/null 2>"$work/err"
        grep -q "evaluated on the part held out of" "$work/err" || fail "$store counts as unseen"
    done
    refused 2 "data.workers" --set data.workers=0
    # what would say nothing
    refused 2 'data_trajectory.balance = "risk" from --set has no effect: .*data.sampling = "weighted"' \
        --set data_trajectory.balance=risk
    refused 2 'rate_hz = "10.0" from --set has no effect: phase1_world_model sets it to "5"; use phase1_world_model.rate_hz' \
        --set data_trajectory.rate_hz=10
    refused 2 'split = "eval" from --set has no effect: phase1_world_model sets it to "train"$' \
        --set data_trajectory.split=eval
    refused 2 'store = ".*few" from --set has no effect: data.store sets' --set "data_trajectory.store=$work/few"
    refused 2 'data.window = "128" from --set has no effect: it applies to streams' --set data.window=128
    refused 2 'data.stream_timeout = ".*" from --set has no effect' --set data.stream_timeout=5
    printf 'data = { stream_room = 3.0; };\n' >"$work/room.cfg"
    refused 2 'data.stream_room = "3.0*" from .*room.cfg.* has no effect' --config "$work/room.cfg"
    refused 2 'hazard_mps2 = "4.0*" from --set has no effect: it requires pairs = true' \
        --set data_trajectory.hazard_mps2=4
    printf 'data_trajectory = { history_s = 3.0; rate_hz = 5.0; balance = "none"; };\n' >"$work/spelt.cfg"
    run spelt $noisy --set phase1_world_model.rate_hz=1 --config "$work/spelt.cfg" --max-steps 1
    refused 2 "data.sampling" --set data.sampling=often
    refused 2 "drop_edges" --set data_trajectory.drop_edges=1.5
}

[ "$failed" -eq 0 ] && echo "feeding: all runs passed"
exit "$failed"
