# SPDX-License-Identifier: Apache-2.0
core_libdtcore_la_SOURCES += \
	core/plan/device_watch.c \
	core/plan/device_watch.h \
	core/plan/expect.c \
	core/plan/expect.h \
	core/plan/fit.c \
	core/plan/fit.h \
	core/plan/forecast.c \
	core/plan/forecast.h \
	core/plan/forecast_env.c \
	core/plan/memory_watch.c \
	core/plan/memory_watch.h \
	core/plan/roofline.c \
	core/plan/roofline.h
