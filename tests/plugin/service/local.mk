# SPDX-License-Identifier: Apache-2.0
dt_tests += tests/plugin/service/test_plugin_memory
dt_whole_run_scripts += tests/plugin/service/duel.sh
check_LTLIBRARIES += tests/plugin/service/duel.la
tests_plugin_service_duel_la_SOURCES = tests/plugin/service/duel.c
tests_plugin_service_duel_la_CPPFLAGS = $(PLUGIN_CPPFLAGS) -DDT_PLUGIN_NAME=duel
tests_plugin_service_duel_la_CFLAGS = $(PLUGIN_CFLAGS)
tests_plugin_service_duel_la_LDFLAGS = -module -avoid-version -shared -rpath /nowhere
tests/plugin/service/duel.log: dtrain tests/plugin/service/duel.la
dt_scripts += tests/plugin/service/fitter.sh
check_LTLIBRARIES += tests/plugin/service/fitter.la
tests_plugin_service_fitter_la_SOURCES = tests/plugin/service/fitter.c
tests_plugin_service_fitter_la_CPPFLAGS = $(PLUGIN_CPPFLAGS) -DDT_PLUGIN_NAME=fitter
tests_plugin_service_fitter_la_CFLAGS = $(PLUGIN_CFLAGS)
tests_plugin_service_fitter_la_LDFLAGS = -module -avoid-version -shared -rpath /nowhere
tests/plugin/service/fitter.log: dtrain tests/plugin/service/fitter.la
dt_whole_run_scripts += tests/plugin/service/normed.sh
check_LTLIBRARIES += tests/plugin/service/normed.la
tests_plugin_service_normed_la_SOURCES = tests/plugin/service/normed.c
tests_plugin_service_normed_la_CPPFLAGS = $(PLUGIN_CPPFLAGS) -I$(top_srcdir)/models -DDT_PLUGIN_NAME=normed
tests_plugin_service_normed_la_CFLAGS = $(PLUGIN_CFLAGS)
tests_plugin_service_normed_la_LDFLAGS = -module -avoid-version -shared -rpath /nowhere
tests/plugin/service/normed.log: dtrain $(plugin_LTLIBRARIES) tests/plugin/service/normed.la
dt_scripts += tests/plugin/service/bars.sh
tests/plugin/service/bars.log: dtrain examples/bars.la
dt_scripts += tests/plugin/service/hang.sh
tests/plugin/service/hang.log: dtrain tests/plugin/service/fitter.la tests/run/stubborn.la $(plugin_LTLIBRARIES)
dt_scripts += tests/plugin/service/gumbel.sh
tests/plugin/service/gumbel.log: dtrain $(plugin_LTLIBRARIES) examples/gumbel_softmax.la
dt_scripts += tests/plugin/service/qmix.sh
tests/plugin/service/qmix.log: dtrain $(plugin_LTLIBRARIES) examples/qmix.la
dt_scripts += tests/plugin/service/dreamer.sh
tests/plugin/service/dreamer.log: dtrain $(plugin_LTLIBRARIES) examples/dreamer.la
dt_scripts += tests/plugin/service/mbpo.sh
tests/plugin/service/mbpo.log: dtrain $(plugin_LTLIBRARIES) examples/mbpo.la
