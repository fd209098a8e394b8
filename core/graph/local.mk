# SPDX-License-Identifier: Apache-2.0
core_libdtcore_la_SOURCES += \
	core/graph/graph.h \
	core/graph/params.c core/graph/params.h \
	core/graph/plan.h
