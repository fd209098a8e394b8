# SPDX-License-Identifier: Apache-2.0
core_libdtcore_la_SOURCES += \
	core/rl/rollout/act.c \
	core/rl/rollout/acting.c \
	core/rl/rollout/actor.c \
	core/rl/rollout/actor.h \
	core/rl/rollout/ahead.c \
	core/rl/rollout/annotate.c \
	core/rl/rollout/checkpoint.c \
	core/rl/rollout/checkpoint.h \
	core/rl/rollout/collect.c \
	core/rl/rollout/collect.h \
	core/rl/rollout/episode_log.c \
	core/rl/rollout/episode_log.h \
	core/rl/rollout/exchange.c \
	core/rl/rollout/exchange.h \
	core/rl/rollout/carried.c \
	core/rl/rollout/gather.c \
	core/rl/rollout/obs_stats.c \
	core/rl/rollout/obs_stats.h \
	core/rl/rollout/opponents.c \
	core/rl/rollout/opponents.h \
	core/rl/rollout/opponents_checkpoint.c \
	core/rl/rollout/partition.c \
	core/rl/rollout/partition.h \
	core/rl/rollout/returns.c \
	core/rl/rollout/returns.h \
	core/rl/rollout/rollout.c \
	core/rl/rollout/rollout.h \
	core/rl/rollout/round.c \
	core/rl/rollout/round.h
