#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The width of a processor's vectors changes no bit: all three phases with the kernels for AVX2 and with those for
# AVX-512 pass through equal states, also where a run changes from one to the other in the middle, which nobody has to
# be reported, and where two processes of one run differ. Every op by itself: tests/engine/ops/test_widths.c.
set -u

dtrain=${DT_BUILDDIR:?}/dtrain
for isa in avx2 avx512; do
    if ! DTRAIN_CPU_ISA=$isa "$dtrain" list >/dev/null 2>&1; then
        echo "skipped: this processor or build has no kernels for $isa, so there is nothing to compare"
        exit 77
    fi
done
name=widths
. "${DT_SRCDIR:?}/tests/run/job.inc"
limit=300
# sizes that are no multiples of a vector compared with those of the guide's layers
models='risk_gnn = { hidden = 64; heads = 8; layers = 2; };
world_lstm = { hidden = 36; layers = 1; };
controller_mlp = { hidden = 27; };'
save='every_steps = 10; keep_last = 100;'
engine=
job <<'END'
phase2_ppo = { train_batch = 160; fragment = 8; };
phase3_constrained = { train_batch = 160; fragment = 8; limits = "starvation:1000"; };
phases = ( { plugin = "phase1_world_model"; stop = { steps = 60; }; },
           { plugin = "phase2_ppo"; stop = { iterations = 6; }; training = { eval_interval = 3; }; },
           { plugin = "phase3_constrained"; fresh = [ "controller" ]; stop = { iterations = 6; }; } );
END
# as ISA DIR [options]
as() {
    DTRAIN_CPU_ISA=$1
    export DTRAIN_CPU_ISA
    shift
    train 0 "$@"
    unset DTRAIN_CPU_ISA
}

as avx2 whole
enough_states 12
as avx512 avx512
same_all avx512 "AVX-512 ends elsewhere than AVX2"

as avx512 hops --max-steps 25
as avx2 hops --resume --phase 1-2
cases=$((cases + 1))
! grep -q "results will differ" "$work/err" || fail "a change of vectors is told as if it changed results"
as avx512 hops --resume --phase all
same hops "from AVX-512 to AVX2 and back"
cases=$((cases + 1))
! grep -q not_reproducible_from_step "$work/hops/meta.json" || fail "a change of vectors is marked in meta.json"

finish
