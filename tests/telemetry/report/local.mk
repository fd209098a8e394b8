# SPDX-License-Identifier: Apache-2.0
dt_tests += tests/telemetry/report/test_iqm tests/telemetry/report/test_records tests/telemetry/report/test_scale tests/telemetry/report/test_state tests/telemetry/report/test_film tests/telemetry/report/test_watch
tests_telemetry_report_test_iqm_SOURCES = tests/telemetry/report/test_iqm.c
tests_telemetry_report_test_records_SOURCES = tests/telemetry/report/test_records.c tests/telemetry/report/folder.h
tests_telemetry_report_test_scale_SOURCES = tests/telemetry/report/test_scale.c
tests_telemetry_report_test_state_SOURCES = tests/telemetry/report/test_state.c tests/telemetry/report/folder.h
tests_telemetry_report_test_film_SOURCES = tests/telemetry/report/test_film.c
tests_telemetry_report_test_watch_SOURCES = tests/telemetry/report/test_watch.c tests/telemetry/report/folder.h
tests_telemetry_report_test_records_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
tests_telemetry_report_test_state_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
tests_telemetry_report_test_watch_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
dt_whole_run_scripts += tests/telemetry/report/page.sh
dt_scripts += tests/telemetry/report/baselines.sh tests/telemetry/report/render.sh tests/telemetry/report/runs.sh
# in a real browser; the gate has a stage for it
dt_long_scripts += tests/telemetry/report/browser.sh
EXTRA_DIST += tests/telemetry/report/browser.html tests/telemetry/report/check_film.py tests/telemetry/report/check_page.py
tests/telemetry/report/baselines.log tests/telemetry/report/browser.log tests/telemetry/report/page.log tests/telemetry/report/render.log tests/telemetry/report/runs.log: dtrain $(plugin_LTLIBRARIES) share/demo.store/store.json
