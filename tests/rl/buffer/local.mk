# SPDX-License-Identifier: Apache-2.0
dt_tests += tests/rl/buffer/test_dist tests/rl/buffer/test_gae tests/rl/buffer/test_normaliser \
	tests/rl/buffer/test_time_to_cost tests/rl/buffer/test_process_spec tests/rl/buffer/test_asked tests/rl/buffer/test_rollout \
	tests/rl/buffer/test_rollout_refused tests/rl/buffer/test_replay_refused \
	tests/rl/buffer/test_workers tests/rl/buffer/test_transitions tests/rl/buffer/test_replay tests/rl/buffer/test_sum_tree \
	tests/rl/buffer/test_lists tests/rl/buffer/test_evaluation tests/rl/buffer/test_rollout_resume
rollout_worlds = tests/rl/buffer/worlds.c tests/rl/buffer/worlds.h tests/rl/buffer/counter.c tests/rl/buffer/crowd.c \
	tests/rl/buffer/herd.c tests/rl/buffer/relay.c tests/rl/buffer/tiny.c
tests_rl_buffer_test_rollout_SOURCES = tests/rl/buffer/test_rollout.c $(rollout_worlds)
tests_rl_buffer_test_rollout_resume_SOURCES = tests/rl/buffer/test_rollout_resume.c $(rollout_worlds)
tests_rl_buffer_test_evaluation_SOURCES = tests/rl/buffer/test_evaluation.c $(rollout_worlds)
tests_rl_buffer_test_rollout_refused_SOURCES = tests/rl/buffer/test_rollout_refused.c $(rollout_worlds)
tests_rl_buffer_test_replay_refused_SOURCES = tests/rl/buffer/test_replay_refused.c $(rollout_worlds)
tests_rl_buffer_test_transitions_SOURCES = tests/rl/buffer/test_transitions.c $(rollout_worlds)
tests_rl_buffer_test_lists_SOURCES = tests/rl/buffer/test_lists.c $(rollout_worlds)
tests_rl_buffer_test_replay_SOURCES = tests/rl/buffer/test_replay.c $(rollout_worlds)
tests_rl_buffer_test_workers_SOURCES = tests/rl/buffer/test_workers.c $(rollout_worlds)
tests_rl_buffer_test_process_spec_SOURCES = tests/rl/buffer/test_process_spec.c
tests_rl_buffer_test_asked_SOURCES = tests/rl/buffer/test_asked.c $(rollout_worlds) $(host_device_sources)
tests_rl_buffer_test_asked_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests -I$(top_srcdir)/tests/rl/buffer
