# SPDX-License-Identifier: Apache-2.0
core_libdtcore_la_SOURCES += \
	core/rl/experience/memory_need.c \
	core/rl/experience/service.c \
	core/rl/experience/service.h
