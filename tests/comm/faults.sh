#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Ranks in a simulated world: 300 seeds, each another mishap. "make check-faults" runs 10,000.
set -u
exec "${DT_BUILDDIR:-.}/tests/comm/faults" 1 300
