# SPDX-License-Identifier: Apache-2.0
core_libdtcore_la_SOURCES += \
	core/collective/comm.c core/collective/comm.h core/collective/comm_impl.h \
	core/collective/sim.c \
	core/collective/tree.c core/collective/tree.h
