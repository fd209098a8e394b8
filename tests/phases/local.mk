# SPDX-License-Identifier: Apache-2.0
EXTRA_DIST += tests/phases/rig.inc
dt_tests += tests/phases/test_phase1_world_model
tests_phases_test_phase1_world_model_SOURCES = tests/phases/test_phase1_world_model.c tests/phases/phase1_host.c \
	tests/phases/phase1_host.h
tests_phases_test_phase1_world_model_CPPFLAGS = $(mock_cppflags)
tests_phases_test_phase1_world_model_LDADD = $(mock_la) $(mock_libs)

dt_tests += tests/phases/test_normalise
tests_phases_test_normalise_SOURCES = tests/phases/test_normalise.c phases/scenes/normalise.c
tests_phases_test_normalise_CPPFLAGS = $(mock_cppflags) -I$(top_srcdir)/phases/scenes
tests_phases_test_normalise_LDADD = $(mock_la) $(mock_libs)

dt_tests += tests/phases/test_prediction
tests_phases_test_prediction_SOURCES = tests/phases/test_prediction.c phases/scenes/prediction.c
tests_phases_test_prediction_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests -I$(top_srcdir)/phases/scenes
tests_phases_test_prediction_LDADD = $(mock_la) plugins/traffic/libdttraffic.la core/libdtcore.la $(CMOCKA_LIBS) -ldl -lm
dt_tests += tests/phases/test_figures
tests_phases_test_figures_SOURCES = tests/phases/test_figures.c phases/scenes/figures.c phases/scenes/region.c \
	phases/scenes/radii.c
tests_phases_test_figures_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/phases/scenes
dt_tests += tests/phases/test_region
tests_phases_test_region_SOURCES = tests/phases/test_region.c phases/scenes/region.c
tests_phases_test_region_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/phases/scenes
dt_tests += tests/phases/test_pictures
tests_phases_test_pictures_SOURCES = tests/phases/test_pictures.c phases/scenes/pictures.c
tests_phases_test_pictures_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests -I$(top_srcdir)/phases/scenes
tests_phases_test_pictures_LDADD = $(mock_la) plugins/traffic/libdttraffic.la core/libdtcore.la $(CMOCKA_LIBS) -ldl -lm
dt_tests += tests/phases/test_radii
tests_phases_test_radii_SOURCES = tests/phases/test_radii.c phases/scenes/radii.c
tests_phases_test_radii_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/phases/scenes
dt_training_scripts += tests/phases/normalise.sh
tests/phases/normalise.log: dtrain $(plugin_LTLIBRARIES) share/demo.store/store.json
dt_training_scripts += tests/phases/futures.sh
tests/phases/futures.log: dtrain $(plugin_LTLIBRARIES) share/demo.store/store.json

dt_tests += tests/phases/test_phase2_ppo
tests_phases_test_phase2_ppo_SOURCES = tests/phases/test_phase2_ppo.c phases/clipped/clipped.c phases/clipped/loss.c \
	phases/clipped/imagine.c
dt_scripts += tests/phases/phase2_ppo.sh
tests/phases/phase2_ppo.log: dtrain $(plugin_LTLIBRARIES)
dt_scripts += tests/phases/overlap.sh
tests/phases/overlap.log: dtrain $(plugin_LTLIBRARIES)
dt_whole_run_scripts += tests/phases/foresight.sh
tests/phases/foresight.log: dtrain $(plugin_LTLIBRARIES)
dt_whole_run_scripts += tests/phases/foresight_sumo.sh
tests/phases/foresight_sumo.log: dtrain $(plugin_LTLIBRARIES) $(sumo_LTLIBRARIES)
dt_whole_run_scripts += tests/phases/shield.sh
tests/phases/shield.log: dtrain $(plugin_LTLIBRARIES)
EXTRA_DIST += tests/phases/shapes.inc
dt_whole_run_scripts += tests/phases/shapes.sh
tests/phases/shapes.log: dtrain $(plugin_LTLIBRARIES)
dt_longer_tests += tests/phases/coma.sh tests/phases/phase_ddpg.sh tests/phases/phase_sac.sh tests/phases/shapes_sumo.sh
dt_training_scripts += tests/phases/shapes_sumo.sh
tests/phases/shapes_sumo.log: dtrain $(plugin_LTLIBRARIES) $(sumo_LTLIBRARIES)

dt_tests += tests/phases/test_imagine
tests_phases_test_imagine_SOURCES = tests/phases/test_imagine.c phases/clipped/imagine.c
tests_phases_test_imagine_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
tests_phases_test_imagine_LDADD = $(mock_la) plugins/traffic/libdttraffic.la core/libdtcore.la $(CMOCKA_LIBS) -ldl -lm

dt_tests += tests/phases/test_phase3
tests_phases_test_phase3_SOURCES = tests/phases/test_phase3.c phases/phase3_constrained/barrier.c \
	phases/phase3_constrained/limits.c phases/phase3_constrained/multiplier.c phases/phase3_constrained/stored.c \
	phases/phase3_constrained/trust_region.c phases/phase3_constrained/trust_region_dual.c $(clipped_sources) \
	$(scenes_sources)
tests_phases_test_phase3_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests -I$(top_srcdir)/phases/clipped \
	-I$(top_srcdir)/phases/scenes -I$(top_srcdir)/phases/phase3_constrained -DDT_PLUGIN_NAME=phase3_constrained
tests_phases_test_phase3_LDADD = $(mock_la) plugins/traffic/libdttraffic.la core/libdtcore.la $(CMOCKA_LIBS) -ldl -lm
dt_tests += tests/phases/test_limits
tests_phases_test_limits_SOURCES = tests/phases/test_limits.c phases/phase3_constrained/limits.c
dt_tests += tests/phases/test_multiplier
tests_phases_test_multiplier_SOURCES = tests/phases/test_multiplier.c phases/phase3_constrained/multiplier.c
dt_scripts += tests/phases/phase3_constrained.sh
tests/phases/phase3_constrained.log: dtrain $(plugin_LTLIBRARIES)

dt_tests += tests/phases/test_trust_region_dual
tests_phases_test_trust_region_dual_SOURCES = tests/phases/test_trust_region_dual.c \
	phases/phase3_constrained/trust_region_dual.c
dt_tests += tests/phases/test_trust_region
tests_phases_test_trust_region_SOURCES = tests/phases/test_trust_region.c \
	phases/phase3_constrained/trust_region.c phases/phase3_constrained/trust_region_dual.c
dt_whole_run_scripts += tests/phases/stored.sh
tests/phases/stored.log: dtrain $(plugin_LTLIBRARIES)
dt_whole_run_scripts += tests/phases/cpo.sh
tests/phases/cpo.log: dtrain $(plugin_LTLIBRARIES)
dt_whole_run_scripts += tests/phases/phase3_exact.sh
tests/phases/phase3_exact.log: dtrain $(plugin_LTLIBRARIES)
dt_tests += tests/phases/test_barrier
tests_phases_test_barrier_SOURCES = tests/phases/test_barrier.c tests/mock/recorded.h \
	phases/phase3_constrained/barrier.c
tests_phases_test_barrier_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests -I$(top_srcdir)/phases/clipped

dt_tests += tests/phases/test_coma
tests_phases_test_coma_SOURCES = tests/phases/test_coma.c phases/phase_coma/loss.c
dt_tests += tests/phases/test_coma_rounds
tests_phases_test_coma_rounds_SOURCES = tests/phases/test_coma_rounds.c phases/phase_coma/loss.c
tests_phases_test_coma_rounds_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests -DDT_PLUGIN_NAME=phase_coma
tests_phases_test_coma_rounds_LDADD = $(mock_la) plugins/traffic/libdttraffic.la core/libdtcore.la $(CMOCKA_LIBS) -ldl -lm
dt_training_scripts += tests/phases/coma.sh
tests/phases/coma.log: dtrain $(plugin_LTLIBRARIES)

dt_tests += tests/phases/test_offpolicy
tests_phases_test_offpolicy_SOURCES = tests/phases/test_offpolicy.c phases/offpolicy/roles.c
tests_phases_test_offpolicy_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
tests_phases_test_offpolicy_LDADD = $(mock_la) plugins/traffic/libdttraffic.la core/libdtcore.la $(CMOCKA_LIBS) -ldl -lm
EXTRA_DIST += tests/phases/offpolicy.inc
# these include the phase
offpolicy_test_sources = tests/phases/offpolicy_rig.h tests/phases/offpolicy_host.h phases/offpolicy/roles.c phases/offpolicy/learner.c
offpolicy_test_cppflags = $(AM_CPPFLAGS) -I$(top_srcdir)/tests -I$(top_srcdir)/phases/offpolicy
dt_tests += tests/phases/test_learner
tests_phases_test_learner_SOURCES = tests/phases/test_learner.c $(offpolicy_test_sources)
tests_phases_test_learner_CPPFLAGS = $(offpolicy_test_cppflags)
tests_phases_test_learner_LDADD = $(mock_la) plugins/traffic/libdttraffic.la core/libdtcore.la $(CMOCKA_LIBS) -ldl -lm
dt_tests += tests/phases/test_sac
tests_phases_test_sac_SOURCES = tests/phases/test_sac.c $(offpolicy_test_sources)
tests_phases_test_sac_CPPFLAGS = $(offpolicy_test_cppflags) -DDT_PLUGIN_NAME=phase_sac
tests_phases_test_sac_LDADD = $(mock_la) plugins/traffic/libdttraffic.la core/libdtcore.la $(CMOCKA_LIBS) -ldl -lm
dt_tests += tests/phases/test_ddpg
tests_phases_test_ddpg_SOURCES = tests/phases/test_ddpg.c $(offpolicy_test_sources)
tests_phases_test_ddpg_CPPFLAGS = $(offpolicy_test_cppflags) -DDT_PLUGIN_NAME=phase_ddpg
tests_phases_test_ddpg_LDADD = $(mock_la) plugins/traffic/libdttraffic.la core/libdtcore.la $(CMOCKA_LIBS) -ldl -lm
dt_tests += tests/phases/test_offline
tests_phases_test_offline_SOURCES = tests/phases/test_offline.c phases/phase_offline/check.c \
	phases/phase_offline/record.c phases/phase_offline/costs.c phases/phase_offline/idle.c phases/offpolicy/roles.c \
	phases/phase3_constrained/limits.c phases/phase3_constrained/multiplier.c
tests_phases_test_offline_CPPFLAGS = $(offpolicy_test_cppflags) -I$(top_srcdir)/phases/phase3_constrained \
	-DDT_PLUGIN_NAME=phase_offline
tests_phases_test_offline_LDADD = $(mock_la) plugins/traffic/libdttraffic.la core/libdtcore.la $(CMOCKA_LIBS) -ldl -lm
dt_training_scripts += tests/phases/phase_ddpg.sh
tests/phases/phase_ddpg.log: dtrain $(plugin_LTLIBRARIES)
dt_training_scripts += tests/phases/phase_sac.sh
tests/phases/phase_sac.log: dtrain $(plugin_LTLIBRARIES)

# a phase that learns from a replay, through the program
dt_whole_run_scripts += tests/phases/offline.sh
tests/phases/offline.log: dtrain $(plugin_LTLIBRARIES)
dt_scripts += tests/phases/replay.sh
check_LTLIBRARIES += tests/phases/qreplay.la
tests_phases_qreplay_la_SOURCES = tests/phases/qreplay.c
tests_phases_qreplay_la_CPPFLAGS = $(PLUGIN_CPPFLAGS) -DDT_PLUGIN_NAME=qreplay
tests_phases_qreplay_la_CFLAGS = $(PLUGIN_CFLAGS)
tests_phases_qreplay_la_LDFLAGS = -module -avoid-version -shared -rpath /nowhere
tests/phases/replay.log: dtrain $(plugin_LTLIBRARIES) tests/phases/qreplay.la
