# SPDX-License-Identifier: Apache-2.0
# Training phases. A phase is one source file, or a folder when it outgrows it.
plugin_LTLIBRARIES += phases/phase1_world_model.la phases/phase2_ppo.la

phases_phase1_world_model_la_SOURCES = phases/phase1_world_model.c
phases_phase1_world_model_la_CPPFLAGS = $(PLUGIN_CPPFLAGS) -DDT_PLUGIN_NAME=phase1_world_model
phases_phase1_world_model_la_CFLAGS = $(PLUGIN_CFLAGS)
phases_phase1_world_model_la_LDFLAGS = $(PLUGIN_LINK)
phases_phase1_world_model_la_LIBADD = -lm

phases_phase2_ppo_la_SOURCES = phases/phase2_ppo/phase2_ppo.c phases/phase2_ppo/loss.c phases/phase2_ppo/loss.h \
	phases/phase2_ppo/wiring.c phases/phase2_ppo/wiring.h
phases_phase2_ppo_la_CPPFLAGS = $(PLUGIN_CPPFLAGS) -DDT_PLUGIN_NAME=phase2_ppo
phases_phase2_ppo_la_CFLAGS = $(PLUGIN_CFLAGS)
phases_phase2_ppo_la_LDFLAGS = $(PLUGIN_LINK)
phases_phase2_ppo_la_LIBADD = -lm
