# SPDX-License-Identifier: Apache-2.0
# core_libdtcore_la_SOURCES += core/optim/x.c core/optim/x.h
core_libdtcore_la_SOURCES += core/optim/optim.h
