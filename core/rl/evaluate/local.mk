# SPDX-License-Identifier: Apache-2.0
core_libdtcore_la_SOURCES += \
	core/rl/evaluate/evaluate.c \
	core/rl/evaluate/evaluate.h \
	core/rl/evaluate/frames.c \
	core/rl/evaluate/frames.h \
	core/rl/evaluate/results.c \
	core/rl/evaluate/results.h \
	core/rl/evaluate/risk.c \
	core/rl/evaluate/risk.h
