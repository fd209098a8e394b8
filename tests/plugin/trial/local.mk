# SPDX-License-Identifier: Apache-2.0
dt_tests += tests/plugin/trial/test_trial
dt_scripts += tests/plugin/trial/faults.sh
check_LTLIBRARIES += tests/plugin/trial/faulty.la tests/plugin/trial/stored.la
tests_plugin_trial_faulty_la_SOURCES = tests/plugin/trial/faulty.c
tests_plugin_trial_faulty_la_CPPFLAGS = $(PLUGIN_CPPFLAGS) -DDT_PLUGIN_NAME=faulty
tests_plugin_trial_faulty_la_CFLAGS = $(PLUGIN_CFLAGS)
tests_plugin_trial_faulty_la_LDFLAGS = -module -avoid-version -shared -rpath /nowhere
tests_plugin_trial_stored_la_SOURCES = tests/plugin/trial/stored.c
tests_plugin_trial_stored_la_CPPFLAGS = $(PLUGIN_CPPFLAGS) -DDT_PLUGIN_NAME=stored
tests_plugin_trial_stored_la_CFLAGS = $(PLUGIN_CFLAGS)
tests_plugin_trial_stored_la_LDFLAGS = -module -avoid-version -shared -rpath /nowhere
tests/plugin/trial/faults.log: dtrain $(plugin_LTLIBRARIES)
