# SPDX-License-Identifier: Apache-2.0
# libdtrain-env: environments for the Python package (python/local.mk), which it is made for and installed with. What the
# exported functions do not reach is left out by the linker.
EXTRA_LTLIBRARIES += libdtrain-env.la
libdtrain_env_la_SOURCES = core/embed/worlds.c core/embed/worlds.h $(traffic_builtin)
libdtrain_env_la_CPPFLAGS = $(AM_CPPFLAGS)
libdtrain_env_la_LIBADD = plugins/traffic/libdttraffic.la core/libdtcore.la
libdtrain_env_la_LDFLAGS = $(AM_LDFLAGS) -avoid-version -shared -rpath $(libdir) -no-undefined $(DT_ZDEFS) \
	-Wl,--gc-sections -Wl,--version-script=$(srcdir)/core/embed/worlds.map
libdtrain_env_la_DEPENDENCIES = $(libdtrain_env_la_LIBADD) core/embed/worlds.map
EXTRA_DIST += core/embed/worlds.map
