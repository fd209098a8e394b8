# SPDX-License-Identifier: Apache-2.0
core_libdtcore_la_SOURCES += \
	core/amp/monitor.c core/amp/monitor.h \
	core/amp/scaler.c core/amp/scaler.h
