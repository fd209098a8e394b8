# SPDX-License-Identifier: Apache-2.0
core_libdtcore_la_SOURCES += core/engine/optim/optim.c core/engine/optim/optim.h
cpu_isa_sources += core/engine/optim/loops.c core/engine/optim/loops.h
