# SPDX-License-Identifier: Apache-2.0
core_libdtcore_la_SOURCES += core/device/device.h core/device/held.c core/device/held.h \
	core/device/nvml.c core/device/nvml.h core/device/open.c core/device/open.h
