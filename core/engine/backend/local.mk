# SPDX-License-Identifier: Apache-2.0
# core_libdtcore_la_SOURCES += core/engine/backend/x.c core/engine/backend/x.h

include core/engine/backend/ref/local.mk
include core/engine/backend/cpu/local.mk
include core/engine/backend/cuda/local.mk
core_libdtcore_la_SOURCES += core/engine/backend/kernel.c core/engine/backend/kernel.h core/engine/backend/ops.def \
	core/engine/backend/user.c core/engine/backend/user.h
