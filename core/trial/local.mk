# SPDX-License-Identifier: Apache-2.0
core_libdtcore_la_SOURCES += \
	core/trial/check.c core/trial/check.h \
	core/trial/checker.c core/trial/checker.h \
	core/trial/exit_guard.c core/trial/exit_guard.h \
	core/trial/guard.c core/trial/guard.h \
	core/trial/lives.c \
	core/trial/probe.c core/trial/probe.h \
	core/trial/probe_data.c core/trial/probe_data.h \
	core/trial/probe_env.c core/trial/probe_env.h \
	core/trial/trial.c core/trial/trial.h
