#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# data.batch = "auto": a number that fits into memory, written down when the run begins and kept from then on. The run
# is that of the same number to the bit, on any number of ranks and processes; other memory later changes nothing of it.
set -u
. "${DT_SRCDIR:?}/tests/mpi_job.sh"

dtrain=${DT_BUILDDIR:-.}/dtrain
work=$(mktemp -d ./test-batch-XXXXXX) || exit 1
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
small="--plugin phase1_world_model -q --max-steps 4 --set training.eval_interval=0 --set data.shards=4 --threads 1
    --set risk_gnn.hidden=8 --set risk_gnn.heads=1 --set risk_gnn.layers=1 --set world_lstm.hidden=8
    --set world_lstm.layers=1 --set world_lstm.head=8 --set report.enabled=false --set metrics.tensorboard=false"
pole="--plugin phase2_ppo --set env.id=cartpole --set phase2_ppo.train_batch=72000 --set controller_mlp.hidden=512
    --set engine.slice_rows=65536 --set data.shards=2 --set data.batch_max=65536 --threads 1"

run() { # name options...
    name=$1
    shift
    "$dtrain" --run-dir "$work/$name" "$@" 2>"$work/err" || fail "$name left with $?"
}
same() { # name
    { [ -n "$(state_hash "$work/number")" ] && [ "$(state_hash "$work/$1")" = "$(state_hash "$work/number")" ]; } ||
        fail "$1: other bits than those of the number"
}
chosen() { # name number: written down in all places
    [ "$(tr -d ' \n' <"$work/$1/config.cfg" | sed -n 's/.*phases=.*data={[^}]*batch=\([0-9]*\);.*/\1/p')" = "$2" ] ||
        fail "$1: config.cfg has not data.batch = $2"
}
refused() { # text options...
    text=$1
    shift
    "$dtrain" --run-dir "$work/refused" "$@" >"$work/out" 2>"$work/err"
    code=$?
    { [ "$code" -eq 2 ] && grep -Eq "^error .*$text" "$work/err"; } || fail "$*: code $code, not 2 and \"$text\""
}
planned() { # options...: the plan as JSON
    "$dtrain" run --dry-run --json "$@" 2>"$work/err" || fail "no plan of $*"
}
member() { # of the choice, in a plan
    sed -n 's/.*"batch":{\([^}]*\)}.*/\1/p' | tr ',' '\n' | sed -n "s/^\"$1\":\"*\([^\"]*\)\"*$/\1/p"
}

# shellcheck disable=SC2086
{
    # 486 samples: with 60 and less a pass has 8 steps
    run number $small --set data.batch=32
    run alone $small --set data.batch=auto && same alone && chosen alone 32
    grep -q '"phases.0.data.batch":{"value":32,"origin":"auto"}' "$work/alone/config.origin.json" ||
        fail "config.origin.json does not tell who chose"
    grep -q 'data.batch = auto takes 32 samples (at least 8 steps a pass over the data): the plan takes .* MB of a budget of' \
        "$work/alone/train.log" || fail "train.log does not tell why"
    run ranks $small --set data.batch=auto --set comm.backend=sim --set comm.ranks=2 && same ranks && chosen ranks 32
    run processes $small --set data.batch=auto --nproc 2 && same processes && chosen processes 32
    run capped $small --set data.batch=auto --set data.batch_max=31 && chosen capped 16

    # on again with the same words on a machine that would give another number, or none
    run stopped $small --set data.batch=auto --max-steps 2
    run stopped $small --resume "$work/stopped" --set data.batch=auto --set data.batch_max=8 && same stopped
    chosen stopped 32
    run again $small --resume auto --set data.batch=auto --max-steps 2
    run again $small --resume auto --set data.batch=auto --set memory.target_gb=0.9 --set data.batch_max=8 --nproc 2
    same again && chosen again 32
    "$dtrain" eval --checkpoint "$work/again" --set data.batch=auto >"$work/out" 2>"$work/err" || fail "eval with auto left with $?"

    # more memory, a larger batch; the plan says which, and why
    [ "$(planned $pole --set data.batch=auto | member samples)" = 8192 ] || fail "not 8192 samples where memory is plenty"
    # a sanitizer keeps what is given back: the plan of each candidate counts those before it
    if grep -q __asan_init "$dtrain"; then sizes='' smallest=0.1; else sizes='2048 4096' smallest=0.0; fi
    for batch in $sizes; do
        peak=$(planned $pole --set data.batch=$batch | sed -n 's/.*"planned_peak":\([0-9]*\),.*/\1/p')
        target=$(awk -v n="$peak" 'BEGIN { printf "%.4f", (n + 3e6) / 0.75e9 }')
        planned $pole --set data.batch=auto --set memory.target_gb="$target" >"$work/plan"
        { [ "$(member samples <"$work/plan")" = $batch ] && [ "$(member limit <"$work/plan")" = memory ]; } ||
            fail "not $batch samples where memory.target_gb = $target: $(member samples <"$work/plan")"
        awk -v n="$(member planned <"$work/plan")" -v most="$(member budget <"$work/plan")" \
            'BEGIN { exit !(n > 0 && n <= most) }' || fail "the plan of $batch is beyond its budget"
        [ "$(member budget_by <"$work/plan")" = "memory.target_gb = $(awk -v t="$target" 'BEGIN { printf "%g", t }')" ] ||
            fail "the plan does not say what the budget is of"
    done
    "$dtrain" run $pole --set data.batch=auto --dry-run >"$work/out" 2>"$work/err" || fail "the plan left with $?"
    grep -q '^  batch  *data.batch = auto takes 8192 samples (.*): the plan takes .*, three quarters of .* free' "$work/out" ||
        fail "the plan says nothing of the batch"

    # replays, each step of them on its own
    [ "$(planned --plugin phase_sac --set phase_sac.buffer_size=4096 --set data.batch=auto --threads 1 |
        member samples)" = 512 ] || fail "phase_sac with a replay of 4096"

    refused 'data.batch = "some" from --set: expected an integer in \[1, 1048576\], or auto' $small --set data.batch=some
    refused 'data.batch = "0" from --set' $small --set data.batch=0
    refused 'data.shards = 4' $small --set data.batch=auto --set data.batch_max=3
    refused "with 2 samples, the smallest batch .* the plan takes ${smallest}[0-9]* GB, and it may use 0.0075 GB: .* memory.target_gb = 0.01;" \
        $pole --set data.batch=auto --set memory.target_gb=0.01
    # what is not the batch's fault is not said to be; where it is, what makes the smallest one is named
    refused 'phase 1 \(phase3_constrained\): phase phase3_constrained: phase3_constrained.limits: cannot read "few"' \
        --plugin phase3_constrained --set data.batch=auto --set phase3_constrained.limits=few
    refused 'tried down to 1024 samples, one for each of data.shards; lower data.shards for .* one step takes 1024' \
        $small --set data.batch=auto --set data.shards=1024
    refused 'phase_coma set the batch size, and data.batch must follow from them; set it to a number' \
        --plugin phase_coma --set data.batch=auto
    # what a phase refuses when it is made leaves no folder either
    refused 'a replay of 1000000000000 samples of up to 96 bytes each takes 96 TB' --plugin phase_sac \
        --set phase_sac.buffer_size=1000000000000
    # one that is refused behind another one does not take the run with it
    printf 'phases = ( { plugin = "phase1_world_model"; stop = { steps = 1; }; },
        { plugin = "phase2_ppo"; init = "previous"; } );\n' >"$work/two.cfg"
    "$dtrain" --config "$work/two.cfg" --run-dir "$work/two" ${small#--plugin phase1_world_model} --set env.id=cartpole \
        >"$work/out" 2>"$work/err"
    code=$?
    { [ $code -eq 2 ] && [ -e "$work/two/checkpoints" ] && grep -q '"exit_code":2' "$work/two/meta.json"; } ||
        fail "a second phase that is refused: code $code"
    [ ! -e "$work/refused" ] || fail "a run that was refused left a folder"
}
[ "$failed" -eq 0 ]
