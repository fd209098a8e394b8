# SPDX-License-Identifier: Apache-2.0
core_libdtcore_la_SOURCES += \
	core/plan/machine/doctor.h \
	core/plan/machine/doctor_device.c \
	core/plan/machine/doctor_files.c \
	core/plan/machine/doctor_gpu.c \
	core/plan/machine/doctor_machine.c \
	core/plan/machine/limits.c core/plan/machine/limits.h
