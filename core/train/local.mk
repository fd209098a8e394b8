# SPDX-License-Identifier: Apache-2.0
core_libdtcore_la_SOURCES += \
	core/train/arenas.c core/train/backend.h \
	core/train/batch.c \
	core/train/compile.c \
	core/train/cpu.c \
	core/train/device/backend.c core/train/device/device.c core/train/device/internal.h \
	core/train/device/infer.c core/train/device/infer.h \
	core/train/device/ranks.c \
	core/train/device/results.c \
	core/train/device/params.c \
	core/train/device/slots.c \
	core/train/device/step.c \
	core/train/device/link.c core/train/device/link.h \
	core/train/exchange.c core/train/exchange.h \
	core/train/feed.c core/train/feed.h \
	core/train/groups.c \
	core/train/infer.c \
	core/train/join.c core/train/join.h \
	core/train/mixed.c core/train/mixed.h \
	core/train/policy.c core/train/policy.h \
	core/train/pool.c core/train/pool.h \
	core/train/record_again.h core/train/reduce.c \
	core/train/sampler.c core/train/sampler.h \
	core/train/samples.c core/train/samples.h \
	core/train/state.c \
	core/train/step.c core/train/step_inputs.c \
	core/train/trainer.c core/train/trainer.h core/train/trainer_internal.h \
	core/train/update.c \
	core/train/vector.c
cpu_isa_sources += core/train/order.c core/train/order.h
