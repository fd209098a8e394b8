#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# `dtrain data convert`: a network of CityFlow with two signals is driven on in env_traffic and, where SUMO is installed,
# in SUMO: as many vehicles are due, no vehicles collide, and the fixed program brings through as many within a tenth.
set -u
src=${DT_SRCDIR:-.}
dtrain=${DT_BUILDDIR:-.}/dtrain
work=$(mktemp -d ./test-convert-XXXXXX) || exit 1
trap 'rm -rf "$work"' EXIT INT TERM
files=$src/tests/fixtures/cityflow
failed=0

fail() {
    echo "FAIL: $*"
    failed=$((failed + 1))
}
value() { # KEY of the evaluation's table
    awk -v key="$1" '$1 == key { print $2; exit }' "$work/table"
}

"$dtrain" data convert "$files/roadnet.json" "$files/flow.json" --out "$work/pair" >"$work/out" 2>&1 || fail "convert"
"$dtrain" eval --plugin phase2_ppo --set env.id=traffic --set models.controller=controller_fixed \
    --set env_traffic.scenario=net --set env_traffic.control=signals --set env_traffic.net_file="$work/pair.net.xml" \
    --set env_traffic.routes_file="$work/pair.rou.xml" --set env_traffic.episode_s=600 --set env_traffic.dt_s=1 \
    --seeds 1 --episodes 1 >"$work/table" 2>"$work/err" || fail "env_traffic: $(tail -n 3 "$work/err")"
[ "$(value demand)" = 232 ] || fail "$(value demand) vehicles are due, not 232"
[ "$(value collisions)" = 0 ] || fail "$(value collisions) collisions"
finished=$(value finished)
[ "${finished:-0}" -gt 140 ] || fail "$finished vehicles arrived"

# the other reader is named where a file is none of SUMO's
"$dtrain" eval --plugin phase2_ppo --set env.id=traffic --set env_traffic.scenario=net \
    --set env_traffic.net_file="$files/roadnet.json" --set env_traffic.routes_file="$files/flow.json" >"$work/out" 2>&1
[ $? = 4 ] || fail "JSON as net_file"
grep -q 'dtrain data convert' "$work/out" || fail "the command is not named"

if command -v sumo >/dev/null 2>&1; then
    sumo -n "$work/pair.net.xml" -r "$work/pair.rou.xml" -e 600 --xml-validation never --no-step-log --verbose \
        >"$work/sumo" 2>&1 || fail "sumo: $(tail -n 3 "$work/sumo")"
    grep -q 'collision' "$work/sumo" && fail "collisions in SUMO"
    awk -v ours="$finished" '/Inserted:/ { n = $2; due = $4 + 0 } /Running:/ { n -= $2 }
        END { exit !(due == 232 && n > 0.9 * ours && n < 1.1 * ours) }' "$work/sumo" ||
        fail "env_traffic brings $finished through; SUMO: $(grep -E 'Inserted|Running' "$work/sumo" | tr '\n' ' ')"
else
    echo "without SUMO: not compared with it"
fi
[ "$failed" = 0 ]
