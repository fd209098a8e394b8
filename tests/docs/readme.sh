#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the commands of README.md: every block of sh behind a "tested" mark, in one folder, one after the other; and
# every file or folder that its map names must be there.
set -eu
work=$(mktemp -d "$PWD/test-readme-XXXXXX")
trap 'rm -rf "$work"' EXIT
readme=$DT_SRCDIR/README.md

awk '/^<!-- tested -->$/ { want = 1; next }
    want && /^```sh$/ { on = 1; want = 0; next }
    /^```$/ { on = 0 }
    on' "$readme" >"$work/commands.sh"
n=$(grep -c '^!\{0,1\} \{0,1\}\(DTRAIN_[A-Z_]*=[^ ]* \)\{0,1\}dtrain' "$work/commands.sh")
test "$n" -ge 10 || { echo "README.md has $n tested dtrain commands, expected at least 10"; exit 1; }

# sh -e does not stop at "! command": say it as a condition
sed -i 's/^! \(.*\)$/if \1; then echo "was accepted: \1"; exit 1; fi/' "$work/commands.sh"
cd "$work"
PATH=$DT_BUILDDIR:$PATH
# the template's makefile asks for dtrain, which is not installed yet
mkdir pc
cp "$DT_BUILDDIR/dtrain-uninstalled.pc" pc/dtrain.pc
PKG_CONFIG_PATH=$work/pc
CC=${CC:-cc}
export PATH PKG_CONFIG_PATH CC
unset MAKEFLAGS MFLAGS || true
sh -eux commands.sh

for name in $(sed -n '/^## Map of the tree/,/^## /s/^| \(`[^|]*`\) |.*/\1/p' "$readme" | tr -d '`'); do
    test -e "$DT_SRCDIR/$name" || { echo "the map of README.md names $name, which is not there"; exit 1; }
done
