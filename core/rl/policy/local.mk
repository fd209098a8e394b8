# SPDX-License-Identifier: Apache-2.0
core_libdtcore_la_SOURCES += \
	core/rl/policy/record.c \
	core/rl/policy/rounds.c \
	core/rl/policy/wiring.c core/rl/policy/wiring.h
