# SPDX-License-Identifier: Apache-2.0
core_libdtcore_la_SOURCES += \
	core/run/args.h \
	core/run/baselines.c core/run/baselines.h \
	core/run/batch_auto.c core/run/batch_auto.h core/run/batch_recall.c \
	core/run/device_watch.c core/run/device_watch.h \
	core/run/evaluate.c core/run/evaluate.h \
	core/run/expect.c core/run/expect.h \
	core/run/first_weights.c core/run/first_weights.h \
	core/run/fit.c core/run/fit.h \
	core/run/forecast.c core/run/forecast.h \
	core/run/forecast_env.c core/run/forecast_env.h \
	core/run/handover.c core/run/handover.h \
	core/run/leftovers.c core/run/leftovers.h \
	core/run/memory_watch.c core/run/memory_watch.h \
	core/run/mismatch.c core/run/mismatch.h \
	core/run/profile_steps.c core/run/profile_steps.h \
	core/run/rank.c core/run/rank.h \
	core/run/rank_evaluate.c \
	core/run/rank_finish.c \
	core/run/rank_load.c \
	core/run/rank_loop.c \
	core/run/rank_phase.c \
	core/run/rank_save.c \
	core/run/rank_sync.c \
	core/run/rank_show.c \
	core/run/result_text.c \
	core/run/resume.c core/run/resume.h \
	core/run/roofline.c core/run/roofline.h \
	core/run/run.c core/run/run.h \
	core/run/run_record.c \
	core/run/run_start.c core/run/run_start.h \
	core/run/rundir.c core/run/rundir.h core/run/rundir_check.c core/run/rundir_check.h \
	core/run/session.c core/run/session.h core/run/session_check.c core/run/session_device.c \
	core/run/session_parts.h \
	core/run/snapshot.c core/run/snapshot.h core/run/snapshot_load.c core/run/snapshot_names.h \
	core/run/snapshot_shards.c core/run/snapshot_shards.h \
	core/run/snapshot_tensors.c core/run/snapshot_tensors.h
