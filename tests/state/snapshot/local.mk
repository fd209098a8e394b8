# SPDX-License-Identifier: Apache-2.0
dt_tests += tests/state/snapshot/test_snapshot
tests_state_snapshot_test_snapshot_SOURCES = tests/state/snapshot/test_snapshot.c $(rollout_worlds)
tests_state_snapshot_test_snapshot_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/rl/buffer
dt_tests += tests/state/snapshot/test_renewed
