# SPDX-License-Identifier: Apache-2.0
# The plugin is plain C and links nothing of Python; a script of its own runs in an interpreter of the user's.
plugin_LTLIBRARIES += plugins/env_gym.la
plugins_env_gym_la_SOURCES = plugins/env_gym/doctor.c plugins/env_gym/env_gym.c plugins/env_gym/env_gym.h \
	plugins/env_gym/find.c plugins/env_gym/python.c plugins/env_gym/spec.c
plugins_env_gym_la_CPPFLAGS = $(PLUGIN_CPPFLAGS) -DDT_PLUGIN_NAME=env_gym -DPLUGINDIR='"$(plugindir)"' \
	-DBINDIR='"$(bindir)"' -DPKGDATADIR='"$(pkgdatadir)"'
plugins_env_gym_la_CFLAGS = $(PLUGIN_CFLAGS)
plugins_env_gym_la_LDFLAGS = $(PLUGIN_LINK)
plugins_env_gym_la_LIBADD = -ldl

# A build elsewhere has links to the scripts, which the plugin finds below its own folder.
gymdir = $(pkgdatadir)/env_gym
gym_scripts = plugins/env_gym/env_gym_spaces.py plugins/env_gym/env_gym_worker.py
dist_gym_DATA = $(gym_scripts)
all-local: gym-of-build
gym-of-build:
	@for f in $(gym_scripts); do test -e $$f || { $(MKDIR_P) plugins/env_gym && \
	  $(LN_S) $(abs_top_srcdir)/$$f $$f; }; done
distclean-local: distclean-gym
distclean-gym:
	@for f in $(gym_scripts); do test ! -h $$f || rm -f $$f; done
.PHONY: gym-of-build distclean-gym
