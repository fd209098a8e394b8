#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Pages in a real browser: at the width of a screen and of a phone, light and dark, no error on the console, no request
# to any network, nothing wider than the window; the pointer and the player do what they should. Skipped without
# chromium.
set -u

dtrain=${DT_BUILDDIR:-.}/dtrain
here=$(cd "${DT_SRCDIR:-.}/tests/telemetry/report" && pwd)
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || { echo "no chromium"; exit 77; }
mkdir -p test-browser && work=$(cd test-browser && pwd) || exit 1
rm -rf "${work:?}"/*
failed=0

fail() {
    echo "FAIL: $*"
    failed=$((failed + 1))
}
train() { # DIR OPTIONS
    dir=$1
    shift
    "$dtrain" --run-dir "$work/$dir" --threads 1 -q --set metrics.tensorboard=false "$@" 2>"$work/err" ||
        fail "training $dir: $(tail -n 3 "$work/err")"
}
# open SCHEME PAGE: what browser.html found is in $work/found
open_page() {
    scheme=0
    [ "$1" = dark ] || scheme=1
    timeout 120 "$browser" --headless=new --no-sandbox --disable-gpu --no-first-run --disable-background-networking \
        --disable-component-update --disable-sync --disable-extensions --user-data-dir="$work/profile" \
        --allow-file-access-from-files --blink-settings=preferredColorScheme=$scheme --window-size=1400,1000 \
        --enable-logging=stderr --host-resolver-rules="MAP * ~NOTFOUND" --virtual-time-budget=20000 \
        --dump-dom "file://$here/browser.html#page=file://$2" >"$work/dom" 2>"$work/console"
    sed -n '/<pre id="found">/,/<\/pre>/p' "$work/dom" | sed 's/.*<pre id="found">//; s/<\/pre>.*//' >"$work/found"
}
says() { grep -qxF -- "$1" "$work/found" || fail "$page, $scheme_name: expected \"$1\" among: $(cat "$work/found")"; }

train a --plugin phase1_world_model --set risk_gnn.hidden=8 --set risk_gnn.heads=1 --set risk_gnn.layers=1 \
    --set world_lstm.hidden=8 --set world_lstm.layers=1 --set data.batch=16 --set training.epochs=3 --set training.eval_interval=1
train b --plugin phase2_ppo --set env.id=env_traffic --set env_traffic.scenario=intersection --set env_traffic.control=signals \
    --set env_traffic.episode_s=120 --set models.shield=shield_barrier --set env.instances=2 --set phase2_ppo.iterations=3 \
    --set phase2_ppo.fragment=12 --set phase2_ppo.train_batch=24 --set data.batch=24 --set training.eval_interval=1 \
    --set evaluation.episodes=1
"$dtrain" report "$work/a" "$work/b" --out "$work/both.html" -q >/dev/null || fail "the report of both"
cat >"$work/sweep.cfg" <<'END'
arguments = [ "--plugin", "phase2_ppo", "--set", "env.id=env_cartpole", "--set", "models.controller=controller_mlp",
    "--set", "phase2_ppo.iterations=1", "--set", "phase2_ppo.train_batch=256", "--set", "training.eval_interval=1",
    "--set", "evaluation.episodes=1", "--set", "evaluation.baselines=" ];
metric = "return/mean"; goal = "max"; trials = 4;
parameters = ( { key = "training.learning_rate"; min = 1e-4; max = 10; log = true; },
               { key = "controller_mlp.hidden"; values = [ 8, 16 ]; } );
END
"$dtrain" sweep "$work/sweep.cfg" --run-dir "$work/sweep" -q >/dev/null 2>&1 || fail "the sweep"
"$dtrain" report "$work/sweep" -q >/dev/null || fail "the report of the sweep"
"$dtrain" render "$work/b" --out "$work/film.html" -q >/dev/null 2>&1 || fail "the film"

for scheme_name in light dark; do
    for page in "$work/a/report.html" "$work/b/report.html" "$work/both.html" "$work/film.html" "$work/sweep/report.html"; do
        for try in 1 2 3 4 5; do # without a screen the browser draws frames when it likes, now and then none at all
            open_page $scheme_name "$page"
            ! grep -q "plays false" "$work/found" || [ "$try" = 5 ] || continue
            break
        done
        says "done"
        for width in 1280 360; do
            says "$width asks for nothing"
            if [ $scheme_name = dark ]; then
                says "$width fits true errors 0 dark true"
                says "$width paper rgb(21, 23, 26)"
            else
                says "$width fits true errors 0 dark false"
                says "$width paper rgb(251, 251, 249)"
            fi
            case $page in *b/report.html | *both.html) says "$width small true true true" ;; esac
            case $page in
                *film*)
                    says "$width end true true"
                    says "$width zooms true true true true true true"
                    [ $width = 360 ] || says "$width plays true Play true"
                    ;;
                *sweep*) ;;
                *) says "$width pointer true"; says "$width leaves true"; says "$width readable true true" ;;
            esac
        done
        ! grep -E "CONSOLE|Uncaught" "$work/console" || fail "$page, $scheme_name: something on the console"
    done
done

[ $failed -eq 0 ] && rm -rf "$work"
[ $failed -eq 0 ]
