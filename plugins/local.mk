# SPDX-License-Identifier: Apache-2.0
# Environments and data sources, one folder each; the built module lies in plugins/ itself:
#
# plugin_LTLIBRARIES += plugins/data_example.la
# plugins_data_example_la_SOURCES = plugins/data_example/data_example.c
# plugins_data_example_la_CPPFLAGS = $(PLUGIN_CPPFLAGS) -DDT_PLUGIN_NAME=data_example
# plugins_data_example_la_CFLAGS = $(PLUGIN_CFLAGS)
# plugins_data_example_la_LDFLAGS = $(PLUGIN_LINK)
# plugins_data_example_la_LIBADD = -lm
