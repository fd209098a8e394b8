# SPDX-License-Identifier: Apache-2.0
dt_tests += tests/metrics/test_events tests/metrics/test_record
tests_metrics_test_record_SOURCES = tests/metrics/test_record.c
dt_scripts += tests/metrics/events.sh
EXTRA_DIST += tests/metrics/check_events.py
tests/metrics/events.log: dtrain $(plugin_LTLIBRARIES) share/demo.store/store.json
