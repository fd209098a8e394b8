# SPDX-License-Identifier: Apache-2.0
EXTRA_DIST += tests/phases/rig.inc tests/phases/unit.h
phases_test_cppflags = $(AM_CPPFLAGS) -I$(top_srcdir)/tests -I$(top_srcdir)/phases
phases_test_ldadd = $(mock_la) plugins/traffic/libdttraffic.la core/libdtcore.la $(CMOCKA_LIBS) -ldl -lm

dt_tests += tests/phases/test_phase1_world_model
tests_phases_test_phase1_world_model_SOURCES = tests/phases/test_phase1_world_model.c tests/phases/phase1_host.c \
	tests/phases/phase1_host.h
tests_phases_test_phase1_world_model_CPPFLAGS = $(mock_cppflags)
tests_phases_test_phase1_world_model_LDADD = $(mock_la) $(mock_libs)

dt_tests += tests/phases/test_normalise
tests_phases_test_normalise_SOURCES = tests/phases/test_normalise.c phases/scenes/normalise.c
tests_phases_test_normalise_CPPFLAGS = $(mock_cppflags) -I$(top_srcdir)/phases
tests_phases_test_normalise_LDADD = $(mock_la) $(mock_libs)

dt_tests += tests/phases/test_prediction
tests_phases_test_prediction_SOURCES = tests/phases/test_prediction.c phases/scenes/prediction.c
tests_phases_test_prediction_CPPFLAGS = $(phases_test_cppflags)
tests_phases_test_prediction_LDADD = $(phases_test_ldadd)
dt_tests += tests/phases/test_metrics
tests_phases_test_metrics_SOURCES = tests/phases/test_metrics.c phases/scenes/metrics.c phases/scenes/region.c \
	phases/scenes/radii.c
tests_phases_test_metrics_CPPFLAGS = $(phases_test_cppflags)
dt_tests += tests/phases/test_region
tests_phases_test_region_SOURCES = tests/phases/test_region.c phases/scenes/region.c
tests_phases_test_region_CPPFLAGS = $(phases_test_cppflags)
dt_tests += tests/phases/test_pictures
tests_phases_test_pictures_SOURCES = tests/phases/test_pictures.c phases/scenes/pictures.c
tests_phases_test_pictures_CPPFLAGS = $(phases_test_cppflags)
tests_phases_test_pictures_LDADD = $(phases_test_ldadd)
dt_tests += tests/phases/test_radii
tests_phases_test_radii_SOURCES = tests/phases/test_radii.c phases/scenes/radii.c
tests_phases_test_radii_CPPFLAGS = $(phases_test_cppflags)

dt_tests += tests/phases/test_phase2_ppo
tests_phases_test_phase2_ppo_SOURCES = tests/phases/test_phase2_ppo.c phases/ppo/ppo.c phases/ppo/ppo_loss.c \
	phases/ppo/imagine.c
tests_phases_test_phase2_ppo_CPPFLAGS = $(phases_test_cppflags)
tests_phases_test_phase2_ppo_LDADD = $(phases_test_ldadd)
EXTRA_DIST += tests/phases/shapes.inc
dt_longer_tests += tests/phases/coma.sh tests/phases/phase_ddpg.sh tests/phases/phase_sac.sh tests/phases/shapes_sumo.sh

dt_tests += tests/phases/test_imagine
tests_phases_test_imagine_SOURCES = tests/phases/test_imagine.c phases/ppo/imagine.c
tests_phases_test_imagine_CPPFLAGS = $(phases_test_cppflags)
tests_phases_test_imagine_LDADD = $(phases_test_ldadd)

dt_tests += tests/phases/test_phase3
tests_phases_test_phase3_SOURCES = tests/phases/test_phase3.c phases/phase3_constrained/barrier.c \
	phases/constraints/limits.c phases/constraints/multiplier.c phases/phase3_constrained/stored.c \
	phases/phase3_constrained/trust_region.c $(ppo_sources) $(scenes_sources)
tests_phases_test_phase3_CPPFLAGS = $(phases_test_cppflags) -DDT_PLUGIN_NAME=phase3_constrained
tests_phases_test_phase3_LDADD = $(phases_test_ldadd)
dt_tests += tests/phases/test_limits
tests_phases_test_limits_SOURCES = tests/phases/test_limits.c phases/constraints/limits.c
tests_phases_test_limits_CPPFLAGS = $(phases_test_cppflags)
tests_phases_test_limits_LDADD = $(phases_test_ldadd)
dt_tests += tests/phases/test_multiplier
tests_phases_test_multiplier_SOURCES = tests/phases/test_multiplier.c phases/constraints/multiplier.c

dt_tests += tests/phases/test_trust_region_dual
tests_phases_test_trust_region_dual_SOURCES = tests/phases/test_trust_region_dual.c \
	phases/phase3_constrained/trust_region.c
dt_tests += tests/phases/test_trust_region
tests_phases_test_trust_region_SOURCES = tests/phases/test_trust_region.c phases/phase3_constrained/trust_region.c
dt_tests += tests/phases/test_barrier
tests_phases_test_barrier_SOURCES = tests/phases/test_barrier.c tests/mock/recorded.h \
	phases/phase3_constrained/barrier.c
tests_phases_test_barrier_CPPFLAGS = $(phases_test_cppflags)

dt_tests += tests/phases/test_coma
tests_phases_test_coma_SOURCES = tests/phases/test_coma.c phases/phase_coma/coma_loss.c
dt_tests += tests/phases/test_coma_rounds
tests_phases_test_coma_rounds_SOURCES = tests/phases/test_coma_rounds.c phases/phase_coma/coma_loss.c \
	$(common_sources)
tests_phases_test_coma_rounds_CPPFLAGS = $(phases_test_cppflags) -DDT_PLUGIN_NAME=phase_coma
tests_phases_test_coma_rounds_LDADD = $(phases_test_ldadd)

dt_tests += tests/phases/test_actor_critic
tests_phases_test_actor_critic_SOURCES = tests/phases/test_actor_critic.c phases/offpolicy/actor_critic.c
tests_phases_test_actor_critic_CPPFLAGS = $(phases_test_cppflags)
tests_phases_test_actor_critic_LDADD = $(phases_test_ldadd)
EXTRA_DIST += tests/phases/offpolicy.inc
# these include the phase
offpolicy_test_sources = tests/phases/offpolicy_rig.h tests/phases/offpolicy_host.h phases/offpolicy/actor_critic.c \
	phases/offpolicy/learner.c $(common_sources)
dt_tests += tests/phases/test_learner
tests_phases_test_learner_SOURCES = tests/phases/test_learner.c $(offpolicy_test_sources)
tests_phases_test_learner_CPPFLAGS = $(phases_test_cppflags)
tests_phases_test_learner_LDADD = $(phases_test_ldadd)
dt_tests += tests/phases/test_sac
tests_phases_test_sac_SOURCES = tests/phases/test_sac.c $(offpolicy_test_sources)
tests_phases_test_sac_CPPFLAGS = $(phases_test_cppflags) -DDT_PLUGIN_NAME=phase_sac
tests_phases_test_sac_LDADD = $(phases_test_ldadd)
dt_tests += tests/phases/test_ddpg
tests_phases_test_ddpg_SOURCES = tests/phases/test_ddpg.c $(offpolicy_test_sources)
tests_phases_test_ddpg_CPPFLAGS = $(phases_test_cppflags) -DDT_PLUGIN_NAME=phase_ddpg
tests_phases_test_ddpg_LDADD = $(phases_test_ldadd)
dt_tests += tests/phases/test_offline
tests_phases_test_offline_SOURCES = tests/phases/test_offline.c phases/phase_offline/check.c \
	phases/phase_offline/losses.c phases/phase_offline/costs.c phases/offpolicy/actor_critic.c \
	phases/constraints/limits.c phases/constraints/multiplier.c
tests_phases_test_offline_CPPFLAGS = $(phases_test_cppflags) -DDT_PLUGIN_NAME=phase_offline
tests_phases_test_offline_LDADD = $(phases_test_ldadd)

# a phase that learns from a replay, through the program
check_LTLIBRARIES += tests/phases/qreplay.la
tests_phases_qreplay_la_SOURCES = tests/phases/qreplay.c
tests_phases_qreplay_la_CPPFLAGS = $(PLUGIN_CPPFLAGS) -DDT_PLUGIN_NAME=qreplay
tests_phases_qreplay_la_CFLAGS = $(PLUGIN_CFLAGS)
tests_phases_qreplay_la_LDFLAGS = -module -avoid-version -shared -rpath /nowhere
tests/phases/replay.log: dtrain $(plugin_LTLIBRARIES) tests/phases/qreplay.la

# scripts
dt_scripts += tests/phases/phase2_ppo.sh tests/phases/overlap.sh tests/phases/phase3_constrained.sh \
	tests/phases/replay.sh
dt_whole_run_scripts += tests/phases/foresight.sh tests/phases/foresight_sumo.sh tests/phases/shield.sh \
	tests/phases/shapes.sh tests/phases/stored.sh tests/phases/cpo.sh tests/phases/phase3_exact.sh \
	tests/phases/offline.sh
dt_training_scripts += tests/phases/normalise.sh tests/phases/futures.sh tests/phases/shapes_sumo.sh \
	tests/phases/coma.sh tests/phases/phase_ddpg.sh tests/phases/phase_sac.sh
tests/phases/phase2_ppo.log tests/phases/overlap.log tests/phases/foresight.log tests/phases/shield.log \
	tests/phases/shapes.log tests/phases/phase3_constrained.log tests/phases/stored.log tests/phases/cpo.log \
	tests/phases/phase3_exact.log tests/phases/coma.log tests/phases/phase_ddpg.log \
	tests/phases/phase_sac.log tests/phases/offline.log tests/phases/foresight_sumo.log \
	tests/phases/shapes_sumo.log tests/phases/normalise.log tests/phases/futures.log: dtrain $(plugin_LTLIBRARIES)
tests/phases/foresight_sumo.log tests/phases/shapes_sumo.log: $(sumo_LTLIBRARIES)
tests/phases/normalise.log tests/phases/futures.log: share/demo.store/store.json
