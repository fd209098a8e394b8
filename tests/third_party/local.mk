# SPDX-License-Identifier: Apache-2.0
# Plugins of third parties: built against what is installed, by the stage `third_party` of .ci/run.
EXTRA_DIST += tests/third_party/run.sh tests/third_party/misbehave.h tests/third_party/cliff.cpp \
	tests/third_party/conv_world.c tests/third_party/dqn.c tests/third_party/dqn_memory.h tests/third_party/pursuit.c
