#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# usage: failures.sh BUILDDIR
#
# Names the tests that failed in a build folder and prints the end of what each said: the summary of make check says
# only how many there were.

set -eu
find "${1:?usage: failures.sh BUILDDIR}" -name '*.trs' | LC_ALL=C sort | while read -r result; do
    grep -qE '^:test-result: (FAIL|ERROR|XPASS)' "$result" || continue
    said=${result%.trs}.log
    printf '\nfailed: %s\n' "${said%.log}"
    tail -n 25 "$said" || true
done
