# SPDX-License-Identifier: Apache-2.0
dt_tests += tests/rl/rollout/test_collect tests/rl/rollout/test_round
tests_rl_rollout_test_collect_SOURCES = tests/rl/rollout/test_collect.c $(rollout_worlds)
tests_rl_rollout_test_collect_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/rl/buffer
