#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Reports of real runs, of made-up ones with hostile names, and of what is no run: check_page.py reads the pages.
set -u

. "${DT_SRCDIR:-.}/tests/check.inc"
here=${DT_SRCDIR:-.}/tests/telemetry/report
command -v python3 >/dev/null 2>&1 || { echo "no python3"; exit 77; }
tiny="--set risk_gnn.hidden=8 --set risk_gnn.heads=1 --set risk_gnn.layers=1 --set world_lstm.hidden=8
      --set world_lstm.layers=1 --set data.batch=16 --set checkpoint.every_seconds=0 --threads 1 -q"

check() { python3 "$here/check_page.py" "$@" || fail "the page of $*"; }
# refuses CODE TEXT ARGUMENTS...: and leaves nothing behind
refuses() {
    code=$1 text=$2
    shift 2
    "$dtrain" report "$@" --out "$work/none.html" >"$work/out" 2>&1
    got=$?
    [ $got -eq "$code" ] || fail "exit code $got instead of $code: report $*"
    grep -qF -- "$text" "$work/out" || fail "nothing said about \"$text\": $(cat "$work/out")"
    for f in "$work"/none.html*; do
        [ ! -e "$f" ] || fail "$f was left behind"
    done
}

# --- a run writes its own report, unless it is asked not to ---
"$dtrain" --plugin phase1_world_model $tiny --set training.epochs=4 --set training.eval_interval=1 \
    --set world_lstm.futures=3 --set world_lstm.kinematic=true --set world_lstm.calibrated=true \
    --set phase1_world_model.calibration_folds=1 --run-dir "$work/a" 2>"$work/err.a" ||
    fail "the run: $(cat "$work/err.a")"
check "$work/a/report.html" "$work/a"
grep -q 'The worst scene' "$work/a/report.html" || fail "no pictures of predictions"
grep -q 'Share of recorded positions inside' "$work/a/report.html" || fail "no reliability curve"
grep -q 'Radii of regions at the end' "$work/a/report.html" || fail "no radii of regions"
grep -q '<td class="l">speed changes</td><td>[0-9]' "$work/a/report.html" || fail "no radius of vehicles whose speed changes"
grep -q '<path class="way"' "$work/a/report.html" || fail "no futures in the pictures"
grep -q 'most probable future' "$work/a/report.html" || fail "no distances of futures"
grep -q 'best of the 6 most probable' "$work/a/report.html" || fail "no distances of the best of several futures"
cp -R "$work/a" "$work/single" # as of a model with one future, whose best is that one
sed -i 's/"eval\/min_\([af]\)de_6":[0-9.e-]*/"eval\/min_\1de_6":1.5/; s/"eval\/min_\([af]\)de_1":[0-9.e-]*/"eval\/min_\1de_1":1.5/
    s/"eval\/min_fde_6":[0-9.e-]*/"eval\/min_fde_6":1.5/; s/"eval\/min_fde_1":[0-9.e-]*/"eval\/min_fde_1":1.5/' \
    "$work/single/metrics.jsonl"
"$dtrain" report "$work/single" --out "$work/single.html" >/dev/null 2>"$work/err" || fail "the report of one future"
! grep -q 'best of the 6 most probable' "$work/single.html" || fail "the best of 6, of a model with one future"
rm -rf "$work/single" "$work/single.html"
"$dtrain" --plugin phase1_world_model $tiny --max-steps 2 --set report.enabled=false --run-dir "$work/quiet" 2>"$work/err" ||
    fail "the run: $(cat "$work/err")"
[ ! -e "$work/quiet/report.html" ] || fail "report.enabled=false"
"$dtrain" --plugin phase2_ppo --set env.id=cartpole --set phase2_ppo.iterations=40 -q --threads 1 \
    --set memory.target_gb=8 --set memory.warn_fraction=0.5 --run-dir "$work/b" 2>"$work/err" ||
    fail "the run: $(cat "$work/err")"
check "$work/b/report.html" "$work/b"
grep -q '"mem/watched":[1-9][0-9]*,"mem/warn_level":4000000000,"mem/shed_level":7000000000,' "$work/b/metrics.jsonl" ||
    fail "what is watched of the memory is not recorded"
{ grep -q '>warns above</text>' "$work/b/report.html" && grep -q '>releases above</text>' "$work/b/report.html"; } ||
    fail "the levels of the watch are not drawn"
# the curve of training is there without a click, however few evaluations there are
for page in a b; do
    awk '/<h3>Training<\/h3>/ { shown = 1 } /<summary>Curves of everything/ { exit } END { exit !shown }' \
        "$work/$page/report.html" || fail "no curve of training in the report of $page"
done
grep -q '<td>done</td>\|<dd class="word">done</dd>' "$work/b/report.html" || fail "a run that is done is told as such"

# --- several side by side, in any place, its path said ---
test "$("$dtrain" report "$work/a" "$work/quiet" "$work/b" --out "$work/all.html")" = "$work/all.html" || fail "the path"
check "$work/all.html" "$work/a" "$work/quiet" "$work/b"
[ "$(grep -o '>constant velocity</text>' "$work/all.html" | wc -l)" -eq 1 ] || fail "a name of two runs' curves twice"
# what was set is shown; defaults, those of plugins too, are folded
sed -n '/<section id="configuration">/,/<details>/p' "$work/a/report.html" >"$work/set"
grep -q '<li>world_lstm.futures <b>3</b> <i>--set</i></li>' "$work/set" || fail "a value that was set: $(cat "$work/set")"
! grep -q '<i>built-in\|<i>plugin ' "$work/set" || fail "defaults among what was set: $(cat "$work/set")"
grep -q '<li>world_lstm.dropout <b>0.4</b> <i>plugin world_lstm</i></li>' "$work/a/report.html" || fail "defaults are left out"
"$dtrain" report "$work/a" "$work/b" --out "$work" --json | grep -qF "{\"report\":\"$work/report.html\"}" || fail "--json"

# --- over environment steps where all runs say how many they had, else over training steps; what would mislead is said
# ---
grep -q 'data-x-name="environment steps"' "$work/b/report.html" || fail "a policy over training steps"
! grep -q 'data-x-name="training steps"' "$work/b/report.html" || fail "two axes in one phase"
! grep -q 'curriculum' "$work/b/report.html" || fail "a policy has no curriculum"
grep -q '<p class="note">A policy&#39;s loss does not measure' "$work/b/report.html" || fail "what the loss of a policy reports"
grep -q '2.59 s' "$work/a/report.html" ||
    fail "the curriculum is not told"
grep -q '2.59 s of 5 s' "$work/a/report.html" || fail "seconds never trained"
grep -q 'phase1_world_model.horizon_epochs' "$work/err.a" || fail "no warning of the horizon"
for run in old new newer; do
    mkdir "$work/$run"
    echo '{"start":"x"}' >"$work/$run/meta.json"
done
python3 - "$work" <<'END'
import json, sys
for run in "old", "new", "newer":
    with open(f"{sys.argv[1]}/{run}/metrics.jsonl", "w", encoding="utf-8") as file:
        for step in range(1, 6):
            record = {"step": 10 * step, "phase": "p", "wall_s": step, "loss": 1 / step, "charts/horizon_s": 3,
                      "eval/shield/infeasible_rate": 0}
            if run != "old":
                record["env_steps"] = (1000 if run == "new" else 3000) * step
            print(json.dumps(record), file=file)
END
# --- a resumed run that evaluates otherwise: what only earlier evaluations had is not reported as the last one's ---
mkdir "$work/again"
echo '{"start":"x"}' >"$work/again/meta.json"
python3 - >"$work/again/metrics.jsonl" <<'END'
import json
for step in range(1, 5):
    record = {"step": step, "phase": "p", "wall_s": step, "loss": 1 / step, "charts/horizon_s": step + 1}
    seeds, horizons = ([1001, 1002, 1003, 123456789], 5) if step == 2 else ([7, 987654321], 4)
    if step % 2 == 0:
        record.update({f"eval/seeds/{i + 1}": seed for i, seed in enumerate(seeds)})
        for i in range(horizons):
            record.update({f"eval/horizon_s/{i + 1}": i + 1, f"eval/rmse_m/{i + 1}": step + i / 8})
        record.update({"eval/return/mean": step, "eval/gone/mean": 17} if step == 2 else {"eval/return/mean": step})
    print(json.dumps(record))
END
"$dtrain" report "$work/again" --out "$work/again.html" -q >/dev/null 2>"$work/err" || fail "resumed: $(cat "$work/err")"
check "$work/again.html" "$work/again"
grep -q 'over seeds 7, 987654321</p>' "$work/again.html" || fail "the seeds: $(grep -o 'over seeds [^<]*' "$work/again.html")"
grep -q '<td>4 s</td><td><b>4.38</b>' "$work/again.html" || fail "the last horizon"
! grep -q '<td>5 s</td>' "$work/again.html" || fail "a horizon that was not evaluated"
! grep -q '<b>17' "$work/again.html" || fail "a number of an earlier evaluation as the last"
grep -q 'The horizon grows from 2 s to 5 s' "$work/again.html" || fail "a curriculum that was completed"
! grep -q 'never trained' "$work/again.html" || fail "a curriculum that was completed is told to have ended early"
"$dtrain" watch "$work/again" --json >"$work/out" || fail "watch of it"
! grep -q 'seeds/3\|rmse_m/5\|gone' "$work/out" || fail "watch tells of an earlier evaluation: $(cat "$work/out")"

compare() { # AXIS, runs
    axis=$1
    shift
    "$dtrain" report "$@" --out "$work/compared.html" -q >/dev/null 2>"$work/err" || fail "$*: $(cat "$work/err")"
    check "$work/compared.html" "$@"
    [ "$(grep -o 'data-x-name="[^"]*"' "$work/compared.html" | sort -u)" = "data-x-name=\"$axis\"" ] || fail "the axis of $*"
}
compare "environment steps" "$work/new" "$work/newer"
grep -q '15000 environment steps' "$work/compared.html" || fail "the steps of the longer run"
compare "training steps" "$work/old"
grep -q infeasible_rate "$work/compared.html" || fail "a run that may have a shield, and nothing is told of it"
! grep -q infeasible "$work/b/report.html" || fail "a shield is told of that is not there"
! grep -q 'Some of these runs\|curriculum' "$work/compared.html" || fail "a run of before is told what it lacks, or of a horizon that stays"
compare "training steps" "$work/old" "$work/new"
grep -q 'Some of these runs do not record their environment steps' "$work/compared.html" || fail "why it is over training steps"

# --- seeds of one configuration are one curve and one row: the middle of them, and the interval ---
python3 - "$work" <<'END'
import json, os, sys
def run(name, seed, batch, returns):
    folder = os.path.join(sys.argv[1], name)
    os.mkdir(folder)
    write = lambda file, text: open(os.path.join(folder, file), "w", encoding="utf-8").write(text)
    write("meta.json", '{"start":"x"}')
    write("config.origin.json", json.dumps({"seed": {"value": seed, "origin": "--seed"},
                                            "data.batch": {"value": batch, "origin": "--set"},
                                            "engine.threads": {"value": seed, "origin": "--threads"},
                                            "phases.0.log.every": {"value": seed, "origin": "--set"}}))
    write("metrics.jsonl", "".join(json.dumps({"step": 10 * (i + 1), "phase": "p", "wall_s": i, "loss": 1 / (i + 1),
                                               "eval/return/mean": r}) + "\n" for i, r in enumerate(returns)))
run("small-s1", 1, 8, [0, 2, 10]); run("small-s2", 2, 8, [3, 4, 30]); run("small-s3", 3, 8, [6, 9, 20])
run("large-s1", 1, 64, [1, 1, 40]); run("large-s2", 2, 64, [3, 1, 44]); run("large-s3", 3, 64, [5, 1, 42])
run("large-s4", 4, 64, [7, 1, 400])
END
set -- "$work/small-s1" "$work/small-s2" "$work/small-s3" "$work/large-s1" "$work/large-s2" "$work/large-s3" "$work/large-s4"
"$dtrain" report "$@" --out "$work/groups.html" -q >/dev/null 2>"$work/err" || fail "groups: $(cat "$work/err")"
"$dtrain" report "$@" --out "$work/again.html" -q >/dev/null && cmp -s "$work/groups.html" "$work/again.html" || fail "groups twice"
check "$work/groups.html" "$@"
python3 - "$work/groups.html" <<'END' || fail "the table and curves of groups"
import re, sys
page = open(sys.argv[1], encoding="utf-8").read()
assert "7 runs side by side, 2 configurations" in page
rows = re.findall(r"<tr><th>(.*?)</th>(.*?)</tr>", re.search('class="achieved groups">.*?</table>', page, re.S).group(0), re.S)[1:]
(a, small), (b, large) = [(re.sub("<.*?>", "", h), re.sub("<.*?>", "", c)) for h, c in rows]
# three: their mean, 20, and from the least to the greatest; four: the middle two, 43, from 40 to 400
assert a == "small-s (3 runs)" and small == "320 [10, 30]", (a, small)
assert b == "large-s (4 runs)" and large.startswith("443 [40, 400]vs. first +23 ["), (b, large)
chart = re.search(r'data-name="eval/return/mean".*?</figure>', page, re.S).group(0)
curves = re.findall(r'class="curve c(\d)" data-x="(.*?)" data-y="(.*?)" data-low="(.*?)" data-high="(.*?)" data-runs="(\d)"', chart)
assert curves == [("0", "10 20 30", "3 5 20", "0 2 10", "6 9 30", "3"), ("1", "10 20 30", "4 1 43", "1 1 40", "7 1 400", "4")], curves
END
"$dtrain" report "$work/small-s1" "$work/large-s1" --out "$work/two.html" -q >/dev/null || fail "two configurations"
! grep -q 'data-runs\|id="results"' "$work/two.html" || fail "two configurations as one"

# a value of a phase alone is compared with the value that holds in the same phase of the other run
printf '%s' '{"training.lr":{"value":0.001,"origin":"built-in"},"phases.0.training.lr":{"value":0.0003,"origin":"plugin p"}}' \
    >"$work/small-s1/config.origin.json"
printf '%s' '{"training.lr":{"value":0.003,"origin":"--set"}}' >"$work/large-s1/config.origin.json"
"$dtrain" report "$work/small-s1" "$work/large-s1" --out "$work/two.html" -q >/dev/null || fail "a value of one phase"
sed -n 's/<[^>]*>/ /g; s/  */ /gp' "$work/two.html" | grep -q 'phases.0.training.lr 0.0003 0.003 plugin p; --set' ||
    fail "the value that holds in a phase: $(grep -o 'phases.0.training.lr.*' "$work/two.html")"

# --- whatever a run says stays text ---
evil='<script>alert(1)</script>&amp;"'"'"'</style>'
mkdir -p "$work/x<i>&\"y"
printf '%s\n' '{"start":"</td><b>","version":"&lt;","argv":["<img src=x onerror=alert(1)>","\u0007\ufffe"]}' >"$work/x<i>&\"y/meta.json"
printf '%s\n' '{"a<b>":{"value":"</table>","origin":"<o>"}}' >"$work/x<i>&\"y/config.origin.json"
python3 - "$evil" >"$work/x<i>&\"y/metrics.jsonl" <<'END'
import json, random, sys
evil = sys.argv[1]
for step in range(1, 2001):
    print(json.dumps({"step": step, "phase": evil, "wall_s": step / 10, evil: random.gauss(0, 1), "losses/" + evil: 1 / step,
                      "eval/" + evil: step, "costs/" + evil: step, "limits/" + evil: 5, "none": None,
                      "huge": 1e300 if step % 2 else -1e300, "tiny": 1e-300 * step, "spike": 1e9 if step == 7 else step % 5}))
print('{"step":2001,"phase":"cut off in the mid')
print('{"step":2001,"pha', end="")
END
"$dtrain" report "$work/x<i>&\"y" --out "$work/evil.html" >"$work/out" 2>&1 || fail "hostile names: $(cat "$work/out")"
grep -q "line 2001" "$work/out" || fail "bad lines: $(cat "$work/out")"
check "$work/evil.html" "$work/x<i>&\"y"

# --- where the time went: each part is the sum of the chart of its name, the first record's too, and no other number
# ---
mkdir "$work/time"
echo '{"start":"x"}' >"$work/time/meta.json"
python3 - >"$work/time/metrics.jsonl" <<'END'
import json
for round in range(1, 4):
    print(json.dumps({"step": round, "phase": "p", "wall_s": 10 + 5 * round, "time/env": 9.0, "time/env_wait": 1.25 + round / 8,
                      "time/policy": 0.5, "time/learn": 2 + round / 4}))
END
"$dtrain" report "$work/time" --out "$work/time.html" >"$work/out" 2>&1 || fail "times: $(cat "$work/out")"
# of 10 s between records and the 4.125 s that the first one reports of: 4.5, 1.5 and 7.5 s, and 0.625 s besides
for part in 'environments <b>31.9 %</b> <i>4.50 s</i> time/env_wait' 'policy <b>10.6 %</b> <i>1.50 s</i> time/policy' \
    'learning <b>53.1 %</b> <i>7.50 s</i> time/learn' 'everything else <b>4.4 %</b>'; do
    grep -qF "$part" "$work/time.html" || fail "no \"$part\": $(grep -o '<li><span class="dot[^/]*</b> <i>[^<]*</i>[^<]*' "$work/time.html")"
done
! grep -q 'waiting for them' "$work/time.html" || fail "seconds of workers told as those of the run"

# --- a run of others: very many names and phases take no longer each; its names turn no text around ---
mkdir "$work/many"
echo '{"start":"x"}' >"$work/many/meta.json"
python3 - >"$work/many/metrics.jsonl" <<'END'
import json
head = '{"step":%d,"phase":"p%d","wall_s":1'
print(head % (1, 0) + ',"loss":1,"charts/\\u202etxt\\u009b31m":1' + "".join(f',"n/{i}":1' for i in range(60000)) + "}")
for i in range(1, 60000):
    print(head % (1, i) + ',"loss":1}')
END
timeout 60 "$dtrain" report "$work/many" "$work/again" --out "$work/many.html" >/dev/null 2>"$work/err" ||
    fail "many names: $(cat "$work/err")"
python3 - "$work/many.html" <<'END' || fail "a mark that turns text around"
import sys
text = open(sys.argv[1], encoding="utf-8").read()
sys.exit("txt" not in text or any(c in text for c in "\u202e\u009b"))
END

# --- what is no run, or has nothing to show, is refused in words, and nothing is left half-written ---
mkdir "$work/empty"
refuses 2 "$work/nowhere" "$work/nowhere"
refuses 2 "$work/empty" "$work/empty"
refuses 2 "$work/nowhere" "$work/a" "$work/nowhere"
echo '{"start":"x"}' >"$work/empty/meta.json"
refuses 4 "$work/empty" "$work/empty"
printf '{"step":1,"phase":"p","wall_s":1,"loss":2' >"$work/empty/metrics.jsonl"
refuses 4 "$work/empty" "$work/empty"
"$dtrain" report >"$work/out" 2>&1
[ $? -eq 2 ] && grep -q "usage: dtrain report RUN" "$work/out" || fail "no word at all: $(cat "$work/out")"
DTRAIN_FAULT=fs.write:1 "$dtrain" report "$work/a" --out "$work/full.html" >"$work/out" 2>&1
[ $? -eq 1 ] || fail "a full disk: $(cat "$work/out")"
[ ! -e "$work/full.html" ] || fail "half a page was left"

[ $failed -eq 0 ]
