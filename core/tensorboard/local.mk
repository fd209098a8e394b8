# SPDX-License-Identifier: Apache-2.0
core_libdtcore_la_SOURCES += \
	core/tensorboard/event_files.c core/tensorboard/event_files.h \
	core/tensorboard/event_pictures.c core/tensorboard/event_pictures.h
