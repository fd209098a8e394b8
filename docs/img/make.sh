#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes the two pictures of README.md anew from a built tree: docs/img/make.sh BUILD_FOLDER. It trains phases 2 and 3 of
# share/hybrid.cfg in env_traffic, which takes some minutes, then cuts four charts out of the report and one frame out
# of an episode. Needs python3. The same seeds give the same curves; nothing here is of recorded data.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
test $# -eq 1 && test -x "$1/dtrain" || { echo "usage: docs/img/make.sh BUILD_FOLDER (that holds dtrain)" >&2; exit 2; }
dtrain=$(cd "$1" && pwd)/dtrain
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
"$dtrain" --config "$here/../../share/hybrid.cfg" --phase 2-3 --run-dir run -q
"$dtrain" report run --out report.html -q
"$dtrain" render run --phase phase3_constrained --every 300 --out frames -q
python3 "$here/cut.py" report.html frames/00001.svg "$here"
