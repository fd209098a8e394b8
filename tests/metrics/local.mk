# SPDX-License-Identifier: Apache-2.0
dt_tests += tests/metrics/test_events tests/metrics/test_record tests/metrics/test_progress
tests_metrics_test_record_SOURCES = tests/metrics/test_record.c
tests_metrics_test_progress_SOURCES = tests/metrics/test_progress.c
dt_scripts += tests/metrics/events.sh
EXTRA_DIST += tests/metrics/check_events.py
tests/metrics/events.log: dtrain $(plugin_LTLIBRARIES) share/demo.store/store.json
