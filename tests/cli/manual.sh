#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# dtrain(1) and the completion for bash name every verb and option that the program's help names, dtrain.cfg(5) every key
# that it shows, libdtrain-policy(3) every function of its header; and groff has no complaint.
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

# --- dtrain.cfg(5) ---
keys=${DT_BUILDDIR:-.}/core/cli/dtrain.cfg.5
ids=$("$dtrain" list | awk 'NR > 1 { print $2 }')
test "$(echo "$ids" | wc -l)" -ge 20 || fail "components: $ids"
for id in $ids $(sed -n '/^\.SH SECTIONS/,/^\.SH PLUGINS/s/^\.SS //p' "$keys"); do
    sed -n "/^\.SS $id\$/,/^\.S[SH] /p" "$keys" | sed -n 's/^\.B //p' | grep -v ' ' >manual.keys.$$ || true
    "$dtrain" show "$id" --json | sed 's/"sections".*//' | grep -o '{"name":"[a-z0-9_]*","type"' | cut -d'"' -f4 |
        diff - manual.keys.$$ >manual.diff.$$ || fail "$id in dtrain.cfg.5 differs from dtrain show: $(cat manual.diff.$$)"
done
rm -f manual.keys.$$ manual.diff.$$
for id in phases models training data env evaluation import; do
    grep -q "^\.S[SH] $id\$" "$keys" || grep -qi "^\.SH $id\$" "$keys" || fail "dtrain.cfg.5 has no section $id"
done

# --- libdtrain-policy(3) ---
policy=$DT_SRCDIR/docs/libdtrain-policy.3
functions=$(sed -n 's/^DT_EXPORT .*\(dt_policy_[a-z_]*\)(.*/\1/p' "$DT_SRCDIR/include/dtrain/policy.h")
test "$(echo "$functions" | wc -l)" -ge 8 || fail "functions of policy.h: $functions"
for name in $functions; do
    grep -q "^\.BI* \".*\b$name(\|^\.B .*\b$name(" "$policy" || fail "libdtrain-policy.3 has no prototype of $name"
done

if command -v groff >/dev/null 2>&1; then
    for text in "$page" "$keys" "$policy"; do
        said=$(groff -man -Tascii -ww "$text" 2>&1 >/dev/null) || fail "groff: $said"
        test -z "$said" || fail "groff of $text: $said"
    done
fi
