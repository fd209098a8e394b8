#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Each public header compiles alone, twice in a row, as strict C11; the structs of the contract have no hidden padding.
. "$DT_SRCDIR/tests/abi/headers.inc"
for h in $headers; do
    padded=
    case $h in
        dtrain/plugin.h | dtrain/ext/* | dtrain/svc/*) padded=-Wpadded ;;
    esac
    printf '#include "%s"\n#include "%s"\nextern int dt_unit;\n' "$h" "$h" >"$tmp/unit.c"
    echo "$h $padded"
    ${CC:-cc} -std=c11 -pedantic -Wall -Wextra -Wstrict-prototypes -Wshadow $padded -Werror \
        -I"$headers_in" -fsyntax-only "$tmp/unit.c"
done
