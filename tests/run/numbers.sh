#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# What the program prints, held against a calculation of its own: counts, rounds, tables, and whether it arrived.
set -u

dtrain=${DT_BUILDDIR:-.}/dtrain
command -v python3 >/dev/null 2>&1 || { echo "no python3"; exit 77; }
work=$(mktemp -d ./test-numbers-XXXXXX) || exit 1
trap 'rm -rf "$work"' EXIT INT TERM
failed=0
tiny="--set risk_gnn.hidden=18 --set risk_gnn.heads=2 --set risk_gnn.layers=1 --set world_lstm.hidden=17
      --set world_lstm.layers=1 --set data.batch=16 --set checkpoint.every_seconds=0 --threads 2"

fail() {
    echo "FAIL: $*"
    failed=$((failed + 1))
}
# says FILE TEXT
says() {
    grep -qF -- "$2" "$1" || {
        fail "no \"$2\" in $1:"
        sed 's/^/    /' "$1" | head -n 12
    }
}
# holds TEXT FILE...: python, with j as the JSON of each file
holds() {
    python3 - "$@" <<'END' || fail "$*"
import json, sys
j = [json.load(open(p)) for p in sys.argv[2:]]
if not eval(sys.argv[1]):
    sys.exit("%s does not hold: %s" % (sys.argv[1], json.dumps(j)[:800]))
END
}

# --- parameters: one count, that of the weights in the checkpoint, without what aligns them in memory ---
"$dtrain" --plugin phase1_world_model $tiny --max-steps 2 --run-dir "$work/a" 2>"$work/log" || fail "$(cat "$work/log")"
"$dtrain" --plugin phase1_world_model $tiny --dry-run >"$work/plan" 2>&1
"$dtrain" --plugin phase1_world_model $tiny --dry-run --json >"$work/plan.json" 2>/dev/null
count=$(python3 - "$work"/a/checkpoints/step-*/model.safetensors <<'END'
import json, math, struct, sys
f = open(sys.argv[1], "rb")
head = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
print(sum(math.prod(t["shape"]) for name, t in head.items() if name != "__metadata__"))
END
)
[ "${count:-0}" -gt 0 ] || fail "no weights in the checkpoint"
says "$work/plan" "parameters   $count, of which trained $count"
says "$work/log" "$count parameters ($count trained)"
holds "(p := j[0] if 'parameters' in j[0] else j[0]['phases'][0]) and p['parameters'] == p['parameters_trained'] == $count \
    and sum(m['parameters'] for m in p['models'].values()) == $count" "$work/plan.json"

# --- a round in whole fragments, a pass in whole steps: the plan says what is added and what is left out ---
ppo="--plugin phase2_ppo --set env.id=cartpole --set env.instances=6 --set phase2_ppo.iterations=2"
"$dtrain" $ppo --dry-run >"$work/plan" 2>&1
says "$work/plan" "4800 steps of environments: train_batch = 4000, rounded up to whole fragments of 6 environments"
says "$work/plan" "env_cartpole, 1 agent"
says "$work/plan" "at most 500 steps of 0.02 s: 10 s of simulated time; 9.6 full episodes a round, 19.2 in all rounds"
says "$work/plan" "128 of 4800 samples; 64, others each time, are left out of a pass"
"$dtrain" $ppo --set phase2_ppo.train_batch=600 --set phase2_ppo.fragment=100 --dry-run >"$work/short" 2>&1
says "$work/short" "the first of full length ends in round 5"
"$dtrain" $ppo --dry-run --json >"$work/plan.json" 2>/dev/null
holds "(p := j[0] if 'round' in j[0] else j[0]['phases'][0]) and p['round'] == {'steps': 4800, 'asked': 4000} \
    and p['steps_per_epoch'] == 4800 // p['samples_per_step']" "$work/plan.json"
holds "(p := j[0] if 'round' in j[0] else j[0]['phases'][0]) and p['environment'] == {'id': 'env_cartpole', 'agents': 1, \
    'episode_steps': 500, 'step_s': 0.02, 'episodes_per_round': 9.6}" "$work/plan.json"
"$dtrain" --plugin phase2_ppo --set env.id=traffic --set env_traffic.scenario=intersection --set env_traffic.episode_s=600 \
    --dry-run >"$work/plan" 2>&1
says "$work/plan" "scenario = intersection, episode_s = 600"
"$dtrain" $ppo --set phase2_ppo.train_batch=4800 --dry-run >"$work/plan" 2>&1
! grep -q 'rounded up' "$work/plan" || fail "4800 is no rounding"

# --- 1e3 is a whole number, on the command line and in files; 1.5 is none ---
"$dtrain" show phase2_ppo --set phase2_ppo.iterations=1e3 --json >"$work/show.json" || fail "1e3 on the command line"
holds "[o['value'] for o in j[0]['options'] if o['name'] == 'iterations'] == [1000]" "$work/show.json"
printf 'phase2_ppo = { iterations = 2.5e3; train_batch = 4800.0; };\n' >"$work/e.cfg"
"$dtrain" show phase2_ppo --config "$work/e.cfg" --json >"$work/show.json" || fail "2.5e3 in a file"
holds "[o['value'] for o in j[0]['options'] if o['name'] in ('iterations', 'train_batch')] == [2500, 4800]" "$work/show.json"
for word in 1.5 1e30 1e-3 1e; do
    "$dtrain" show phase2_ppo --set phase2_ppo.iterations=$word >"$work/out" 2>&1 && fail "iterations = $word is taken"
    says "$work/out" "expected an integer"
done
"$dtrain" $ppo $tiny --max-steps 1e1 --dry-run >"$work/out" 2>&1 || fail "--max-steps 1e1: $(cat "$work/out")"

# --- evaluations: seeds are no column, no mean stands below one of them, every seed's value is reported ---
"$dtrain" $ppo --set phase2_ppo.train_batch=600 --set phase2_ppo.fragment=100 -q --run-dir "$work/pole" 2>"$work/log" ||
    fail "$(cat "$work/log")"
"$dtrain" eval --checkpoint "$work/pole" --seeds 7,123456,9 --episodes 2 -q >"$work/table" 2>&1
says "$work/table" "mean +- deviation over seeds 7, 123456, 9"
! grep -q '^  seeds ' "$work/table" || fail "seeds in the column of means"
"$dtrain" eval --checkpoint "$work/pole" --seeds 7,123456,9 --episodes 2 --json -q >"$work/three.json" 2>/dev/null
for seed in 7 123456 9; do
    "$dtrain" eval --checkpoint "$work/pole" --seeds $seed --episodes 2 --json -q >"$work/$seed.json" 2>/dev/null
done
holds "j[0]['seeds'] == [7, 123456, 9] and j[0]['return']['values'] == [k['return']['mean'] for k in j[1:]]" \
    "$work/three.json" "$work/7.json" "$work/123456.json" "$work/9.json"
holds "(v := j[0]['return']['values']) and abs(j[0]['return']['mean'] - sum(v) / 3) < 1e-9 and \
    abs(j[0]['return']['std'] - __import__('statistics').stdev(v)) < 1e-9" "$work/three.json"
# of one seed, or one episode, the deviation is unknown: null, not 0
holds "j[0]['return']['std'] is None and j[0]['length']['std'] is None and j[0]['return']['mean'] > 0" "$work/7.json"
! "$dtrain" eval --checkpoint "$work/pole" --seeds 7 --episodes 2 -q 2>&1 | grep -e '+-' || fail "a deviation of one seed"
! grep -q '/values' "$work/pole/metrics.jsonl" || fail "values of seeds in the records"

# --- a store that was not trained on is evaluated whole, the one that was on what training held out, unless it is said ---
"$dtrain" data import "${DT_SRCDIR:-.}/share/demo" --out "$work/same" -q 2>"$work/err" || fail "$(cat "$work/err")"
for store in other one; do # the same recording elsewhere; all of it from one site
    python3 - "${DT_SRCDIR:-.}/share/demo" "$work/$store.source" $store <<'END'
import json, os, sys
src, out, name = sys.argv[1:]
meta = json.load(open(src + "/metadata.json"))
os.makedirs(out + "/chunks")
meta["sites"] = ["one"] if name == "one" else meta["sites"]
json.dump(meta, open(out + "/metadata.json", "w"))
for c in meta["chunks"]:
    d = json.load(open(os.path.join(src, c["file"])))
    for s in d["samples"]:
        s["site"] = "one" if name == "one" else s["site"]
        for f in s["frames"]:
            for v in f["vehicles"]:
                v["x"] += 1000
    json.dump(d, open(os.path.join(out, c["file"]), "w"))
END
    "$dtrain" data import "$work/$store.source" --out "$work/$store" -q 2>"$work/err" || fail "$(cat "$work/err")"
done
judge() { # FILE OPTIONS...
    out=$1
    shift
    "$dtrain" eval --plugin phase1_world_model $tiny --json "$@" >"$work/$out.json" 2>"$work/$out.log" ||
        fail "eval $*: $(cat "$work/$out.log")"
}
judge trained --checkpoint "$work/a"
judge same --checkpoint "$work/a" --set data.store="$work/same"
judge other --checkpoint "$work/a" --set data.store="$work/other"
judge other_held --checkpoint "$work/a" --set data.store="$work/other" --set evaluation.folds=held
judge trained_all --checkpoint "$work/a" --set evaluation.folds=all
says "$work/other.log" "evaluated on all of "
says "$work/other.log" "/other, which was not trained on"
says "$work/same.log" "evaluated on the part held out"
judge site --checkpoint "$work/a" --set data.store="$work/one" --set data_trajectory.eval_site=one
folds=0
for fold in 0 1 2 3 4; do
    judge fold$fold --set data.store="$work/other" --set data_trajectory.fold=$fold
    folds=$((folds + $(python3 -c 'import json,sys; print(json.load(open(sys.argv[1]))["samples"])' "$work/fold$fold.json")))
done
holds "j[0]['samples'] == j[1]['samples'] == j[2]['samples'] < j[3]['samples'] == j[4]['samples'] == j[5]['samples'] == $folds" \
    "$work/trained.json" "$work/same.json" "$work/other_held.json" "$work/other.json" "$work/trained_all.json" "$work/site.json"

# --- controller_fixed is the scenario's program, second by second: the same traffic as without any actions ---
fixtures=${DT_SRCDIR:-.}/tests/fixtures/sumo
same_traffic() { # ENVIRONMENT WITHOUT_ACTIONS OPTIONS...
    env=$1 program=$2
    shift 2
    for pair in "fixed:--threads 1" "greedy:--set $program"; do
        "$dtrain" eval --plugin phase2_ppo --seeds 1,2 --episodes 1 --json -q --env "$env" \
            --set models.controller=controller_${pair%%:*} ${pair#*:} "$@" >"$work/${pair%%:*}.json" 2>"$work/err" ||
            fail "$* ${pair%%:*}: $(cat "$work/err")"
    done
    holds "j[0]['metrics'] == j[1]['metrics'] and j[0]['return'] == j[1]['return'] and \
        len(j[0]['metrics']['strict_delay_s']['values']) == 2" "$work/fixed.json" "$work/greedy.json"
}
for scenario in intersection grid net; do
    same_traffic env_traffic env_traffic.baseline=true --set env_traffic.scenario=$scenario --set env_traffic.control=signals \
        --set env_traffic.net_file="$fixtures/corner.net.xml" --set env_traffic.routes_file="$fixtures/corner.rou.xml" \
        --set env_traffic.begin_s=100 --set env_traffic.episode_s=300
done
if "$dtrain" doctor --json | tr '{' '\n' | grep -qi '"SUMO","verdict":"pass"\|"verdict":"pass".*"SUMO"' &&
    netconvert -n "$fixtures/pair.nod.xml" -e "$fixtures/pair.edg.xml" -o "$work/pair.net.xml" --no-turnarounds \
        --xml-validation never >"$work/out" 2>&1; then
    cp "$fixtures/pair.sumocfg" "$fixtures/pair.rou.xml" "$work/"
    same_traffic env_sumo env_sumo.control=program --set env_sumo.sumocfg="$work/pair.sumocfg" --set env.instances=1
else
    echo "without SUMO"
fi

# --- a file is shown as it is named to --plugin: the same text as by its id ---
for so in "${DT_BUILDDIR:-.}"/.libs/risk_gnn.so "${DT_BUILDDIR:-.}"/*/.libs/risk_gnn.so; do
    [ -e "$so" ] || continue
    cp "$so" "$work/"
    for file in "$so" "$work/risk_gnn.so" risk_gnn.so; do
        "$dtrain" show "$file" >"$work/file" 2>&1 || fail "show $file: $(cat "$work/file")"
        "$dtrain" show risk_gnn >"$work/id"
        grep -v '^  file ' "$work/file" >"$work/file.rest"
        grep -v '^  file ' "$work/id" | cmp -s - "$work/file.rest" || fail "show $file: $(diff "$work/file" "$work/id")"
    done
    found=yes
done
[ "${found:-no}" = yes ] || fail "no risk_gnn.so to show"
"$dtrain" show "$work/none.so" >"$work/out" 2>&1
[ $? -eq 2 ] || fail "exit code of a file that is not there"
says "$work/out" "none.so"

# --- every key of an import is shown and documented ---
"$dtrain" show import --json >"$work/import.json" 2>"$work/err" || fail "show import: $(cat "$work/err")"
holds "len(j[0]['options']) >= 8 and all('| \`%s\` |' % o['name'] in open('${DT_SRCDIR:-.}/docs/reference/options-host.md').read() for o in j[0]['options'])" \
    "$work/import.json"

# --- where nothing can be written, nobody says that it was ---
if [ -w /dev/full ]; then
    for words in "--help" "--version" "help eval" "eval --help" "list" "list --json" "show data" "show phase2_ppo --json" \
        "runs $work" "runs $work --json" "ckpt list $work/pole" "ckpt verify $work/pole" "ckpt inspect $work/pole" \
        "eval --checkpoint $work/pole --seeds 1 --episodes 1" "data inspect ${DT_BUILDDIR:-.}/share/demo.store" "doctor" \
        "check phase2_ppo" "$ppo --dry-run" "report $work/pole --out $work/r.html"; do
        "$dtrain" $words >/dev/full 2>"$work/err"
        got=$?
        [ $got -eq 1 ] || fail "exit code $got into a full device: $words"
        says "$work/err" "cannot write to standard output"
    done
fi
"$dtrain" list >&- 2>"$work/err" && fail "no standard output, and nothing said"
"$dtrain" list >"$work/out" 2>&- || fail "no standard error"

# --- samples learnt from in a second: 20 asked are 32 collected, two rounds of 2 x 8; a minibatch of 24 leaves 8 out
# ---
"$dtrain" --plugin phase2_ppo --set env.id=cartpole --set models.controller=controller_mlp --set controller_mlp.hidden=8 \
    --set env.instances=2 --set data.batch=24 --set phase2_ppo.fragment=8 --set phase2_ppo.train_batch=20 \
    --set phase2_ppo.sgd_epochs=3 --set phase2_ppo.iterations=2 --set training.eval_interval=0 --threads 1 \
    --run-dir "$work/learnt" >"$work/log" 2>&1 || fail "$(cat "$work/log")"
python3 - "$work/learnt/metrics.jsonl" <<'END' || fail "samples learnt from in a second"
import json, sys
n, env_steps = 0, []
for r in map(json.loads, open(sys.argv[1])):
    v = r.get("scalars", r)
    env_steps.append(v["env_steps"])
    if "charts/learn_samples_per_s" in v:
        n += 1
        assert abs(v["charts/learn_samples_per_s"] * v["time/learn"] - 3 * 24) < 1e-3, v
assert n == 2, n
# 32 a round, less the resets in it: of 16 steps of an instance hardly more than one, because a pole stands for 8 at
# least
assert 28 <= env_steps[0] <= 32 and 28 <= env_steps[1] - env_steps[0] <= 32, env_steps
END

# --- results are files: a "-" is no standard output, and no file either ---
for verb in "report $work/a" "export $work/a" "render $work/a" "data import x"; do
    # shellcheck disable=SC2086 # words
    "$dtrain" $verb --out - >"$work/out" 2>"$work/err"
    code=$?
    [ $code -eq 2 ] && [ ! -s "$work/out" ] && [ ! -e ./- ] && grep -q "none is written to standard output" "$work/err" ||
        fail "$verb --out -: code $code: $(cat "$work/err")"
done

[ $failed -eq 0 ] && echo "all numbers hold"
exit $((failed > 0))
