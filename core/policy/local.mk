# SPDX-License-Identifier: Apache-2.0
core_libdtcore_la_SOURCES += \
	core/policy/foresight.c core/policy/foresight.h \
	core/policy/record.c \
	core/policy/rounds.c \
	core/policy/wiring.c core/policy/wiring.h
