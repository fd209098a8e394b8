# SPDX-License-Identifier: Apache-2.0
dt_tests += tests/report/test_iqm tests/report/test_records tests/report/test_scale tests/report/test_state tests/report/test_street tests/report/test_watch
tests_report_test_iqm_SOURCES = tests/report/test_iqm.c
tests_report_test_records_SOURCES = tests/report/test_records.c tests/report/folder.h
tests_report_test_scale_SOURCES = tests/report/test_scale.c
tests_report_test_state_SOURCES = tests/report/test_state.c tests/report/folder.h
tests_report_test_street_SOURCES = tests/report/test_street.c
tests_report_test_watch_SOURCES = tests/report/test_watch.c tests/report/folder.h
tests_report_test_records_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
tests_report_test_state_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
tests_report_test_watch_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
dt_whole_run_scripts += tests/report/page.sh
dt_scripts += tests/report/baselines.sh tests/report/render.sh tests/report/runs.sh
# in a real browser; the gate has a stage for it
dt_long_scripts += tests/report/browser.sh
EXTRA_DIST += tests/report/browser.html tests/report/check_film.py tests/report/check_page.py
tests/report/baselines.log tests/report/browser.log tests/report/page.log tests/report/render.log tests/report/runs.log: dtrain $(plugin_LTLIBRARIES) share/demo.store/store.json
