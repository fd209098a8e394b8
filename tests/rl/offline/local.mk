# SPDX-License-Identifier: Apache-2.0
dt_tests += tests/rl/offline/test_stored
tests_rl_offline_test_stored_SOURCES = tests/rl/offline/test_stored.c $(rollout_worlds)
tests_rl_offline_test_stored_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/rl/buffer
