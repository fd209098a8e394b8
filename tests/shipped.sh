#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every tracked file is in the release, and what the release lists is there: make lint passes its files, one a line,
# with $(srcdir) in front or without. A folder stands for all that is in it. Not shipped: files of the code host and of
# Debian's packaging. Usage: shipped.sh SRCDIR BUILDDIR <LIST
set -u
src=$1 build=$2
git -C "$src" rev-parse --git-dir >/dev/null 2>&1 || exit 0
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT INT TERM
sed "s|^$src/||; s|^\./||" | sort -u >"$work/listed"
git -C "$src" ls-files | grep -vE '^(\.git|\.ci/|debian/)' | awk -v list="$work/listed" '
    BEGIN { while ((getline name <list) > 0) listed[name] = 1 }
    {
        for (path = $0; !(path in listed) && path ~ "/"; sub(/\/[^\/]*$/, "", path)) continue
        if (!(path in listed)) print "FAIL: a release lacks " $0 ": list it in EXTRA_DIST of its local.mk"
    }' >"$work/failed"
while read -r name; do
    [ -e "$src/$name" ] || [ -e "$build/$name" ] || [ -e "$name" ] ||
        echo "FAIL: a release cannot be made: $name is listed and not there"
done <"$work/listed" >>"$work/failed"
cat "$work/failed"
[ ! -s "$work/failed" ]
