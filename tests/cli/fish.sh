#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The completion for fish: its syntax, and what fish offers by it.
set -eu
command -v fish >/dev/null 2>&1 || { echo "no fish here"; exit 77; }
completion=${DT_BUILDDIR:-.}/core/cli/dtrain.fish
fail() { echo "FAIL: $*"; exit 1; }
work=$(mktemp -d "$PWD/test-fish-XXXXXX")
trap 'rm -rf "$work"' EXIT
HOME=$work XDG_CONFIG_HOME=$work XDG_DATA_HOME=$work
export HOME XDG_CONFIG_HOME XDG_DATA_HOME
fish -n "$completion" || fail "fish does not read it"

offered() { fish -Nc "source '$completion'; complete -C '$1'"; } # line
offered 'dtrain ckp' | grep -q '^ckpt.list, inspect and verify' || fail "verbs: $(offered 'dtrain ckp')"
offered 'dtrain data --ou' | grep -q '^--out.folder of the store' || fail "options of data: $(offered 'dtrain data --ou')"
test -z "$(offered 'dtrain data --max')" || fail "data has options of run: $(offered 'dtrain data --max')"
offered 'dtrain --max' | grep -q '^--max-steps' || fail "options without a verb: $(offered 'dtrain --max')"
offered 'dtrain run --res' | grep -q '^--resume' || fail "options of run: $(offered 'dtrain run --res')"
# the program itself is asked
dtrain=$(cd "${DT_BUILDDIR:-.}" && pwd)/dtrain
PATH=$(dirname "$dtrain"):$PATH
export PATH
offered 'dtrain run --set training.sched' | grep -q '^training.scheduler=[[:space:]]' || fail "keys: $(offered 'dtrain run --set training.sched')"
offered 'dtrain run --set training.scheduler=st' | grep -q '^training.scheduler=step[[:space:]]' || fail "values"
offered 'dtrain show risk_g' | grep -q '^risk_gnn' || fail "ids: $(offered 'dtrain show risk_g')"
offered 'dtrain --profile no' | grep -q '^normal' || fail "profiles: $(offered 'dtrain --profile no')"
offered 'dtrain data ins' | grep -q '^inspect.print the contents of a store' || fail "forms: $(offered 'dtrain data ins')"
offered 'dtrain ckpt list ' 2>&1 | grep -q 'Invalid' && fail "fish complains"
exit 0
