#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The same as shapes.sh in env_sumo, where SUMO drives the vehicles, and trams: every shape with DT_LONG=1, else those
# that shapes.sh does not cover and one for the bound. Skipped without SUMO.
if [ ! -r "${DT_BUILDDIR:-.}/plugins/env_sumo/.libs/env_sumo_shim.so" ]; then
    echo "skipped: built without SUMO"
    exit 77
fi
# shellcheck source=tests/phases/shapes.inc
. "${DT_SRCDIR:-.}/tests/phases/shapes.inc"

some="same tram crossing"
[ "${DT_LONG:-}" != 1 ] || some="merge shared same tie turns tram crossing"
for shape in $some; do
    env="--env env_sumo --set env_sumo.sumocfg=$shapes/$shape.sumocfg"
    check
    [ $shape != same ] || check_late
done

echo "$cases cases, $failed failed"
[ "$failed" -eq 0 ]
