# SPDX-License-Identifier: Apache-2.0
core_libdtcore_la_SOURCES += \
	core/service/bind.c \
	core/service/bind_env.c \
	core/service/component.c \
	core/service/env_judge.c core/service/env_judge.h \
	core/service/env_mix.c core/service/env_mix.h \
	core/service/env_request.c \
	core/service/env_worker.c core/service/env_worker.h \
	core/service/host_table.c \
	core/service/plugin_memory.c core/service/plugin_memory.h \
	core/service/roles.c core/service/roles.h \
	core/service/services.c \
	core/service/stage.c core/service/stage.h \
	core/service/stream.c core/service/stream.h \
	core/service/told.c \
	core/service/train.c
