#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# A plugin that breaks one rule of the contract at a time (faulty.c): `dtrain check` and runs name the rule, and
# evaluations and exports act with the step inputs of the checkpoint.
set -u

dtrain=${DT_BUILDDIR:-.}/dtrain
module=${DT_BUILDDIR:-.}/tests/plugin/trial/.libs/faulty.so
work=$(mktemp -d ./test-faults-XXXXXX) || exit 1
trap 'rm -rf "$work"' EXIT INT TERM
unset DTRAIN_PLUGIN_PATH
export DTRAIN__ENGINE__DEVICE=cpu
n=0

die() {
    echo "FAIL: $*"
    tail -n 20 "$work/out"
    exit 1
}
# verdict CODE TEXT OPTION...: the exit code of check, and a piece of what it prints ("": anything)
verdict() {
    code=$1 text=$2
    shift 2
    "$dtrain" check "$module" "$@" >"$work/out" 2>&1
    got=$?
    [ "$got" -eq "$code" ] || die "check $* leaves with $got, expected $code"
    [ -z "$text" ] || grep -qF -- "$text" "$work/out" || die "check $* does not say \"$text\""
    n=$((n + 1))
}

# ---- state of the process ----
verdict 0 " 0 failed, 0 skipped"
grep -qF "step_many gives the results of step" "$work/out" || die "step_many was not tried"
grep -qF "resumed to the same weights, the same weights in another process on 2 ranks" "$work/out" || die "not all was tried"
for fault in "handler:handler of signal 15" "stdout:wrote 5 bytes to standard output" "folder:working folder" \
    "locale:locale to C.UTF-8" "rounding:rounding is upward" "limit:setrlimit" "mask:umask" "variable:setenv" "timer:alarm"; do
    verdict 3 "environment faulty_env: create: it " --set "faulty_env.fault=${fault%%:*}"
    grep -qF -- "${fault#*:}" "$work/out" || die "${fault%%:*}: no \"${fault#*:}\""
done
verdict 3 "environment faulty_env: playing: it changed the floating-point environment" --set faulty_env.fault=step
verdict 3 "differs between step_many and step" --set faulty_env.fault=many
verdict 3 "environment faulty_env: playing again: seed" --set faulty_env.fault=shared
verdict 3 "step returns DT_EINVAL without a reason" --set faulty_env.fault=silent
verdict 3 "environment faulty_env: another process: " --set faulty_env.fault=address
grep -qF "dtrain check faulty_env" "$work/out" || die "the phase is blamed for its environment"
echo 'phases = ({ plugin = "phase2_ppo"; faulty_env = { fault = "address"; }; });' >"$work/phases.cfg"
verdict 0 "the same in another process, at other addresses" --config "$work/phases.cfg" # all instances without it
{ "$dtrain" check "$module" --set faulty_env.fault=mask 2>/dev/null; echo $? >"$work/code"; } | true
[ "$(cat "$work/code")" -eq 3 ] || die "check leaves with $(cat "$work/code") where its reader has left"
verdict 3 "it takes more than 0.5 GB" --set faulty_env.fault=leak --set memory.target_gb=0.5
verdict 3 "phase faulty: iterate: it changed the floating-point environment" --set faulty.fault=rounding
FAULTY_OPEN=rounding verdict 3 "opening it, in its constructors: it changed the floating-point environment"

# ---- what a phase and a model promise ----
while IFS=: read -r fault text; do
    verdict 3 "$text" --set "$fault"
done <<END
faulty.fault=resets:computes with 0.5 in step input coldness
faulty.fault=unset:step input coldness, but start has not set it
faulty.fault=forgets:save leaves out state
faulty.fault=static:a second instance of the phase in this process
faulty.fault=address:in other weights
faulty.fault=graph:record records another graph
faulty.fault=typo:no step input is called scal
faulty.fault=metric:has a tab or a line break
faulty.fault=stuck:advanced neither
faulty.fault=again:advanced neither
faulty.fault=invalid:returned 55, which is not a valid code
faulty_model.fault=random:records another graph
faulty_model.fault=counting:records another graph
faulty_model.fault=kept:belongs to another graph
faulty_model.fault=wide:FAIL model faulty_model: running on zeros
END
verdict 0 "the same weights in another process on 2 ranks" --set faulty.fault=coarse # rounds as large as it takes
DTRAIN_PLUGIN_PATH=${module%/*} verdict 0 "acts in faulty_env by faulty: created" --env faulty_env

# a phase that learns from stored rollouts gets some; without them, and with unusable ones, it is not accepted
"$dtrain" check phase_offline --set env.id=cartpole >"$work/out" 2>&1 || die "check phase_offline leaves with $?"
grep -qF " 0 failed, 0 skipped" "$work/out" || die "check phase_offline skips its life cycle"
mkdir "$work/none"
"$dtrain" check phase_offline --set env.id=cartpole --set "phase_offline.rollouts=$work/none" >"$work/out" 2>&1
[ $? -eq 3 ] || die "check phase_offline accepts a folder without rollouts"
# its plugin is in no folder of plugins, and has a section and an environment that phase2_ppo's has not; that they cannot
# be collected is no fault of its own
faulty=$module module=${module%/*}/stored.so
verdict 0 " 0 failed, 0 skipped"
verdict 0 " 0 failed, 0 skipped" --set stored.rounds=6 --set stored_env.steps=4
verdict 0 "SKIP phase stored: life cycle: no rollouts to learn from: " --set models.controller=controller_conv
grep -qF " 0 failed, 1 skipped" "$work/out" || die "a phase without rollouts is not skipped"
module=$faulty
n=$((n + 2))

# ---- acting ----
run() { # FOLDER OPTION...
    folder=$1
    shift
    "$dtrain" --plugin "$module" -q --threads 1 --run-dir "$work/$folder" --set report.enabled=false \
        --set metrics.tensorboard=false --set evaluation.seeds=2 --set evaluation.episodes=1 "$@" >"$work/out" 2>&1
}
member() { sed -n "s|.*\"$1:\([-0-9.e]*\).*|\1|p" "$2" | tail -n 1; } # TEXT BEFORE THE NUMBER, FILE
bytes() { od -A n -v -t x1 "$1" | tr -d ' \n'; }
weights() { "$dtrain" ckpt inspect "$1" --json | sed -n 's/.*"weights_hash":"\([0-9a-f]*\)".*/\1/p'; }

run plain --max-steps 8 || die "a run leaves with $?"
"$dtrain" eval --plugin "$module" --checkpoint "$work/plain" --json >"$work/out" 2>/dev/null || die "eval leaves with $?"
now=$(member 'return":{"mean"' "$work/out") then=$(member 'eval/return/mean"' "$work/plain/metrics.jsonl")
[ -n "$now" ] && [ "$now" = "$then" ] || die "eval: $now, but $then in the run"
run declares --max-steps 8 --set faulty.fault=declares || die "a run leaves with $?"
[ "$(weights "$work/plain")" = "$(weights "$work/declares")" ] || die "values for acting changed what was learnt"
for what in plain:db0f4940 declares:0000c03f; do # pi, and 1.5, of both choices
    for format in onnx safetensors; do
        "$dtrain" export --plugin "$module" --checkpoint "$work/${what%%:*}" --format $format --out "$work/file" \
            >"$work/out" 2>&1 || die "export to $format leaves with $?"
        case $(bytes "$work/file") in
            *"${what#*:}${what#*:}"*) n=$((n + 1)) ;;
            *) die "$format of ${what%%:*} has no step input of ${what#*:}" ;;
        esac
    done
done
# a pending evaluation and a resumed run continue from them, unless start sets something else
run unset --max-steps 8 --set faulty.fault=unset
got=$?
[ $got -eq 3 ] && grep -qF "step input coldness, but start has not set it" "$work/out" || die "unset: $got"

run stuck --set faulty.fault=stuck
got=$?
[ $got -eq 3 ] && grep -qF "phase faulty does not advance" "$work/out" || die "a phase that does not advance: $got"
[ "$(wc -l <"$work/stuck/metrics.jsonl")" -le 1001 ] || die "a phase that does not advance fills its metrics"

# ---- the floating-point environment of a run ----
for fault in faulty.fault=rounding:plain faulty_env.fault=rounding:plain faulty_env.fault=step:step; do
    for isolation in thread process; do # what step changes is its own until it returns
        run fp --max-steps 8 --set "${fault%:*}" --set env.isolation=$isolation || die "$fault leaves with $?"
        [ -d "$work/${fault#*:}" ] || mv "$work/fp" "$work/${fault#*:}"
        [ ! -d "$work/fp" ] || [ "$(weights "$work/fp")" = "$(weights "$work/${fault#*:}")" ] ||
            die "$fault: other weights with $isolation"
        rm -rf "$work/fp"
        n=$((n + 1))
    done
done
FAULTY_OPEN=rounding run fp --max-steps 8 || die "a constructor: $?"
grep -q "changed the floating-point environment" "$work/out" || die "a constructor is not reported"
[ "$(weights "$work/fp")" = "$(weights "$work/plain")" ] || die "a constructor: other weights"

echo "$((n + 5)) cases"
