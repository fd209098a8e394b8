# SPDX-License-Identifier: Apache-2.0
dt_tests += tests/host/test_doctor tests/host/test_evaluation tests/host/test_fit tests/host/test_memory_watch tests/host/test_plugin_memory tests/host/test_report tests/host/test_tools tests/host/test_trial
tests_host_test_doctor_SOURCES = tests/host/test_doctor.c tests/device/host_device.c tests/device/host_device.h
tests_host_test_evaluation_SOURCES = tests/host/test_evaluation.c
tests_host_test_fit_SOURCES = tests/host/test_fit.c
tests_host_test_memory_watch_SOURCES = tests/host/test_memory_watch.c
tests_host_test_report_SOURCES = tests/host/test_report.c
tests_host_test_doctor_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
dt_scripts += tests/host/again.sh tests/host/cli.sh tests/host/diskfull.sh tests/host/faults.sh tests/host/kills.sh tests/host/logs.sh \
	tests/host/manual.sh tests/host/memory.sh tests/host/phases.sh tests/host/profiles.sh tests/host/resume.sh tests/host/signals.sh tests/host/trace.sh
EXTRA_DIST += tests/host/check_trace.py
tests/host/manual.log: dtrain core/host/dtrain.1 core/host/dtrain.bash
tests/host/again.log tests/host/cli.log tests/host/diskfull.log tests/host/faults.log tests/host/kills.log tests/host/memory.log \
	tests/host/logs.log tests/host/phases.log tests/host/profiles.log tests/host/resume.log tests/host/signals.log \
	tests/host/trace.log: dtrain $(plugin_LTLIBRARIES) share/demo.store/store.json
dt_scripts += tests/host/numbers.sh
tests/host/numbers.log: dtrain $(plugin_LTLIBRARIES) share/demo.store/store.json

dt_scripts += tests/host/trust.sh
check_LTLIBRARIES += tests/host/intruder.la
tests_host_intruder_la_SOURCES = tests/host/intruder.c
tests_host_intruder_la_LDFLAGS = -module -avoid-version -shared -rpath /nowhere
tests/host/trust.log: dtrain $(plugin_LTLIBRARIES) share/demo.store/store.json

dt_scripts += tests/host/fit.sh
tests/host/fit.log: dtrain $(plugin_LTLIBRARIES) share/demo.store/store.json
dt_scripts += tests/host/foreign.sh
tests/host/foreign.log: dtrain $(plugin_LTLIBRARIES) share/demo.store/store.json
dt_scripts += tests/host/terminal.sh
tests/host/terminal.log: dtrain $(plugin_LTLIBRARIES) share/demo.store/store.json



# an environment that hangs, and what ends it
check_LTLIBRARIES += tests/host/stubborn.la
tests_host_stubborn_la_SOURCES = tests/host/stubborn.c
tests_host_stubborn_la_CPPFLAGS = -D_GNU_SOURCE $(PLUGIN_CPPFLAGS) -DDT_PLUGIN_NAME=stubborn
tests_host_stubborn_la_CFLAGS = $(PLUGIN_CFLAGS)
tests_host_stubborn_la_LDFLAGS = $(PLUGIN_LINK) -rpath /nowhere
dt_scripts += tests/host/workers.sh
tests/host/workers.log: dtrain $(plugin_LTLIBRARIES) tests/host/stubborn.la share/demo.store/store.json
dt_scripts += tests/host/judged.sh
check_LTLIBRARIES += tests/host/helped.la
tests_host_helped_la_SOURCES = tests/host/helped.c
tests_host_helped_la_LDFLAGS = -module -avoid-version -shared -rpath /nowhere
tests/host/judged.log: dtrain $(plugin_LTLIBRARIES) tests/host/helped.la
