#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What a plugin adds to the command line: a verb with forms, options and a section of the configuration, in help,
# `dtrain show` and completion; and a check of `dtrain doctor`. Whatever is wrong ends with the host's codes.
set -u
. "${DT_SRCDIR:-.}/tests/check.inc"
mkdir "$work/plugins"
cp "${DT_BUILDDIR:-.}/tests/cli/.libs/extra.so" "$work/plugins/" || exit 1

# expect CODE WORD...: runs it, its output in $work/out
expect() {
    want=$1
    shift
    DTRAIN_PLUGIN_PATH=$work/plugins "$dtrain" "$@" >"$work/out" 2>&1
    code=$?
    [ $code -eq "$want" ] || fail "$*: code $code, expected $want: $(cat "$work/out")"
}
says() { # TEXT: a whole line of the output
    grep -qxF -- "$1" "$work/out" || fail "expected the line \"$1\" in: $(cat "$work/out")"
}
has() { # TEXT: within the output
    grep -qF -- "$1" "$work/out" || fail "expected \"$1\" in: $(cat "$work/out")"
}

expect 0 count words a b
says 2
says a
expect 0 count words --from 40 a b
says 42
expect 0 count words a b -f 40 --exact --json --set counting.step=3
says "exactly 46 json"
expect 0 count --from=1 words
says 1
printf 'counting : { step = 10; };\n' >"$work/own.cfg"
expect 0 count words a --config "$work/own.cfg"
says 10
expect 0 count words "$(printf 'a\033[31m')"
says 'a?[31m'

expect 4 count refuse a --why b
has "a cannot be counted"
expect 2 count refuse a
has "--why"
expect 2 count words a b c d
has "count words WORD..."
expect 2 count words --why b
has "--why"
expect 2 count words --form 1
has "--from"
expect 2 count words --exact=1
expect 2 count words a --from
expect 2 count wrods
has "words, refuse"
expect 2 count
expect 2 count words a --set counting.step=0
has "counting.step"
expect 2 count words a --set counting.steps=1
expect 2 counts
has "count"
"$dtrain" count words a >"$work/out" 2>&1
code=$?
[ $code -eq 2 ] || fail "a verb without its plugin: code $code"

expect 0 count --help
has "dtrain count words WORD... [options]"
has "--from N"
has "--set KEY=VALUE"
expect 0 --help
has "count words"
expect 0 help count
has "--why TEXT"
expect 0 runs "$work"
expect 0 show counting
has "what each word counts for"
expect 0 --complete set counting.
says "counting.step="
expect 0 --complete verbs cou
says count
expect 0 --complete verb:count ref
says refuse
expect 0 count words a
has "extra: a verb: its name is NULL"
expect 0 doctor
has "fingers: ten"
has "no finding (NULL)"
has "grow some"

# --- profiles lie in a folder next to plugins ---
mkdir "$work/plugins/profiles"
printf 'training : { learning_rate = 0.125; };\n' >"$work/plugins/profiles/brisk.cfg"
expect 0 --plugin phase2_ppo --profile brisk --dry-run
expect 0 show training --profile brisk
has "0.125"
expect 0 --complete profiles br
says brisk
expect 2 --plugin phase2_ppo --profile brusk --dry-run
has "brisk"
has "normal"

# --- a part of the report, of a run that was trained without the plugin ---
"$dtrain" --plugin phase2_ppo --set env.id=cartpole --set phase2_ppo.iterations=2 --set phase2_ppo.train_batch=64 \
    --set phase2_ppo.fragment=16 --set data.batch=32 --run-dir "$work/run" -q || fail "training"
grep -q "losses, the last" "$work/run/report.html" && fail "a run's report has a panel of a plugin that it does not use"
expect 0 report "$work/run"
grep -qE '<p class="extra">[1-9][0-9]* losses, the last at step [1-9][0-9]*; return [0-9.]+; &lt;extra&gt;</p>' "$work/run/report.html" ||
    fail "the report has no panel of the plugin"

finish "plugin verbs"
