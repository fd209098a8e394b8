#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# dtrain export of a phase that learns from recordings and has a rollout as well: inputs are the recordings' fields, as
# they are given, and nothing of the rollout, whose fields are more. Its outputs depend on a step input where it learns,
# and nowhere else, which is no obstacle: it is asked what it records for.
set -u

dtrain=${DT_BUILDDIR:-.}/dtrain
module=${DT_BUILDDIR:-.}/tests/export/.libs/cloner.so
work=$(mktemp -d ./test-cloner-XXXXXX) || exit 1
trap 'rm -rf "$work"' EXIT INT TERM

die() {
    echo "FAIL: $*"
    tail -n 6 "$work/err"
    exit 1
}

"$dtrain" -q --threads 1 --plugin "$module" --run-dir "$work/run" --set models.controller=cloner_model \
    --set data.source=cloner_data --set env.id=cartpole --set env.instances=2 --set data.batch=8 \
    --set training.eval_interval=0 --set report.enabled=false --max-steps 2 >/dev/null 2>"$work/err" ||
    die "training left with $?"
"$dtrain" export --plugin "$module" --checkpoint "$work/run" --out "$work/out" --json >"$work/json" 2>"$work/err" ||
    die "export left with $?"
grep -qF '"inputs":["obs"]' "$work/json" || die "other inputs: $(cat "$work/json")"
grep -qF '"parameters":12,' "$work/json" || die "what is for training alone was exported: $(cat "$work/json")"
text=$(head -c 20000 "$work/out" | tr -d '\134' | tr '}' '\n')
case $text in *'"heads":[]'*'"continuous":0'*) ;; *) die "a model of recordings has actions of the rollout" ;; esac
inputs=$(printf '%s\n' "$text" | grep '"kind":"given"' | grep -vc '"normalised_inside"') # the file's own, not those of its description
[ "$inputs" -eq 1 ] || die "$inputs inputs are given as they are"
printf '%s\n' "$text" | grep '"kind":' | grep -v '"kind":"given"' >"$work/other" && die "$(cat "$work/other")"
printf '%s\n' "$text" | grep -q '"counts":' && die "a field of recordings counts rows of the rollout"
echo "1 case"
