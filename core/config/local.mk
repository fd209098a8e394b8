# SPDX-License-Identifier: Apache-2.0
# core_libdtcore_la_SOURCES += core/config/x.c core/config/x.h
