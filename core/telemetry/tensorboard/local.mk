# SPDX-License-Identifier: Apache-2.0
core_libdtcore_la_SOURCES += \
	core/telemetry/tensorboard/event_files.c core/telemetry/tensorboard/event_files.h \
	core/telemetry/tensorboard/event_pictures.c core/telemetry/tensorboard/event_pictures.h
