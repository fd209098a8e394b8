# SPDX-License-Identifier: Apache-2.0
core_libdtcore_la_SOURCES += core/optim/optim.c core/optim/optim.h core/optim/schedule.c
cpu_isa_sources += core/optim/loops.c core/optim/loops.h
