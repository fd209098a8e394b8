# SPDX-License-Identifier: Apache-2.0
core_libdtcore_la_SOURCES += \
	core/rl/replay/checkpoint.c \
	core/rl/replay/checkpoint.h \
	core/rl/replay/exchange.c \
	core/rl/replay/read.c \
	core/rl/replay/record.c \
	core/rl/replay/replay.c \
	core/rl/replay/replay.h \
	core/rl/replay/sum_tree.c \
	core/rl/replay/sum_tree.h
