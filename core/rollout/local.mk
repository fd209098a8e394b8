# SPDX-License-Identifier: Apache-2.0
core_libdtcore_la_SOURCES += \
	core/rollout/buffer.c core/rollout/buffer.h core/rollout/buffer_internal.h \
	core/rollout/buffer_lists.c core/rollout/buffer_read.c core/rollout/buffer_rows.c \
	core/rollout/check.c core/rollout/check.h \
	core/rollout/collect.c core/rollout/collect.h \
	core/rollout/described.c core/rollout/described.h \
	core/rollout/dist.c core/rollout/dist.h \
	core/rollout/gae.c core/rollout/gae.h \
	core/rollout/layout.c core/rollout/layout.h \
	core/rollout/sum_tree.c core/rollout/sum_tree.h \
	core/rollout/normaliser.c core/rollout/normaliser.h \
	core/rollout/time_to_cost.c core/rollout/time_to_cost.h \
	core/rollout/process.c core/rollout/process.h core/rollout/process_log.c core/rollout/process_log.h \
	core/rollout/process_scene.c core/rollout/process_scene.h core/rollout/process_serve.c \
	core/rollout/process_spec.c core/rollout/process_spec.h \
	core/rollout/process_wire.c core/rollout/process_wire.h \
	core/rollout/vector.c core/rollout/vector.h
