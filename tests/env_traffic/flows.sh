#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What is recorded in tests/fixtures/sumo/flows.txt is what the installed SUMO does with these flows (test_flows
# compares plugins/env_traffic with the record).
for need in python3 sumo netconvert; do
    command -v $need >/dev/null 2>&1 || { echo "without $need"; exit 77; }
done
sumo --version 2>/dev/null | grep -q 'Version 1\.15\.' || { echo "without SUMO 1.15, of which the record is"; exit 77; }
src=${DT_SRCDIR:-.}
exec python3 "$src/tests/env_traffic/flows.py" "$src/tests/fixtures/sumo/flows.txt"
