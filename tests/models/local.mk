# SPDX-License-Identifier: Apache-2.0
dt_tests += tests/models/test_models
tests_models_test_models_SOURCES = tests/models/test_models.c
tests_models_test_models_CPPFLAGS = $(mock_cppflags)
tests_models_test_models_LDADD = $(mock_la) $(mock_libs)

dt_tests += tests/models/test_model_graphs
tests_models_test_model_graphs_SOURCES = tests/models/test_model_graphs.c tests/models/bench.h
tests_models_test_model_graphs_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
tests_models_test_model_graphs_LDADD = $(mock_la) plugins/traffic/libdttraffic.la core/libdtcore.la $(CMOCKA_LIBS) -ldl

dt_tests += tests/models/test_normalised
tests_models_test_normalised_SOURCES = tests/models/test_normalised.c tests/models/bench.h
tests_models_test_normalised_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
tests_models_test_normalised_LDADD = $(mock_la) plugins/traffic/libdttraffic.la core/libdtcore.la $(CMOCKA_LIBS) -ldl

dt_tests += tests/models/test_controllers
tests_models_test_controllers_SOURCES = tests/models/test_controllers.c tests/models/bench.h
tests_models_test_controllers_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
tests_models_test_controllers_LDADD = $(mock_la) plugins/traffic/libdttraffic.la core/libdtcore.la $(CMOCKA_LIBS) -ldl -lm

dt_tests += tests/models/test_shield_barrier
tests_models_test_shield_barrier_SOURCES = tests/models/test_shield_barrier.c tests/models/bench.h
tests_models_test_shield_barrier_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
tests_models_test_shield_barrier_LDADD = $(mock_la) plugins/traffic/libdttraffic.la core/libdtcore.la $(CMOCKA_LIBS) -ldl -lm

dt_tests += tests/models/test_influence
tests_models_test_influence_SOURCES = tests/models/test_influence.c tests/models/bench.h
tests_models_test_influence_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
tests_models_test_influence_LDADD = $(mock_la) plugins/traffic/libdttraffic.la core/libdtcore.la $(CMOCKA_LIBS) -ldl -lm

dt_tests += tests/models/test_slots
tests_models_test_slots_SOURCES = tests/models/test_slots.c

dt_tests += tests/models/test_critics
tests_models_test_critics_SOURCES = tests/models/test_critics.c tests/models/bench.h
tests_models_test_critics_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
tests_models_test_critics_LDADD = $(mock_la) plugins/traffic/libdttraffic.la core/libdtcore.la $(CMOCKA_LIBS) -ldl -lm

dt_tests += tests/models/test_several_agents
tests_models_test_several_agents_SOURCES = tests/models/test_several_agents.c tests/models/bench.h
tests_models_test_several_agents_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
tests_models_test_several_agents_LDADD = $(mock_la) plugins/traffic/libdttraffic.la core/libdtcore.la $(CMOCKA_LIBS) -ldl -lm

dt_tests += tests/models/test_conv
tests_models_test_conv_SOURCES = tests/models/test_conv.c tests/models/bench.h
tests_models_test_conv_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
tests_models_test_conv_LDADD = $(mock_la) plugins/traffic/libdttraffic.la core/libdtcore.la $(CMOCKA_LIBS) -ldl -lm
