# SPDX-License-Identifier: Apache-2.0
dt_whole_run_scripts += tests/plugins/template.sh
dt_scripts += tests/plugins/ipp.sh
dt_whole_run_scripts += tests/plugins/sumo_outside.sh
dt_scripts += tests/plugins/formulas.sh tests/plugins/transfer.sh tests/plugins/nets.sh
tests/plugins/ipp.log tests/plugins/sumo_outside.log tests/plugins/formulas.log tests/plugins/transfer.log tests/plugins/nets.log: dtrain $(plugin_LTLIBRARIES)
dt_whole_run_scripts += tests/plugins/env_gym.sh tests/plugins/env_gym_real.sh
EXTRA_DIST += tests/plugins/gym.inc tests/fixtures/gym/worlds.py
tests/plugins/env_gym.log tests/plugins/env_gym_real.log: dtrain $(plugin_LTLIBRARIES) gym-of-build
trajectory_headers = tests/plugins/trajectory_bench.h tests/plugins/trajectory_recording.h
dt_tests += tests/plugins/test_data_trajectory
tests_plugins_test_data_trajectory_SOURCES = tests/plugins/test_data_trajectory.c $(trajectory_headers)
tests_plugins_test_data_trajectory_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
tests_plugins_test_data_trajectory_LDADD = $(mock_la) plugins/traffic/libdttraffic.la core/libdtcore.la $(CMOCKA_LIBS) -ldl -lm
dt_tests += tests/plugins/test_data_danger
tests_plugins_test_data_danger_SOURCES = tests/plugins/test_data_danger.c $(trajectory_headers)
tests_plugins_test_data_danger_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
tests_plugins_test_data_danger_LDADD = $(mock_la) plugins/traffic/libdttraffic.la core/libdtcore.la $(CMOCKA_LIBS) -ldl -lm
dt_tests += tests/plugins/test_data_packed
tests_plugins_test_data_packed_SOURCES = tests/plugins/test_data_packed.c $(trajectory_headers)
tests_plugins_test_data_packed_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
tests_plugins_test_data_packed_LDADD = $(mock_la) plugins/traffic/libdttraffic.la core/libdtcore.la $(CMOCKA_LIBS) -ldl -lm
dt_tests += tests/plugins/test_data_statistics
tests_plugins_test_data_statistics_SOURCES = tests/plugins/test_data_statistics.c $(trajectory_headers)
tests_plugins_test_data_statistics_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
tests_plugins_test_data_statistics_LDADD = $(mock_la) plugins/traffic/libdttraffic.la core/libdtcore.la $(CMOCKA_LIBS) -ldl -lm
dt_tests += tests/plugins/test_data_regions
tests_plugins_test_data_regions_SOURCES = tests/plugins/test_data_regions.c tests/plugins/trajectory_bench.h
tests_plugins_test_data_regions_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
tests_plugins_test_data_regions_LDADD = $(mock_la) plugins/traffic/libdttraffic.la core/libdtcore.la $(CMOCKA_LIBS) -ldl -lm
dt_tests += tests/plugins/test_data_noise
tests_plugins_test_data_noise_SOURCES = tests/plugins/test_data_noise.c plugins/data_trajectory/augment.c \
	plugins/data_trajectory/weights.c
tests_plugins_test_data_noise_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
tests_plugins_test_data_noise_LDADD = $(mock_la) plugins/traffic/libdttraffic.la core/libdtcore.la $(CMOCKA_LIBS) -ldl -lm
dt_tests += tests/plugins/test_folds
tests_plugins_test_folds_SOURCES = tests/plugins/test_folds.c plugins/data_trajectory/folds.c
tests_plugins_test_folds_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
tests_plugins_test_folds_LDADD = $(mock_la) plugins/traffic/libdttraffic.la core/libdtcore.la $(CMOCKA_LIBS) -ldl -lm
dt_tests += tests/plugins/test_lanes
tests_plugins_test_lanes_SOURCES = tests/plugins/test_lanes.c tests/plugins/lanes_town.h \
	plugins/data_trajectory/lanes.c plugins/data_trajectory/following.c
tests_plugins_test_lanes_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
tests_plugins_test_lanes_LDADD = $(mock_la) plugins/traffic/libdttraffic.la core/libdtcore.la $(CMOCKA_LIBS) -ldl -lm
dt_tests += tests/plugins/test_env_cartpole
tests_plugins_test_env_cartpole_SOURCES = tests/plugins/test_env_cartpole.c tests/plugins/env_rig.h
tests_plugins_test_env_cartpole_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
tests_plugins_test_env_cartpole_LDADD = $(mock_la) $(CMOCKA_LIBS) -ldl -lm
dt_tests += tests/plugins/test_env_constrained
tests_plugins_test_env_constrained_SOURCES = tests/plugins/test_env_constrained.c tests/plugins/env_rig.h
tests_plugins_test_env_constrained_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
tests_plugins_test_env_constrained_LDADD = $(mock_la) $(CMOCKA_LIBS) -ldl -lm
dt_tests += tests/plugins/test_ipp_field
tests_plugins_test_ipp_field_SOURCES = tests/plugins/test_ipp_field.c $(ipp_map_sources)
tests_plugins_test_ipp_field_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
tests_plugins_test_ipp_field_LDADD = $(mock_la) $(CMOCKA_LIBS) -ldl -lm
dt_tests += tests/plugins/test_env_ipp
tests_plugins_test_env_ipp_SOURCES = tests/plugins/test_env_ipp.c $(ipp_map_sources) $(ipp_place_sources)
tests_plugins_test_env_ipp_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
tests_plugins_test_env_ipp_LDADD = $(mock_la) $(CMOCKA_LIBS) -ldl -lm
dt_tests += tests/plugins/test_env_lqr
tests_plugins_test_env_lqr_SOURCES = tests/plugins/test_env_lqr.c tests/plugins/env_rig.h
tests_plugins_test_env_lqr_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
tests_plugins_test_env_lqr_LDADD = $(mock_la) $(CMOCKA_LIBS) -ldl -lm
dt_tests += tests/plugins/test_env_matrix
tests_plugins_test_env_matrix_SOURCES = tests/plugins/test_env_matrix.c
tests_plugins_test_env_matrix_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
tests_plugins_test_env_matrix_LDADD = $(mock_la) $(CMOCKA_LIBS) -ldl -lm
dt_tests += tests/plugins/test_env_pendulum
tests_plugins_test_env_pendulum_SOURCES = tests/plugins/test_env_pendulum.c tests/plugins/env_rig.h
tests_plugins_test_env_pendulum_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
tests_plugins_test_env_pendulum_LDADD = $(mock_la) $(CMOCKA_LIBS) -ldl -lm
dt_tests += tests/plugins/test_env_tmaze
tests_plugins_test_env_tmaze_SOURCES = tests/plugins/test_env_tmaze.c tests/plugins/env_rig.h
tests_plugins_test_env_tmaze_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
tests_plugins_test_env_tmaze_LDADD = $(mock_la) $(CMOCKA_LIBS) -ldl -lm
dt_tests += tests/plugins/test_sumo_signal
tests_plugins_test_sumo_signal_SOURCES = tests/plugins/test_sumo_signal.c plugins/env_sumo/signal.c \
    plugins/env_sumo/measure.c
tests_plugins_test_sumo_signal_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests $(signals_cppflags)
tests_plugins_test_sumo_signal_LDADD = $(CMOCKA_LIBS) -lm
dt_tests += tests/plugins/test_env_sumo
tests_plugins_test_env_sumo_SOURCES = tests/plugins/test_env_sumo.c tests/plugins/sumo_folder.h \
	tests/plugins/sumo_pair.h
tests_plugins_test_env_sumo_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
tests_plugins_test_env_sumo_LDADD = $(mock_la) plugins/traffic/libdttraffic.la core/libdtcore.la $(CMOCKA_LIBS) -ldl -lm
dt_tests += tests/plugins/test_env_sumo_logs
tests_plugins_test_env_sumo_logs_SOURCES = tests/plugins/test_env_sumo_logs.c tests/plugins/sumo_folder.h \
	tests/plugins/sumo_pair.h
tests_plugins_test_env_sumo_logs_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
tests_plugins_test_env_sumo_logs_LDADD = $(mock_la) plugins/traffic/libdttraffic.la core/libdtcore.la $(CMOCKA_LIBS) -ldl -lm
dt_tests += tests/plugins/test_env_sumo_vehicles
tests_plugins_test_env_sumo_vehicles_SOURCES = tests/plugins/test_env_sumo_vehicles.c tests/plugins/sumo_folder.h
tests_plugins_test_env_sumo_vehicles_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
tests_plugins_test_env_sumo_vehicles_LDADD = $(mock_la) plugins/traffic/libdttraffic.la core/libdtcore.la $(CMOCKA_LIBS) -ldl -lm
dt_tests += tests/plugins/test_shapes
tests_plugins_test_shapes_SOURCES = tests/plugins/test_shapes.c tests/plugins/sumo_folder.h
tests_plugins_test_shapes_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
tests_plugins_test_shapes_LDADD = $(mock_la) plugins/traffic/libdttraffic.la core/libdtcore.la $(CMOCKA_LIBS) -ldl -lm
shapes = merge shared same tie turns tram crossing
EXTRA_DIST += tests/fixtures/shapes/make.sh tests/fixtures/shapes/trams.rou.xml \
    $(foreach s,$(shapes),$(foreach e,nod.xml edg.xml con.xml tll.xml net.xml rou.xml sumocfg,tests/fixtures/shapes/$(s).$(e)))
EXTRA_DIST += tests/fixtures/sumo/pair.edg.xml tests/fixtures/sumo/pair.nod.xml tests/fixtures/sumo/pair.rou.xml \
    tests/fixtures/sumo/pair.sumocfg tests/fixtures/sumo/road.edg.xml tests/fixtures/sumo/road.nod.xml \
    tests/fixtures/sumo/road.rou.xml tests/fixtures/sumo/road.sumocfg
dt_tests += tests/plugins/test_formula
tests_plugins_test_formula_SOURCES = tests/plugins/test_formula.c $(signals_sources)
tests_plugins_test_formula_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests $(signals_cppflags)
tests_plugins_test_formula_LDADD = $(mock_la) $(CMOCKA_LIBS) -ldl -lm
