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
offered dtrain ckp | grep -q '^ckpt:the checkpoints of a run' || fail "verbs: $(offered dtrain ckp)"
offered dtrain data --ou | grep -q '^-o+$\|^--out=\[data: folder' || fail "options of data: $(offered dtrain data --ou)"
offered dtrain data --ou | grep -q -e '--max-steps' && fail "data has an option of run"
offered dtrain --max | grep -q '^--max-steps=\[' || fail "options without a verb: $(offered dtrain --max)"
offered dtrain run --res | grep -q '^--resume\[go on.*\]::' || fail "an option whose value may be missing"
exit 0
