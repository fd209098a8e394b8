# SPDX-License-Identifier: Apache-2.0
# core_libdtcore_la_SOURCES += core/collective/x.c core/collective/x.h
core_libdtcore_la_SOURCES += core/collective/comm.h core/collective/tree.h
