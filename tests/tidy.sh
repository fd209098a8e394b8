#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every source file names its licence in its first five lines and leaves no work for later. C says if where it means if:
# for a step that is taken only where all went well, for one of two targets, for what is added in one case. With
# --layout also: C has no tabs, no trailing blanks and no line above 120 columns (make lint asks for it). The rules
# first prove on lines that break them that they refuse.
set -eu
cd "${DT_SRCDIR:-$(dirname "$0")/..}"

files() { # extensions, as a pattern of grep -E
    find core include phases models plugins tests bench profiles -type f 2>/dev/null | grep -E "\.($1)\$" | sort
}
later='TO''DO|FIX''ME|X''XX' # split, or this file would find itself
name='(st|[a-z_]*status)'
target='^ *\*\(.* \? .*\) [-+*/|&]?= '
nothing='[-+]= [^;]* \? [^;:]* : 0(\.0)?[fF]?;|[-+]= [^;]* \? 0(\.0)?[fF]? : [^;]*;'
chain="(^|[^a-z_.>])$name = \\2 (==|!=) DT_OK [?&]|(^|[^a-z_.>])$name = \\5 (>=|<) 0 [?&]"

fails() { # RULE LINE
    echo "tidy.sh: the rule against $1 and the line \"$2\" do not fit"
    exit 1
}
for line in '    st = st == DT_OK ? f() : st;' 'st = st == DT_OK && any ? f() : st;' '    st = st >= 0 ? f() : st;'; do
    echo "$line" | grep -qE "$chain" || fails chains "$line"
done
for line in '    x.low = low >= 0 && low <= 1 ? 0 : low;' 'bool is = st == DT_OK ? f() : g();' 'st = lost < 0 ? lost : st;'; do
    echo "$line" | grep -qE "$chain" && fails chains "$line"
done
echo '    *(c != NULL ? c + at : held) = 1;' | grep -qE "$target" || fails targets c
echo '    i += any ? 1 : 0;' | grep -qE "$nothing" || fails increments any
echo '    n -= is_last ? 0 : m;' | grep -qE "$nothing" || fails increments is_last
echo '    x += left ? -1 : 1;' | grep -qE "$nothing" && fails increments left

found=$(
    {
        files 'c|h|def|cu|cuh|sh|inc|mk|py|cfg'
        ls bootstrap quickstart configure.ac Makefile.am m4/dt_flags.m4 .ci/run 2>/dev/null || true
    } | while read -r f; do
        head -n 5 "$f" | grep -q 'SPDX-License-Identifier: Apache-2.0' ||
            echo "$f:1: say SPDX-License-Identifier: Apache-2.0 in the first five lines"
        grep -nwE "$later" "$f" | sed "s|^|$f:|; s|\$|   <- finish it or refuse it in clear words|"
    done
    files 'c|h|cu|cuh|cpp|hpp' | xargs grep -nE "$chain" |
        sed 's|$|   <- write an if; a row of them is a function of its own, with DT_TRY|'
    files 'c|h|cu|cuh|cpp|hpp' | xargs grep -nE "$target" | sed 's|$|   <- write an if with two assignments|'
    # kernels of CUDA choose a value and add it, so that no thread takes a way of its own
    files 'c|h|cpp|hpp' | grep -vE '^(core/engine/backend/cuda|tests)/' | xargs grep -nE "$nothing" |
        sed 's|$|   <- it adds nothing in one case: write an if|'
    test "${1:-}" = --layout && files 'c|h|def|cu|cuh' | xargs awk '
        /\t/ && FILENAME !~ /\.def$/ { print FILENAME ":" FNR ": a tab" }
        /[ \t]$/ { print FILENAME ":" FNR ": blanks at the end" }
        length($0) > 120 { print FILENAME ":" FNR ": " length($0) " columns, 120 is the limit" }'
    true
)
if [ -n "$found" ]; then
    echo "$found"
    exit 1
fi
