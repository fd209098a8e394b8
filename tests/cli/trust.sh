#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# A run or checkpoint that a third party made (docs/explanation/security.md): it chooses no code that runs here.
set -u

. "${DT_SRCDIR:-.}/tests/check.inc"
build=$(cd "${DT_BUILDDIR:-.}" && pwd)
INTRUDER_MARK=$work/mark
export INTRUDER_MARK

unmarked() { # TEXT: no code of the intruder has run
    [ ! -e "$work/mark" ] || fail "$1: the intruder's code has run"
    rm -f "$work/mark"
}
marked() {
    [ -e "$work/mark" ] || fail "$1: nothing was opened, so this test would see nothing"
    rm -f "$work/mark"
}

tiny="--set env.id=cartpole --set phase2_ppo.iterations=1 --set phase2_ppo.train_batch=64 --set phase2_ppo.fragment=16
      --set phase2_ppo.sgd_epochs=1 --set data.batch=32 --set training.eval_interval=0 --set report.enabled=false
      --set evaluation.baselines= --threads 1 -q"
expect 0 "" "$dtrain" --plugin phase2_ppo $tiny --run-dir "$work/run"

# --- a path in the configuration of a run ---
cp "$build/tests/cli/.libs/intruder.so" "$work/intruder.so"
foreign() { # SED-SCRIPT: a copy of the run with a configuration that a third party wrote
    rm -rf "$work/foreign"
    cp -r "$work/run" "$work/foreign"
    sed "$1" "$work/run/config.cfg" >"$work/foreign/config.cfg"
    step=$(cd "$work/foreign/checkpoints" && echo step-*)
    cp "$work/foreign/config.cfg" "$work/foreign/checkpoints/$step/config.cfg"
    ! cmp -s "$work/run/config.cfg" "$work/foreign/config.cfg" || fail "the configuration is as it was"
}
each_verb() { # CODE TEXT
    for where in "$work/foreign" "$work/foreign/checkpoints" "$work/foreign/checkpoints/$step"; do
        expect "$1" "$2" "$dtrain" run --resume "$where" -q
        expect "$1" "$2" "$dtrain" run --resume "$where" --dry-run
        expect "$1" "$2" "$dtrain" eval --checkpoint "$where"
        expect "$1" "$2" "$dtrain" export --checkpoint "$where" --out "$work/x.safetensors"
        expect "$1" "$2" "$dtrain" render "$where" --out "$work/x.html"
    done
    unmarked "$2"
}
for path in "$work/intruder.so" "$work/intruder" "./intruder.so" "../intruder.so"; do
    foreign "s|plugin = \"phase2_ppo\"|plugin = \"$path\"|"
    (cd "$work" && each_verb 3 "--trust-plugins" && exit $failed) || failed=$((failed + 1))
    unmarked "$path"
done
cp "$work/intruder.so" "$work/phase2_ppo.so" # the name of one that there is does not help
foreign "s|plugin = \"phase2_ppo\"|plugin = \"$work/phase2_ppo.so\"|"
each_verb 3 "names the plugin $work/phase2_ppo.so by its path"
expect 3 "entry point" "$dtrain" eval --checkpoint "$work/foreign" --trust-plugins
marked "--trust-plugins"
cp "$work/intruder.so" "$work/foreign/intruder.so" # a name without a path is no file of the folder that one stands in
foreign "s|plugin = \"phase2_ppo\"|plugin = \"intruder.so\"|"
cp "$work/intruder.so" "$work/foreign/"
(cd "$work/foreign" && "$build/dtrain" eval --checkpoint . >"$work/out" 2>"$work/err")
[ $? -eq 3 ] || fail "intruder.so of the current folder"
unmarked "the current folder"

# models, environments and data sources go by ids alone
for key in models.controller env.id data.source; do
    group=${key%.*}
    foreign "\$a $group = { ${key#*.} = \"$work/intruder.so\"; };"
    "$dtrain" eval --checkpoint "$work/foreign" >"$work/out" 2>"$work/err" && fail "$key is a path and nobody minds"
    unmarked "$key"
done

# --- what the user says is the user's word ---
mkdir "$work/own"
cp "$build/phases/.libs/phase2_ppo.so" "$work/own/"
expect 0 "" "$dtrain" --plugin "$work/own/phase2_ppo.so" $tiny --run-dir "$work/mine"
expect 3 "--trust-plugins" "$dtrain" run --resume "$work/mine" -q
expect 0 "" "$dtrain" --plugin "$work/own/phase2_ppo.so" $tiny --run-dir "$work/mine" --resume
expect 0 "" "$dtrain" run --resume "$work/mine" -q --trust-plugins
expect 0 "" "$dtrain" eval --checkpoint "$work/mine" --plugin "$work/own/phase2_ppo.so" --seeds 1 --episodes 1
expect 0 "" env DTRAIN_PLUGIN_PATH="$work/own" "$dtrain" eval --checkpoint "$work/mine" --seeds 1 --episodes 1
expect 0 "" "$dtrain" eval --checkpoint "$work/mine" --set "phases.0.plugin=$work/own/phase2_ppo.so" --seeds 1 --episodes 1
# a path to what its name alone means opens nothing that would not be opened anyway
expect 0 "" "$dtrain" --plugin "$build/phases/.libs/phase2_ppo.so" $tiny --run-dir "$work/full"
expect 0 "" "$dtrain" eval --checkpoint "$work/full" --seeds 1 --episodes 1

# --- other words that would run code ---
for word in "module = \"$work/intruder.so\"" "sumo_options = \"--output-prefix $work/x\""; do
    foreign "s|^env = |env_sumo = { sumocfg = \"$work/x.sumocfg\"; $word; };\nenv = |; s|id = \"cartpole\"|id = \"env_sumo\"|"
    each_verb 3 "it would run code or write files"
done
expect 0 "" "$dtrain" show env_sumo # the options are what this test takes them for
grep -q "module" "$work/out" || fail "env_sumo has no option module"

# --- other files ---
printf 'seed = 77;\n' >"$work/included.cfg"
foreign "1i @include \"$work/included.cfg\""
each_verb 2 "the configuration of a run may not include other files"

# --- a pipe in the place of a file: nobody writes to it, and nobody waits for it ---
mkdir "$work/pipes"
mkfifo "$work/pipes/x.so"
expect 0 "x.so" env DTRAIN_PLUGIN_PATH="$work/pipes" "$dtrain" list
expect 3 "x.so" "$dtrain" check "$work/pipes/x.so"
expect 3 "x.so" "$dtrain" show "$work/pipes/x.so"
mkfifo "$work/pipes/w.safetensors"
expect 4 "w.safetensors" "$dtrain" --plugin phase2_ppo $tiny --run-dir "$work/warm" \
    --init-from "$work/pipes/w.safetensors"
mkfifo "$work/pipes/mine.cfg" # but what the user says may be one: --config <(...)
cat "$work/run/config.cfg" >"$work/pipes/mine.cfg" &
expect 0 "" "$dtrain" --config "$work/pipes/mine.cfg" --run-dir "$work/piped" --dry-run
wait

finish trust
