#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# env_gym with environments in plain Python: every kind of space, phases on top, bit-identical results however it is run,
# and what is reported of Python and environments that fail.
set -u

. "${DT_SRCDIR:-.}/tests/check.inc"
. "${DT_SRCDIR:-.}/tests/plugins/gym.inc"

GYM_TEST_MARK=$work
export GYM_TEST_MARK

# --- results do not depend on processes, threads and ranks ---
walk="--set env_gym.id=worlds:Walk --set env_gym.kwargs=masks=true --set env_gym.metrics=distance"
train one $walk --threads 1 || fail "training left with $?"
want=$(state_hash "$work/one")
[ -n "$want" ] || fail "a run without a state"
same "two workers" workers $walk --threads 2
same "a Python process per instance" alone $walk --threads 1 --set env_gym.per_process=1
same "in threads" threads $walk --threads 2 --set env.isolation=thread --set env.workers=1
same "two ranks" ranks $walk --threads 1 --set comm.backend=sim --set comm.ranks=2
"$dtrain" $ppo $gym $walk --threads 1 --run-dir "$work/killed" >"$work/out" 2>&1 </dev/null &
pid=$!
i=0
while [ $i -lt 500 ] && ! ls "$work/killed/checkpoints/"*/MANIFEST.json >/dev/null 2>&1; do
    sleep 0.02
    i=$((i + 1))
done
kill -9 $pid
wait $pid 2>/dev/null
expect 0 "" "$dtrain" $ppo $gym $walk --run-dir "$work/killed" --resume auto
[ "$(state_hash "$work/killed")" = "$want" ] || fail "killed and resumed: the result differs"
(
    . "${DT_SRCDIR:-.}/tests/mpi_job.sh"
    trap - EXIT
    unset OMPI_MCA_rmaps_base_oversubscribe OMPI_MCA_hwloc_base_binding_policy # the launcher knows
    train nproc $walk --threads 1 --nproc 2 && [ "$(state_hash "$work/nproc")" = "$want" ]
)
code=$?
[ $code -eq 0 ] || [ $code -eq 77 ] || fail "two processes: code $code, or the result differs"
train stopped $walk --threads 1 --max-steps 7 || fail "seven steps left with $?"
expect 3 "--trust-plugins" "$dtrain" --resume "$work/stopped" -q # a run folder starts no Python by itself
expect 0 "" "$dtrain" --resume "$work/stopped" -q --trust-plugins
[ "$(state_hash "$work/stopped")" = "$want" ] || fail "resumed: the result differs"
expect 3 "--trust-plugins" "$dtrain" eval --checkpoint "$work/one"
expect 0 "distance" "$dtrain" eval --checkpoint "$work/one" --trust-plugins --json --seeds 1 --episodes 2

# --- spaces, agents that come and go, costs; other phases ---
expect 0 "" "$dtrain" $ppo $gym --set env_gym.id=worlds:Parts --run-dir "$work/parts"
expect 0 "" "$dtrain" $ppo $gym --set env_gym.id=worlds.py:Push --run-dir "$work/push"
expect 0 "" "$dtrain" $ppo $gym --set env_gym.id=worlds:Crowd --run-dir "$work/crowd"
expect 0 "" "$dtrain" --plugin phase_coma $gym --set env_gym.id=worlds:Crowd --max-steps 4 --run-dir "$work/coma"
expect 0 "" "$dtrain" --plugin phase_sac $gym --set env_gym.id=worlds:Push --max-steps 4 --run-dir "$work/sac"
expect 0 "" "$dtrain" --plugin phase_ddpg $gym --set env_gym.id=worlds:Push --max-steps 4 --run-dir "$work/ddpg"

# --- costs, as a value of their own or in info as with Safety-Gymnasium: the limit holds, and is reported ---
mean_cost() { # FOLDER LIMIT, more options: of the last 12 rounds, in hundredths
    folder=$1 limit=$2
    shift 2
    expect 0 "" "$dtrain" --plugin phase3_constrained $gym --set env_gym.id=worlds:Hazard --set env_gym.costs=cost \
        --set phase3_constrained.limits=cost:$limit --set phase3_constrained.iterations=24 --threads 1 \
        --set phase3_constrained.train_batch=128 --set phase3_constrained.fragment=32 --set phase3_constrained.sgd_epochs=4 \
        --set data.batch=64 --set training.learning_rate=0.01 --run-dir "$work/$folder" "$@"
    cost=$(sed -n 's/.*"costs\/cost":\([0-9.]*\).*/\1/p' "$work/$folder/metrics.jsonl" | tail -n 12 |
        awk '{ sum += $1 } END { printf "%d", NR == 12 ? 100 * sum / NR : -1 }')
}
mean_cost limited 1
[ "$cost" -gt 40 ] && [ "$cost" -lt 140 ] || fail "limit 1: cost $cost / 100"
grep -q '"limits/cost":1,' "$work/limited/metrics.jsonl" || fail "the limit is not in the metrics"
expect 0 '"limits":{"cost":1}' "$dtrain" eval --checkpoint "$work/limited" --trust-plugins --json --seeds 1
mean_cost free 100 --set env_gym.kwargs=inside=true
[ "$cost" -gt 300 ] || fail "no limit: cost $cost / 100"

# --- images stay bytes up to the graph; one result for all threads and ranks, and resumed ---
conv="--set models.controller=controller_conv --set env_gym.ports=images --set controller_conv.hidden=16"
conv="$conv --set env_gym.id=worlds:Catch"
set -- --set 'controller_conv.channels=4 8' --set 'controller_conv.kernels=3 2' --set 'controller_conv.strides=2 1'
train seen $conv "$@" --threads 1 || fail "images left with $?"
want=$(state_hash "$work/seen")
[ -n "$want" ] || fail "a run without a state"
same "images, two workers" seen2 $conv "$@" --threads 2
same "images, two ranks" seen3 $conv "$@" --threads 1 --set comm.backend=sim --set comm.ranks=2
train seen4 $conv "$@" --threads 1 --max-steps 7 || fail "seven steps of images left with $?"
expect 0 "" "$dtrain" --resume "$work/seen4" -q --trust-plugins
[ "$(state_hash "$work/seen4")" = "$want" ] || fail "images resumed: the result differs"
expect 0 "" "$dtrain" export --checkpoint "$work/seen" --out "$work/seen.safetensors" --trust-plugins
grep -aq '\\*"dtype\\*": *\\*"u8' "$work/seen.safetensors" || fail "the exported policy takes no bytes"
expect 0 "" "$dtrain" export --checkpoint "$work/seen" --out "$work/seen.onnx" --format onnx --trust-plugins
expect 0 "" "$dtrain" $ppo $gym $conv "$@" --set env_gym.kwargs=row=true --run-dir "$work/row"
expect 0 "" "$dtrain" --plugin phase_sac $gym $conv "$@" --set env_gym.kwargs=moves=true --max-steps 4 \
    --set models.critic=critic_conv --set 'critic_conv.channels=4' --set 'critic_conv.kernels=3' \
    --set 'critic_conv.strides=2' --set critic_conv.hidden=16 --run-dir "$work/sac_seen"
expect 2 "controller_conv" "$dtrain" $ppo $gym --set env_gym.id=worlds:Catch --set env_gym.ports=images --run-dir "$work/wrong"
expect 2 "image" "$dtrain" $ppo $gym --set env_gym.id=worlds:Walk --set models.controller=controller_conv --run-dir "$work/wrong"
set --

# --- an instance that fails is made again, its episode repeated: the same result ---
faulty="--set env_gym.id=worlds:Faulty --threads 1"
train sound $faulty --set "env_gym.kwargs=fault=none" || fail "no fault left with $?"
want=$(state_hash "$work/sound")
for fault in raise exit kill hang; do
    same "$fault" "$fault" $faulty --set "env_gym.kwargs=fault=$fault,once=$work/once.$fault" --set env_gym.timeout_s=2
    [ -e "$work/once.$fault" ] || fail "$fault did not happen"
done
has_log() { # FOLDER TEXT
    cat "$work/$1"/*.log "$work/err" 2>/dev/null | grep -qF -- "$2" || fail "$1: no \"$2\" in its log"
}
has_log raise "worlds.py:"
has_log exit "ended with code 7"
has_log kill "signal 9"
has_log hang "env_gym.timeout_s"

# --- errors: one message each ---
refuse() { # CODE TEXT, options
    code=$1 text=$2
    shift 2
    rm -rf "$work/wrong"
    expect "$code" "$text" "$dtrain" $ppo $gym --run-dir "$work/wrong" "$@"
}
walk="--set env_gym.id=worlds:Walk"
refuse 2 'takes no "stepz"' $walk --set env_gym.kwargs=stepz=3
refuse 2 "kwargs" $walk --set "env_gym.kwargs={"
refuse 2 "has no Nothing" --set env_gym.id=worlds:Nothing
refuse 2 "nowhere is not found by $python" --set env_gym.id=nowhere:Walk
refuse 2 "there is no file" --set env_gym.id=nowhere.py:Walk
refuse 2 "wrappers" $walk --set "env_gym.wrappers=3"
refuse 2 '"words"' --set env_gym.id=worlds:Faulty --set env_gym.kwargs=fault=space
refuse 2 "without observation_space" --set env_gym.id=worlds:not_an_environment
refuse 2 "teams" --set env_gym.id=worlds:Crowd --set env_gym.teams=a,b
refuse 5 "there is no file" $walk --set env_gym.interpreter=/nowhere/python
refuse 5 "PATH" $walk --set env_gym.interpreter=python-that-is-not
printf '\177ELF\002\001\001\000\000\000\000\000\000\000\000\000\002\000\363\000\001\000\000\000' >"$work/riscv"
head -c 200 /dev/zero >>"$work/riscv"
chmod +x "$work/riscv"
refuse 5 "another architecture" $walk --set "env_gym.interpreter=$work/riscv"
printf '#!/bin/sh\nexec "%s" -S "$@"\n' "$python" >"$work/bare" # without packages
chmod +x "$work/bare"
refuse 5 "-m pip install gymnasium" --set env_gym.id=CartPole-v1 --set env_gym.interpreter="$work/bare"
refuse 5 "ended with code 1" $walk --set env_gym.interpreter=/bin/false
refuse 3 "has 3 values" --set env_gym.id=worlds:Faulty --set env_gym.kwargs=fault=shape
refuse 3 "outside of the declared range" --set env_gym.id=worlds:Faulty --set env_gym.kwargs=fault=range \
    --set env_gym.bounds=error
refuse 3 "its space declares uint8" --set env_gym.id=worlds:Kinds
refuse 3 "its space declares uint8" --set env_gym.id=worlds:Kinds --set env_gym.interpreter="$work/bare"
refuse 3 "step returned" --set env_gym.id=worlds:Faulty --set env_gym.kwargs=fault=four
refuse 1 "env.restarts" --set env_gym.id=worlds:Faulty --set env_gym.kwargs=fault=raise
grep -q "a fault" "$work/err" || fail "no exception in the message"
! grep -q "$(printf '\033')" "$work/err" || fail "a control character in the message"
expect 0 "outside of the declared range" "$dtrain" $ppo $gym --set env_gym.id=worlds:Faulty \
    --set env_gym.kwargs=fault=range --run-dir "$work/warned"

# --- dtrain doctor: the default interpreter, or why there is none ---
mkdir -p "$work/riscv_bin" "$work/python_bin"
ln -s "$work/riscv" "$work/riscv_bin/python3"
ln -s "$python" "$work/python_bin/python3"
doctor() { # PATH TEXT
    PATH=$1 "$dtrain" doctor >"$work/out" 2>&1
    grep '^[A-Za-z ]*Python' "$work/out" | grep -q -- "$2" || fail "doctor does not report $2: $(grep Python "$work/out")"
}
doctor "$work/python_bin:$PATH" "$work/python_bin/python3, Python 3"
doctor "$work/riscv_bin" "another architecture"
doctor /nowhere "PATH"

# --- no process is left ---
left=$(grep -lsF "GYM_TEST_MARK=$work" /proc/[0-9]*/environ 2>/dev/null | while read -r file; do
    grep -qs env_gym_worker "${file%environ}cmdline" && echo "$file"
done)
[ -z "$left" ] || fail "processes are left: $left"

finish env_gym
