#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every source file names its licence in its first five lines and leaves no work for later. With --layout also: C has
# no tabs, no trailing blanks and no line above 120 columns (make lint asks for it).
set -eu
cd "${DT_SRCDIR:-$(dirname "$0")/..}"

files() { # extensions, as a pattern of grep -E
    find core include phases models plugins tests bench profiles -type f 2>/dev/null | grep -E "\.($1)\$" | sort
}
later='TO''DO|FIX''ME|X''XX' # split, or this file would find itself
found=$(
    {
        files 'c|h|def|cu|cuh|sh|inc|mk|py|cfg'
        ls bootstrap quickstart configure.ac Makefile.am m4/dt_flags.m4 .ci/run 2>/dev/null || true
    } | while read -r f; do
        head -n 5 "$f" | grep -q 'SPDX-License-Identifier: Apache-2.0' ||
            echo "$f:1: say SPDX-License-Identifier: Apache-2.0 in the first five lines"
        grep -nwE "$later" "$f" | sed "s|^|$f:|; s|\$|   <- finish it or refuse it in clear words|"
    done
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
