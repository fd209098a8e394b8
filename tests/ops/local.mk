# SPDX-License-Identifier: Apache-2.0
dt_tests += tests/ops/test_ops tests/ops/test_policy tests/ops/test_vmath
tests_ops_test_ops_SOURCES = tests/ops/test_ops.c tests/ops/cases.c tests/ops/harness.c tests/ops/harness.h
tests_ops_test_ops_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
