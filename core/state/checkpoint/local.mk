# SPDX-License-Identifier: Apache-2.0
core_libdtcore_la_SOURCES += \
	core/state/checkpoint/checkpoint.h \
	core/state/checkpoint/load.c \
	core/state/checkpoint/manifest.c core/state/checkpoint/manifest.h \
	core/state/checkpoint/prune.c core/state/checkpoint/run_config.c \
	core/state/checkpoint/safetensors.c core/state/checkpoint/safetensors.h \
	core/state/checkpoint/safetensors_load.c \
	core/state/checkpoint/save.c \
	core/state/checkpoint/sealed.c core/state/checkpoint/sealed.h \
	core/state/checkpoint/shards.c core/state/checkpoint/shards.h
