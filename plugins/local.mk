# SPDX-License-Identifier: Apache-2.0
# Environments and data sources, one folder each; the built module lies in plugins/ itself.
plugin_LTLIBRARIES += \
	plugins/data_trajectory.la \
	plugins/env_cartpole.la \
	plugins/env_constrained.la \
	plugins/env_lqr.la \
	plugins/env_matrix.la \
	plugins/env_pendulum.la \
	plugins/env_sumo.la \
	plugins/env_tmaze.la

trajectory_sources = plugins/data_trajectory/data_trajectory.c plugins/data_trajectory/windows.h \
	plugins/data_trajectory/splits.c plugins/data_trajectory/reading.c plugins/data_trajectory/graphs.c \
	plugins/data_trajectory/vehicles.c plugins/data_trajectory/folds.c \
	plugins/data_trajectory/folds.h plugins/data_trajectory/danger.c plugins/data_trajectory/danger.h \
	plugins/data_trajectory/augment.c plugins/data_trajectory/augment.h \
	plugins/data_trajectory/region.h plugins/data_trajectory/slices.h plugins/data_trajectory/tracks.h \
	plugins/data_trajectory/weights.c plugins/data_trajectory/weights.h plugins/data_trajectory/statistics.c \
	plugins/data_trajectory/lanes.c plugins/data_trajectory/lanes.h \
	plugins/data_trajectory/following.c plugins/data_trajectory/following.h
plugins_data_trajectory_la_SOURCES = $(trajectory_sources)
plugins_data_trajectory_la_CPPFLAGS = $(PLUGIN_CPPFLAGS) -DDT_PLUGIN_NAME=data_trajectory
plugins_data_trajectory_la_CFLAGS = $(PLUGIN_CFLAGS)
plugins_data_trajectory_la_LDFLAGS = $(PLUGIN_LINK)
plugins_data_trajectory_la_LIBADD = -lm

plugins_env_cartpole_la_SOURCES = plugins/env_cartpole/env_cartpole.c plugins/env_cartpole/cartpole.h
plugins_env_cartpole_la_CPPFLAGS = $(PLUGIN_CPPFLAGS) -DDT_PLUGIN_NAME=env_cartpole
plugins_env_cartpole_la_CFLAGS = $(PLUGIN_CFLAGS)
plugins_env_cartpole_la_LDFLAGS = $(PLUGIN_LINK)
plugins_env_cartpole_la_LIBADD = -lm

plugins_env_constrained_la_SOURCES = plugins/env_constrained/env_constrained.c
plugins_env_constrained_la_CPPFLAGS = $(PLUGIN_CPPFLAGS) -DDT_PLUGIN_NAME=env_constrained
plugins_env_constrained_la_CFLAGS = $(PLUGIN_CFLAGS)
plugins_env_constrained_la_LDFLAGS = $(PLUGIN_LINK)
plugins_env_constrained_la_LIBADD = -lm

plugins_env_lqr_la_SOURCES = plugins/env_lqr/env_lqr.c plugins/env_lqr/lqr.h
plugins_env_lqr_la_CPPFLAGS = $(PLUGIN_CPPFLAGS) -DDT_PLUGIN_NAME=env_lqr
plugins_env_lqr_la_CFLAGS = $(PLUGIN_CFLAGS)
plugins_env_lqr_la_LDFLAGS = $(PLUGIN_LINK)
plugins_env_lqr_la_LIBADD = -lm

plugins_env_matrix_la_SOURCES = plugins/env_matrix/env_matrix.c
plugins_env_matrix_la_CPPFLAGS = $(PLUGIN_CPPFLAGS) -DDT_PLUGIN_NAME=env_matrix
plugins_env_matrix_la_CFLAGS = $(PLUGIN_CFLAGS)
plugins_env_matrix_la_LDFLAGS = $(PLUGIN_LINK)
plugins_env_matrix_la_LIBADD = -lm

plugins_env_pendulum_la_SOURCES = plugins/env_pendulum/env_pendulum.c plugins/env_pendulum/pendulum.h
plugins_env_pendulum_la_CPPFLAGS = $(PLUGIN_CPPFLAGS) -DDT_PLUGIN_NAME=env_pendulum
plugins_env_pendulum_la_CFLAGS = $(PLUGIN_CFLAGS)
plugins_env_pendulum_la_LDFLAGS = $(PLUGIN_LINK)
plugins_env_pendulum_la_LIBADD = -lm

plugins_env_tmaze_la_SOURCES = plugins/env_tmaze/env_tmaze.c
plugins_env_tmaze_la_CPPFLAGS = $(PLUGIN_CPPFLAGS) -DDT_PLUGIN_NAME=env_tmaze
plugins_env_tmaze_la_CFLAGS = $(PLUGIN_CFLAGS)
plugins_env_tmaze_la_LDFLAGS = $(PLUGIN_LINK)
plugins_env_tmaze_la_LIBADD = -lm

# what environments with traffic signals share
signals_sources = plugins/signals/columns.def plugins/signals/formula.c plugins/signals/formula.h plugins/signals/letters.h \
	plugins/signals/ports.def plugins/signals/quantities.def plugins/signals/table.c plugins/signals/table.h
signals_cppflags = -I$(top_srcdir)/plugins/signals

include plugins/env_gym/local.mk
include plugins/env_ipp/local.mk
include plugins/env_snakes/local.mk
include plugins/env_sumo/local.mk
include plugins/env_traffic/local.mk
