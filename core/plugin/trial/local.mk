# SPDX-License-Identifier: Apache-2.0
core_libdtcore_la_SOURCES += \
	core/plugin/trial/check.c core/plugin/trial/check.h \
	core/plugin/trial/check_ops.c \
	core/plugin/trial/checker.c core/plugin/trial/checker.h \
	core/plugin/trial/exit_guard.c core/plugin/trial/exit_guard.h \
	core/plugin/trial/guard.c core/plugin/trial/guard.h \
	core/plugin/trial/lifecycle.c \
	core/plugin/trial/probe.c core/plugin/trial/probe.h \
	core/plugin/trial/process_state.c core/plugin/trial/process_state.h \
	core/plugin/trial/probe_data.c core/plugin/trial/probe_data.h \
	core/plugin/trial/probe_env.c core/plugin/trial/probe_env.h \
	core/plugin/trial/trial.c core/plugin/trial/trial.h
