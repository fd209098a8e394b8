# SPDX-License-Identifier: Apache-2.0
dt_tests += tests/rollout/test_dist tests/rollout/test_gae tests/rollout/test_normaliser \
	tests/rollout/test_time_to_cost tests/rollout/test_process_spec tests/rollout/test_asked tests/rollout/test_rollout \
	tests/rollout/test_rollout_refused tests/rollout/test_replay_refused \
	tests/rollout/test_workers tests/rollout/test_transitions tests/rollout/test_replay tests/rollout/test_sum_tree \
	tests/rollout/test_lists
rollout_worlds = tests/rollout/worlds.c tests/rollout/worlds.h tests/rollout/counter.c tests/rollout/crowd.c \
	tests/rollout/herd.c tests/rollout/relay.c tests/rollout/tiny.c
tests_rollout_test_rollout_SOURCES = tests/rollout/test_rollout.c $(rollout_worlds)
tests_rollout_test_rollout_refused_SOURCES = tests/rollout/test_rollout_refused.c $(rollout_worlds)
tests_rollout_test_replay_refused_SOURCES = tests/rollout/test_replay_refused.c $(rollout_worlds)
tests_rollout_test_transitions_SOURCES = tests/rollout/test_transitions.c $(rollout_worlds)
tests_rollout_test_lists_SOURCES = tests/rollout/test_lists.c $(rollout_worlds)
tests_rollout_test_replay_SOURCES = tests/rollout/test_replay.c $(rollout_worlds)
tests_rollout_test_workers_SOURCES = tests/rollout/test_workers.c $(rollout_worlds)
tests_rollout_test_process_spec_SOURCES = tests/rollout/test_process_spec.c
tests_rollout_test_asked_SOURCES = tests/rollout/test_asked.c $(rollout_worlds) \
	tests/device/host_device.c tests/device/host_device.h \
	tests/device/host_work.c tests/device/host_work.h
tests_rollout_test_asked_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests -I$(top_srcdir)/tests/rollout
