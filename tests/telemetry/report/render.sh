#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Episodes as films: `dtrain render` of real runs, read by check_film.py; the same moments as SVG files; and what cannot
# be shown is refused in words, with nothing left behind.
set -u

. "${DT_SRCDIR:-.}/tests/check.inc"
here=${DT_SRCDIR:-.}/tests/telemetry/report
command -v python3 >/dev/null 2>&1 || { echo "no python3"; exit 77; }
tiny="--plugin phase2_ppo --threads 1 -q --set env.instances=2 --set phase2_ppo.iterations=1 --set phase2_ppo.fragment=12
      --set phase2_ppo.train_batch=24 --set data.batch=24 --set training.eval_interval=0 --set metrics.tensorboard=false
      --set report.enabled=false"

train() { # DIR [more]
    dir=$1
    shift
    # shellcheck disable=SC2086
    "$dtrain" $tiny --run-dir "$work/$dir" "$@" >/dev/null 2>"$work/err" || fail "training $dir left with $?"
}
render() { "$dtrain" render "$@" -q 2>"$work/err"; }
# refuses CODE TEXT ARGUMENTS...
refuses() {
    code=$1 text=$2
    shift 2
    "$dtrain" render "$@" >"$work/err" 2>&1
    got=$?
    [ $got -eq "$code" ] || fail "exit code $got instead of $code: render $*"
    grep -qF -- "$text" "$work/err" || fail "nothing said about \"$text\""
    [ ! -e "$work/none.html" ] || fail "a film was left behind"
}

# --- signals: a moment a second, 60 of them and the beginning ---
train lights --set env.id=env_traffic --set env_traffic.scenario=intersection --set env_traffic.control=signals \
    --set env_traffic.episode_s=60 --set models.shield=shield_barrier
render "$work/lights" --json >"$work/out" || fail "render left with $?"
grep -q '"env":"env_traffic","moments":61,"seconds":60,"return":-' "$work/out" || fail "the answer: $(cat "$work/out")"
python3 "$here/check_film.py" "$work/lights/render.html" 61 60 >"$work/err" 2>&1 || fail "the film of lights"

# an episode of more seconds than a film has pictures is shown whole, in pictures further apart
render "$work/lights" --set env_traffic.episode_s=3000 --out "$work/long.html" --json >"$work/out" || fail "a long episode"
grep -q '"moments":1501,"seconds":3000' "$work/out" || fail "a long episode: $(cat "$work/out" "$work/err")"
python3 "$here/check_film.py" "$work/long.html" 1501 3000 >"$work/err" 2>&1 || fail "the film of a long episode"

# --- vehicles, half a second apart, under another name; a checkpoint is as good as its run; the same seed, the same
# film ---
train cars --set env.id=env_traffic --set env_traffic.scenario=ring --set env_traffic.episode_s=20 \
    --set models.shield=shield_barrier
out=$(render "$work/cars" --every 0.5 --seeds 7 --out "$work/cars.html") && [ "$out" = "$work/cars.html" ] || fail "the path: $out"
python3 "$here/check_film.py" "$work/cars.html" 41 20 >"$work/err" 2>&1 || fail "the film of vehicles"
last=$(find "$work/cars/checkpoints" -name "step-*" -type d | sort | tail -n 1)
render "$last" --every 0.5 --seeds 7 --out "$work/again.html" >/dev/null || fail "of a checkpoint"
sed 1,/class=.film-data/d "$work/cars.html" >"$work/one"
sed 1,/class=.film-data/d "$work/again.html" >"$work/two"
cmp -s "$work/one" "$work/two" || fail "two films of one seed differ"
render "$work/cars" --every 0.5 --seeds 8 --out "$work/other.html" >/dev/null || fail "of another seed"
sed 1,/class=.film-data/d "$work/other.html" >"$work/two"
cmp -s "$work/one" "$work/two" && fail "films of two seeds are the same"

# --- as files, one a moment ---
render "$work/cars" --every 5 --out "$work/series" >/dev/null || fail "a series"
[ "$(echo "$work"/series/*)" = "$(for i in 0 1 2 3 4; do printf '%s ' "$work/series/0000$i.svg"; done | sed 's/ $//')" ] ||
    fail "the files: $(ls "$work/series")"
python3 "$here/check_film.py" "$work"/series/*.svg >"$work/err" 2>&1 || fail "the series"

# --- colours: what perception predicts, where it was taught; the environment's word otherwise; the legend says which
# ---
see="--set models.perception=risk_gnn --set risk_gnn.hidden=8 --set risk_gnn.heads=1 --set risk_gnn.layers=1"
drive="--set env.id=env_traffic --set env_traffic.scenario=ring --set env_traffic.episode_s=20 --set env_traffic.agents=4
       --set training.eval_interval=1 --set evaluation.seeds=3 --set evaluation.episodes=1 --set evaluation.baselines="
# shellcheck disable=SC2086
"$dtrain" --plugin phase1_world_model --threads 1 -q $see --set world_lstm.hidden=8 --set world_lstm.layers=1 --max-steps 4 \
    --set data.batch=16 --set metrics.tensorboard=false --set report.enabled=false --run-dir "$work/taught" >/dev/null \
    2>"$work/err" || fail "training perception"
# shellcheck disable=SC2086
train seen $drive $see --init-from "$work/taught"
# shellcheck disable=SC2086
train blind $drive $see
for run in seen blind cars; do
    case $run in
    seen) code=1 text="Risk that perception predicts" ;;
    blind) code=2 text="not trained" ;;
    cars) code=0 text="<b>Risk computed by the environment</b>" ;;
    esac
    [ $run = cars ] || grep -q "\"colours\":\[$code\]" "$work/$run"/evaluation/*.pictures.json || fail "colours of $run"
    render "$work/$run" --out "$work/$run.html" >/dev/null || fail "the film of $run"
    grep -qF "$text" "$work/$run.html" || fail "the legend of $run"
    python3 "$here/check_film.py" "$work/$run.html" 21 20 >"$work/err" 2>&1 || fail "the film of $run"
done

# --- a report of scenes that are damaged: what cannot be read is refused, what is no number is left out ---
left=$(echo "$work"/seen/evaluation/*.pictures.json)
"$dtrain" report "$work/seen" --out "$work/page.html" -q >/dev/null 2>"$work/err" || fail "a report left with $?"
grep -q "Risk that perception predicts" "$work/page.html" || fail "the legend of the report"
head -c 300 "$left" >"$work/half" && cp "$left" "$work/whole" && mv "$work/half" "$left"
"$dtrain" report "$work/seen" --out "$work/none.html" >"$work/err" 2>&1
[ $? -eq 4 ] && grep -q "pictures.json:1:301" "$work/err" && [ ! -e "$work/none.html" ] ||
    fail "half a file of pictures"
cat >"$left" <<END
{"traffic": {"road": [[0, 1, 2, 3], [0, 9, null, 3], [0, 50, 2, 3]], "moment": [{"time": [1],
 "vehicle": [[1, "x", 2, 0, 5, 2, 1, 0.5, 0], [2, 3, 2, 0, 5, 2, 1, null, 0]]}]}}
END
"$dtrain" report "$work/seen" --out "$work/page.html" -q >/dev/null 2>"$work/err" || fail "odd pictures left with $?"
[ "$(grep 'figure class="scene"' "$work/page.html" | grep -o 'class="body r4"' | wc -l)" -eq 1 ] || fail "an unknown risk"
grep 'figure class="scene"' "$work/page.html" | grep -qw "nan\|inf" && fail "what is no number was drawn"
cp "$work/whole" "$left"

# --- SUMO's own nets, between the steps of a run and within those of a film ---
if command -v netconvert >/dev/null && [ -e "${DT_BUILDDIR:-.}/plugins/env_sumo/.libs/env_sumo_shim.so" ]; then
    mkdir "$work/net"
    cp "${DT_SRCDIR:-.}"/tests/fixtures/sumo/pair.* "$work/net"
    netconvert -n "$work/net/pair.nod.xml" -e "$work/net/pair.edg.xml" -o "$work/net/pair.net.xml" --no-turnarounds \
        --xml-validation never >"$work/err" 2>&1 || fail "the net of SUMO"
    train sumo --set env.id=env_sumo --set env_sumo.sumocfg="$work/net/pair.sumocfg" --set models.shield=shield_barrier \
        --set training.eval_interval=1 --set evaluation.seeds=3 --set evaluation.episodes=1 --set evaluation.baselines=
    grep -q '"traffic":{"road":\[\[0,' "$work"/sumo/evaluation/*.pictures.json || fail "no picture of SUMO in its own process"
    render "$work/sumo" --seeds 3 >"$work/out" || fail "SUMO's film left with $?"
    python3 "$here/check_film.py" "$work/sumo/render.html" 301 300 >"$work/err" 2>&1 || fail "the film of SUMO"
fi

# --- what cannot be shown ---
train pole --set env.id=cartpole
refuses 5 "env_cartpole" "$work/pole" --out "$work/none.html"
refuses 2 "RUN|CHECKPOINT" --out "$work/none.html"
refuses 2 "$work/nowhere" "$work/nowhere" --out "$work/none.html"
refuses 2 "--seeds 1,2" "$work/cars" --seeds 1,2 --out "$work/none.html"
refuses 2 "--every 0" "$work/cars" --every 0 --out "$work/none.html"
refuses 2 "$work/none.svg" "$work/cars" --out "$work/none.svg"
DTRAIN_FAULT=fs.write:1 "$dtrain" render "$work/cars" --every 5 --out "$work/none.html" >"$work/err" 2>&1
[ $? -eq 1 ] && [ ! -e "$work/none.html" ] || fail "a full disk"

[ $failed -eq 0 ]
