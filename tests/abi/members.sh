#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The golden file of this version of the contract has a row for every member of every public struct: what the
# preprocessed headers declare, against the file that test_abi.c compares with the build.
set -u
cc=${CC:-cc}
command -v "${cc%% *}" >/dev/null 2>&1 || { echo "skipped: no C compiler"; exit 77; }
here=$DT_SRCDIR/tests/abi
work=$(mktemp -d ./test-members-XXXXXX) || exit 1
trap 'rm -rf "$work"' EXIT INT TERM

# all headers of the contract; policy.h is that of a library of its own
(cd "$DT_SRCDIR/include" && find dtrain -name '*.h' ! -name policy.h) | LC_ALL=C sort | sed 's/.*/#include "&"/' >"$work/unit.h"
$cc -std=c11 -E -P -I"$DT_SRCDIR/include" -x c "$work/unit.h" | awk -f "$here/contract.awk" >"$work/all"
inline='dt_random|dt_motion_pose|dt_row_buffer|dt_row_field|dt_row_copy_|dt_net_config_|dt_net_' # compiled into plugins, never passed
awk '$1 == "M" { split($4, name, "|"); print $2 "." name[1] " at" }' "$work/all" | grep -vE "^($inline)\." >"$work/members"
golden=$(sed -nE 's/^#define DT_ABI_(MAJOR|MINOR) *([0-9]+).*/\2/p' "$DT_SRCDIR/include/dtrain/plugin.h" | paste -s -d .)
sed -nE 's/^(.* at) .*/\1/p' "$here/abi-$golden.txt" >"$work/rows"
[ "$(wc -l <"$work/members")" -ge 300 ] || { echo "FAIL: only $(wc -l <"$work/members") members were read"; exit 1; }
if grep -vxF -f "$work/rows" "$work/members" >"$work/gone"; then
    echo "FAIL: tests/abi/structs.def lacks"
    sed 's/ at$//' "$work/gone"
    exit 1
fi
echo "the golden file has all $(wc -l <"$work/members") members"
