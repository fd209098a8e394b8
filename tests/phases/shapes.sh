#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Nobody starves at the junctions of tests/fixtures/shapes in env_traffic, and behind the shield nobody waits longer
# than it promises: how is in shapes.inc.
# shellcheck source=tests/phases/shapes.inc
. "${DT_SRCDIR:-.}/tests/phases/shapes.inc"

for shape in merge shared same tie turns tram crossing; do
    env="--env env_traffic --set env_traffic.scenario=net --set env_traffic.control=signals
         --set env_traffic.net_file=$shapes/$shape.net.xml --set env_traffic.routes_file=$shapes/$shape.rou.xml
         --set env_traffic.episode_s=3600"
    check
    [ $shape != same ] || check_late
done

echo "$cases cases, $failed failed"
[ "$failed" -eq 0 ]
