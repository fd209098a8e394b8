# SPDX-License-Identifier: Apache-2.0
core_libdtcore_la_SOURCES += \
	core/experience/act.c \
	core/experience/annotate.c \
	core/experience/evaluate.c \
	core/experience/evaluation.c core/experience/evaluation.h \
	core/experience/frames.c core/experience/frames.h \
	core/experience/keep.c \
	core/experience/need.c \
	core/experience/opponents.c core/experience/opponents.h \
	core/experience/opponents_state.c \
	core/experience/ranks.c \
	core/experience/replay.c core/experience/replay.h \
	core/experience/replay_data.c \
	core/experience/replay_record.c \
	core/experience/replay_share.c \
	core/experience/replay_state.c \
	core/experience/risk.c core/experience/risk.h \
	core/experience/policy.c \
	core/experience/rollout.c core/experience/rollout.h \
	core/experience/share.c \
	core/experience/service.c core/experience/service.h \
	core/experience/state.c \
	core/experience/stored.c core/experience/stored.h \
	core/experience/stored_check.c \
	core/experience/stored_head.c core/experience/stored_head.h
