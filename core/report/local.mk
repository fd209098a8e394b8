# SPDX-License-Identifier: Apache-2.0
core_libdtcore_la_SOURCES += \
	core/report/flat.c core/report/flat.h \
	core/report/logbook.c core/report/logbook.h \
	core/report/records.c core/report/records.h \
	core/report/state.c core/report/state.h
