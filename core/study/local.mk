# SPDX-License-Identifier: Apache-2.0
core_libdtcore_la_SOURCES += \
	core/study/asha.c core/study/asha.h \
	core/study/compare.c core/study/compare.h \
	core/study/compare_page.c core/study/compare_page.h \
	core/study/compare_runs.c core/study/compare_runs.h \
	core/study/compare_summary.c \
	core/study/child.c core/study/child.h \
	core/study/copy_run.c core/study/copy_run.h \
	core/study/journal.c core/study/journal.h \
	core/study/pbt.c core/study/pbt.h \
	core/study/plan.c core/study/plan.h \
	core/study/schedule.c core/study/schedule.h \
	core/study/sobol.c core/study/sobol.h \
	core/study/space.c core/study/space.h \
	core/study/sweep_coordinates.c core/study/sweep_coordinates.h \
	core/study/sweep_file.c core/study/sweep_file.h \
	core/study/sweep_page.c core/study/sweep_page.h \
	core/study/sweep_results.c core/study/sweep_results.h \
	core/study/trainings.c core/study/trainings.h \
	core/study/outcome.c core/study/outcome.h \
	core/study/seed_list.c core/study/seed_list.h \
	core/study/words.c core/study/words.h
