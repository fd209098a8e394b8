# SPDX-License-Identifier: Apache-2.0
dt_tests += tests/metrics/test_record
tests_metrics_test_record_SOURCES = tests/metrics/test_record.c
