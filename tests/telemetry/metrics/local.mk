# SPDX-License-Identifier: Apache-2.0
dt_tests += tests/telemetry/metrics/test_events tests/telemetry/metrics/test_record tests/telemetry/metrics/test_progress
tests_telemetry_metrics_test_record_SOURCES = tests/telemetry/metrics/test_record.c
tests_telemetry_metrics_test_progress_SOURCES = tests/telemetry/metrics/test_progress.c
dt_scripts += tests/telemetry/metrics/events.sh
EXTRA_DIST += tests/telemetry/metrics/check_events.py
tests/telemetry/metrics/events.log: dtrain $(plugin_LTLIBRARIES) share/demo.store/store.json
