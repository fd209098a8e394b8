# SPDX-License-Identifier: Apache-2.0
dt_tests += tests/export/test_policy
tests_export_test_policy_SOURCES = tests/export/test_policy.c core/export/policy.c
dt_scripts += tests/export/export.sh
tests_export_test_policy_CFLAGS = $(AM_CFLAGS) # an object of its own: the library's is made by libtool
