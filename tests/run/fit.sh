#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What the configuration asks beyond the machine is refused before it is taken, with the keys that reduce it; what may
# work is warned of.
set -eu
work=$(mktemp -d "$PWD/test-fit-XXXXXX") # whole: the test goes there, and the trap runs there
trap 'rm -rf "$work"' EXIT
cd "$work"
cores=$(nproc)
total=$(awk '/^MemTotal|^SwapTotal/ { n += $2 } END { printf "%.0f\n", n * 1024 }' /proc/meminfo)
sanitized=false
grep -q __asan_init "$DT_BUILDDIR/dtrain" && sanitized=true

fail() {
    echo "FAIL: $*"
    cat out
    exit 1
}

dtrain() {
    code=0
    timeout 120 "$DT_BUILDDIR/dtrain" "$@" >out 2>&1 || code=$?
}

refused() { # PIECE, arguments
    piece=$1
    shift
    dtrain "$@"
    test $code -eq 2 || fail "exit code $code of $*, expected 2"
    grep -Eq "^error .*$piece" out || fail "$*: says nothing of: $piece"
}


pole="--plugin phase2_ppo --set env.id=cartpole"
traffic="--plugin phase2_ppo --set env.id=env_traffic"

# a round of a thousand million samples: prints the plan, refuses it, and names the keys that reduce it
# shellcheck disable=SC2086
for ask in "$pole" "$traffic"; do
    if [ "$ask" = "$pole" ] && [ "$total" -gt 70000000000 ]; then
        continue # so large a machine holds it
    fi
    refused 'the plan takes .* GB, but .* GB are free; lower env.instances or phase2_ppo.train_batch or ' $ask \
        --set phase2_ppo.train_batch=1000000000 --dry-run
    grep -q '  planned peak [0-9.]* MB resident' out || fail "the plan is not told before it is refused"
    grep -q '  machine      [0-9]* core.* of memory free of ' out || fail "says not what there is"
    dtrain $ask --dry-run # as advised
    test $code -eq 0 || fail "what was advised, a lower train_batch, is refused"
    dtrain $ask --set phase2_ppo.train_batch=1000000000 --dry-run --json
    test $code -eq 2 || fail "exit code $code of the plan as JSON"
    grep -q '"machine":{"cores":[0-9]*,"memory_free":[0-9]*,.*"fits":false' out || fail "JSON: says not that it does not fit"
done
# the run, not the plan alone; what began leaves nothing in memory
# shellcheck disable=SC2086
refused 'lower env.instances or phase2_ppo.train_batch or ' $traffic --set phase2_ppo.train_batch=1000000000 --run-dir large \
    --set report.enabled=false
test -z "$(ls large/checkpoints 2>/dev/null)" || fail "a run that was refused has checkpoints"
# a later phase, before the first one begins
cat >two.cfg <<END
phases = ( { plugin = "phase2_ppo"; env = { id = "cartpole"; }; stop = { iterations = 1; }; },
           { plugin = "phase2_ppo"; env = { id = "env_traffic"; }; phase2_ppo = { train_batch = 1000000000; }; } );
END
refused 'phase 2, tried before phase 1 begins: the plan takes .*; lower env.instances or phase2_ppo.train_batch or ' --config two.cfg \
    --run-dir two
test ! -e two || fail "phase 1 began though phase 2 cannot"

# processes: their memory and their files count; environments in this process cost neither
# shellcheck disable=SC2086
refused 'the plan takes .* in processes of environments.*; lower env.instances or ' $traffic \
    --set env.instances=4096 --set env.isolation=process --set env.workers=4096 --set memory.target_gb=1.5 --dry-run
# shellcheck disable=SC2086
(
    # shellcheck disable=SC3045 # dash, bash and busybox have it
    ulimit -n 128
    refused 'processes of environments.* open files.* raise ulimit -n, or lower env.workers; lower env.instances or ' \
        $traffic --set env.instances=256 --set env.isolation=process --set env.workers=256 --dry-run
    dtrain $traffic --set env.instances=256 --dry-run
    test $code -eq 0 || fail "256 environments in this process are refused"
)
# shellcheck disable=SC2086
dtrain $traffic --set env.instances=$((33 * cores)) --set env.isolation=process --set env.workers=$((33 * cores)) --dry-run
grep -q "warn .*processes of environments take turns on $cores core" out || fail "many processes are not warned of"

# threads: some more than cores are warned of, far more refused, and the number of cores is not
# shellcheck disable=SC2086
{
    refused "engine.threads = $((16 * cores + 40)), but this process may use $cores core" $pole --dry-run \
        --threads $((16 * cores + 40))
    refused "env.workers = $((16 * cores + 40)), but this process" $pole --dry-run --set env.workers=$((16 * cores + 40))
    dtrain $pole --threads $((2 * cores)) --dry-run
    test $code -eq 0 || fail "twice as many threads as cores are refused"
    grep -q "warn .*engine.threads = $((2 * cores)), but this process may use $cores core.*changes no result" out ||
        fail "twice as many threads as cores are not warned of"
    dtrain $pole --threads 4 --dry-run --set comm.backend=sim --set comm.ranks=2
    grep -q "^  threads  *2 on each of 2 ranks" out || fail "virtual ranks do not share threads in the plan"
    dtrain $pole --threads "$cores" --dry-run
    ! grep -q warn out || fail "a thread a core is warned of"
}

# a target below the plan: a smaller micro-batch first, then refused with one that would do
dtrain --plugin phase1_world_model --dry-run --set memory.target_gb=0.01 --threads 2
target=$(sed -n 's/^error .* raise memory.target_gb to \([0-9.]*\);.*/\1/p' out)
test $code -eq 2 && test -n "$target" || fail "a target of 10 MB is not refused"
dtrain --plugin phase1_world_model --dry-run --set "memory.target_gb=$target" --threads 2
test $code -eq 0 || fail "the target that was advised, $target, is refused"
for times in 1.05 1.1 1.2 1.4 1.7 2 3 4; do # the micro-batch grows with it, and never above it
    larger=$(awk -v t="$target" -v n=$times 'BEGIN { print t * n }')
    dtrain --plugin phase1_world_model --dry-run --set "memory.target_gb=$larger" --threads 2
    test $code -eq 0 || fail "memory.target_gb = $target is accepted, and $larger is refused"
done

# limited address space: what cannot be mapped is the configuration's fault, not the run's; a sanitizer needs all of it
if ! $sanitized; then
    # shellcheck disable=SC2086
    (
        # shellcheck disable=SC3045
        ulimit -v 400000
        for how in --dry-run "--run-dir small"; do
            refused 'cannot map an arena.* [(]ulimit -v leaves .* GB to map[)]; lower env.instances or ' \
                $traffic --set env.instances=4096 $how
        done
    )
fi
# while running workers count, too: a target that the plan keeps to, and a level that only both together pass
# shellcheck disable=SC2086
dtrain $traffic --set env.instances=8 --set env.isolation=process --set env.workers=8 --set phase2_ppo.iterations=2 --threads 1 \
    --set phase2_ppo.train_batch=256 --set phase2_ppo.fragment=32 --set phase2_ppo.sgd_epochs=1 --run-dir workers \
    --set memory.target_gb=1 --set memory.warn_fraction=0.005 --set memory.shed_fraction=0 --set memory.watch_s=0.001 \
    --set evaluation.episodes=1 --set evaluation.baselines= --set report.enabled=false
test $code -eq 0 || fail "exit code $code of a run with workers"
grep -Eq 'warn .*this process holds [0-9.]* GB .*, 8 processes of environments [0-9.]* GB' out ||
    fail "the watch says nothing of what workers hold"
tr ',' '\n' <workers/metrics.jsonl | sed -n 's/^"mem.workers":\([0-9.e+]*\).*/\1/p' | tail -n 1 >held
awk '{ exit !($1 > 1e6) }' held || fail "mem/workers is '$(cat held)'"

echo "plans are held against the machine"
