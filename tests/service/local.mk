# SPDX-License-Identifier: Apache-2.0
dt_tests += tests/service/test_plugin_memory
dt_whole_run_scripts += tests/service/duel.sh
check_LTLIBRARIES += tests/service/duel.la
tests_service_duel_la_SOURCES = tests/service/duel.c
tests_service_duel_la_CPPFLAGS = $(PLUGIN_CPPFLAGS) -DDT_PLUGIN_NAME=duel
tests_service_duel_la_CFLAGS = $(PLUGIN_CFLAGS)
tests_service_duel_la_LDFLAGS = -module -avoid-version -shared -rpath /nowhere
tests/service/duel.log: dtrain tests/service/duel.la
dt_scripts += tests/service/fitter.sh
check_LTLIBRARIES += tests/service/fitter.la
tests_service_fitter_la_SOURCES = tests/service/fitter.c
tests_service_fitter_la_CPPFLAGS = $(PLUGIN_CPPFLAGS) -DDT_PLUGIN_NAME=fitter
tests_service_fitter_la_CFLAGS = $(PLUGIN_CFLAGS)
tests_service_fitter_la_LDFLAGS = -module -avoid-version -shared -rpath /nowhere
tests/service/fitter.log: dtrain tests/service/fitter.la
