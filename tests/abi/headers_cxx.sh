#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Each public header compiles alone as C++17; skipped where there is no C++ compiler.
. "$DT_SRCDIR/tests/abi/headers.inc"
cxx=${CXX:-$(command -v g++ || command -v clang++ || true)}
if [ -z "$cxx" ]; then
    echo "skipped: no C++ compiler"
    exit 77
fi
for h in $headers; do
    printf '#include "%s"\n' "$h" >"$tmp/unit.cc"
    echo "$h"
    $cxx -std=c++17 -pedantic -Wall -Wextra -Werror -I"$headers_in" -fsyntax-only "$tmp/unit.cc"
done
