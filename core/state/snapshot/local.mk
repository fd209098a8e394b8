# SPDX-License-Identifier: Apache-2.0
core_libdtcore_la_SOURCES += \
	core/state/snapshot/mismatch.c \
	core/state/snapshot/mismatch.h \
	core/state/snapshot/snapshot.c \
	core/state/snapshot/snapshot.h \
	core/state/snapshot/snapshot_blobs.c \
	core/state/snapshot/snapshot_shards.c \
	core/state/snapshot/snapshot_state.c \
	core/state/snapshot/snapshot_state.h \
	core/state/snapshot/weight_sources.c \
	core/state/snapshot/weight_sources.h
