#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The width of a processor's vectors changes no bit: all three phases with the kernels for AVX2 and with those for
# AVX-512 pass through equal states, also where a run changes from one to the other in the middle, which nobody has to be
# told, and where two processes of one run differ. Every op by itself: tests/ops/test_widths.c.
set -u

dtrain=${DT_BUILDDIR:?}/dtrain
for isa in avx2 avx512; do
    if ! DTRAIN_CPU_ISA=$isa "$dtrain" list >/dev/null 2>&1; then
        echo "skipped: this processor or build has no kernels for $isa, so there is nothing to compare"
        exit 77
    fi
done
work=$(mktemp -d ./test-widths-XXXXXX) || exit 1
trap 'rm -rf "$work"' EXIT INT TERM
failed=0
cases=0

# sizes that are no multiples of a vector beside those of the guide's layers
cat >"$work/job.cfg" <<'END'
risk_gnn = { hidden = 64; heads = 8; layers = 2; };
world_lstm = { hidden = 36; layers = 1; };
controller_mlp = { hidden = 27; };
data = { batch = 16; };
training = { eval_interval = 0; save_interval = 0; warmup_epochs = 0; };
evaluation = { seeds = "1,2"; episodes = 1; baselines = ""; };
checkpoint = { every_seconds = 0; every_steps = 20; keep_last = 100; };
metrics = { tensorboard = false; };
report = { enabled = false; };
env = { instances = 5; };
env_traffic = { episode_s = 60.0; action_s = 5.0; };
phase2_ppo = { train_batch = 160; fragment = 8; };
phase3_constrained = { train_batch = 160; fragment = 8; limits = "starvation:1000"; };
phases = ( { plugin = "phase1_world_model"; stop = { steps = 200; }; },
           { plugin = "phase2_ppo"; stop = { iterations = 20; }; training = { eval_interval = 10; }; },
           { plugin = "phase3_constrained"; fresh = [ "controller" ]; stop = { iterations = 20; }; } );
END

fail() {
    echo "FAIL: $*"
    tail -n 12 "$work/err" | sed 's/^/    /'
    failed=$((failed + 1))
}
# train ISA DIR [options]
train() {
    isa=$1 dir=$2
    shift 2
    cases=$((cases + 1))
    DTRAIN_CPU_ISA=$isa timeout -k 5 300 "$dtrain" run --config "$work/job.cfg" --run-dir "$work/$dir" -q "$@" \
        >"$work/out" 2>"$work/err" || fail "$isa, $dir $*: exit code $?"
}
states() { # of all checkpoints
    "$dtrain" ckpt list "$1" --json | grep -o '"step":[0-9]*\|"state_hash":"[0-9a-f]*"'
}
same() { # DIR WHAT
    cases=$((cases + 1))
    states "$work/$1" >"$work/b"
    cmp -s "$work/a" "$work/b" || fail "$2: $(diff "$work/a" "$work/b" | head -n 4)"
}

train avx2 avx2
states "$work/avx2" >"$work/a"
cases=$((cases + 1))
[ "$(grep -c state_hash "$work/a")" -ge 20 ] || fail "too few checkpoints to compare"
train avx512 avx512
same avx512 "AVX-512 ends elsewhere than AVX2"

train avx512 hops --max-steps 90
train avx2 hops --resume --phase 1-2
cases=$((cases + 1))
! grep -q "results will differ" "$work/err" || fail "a change of vectors is told as if it changed results"
train avx512 hops --resume --phase all
cases=$((cases + 1))
[ "$(states "$work/hops" | tail -n 1)" = "$(tail -n 1 "$work/a")" ] || fail "from AVX-512 to AVX2 and back: other bits"
cases=$((cases + 1))
! grep -q not_reproducible_from_step "$work/hops/meta.json" || fail "a change of vectors is marked in meta.json"

echo "$cases checks, $failed failed"
[ $failed -eq 0 ]
