# SPDX-License-Identifier: Apache-2.0
# core_libdtcore_la_SOURCES += core/graph/x.c core/graph/x.h
core_libdtcore_la_SOURCES += core/graph/params.h core/graph/graph.h core/graph/plan.h
