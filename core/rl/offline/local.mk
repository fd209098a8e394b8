# SPDX-License-Identifier: Apache-2.0
core_libdtcore_la_SOURCES += \
	core/rl/offline/metadata.c \
	core/rl/offline/metadata.h \
	core/rl/offline/round_reader.c \
	core/rl/offline/round_writer.c \
	core/rl/offline/sample_check.c \
	core/rl/offline/stored.h
