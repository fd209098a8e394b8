# SPDX-License-Identifier: Apache-2.0
core_libdtcore_la_SOURCES += \
	core/telemetry/metrics/events.c core/telemetry/metrics/events.h \
	core/telemetry/metrics/png.c core/telemetry/metrics/png.h \
	core/telemetry/metrics/progress.c core/telemetry/metrics/progress.h \
	core/telemetry/metrics/record.c core/telemetry/metrics/record.h
