# SPDX-License-Identifier: Apache-2.0
core_libdtcore_la_SOURCES += \
	core/comm/board.c core/comm/board.h \
	core/comm/comm.c core/comm/comm.h core/comm/comm_impl.h \
	core/comm/cost.c core/comm/cost.h \
	core/comm/launch_detect.c \
	core/comm/rendezvous.c core/comm/rendezvous.h \
	core/comm/nccl/abi.h core/comm/nccl/nccl.c core/comm/nccl/nccl.h \
	core/comm/negotiate.c \
	core/comm/peers.c core/comm/peers.h \
	core/comm/processes.c core/comm/processes.h \
	core/comm/sim.c \
	core/comm/suspension.c core/comm/suspension.h \
	core/comm/transport.h \
	core/comm/tree.c core/comm/tree.h \
	core/comm/tree_sum.c core/comm/tree_sum.h
