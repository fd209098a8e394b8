# SPDX-License-Identifier: Apache-2.0
# each includes the source that it tests
dt_tests += tests/rl/policy/test_wiring tests/rl/policy/test_record
tests_rl_policy_test_record_SOURCES = tests/rl/policy/test_record.c
tests_rl_policy_test_record_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
tests_rl_policy_test_record_LDADD = $(mock_la) plugins/traffic/libdttraffic.la core/libdtcore.la $(CMOCKA_LIBS) -ldl -lm
dt_tests += tests/rl/policy/test_rounds
tests_rl_policy_test_rounds_SOURCES = tests/rl/policy/test_rounds.c tests/mock/recorded.h
tests_rl_policy_test_rounds_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
dt_scripts += tests/rl/policy/wired.sh
check_LTLIBRARIES += tests/rl/policy/wired.la
tests_rl_policy_wired_la_SOURCES = tests/rl/policy/wired.c
tests_rl_policy_wired_la_CPPFLAGS = $(PLUGIN_CPPFLAGS) -DDT_PLUGIN_NAME=wired
tests_rl_policy_wired_la_CFLAGS = $(PLUGIN_CFLAGS)
tests_rl_policy_wired_la_LDFLAGS = -module -avoid-version -shared -rpath /nowhere
tests/rl/policy/wired.log: dtrain $(plugin_LTLIBRARIES) tests/rl/policy/wired.la
