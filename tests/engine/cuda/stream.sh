#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Phase 1 from a folder of stores that grows, on the emulated GPU: see tests/engine/device/stream.sh.
exec "${SHELL:-/bin/sh}" "${DT_SRCDIR:?}/tests/engine/device/stream.sh" emulated
