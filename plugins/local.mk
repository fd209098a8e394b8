# SPDX-License-Identifier: Apache-2.0
# Environments and data sources, one folder each; the built module lies in plugins/ itself.
plugin_LTLIBRARIES += plugins/data_trajectory.la

plugins_data_trajectory_la_SOURCES = plugins/data_trajectory/data_trajectory.c plugins/data_trajectory/folds.c \
    plugins/data_trajectory/folds.h
plugins_data_trajectory_la_CPPFLAGS = $(PLUGIN_CPPFLAGS) -DDT_PLUGIN_NAME=data_trajectory
plugins_data_trajectory_la_CFLAGS = $(PLUGIN_CFLAGS)
plugins_data_trajectory_la_LDFLAGS = $(PLUGIN_LINK)
plugins_data_trajectory_la_LIBADD = -lm
