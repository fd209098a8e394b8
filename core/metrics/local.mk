# SPDX-License-Identifier: Apache-2.0
core_libdtcore_la_SOURCES += \
	core/metrics/events.c core/metrics/events.h \
	core/metrics/png.c core/metrics/png.h \
	core/metrics/progress.c core/metrics/progress.h \
	core/metrics/record.c core/metrics/record.h
