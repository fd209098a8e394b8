# SPDX-License-Identifier: Apache-2.0
# core_libdtcore_la_SOURCES += core/tensor/x.c core/tensor/x.h
