# SPDX-License-Identifier: Apache-2.0
dt_tests += tests/host/test_doctor tests/host/test_evaluation tests/host/test_memory_watch tests/host/test_report tests/host/test_tools
tests_host_test_doctor_SOURCES = tests/host/test_doctor.c tests/device/host_device.c tests/device/host_device.h
tests_host_test_evaluation_SOURCES = tests/host/test_evaluation.c
tests_host_test_memory_watch_SOURCES = tests/host/test_memory_watch.c
tests_host_test_report_SOURCES = tests/host/test_report.c
tests_host_test_doctor_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
dt_scripts += tests/host/cli.sh tests/host/faults.sh tests/host/logs.sh tests/host/manual.sh tests/host/memory.sh \
	tests/host/phases.sh tests/host/profiles.sh tests/host/signals.sh tests/host/trace.sh
EXTRA_DIST += tests/host/check_trace.py
tests/host/manual.log: dtrain core/host/dtrain.1 core/host/dtrain.bash
tests/host/cli.log tests/host/faults.log tests/host/memory.log tests/host/logs.log tests/host/phases.log \
	tests/host/profiles.log tests/host/signals.log tests/host/trace.log: dtrain $(plugin_LTLIBRARIES) share/demo.store/store.json
