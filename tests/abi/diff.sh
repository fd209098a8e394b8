#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The contract of released minors (their headers, tests/abi/older) against the one of today, by the compiler: every
# member of every struct stands where it stood with the type it had, those of functions to the last parameter; every
# enumerator and every number or text that is defined has its value. What was appended is nobody's concern. And the
# golden file of today has a row for every member, so test_abi.c overlooks none.
set -u
cc=${CC:-cc}
command -v "${cc%% *}" >/dev/null 2>&1 || { echo "skipped: no C compiler"; exit 77; }
here=$DT_SRCDIR/tests/abi
work=$(mktemp -d ./test-diff-XXXXXX) || exit 1
trap 'rm -rf "$work"' EXIT INT TERM
failed=0
fail() {
    echo "FAIL: $*"
    failed=$((failed + 1))
}

# unit HEADERS: all headers of the contract; policy.h is that of a library of its own
unit() { (cd "$1" && find dtrain -name '*.h' ! -name policy.h) | LC_ALL=C sort | sed 's/.*/#include "&"/'; }
# list HEADERS: what binds in them; a defined number or text as "D NAME value"
list() {
    unit "$1" >"$work/unit.h"
    $cc -std=c11 -E -P -I"$1" -x c "$work/unit.h" | awk -f "$here/contract.awk"
    $cc -std=c11 -E -dM -I"$1" -x c "$work/unit.h" | sed -nE '/ DT_ABI_MINOR /d
        s/^#define (DT_[A-Z0-9_]+) (-?[0-9][0-9A-Za-z]*|"[^"]*"|UINT32_C\([0-9a-fx]+\))$/D \1 \2/p'
}
# values LIST HEADERS: where the members of LIST stand, and what its enumerators are, with these headers
values() {
    {
        unit "$2"
        printf '#include <stdio.h>\nint main(void)\n{\n'
        awk '$1 == "M" { split($4, name, "|"); s = $2 ", " name[1]
                 printf "printf(\"%s at %%zu size %%zu\\n\", offsetof(%s), sizeof(((%s *)0)->%s));\n", s, s, $2, name[1] }
             $1 == "E" { printf "printf(\"%s = %%lld\\n\", (long long)%s);\n", $2, $2 }' "$1"
        printf 'return 0;\n}\n'
    } >"$work/values.c"
    $cc -std=c11 -I"$2" -o "$work/values" "$work/values.c" && "$work/values"
}
# compare OLD NEW STRUCTS: says what of OLD is gone, those structs passed over; DT_OP_PUBLIC_END is there to grow
compare() {
    list "$1" | grep -vE "^(M ($3) |E DT_OP_PUBLIC_END$)" >"$work/old" # grep: there is always something
    list "$2" >"$work/new"
    grep -vxF -f "$work/new" "$work/old" >"$work/gone" && return 1
    echo "it does not compile" >"$work/gone"
    values "$work/old" "$1" >"$work/then" && values "$work/old" "$2" >"$work/now" &&
        diff "$work/then" "$work/now" >"$work/gone"
}

provisional='dt_buffer|dt_env_spec|dt_env_io|dt_env_ops' # in 1.0 alone; abi_log.h
[ "$(grep -c 'environments provisional' "$here/older/1.0/dtrain/abi_log.h")" -eq 1 ] || fail "1.0 says nothing of them"
for minor in "$here"/older/1.*; do
    except=none
    [ "${minor##*/}" != 1.0 ] || except=$provisional
    compare "$minor" "$DT_SRCDIR/include" "$except" ||
        { fail "a plugin of ${minor##*/} relies on:"; head -n 20 "$work/gone"; }
    [ "$(wc -l <"$work/then")" -ge 300 ] || fail "${minor##*/} is read to $(wc -l <"$work/then") lines"
done

# every member of today has a row in the golden file, which test_abi.c holds against the build
golden=$(sed -nE 's/^#define DT_ABI_(MAJOR|MINOR) *([0-9]+).*/\2/p' "$DT_SRCDIR/include/dtrain/plugin.h" | paste -s -d .)
inline='dt_random|dt_motion_pose' # compiled into plugins, never passed
awk '$1 == "M" { split($4, name, "|"); print $2 "." name[1] " at" }' "$work/new" | grep -vE "^($inline)\." >"$work/members"
sed -nE 's/^(.* at) .*/\1/p' "$here/abi-$golden.txt" >"$work/rows"
grep -vxF -f "$work/rows" "$work/members" >"$work/gone" &&
    { fail "tests/abi/structs.def lacks"; sed 's/ at$//' "$work/gone"; }

# it sees what it must see
# seen CODE FILE SED-SCRIPT: headers of today with one change, against them as they are
seen() {
    code=$1 file=$2
    shift 2
    rm -rf "$work/changed"
    mkdir "$work/changed" && cp -r "$DT_SRCDIR/include/dtrain" "$work/changed/"
    chmod -R u+w "$work/changed"
    sed -i "$@" "$work/changed/dtrain/$file"
    cmp -s "$work/changed/dtrain/$file" "$DT_SRCDIR/include/dtrain/$file" && fail "nothing to change: $*"
    compare "$DT_SRCDIR/include" "$work/changed" none
    got=$?
    [ "$got" -eq "$code" ] || { fail "$got, expected $code: $*"; head -n 3 "$work/gone"; }
}
seen 0 plugin.h 's/    uint64_t iterations; /    uint64_t iterations, more; /'                    # appended
seen 0 plugin.h 's/(\*alloc)(const dt_host \*h, uint64_t bytes)/(*alloc)(const dt_host *host, uint64_t n)/'  # names
seen 1 plugin.h 's/    const char \*name, \*dims;/    const char *dims, *name;/'                # two of a type change places
seen 1 plugin.h 's/    uint32_t dtype, flags;/    uint32_t dtype, between, flags;/'
seen 1 plugin.h 's/(\*alloc)(const dt_host \*h, uint64_t bytes)/(*alloc)(const dt_host *h, uint32_t bytes)/'
seen 1 plugin.h 's/(\*release)(const dt_host \*h, void \*p)/(*release)(const dt_host *h, const void *p)/'
seen 1 plugin.h 's/DT_KIND_PHASE = 1,/DT_KIND_PHASE = 2,/'
seen 1 plugin.h 's/int64_t size;/int32_t size;/'
seen 1 plugin.h 's/DT_LAYOUT       "lp64le;dims8"/DT_LAYOUT       "lp64le"/'
seen 1 svc/rng.h 's/"dtrain\.rng\/1"/"dtrain.rng\/2"/'

[ "$failed" -eq 0 ] && echo "what plugins of older minors rely on is as it was"
[ "$failed" -eq 0 ]
