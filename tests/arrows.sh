#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Holds the arrows where includes do not show them: what the objects of one room call in another, by the table of
# tests/layers.sh; and that inside a room files do not call each other in a circle.
set -eu
LC_ALL=C
export LC_ALL
here=${DT_SRCDIR:-$(dirname "$0")/..}
build=${DT_BUILDDIR:-.}
command -v nm >/dev/null || { echo "no nm here"; exit 77; }

# rooms with a circle that belongs there: graph has one table of operations, whose files derive each other's gradients;
# report has a page that lists its panels, which are drawn with its parts
circles='engine/graph telemetry/report'

table=$(sed -n "/^table='/,/^'/p" "$here/tests/layers.sh" | sed "1d;\$d")

# lines "FILE ADDRESS KIND NAME" and "FILE KIND NAME" of nm -A
check() {
    awk -v table="$table" -v circles=" $circles " '
    function room_of(file,  k, best) {
        best = ""
        for (k in may) if (index(file, "core/" k "/") == 1 && length(k) > length(best)) best = k
        return best
    }
    BEGIN {
        n = split(table, line, "\n")
        for (i = 1; i <= n; i++) {
            split(line[i], half, ":")
            may[half[1]] = " " half[2] " "
        }
    }
    {
        file = $1; sub(/:[0-9a-f]*$/, "", file); sub(/^\.\//, "", file)
        kind = $(NF - 1); name = $NF
        if (kind == "U") { calls[file, name] = 1; files[file] = 1 }
        else if (kind ~ /^[TDBRV]$/) { home[name] = home[name] " " file; files[file] = 1 }
    }
    END {
        for (pair in calls) {
            split(pair, p, SUBSEP)
            a = room_of(p[1])
            wrong = ""
            for (n = split(home[p[2]], at, " "); n > 0; n--) { # the small library has some names once more
                b = room_of(at[n])
                if (a == b || may[a] ~ /\*/ || index(may[a], " " b " ") > 0) {
                    if (a == b && at[n] != p[1]) edge[p[1], at[n]] = 1
                    wrong = ""
                    break
                }
                wrong = at[n]
            }
            if (wrong != "") {
                printf "%s calls %s of %s: %s may not look into %s\n", p[1], p[2], wrong, a, room_of(wrong)
                bad++
            }
        }
        # what calls nobody that is left, or is called by nobody, is in no circle
        do {
            left = 0
            for (f in files) { n_out[f] = n_in[f] = 0 }
            for (pair in edge) {
                split(pair, p, SUBSEP)
                if ((p[1] in files) && (p[2] in files)) { n_out[p[1]]++; n_in[p[2]]++ }
            }
            for (f in files) {
                if (n_out[f] == 0 || n_in[f] == 0) { delete files[f]; left++ }
            }
        } while (left > 0)
        for (f in files) {
            if (index(circles, " " room_of(f) " ") == 0) {
                printf "%s calls in a circle\n", f
                bad++
            }
        }
        exit bad > 0
    }'
}

# it does see a wrong arrow and a circle
wrong() { # text, nm's lines
    ! printf '%s\n' "$2" | check >arrows.out || { echo "arrows: does not see: $1"; exit 1; }
    grep -qF "$1" arrows.out || { echo "arrows: says not: $1"; exit 1; }
    rm -f arrows.out
}
wrong 'base may not look into run' 'core/base/a.o: U dt_x
core/run/b.o:00000000 T dt_x'
wrong 'core/run/a.o calls in a circle' 'core/run/a.o: U dt_x
core/run/a.o:00000000 T dt_y
core/run/b.o: U dt_y
core/run/b.o:00000000 T dt_x'

# Objects of test programs and of the small library are the same sources once more; the CUDA module is a library apart,
# whose table lists its kernels.
objects=$(cd "$build" && find core -name '*.o' ! -name '*_la-*' ! -name 'tests_*' ! -path 'core/*.lax/*' \
    ! -path 'core/engine/backend/cuda/*')
test "$(echo "$objects" | wc -l)" -gt 100 || { echo "arrows: hardly any objects in $build/core"; exit 1; }
(cd "$build" && echo "$objects" | xargs nm -A) | sed 's#/\.libs/#/#' | check
