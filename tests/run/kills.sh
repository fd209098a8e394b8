#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# A run of three phases killed with SIGKILL at any instant, again and again: while it starts, steps, saves, changes the
# phase, writes its report. By --resume RUN, or by the command that began it, it always ends in the bits, the records
# and the checkpoints of one that nobody disturbed. DT_KILLS: how many runs, 6 without it; DT_KILLS_SEED: another
# course.
set -u

dtrain=${DT_BUILDDIR:-.}/dtrain
runs=${DT_KILLS:-6}
seed=${DT_KILLS_SEED:-$(date +%s)}
work=$(mktemp -d ./test-kills-XXXXXX) || exit 1
trap 'rm -rf "$work"' EXIT INT TERM
failed=0
kills=0
again=0
echo "DT_KILLS_SEED=$seed"

cat >"$work/job.cfg" <<'END2'
risk_gnn = { hidden = 8; heads = 1; layers = 1; };
world_lstm = { hidden = 8; layers = 1; };
controller_mlp = { hidden = 8; };
data = { batch = 16; };
training = { eval_interval = 1; save_interval = 0; warmup_epochs = 0; };
evaluation = { seeds = "1"; episodes = 1; baselines = ""; };
checkpoint = { every_seconds = 0; every_steps = 2; keep_last = 2; };
engine = { threads = 1; };
env = { id = "cartpole"; instances = 2; };
phase2_ppo = { train_batch = 32; fragment = 16; sgd_epochs = 1; };
phases = ( { plugin = "phase1_world_model"; stop = { steps = 5; }; },
           { plugin = "phase2_ppo"; stop = { iterations = 3; }; },
           { plugin = "phase2_ppo"; init = "previous"; stop = { iterations = 2; }; } );
END2

fail() {
    echo "FAIL: $*"
    tail -n 5 "$work/err" | sed 's/^/    /'
    failed=$((failed + 1))
}
random() { # N: the next number below N, in $number
    seed=$(((seed * 1103515245 + 12345) % 2147483648))
    number=$((seed / 7 % $1))
}
state_hashes() { # of all checkpoints that are kept, whatever the course; a fault is for a life, not for who looks at it
    (unset DTRAIN_FAULT && "$dtrain" ckpt list "$1" --json) | grep -o '"state_hash":"[0-9a-f]*"' | tail -n 3
}
records() {
    cut -d, -f1,2 "$1/metrics.jsonl"
}

began=$(date +%s%N)
"$dtrain" --config "$work/job.cfg" --run-dir "$work/whole" -q 2>"$work/err" || { fail "the undisturbed run"; exit 1; }
length=$((($(date +%s%N) - began) / 1000000))

# life DIR: one of its lives, by one of the ways to start it; in the background, its process in $pid
life() {
    random 3
    if [ $number -eq 0 ] && [ -e "$1/meta.json" ]; then
        "$dtrain" run --resume "$1" -q 2>"$work/err" &
    elif [ $number -eq 1 ] && [ -z "$(state_hashes "$1" 2>/dev/null)" ]; then
        "$dtrain" --config "$work/job.cfg" --run-dir "$1" -q 2>"$work/err" &
    else
        "$dtrain" --config "$work/job.cfg" --run-dir "$1" --resume auto -q 2>"$work/err" &
    fi
    pid=$!
}

i=0
while [ $i -lt "$runs" ]; do
    i=$((i + 1))
    lives=0
    code=137
    while [ $code -eq 137 ]; do
        lives=$((lives + 1))
        random 600
        if [ $lives -gt 4 ]; then
            life "$work/run"
        elif [ $((number % 2)) -eq 0 ]; then # at some call of the file system
            DTRAIN_FAULT="fs.*:$((number + 1))!"
            export DTRAIN_FAULT
            life "$work/run"
            unset DTRAIN_FAULT
        else # at some time
            life "$work/run"
            random $((length + 1))
            sleep "$(printf '%d.%03d' $((number / 1000)) $((number % 1000)))"
            kill -KILL $pid 2>/dev/null
        fi
        wait $pid 2>/dev/null
        code=$?
        kills=$((kills + (code == 137)))
    done
    [ $code -eq 0 ] || fail "run $i: life $lives left with $code"
    [ "$(state_hashes "$work/run")" = "$(state_hashes "$work/whole")" ] || fail "run $i, $lives lives: other bits"
    records "$work/whole" >"$work/want"
    records "$work/run" | diff "$work/want" - || fail "run $i, $lives lives: other records"
    again=$((again + $(grep -c "it starts again" "$work/run/train.log")))
    [ $failed -eq 0 ] || { grep -v "resident\|parameters\|planned" "$work/run/train.log"; break; }
    rm -rf "${work:?}/run"
done

echo "$i runs, $kills kills, $again times begun again, $failed failed"
[ $failed -eq 0 ] && [ $kills -ge $((runs / 2)) ]
