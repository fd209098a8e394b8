#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Training on a folder of stores to which others add: the same bits whether the stores are there before or come while it
# trains, on any ranks and threads, and after a kill, a stop or a time-out; stores that were trained on may go, those of
# the window under way may not change. What is damaged, unlike the others or too large ends it and names the store.
set -u

dtrain=${DT_BUILDDIR:-.}/dtrain
demo=${DT_BUILDDIR:-.}/share/demo.store
work=$(mktemp -d ./test-stream-XXXXXX) || exit 1
producer=
trap '[ -z "$producer" ] || kill "$producer" 2>/dev/null; rm -rf "$work"' EXIT INT TERM
failed=0

fail() {
    echo "FAIL: $*"
    tail -n 8 "$work/err" | sed 's/^/    /'
    failed=$((failed + 1))
}
state_hash() {
    "$dtrain" ckpt inspect "$1" --json 2>/dev/null | sed -n 's/.*"state_hash":"\([0-9a-f]*\)".*/\1/p'
}
small="--plugin phase1_world_model -q --set data.store=$work/judged --set data.window=48 --set data.batch=16
    --set training.epochs=100 --set training.eval_interval=4 --set risk_gnn.hidden=8 --set risk_gnn.heads=1
    --set risk_gnn.layers=1 --set world_lstm.hidden=8 --set world_lstm.layers=1 --set world_lstm.head=8
    --set report.enabled=false --set metrics.tensorboard=false"

train() { # run folder options...
    to=$work/$1 from=$work/$2
    shift 2
    # shellcheck disable=SC2086
    "$dtrain" $small --run-dir "$to" --set "data.stream=$from" "$@" 2>"$work/err"
}
begin() { # run folder options...: as train, in the background
    to=$work/$1 from=$work/$2
    shift 2
    # shellcheck disable=SC2086
    "$dtrain" $small --run-dir "$to" --set "data.stream=$from" "$@" 2>"$work/err" &
    trainer=$!
}
run() { # run folder options...
    train "$@" || fail "$1 left with $?"
}
resume() { # run options...
    to=$work/$1
    shift
    # shellcheck disable=SC2086
    "$dtrain" --resume "$to" -q "$@" 2>"$work/err"
}
same() { # run
    [ "$(state_hash "$work/$1")" = "$(state_hash "$work/one")" ] || fail "$1: other bits"
}
code() { # got wanted text
    { [ "$1" -eq "$2" ] && grep -q "$3" "$work/err"; } || fail "code $1, not $2 and \"$3\""
}
said() { # run text
    grep -q "$2" "$work/$1/train.log" || fail "$1 does not say \"$2\""
}
put() { # store number folder: written aside, and renamed when it is complete
    cp -R "$work/parts/$1" "$work/$3/$2.partial" && mv "$work/$3/$2.partial" "$work/$3/$2"
}
wait_for() { # text file
    i=0
    until grep -q "$1" "$2" 2>/dev/null || [ $i -ge 300 ]; do
        sleep 0.1
        i=$((i + 1))
    done
}

mkdir "$work/parts" "$work/whole" "$work/grown" "$work/again" "$work/cut" "$work/late"
for i in 0 1 2 3 4; do
    "$dtrain" data sample "$demo" --out "$work/parts/$i" -q --set sample.scenes=8 --set "sample.seed=$i" ||
        fail "no store $i"
done
"$dtrain" data sample "$demo" --out "$work/judged" -q --set sample.scenes=10 --set sample.seed=7 || fail "no store"
for i in 0 1 2 3 4; do
    put $i 00000$i whole
done
touch "$work/whole/000005.end"

# all there from the beginning; ends with the stream, and is evaluated then
run one whole --threads 1
[ -n "$(state_hash "$work/one")" ] || fail "no state"
said one "ended after 5 stores with [0-9]* samples; the last [0-9]* are less than a window, and left out"
said one "Training completed"
steps=$(sed -n 's/.*"step":\([0-9]*\).*/\1/p' "$work/one/metrics.jsonl" | tail -n 1)
[ $((steps % 3)) -eq 0 ] && [ "$steps" -ge 12 ] || fail "$steps steps, not whole windows of 3"
[ "$(grep -c '"eval/' "$work/one/metrics.jsonl")" -ge 2 ] || fail "not judged at the end"
run ranks whole --threads 1 --set comm.backend=sim --set comm.ranks=2 && same ranks
if [ -e "${DT_BUILDDIR:-.}/core/comm/mpi/.libs/comm_mpi.so" ]; then
    (
        # the library of MPI keeps what it has until the process ends
        LSAN_OPTIONS=${LSAN_OPTIONS:-}${LSAN_OPTIONS:+:}detect_leaks=0
        export LSAN_OPTIONS
        train processes whole --threads 1 --nproc 2
    ) || fail "processes left with $?"
    same processes
fi
run threads whole --threads 2 --set data.workers=3 && same threads
run sequential whole --threads 1 --set data.sampling=sequential
[ "$(state_hash "$work/sequential")" != "$(state_hash "$work/one")" ] || fail "shuffling makes no difference"
"$dtrain" eval --checkpoint "$work/one" --set "data.store=$work/parts/1" >/dev/null 2>"$work/err"
grep -q "evaluated on the part held out of" "$work/err" || fail "a store of the stream counts as unseen"
"$dtrain" eval --checkpoint "$work/one" >/dev/null 2>"$work/err"
grep -q "evaluated on all of .*, which was not trained on" "$work/err" || fail "data.store counts as trained on"

# they come while it trains on two ranks, and what is written aside is left alone
put 0 000000 grown
cp -R "$work/parts/3" "$work/grown/000001.partial"
(
    wait_for "waiting for" "$work/while/train.log"
    rm -rf "$work/grown/000001.partial"
    for i in 1 2 3 4; do
        put $i 00000$i grown
        sleep 0.2
    done
    touch "$work/grown/000005.end"
) &
producer=$!
run while grown --threads 1 --set comm.backend=sim --set comm.ranks=2 && same while
wait "$producer"
producer=
said while "waiting for .*/grown/000001 since [0-9]* s, [0-9]* of 48 samples of the next window are there"

# killed while it waits, in the middle of a window of two stores; the one that was finished is gone by then
for i in 0 1; do
    put $i 00000$i again
done
begin killed again --threads 1 --set checkpoint.every_steps=1
wait_for "waiting for" "$work/killed/train.log"
kill -9 "$trainer"
wait "$trainer" 2>/dev/null
mv "$work/again/000000" "$work/gone"
for i in 2 3 4; do
    put $i 00000$i again
done
touch "$work/again/000005.end"
resume killed || fail "resuming left with $?"
same killed

# asked to stop while it waits: saved, code 75
put 0 000000 late
begin asked late --threads 1
wait_for "waiting for" "$work/asked/train.log"
kill -TERM "$trainer"
wait "$trainer"
got=$?
[ $got -eq 75 ] || fail "asked to stop while it waits: $got"
said asked "waiting for"
# too late: 4, and what was learnt is there
train late late --threads 1 --set data.stream_timeout=0.3
code $? 4 "late/000001 did not arrive within data.stream_timeout = 0.3 s; resume when there is more, or end"
for i in 1 2 3 4; do
    put $i 00000$i late
done
touch "$work/late/000005.end"
for name in asked late; do
    resume $name || fail "resuming $name left with $?"
    same $name
done

# stopped within a window: its stores stay as they are
run cut whole --threads 1 --max-steps 5 --set comm.backend=sim --set comm.ranks=2
cp -R "$work/cut" "$work/cut2"
cp -R "$work/cut" "$work/cut3"
cp -R "$work/cut" "$work/cut4"
resume cut || fail "resuming left with $?"
same cut
for i in 0 1 2 3 4; do
    put $i 00000$i cut
done
last=$(sed -n 's/.*stream: \(.*\), [0-9]* samples$/\1/p' "$work/cut2/train.log" | tail -n 1)
mv "$last" "$work/kept" && cp -R "$work/judged" "$last"
resume cut2
code $? 4 "$(basename "$last") is another store than the one that the run has trained on"
rm -rf "$last"
resume cut3
code $? 4 "$(basename "$last") is gone, and the run has trained on it"
mv "$work/kept" "$last"
resume cut4 --set data.window=64
code $? 2 "data.window is 64, and the run began with 48"
resume cut4 --set data.batch=24
code $? 2 "an epoch of the stream has 2 steps, and it had 3"

# hostile, unlike the others, too large
mkdir "$work/bad"
put 0 000000 bad
put 1 000001 bad
size=$(wc -c <"$work/bad/000001/edge_src.npy")
printf '\377\377\377\177' | dd of="$work/bad/000001/edge_src.npy" bs=1 seek=$((size - 400)) conv=notrunc 2>/dev/null
train bad bad --threads 1 --set data.window=512
code $? 4 "store .*bad/000001 of the stream"
"$dtrain" data sample "$demo" --out "$work/calm" -q --set sample.scenes=1 || fail "no store"
train large whole --threads 1 --set data.stream_room=1 --set "data.store=$work/calm"
code $? 4 "whole/000000: sample [0-9]* has [0-9]* of [NES], and memory is planned for .* data.stream_room = 1 times"
mkdir "$work/odd"
mkfifo "$work/odd/000000"
train odd odd/ --threads 1 # a slash at its end is none of its name
code $? 4 "odd/000000 is a device, a pipe or a socket, and a store is a folder"
rm "$work/odd/000000" && ln -s nowhere "$work/odd/000000"
train dangling odd --threads 1
code $? 4 "odd/000000 is a link that does not point to a folder"
touch "$work/bad/000000.end"
train ended bad --threads 1
code $? 4 "000000.end marks the end of the stream, but there is"
mkdir "$work/short"
put 0 000000 short
touch "$work/short/000001.end"
train short short --threads 1 --set data.window=512
code $? 4 "short ended after 1 stores with [0-9]* samples, and a window has data.window = 512: nothing was trained; add"
train file parts/0/store.json --threads 1 --dry-run
code $? 4 "data.stream = .*store.json is not a folder; make it before a run waits"
train lost nowhere --threads 1
code $? 4 "data.stream = .*nowhere is not a folder"
# what it does not go with
"$dtrain" --plugin phase2_ppo --set env.id=cartpole --set data.stream="$work/whole" --set data.window=48 --dry-run \
    >"$work/err" 2>&1
code $? 0 "data.stream has no effect in phase2_ppo, which learns from its own rollouts"
train weighted whole --threads 1 --set data.sampling=weighted
code $? 2 'data.sampling = "weighted" draws by the weights of all samples, and data.stream has no end'
train calibrated whole --threads 1 --set world_lstm.calibrated=true --set phase1_world_model.calibration_folds=4
code $? 2 "part calibration .*data.stream does not keep; set .*calibration_folds = 0"
train nothing whole --threads 1 --set data.store=
code $? 2 "data.stream needs data.store"
train less whole --threads 1 --set data.window=8
code $? 2 "raise data.window"

[ "$failed" -eq 0 ] && echo "stream: all runs passed"
exit "$failed"
