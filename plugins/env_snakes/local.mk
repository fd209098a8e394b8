# SPDX-License-Identifier: Apache-2.0
plugin_LTLIBRARIES += plugins/env_snakes.la

# the game and the rules that play it: tests and benchmarks compile them in
snakes_sources = plugins/env_snakes/board.c plugins/env_snakes/board.h plugins/env_snakes/cells.h \
	plugins/env_snakes/observe.c plugins/env_snakes/observe.h \
	plugins/env_snakes/rivals.c plugins/env_snakes/rivals.h \
	plugins/env_snakes/schedule.c plugins/env_snakes/schedule.h

plugins_env_snakes_la_SOURCES = $(snakes_sources) plugins/env_snakes/env_snakes.c \
	plugins/env_snakes/scene.c plugins/env_snakes/scene.h
plugins_env_snakes_la_CPPFLAGS = $(PLUGIN_CPPFLAGS) -DDT_PLUGIN_NAME=env_snakes
plugins_env_snakes_la_CFLAGS = $(PLUGIN_CFLAGS)
plugins_env_snakes_la_LDFLAGS = $(PLUGIN_LINK)
plugins_env_snakes_la_LIBADD = -lm
