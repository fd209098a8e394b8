# SPDX-License-Identifier: Apache-2.0
# Model components, one folder each:
#
# plugin_LTLIBRARIES += models/example_mlp.la
# models_example_mlp_la_SOURCES = models/example_mlp/example_mlp.c
# models_example_mlp_la_CPPFLAGS = $(PLUGIN_CPPFLAGS) -DDT_PLUGIN_NAME=example_mlp
# models_example_mlp_la_CFLAGS = $(PLUGIN_CFLAGS)
# models_example_mlp_la_LDFLAGS = $(PLUGIN_LINK)
# models_example_mlp_la_LIBADD = -lm
