#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The completion for zsh: its syntax, and what it offers where verbs and options are.
set -eu
command -v zsh >/dev/null 2>&1 || { echo "no zsh here"; exit 77; }
completion=${DT_BUILDDIR:-.}/core/cli/dtrain.zsh
fail() { echo "FAIL: $*"; exit 1; }
zsh -n "$completion" || fail "zsh does not read it"

# what zsh's own functions are asked to offer, for the words of a line
offered() { # words
    zsh -fc '_describe() { print -rl -- "${(@P)4}" }; _arguments() { print -rl -- "$@" }
        completion=$1; shift; words=("$@"); CURRENT=$#; . $completion' zsh "$completion" "$@"
}
offered dtrain ckp | grep -q '^ckpt:list, inspect and verify' || fail "verbs: $(offered dtrain ckp)"
offered dtrain data --ou | grep -q '^--out=\[folder of the store' || fail "options of data: $(offered dtrain data --ou)"
offered dtrain data --ou | grep -q -e '--max-steps' && fail "data has an option of run"
offered dtrain --max | grep -q '^--max-steps=\[' || fail "options without a verb: $(offered dtrain --max)"
offered dtrain run --res | grep -q '^--resume\[resume a stopped run.*\]::' || fail "an option whose value may be missing"
offered dtrain run --set | grep -q ':KEY=VALUE:_dtrain_set$' || fail "values of --set"
offered dtrain run --plugin | grep -q ':FILE_OR_ID:_dtrain_ask phases$' || fail "values of --plugin"
offered dtrain data '' | grep -q '^2:form:(import inspect ' || fail "forms of data"
offered dtrain watch '' | grep -q '^\*:word:_dtrain_ask runs$' || fail "words of watch"
# the program itself is asked
dtrain=$(cd "${DT_BUILDDIR:-.}" && pwd)/dtrain
found() { # PREFIX of a key or KEY=value
    zsh -fc 'compadd() { print -rl -- $found }; _describe() { : }; _arguments() { : }; completion=$1; p=$2; PREFIX=$3
        words=(dtrain run); CURRENT=3; . $completion; words=($p run); _dtrain_set' zsh "$completion" "$dtrain" "$1"
}
test "$(found training.sched)" = "training.scheduler=" || fail "keys: $(found training.sched)"
test "$(found training.scheduler=st)" = "training.scheduler=step" || fail "values: $(found training.scheduler=st)"
exit 0
