# SPDX-License-Identifier: Apache-2.0
# each includes the source that it tests
dt_tests += tests/policy/test_wiring tests/policy/test_foresight tests/policy/test_record
tests_policy_test_record_SOURCES = tests/policy/test_record.c
tests_policy_test_record_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
tests_policy_test_record_LDADD = $(mock_la) core/libdtcore.la $(CMOCKA_LIBS) -ldl -lm
dt_tests += tests/policy/test_rounds
tests_policy_test_rounds_SOURCES = tests/policy/test_rounds.c tests/mock/recorded.h
tests_policy_test_rounds_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
dt_scripts += tests/policy/wired.sh
check_LTLIBRARIES += tests/policy/wired.la
tests_policy_wired_la_SOURCES = tests/policy/wired.c
tests_policy_wired_la_CPPFLAGS = $(PLUGIN_CPPFLAGS) -DDT_PLUGIN_NAME=wired
tests_policy_wired_la_CFLAGS = $(PLUGIN_CFLAGS)
tests_policy_wired_la_LDFLAGS = -module -avoid-version -shared -rpath /nowhere
tests/policy/wired.log: dtrain $(plugin_LTLIBRARIES) tests/policy/wired.la
