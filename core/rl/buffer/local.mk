# SPDX-License-Identifier: Apache-2.0
core_libdtcore_la_SOURCES += \
	core/rl/buffer/buffer.c \
	core/rl/buffer/buffer.h \
	core/rl/buffer/buffer_internal.h \
	core/rl/buffer/buffer_lists.c \
	core/rl/buffer/buffer_read.c \
	core/rl/buffer/buffer_rows.c \
	core/rl/buffer/dist.c \
	core/rl/buffer/dist.h \
	core/rl/buffer/gae.c \
	core/rl/buffer/gae.h \
	core/rl/buffer/normaliser.c \
	core/rl/buffer/normaliser.h \
	core/rl/buffer/time_to_cost.c \
	core/rl/buffer/time_to_cost.h
