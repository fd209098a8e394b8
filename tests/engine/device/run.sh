#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Whole runs of phase 1 on a device: the CPU's losses, replay equal to launching kernel by kernel, any group of shards,
# stopped and resumed, killed and resumed, evaluation. Without arguments the device is one of host memory (host_device.c),
# whose kernels are the CPU's, and bits must be equal; `run.sh gpu` takes the GPU, and then losses must be close.
set -u

dtrain=${DT_BUILDDIR:-.}/dtrain
work=$(mktemp -d ./test-device-XXXXXX) || exit 1
trap 'rm -rf "$work"' EXIT INT TERM
failed=0
cases=0
steps=6
unset DTRAIN__ENGINE__DEVICE || true
if [ "${1:-}" = gpu ]; then
    fake=false
    "$dtrain" --plugin phase1_world_model --device cuda --dry-run -q >/dev/null 2>"$work/err" || {
        echo "skipped: $(tail -n 1 "$work/err")"
        exit 77
    }
else
    fake=true
    DTRAIN_PLUGIN_PATH=${DT_BUILDDIR:-.}/tests/engine/device/.libs
    export DTRAIN_PLUGIN_PATH
fi

# on the CPU a shard is one slice too, as on the device
tiny="--plugin phase1_world_model --set risk_gnn.hidden=16 --set risk_gnn.heads=2 --set risk_gnn.layers=1
      --set world_lstm.hidden=16 --set world_lstm.layers=1 --set data.batch=16 --set training.epochs=2
      --set training.eval_interval=0 --set training.save_interval=0 --set checkpoint.every_seconds=0
      --set engine.slice_rows=2048 --max-steps $steps --threads 2 -q"

fail() {
    echo "FAIL: $*"
    sed 's/^/    /' "$work/err" | tail -n 5
    failed=$((failed + 1))
}

run() { # DIR, arguments...
    dir=$1
    shift
    # shellcheck disable=SC2086
    "$dtrain" $tiny --run-dir "$dir" "$@" 2>"$work/err"
    code=$?
    [ $code -eq 0 ] || fail "exit code $code: $*"
}

state_hash() {
    "$dtrain" ckpt inspect "$1" --json 2>/dev/null | sed -n 's/.*"state_hash":"\([0-9a-f]*\)".*/\1/p'
}

same() { # DIR DIR WHAT
    cases=$((cases + 1))
    a=$(state_hash "$1")
    [ -n "$a" ] && [ "$a" = "$(state_hash "$2")" ] || fail "$3: other bits"
}

# numbers of two JSON texts, in order, within a share of each other
close() { # FILE FILE SHARE WHAT
    cases=$((cases + 1))
    awk -v share="$3" '
        { gsub(/[^-+0-9.eE]+/, " "); n = split($0, x, " "); for (i = 1; i <= n; i++) if (x[i] ~ /[0-9]/) v[FILENAME, ++c[FILENAME]] = x[i] }
        END {
            if (c[ARGV[1]] == 0 || c[ARGV[1]] != c[ARGV[2]]) { print "    " c[ARGV[1]] " and " c[ARGV[2]] " numbers"; exit 1 }
            for (i = 1; i <= c[ARGV[1]]; i++) {
                a = v[ARGV[1], i]; b = v[ARGV[2], i]; d = a > b ? a - b : b - a; m = a < 0 ? -a : a
                if (d > share * (m + 1e-3)) { print "    number " i ": " a " and " b; bad = 1 }
            }
            exit bad
        }' "$1" "$2" || fail "$4"
}

losses() { # DIR
    sed -n 's/.*"loss":\([-+0-9.e]*\).*/\1/p' "$1/metrics.jsonl"
}

run "$work/cpu" --device cpu
run "$work/sync" --device cuda --set engine.synchronous=true
losses "$work/cpu" >"$work/cpu.loss"
losses "$work/sync" >"$work/sync.loss"
close "$work/cpu.loss" "$work/sync.loss" 1e-3 "losses of the CPU and of the device"
if $fake; then
    same "$work/cpu" "$work/sync" "the CPU and the device"
fi
grep -q '"device": *"cuda:0 ' "$work/sync/meta.json" || fail "meta.json does not name the device"

run "$work/graphs" --device cuda:0
same "$work/sync" "$work/graphs" "replayed steps and waited-for kernels"
run "$work/plain" --device cuda --no-graphs
same "$work/sync" "$work/plain" "without graphs"
run "$work/micro" --device cuda --set engine.micro_shards=2
same "$work/sync" "$work/micro" "two shards at a time"

# the plan: sums of shards take one arena when all run at once, and one for each that waits where they run one by one
planned() { # NAME arguments...
    name=$1
    shift
    # shellcheck disable=SC2086
    "$dtrain" $tiny --device cuda --dry-run --json "$@" 2>"$work/err" |
        sed -n 's/.*"bytes_device":{[^}]*"'"$name"'":\([0-9]*\).*/\1/p'
}
cases=$((cases + 1))
parameters=$(planned parameters --set data.shards=8)
for case in 8:1 2:2 1:3; do
    sums=$(planned gradients --set data.shards=8 --set engine.micro_shards=${case%:*})
    [ -n "$sums" ] && [ "$sums" -eq $((${case#*:} * parameters)) ] ||
        fail "sums of 8 shards, ${case%:*} at a time, take '$sums' bytes of the device, parameters $parameters"
done

# stopped after three steps, and killed by the system at a later one
run "$work/stopped" --device cuda --max-steps 3
"$dtrain" run --resume "$work/stopped" --device cuda --max-steps $steps -q 2>"$work/err" || fail "the resumed run"
same "$work/sync" "$work/stopped" "stopped and resumed"
# shellcheck disable=SC2086
DTRAIN_FAULT="fs.*:200!" "$dtrain" $tiny --run-dir "$work/killed" --device cuda --set checkpoint.every_steps=1 \
    2>"$work/err"
if [ $? -eq 137 ] && [ -n "$(state_hash "$work/killed")" ]; then
    "$dtrain" run --resume "$work/killed" --device cuda --max-steps $steps -q 2>"$work/err" || fail "after a kill"
    same "$work/sync" "$work/killed" "killed and resumed"
else
    fail "the run was not killed between two checkpoints"
fi

# a metric of training: each report has the loss of its own step, so that the epoch's sum is the same after a resume
patient() { # DIR arguments...
    dir=$1
    shift
    cat >"$work/patient.cfg" <<END
phases = ( { plugin = "phase1_world_model"; stop = { metric = "min:train/loss"; patience = 3; }; } );
END
    # shellcheck disable=SC2086
    "$dtrain" ${tiny#--plugin phase1_world_model} --config "$work/patient.cfg" --run-dir "$dir" "$@" 2>"$work/err" ||
        fail "exit code $?: $*"
}
patient "$work/patient" --device cuda
patient "$work/rested" --device cuda --max-steps 3
"$dtrain" run --resume "$work/rested" --device cuda --max-steps $steps -q 2>"$work/err" || fail "the resumed run"
same "$work/patient" "$work/rested" "stopped and resumed, with a metric of training"
cases=$((cases + 1))
losses "$work/patient" >"$work/patient.loss"
cmp -s "$work/patient.loss" "$work/sync.loss" || fail "losses of other steps than of steps that are waited for"

# a device for the first phase alone: the second one gives it back
phases() { # DIR DEVICE DEVICE
    cat >"$work/two.cfg" <<END
phases = ( { plugin = "phase1_world_model"; engine = { device = "$2"; }; stop = { steps = 3; }; },
           { plugin = "phase1_world_model"; engine = { device = "$3"; }; stop = { steps = 2; }; } );
END
    # shellcheck disable=SC2086
    "$dtrain" ${tiny#--plugin phase1_world_model} --config "$work/two.cfg" --run-dir "$1" 2>"$work/err" ||
        fail "a phase on $2, then one on $3: $?"
}
phases "$work/both" cuda cpu
grep -q "is released: arenas 0.0 MB.*, device [0-9.]* of" "$work/both/train.log" || fail "nothing said of the device"
if $fake; then
    phases "$work/neither" cpu cpu
    same "$work/both" "$work/neither" "a device in the first of two phases"
fi

# what the records hold of the device: what the host holds there and, by NVML, what the driver says
last() { # NAME DIR
    sed -n "s|.*\"$1\":\([-+0-9.e]*\).*|\1|p" "$2/metrics.jsonl" | tail -n 1
}
held=$(last gpu/mem_allocated "$work/sync")
awk -v held="${held:-0}" -v planned="$(last gpu/mem_planned "$work/sync")" \
    'BEGIN { exit !(held > 0 && held > 0.9 * planned && held < 1.1 * planned) }' ||
    fail "gpu/mem_allocated is '$held', gpu/mem_planned $(last gpu/mem_planned "$work/sync")"
test -z "$(last gpu/mem_allocated "$work/cpu")" || fail "the CPU has memory of a GPU"
if $fake; then
    libs=${DT_BUILDDIR:-.}/tests/engine/device/.libs
    for which in "" init; do
        LD_LIBRARY_PATH=$libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} FAKE_NVML=$which run "$work/nvml$which" --device cuda \
            --set metrics.device_every_s=0.001
        same "$work/sync" "$work/nvml$which" "a run that is looked at"
    done
    for pair in gpu/mem_reserved=600000000 gpu/mem_used=3000000000 gpu/utilisation=87 gpu/temperature=61; do
        test "$(last "${pair%=*}" "$work/nvml")" = "${pair#*=}" || fail "$pair: $(last "${pair%=*}" "$work/nvml")"
    done
    grep -q 'of the GPU are not recorded: NVML does not start: Driver Not Loaded' "$work/nvmlinit/train.log" ||
        fail "says not why nothing is recorded"
    test -z "$(last gpu/mem_used "$work/nvmlinit")" || fail "records what nobody told"
    "$dtrain" report "$work/nvml" --out "$work/page.html" 2>"$work/err" || fail "the report"
    for title in 'allocated on the device' 'held of the device by this process' 'in use on the device, by all'; do
        grep -q "data-name=\"$title\"" "$work/page.html" || fail "the report draws nothing of memory $title"
    done
    grep -q 'gpu/utilisation' "$work/page.html" || fail "the report says nothing of utilisation"
    cases=$((cases + 2))
fi

for device in cpu cuda; do
    "$dtrain" eval --plugin phase1_world_model --checkpoint "$work/sync" --device $device --json -q \
        >"$work/$device.json" 2>"$work/err" || fail "evaluation with --device $device"
done
close "$work/cpu.json" "$work/cuda.json" 1e-3 "evaluation on the CPU and on the device"

echo "$cases comparisons, $failed failed"
exit $((failed > 0))
