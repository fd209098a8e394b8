# SPDX-License-Identifier: Apache-2.0
# Training phases. A phase is one source file, or a folder when it outgrows it:
#
# plugin_LTLIBRARIES += phases/phase0_example.la
# phases_phase0_example_la_SOURCES = phases/phase0_example.c
# phases_phase0_example_la_CPPFLAGS = $(PLUGIN_CPPFLAGS) -DDT_PLUGIN_NAME=phase0_example
# phases_phase0_example_la_CFLAGS = $(PLUGIN_CFLAGS)
# phases_phase0_example_la_LDFLAGS = $(PLUGIN_LINK)
# phases_phase0_example_la_LIBADD = -lm
