# SPDX-License-Identifier: Apache-2.0
dt_scripts += tests/plugins/template.sh
dt_tests += tests/plugins/test_data_trajectory
tests_plugins_test_data_trajectory_SOURCES = tests/plugins/test_data_trajectory.c $(mock_sources)
tests_plugins_test_data_trajectory_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
tests_plugins_test_data_trajectory_LDADD = core/libdtcore.la $(CMOCKA_LIBS) -ldl -lm
dt_tests += tests/plugins/test_folds
tests_plugins_test_folds_SOURCES = tests/plugins/test_folds.c plugins/data_trajectory/folds.c $(mock_sources)
tests_plugins_test_folds_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
tests_plugins_test_folds_LDADD = core/libdtcore.la $(CMOCKA_LIBS) -ldl -lm
dt_tests += tests/plugins/test_env_cartpole
tests_plugins_test_env_cartpole_SOURCES = tests/plugins/test_env_cartpole.c tests/plugins/env_rig.h $(mock_sources)
tests_plugins_test_env_cartpole_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
tests_plugins_test_env_cartpole_LDADD = $(CMOCKA_LIBS) -ldl -lm
dt_tests += tests/plugins/test_env_pendulum
tests_plugins_test_env_pendulum_SOURCES = tests/plugins/test_env_pendulum.c tests/plugins/env_rig.h $(mock_sources)
tests_plugins_test_env_pendulum_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
tests_plugins_test_env_pendulum_LDADD = $(CMOCKA_LIBS) -ldl -lm
