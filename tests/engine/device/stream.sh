#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Phase 1 on a device, from a folder of stores that grows: to the bits of the same samples in one store, whenever they
# come, on one process or two, after a stop, a kill and a time-out. Without arguments the device is one of host memory
# (host_device.c), whose bits are the CPU's; `stream.sh emulated` takes the emulated GPU, tests/engine/cuda/, where a step
# takes seconds: the cases that differ in nothing but the host's work are run there with DT_LONG=1 alone.
set -u

builds=$(cd "${DT_BUILDDIR:-.}" && pwd)
dtrain=$builds/dtrain
work=$(mktemp -d ./test-device-stream-XXXXXX) || exit 1
producer=
trap '[ -z "$producer" ] || kill "$producer" 2>/dev/null; rm -rf "$work"' EXIT INT TERM
failed=0
cases=0
unset DTRAIN__ENGINE__DEVICE || true
if [ "${1:-}" = emulated ]; then
    fake=false
    DTRAIN_PLUGIN_PATH=$builds/tests/engine/cuda/emulated:$builds/phases/.libs:$builds/models/.libs:$builds/plugins/.libs
    DT_EMULATE_DEVICES=2
    export DT_EMULATE_DEVICES
    width=4 batch=8 epochs=1
else
    fake=true
    DTRAIN_PLUGIN_PATH=$builds/tests/engine/device/.libs
    HOST_DEVICES=2
    export HOST_DEVICES
    width=16 batch=16 epochs=2
fi
export DTRAIN_PLUGIN_PATH

# on the CPU a shard is one slice too, as on the device
small="--plugin phase1_world_model -q --set risk_gnn.hidden=$width --set risk_gnn.heads=1 --set risk_gnn.layers=1
    --set world_lstm.hidden=$width --set world_lstm.layers=1 --set world_lstm.head=8 --set data.batch=$batch
    --set engine.slice_rows=4096 --set report.enabled=false --set metrics.tensorboard=false
    --set training.eval_interval=0 --set checkpoint.every_seconds=0 --threads 2"
# stores have about 20, 17 and 20 samples: a window, and most shards, are of more than one
streamed="$small --set data.window=24 --set training.epochs=$epochs --set data.store=$work/judged"

fail() {
    echo "FAIL: $*"
    tail -n 5 "$work/err" | sed 's/^/    /'
    failed=$((failed + 1))
}
finish() { # run CODE: the exit code of its command
    cases=$((cases + 1))
    [ "$2" -eq 0 ] || fail "$1 left with $2"
}
train() { # run folder options...
    to=$work/$1 from=$work/$2
    shift 2
    # shellcheck disable=SC2086
    "$dtrain" $streamed --run-dir "$to" --set "data.stream=$from" "$@" 2>"$work/err"
}
begin() { # as train, in the background
    to=$work/$1 from=$work/$2
    shift 2
    # shellcheck disable=SC2086
    "$dtrain" $streamed --run-dir "$to" --set "data.stream=$from" "$@" 2>"$work/err" &
    trainer=$!
}
tensors() { # run: of its last checkpoint
    for last in "$work/$1"/checkpoints/*; do :; done
    cat "$last/model.safetensors" "$last/optim.safetensors"
}
same() { # run run WHAT
    cases=$((cases + 1))
    tensors "$1" >"$work/a" && tensors "$2" >"$work/b"
    [ -s "$work/a" ] && cmp -s "$work/a" "$work/b" || fail "$3: other bits"
}
put() { # store folder: written aside, and renamed when it is complete
    cp -R "$work/parts/$1" "$work/$2/aside" && mv "$work/$2/aside" "$work/$2/00000$1"
}
wait_for() { # text run
    i=0
    until grep -q "$1" "$work/$2/train.log" 2>/dev/null || [ $i -ge 600 ]; do
        sleep 0.1
        i=$((i + 1))
    done
}

# three stores without a scene in common, in one as well
mkdir "$work/parts" "$work/whole" "$work/grown" "$work/late" "$work/killed-from" "$work/slow"
demo=$builds/share/demo.store
"$dtrain" data split "$demo" --out "$work/two" -q --set split.share=0.6 &&
    "$dtrain" data split "$work/two/first" --out "$work/more" -q --set split.share=0.5 || fail "no stores"
i=0
for from in "$work/more/first" "$work/more/second" "$work/two/second"; do
    "$dtrain" data sample "$from" --out "$work/parts/$i" -q --set sample.scenes=2 --set sample.seed=$i || fail "no store"
    put $i whole
    i=$((i + 1))
done
touch "$work/whole/000003.end"
"$dtrain" data merge "$work/parts/0" "$work/parts/1" "$work/parts/2" --out "$work/merged" -q || fail "no store"
"$dtrain" data sample "$demo" --out "$work/judged" -q --set sample.scenes=10 --set sample.seed=7 || fail "no store"

train one whole --device cuda
finish one $?
cases=$((cases + 1))
grep -q '"device": *"cuda:0 ' "$work/one/meta.json" || fail "not on the device"

# the samples in one store, in the same order: a stream is as if they were
# shellcheck disable=SC2086
"$dtrain" $small --run-dir "$work/stored" --device cuda --set "data.store=$work/merged" \
    --set data_trajectory.eval_scenes=all --set training.epochs=1 --set data.sampling=sequential 2>"$work/err"
finish stored $?
samples=$(sed -n 's/.*"step":\([0-9]*\).*/\1/p' "$work/stored/metrics.jsonl" | tail -n 1)
samples=$((samples * batch))
[ "$samples" -ge 40 ] || fail "too few samples: $samples"
train in-order whole --device cuda --set data.sampling=sequential --set data.window=$samples --set training.epochs=1
finish in-order $?
same in-order stored "a stream, and all of it in one store"

# the device's ways to run a step
if $fake || [ "${DT_LONG:-}" = 1 ]; then
    train plain whole --device cuda --no-graphs --set engine.synchronous=true
    finish plain $?
    same plain one "kernel by kernel"
fi
train micro whole --device cuda --set engine.micro_shards=2
finish micro $?
same micro one "two shards at a time"
if $fake; then
    train cpu whole --device cpu
    finish cpu $?
    same cpu one "the CPU and the device"
    # a plan for samples that are smaller than those that come
    train grows whole --device cuda --set data.stream_room=50 --set "data.store=$work/parts/1"
    finish grows $?
    same grows one "other samples judged, and room for larger ones"
fi

# they come while it trains
put 0 grown
(
    wait_for "waiting for" while
    for i in 1 2; do
        put $i grown
        sleep 0.2
    done
    touch "$work/grown/000003.end"
) &
producer=$!
train while grown --device cuda
finish while $?
wait "$producer"
producer=
same while one "stores that come late"
if ! $fake && [ "${DT_LONG:-}" != 1 ]; then
    echo "stream on the emulated GPU: $cases cases, $failed failed"
    exit $((failed > 0))
fi
if [ -e "$builds/core/comm/mpi/.libs/comm_mpi.so" ]; then
    (
        # the library of MPI keeps what it has until the process ends
        LSAN_OPTIONS=${LSAN_OPTIONS:-}${LSAN_OPTIONS:+:}detect_leaks=0
        export LSAN_OPTIONS
        train processes whole --device cuda --nproc 2 --set comm.backend=mpi
    )
    finish processes $?
    same processes one "two processes with a device each"
fi

# killed while it waits in the second window, asked to stop, and too late
put 0 killed-from
put 1 killed-from
begin killed killed-from --device cuda --set checkpoint.every_steps=1
wait_for "waiting for .*000002" killed
kill -9 "$trainer"
wait "$trainer" 2>/dev/null
put 2 killed-from
touch "$work/killed-from/000003.end"
put 0 slow
put 1 slow
begin asked slow --device cuda
wait_for "waiting for .*000002" asked
kill -TERM "$trainer"
wait "$trainer"
got=$?
cases=$((cases + 1))
[ $got -eq 75 ] || fail "asked to stop while it waits: $got"
train late slow --device cuda --set data.stream_timeout=0.3
got=$?
cases=$((cases + 1))
{ [ $got -eq 4 ] && grep -q "data.stream_timeout" "$work/err"; } || fail "late: $got"
put 2 slow
touch "$work/slow/000003.end"
for name in killed asked late; do
    "$dtrain" --resume "$work/$name" -q 2>"$work/err"
    finish "$name, resumed" $?
    same $name one "$name"
done

echo "stream on a device: $cases cases, $failed failed"
exit $((failed > 0))
