# SPDX-License-Identifier: Apache-2.0
core_libdtcore_la_SOURCES += core/engine/device/device.h core/engine/device/memory.c core/engine/device/memory.h \
	core/engine/device/nvml.c core/engine/device/nvml.h core/engine/device/open.c core/engine/device/open.h
