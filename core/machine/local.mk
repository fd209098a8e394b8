# SPDX-License-Identifier: Apache-2.0
core_libdtcore_la_SOURCES += \
	core/machine/doctor.c core/machine/doctor.h \
	core/machine/doctor_device.c \
	core/machine/doctor_files.c \
	core/machine/doctor_gpu.c \
	core/machine/doctor_machine.c \
	core/machine/limits.c core/machine/limits.h
