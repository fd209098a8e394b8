# SPDX-License-Identifier: Apache-2.0
core_libdtcore_la_SOURCES += \
	core/rl/env/batch.c \
	core/rl/env/batch.h \
	core/rl/env/check.c \
	core/rl/env/check.h \
	core/rl/env/described.c \
	core/rl/env/described.h \
	core/rl/env/layout.c \
	core/rl/env/layout.h \
	core/rl/env/process.c \
	core/rl/env/process.h \
	core/rl/env/process_call.c \
	core/rl/env/process_inner.h \
	core/rl/env/process_instance.c \
	core/rl/env/process_log.c \
	core/rl/env/process_log.h \
	core/rl/env/process_scene.c \
	core/rl/env/process_scene.h \
	core/rl/env/process_serve.c \
	core/rl/env/process_spec.c \
	core/rl/env/process_spec.h \
	core/rl/env/process_wire.c \
	core/rl/env/process_wire.h \
	core/rl/env/vector.c \
	core/rl/env/vector.h
