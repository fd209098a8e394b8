#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# A phase that learns from a replay, through the program: it learns CartPole; threads, ranks, and a replay in a file
# change no bit, nor does a stop, a kill or another number of ranks behind it.
set -u

name=replay
plugin=${DT_BUILDDIR:-.}/tests/phases/.libs/qreplay.so
base="--plugin $plugin -q --set models.controller=qreplay_net
      --set models.perception= --set env.id=cartpole --set env.instances=5 --set data.batch=64 --set data.shards=4
      --set training.optimizer=adam --set training.learning_rate=3e-3 --set training.weight_decay=0
      --set training.scheduler=constant --set training.warmup_epochs=0 --set training.eval_interval=0
      --set checkpoint.every_seconds=0 --set evaluation.baselines= --set report.enabled=false"
# shellcheck source=tests/phases/rig.inc
. "${DT_SRCDIR:-.}/tests/phases/rig.inc"

resume() { # DIR CODE [options]
    dir=$1
    want=$2
    shift 2
    "$dtrain" --resume "$work/$dir" -q --plugin "$plugin" "$@" >/dev/null 2>"$work/err"
    code=$?
    [ "$code" -eq "$want" ] || fail "resuming $dir left with $code, expected $want"
}

# all of it at once: the memory is turned over, by priority, of three steps, by statistics of its own
mixed="--set qreplay.capacity=300 --set qreplay.alpha=0.6 --set qreplay.n_step=3 --set qreplay.normalise_obs=true
       --set qreplay.iterations=10"
# a part that cannot be written is written with the next try; a kill while ranks write leaves what there was
cut() { # OPTIONS
    rm -rf "$work/missed" "$work/cut"
    cases=$((cases + 2))
    DTRAIN_FAULT=ckpt.shard:2 "$dtrain" $base "$@" --set training.save_interval=2 --set comm.backend=sim \
        --set comm.ranks=2 --run-dir "$work/missed" >/dev/null 2>"$work/err" || fail "a part was not written: left with $?"
    grep -q "cannot write part 1 of .*(injected)" "$work/err" || fail "a part: nothing is said"
    same missed "a part that was not written at first"
    DTRAIN_FAULT=ckpt.shard:4! "$dtrain" $base "$@" --set training.save_interval=2 --set comm.backend=sim \
        --set comm.ranks=2 --run-dir "$work/cut" >/dev/null 2>"$work/err"
    code=$?
    [ "$code" -eq 137 ] || fail "it was to be killed among the parts and left with $code"
    resume cut 0 --set comm.backend=sim --set comm.ranks=3
    same cut "killed while ranks wrote their parts, resumed on 3"
}

same_everywhere() { # OPTIONS
    rm -rf "$work/whole" "$work/threads" "$work/ranks" "$work/stopped" "$work/killed" "$work/file"
    # shellcheck disable=SC2086
    {
        train whole --threads 1 $1
        train threads --threads 2 $1
        same threads "2 threads instead of 1"
        train ranks --threads 2 --set comm.backend=sim --set comm.ranks=3 $1
        same ranks "3 virtual ranks instead of 1"
        train file --threads 1 --set data.replay_mb=0 $1
        same file "a replay in a file"
        train stopped --threads 1 --max-steps 16 $1
        resume stopped 0 --max-steps 32 --set comm.backend=sim --set comm.ranks=2
        resume stopped 0 --max-steps 48 --set comm.backend=sim --set comm.ranks=3
        resume stopped 0
        same stopped "stopped and resumed, on 1, 2, 3 and 1 ranks"
        cases=$((cases + 1))
        DTRAIN_FAULT=train.step:37! "$dtrain" $base $1 --set training.save_interval=2 --run-dir "$work/killed" \
            >/dev/null 2>"$work/err"
        code=$?
        [ "$code" -eq 137 ] || fail "it was to be killed and left with $code"
        [ -d "$work/killed/checkpoints/step-000000000032" ] || fail "it was killed without a checkpoint"
        resume killed 0 --set comm.backend=sim --set comm.ranks=2
        same killed "killed and resumed on 2 ranks"
        cases=$((cases + 2))
        n=$(find "$work/ranks/checkpoints" -name 'plugin-replay-records-0000[123]-of-00003.bin' | wc -l)
        [ "$n" -gt 0 ] && [ $((n % 3)) -eq 0 ] || fail "$n parts of a replay, of 3 ranks"
        "$dtrain" ckpt verify "$work/ranks" >/dev/null 2>"$work/err" || fail "what 3 ranks wrote: verify left with $?"
        cut $1
    }
}
same_everywhere "--set qreplay.iterations=10"
same_everywhere "$mixed"

# of another capacity there is nothing to go on with, which is said
train other --max-steps 16 --set qreplay.iterations=10
cases=$((cases + 1))
"$dtrain" --resume "$work/other" -q --plugin "$plugin" --set qreplay.capacity=900 >/dev/null 2>"$work/err" ||
    fail "with another capacity it left with $?"
grep -q "the checkpoint's replay is of 2000 samples.*it starts empty" "$work/err" || fail "another capacity: nothing is said"

# where a file has no room the run is refused, on any ranks with the same words, and so is its plan; what is named fits
cat >"$work/room.sh" <<'END'
disk=$1/disk
shift
mount -t tmpfs -o size=12m none "$disk" || exit 77
for ranks in "" "--set comm.backend=sim --set comm.ranks=2" "--set comm.backend=sim --set comm.ranks=3" "--nproc 2"; do
    for dry in --dry-run ""; do
        "$dtrain" "$@" $ranks $dry --set qreplay.capacity=1000000 --run-dir "$disk/run" >"$disk/out" 2>"$disk/err"
        code=$?
        said=$(sed -n 's/^error.* a replay of 1000000 .* has room for .*lower its capacity to \([0-9]*\), .*/\1/p' "$disk/err")
        echo "$code, refused: ${said:+yes}, told: $(grep -c '^  replay  *1000000 samples of up to [0-9]* bytes, .* MB of the run' "$disk/out")"
        rm -rf "$disk/run"
    done
    "$dtrain" "$@" $ranks --set qreplay.capacity="$said" --run-dir "$disk/run" --max-steps 16 >"$disk/out" 2>"$disk/err"
    echo "$?"
    rm -rf "$disk/run"
done
END
mkdir "$work/disk"
export dtrain
LSAN_OPTIONS=detect_leaks=0 # the library of MPI keeps what it has until the process ends
export LSAN_OPTIONS
if unshare -rm true 2>/dev/null; then
    cases=$((cases + 1))
    # shellcheck disable=SC2086 # options
    unshare -rm sh "$work/room.sh" "$work" $base --threads 1 --set data.replay_mb=0 --set qreplay.iterations=1 \
        --set training.save_interval=0 >"$work/err"
    code=$?
    want=$(printf '2, refused: yes, told: 1\n2, refused: yes, told: 0\n0')
    want=$(for _ in 1 2 3 4; do echo "$want"; done)
    if [ $code -eq 77 ]; then
        echo "no file system could be mounted here: not tried on a real one"
    else
        [ "$(cat "$work/err")" = "$want" ] || fail "a disk without room for a replay"
    fi
else
    echo "no name spaces here: not tried on a real file system"
fi

# a plan counts it, and checkpoints with all of it: 2000 samples of 4 numbers before and after, actions, rewards, ends,
# and their frames
cases=$((cases + 1))
"$dtrain" $base --dry-run >"$work/out" 2>"$work/err" || fail "a plan left with $?"
grep -q '^  replay  *2000 samples of up to [0-9]* bytes, 0.2 MB of memory$' "$work/out" && grep -q 'of 0.[12] MB are kept' "$work/out" ||
    fail "a plan says '$(grep -E '^  (replay|disk) ' "$work/out")'"

# it learns
train learns --threads 2 --set qreplay.iterations=400 --set qreplay.capacity=20000 --set qreplay.temperature=0.5 \
    --set qreplay.alpha=0.6 --set qreplay.n_step=3
cases=$((cases + 1))
value=$("$dtrain" eval --plugin "$plugin" --checkpoint "$work/learns" --seeds 7,8 --episodes 5 --json 2>"$work/err" |
    sed -n 's/.*"return":{"mean":\([0-9]*\)[.,].*"shield":{.*/\1/p')
[ "${value:-0}" -ge 100 ] || fail "after 400 rounds the return is '$value', a random policy has 22"

echo "replay: $cases cases, $failed failed"
[ "$failed" -eq 0 ]
