#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Environments of others that hang, in worker processes with processes of their own. However the host ends, nobody is
# left behind; a wish to stop is answered while they make themselves, reset, step, are evaluated or compared, and what
# was pending is completed by a resume. Nothing here is decided by a time: what should happen is waited for until it
# does, far longer than it needs (PATIENCE), and what is between is made to last for ever. DT_TRIALS: kills of the host.
set -u

dtrain=${DT_BUILDDIR:-.}/dtrain
work=$(mktemp -d "$PWD/test-workers-XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT INT TERM
patience=6000 # hundredths of a second
trials=${DT_TRIALS:-6}
failed=0
pid=
DTRAIN_PLUGIN_PATH=${DT_BUILDDIR:-.}/tests/run/.libs
export DTRAIN_PLUGIN_PATH
common="--plugin phase2_ppo --set env.id=stubborn --set env.instances=3 --set models.controller=controller_mlp
        --set models.shield= --set models.perception= --set models.world= --set phase2_ppo.fragment=16
        --set phase2_ppo.train_batch=48 --set phase2_ppo.sgd_epochs=1 --set data.batch=24 --set phase2_ppo.iterations=3
        --set checkpoint.every_seconds=0 --set checkpoint.best_by= --set report.enabled=false --set evaluation.episodes=1
        --set evaluation.seeds=1001,1002 --set evaluation.baselines= --set stubborn.child=true
        --set stubborn.ids=$work/ids --set stubborn.mark=$work/mark --threads 2 -q"

fail() {
    echo "FAIL: $*"
    tail -n 5 "$work/err" | sed 's/^/    /'
    failed=$((failed + 1))
}
milliseconds() {
    echo $(($(date +%s%N) / 1000000))
}
until_so() { # a condition: false when it did not come about
    tries=0
    until "$@"; do
        tries=$((tries + 1))
        [ $tries -lt $patience ] || return 1
        sleep 0.01
    done
}
lines() { # FILE N: it has at least so many
    [ -e "$1" ] && [ "$(wc -l <"$1")" -ge "$2" ]
}
is_over() { # PID: gone, or nobody has asked yet how it ended
    state=$(sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -c 1)
    [ -z "$state" ] || [ "$state" = Z ]
}
all_over() {
    while read -r worker child; do
        is_over "$worker" || return 1
        [ "$child" -eq 0 ] || is_over "$child" || return 1
    done <"$work/ids"
}
nobody_is_left() { # WHAT
    at=$(milliseconds)
    if until_so all_over; then
        echo "$1: $(wc -w <"$work/ids") processes of environments ended within $(($(milliseconds) - at)) ms"
    else
        fail "$1: processes are left"
        xargs kill -9 <"$work/ids" 2>/dev/null
    fi
}
begin() { # [options]: a run in the background
    rm -f "$work/ids" "$work/mark"
    "$dtrain" "$@" 2>"$work/err" &
    pid=$!
}
ends() { # CODE WHAT
    at=$(milliseconds)
    if ! until_so is_over $pid; then
        fail "$2: it is not answered"
        kill -9 $pid
    fi
    wait $pid
    code=$?
    [ $code -eq "$1" ] || fail "$2: exit code $code, expected $1"
    echo "$2: exit code $code after $(($(milliseconds) - at)) ms"
}
state_hash() {
    "$dtrain" ckpt inspect "$1" --json 2>/dev/null | sed -n 's/.*"state_hash":"\([0-9a-f]*\)".*/\1/p'
}

# --- the host is killed: while environments make themselves, in steps that never end, asleep, stopped, between ---
trial=0
while [ $trial -lt "$trials" ]; do
    trial=$((trial + 1))
    rm -rf "$work/run"
    case $((trial % 6)) in
    0) set -- --set stubborn.where=create --set stubborn.how=loop ;;
    1) set -- --set stubborn.where=step --set stubborn.how=loop ;;
    2) set -- --set stubborn.where=reset --set stubborn.how=sleep ;;
    3) set -- --set stubborn.where=step --set stubborn.how=stop ;;
    4) set -- --set stubborn.where=step --set stubborn.turn=$((trial * 7 % 12 + 1)) ;;
    5) set -- --set phase2_ppo.iterations=1000000 ;; # none hangs
    esac
    begin $common "$@" --run-dir "$work/run"
    if [ $((trial % 6)) -eq 5 ]; then
        until_so lines "$work/ids" 3
        until_so lines "$work/run/metrics.jsonl" $((trial * 3 % 20 + 1)) || fail "kill $trial: it does not train"
    else
        until_so lines "$work/mark" 1 || fail "kill $trial: nobody hangs"
        [ $((trial % 6)) -ne 4 ] || until_so lines "$work/mark" $((trial * 7 % 12 + 1)) || fail "kill $trial: no turn"
    fi
    kill -9 $pid 2>/dev/null
    wait $pid 2>/dev/null
    nobody_is_left "kill $trial"
done

# --- a wish to stop: nothing is there to save before environments stand, and something is from then on ---
for where in create reset step; do
    for how in loop stop; do
        begin $common --set stubborn.where=$where --set stubborn.how=$how --run-dir "$work/$where-$how"
        until_so lines "$work/mark" 1 || fail "$where, $how: nobody hangs"
        kill -TERM $pid
        ends "$([ $where = create ] && echo 143 || echo 75)" "SIGTERM, $where, $how"
        nobody_is_left "SIGTERM, $where, $how"
        [ $where = create ] || "$dtrain" ckpt verify "$work/$where-$how" >"$work/out" 2>"$work/err" || fail "$where: what is left"
    done
done
begin $common --set checkpoint.best_by=return/mean --set training.eval_interval=1 --set stubborn.where=step \
    --set stubborn.seed=1001 --run-dir "$work/first" # evaluated before the first step, to see what there is
until_so lines "$work/mark" 1 || fail "the first evaluation: nobody hangs"
kill -TERM $pid
ends 143 "SIGTERM, the first evaluation"
nobody_is_left "SIGTERM, the first evaluation"
begin $common --set stubborn.where=create --set stubborn.how=sleep --set env.isolation=thread \
    --set stubborn.child=false --run-dir "$work/here"
until_so lines "$work/mark" 1 || fail "create in a thread: nobody hangs"
kill -TERM $pid
ends 143 "SIGTERM, create in a thread"
# what goes on is on the disk
begin run --resume "$work/step-loop" -q --set stubborn.where=create --set stubborn.how=sleep --set env.isolation=thread \
    --set stubborn.child=false
until_so lines "$work/mark" 1 || fail "create in a thread, resumed: nobody hangs"
kill -TERM $pid
ends 75 "SIGTERM, create in a thread, of a run that goes on"
begin $common --set stubborn.where=step --run-dir "$work/twice"
until_so lines "$work/mark" 1 || fail "twice: nobody hangs"
kill -INT $pid
kill -INT $pid 2>/dev/null
until_so is_over $pid || fail "SIGINT twice is not answered"
wait $pid
code=$?
[ $code -eq 130 ] || [ $code -eq 75 ] || fail "SIGINT twice: exit code $code"
nobody_is_left "SIGINT twice"

# --- in an evaluation, and while the policy is compared: a resume makes up for it, in the bits of the run that was not
# stopped, with the numbers that it would have had ---
judged="--set training.eval_interval=1 --set models.controller=controller_lstm --set phase2_ppo.window=2
        --set evaluation.baselines=controller_mlp --set stubborn.seed=1001
        --set stubborn.where=step --set stubborn.hold=$work/hold"
evaluations() {
    grep -c '"eval/return/mean":' "$1/metrics.jsonl"
}
steps() { # of the records: one each
    sed 's/^{"step":\([0-9]*\),.*"loss":.*}$/\1/' "$1/metrics.jsonl" | tr '\n' ' '
}
values() {
    tr ',' '\n' <"$1/metrics.jsonl" | grep '"eval/return/mean":'
}
rm -f "$work/mark"
"$dtrain" $common $judged --run-dir "$work/whole" 2>"$work/err" || fail "the run without a stop"
whole=$(state_hash "$work/whole")
n=$(evaluations "$work/whole")
[ "$n" -ge 2 ] || fail "$n evaluations"
for turn in 1 2 $n $((n + 1)); do # the last of these is the baseline's
    touch "$work/hold"
    dir=$work/judged-$turn
    begin $common $judged --set stubborn.turn="$turn" --run-dir "$dir"
    until_so lines "$work/mark" "$turn" || fail "turn $turn: nobody hangs"
    kill -TERM $pid
    ends 75 "SIGTERM in evaluation $turn of $n"
    nobody_is_left "SIGTERM in evaluation $turn of $n"
    rm -f "$work/hold"
    "$dtrain" run --resume "$dir" -q 2>"$work/err" || fail "evaluation $turn: resumed with $?"
    [ "$(state_hash "$dir")" = "$whole" ] || fail "evaluation $turn: other bits"
    [ "$(values "$dir")" = "$(values "$work/whole")" ] || fail "evaluation $turn: other numbers"
    [ "$(steps "$dir")" = "$(steps "$work/whole")" ] || fail "evaluation $turn: other records: $(steps "$dir")"
    cmp -s "$dir/evaluation/1-phase2_ppo.baselines.json" "$work/whole/evaluation/1-phase2_ppo.baselines.json" ||
        fail "evaluation $turn: other baselines"
    [ ! -e "$dir/evaluation/1-phase2_ppo.baselines.pending" ] || fail "evaluation $turn: baselines are still pending"
done
touch "$work/hold"
begin eval --checkpoint "$work/whole" --set stubborn.turn=1 --set "stubborn.mark=$work/mark"
until_so lines "$work/mark" 1 || fail "eval: nobody hangs"
kill -TERM $pid
ends 143 "SIGTERM, eval"
nobody_is_left "SIGTERM, eval"

# --- episodes that never end are ended, by the host, in threads and in processes alike ---
for isolation in thread process; do
    rm -f "$work/ids" "$work/mark"
    "$dtrain" $common --set stubborn.endless=true --set stubborn.child=false --set env.isolation=$isolation \
        --set training.eval_interval=1 --run-dir "$work/endless-$isolation" 2>"$work/err" || fail "endless, $isolation: $?"
    grep -q "continues past step 8, the last one by its own spec" "$work/endless-$isolation/error.log" || fail "$isolation: not said"
    [ "$(grep -c "continues past step" "$work/endless-$isolation/error.log")" -eq 1 ] || fail "$isolation: said again"
    grep -q '"env/cut_episodes":6' "$work/endless-$isolation/metrics.jsonl" || fail "$isolation: not counted"
done
[ "$(state_hash "$work/endless-thread")" = "$(state_hash "$work/endless-process")" ] || fail "endless: other bits in processes"
"$dtrain" $common --set stubborn.endless=true --set stubborn.child=false --set training.eval_interval=1 --max-steps 1 \
    --run-dir "$work/endless-two" 2>"$work/err" || fail "endless, its first step: $?"
"$dtrain" run --resume "$work/endless-two" --max-steps 100 -q 2>"$work/err" || fail "endless, resumed: $?"
[ "$(state_hash "$work/endless-two")" = "$(state_hash "$work/endless-process")" ] || fail "endless, resumed: other bits"
[ $failed -eq 0 ]
