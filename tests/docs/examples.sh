#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every configuration of examples/ trains for a few steps as it is, has a row and a picture in README.md, and is
# installed. The one for SUMO is skipped, and says so, where SUMO is not built in.
set -u
dtrain=$DT_BUILDDIR/dtrain
examples=${DT_SRCDIR:-.}/examples
work=$(mktemp -d "$PWD/test-examples-XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
failed=0 n=0

fail() {
    echo "FAIL: $*"
    tail -n 5 "$work/err" | sed 's/^/    /'
    failed=1
}
"$dtrain" data import "$examples/data/drive.csv" --out "$work/drive" --set import.frame_rate_hz=10 >"$work/err" 2>&1 ||
    fail "importing drive.csv left with $?"
for file in "$examples"/*.cfg; do
    name=$(basename "$file" .cfg) more=
    n=$((n + 1))
    grep -q "($name.cfg).*(img/$name.png)" "$examples/README.md" || fail "README.md lacks $name"
    grep -q "examples/$name.cfg" "$examples/local.mk" || fail "$name is not installed"
    picture=$(wc -c <"$examples/img/$name.png")
    [ "$picture" -gt 2000 ] && [ "$picture" -lt 60000 ] || fail "the picture of $name has $picture bytes"
    case $name in
        sumo-*) [ -e "$DT_BUILDDIR/plugins/env_sumo/.libs/env_sumo_shim.so" ] || {
            echo "built without SUMO: $name is skipped"
            continue
        } ;;
        own-*) more="--set data.store=$work/drive" ;;
    esac
    "$dtrain" --config "$file" $more --max-steps 2 --run-dir "$work/$name" --set evaluation.baselines= \
        --set report.enabled=false --set env.instances=2 -q >"$work/err" 2>&1 || fail "$name left with $?"
    "$dtrain" ckpt inspect "$work/$name" --json 2>"$work/err" | grep -q '"step":[1-9]' || fail "$name made no step"
done
[ $n -eq 6 ] || fail "$n configurations, expected 6"
exit "$failed"
