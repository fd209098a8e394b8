#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Kernels in vectors of 4 and 16 lanes give the results of AVX2 and AVX-512, on any processor with FMA (test_widths.c).
exec "${DT_BUILDDIR:-.}/tests/engine/ops/test_widths_portable"
