# SPDX-License-Identifier: Apache-2.0
plugin_LTLIBRARIES += plugins/env_traffic.la

# The simulation without the interface to the host; the plugin, tests and benchmarks link it.
traffic_la = plugins/env_traffic/libtraffic.la
EXTRA_LTLIBRARIES += $(traffic_la)
plugins_env_traffic_libtraffic_la_SOURCES = \
	plugins/env_traffic/change.c plugins/env_traffic/change.h \
	plugins/env_traffic/demand.c plugins/env_traffic/demand.h \
	plugins/env_traffic/follow.h \
	plugins/env_traffic/junction.c plugins/env_traffic/junction.h \
	plugins/env_traffic/move.c \
	plugins/env_traffic/history.c plugins/env_traffic/history.h \
	plugins/env_traffic/net.c plugins/env_traffic/net.h \
	plugins/env_traffic/netfile.c plugins/env_traffic/netfile.h \
	plugins/env_traffic/place.c \
	plugins/env_traffic/plan.c plugins/env_traffic/plan.h plugins/env_traffic/plan_file.h \
	plugins/env_traffic/plan_deferred.c plugins/env_traffic/plan_route.c plugins/env_traffic/plan_type.c \
	plugins/env_traffic/plan_vehicle.c \
	plugins/env_traffic/route.c plugins/env_traffic/route.h \
	plugins/env_traffic/scenario.c plugins/env_traffic/scenario_grid.c plugins/env_traffic/scenario_net.c \
	plugins/env_traffic/signal.c plugins/env_traffic/signal.h \
	plugins/env_traffic/sim.c plugins/env_traffic/sim.h \
	plugins/env_traffic/xml.c plugins/env_traffic/xml.h
traffic_cppflags = $(EXPAT_CFLAGS) $(ZLIB_CFLAGS) $(signals_cppflags)
traffic_libs = $(EXPAT_LIBS) $(ZLIB_LIBS) -lm
# the loops over lanes are written to be vectorised
traffic_cflags = -O3

plugins_env_traffic_libtraffic_la_CPPFLAGS = $(PLUGIN_CPPFLAGS) $(traffic_cppflags)
plugins_env_traffic_libtraffic_la_CFLAGS = $(PLUGIN_CFLAGS) $(traffic_cflags)

plugins_env_traffic_la_SOURCES = plugins/env_traffic/env_traffic.c \
	plugins/env_traffic/detect.c plugins/env_traffic/detect.h \
	plugins/env_traffic/scene.c plugins/env_traffic/scene.h \
	plugins/env_traffic/measure.c plugins/env_traffic/measure.h \
	plugins/env_traffic/observe.c plugins/env_traffic/observe.h \
	plugins/env_traffic/options.c plugins/env_traffic/options.h $(signals_sources)
plugins_env_traffic_la_CPPFLAGS = $(PLUGIN_CPPFLAGS) $(traffic_cppflags) -DDT_PLUGIN_NAME=env_traffic
plugins_env_traffic_la_CFLAGS = $(PLUGIN_CFLAGS) $(traffic_cflags)
plugins_env_traffic_la_LDFLAGS = $(PLUGIN_LINK)
plugins_env_traffic_la_LIBADD = $(traffic_la) $(traffic_libs)
