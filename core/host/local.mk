# SPDX-License-Identifier: Apache-2.0
# core_libdtcore_la_SOURCES += core/host/x.c core/host/x.h
