#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# `make wheel`, and what it makes installed into a fresh virtual environment: program and environments work there.
set -u

. "${DT_SRCDIR:-.}/tests/check.inc"
src=$(cd "${DT_SRCDIR:-.}" && pwd) built=$(cd "${DT_BUILDDIR:-.}" && pwd)
python3 -m venv "$work/venv" && "$work/venv/bin/pip" -q download --no-deps -d "$work" hatchling >"$work/out" 2>&1 || {
    echo "skipped: no virtual environment, or PyPI cannot be reached"
    exit 77
}
expect 0 "manylinux" make -s -C "$built" wheel
expect 0 "" "$work/venv/bin/pip" -q install "$built"/dist/dtrain-*.whl
cd "$work" || exit 1
expect 0 "dtrain" "$work/venv/bin/dtrain" --version
expect 0 "" "$work/venv/bin/dtrain" --plugin phase2_ppo --set env.id=cartpole --max-steps 2 --run-dir run -q
expect 0 "" "$work/venv/bin/python" "$src/tests/python/envs.py"
expect 0 "" "$work/venv/bin/python" "$src/tests/python/runs.py"

finish python_wheel
