#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# A wish to stop answers promptly in every phase, in the middle of a round of environments too: what is saved is the
# state before that round, and a resume ends in the bits of a run that nobody stopped. Exit codes of the first and the
# second signal, --max-time, --max-steps; SIGUSR1 saves and goes on.
set -u

dtrain=${DT_BUILDDIR:-.}/dtrain
work=$(mktemp -d ./test-signals-XXXXXX) || exit 1
trap 'rm -rf "$work"' EXIT INT TERM
failed=0
common="--set training.eval_interval=0 --set checkpoint.every_seconds=0 --set report.enabled=false -q"
ring="--set env_traffic.episode_s=1 --set env.id=env_traffic --set env_traffic.scenario=ring --set env.instances=4"

fail() {
    echo "FAIL: $*"
    tail -n 5 "$work/err" | sed 's/^/    /'
    failed=$((failed + 1))
}
state_hash() {
    "$dtrain" ckpt inspect "$1" --json 2>/dev/null | sed -n 's/.*"state_hash":"\([0-9a-f]*\)".*/\1/p'
}
env_steps() { # of all its records, in their order
    sed -n 's/.*"env_steps":\([0-9]*\).*/\1/p' "$1/metrics.jsonl"
}
milliseconds() {
    echo $(($(date +%s%N) / 1000000))
}

# --- stopped again and again by the same wish, at steps of rounds and between them ---
stopped() { # name N: from run $name; the wish comes at the N-th question, until the run is done
    dir=$work/$1-$2
    times=0
    DTRAIN_FAULT=run.stop:$2 "$dtrain" $what --run-dir "$dir" 2>"$work/err"
    code=$?
    while [ $code -eq 75 ] && [ $times -lt 40 ]; do
        times=$((times + 1))
        DTRAIN_FAULT=run.stop:$(($2 + 9 * times)) "$dtrain" run --resume "$dir" -q 2>"$work/err"
        code=$?
    done
    [ $code -eq 0 ] || fail "$1, stopped $times times: exit code $code"
    [ $times -gt 0 ] || fail "$1: nobody stopped at $2"
    [ "$(state_hash "$dir")" = "$(state_hash "$work/$1")" ] || fail "$1, stopped $times times: other bits"
    [ "$(grep -c '"step":' "$dir/metrics.jsonl")" -eq "$(grep -c '"step":' "$work/$1/metrics.jsonl")" ] || fail "$1: other records"
    [ -n "$(env_steps "$dir")" ] || fail "$1: no environment steps"
    [ "$(env_steps "$dir")" = "$(env_steps "$work/$1")" ] || fail "$1: other environment steps"
}
for phase in phase2_ppo phase3_constrained; do
    what="--plugin $phase $common $ring --threads 2 --set $phase.train_batch=64 --set $phase.fragment=16 --set $phase.iterations=3
          --set $phase.sgd_epochs=2 --set data.batch=32"
    "$dtrain" $what --run-dir "$work/$phase" 2>"$work/err" || fail "$phase: exit code $?"
    stopped $phase 1  # before the first step of all
    stopped $phase 24 # in the middle of the second round of 17 steps
done
what="--plugin phase2_ppo $common $ring --threads 2 --set comm.backend=sim --set comm.ranks=2 --set phase2_ppo.train_batch=64
      --set phase2_ppo.fragment=16 --set phase2_ppo.iterations=3 --set phase2_ppo.sgd_epochs=2 --set data.batch=32"
mv "$work/phase2_ppo" "$work/ranks" # the same bits on two ranks
stopped ranks 50
cat >"$work/two.cfg" <<END
phases = ( { plugin = "phase2_ppo"; }, { plugin = "phase3_constrained"; } );
phase2_ppo = { train_batch = 64; fragment = 16; iterations = 2; sgd_epochs = 1; };
phase3_constrained = { train_batch = 64; fragment = 16; iterations = 2; sgd_epochs = 1; };
END
what="--config $work/two.cfg $common $ring --threads 1 --set data.batch=32"
"$dtrain" $what --run-dir "$work/two" 2>"$work/err" || fail "two phases: exit code $?"
stopped two 40 # in the first round of the second phase

# --- a long round answers at once: the program is met in it, asked to stop, and saves the state before the round ---
long="--plugin phase2_ppo $common $ring --threads 1 --set phase2_ppo.train_batch=400000 --set phase2_ppo.fragment=1000
      --set phase2_ppo.sgd_epochs=1"
meet=$PWD/$work/meet # a whole path: it is where the program makes it
patience=6000        # hundredths of a second, far longer than anything here takes
until_so() {         # a condition: false when it did not come about
    tries=0
    until "$@"; do
        tries=$((tries + 1))
        [ $tries -lt $patience ] || return 1
        sleep 0.01
    done
}
begin() { # POINT DIR [options]: starts it, and waits until it is at that fault point, where it stays
    point=$1
    dir=$2
    shift 2
    DTRAIN_FAULT=$point@$meet "$dtrain" "$@" --run-dir "$dir" 2>"$work/err" &
    pid=$!
    until_so [ -e "$meet" ] || fail "$dir: it never came to $point"
}
go_on() {
    rm -f "$meet"
}
is_taken() { # PID: a signal that it was sent is with it
    ! grep -q '^\(Shd\|Sig\)Pnd:.*[1-9a-f]' "/proc/$1/status"
}
is_over() {
    state=$(sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -c 1)
    [ -z "$state" ] || [ "$state" = Z ]
}
ends() { # CODE WHAT: the process that was begun
    at=$(milliseconds)
    until_so is_over $pid || kill -9 $pid
    wait $pid
    code=$?
    [ $code -eq "$1" ] || fail "$2: exit code $code, expected $1"
    echo "$2: exit code $code after $(($(milliseconds) - at)) ms"
}
step_of() {
    "$dtrain" ckpt inspect "$1" --json 2>/dev/null | sed -n 's/.*"step":\([0-9]*\).*/\1/p'
}
for signal in TERM:75 INT:75; do
    dir=$work/long-$signal
    begin run.stop:300 "$dir" $long
    kill -${signal%:*} $pid 2>/dev/null || fail "it is gone"
    until_so is_taken $pid || fail "SIG${signal%:*} does not arrive"
    go_on
    ends ${signal#*:} "SIG${signal%:*} in a long round"
    "$dtrain" ckpt verify "$dir" >/dev/null 2>"$work/err" || fail "what SIG${signal%:*} left"
    [ "$(step_of "$dir")" -eq 0 ] || fail "SIG${signal%:*}: the round was played to its end"
done
# the time is over before the round or in it: a loop that repeats 75 would never end, so that is an error, in every life;
# a longer time is the remedy
for seconds in 0.001 2 0.001; do
    dir=$work/long-time
    "$dtrain" $long --max-time $seconds --run-dir "$dir" --resume auto 2>"$work/err"
    code=$?
    [ $code -eq 2 ] || fail "--max-time $seconds in a long round: exit code $code"
    [ ! -e "$dir/checkpoints/LATEST" ] || [ "$(step_of "$dir")" -eq 0 ] ||
        fail "--max-time $seconds: the round was played to its end"
    grep -q "use a longer --max-time" "$work/err" || fail "--max-time $seconds: the remedy is missing"
done
"$dtrain" $long --set phase2_ppo.train_batch=2000 --max-time 600 --max-steps 1 --run-dir "$work/long-time" --resume auto \
    2>"$work/err" || fail "a longer --max-time: exit code $?"
"$dtrain" $long --set phase2_ppo.train_batch=4000 --max-steps 40 --run-dir "$work/long-steps" 2>"$work/err" || fail "--max-steps: $?"

# --- the second signal does not wait for what the first one has to: the program learns from a round, and does not get
# on with it ---
for signal in TERM:143 INT:130; do
    begin train.step:5 "$work/twice-$signal" $long --set phase2_ppo.fragment=64 --set phase2_ppo.train_batch=256 \
        --set data.batch=32 --set data.shards=1
    kill -${signal%:*} $pid 2>/dev/null || fail "it is gone"
    until_so is_taken $pid || fail "SIG${signal%:*} does not arrive"
    ! is_over $pid || fail "SIG${signal%:*} once ended it while it learnt"
    kill -${signal%:*} $pid 2>/dev/null
    ends ${signal#*:} "SIG${signal%:*} twice"
    go_on
done

# --- SIGUSR1 saves at the end of the round and goes on ---
begin run.stop:30 "$work/usr1" $long --set phase2_ppo.fragment=64 --set phase2_ppo.train_batch=256 \
    --set phase2_ppo.iterations=1000000
kill -USR1 $pid 2>/dev/null || fail "it is gone"
until_so is_taken $pid || fail "SIGUSR1 does not arrive"
go_on
until_so [ -e "$work/usr1/checkpoints/LATEST" ] || fail "SIGUSR1 saved nothing"
kill -TERM $pid 2>/dev/null || fail "SIGUSR1 ended the run"
ends 75 "SIGTERM after SIGUSR1"

# --- a reader that leaves at once ends nothing, and changes no exit code ---
code_of() { # COMMAND...: its exit code, with a reader of standard output and error that has left
    { { "$@" 2>&1; echo $? >"$work/code"; } | true; } 2>/dev/null
    cat "$work/code"
}
[ "$(code_of "$dtrain" --plugin phase2_ppo --set env.id=cartpole --set report.enabled=false --max-steps 2 \
    --run-dir "$work/unread")" = 0 ] || fail "a reader that leaves: exit code $(cat "$work/code")"
[ -e "$work/unread/checkpoints/LATEST" ] || fail "a reader that leaves: nothing is saved"
mkfifo "$work/pipe"
: <"$work/pipe" &
exec 4>"$work/pipe" # nobody reads it from now on
wait $!
unread() { # CODE WORDS...: of a command that prints into it
    want=$1
    shift
    timeout -k 5 60 "$dtrain" "$@" >&4 2>"$work/err"
    got=$?
    [ $got -eq "$want" ] || fail "exit code $got without a reader, expected $want: $*"
}
cp -R "$work/unread" "$work/second"
"$dtrain" doctor >/dev/null 2>&1
doctor=$?
verbs=$("$dtrain" --complete verbs "")
while read -r want words; do
    # shellcheck disable=SC2086
    unread "$want" $words
    verbs=$(echo "$verbs" | grep -vxe "${words%% *}")
done <<END
0 run --plugin phase2_ppo --set env.id=cartpole --dry-run
0 eval --checkpoint $work/unread --seeds 1 --episodes 1
0 export --checkpoint $work/unread --out $work/policy.safetensors
0 list --json
0 show phase2_ppo
0 check controller_mlp
0 new env my_env $work/my_env
0 config template phase2_ppo
0 config keys
0 ckpt list $work/unread
0 ckpt inspect $work/unread
0 ckpt verify $work/unread
2 ckpt list $work/none
$doctor doctor
0 runs $work
0 report $work/unread --out $work/report.html
0 render --help
0 watch $work/unread --json
0 seeds --help
0 sweep --help
0 compare $work/unread $work/second
0 bench gpu --predict H100 --plugin phase2_ppo --set env.id=cartpole
0 data inspect ${DT_BUILDDIR:-.}/share/demo.store
0 --version
END
[ -z "$verbs" ] || fail "verbs that were not tried without a reader: $verbs"
exec 4>&-
[ $failed -eq 0 ]
