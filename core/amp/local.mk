# SPDX-License-Identifier: Apache-2.0
# core_libdtcore_la_SOURCES += core/amp/x.c core/amp/x.h
