# SPDX-License-Identifier: Apache-2.0
plugin_LTLIBRARIES += plugins/env_ipp.la

# what needs no host: tests compile it in
ipp_map_sources = plugins/env_ipp/belief.c plugins/env_ipp/belief.h plugins/env_ipp/field.c plugins/env_ipp/field.h
ipp_place_sources = plugins/env_ipp/place.c plugins/env_ipp/env_ipp.h
# the loops over the cells of a row are written to be vectorised
ipp_cflags = -O3

plugins_env_ipp_la_SOURCES = $(ipp_map_sources) $(ipp_place_sources) plugins/env_ipp/env_ipp.c \
	plugins/env_ipp/scene.c plugins/env_ipp/observe.c plugins/env_ipp/rule.c
plugins_env_ipp_la_CPPFLAGS = $(PLUGIN_CPPFLAGS) -DDT_PLUGIN_NAME=env_ipp
plugins_env_ipp_la_CFLAGS = $(PLUGIN_CFLAGS) $(ipp_cflags)
plugins_env_ipp_la_LDFLAGS = $(PLUGIN_LINK)
plugins_env_ipp_la_LIBADD = -lm
