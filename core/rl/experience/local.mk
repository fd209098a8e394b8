# SPDX-License-Identifier: Apache-2.0
core_libdtcore_la_SOURCES += \
	core/rl/experience/act.c \
	core/rl/experience/annotate.c \
	core/rl/experience/evaluate.c \
	core/rl/experience/evaluation.c core/rl/experience/evaluation.h \
	core/rl/experience/frames.c core/rl/experience/frames.h \
	core/rl/experience/keep.c \
	core/rl/experience/need.c \
	core/rl/experience/opponents.c core/rl/experience/opponents.h \
	core/rl/experience/opponents_state.c \
	core/rl/experience/ranks.c \
	core/rl/experience/replay.c core/rl/experience/replay.h \
	core/rl/experience/replay_data.c \
	core/rl/experience/replay_record.c \
	core/rl/experience/replay_share.c \
	core/rl/experience/replay_state.c \
	core/rl/experience/risk.c core/rl/experience/risk.h \
	core/rl/experience/policy.c \
	core/rl/experience/rollout.c core/rl/experience/rollout.h \
	core/rl/experience/share.c \
	core/rl/experience/service.c core/rl/experience/service.h \
	core/rl/experience/state.c \
	core/rl/experience/stored.c core/rl/experience/stored.h \
	core/rl/experience/stored_check.c \
	core/rl/experience/stored_head.c core/rl/experience/stored_head.h
