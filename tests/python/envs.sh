#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The Python package: environments, trainings and policies, the program on PATH.
set -u

. "${DT_SRCDIR:-.}/tests/check.inc"
. "${DT_SRCDIR:-.}/tests/python/python.inc"

expect 0 "" "$python" "$src/tests/python/envs.py"
expect 0 "dtrain" "$python" -m dtrain --version
expect 0 "env_traffic" "$python" -m dtrain show env_traffic
expect 0 "False" "$python" -c 'import sys, dtrain, dtrain.__main__; print("gymnasium" in sys.modules)'

mkdir "$work/runs" && cd "$work/runs" || exit 1
expect 0 "" "$python" "$src/tests/python/runs.py"
expect 0 "" "$python" "$src/tests/python/states.py"
! "$python" -c 'import pettingzoo' 2>/dev/null || expect 0 "" "$python" "$src/tests/python/parallel.py"

# the page of the package
sed -n '/^```python$/,/^```$/p' "$src/docs/howto/python.md" | sed '/^```/d' >"$work/page.py"
expect 0 "(16, 9)" "$python" "$work/page.py"

finish python_envs
