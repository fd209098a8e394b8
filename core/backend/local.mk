# SPDX-License-Identifier: Apache-2.0
# core_libdtcore_la_SOURCES += core/backend/x.c core/backend/x.h

include core/backend/ref/local.mk
include core/backend/cpu/local.mk
include core/backend/cuda/local.mk
core_libdtcore_la_SOURCES += core/backend/kernel.c core/backend/kernel.h core/backend/ops.def
