# SPDX-License-Identifier: Apache-2.0
# The simulation of plugins/env_traffic against theory (test_env: its face to the host).
dt_tests += tests/env_traffic/test_ring
tests_env_traffic_test_ring_SOURCES = tests/env_traffic/test_ring.c tests/env_traffic/rig.h
tests_env_traffic_test_ring_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests $(traffic_cppflags)
tests_env_traffic_test_ring_LDADD = $(traffic_la) $(mock_la) $(CMOCKA_LIBS) $(traffic_libs) -ldl
dt_tests += tests/env_traffic/test_env
tests_env_traffic_test_env_SOURCES = tests/env_traffic/test_env.c
tests_env_traffic_test_env_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
tests_env_traffic_test_env_LDADD = $(mock_la) plugins/traffic/libdttraffic.la core/libdtcore.la $(CMOCKA_LIBS) -ldl -lm
dt_tests += tests/env_traffic/test_roads
tests_env_traffic_test_roads_SOURCES = tests/env_traffic/test_roads.c tests/env_traffic/rig.h
tests_env_traffic_test_roads_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests $(traffic_cppflags)
tests_env_traffic_test_roads_LDADD = $(traffic_la) $(mock_la) $(CMOCKA_LIBS) $(traffic_libs) -ldl
dt_tests += tests/env_traffic/test_junctions
tests_env_traffic_test_junctions_SOURCES = tests/env_traffic/test_junctions.c tests/env_traffic/rig.h
tests_env_traffic_test_junctions_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests $(traffic_cppflags)
tests_env_traffic_test_junctions_LDADD = $(traffic_la) $(mock_la) $(CMOCKA_LIBS) $(traffic_libs) -ldl
dt_tests += tests/env_traffic/test_net
tests_env_traffic_test_net_SOURCES = tests/env_traffic/test_net.c tests/env_traffic/files.h tests/env_traffic/rig.h
tests_env_traffic_test_net_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests $(traffic_cppflags)
tests_env_traffic_test_net_LDADD = $(traffic_la) $(mock_la) $(CMOCKA_LIBS) $(traffic_libs) -ldl
dt_tests += tests/env_traffic/test_foreign
tests_env_traffic_test_foreign_SOURCES = tests/env_traffic/test_foreign.c tests/env_traffic/files.h \
	tests/env_traffic/rig.h
tests_env_traffic_test_foreign_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests $(traffic_cppflags)
tests_env_traffic_test_foreign_LDADD = $(traffic_la) $(mock_la) $(CMOCKA_LIBS) $(traffic_libs) -ldl
EXTRA_DIST += tests/fixtures/sumo/corner.net.xml tests/fixtures/sumo/corner.rou.xml
dt_tests += tests/env_traffic/test_flows
tests_env_traffic_test_flows_SOURCES = tests/env_traffic/test_flows.c tests/env_traffic/files.h \
	tests/env_traffic/rig.h
tests_env_traffic_test_flows_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests $(traffic_cppflags)
tests_env_traffic_test_flows_LDADD = $(traffic_la) $(mock_la) $(CMOCKA_LIBS) $(traffic_libs) -ldl
dt_tests += tests/env_traffic/test_rows
tests_env_traffic_test_rows_SOURCES = tests/env_traffic/test_rows.c tests/env_traffic/files.h \
	tests/env_traffic/rig.h
tests_env_traffic_test_rows_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests $(traffic_cppflags)
tests_env_traffic_test_rows_LDADD = $(traffic_la) $(mock_la) $(CMOCKA_LIBS) $(traffic_libs) -ldl
EXTRA_DIST += tests/env_traffic/rows.txt
dt_tests += tests/env_traffic/test_content
tests_env_traffic_test_content_SOURCES = tests/env_traffic/test_content.c tests/env_traffic/files.h \
	tests/env_traffic/rig.h
tests_env_traffic_test_content_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests $(traffic_cppflags)
tests_env_traffic_test_content_LDADD = $(traffic_la) $(mock_la) $(CMOCKA_LIBS) $(traffic_libs) -ldl
dt_tests += tests/env_traffic/test_yield
tests_env_traffic_test_yield_SOURCES = tests/env_traffic/test_yield.c tests/env_traffic/files.h \
	tests/env_traffic/rig.h
tests_env_traffic_test_yield_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests $(traffic_cppflags)
tests_env_traffic_test_yield_LDADD = $(traffic_la) $(mock_la) $(CMOCKA_LIBS) $(traffic_libs) -ldl
EXTRA_DIST += tests/fixtures/sumo/allway.net.xml tests/fixtures/sumo/cross.net.xml tests/fixtures/sumo/ramp.net.xml \
	tests/fixtures/sumo/rbl.net.xml \
	tests/fixtures/sumo/tee.net.xml
EXTRA_DIST += tests/env_traffic/flows.py tests/fixtures/sumo/flows.txt
dt_whole_run_scripts += tests/env_traffic/convert.sh tests/env_traffic/flows.sh
EXTRA_DIST += tests/fixtures/cityflow/flow.json tests/fixtures/cityflow/roadnet.json
dt_tests += tests/env_traffic/test_history
tests_env_traffic_test_history_SOURCES = tests/env_traffic/test_history.c tests/env_traffic/rig.h
tests_env_traffic_test_history_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests $(traffic_cppflags)
tests_env_traffic_test_history_LDADD = $(traffic_la) $(mock_la) $(CMOCKA_LIBS) $(traffic_libs) -ldl
dt_tests += tests/env_traffic/test_pairs
tests_env_traffic_test_pairs_SOURCES = tests/env_traffic/test_pairs.c tests/env_traffic/rig.h \
	plugins/env_traffic/detect.c plugins/env_traffic/observe.c $(signals_sources)
tests_env_traffic_test_pairs_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests $(traffic_cppflags)
tests_env_traffic_test_pairs_LDADD = $(traffic_la) $(mock_la) plugins/traffic/libdttraffic.la core/libdtcore.la $(CMOCKA_LIBS) $(traffic_libs) -ldl
dt_tests += tests/env_traffic/test_gaps
tests_env_traffic_test_gaps_SOURCES = tests/env_traffic/test_gaps.c tests/env_traffic/rig.h \
	plugins/env_traffic/detect.c plugins/env_traffic/observe.c $(signals_sources)
tests_env_traffic_test_gaps_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests $(traffic_cppflags)
tests_env_traffic_test_gaps_LDADD = $(traffic_la) $(mock_la) $(CMOCKA_LIBS) $(traffic_libs) -ldl
