# SPDX-License-Identifier: Apache-2.0
core_libdtcore_la_SOURCES += \
	core/run/args.h \
	core/run/baselines.c core/run/baselines.h \
	core/run/batch_auto.c core/run/batch_auto.h core/run/batch_recall.c \
	core/run/dry_run.c core/run/dry_run.h \
	core/run/evaluate.c core/run/evaluate.h \
	core/run/hang_watch.c core/run/hang_watch.h \
	core/run/initial_weights.c core/run/initial_weights.h \
	core/run/layers.c core/run/layers.h \
	core/run/later_phases.c core/run/later_phases.h \
	core/run/profile_steps.c core/run/profile_steps.h \
	core/run/profiles.c core/run/profiles.h \
	core/run/progress.c core/run/progress.h \
	core/run/rank.c core/run/rank.h \
	core/run/rank_evaluate.c \
	core/run/rank_finish.c \
	core/run/rank_load.c core/run/rank_mirror.c \
	core/run/rank_loop.c \
	core/run/rank_requests.c \
	core/run/rank_phase.c \
	core/run/rank_processes.c core/run/rank_processes.h \
	core/run/rank_save.c \
	core/run/rank_sync.c \
	core/run/rank_record.c \
	core/run/result_text.c \
	core/run/resume.c core/run/resume.h \
	core/run/run.c core/run/run.h \
	core/run/run_start.c core/run/run_start.h \
	core/run/run_meta.c core/run/run_meta.h \
	core/run/rundir_files.c core/run/rundir_files.h \
	core/run/rundir.c core/run/rundir.h core/run/rundir_check.c core/run/rundir_check.h \
	core/run/session.c core/run/session.h core/run/session_check.c core/run/session_device.c \
	core/run/session_parts.h

