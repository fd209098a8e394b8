# SPDX-License-Identifier: Apache-2.0
core_libdtcore_la_SOURCES += \
	core/plugin/service/bind.c \
	core/plugin/service/bind_data.c \
	core/plugin/service/bind_env.c core/plugin/service/bound_env.h \
	core/plugin/service/comm.c \
	core/plugin/service/component.c \
	core/plugin/service/datasets.c \
	core/plugin/service/env_evaluation.c core/plugin/service/env_evaluation.h \
	core/plugin/service/env_mix.c core/plugin/service/env_mix.h \
	core/plugin/service/env_request.c \
	core/plugin/service/env_worker.c core/plugin/service/env_worker.h \
	core/plugin/service/host_table.c \
	core/plugin/service/idle_options.c \
	core/plugin/service/metrics.c core/plugin/service/results.h \
	core/plugin/service/plugin_memory.c core/plugin/service/plugin_memory.h \
	core/plugin/service/rng.c \
	core/plugin/service/roles.c core/plugin/service/roles.h \
	core/plugin/service/services.c \
	core/plugin/service/misuse.c \
	core/plugin/service/stage.c core/plugin/service/stage.h \
	core/plugin/service/stream.c core/plugin/service/stream.h \
	core/plugin/service/train.c \
	core/plugin/service/train_create.c core/plugin/service/train_create.h \
	core/plugin/service/user_ops.c core/plugin/service/user_ops.h
