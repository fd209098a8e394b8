# SPDX-License-Identifier: Apache-2.0
core_libdtcore_la_SOURCES += \
	core/host/bind.c \
	core/host/cli.c core/host/cli.h \
	core/host/exit.h \
	core/host/report.c \
	core/host/run.c core/host/run.h \
	core/host/rundir.c core/host/rundir.h \
	core/host/services.c \
	core/host/session.c core/host/session.h \
	core/host/signals.c core/host/signals.h \
	core/host/snapshot.c core/host/snapshot.h \
	core/host/stage.c core/host/stage.h \
	core/host/svc_train.c \
	core/host/verb_ckpt.c core/host/verb_data.c core/host/verb_eval.c core/host/verb_run.c
