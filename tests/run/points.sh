#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Killed at every named point: a run on two virtual ranks, which write their checkpoints together, is killed at the
# first and at a later visit of each fault point of the source (core/base/fault.h), and goes on with --resume auto. It
# ends in the bits of the undisturbed run, and leaves nothing half-written behind.
set -u
name=points
. "${DT_SRCDIR:?}/tests/run/job.inc"
data='batch = 16; shards = 4;'
training='epochs = 1000;'
save='every_steps = 1; shard_mb = 0.001;'
job <<END
phase2_ppo = { train_batch = 20; fragment = 2; sgd_epochs = 1; };
phases = ( { plugin = "phase1_world_model"; stop = { steps = 3; }; },
           { plugin = "phase2_ppo"; stop = { steps = 2; }; } );
END
set -- --set comm.backend=sim --set comm.ranks=2
train 0 whole "$@"
enough_states 4

total=0
hit=0
missed=
points=$(grep -rhoE '(dt_fault|dt_fs_inject_fault)\("[a-z]+\.?[a-z]*"' "$DT_SRCDIR/core" | sed 's/.*"\(.*\)"/\1/' | sort -u)
for point in $points; do
    total=$((total + 1))
    was_hit=no
    for visit in 1 7; do
        rm -rf "$work/killed"
        cases=$((cases + 1))
        DTRAIN_FAULT="$point:$visit!" timeout -k 5 "$limit" "$dtrain" run --config "$work/job.cfg" \
            --run-dir "$work/killed" -q "$@" >"$work/out" 2>"$work/err"
        code=$?
        case $code in
            0) continue ;; # nobody went there, or not so often
            137) was_hit=yes ;;
            *) fail "$point:$visit!: exit code $code, expected 137" ;;
        esac
        train 0 killed --resume auto "$@"
        same killed "killed at $point, visit $visit"
        cases=$((cases + 1))
        left=$(find "$work/killed" -name '*.tmp*' -o -name 'trash.*' | head -n 3)
        [ -z "$left" ] || fail "killed at $point, visit $visit: left behind: $left"
    done
    if [ $was_hit = yes ]; then
        hit=$((hit + 1))
    else
        missed="$missed $point"
    fi
done
echo "points hit $hit / points total $total; not on the way of this run:$missed"
[ $hit -ge 15 ] || fail "too few points hit"
finish
