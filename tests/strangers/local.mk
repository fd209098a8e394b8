# SPDX-License-Identifier: Apache-2.0
# Plugins as somebody outside writes them; built against what is installed, by the stage `strangers` of .ci/run.
EXTRA_DIST += tests/strangers/run.sh tests/strangers/misbehave.h tests/strangers/cliff.cpp \
	tests/strangers/conv_world.c tests/strangers/dqn.c tests/strangers/dqn_memory.h tests/strangers/pursuit.c
