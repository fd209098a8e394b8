# SPDX-License-Identifier: Apache-2.0
# Training phases. A phase is one source file, or a folder when it outgrows it.
plugin_LTLIBRARIES += phases/phase1_world_model.la phases/phase2_ppo.la \
	phases/phase3_constrained.la phases/phase_coma.la phases/phase_ddpg.la phases/phase_sac.la \
	phases/phase_offline.la

# What perception and world learn from recorded scenes, in each phase that trains them.
scenes_sources = phases/scenes/prediction.c phases/scenes/prediction.h phases/scenes/accuracy.c \
	phases/scenes/accuracy.h phases/scenes/figures.c phases/scenes/figures.h phases/scenes/pictures.c \
	phases/scenes/pictures.h phases/scenes/radii.c phases/scenes/radii.h phases/scenes/region.c phases/scenes/region.h phases/scenes/slice.c \
	phases/scenes/slice.h

phases_phase1_world_model_la_SOURCES = phases/phase1_world_model.c \
	phases/scenes/calibration.c phases/scenes/calibration.h \
	phases/scenes/normalise.c phases/scenes/normalise.h $(scenes_sources)
phases_phase1_world_model_la_CPPFLAGS = $(PLUGIN_CPPFLAGS) -I$(top_srcdir)/phases/scenes -DDT_PLUGIN_NAME=phase1_world_model
phases_phase1_world_model_la_CFLAGS = $(PLUGIN_CFLAGS)
phases_phase1_world_model_la_LDFLAGS = $(PLUGIN_LINK)
phases_phase1_world_model_la_LIBADD = -lm

# The clipped objective, in each phase that improves a policy by it.
clipped_sources = phases/clipped/clipped.c phases/clipped/clipped.h phases/clipped/loss.c phases/clipped/loss.h \
	phases/clipped/imagine.c phases/clipped/imagine.h
clipped_cppflags = $(PLUGIN_CPPFLAGS) -I$(top_srcdir)/phases/clipped

phases_phase2_ppo_la_SOURCES = phases/phase2_ppo/phase2_ppo.c $(clipped_sources)
phases_phase2_ppo_la_CPPFLAGS = $(clipped_cppflags) -DDT_PLUGIN_NAME=phase2_ppo
phases_phase2_ppo_la_CFLAGS = $(PLUGIN_CFLAGS)
phases_phase2_ppo_la_LDFLAGS = $(PLUGIN_LINK)
phases_phase2_ppo_la_LIBADD = -lm

phases_phase3_constrained_la_SOURCES = phases/phase3_constrained/phase3_constrained.c \
	phases/phase3_constrained/barrier.c phases/phase3_constrained/barrier.h \
	phases/phase3_constrained/limits.c phases/phase3_constrained/limits.h \
	phases/phase3_constrained/multiplier.c phases/phase3_constrained/multiplier.h \
	phases/phase3_constrained/trust_region.c phases/phase3_constrained/trust_region.h \
	phases/phase3_constrained/trust_region_dual.c phases/phase3_constrained/trust_region_dual.h \
	phases/phase3_constrained/stored.c phases/phase3_constrained/stored.h $(clipped_sources) $(scenes_sources)
phases_phase3_constrained_la_CPPFLAGS = $(clipped_cppflags) -I$(top_srcdir)/phases/scenes -DDT_PLUGIN_NAME=phase3_constrained
phases_phase3_constrained_la_CFLAGS = $(PLUGIN_CFLAGS)
phases_phase3_constrained_la_LDFLAGS = $(PLUGIN_LINK)
phases_phase3_constrained_la_LIBADD = -lm

phases_phase_coma_la_SOURCES = phases/phase_coma/phase_coma.c phases/phase_coma/loss.c phases/phase_coma/loss.h
phases_phase_coma_la_CPPFLAGS = $(PLUGIN_CPPFLAGS) -DDT_PLUGIN_NAME=phase_coma
phases_phase_coma_la_CFLAGS = $(PLUGIN_CFLAGS)
phases_phase_coma_la_LDFLAGS = $(PLUGIN_LINK)
phases_phase_coma_la_LIBADD = -lm

# Rounds of acting, keeping and learning, in each phase that learns off policy.
offpolicy_sources = phases/offpolicy/learner.c phases/offpolicy/learner.h phases/offpolicy/roles.c \
	phases/offpolicy/roles.h
offpolicy_cppflags = $(PLUGIN_CPPFLAGS) -I$(top_srcdir)/phases/offpolicy

phases_phase_ddpg_la_SOURCES = phases/phase_ddpg/phase_ddpg.c $(offpolicy_sources)
phases_phase_ddpg_la_CPPFLAGS = $(offpolicy_cppflags) -DDT_PLUGIN_NAME=phase_ddpg
phases_phase_ddpg_la_CFLAGS = $(PLUGIN_CFLAGS)
phases_phase_ddpg_la_LDFLAGS = $(PLUGIN_LINK)
phases_phase_ddpg_la_LIBADD = -lm

phases_phase_sac_la_SOURCES = phases/phase_sac/phase_sac.c $(offpolicy_sources)
phases_phase_sac_la_CPPFLAGS = $(offpolicy_cppflags) -DDT_PLUGIN_NAME=phase_sac
phases_phase_sac_la_CFLAGS = $(PLUGIN_CFLAGS)
phases_phase_sac_la_LDFLAGS = $(PLUGIN_LINK)
phases_phase_sac_la_LIBADD = -lm

phases_phase_offline_la_SOURCES = phases/phase_offline/phase_offline.c phases/phase_offline/check.c \
	phases/phase_offline/record.c phases/phase_offline/costs.c phases/phase_offline/idle.c phases/phase_offline/idle.h \
	phases/phase_offline/offline.h phases/offpolicy/roles.c phases/offpolicy/roles.h phases/phase3_constrained/limits.c phases/phase3_constrained/limits.h \
	phases/phase3_constrained/multiplier.c phases/phase3_constrained/multiplier.h
phases_phase_offline_la_CPPFLAGS = $(offpolicy_cppflags) -I$(top_srcdir)/phases/phase3_constrained -DDT_PLUGIN_NAME=phase_offline
phases_phase_offline_la_CFLAGS = $(PLUGIN_CFLAGS)
phases_phase_offline_la_LDFLAGS = $(PLUGIN_LINK)
phases_phase_offline_la_LIBADD = -lm
