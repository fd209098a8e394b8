#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# dtrain(1) and the completion name every verb and option that the program's help names, and groff has no complaint.
set -eu
dtrain=${DT_BUILDDIR:-.}/dtrain
page=${DT_BUILDDIR:-.}/core/cli/dtrain.1 completion=${DT_BUILDDIR:-.}/core/cli/dtrain.bash
fail() { echo "FAIL: $*"; exit 1; }

verbs=$("$dtrain" --help | sed -n '/VERB/,/^options/s/^  \([a-z][a-z]*\)  .*/\1/p')
test "$(echo "$verbs" | wc -l)" -ge 9 || fail "verbs of the help: $verbs"
for verb in $verbs; do
    grep -q "^\.B $verb " "$page" || fail "dtrain.1 has no verb $verb"
    names=$("$dtrain" "$verb" --help | sed -n 's/^  .. --\([a-z-]*\).*/\1/p')
    test "$(echo "$names" | wc -l)" -ge 6 || fail "options of $verb: $names"
    for name in $names; do
        roff=$(echo "$name" | sed 's/-/\\\\-/g')
        grep -q "^\.B .*\\\\-\\\\-$roff\( \|\$\)" "$page" || fail "dtrain.1 has no --$name"
        grep -q "^ *$verb) words='.*--$name " "$completion" || fail "the completion of $verb has no --$name"
    done
    grep -q "^        words='.*\b$verb " "$completion" || fail "the completion has no verb $verb"
done

if command -v bash >/dev/null 2>&1; then
    got=$(bash -c ". '$completion'; COMP_WORDS=(dtrain ckp) COMP_CWORD=1; _dtrain; echo \"\${COMPREPLY[*]}\"
        COMP_WORDS=(dtrain data --ou) COMP_CWORD=2; _dtrain; echo \"\${COMPREPLY[*]}\"" | tr '\n' ' ')
    test "$got" = "ckpt --out " || fail "completed to \"$got\""
fi
if command -v groff >/dev/null 2>&1; then
    said=$(groff -man -Tascii -ww "$page" 2>&1 >/dev/null) || fail "groff: $said"
    test -z "$said" || fail "groff: $said"
fi
