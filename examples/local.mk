# SPDX-License-Identifier: Apache-2.0
# Programs that use what is installed: compiled here with everything else, and by installcheck with pkg-config alone.
# Configurations: run for a few steps by tests/docs/examples.sh.
exampledir = $(docdir)/examples
dist_example_DATA = examples/bars.c examples/bars.cu examples/drive_env_traffic.c examples/gumbel_softmax.c examples/mbpo.c \
	examples/qmix.c examples/dreamer.c examples/traci_policy.py examples/README.md \
	examples/cartpole-ppo.cfg examples/native-signals.cfg examples/own-recordings.cfg examples/pendulum-sac.cfg \
	examples/safe-merging.cfg examples/sumo-signals.cfg
examplesweepdir = $(exampledir)/sweeps
dist_examplesweep_DATA = examples/sweeps/cartpole.cfg
examplepythondir = $(exampledir)/python
dist_examplepython_DATA = examples/python/cleanrl_ppo.py examples/python/stable_baselines3_ppo.py examples/python/torchrl_ppo.py
exampledatadir = $(exampledir)/data
dist_exampledata_DATA = examples/data/drive.csv examples/data/make.sh examples/data/town.net.xml \
	examples/data/town.rou.xml examples/data/town.sumocfg
exampleimgdir = $(exampledir)/img
dist_exampleimg_DATA = examples/img/cartpole-ppo.png examples/img/native-signals.png examples/img/own-recordings.png \
	examples/img/pendulum-sac.png examples/img/safe-merging.png examples/img/sumo-signals.png
noinst_PROGRAMS += examples/drive_env_traffic
examples_drive_env_traffic_SOURCES = examples/drive_env_traffic.c
examples_drive_env_traffic_CPPFLAGS = -I$(top_srcdir)/include
examples_drive_env_traffic_LDADD = libdtrain-policy.la
# Phases written against the installed headers, trained by gumbel.sh, mbpo.sh, qmix.sh, dreamer.sh and bars.sh of
# tests/plugin/service.
check_LTLIBRARIES += examples/bars.la examples/gumbel_softmax.la examples/mbpo.la examples/qmix.la examples/dreamer.la
examples_bars_la_SOURCES = examples/bars.c
examples_bars_la_CPPFLAGS = $(PLUGIN_CPPFLAGS) -DDT_PLUGIN_NAME=bars
examples_bars_la_CFLAGS = $(PLUGIN_CFLAGS)
examples_bars_la_LIBADD = -lm
examples_bars_la_LDFLAGS = -module -avoid-version -shared -rpath /nowhere
examples_gumbel_softmax_la_SOURCES = examples/gumbel_softmax.c
examples_gumbel_softmax_la_CPPFLAGS = $(PLUGIN_CPPFLAGS) -DDT_PLUGIN_NAME=gumbel_softmax
examples_gumbel_softmax_la_CFLAGS = $(PLUGIN_CFLAGS)
examples_gumbel_softmax_la_LIBADD = -lm
examples_gumbel_softmax_la_LDFLAGS = -module -avoid-version -shared -rpath /nowhere
examples_mbpo_la_SOURCES = examples/mbpo.c
examples_mbpo_la_CPPFLAGS = $(PLUGIN_CPPFLAGS) -DDT_PLUGIN_NAME=mbpo
examples_mbpo_la_CFLAGS = $(PLUGIN_CFLAGS)
examples_mbpo_la_LDFLAGS = -module -avoid-version -shared -rpath /nowhere
examples_qmix_la_SOURCES = examples/qmix.c
examples_qmix_la_CPPFLAGS = $(PLUGIN_CPPFLAGS) -DDT_PLUGIN_NAME=qmix
examples_qmix_la_CFLAGS = $(PLUGIN_CFLAGS)
examples_qmix_la_LIBADD = -lm
examples_qmix_la_LDFLAGS = -module -avoid-version -shared -rpath /nowhere
examples_dreamer_la_SOURCES = examples/dreamer.c
examples_dreamer_la_CPPFLAGS = $(PLUGIN_CPPFLAGS) -DDT_PLUGIN_NAME=dreamer
examples_dreamer_la_CFLAGS = $(PLUGIN_CFLAGS)
examples_dreamer_la_LDFLAGS = -module -avoid-version -shared -rpath /nowhere
