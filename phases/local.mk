# SPDX-License-Identifier: Apache-2.0
# Training phases. A phase is one source file, or a folder when it outgrows it. Folders of other names are shared code:
# ppo, the clipped objective; offpolicy, learning from a replay buffer; constraints, limits of costs and multipliers;
# scenes, what perception and world models learn from recorded scenes; common.
plugin_LTLIBRARIES += phases/phase1_world_model.la phases/phase2_ppo.la \
	phases/phase3_constrained.la phases/phase_coma.la phases/phase_ddpg.la phases/phase_sac.la \
	phases/phase_offline.la
phases_cppflags = $(PLUGIN_CPPFLAGS) -I$(top_srcdir)/phases

common_sources = phases/common/round_report.c phases/common/round_report.h
ppo_sources = phases/ppo/ppo.c phases/ppo/ppo.h phases/ppo/ppo_loss.c phases/ppo/ppo_loss.h phases/ppo/imagine.c \
	phases/ppo/imagine.h
actor_critic_sources = phases/offpolicy/actor_critic.c phases/offpolicy/actor_critic.h
offpolicy_sources = phases/offpolicy/learner.c phases/offpolicy/learner.h $(actor_critic_sources) $(common_sources)
constraints_sources = phases/constraints/limits.c phases/constraints/limits.h phases/constraints/multiplier.c \
	phases/constraints/multiplier.h
scenes_sources = phases/scenes/prediction.c phases/scenes/prediction.h phases/scenes/evaluation.c \
	phases/scenes/evaluation.h phases/scenes/metrics.c phases/scenes/metrics.h phases/scenes/pictures.c \
	phases/scenes/pictures.h phases/scenes/radii.c phases/scenes/radii.h phases/scenes/region.c \
	phases/scenes/region.h phases/scenes/batch.c phases/scenes/batch.h

phases_phase1_world_model_la_SOURCES = phases/phase1_world_model.c phases/scenes/calibration.c \
	phases/scenes/calibration.h phases/scenes/normalise.c phases/scenes/normalise.h $(scenes_sources)
phases_phase1_world_model_la_CPPFLAGS = $(phases_cppflags) -DDT_PLUGIN_NAME=phase1_world_model
phases_phase1_world_model_la_CFLAGS = $(PLUGIN_CFLAGS)
phases_phase1_world_model_la_LDFLAGS = $(PLUGIN_LINK)
phases_phase1_world_model_la_LIBADD = -lm

phases_phase2_ppo_la_SOURCES = phases/phase2_ppo.c $(ppo_sources)
phases_phase2_ppo_la_CPPFLAGS = $(phases_cppflags) -DDT_PLUGIN_NAME=phase2_ppo
phases_phase2_ppo_la_CFLAGS = $(PLUGIN_CFLAGS)
phases_phase2_ppo_la_LDFLAGS = $(PLUGIN_LINK)
phases_phase2_ppo_la_LIBADD = -lm

phases_phase3_constrained_la_SOURCES = phases/phase3_constrained/phase3_constrained.c \
	phases/phase3_constrained/barrier.c phases/phase3_constrained/barrier.h \
	phases/phase3_constrained/trust_region.c phases/phase3_constrained/trust_region.h \
	phases/phase3_constrained/stored.c phases/phase3_constrained/stored.h \
	$(constraints_sources) $(ppo_sources) $(scenes_sources)
phases_phase3_constrained_la_CPPFLAGS = $(phases_cppflags) -DDT_PLUGIN_NAME=phase3_constrained
phases_phase3_constrained_la_CFLAGS = $(PLUGIN_CFLAGS)
phases_phase3_constrained_la_LDFLAGS = $(PLUGIN_LINK)
phases_phase3_constrained_la_LIBADD = -lm

phases_phase_coma_la_SOURCES = phases/phase_coma/phase_coma.c phases/phase_coma/coma_loss.c \
	phases/phase_coma/coma_loss.h $(common_sources)
phases_phase_coma_la_CPPFLAGS = $(phases_cppflags) -DDT_PLUGIN_NAME=phase_coma
phases_phase_coma_la_CFLAGS = $(PLUGIN_CFLAGS)
phases_phase_coma_la_LDFLAGS = $(PLUGIN_LINK)
phases_phase_coma_la_LIBADD = -lm

phases_phase_ddpg_la_SOURCES = phases/phase_ddpg.c $(offpolicy_sources)
phases_phase_ddpg_la_CPPFLAGS = $(phases_cppflags) -DDT_PLUGIN_NAME=phase_ddpg
phases_phase_ddpg_la_CFLAGS = $(PLUGIN_CFLAGS)
phases_phase_ddpg_la_LDFLAGS = $(PLUGIN_LINK)
phases_phase_ddpg_la_LIBADD = -lm

phases_phase_sac_la_SOURCES = phases/phase_sac.c $(offpolicy_sources)
phases_phase_sac_la_CPPFLAGS = $(phases_cppflags) -DDT_PLUGIN_NAME=phase_sac
phases_phase_sac_la_CFLAGS = $(PLUGIN_CFLAGS)
phases_phase_sac_la_LDFLAGS = $(PLUGIN_LINK)
phases_phase_sac_la_LIBADD = -lm

phases_phase_offline_la_SOURCES = phases/phase_offline/phase_offline.c phases/phase_offline/check.c \
	phases/phase_offline/losses.c phases/phase_offline/costs.c phases/phase_offline/offline.h \
	$(actor_critic_sources) $(constraints_sources)
phases_phase_offline_la_CPPFLAGS = $(phases_cppflags) -DDT_PLUGIN_NAME=phase_offline
phases_phase_offline_la_CFLAGS = $(PLUGIN_CFLAGS)
phases_phase_offline_la_LDFLAGS = $(PLUGIN_LINK)
phases_phase_offline_la_LIBADD = -lm
