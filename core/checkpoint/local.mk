# SPDX-License-Identifier: Apache-2.0
core_libdtcore_la_SOURCES += \
	core/checkpoint/checkpoint.h \
	core/checkpoint/load.c \
	core/checkpoint/manifest.c core/checkpoint/manifest.h \
	core/checkpoint/prune.c \
	core/checkpoint/safetensors.c core/checkpoint/safetensors.h \
	core/checkpoint/save.c \
	core/checkpoint/sealed.c core/checkpoint/sealed.h \
	core/checkpoint/shards.c core/checkpoint/shards.h
