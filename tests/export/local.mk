# SPDX-License-Identifier: Apache-2.0
dt_tests += tests/export/test_policy
tests_export_test_policy_SOURCES = tests/export/test_policy.c core/export/policy.c
dt_scripts += tests/export/export.sh
tests_export_test_policy_CFLAGS = $(AM_CFLAGS) # an object of its own: the library's is made by libtool
dt_tests += tests/export/test_policy_check
tests_export_test_policy_check_SOURCES = tests/export/test_policy_check.c core/export/policy.c
tests_export_test_policy_check_CFLAGS = $(AM_CFLAGS)
dt_scripts += tests/export/cloner.sh
check_LTLIBRARIES += tests/export/cloner.la
tests_export_cloner_la_SOURCES = tests/export/cloner.c
tests_export_cloner_la_CPPFLAGS = $(PLUGIN_CPPFLAGS) -DDT_PLUGIN_NAME=cloner
tests_export_cloner_la_CFLAGS = $(PLUGIN_CFLAGS)
tests_export_cloner_la_LDFLAGS = -module -avoid-version -shared -rpath /nowhere
tests/export/cloner.log: dtrain $(plugin_LTLIBRARIES) share/demo.store/store.json
