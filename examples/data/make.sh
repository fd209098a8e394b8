#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes the data of the examples again in this folder: a net of two signals (needs netconvert of SUMO) and a recording of
# five cars that follow each other by the intelligent driver model (Treiber 2000).
set -eu
cd "$(dirname "$0")"
cat >town.nod.xml <<'END'
<nodes>
    <node id="west" x="-300" y="0"/> <node id="a" x="0" y="0" type="traffic_light"/>
    <node id="b" x="250" y="0" type="traffic_light"/> <node id="east" x="550" y="0"/>
    <node id="a_north" x="0" y="300"/> <node id="a_south" x="0" y="-300"/>
    <node id="b_north" x="250" y="300"/> <node id="b_south" x="250" y="-300"/>
</nodes>
END
{
    echo "<edges>"
    for pair in west,a a,b b,east a_north,a a,a_south b_north,b b,b_south; do
        from=${pair%,*} to=${pair#*,}
        for way in "$from $to" "$to $from"; do
            set -- $way
            echo "<edge id=\"$1_$2\" from=\"$1\" to=\"$2\" numLanes=\"1\" speed=\"13.89\"/>"
        done
    done
    echo "</edges>"
} >town.edg.xml
netconvert -n town.nod.xml -e town.edg.xml -o town.net.xml --no-turnarounds --plain.extend-edge-shape false >/dev/null
sed '/^<!--/,/-->$/d' town.net.xml >net && mv net town.net.xml
rm town.nod.xml town.edg.xml
awk 'BEGIN {
    print "scene,frame,id,x,y,speed"
    for (s = 0; s < 6; s++) {
        for (c = 0; c < 5; c++) { x[c] = -22 * c; v[c] = 10 + s }
        for (i = 0; i < 60; i++) {
            for (c = 0; c < 5; c++) printf "%d,%d,%d,%.2f,%.2f,%.2f\n", s, i, c, x[c], 0, v[c]
            for (c = 0; c < 5; c++) {
                if (c == 0) a = 2 * sin(0.12 * i + s)
                else {
                    gap = x[c - 1] - x[c] - 5; wish = 2 + v[c] * 1.2 + v[c] * (v[c] - v[c - 1]) / 2.4
                    a = 1 - (v[c] / 18) ^ 4 - (wish / gap) ^ 2
                }
                acc[c] = a < -4 ? -4 : a
            }
            for (c = 0; c < 5; c++) { x[c] += 0.1 * v[c] + 0.005 * acc[c]; v[c] += 0.1 * acc[c]; if (v[c] < 0) v[c] = 0 }
        }
    }
}' >drive.csv
