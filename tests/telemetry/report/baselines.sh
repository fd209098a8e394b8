#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# A policy compared with rule-based controllers: the run evaluates them at the end of a phase on the same seeds, and
# says so on the console, in evaluation/ and in the report; what was asked for wrongly is refused before anything runs.
set -u

. "${DT_SRCDIR:-.}/tests/check.inc"
tiny="--plugin phase2_ppo --threads 1 --set env.id=env_traffic --set env_traffic.scenario=intersection --set env.instances=2
      --set env_traffic.control=signals --set env_traffic.episode_s=120 --set phase2_ppo.iterations=2
      --set phase2_ppo.fragment=12 --set phase2_ppo.train_batch=24 --set data.batch=24 --set training.eval_interval=1
      --set evaluation.seeds=3,4 --set evaluation.episodes=1 --set metrics.tensorboard=false"

# train DIR [more]
train() {
    dir=$1
    shift
    # shellcheck disable=SC2086
    "$dtrain" $tiny --run-dir "$work/$dir" "$@" >/dev/null 2>"$work/err"
}
# --- those that the environment names, of which the ones that fit: a driver model steers no signals ---
train a || fail "the run left with $?"
file=$work/a/evaluation/1-phase2_ppo.baselines.json
grep -q 'info *learnt *fixed *greedy *max_pressure$' "$work/err" || fail "no table"
grep -q '"controller":"controller_mlp","learnt":true' "$file" || fail "the policy is not in the file"
grep -q 'controller_idm' "$file" && fail "a driver model among signals"
grep -q 'left out' "$work/err" && fail "what does not fit is no matter for a warning"
for id in fixed greedy max_pressure; do
    mine=$(sed 's/,{"controller"/\n{"controller"/g' "$file" | grep "controller_$id" | sed 's/.*strict_delay_s":{"mean":\([0-9.]*\).*/\1/')
    # shellcheck disable=SC2086
    other=$("$dtrain" eval ${tiny%--set metrics*} --set models.controller=controller_$id --json 2>"$work/err" |
        sed 's/.*strict_delay_s":{"mean":\([0-9.]*\).*/\1/')
    [ -n "$mine" ] && [ "$mine" = "$other" ] || fail "controller_$id: '$mine' in the run, '$other' by eval"
done
grep -q '<th>fixed</th>' "$work/a/report.html" || fail "no column in the report"
check() { python3 "${DT_SRCDIR:-.}/tests/telemetry/report/check_page.py" "$@" >"$work/err" 2>&1 || fail "the page of $*"; }
check "$work/a/report.html" "$work/a"
# the film: a second apart, of the busier of two minutes, with the delay so far that grows into the episode's
python3 - "$work/a/evaluation/1-phase2_ppo.pictures.json" <<'END' >"$work/err" 2>&1 || fail "the film"
import json, sys
moments = list(json.load(open(sys.argv[1]))["traffic"]["moment"].values())
times = [m["time"][0] for m in moments]
assert len(times) == 60 and times[0] == 60 and all(b - a == 1 for a, b in zip(times, times[1:])), times
assert all(0 < m["delay"][0] < 60 for m in moments) and moments[-1]["delay"][0] > moments[0]["delay"][0]
END
# what was achieved: the mean of both seeds, and the paired interval of the difference, by another program
python3 - "$file" "$work/a/report.html" <<'END' >"$work/err" 2>&1 || fail "what was achieved"
import json, math, re, sys
results = json.load(open(sys.argv[1]))["results"]
page = open(sys.argv[2], encoding="utf-8").read()
table = re.search('<table class="achieved">.*?</table>', page, re.S).group(0)
row = re.search("<tr><th>strict_delay_s</th>(.*?)</tr>", table, re.S).group(1)
cells = re.findall("<td>(.*?)</td>", row, re.S)
values = [r["result"]["metrics"]["strict_delay_s"]["values"] for r in results]
assert len(cells) == len(values) == 4 and all(len(v) == 2 for v in values)
T1 = 12.706  # quantile of one degree of freedom
for cell, v in zip(cells, values):
    mean, half = sum(v) / 2, T1 * abs(v[0] - v[1]) / math.sqrt(2) / math.sqrt(2)
    told = re.match(r"(?:<b>)?([0-9.]+) \u00b1 ([0-9.]+)", cell)
    assert math.isclose(float(told.group(1)), mean, rel_tol=1e-3), (cell, mean)
    assert math.isclose(float(told.group(2)), half, rel_tol=1e-2), (cell, half)
for cell, v in zip(cells[1:], values[1:]):
    d = [a - b for a, b in zip(values[0], v)]
    differs = abs(sum(d) / 2) > T1 * abs(d[0] - d[1]) / 2
    assert ("no significant difference" in cell) != differs, (cell, d)
# and the sentence of the phase: the same mean, and of each baseline the difference in percent
sentence = re.search('<ul class="headline">(.*?)</ul>', page, re.S).group(1).replace("\u00a0", " ").replace("\u2212", "-")
assert re.search(r"strict_delay_s <b>([0-9.]+) ", sentence).group(1) == re.match("<b>([0-9.]+)", cells[0]).group(1), sentence
for r, v in zip(results[1:], values[1:]):
    d = [a - b for a, b in zip(values[0], v)]
    told = re.search("; %s [0-9.]+ s \\((.*?)\\)" % r["controller"].removeprefix("controller_"), sentence).group(1)
    differs = abs(sum(d) / 2) > T1 * abs(d[0] - d[1]) / 2
    assert told == (f"<b>{round(100 * sum(d) / sum(v)):+d} %</b>" if differs else "no significant difference"), (told, d)
END

# --- vehicles as agents behind a shield, seen from above ---
train cars --set env_traffic.scenario=ring --set env_traffic.control=vehicles --set models.shield=shield_barrier \
    --set env_traffic.episode_s=60 || fail "vehicles left with $?"
check "$work/cars/report.html" "$work/cars"
grep -q ", [1-9][0-9]*, [1-9][0-9]*, 0)" "$work/err" || fail "no agents, or the shield did nothing: $(cat "$work/err")"

# --- virtual ranks share the episodes and find the same ---
train ranks --set comm.backend=sim --set comm.ranks=2 || fail "two ranks left with $?"
cmp -s "$file" "$work/ranks/evaluation/1-phase2_ppo.baselines.json" || fail "two ranks see other baselines"

# --- none, some, and those that there are not ---
train none --set evaluation.baselines= || fail "none left with $?"
[ ! -e "$work/none/evaluation/1-phase2_ppo.baselines.json" ] || fail "baselines although there were to be none"
# two configurations: a film of each, one legend
"$dtrain" report "$work/a" "$work/none" --out "$work/two.html" -q >/dev/null 2>"$work/err" || fail "the report of two"
[ "$(grep -o 'class="film small"' "$work/two.html" | wc -l)" -eq 2 ] || fail "not two films"
[ "$(grep -o '<p class="legend">' "$work/two.html" | wc -l)" -eq 1 ] || fail "legends of two films"
train some --set evaluation.baselines=controller_greedy,controller_idm || fail "some left with $?"
grep -q 'baseline controller_idm left out: .*accelerations' "$work/err" || fail "a misfit that was asked for"
grep -q 'controller_greedy' "$work/some/evaluation/1-phase2_ppo.baselines.json" || fail "the one that fits"
train bad --set evaluation.baselines=controller_nowhere && fail "an unknown controller"
grep -q 'evaluation.baselines' "$work/err" || fail "an unknown controller is not named"
train bad --set evaluation.baselines=risk_gnn && fail "a model for another role"
grep -q 'risk_gnn is a model for the role perception' "$work/err" || fail "another role is not named"
[ ! -e "$work/bad" ] || fail "a run that was refused left a folder"

[ $failed -eq 0 ]
