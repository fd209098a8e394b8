# SPDX-License-Identifier: Apache-2.0
# The environment is plain C like every plugin; a module of its own, in C++, is linked with SUMO.
plugins_env_sumo_la_SOURCES = \
	plugins/env_sumo/doctor.c plugins/env_sumo/doctor.h \
	plugins/env_sumo/drivers.c plugins/env_sumo/drivers.h \
	plugins/env_sumo/env_sumo.c plugins/env_sumo/env_sumo.h \
	plugins/env_sumo/lights.c plugins/env_sumo/lights.h \
	plugins/env_sumo/measure.c plugins/env_sumo/measure.h \
	plugins/env_sumo/module.c plugins/env_sumo/module.h \
	plugins/env_sumo/options.def plugins/env_sumo/options.h \
	plugins/env_sumo/observe.c plugins/env_sumo/observe.h \
	plugins/env_sumo/scene.c plugins/env_sumo/scene.h \
	plugins/env_sumo/signal.c plugins/env_sumo/signal.h \
	plugins/env_sumo/sumo.h \
	plugins/env_sumo/history.c plugins/env_sumo/history.h \
	$(signals_sources)
plugins_env_sumo_la_CPPFLAGS = $(PLUGIN_CPPFLAGS) $(signals_cppflags) -D_GNU_SOURCE -DDT_PLUGIN_NAME=env_sumo -DMODULEDIR='"$(plugindir)/sumo"'
plugins_env_sumo_la_CFLAGS = $(PLUGIN_CFLAGS)
plugins_env_sumo_la_LDFLAGS = $(PLUGIN_LINK)
plugins_env_sumo_la_LIBADD = -ldl -lm
EXTRA_DIST += plugins/env_sumo/sumo.cpp plugins/env_sumo/config.hpp plugins/env_sumo/guard.hpp plugins/env_sumo/requests.hpp

if HAVE_SUMO
# in a folder of its own: the host opens everything beside plugins, and SUMO is large
sumodir = $(plugindir)/sumo
sumo_LTLIBRARIES = plugins/env_sumo/env_sumo_shim.la
plugins_env_sumo_env_sumo_shim_la_SOURCES =
plugins_env_sumo_env_sumo_shim_la_LDFLAGS = -module -avoid-version -shared -no-undefined -Wl,-z,defs \
	-export-symbols-regex '^dt_sumo_shim$$'
plugins_env_sumo_env_sumo_shim_la_LIBADD = plugins/env_sumo/sumo.lo $(SUMO_LIBS) $(EXPAT_LIBS) $(ZLIB_LIBS) -lstdc++
plugins_env_sumo_env_sumo_shim_la_DEPENDENCIES = plugins/env_sumo/sumo.lo
# make clean removes this object with those of automake in the same folder; a hook of ours would race it
plugins/env_sumo/sumo.lo: plugins/env_sumo/sumo.cpp plugins/env_sumo/config.hpp plugins/env_sumo/guard.hpp \
		plugins/env_sumo/options.def plugins/env_sumo/options.h plugins/env_sumo/requests.hpp plugins/env_sumo/sumo.h
	@$(MKDIR_P) $(@D)
	$(AM_V_GEN)$(LIBTOOL) $(AM_LIBTOOLFLAGS) --silent --tag=CC --mode=compile $(CXX_CHECK) -std=c++17 -O2 -g \
		-fvisibility=hidden -Wall -Wextra -Wno-unused-parameter $(CPPFLAGS) $(SUMO_CPPFLAGS) \
		$(EXPAT_CFLAGS) $(ZLIB_CFLAGS) $(CXXFLAGS) -c -o $@ $(srcdir)/plugins/env_sumo/sumo.cpp
endif
