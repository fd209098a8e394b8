# SPDX-License-Identifier: Apache-2.0
core_libdtcore_la_SOURCES += \
	core/collective/board.c core/collective/board.h \
	core/collective/comm.c core/collective/comm.h core/collective/comm_impl.h \
	core/collective/cost.c core/collective/cost.h \
	core/collective/launched.c \
	core/collective/meeting.c core/collective/meeting.h \
	core/collective/nccl/abi.h core/collective/nccl/nccl.c core/collective/nccl/nccl.h \
	core/collective/peers.c core/collective/peers.h \
	core/collective/processes.c core/collective/processes.h \
	core/collective/sim.c \
	core/collective/stood.c core/collective/stood.h \
	core/collective/transport.h \
	core/collective/tree.c core/collective/tree.h \
	core/collective/tree_sum.c core/collective/tree_sum.h
