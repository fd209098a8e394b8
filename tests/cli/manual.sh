#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# dtrain(1) and the completion for bash name every verb and option that the program's help names, dtrain.cfg(5) every
# key that it shows, libdtrain-policy(3) every function of its header; and groff has no complaint.
set -eu
dtrain=${DT_BUILDDIR:-.}/dtrain
page=${DT_BUILDDIR:-.}/core/cli/dtrain.1 completion=${DT_BUILDDIR:-.}/core/cli/dtrain.bash
fail() { echo "FAIL: $*"; exit 1; }

verbs=$("$dtrain" --help | sed -n '/VERB/,/^options/s/^  \([a-z][a-z]*\)  .*/\1/p')
test "$(echo "$verbs" | wc -l)" -ge 9 || fail "verbs of the help: $verbs"
for verb in $verbs; do
    grep -q "^\.SS $verb\$" "$page" || fail "dtrain.1 has no verb $verb"
    help=$("$dtrain" "$verb" --help)
    wide=$(echo "$help" | awk 'length > 100')
    test -z "$wide" || fail "$verb --help is wider than 100 columns: $wide"
    names=$(echo "$help" | sed -n 's/^  .. --\([a-z-]*\).*/\1/p')
    test "$(echo "$names" | wc -l)" -ge 3 || fail "options of $verb: $names"
    echo "$help" | sed -n '/^examples:/,$p' | grep -q "dtrain .*$verb\|dtrain --" || fail "$verb --help has no example"
    for name in $names; do
        roff=$(echo "$name" | sed 's/-/\\\\-/g')
        grep -q "^.*\\\\fB\\\\-\\\\-$roff\\\\fR" "$page" || fail "dtrain.1 has no --$name"
        grep -q "^ *$verb) words='.*--$name " "$completion" || fail "the completion of $verb has no --$name"
    done
    grep -q "^        $verb) verb='$verb' ;;" "$completion" || fail "the completion has no verb $verb"
done
"$dtrain" runs --help | grep -q -e --set -e --config && fail "runs --help has options that it ignores"
"$dtrain" data --help | grep -q '^  -o --out FILE.svg  *inspect: ' || fail "data --help does not say which form takes --out"

# --- what bash completes: each line is a command line, with what was typed last, and what is offered ---
offered() { # words: of the line, as bash cuts it
    bash -c 'dtrain=$1; shift; . "$1"; shift; COMP_WORDS=("$dtrain" "$@") COMP_CWORD=$#; _dtrain; echo "${COMPREPLY[*]}"' \
        bash "$dtrain" "$completion" "$@"
}
completes() { # what is offered, words
    want=$1
    shift
    got=$(offered "$@")
    test "$got" = "$want" || fail "completed $* to \"$got\", expected \"$want\""
}
if command -v bash >/dev/null 2>&1; then
    completes ckpt ckp
    completes "--out" data --ou
    completes "import inspect" data i
    completes "phase1_world_model" --plugin phase1
    completes "risk_gnn" show risk_g
    completes "normal" --profile no
    completes "training.scheduler=" --set training.sched
    completes "step" --set training.scheduler = st
    completes "training." --set train
    completes "true false" --set amp.enabled =
    completes "world_gru" --set models.world = world_g
    completes "env_cartpole" eval --env env_cart
    completes "safetensors onnx" export --format ""
    completes "cpu cuda" --device c
    work=$(mktemp -d ./test-manual-XXXXXX)
    mkdir "$work/plugins" && cp "${DT_BUILDDIR:-.}/tests/cli/.libs/extra.so" "$work/plugins/" || exit 1
    DTRAIN_PLUGIN_PATH=$work/plugins
    export DTRAIN_PLUGIN_PATH
    completes "count" cou
    completes "words" count w
    completes "--from" count words --fr
    unset DTRAIN_PLUGIN_PATH
    mkdir -p "$work/first" "$work/other"
    touch "$work/first/meta.json" "$work/first/config.cfg" "$work/first/config.origin.json"
    DTRAIN_RUN_DIR=$work
    export DTRAIN_RUN_DIR
    completes "$work/first" watch "$work/"
    completes "$work/first" run --resume "$work/f"
    completes "$work/first" ckpt list "$work/f"
    unset DTRAIN_RUN_DIR
    rm -rf "$work"
fi
"$dtrain" --complete nothing x 2>/dev/null && fail "a kind of completion that is none is accepted"

# --- readable in 80 columns ---
if command -v groff >/dev/null 2>&1; then
    for text in "$page" "${DT_BUILDDIR:-.}/core/cli/dtrain.cfg.5"; do
        wide=$(GROFF_NO_SGR=1 groff -man -Tascii -rLL=80n "$text" 2>/dev/null | sed 's/.\x08//g' | awk 'length > 80')
        test -z "$wide" || fail "$text has lines wider than 80 columns: $wide"
    done
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
